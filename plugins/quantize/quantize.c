/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize: y = x/scale rounded to the nearest integer, plus zero, saturated; or to FP8.
 * One scale for all, one for each index along a dim, or for each block of it.
 */
#include "plugins/common/quantized/quantize.h"

#include <math.h>

#include "plugins/common/cast.h"
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/quantized/operands.h"
#include "plugins/common/bytes/blocks.h"
#include "plugins/common/bytes/rows.h"

static int quantize_output(const strata_node *n)
{
    const strata_quantize *p = n->params;
    if (!dense_is_real(n->in[0].dtype) || n->in[0].dtype == STRATA_FP64)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input is neither fp32 nor a narrower float; put a Cast "
                           "before it");
    n->out[0].dtype = quantize_dtype(p);
    return quantize_shape(n);
}

/* m rows of n values; operands as in quantize_rows_run. */
static void byte_tile(const void *arg, const struct span_axis *outer,
                      const struct span_axis *inner, const int64_t *base, int64_t m,
                      int64_t n)
{
    const struct quantize_operands *o = arg;
    const int is_signed = o->y.dtype == STRATA_INT8;
    for (int64_t i = 0; i < m; i++) {
        const struct quantize_scale s = {
            .scale = ((const float *)o->scale.data)[base[2] + i * outer->step[2]],
            .zero = ((const float *)o->zero.data)[base[3] + i * outer->step[3]],
            .low = is_signed ? -128 : 0,
            .high = is_signed ? 127 : 255};
        uint8_t *y = (uint8_t *)o->y.data + base[0] + i * outer->step[0];
        const float *x = (const float *)o->x.data + base[1] + i * outer->step[1];
        quantize_row_for (&s)(y, x, &s, n);
    }
    (void)inner;
}

static int quantize_run(const strata_run *r)
{
    const strata_quantize *p = r->params;
    const struct quantize_operands o = quantize_operands(r);
    const double most = quantize_most(p);
    const struct pointwise_constants k = {.alpha = -most, .beta = most};
    struct pointwise_pass pass = {
        .values = &pointwise_float,
        .out = &o.y,
        .in = {&o.x, &o.scale, &o.zero},
        .n_in = 3,
        .n_steps = 1,
        .step = {{POINTWISE_QUANTIZE, POINTWISE_RESULT, 0, 1, 2, k}},
    };
    if (quantize_to_fp8(p)) { /* a zero of FP8 is 0 */
        pass.step[0] =
            (struct pointwise_step){POINTWISE_ELEMENTWISE + STRATA_DIV, 3, 0, 1, 0, k};
        pass.step[1] = (struct pointwise_step){
            p->saturate ? POINTWISE_ACTIVATION + STRATA_CLIP : POINTWISE_COPY,
            POINTWISE_RESULT,
            3,
            3,
            3,
            k};
        pass.n_steps = 2;
    }
    if (quantize_to_fp8(p) || o.x.dtype != STRATA_FP32 ||
        !quantize_rows_run(&o, byte_tile))
        pointwise_pass_run(&pass);
    return STRATA_OK;
}

/* ---- from blocks of channels ------------------------------------------------------ */

static int quantize_blocks_accept(const strata_node *n)
{
    const int status = quantize_accept(n);
    return status ? status : blocks_accept(n);
}

static void quantize_block(const struct byte_block *b, const void *job)
{
    const struct quantize_scale *s = job;
    uint8_t bytes[BLOCK_PIXELS * BLOCK_LANES];
    quantize_row_for (s)(bytes, b->floats, s, b->pixels * BLOCK_LANES);
    block_store(b, bytes);
}

static int quantize_blocks_run(const strata_run *r)
{
    const int is_signed = r->out[0].dtype == STRATA_INT8;
    const struct quantize_scale s = {.scale = *(const float *)r->weight[0].data,
                                     .zero = blocks_zero(r),
                                     .low = is_signed ? -128 : 0,
                                     .high = is_signed ? 127 : 255};
    blocks_run(&r->in[0], &r->out[0], quantize_block, &s);
    return STRATA_OK;
}

/* ---- the definition ---------------------------------------------------------------- */

/* Division and sum as the definition has them, in FP32. */
static int quantize_reference(const strata_node *n, const void *const *in,
                              const void *const *weight, void *const *out)
{
    const strata_quantize *p = n->params;
    const strata_tensor *x = &n->in[0], *scale = &n->weight[0];
    const int32_t to = quantize_dtype(p);
    const double low = to == STRATA_INT8 ? -128 : 0, high = to == STRATA_INT8 ? 127 : 255;
    const double *from = in[0], *factor = weight[0], *zero = weight[1];
    const int64_t count = dense_count(x);
    int64_t index[STRATA_MAX_RANK];
    for (int64_t i = 0; i < count; i++) {
        dense_index(x, i, index);
        const int64_t at = quantize_place(p, x, scale, index);
        const float quotient = (float)from[i] / (float)factor[at];
        if (quantize_to_fp8(p)) {
            uint8_t element;
            cast_of(to, STRATA_FP32)(&element, &quotient, 1, p->saturate);
            cast_of(STRATA_FP64, to)((double *)out[0] + i, &element, 1, 0);
            continue;
        }
        const double y = nearbyint(nearbyint((double)quotient) + (zero ? zero[at] : 0));
        ((int64_t *)out[0])[i] = isnan(y) ? 0 : (int64_t)fmin(fmax(y, low), high);
    }
    return STRATA_OK;
}

static const void *quantize_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, STRATA_NAN_IGNORED,
                                                     quantize_reference};
    return dense_extension_typed(id, &reference);
}

static const strata_attr attrs[] = {
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_quantize, axis),
     .def = 1,
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim along which scales differ; negative counts from the end"},
    {.name = "block",
     .type = STRATA_I64,
     .offset = offsetof(strata_quantize, block),
     .max = 1 << 30,
     .doc = "elements along the axis that share a scale; 0: those of one index"},
    {.name = "dtype",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_quantize, dtype),
     .choices = "u8|int8|e4m3|e5m2",
     .doc = "dtype of the output"},
    {.name = "saturate",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_quantize, saturate),
     .def = 1,
     .doc = "to e4m3 and e5m2: the largest in place of what lies past it"},
};

static const strata_weight weights[] = {
    {.name = "scale",
     .flags = STRATA_REQUIRED,
     .rank = -1,
     .doc = "divisor: one, one an index of axis, or one a block"},
    {.name = "zero",
     .rank = -1,
     .doc = "whole number that stands for 0 (u8, int8): as many as of scale"},
};

static const strata_row rows[] = {
    {{POINTWISE_LINEAR_FLOATS},
     {STRATA_U8_NCHW | STRATA_I8_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW}},
    {{STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC},
     {STRATA_U8_NHWC | STRATA_I8_NHWC}},
};

static const strata_row block_rows[] = {
    {{STRATA_F32_NC8HW8}, {STRATA_U8_NHWC | STRATA_I8_NHWC}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.6,
     .accept = quantize_accept,
     .run = quantize_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "blocks",
     .rows = STRATA_ARRAY(block_rows),
     .efficiency = 0.16,
     .bandwidth = 0.6,
     .accept = quantize_blocks_accept,
     .run = quantize_blocks_run},
};

static const strata_layer quantize = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Quantize",
    .doc = "Floats as integers or FP8 times a scale",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_quantize),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = quantize_output,
    .weight_shape = quantize_weight_shape,
    .extension = quantize_extension,
};

static const strata_layer *const layers[] = {&quantize};
STRATA_MODULE("core", "1.0.0", "Quantize", layers)
