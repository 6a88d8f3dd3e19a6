/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedSum: two tensors of 8 bits, each with its scale and zero, added in FP32 and
 * rounded to 8 bits again: what joins the branches of a residual network.
 */
#include "plugins/common/dense.h"
#include "plugins/common/quantized/quantized.h"
#include "plugins/common/walk.h"
#include "plugins/quantized_sum/span.h"

enum { SCALE_A, SCALE_B, SCALE_OUT };

static const strata_attr attrs[] = {
    QUANTIZED_ATTRS(strata_quantized_sum),
    {.name = "zero_b",
     .type = STRATA_I64,
     .offset = offsetof(strata_quantized_sum, zero_b),
     .min = -128,
     .max = 255,
     .doc = "what stands for 0 in the second input; zero_in is the first's"},
};

static const strata_weight weights[] = {
    [SCALE_A] = {.name = "scale_a",
                 .flags = STRATA_REQUIRED,
                 .rank = -1,
                 .doc = "factor of the first input"},
    [SCALE_B] = {.name = "scale_b",
                 .flags = STRATA_REQUIRED,
                 .rank = -1,
                 .doc = "factor of the second input"},
    [SCALE_OUT] = {.name = "scale_out",
                   .rank = -1,
                   .doc = "divisor of the output, where that is an integer"},
};

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    (void)n;
    for (int w = SCALE_A; w <= SCALE_OUT; w++)
        quantized_expect(&expected[w], STRATA_FP32, 1);
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    const strata_quantized_sum *p = n->params;
    const strata_tensor *a = &n->in[0], *b = &n->in[1];
    int same = a->rank == b->rank;
    int status = quantized_check_byte(n, a, p->quantized.zero_in);
    if (status == STRATA_OK)
        status = quantized_check_byte(n, b, p->zero_b);
    for (int d = 0; d < a->rank && same; d++)
        same = a->dims[d] == b->dims[d];
    if (status == STRATA_OK && !same)
        return STRATA_FAIL(n, STRATA_EINVAL, "the inputs differ in shape; they must not");
    n->out[0].rank = a->rank;
    for (int d = 0; d < a->rank; d++)
        n->out[0].dims[d] = a->dims[d];
    return status ? status
                  : quantized_check_output(n, &p->quantized, &n->weight[SCALE_OUT]);
}

/* ---- plain C ------------------------------------------------------------------- */

static int accept(const strata_node *n)
{
    return quantized_accept(n, &((const strata_quantized_sum *)n->params)->quantized);
}

enum { SPAN_BYTES = 1 << 14 }; /* at a time: worth a thread */

static void run_floats(const strata_run *r, struct span_input a, struct span_input b)
{
    const strata_quantized *q = &((const strata_quantized_sum *)r->params)->quantized;
    const uint8_t *x = r->in[0].data, *y = r->in[1].data;
    float *out = r->out[0].data;
    const int64_t count = r->out[0].size;
#pragma omp parallel for schedule(static) if (count > SPAN_BYTES)
    for (int64_t i = 0; i < count; i++) {
        const float first = (float)((x[i] ^ a.flip) - a.zero) * a.scale;
        const float second = (float)((y[i] ^ b.flip) - b.zero) * b.scale;
        out[i] = quantized_activate(q, first + second);
    }
}

static void run_bytes(const strata_run *r, const struct span *s)
{
    const uint8_t *a = r->in[0].data, *b = r->in[1].data;
    uint8_t *y = r->out[0].data;
    const int64_t count = r->out[0].size;
    span_run *span = span_choose(s);
#pragma omp parallel for schedule(static) if (count > SPAN_BYTES)
    for (int64_t i = 0; i < count; i += SPAN_BYTES)
        span(s, y + i, a + i, b + i, i + SPAN_BYTES < count ? SPAN_BYTES : count - i);
}

/* Both inputs and the output lie alike, pad lanes too. */
static int run(const strata_run *r)
{
    const strata_quantized_sum *p = r->params;
    const struct span_input a = span_input(r->in[0].dtype, p->quantized.zero_in,
                                           *(float *)r->weight[SCALE_A].data);
    const struct span_input b =
        span_input(r->in[1].dtype, p->zero_b, *(float *)r->weight[SCALE_B].data);
    if (p->quantized.to == 0) {
        run_floats(r, a, b);
    } else {
        const struct span s =
            span_of(&p->quantized, a, b, *(const float *)r->weight[SCALE_OUT].data);
        run_bytes(r, &s);
    }
    walk_clear_pads(&r->out[0]);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_quantized_sum *p = n->params;
    const strata_quantized *q = &p->quantized;
    const int64_t *a = in[0], *b = in[1];
    const float scale_a = (float)*(const double *)weight[SCALE_A];
    const float scale_b = (float)*(const double *)weight[SCALE_B];
    for (int64_t i = 0; i < dense_count(&n->out[0]); i++) {
        const float x = (float)(a[i] - q->zero_in) * scale_a;
        const float y = (float)(b[i] - p->zero_b) * scale_b;
        quantized_define(q, out[0], i, quantized_activate(q, x + y), weight[SCALE_OUT]);
    }
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

#define ROW(i8, u8, f32)                                                                 \
    {                                                                                    \
        {(i8) | (u8), (i8) | (u8)},                                                      \
        {                                                                                \
            (i8) | (u8) | (f32)                                                          \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(STRATA_I8_NCHW, STRATA_U8_NCHW, STRATA_F32_NCHW),
    ROW(STRATA_I8_NHWC, STRATA_U8_NHWC, STRATA_F32_NHWC),
    ROW(STRATA_I8_NC4HW4, STRATA_U8_NC4HW4, 0),
    ROW(STRATA_I8_NC32HW32, STRATA_U8_NC32HW32, 0),
    ROW(STRATA_I8_NHWC16, 0, 0),
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.3,
     .accept = accept,
     .run = run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "QuantizedSum",
    .doc = "Sum of two tensors of 8-bit integers, each with its scale.",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_quantized_sum),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedSum", layers)
