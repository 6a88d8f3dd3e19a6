/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantize: y = (x - zero)*scale of integers or FP8. One scale for all, one for each
 * index along a dim, or for each block of it.
 */
#include "plugins/common/quantized/quantize.h"

#include "plugins/common/bytes/blocks.h"
#include "plugins/common/dense.h"
#include "plugins/common/pointwise.h"
#include "plugins/common/pointwise/row.h"
#include "plugins/common/quantized/operands.h"

static int dequantize_shape(const strata_node *n)
{
    const int32_t dtype = n->in[0].dtype;
    if (dtype != STRATA_UINT8 && dtype != STRATA_INT8 && dtype != STRATA_INT32 &&
        dtype != STRATA_E4M3 && dtype != STRATA_E5M2)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "the input is none of u8, int8, i32, e4m3 and e5m2");
    n->out[0].dtype = STRATA_FP32;
    return quantize_shape(n);
}

typedef void byte_row(float *y, const uint8_t *x, float scale, float zero, int64_t n);

#define BYTE_ROW(T, name, target)                                                        \
    target static void row_##T##_##name(float *restrict y, const uint8_t *restrict x,    \
                                        float scale, float zero, int64_t n)              \
    {                                                                                    \
        for (int64_t i = 0; i < n; i++)                                                  \
            y[i] = ((float)(T)x[i] - zero) * scale;                                      \
    }

BYTE_ROW(uint8_t, plain, )
BYTE_ROW(int8_t, plain, )
#ifdef ELEMENT_X86
BYTE_ROW(uint8_t, avx2, __attribute__((target("avx2,fma"))))
BYTE_ROW(int8_t, avx2, __attribute__((target("avx2,fma"))))
BYTE_ROW(uint8_t, avx512, ROW_AVX512)
BYTE_ROW(int8_t, avx512, ROW_AVX512)
#endif

/* m rows of n values; operands as in quantize_rows_run. */
static void byte_tile(const void *arg, const struct span_axis *outer,
                      const struct span_axis *inner, const int64_t *base, int64_t m,
                      int64_t n)
{
    const struct quantize_operands *o = arg;
    byte_row *row =
        o->x.dtype == STRATA_INT8 ? ROW_BEST(row_int8_t) : ROW_BEST(row_uint8_t);
    for (int64_t i = 0; i < m; i++)
        row((float *)o->y.data + base[0] + i * outer->step[0],
            (const uint8_t *)o->x.data + base[1] + i * outer->step[1],
            ((const float *)o->scale.data)[base[2] + i * outer->step[2]],
            ((const float *)o->zero.data)[base[3] + i * outer->step[3]], n);
    (void)inner;
}

static int dequantize_run(const strata_run *r)
{
    const struct quantize_operands o = quantize_operands(r);
    const int bytes = o.x.dtype == STRATA_UINT8 || o.x.dtype == STRATA_INT8;
    const struct pointwise_pass pass = {
        .values = &pointwise_float,
        .out = &o.y,
        .in = {&o.x, &o.zero, &o.scale},
        .n_in = 3,
        .n_steps = 1,
        .step = {{POINTWISE_DEQUANTIZE, POINTWISE_RESULT, 0, 1, 2, {0}}},
    };
    if (!bytes || o.y.dtype != STRATA_FP32 || !quantize_rows_run(&o, byte_tile))
        pointwise_pass_run(&pass);
    return STRATA_OK;
}

/* ---- to blocks of channels -------------------------------------------------------- */

struct block_job {
    byte_row *row;
    float scale, zero;
};

static void dequantize_block(const struct byte_block *b, const void *job)
{
    const struct block_job *j = job;
    uint8_t bytes[BLOCK_PIXELS * BLOCK_LANES];
    block_load(b, bytes);
    j->row(b->floats, bytes, j->scale, j->zero, b->pixels * BLOCK_LANES);
    for (int64_t i = 0; i < b->pixels && b->lanes < BLOCK_LANES; i++)
        memset(b->floats + i * BLOCK_LANES + b->lanes, 0,
               (size_t)(BLOCK_LANES - b->lanes) * sizeof(float));
}

static int dequantize_blocks_run(const strata_run *r)
{
    const struct block_job j = {.row = r->in[0].dtype == STRATA_INT8
                                           ? ROW_BEST(row_int8_t)
                                           : ROW_BEST(row_uint8_t),
                                .scale = *(const float *)r->weight[0].data,
                                .zero = blocks_zero(r)};
    blocks_run(&r->out[0], &r->in[0], dequantize_block, &j);
    return STRATA_OK;
}

/* ---- the definition ---------------------------------------------------------------- */

static int dequantize_reference(const strata_node *n, const void *const *in,
                                const void *const *weight, void *const *out)
{
    const strata_quantize *p = n->params;
    const strata_tensor *x = &n->in[0], *scale = &n->weight[0];
    const int fp8 = dense_is_real(x->dtype);
    const double *factor = weight[0], *zero = weight[1];
    const int64_t count = dense_count(x);
    int64_t index[STRATA_MAX_RANK];
    for (int64_t i = 0; i < count; i++) {
        dense_index(x, i, index);
        const int64_t at = quantize_place(p, x, scale, index);
        const double v =
            fp8 ? ((const double *)in[0])[i] : (double)((const int64_t *)in[0])[i];
        ((double *)out[0])[i] = (v - (zero ? zero[at] : 0)) * factor[at];
    }
    return STRATA_OK;
}

static const void *dequantize_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0,
                                                     dequantize_reference};
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
};

static const strata_weight weights[] = {
    {.name = "scale",
     .flags = STRATA_REQUIRED,
     .rank = -1,
     .doc = "factor: one, one an index of axis, or one a block"},
    {.name = "zero", .rank = -1, .doc = "what stands for 0: as many as of scale"},
};

static const strata_row rows[] = {
    {{STRATA_U8_NCHW | STRATA_I8_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW |
      STRATA_I32_NCHW},
     {POINTWISE_LINEAR_FLOATS}},
    {{STRATA_U8_NHWC | STRATA_I8_NHWC},
     {STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC}},
};

static const strata_row block_rows[] = {
    {{STRATA_U8_NHWC | STRATA_I8_NHWC}, {STRATA_F32_NC8HW8}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.16,
     .bandwidth = 0.6,
     .run = dequantize_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "blocks",
     .rows = STRATA_ARRAY(block_rows),
     .efficiency = 0.16,
     .bandwidth = 0.6,
     .accept = blocks_accept,
     .run = dequantize_blocks_run},
};

static const strata_layer dequantize = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Dequantize",
    .doc = "Floats from integers or FP8 and a scale",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_quantize),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = dequantize_shape,
    .weight_shape = quantize_weight_shape,
    .extension = dequantize_extension,
};

static const strata_layer *const layers[] = {&dequantize};
STRATA_MODULE("core", "1.0.0", "Dequantize", layers)
