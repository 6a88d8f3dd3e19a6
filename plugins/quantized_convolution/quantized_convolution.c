/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution: Convolution of INT8 or UINT8 by INT8, sums in 32 bits, scales,
 * bias and activation in FP32, to FP32 or back to 8 bits. `c` is plain: it reads and
 * writes every format of 8 bits.
 */
#include "plugins/common/dense.h"
#include "plugins/common/filters.h"
#include "plugins/common/plane.h"
#include "plugins/common/quantized/channels.h"
#include "plugins/common/quantized/quantized.h"
#include "plugins/common/walk.h"
#include "plugins/quantized_convolution/amx.h"
#include "plugins/quantized_convolution/depthwise.h"
#include "plugins/quantized_convolution/join.h"
#include "plugins/quantized_convolution/vnni.h"

enum { WEIGHT = STRATA_QUANTIZED_WEIGHT };

static const strata_attr attrs[] = {
    FILTER_ATTRS,
    QUANTIZED_ATTRS(strata_quantized_convolution),
    {.name = "zero_addend",
     .type = STRATA_I64,
     .offset = offsetof(strata_quantized_convolution, zero_addend),
     .min = -128,
     .max = 255,
     .doc = "what stands for 0 in the second input"},
    {.name = "zero_between",
     .type = STRATA_I64,
     .offset = offsetof(strata_quantized_convolution, zero_between),
     .min = -128,
     .max = 255,
     .doc = "what stands for 0 in sums that are rounded before the second input is "
            "added"},
    {.name = "between",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_quantized_convolution, between),
     .choices = "none|int8|u8",
     .doc = "what sums are rounded to before the second input is added"},
};

static const strata_weight weights[] = {
    QUANTIZED_WEIGHTS("filters x channels/groups x kernel", "filter"),
    [STRATA_QUANTIZED_SCALE_ADDEND] = {.name = "scale_addend",
                                       .rank = -1,
                                       .doc = "factor of the second input"},
    [STRATA_QUANTIZED_SCALE_BETWEEN] =
        {.name = "scale_between",
         .rank = -1,
         .doc = "step of sums that are rounded before the second input is added"},
};

/* ---- shapes -------------------------------------------------------------------- */

static int resolve(const strata_node *n, struct window *w, int64_t *filters)
{
    const strata_quantized_convolution *p = n->params;
    const int status =
        filters_of_convolution(n, &p->convolution, &n->weight[WEIGHT], w, filters);
    return status ? status : quantized_check_byte(n, &n->in[0], p->quantized.zero_in);
}

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_quantized_convolution *p = n->params;
    struct window w;
    int64_t filters;
    int status = resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    expected[WEIGHT].dtype = STRATA_INT8;
    filters_weight_shape(&expected[WEIGHT], &w, filters,
                         n->in[0].dims[1] / p->convolution.groups);
    quantized_weight_shape(n, expected, filters);
    quantized_expect(&expected[STRATA_QUANTIZED_SCALE_ADDEND], STRATA_FP32, 1);
    quantized_expect(&expected[STRATA_QUANTIZED_SCALE_BETWEEN], STRATA_FP32, 1);
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    struct window w;
    int64_t filters;
    int status = resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    filters_shape(n, &w, filters);
    status =
        quantized_check_output(n, &p->quantized, &n->weight[STRATA_QUANTIZED_SCALE_OUT]);
    return status ? status : join_check(n);
}

static double flops(const strata_node *n)
{
    return filters_flops(&n->out[0], &n->weight[WEIGHT]);
}

/* ---- plain C ------------------------------------------------------------------- */

struct plain {
    struct window w;
    int64_t groups, in_c, out_c; /* channels per group */
    const int8_t *packed;        /* filters x kernel x channels per group */
    const float *factor;         /* of each filter: scale_in*weight_scale */
};

static int plain_resolve(struct plain *c, const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    int64_t filters;
    int status = resolve(n, &c->w, &filters);
    if (status != STRATA_OK)
        return status;
    c->groups = p->convolution.groups;
    c->in_c = n->in[0].dims[1] / c->groups;
    c->out_c = filters / c->groups;
    return STRATA_OK;
}

static int plain_accept(const strata_node *n)
{
    const strata_quantized_convolution *p = n->params;
    struct plain c;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = plain_resolve(&c, n);
    return status ? status : quantized_check_depth(n, c.in_c, window_kernel_count(&c.w));
}

static int plain_setup(const strata_node *n, void *state)
{
    struct plain *c = state;
    const int8_t *from = n->weight[WEIGHT].data;
    void *packed, *factor;
    int status = plain_resolve(c, n);
    if (status != STRATA_OK)
        return status;
    const int64_t filters = c->groups * c->out_c, taps = window_kernel_count(&c->w);
    status = quantized_factors(n, filters, &factor);
    if (status == STRATA_OK)
        status = quantized_pack(n, (size_t)n->weight[WEIGHT].count, &packed);
    if (status != STRATA_OK)
        return status;
    int8_t *to = packed;
    for (int64_t k = 0; k < filters; k++)
        for (int64_t i = 0; i < c->in_c; i++)
            for (int64_t t = 0; t < taps; t++)
                to[(k * taps + t) * c->in_c + i] = *from++;
    c->packed = packed;
    c->factor = factor;
    return STRATA_OK;
}

static int32_t sum_of(const struct plain *c, const strata_tensor *in, int64_t n,
                      int64_t filter, const int64_t *o, int32_t zero)
{
    const struct window *w = &c->w;
    const int64_t taps = window_kernel_count(w), group = filter / c->out_c;
    int64_t i[WINDOW_DIMS];
    int32_t sum = 0;
    for (int64_t t = 0; t < taps; t++)
        if (plane_source(i, w, o, t))
            sum += channels_dot(in, channels_place(in, w, n, i), group * c->in_c, c->in_c,
                                c->packed + (filter * taps + t) * c->in_c, zero);
    return sum;
}

static int32_t byte_at(const strata_tensor *t, int64_t at)
{
    const uint8_t x = ((const uint8_t *)t->data)[at];
    return t->dtype == STRATA_INT8 ? (int8_t)x : x;
}

static float one_of(const strata_run *r, int w)
{
    return r->weight[w].rank > 0 ? *(const float *)r->weight[w].data : 1;
}

static int plain_run(const strata_run *r)
{
    const struct plain *c = r->state;
    const strata_quantized_convolution *p = r->params;
    const strata_quantized *q = &p->quantized;
    const strata_tensor *in = &r->in[0], *out = &r->out[0];
    const strata_tensor *addend = r->n_in > 1 ? &r->in[1] : NULL;
    const struct window *w = &c->w;
    const float *bias = r->weight[STRATA_QUANTIZED_BIAS].data;
    const float scale = quantized_scale_out(r);
    const float scale_addend = one_of(r, STRATA_QUANTIZED_SCALE_ADDEND);
    const float scale_between = one_of(r, STRATA_QUANTIZED_SCALE_BETWEEN);
    const int64_t filters = out->dims[1], plane = window_out_count(w);
    const int64_t tasks = in->dims[0] * plane;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t n = task / plane, i = task % plane;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w->out, i);
        const int64_t at = channels_place(out, w, n, o);
        for (int64_t k = 0; k < filters; k++) {
            const int32_t sum = sum_of(c, in, n, k, o, (int32_t)q->zero_in);
            float y = (float)sum * c->factor[k] + (bias ? bias[k] : 0);
            if (addend)
                y = join_value(p, y,
                               byte_at(addend, channels_place(addend, w, n, o) +
                                                   channels_offset(addend, k)),
                               scale_addend, scale_between);
            quantized_store(q, out, at + channels_offset(out, k),
                            quantized_activate(q, y), scale);
        }
    }
    walk_clear_pads(out);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

static int64_t defined_sum(const struct window *w, const int64_t *in,
                           const int64_t *weight, int64_t channels, const int64_t *o,
                           int64_t zero)
{
    const int64_t plane = window_in_count(w);
    int64_t sum = 0, i[WINDOW_DIMS];
    for (int64_t c = 0; c < channels; c++)
        for (int64_t k = 0; k < window_kernel_count(w); k++, weight++)
            if (plane_source(i, w, o, k))
                sum += *weight * (in[c * plane + plane_element(w->in, i)] - zero);
    return sum;
}

static float defined_one(const double *weight)
{
    return weight ? (float)*weight : 1;
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_quantized_convolution *p = n->params;
    const strata_quantized *q = &p->quantized;
    const double *bias = weight[STRATA_QUANTIZED_BIAS];
    struct window w;
    int64_t filters;
    int status = resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    const int64_t groups = p->convolution.groups, in_c = n->in[0].dims[1] / groups;
    const int64_t plane = window_out_count(&w), depth = in_c * window_kernel_count(&w);
    for (int64_t e = 0; e < n->in[0].dims[0] * filters * plane; e++) {
        const int64_t i = e % plane, k = e / plane % filters, image = e / plane / filters;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w.out, i);
        const int64_t channel = (image * groups + k / (filters / groups)) * in_c;
        const int64_t sum =
            defined_sum(&w, (const int64_t *)in[0] + channel * window_in_count(&w),
                        (const int64_t *)weight[WEIGHT] + k * depth, in_c, o, q->zero_in);
        float y = (float)(int32_t)sum * quantized_factor(n, weight, k) +
                  (bias ? (float)bias[k] : 0);
        if (n->n_in > 1)
            y = join_value(p, y, (int32_t)((const int64_t *)in[1])[e],
                           defined_one(weight[STRATA_QUANTIZED_SCALE_ADDEND]),
                           defined_one(weight[STRATA_QUANTIZED_SCALE_BETWEEN]));
        quantized_define(q, out[0], e, quantized_activate(q, y),
                         weight[STRATA_QUANTIZED_SCALE_OUT]);
    }
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

#define BYTES(layout) (STRATA_I8_##layout | STRATA_U8_##layout)
static const strata_row rows[] = {
    {{BYTES(NCHW), BYTES(NCHW)}, {BYTES(NCHW) | STRATA_F32_NCHW}},
    {{BYTES(NHWC), BYTES(NHWC)}, {BYTES(NHWC) | STRATA_F32_NHWC}},
    {{BYTES(NC4HW4), BYTES(NC4HW4)}, {BYTES(NC4HW4)}},
    {{BYTES(NC32HW32), BYTES(NC32HW32)}, {BYTES(NC32HW32)}},
    {{STRATA_I8_NHWC16, STRATA_I8_NHWC16}, {STRATA_I8_NHWC16}},
};
static const strata_row packed_rows[] = {
    {{BYTES(NHWC), BYTES(NHWC)}, {BYTES(NHWC) | STRATA_F32_NHWC}},
};

static const strata_row depthwise_rows[] = {
    {{BYTES(NHWC)}, {BYTES(NHWC) | STRATA_F32_NHWC}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.02,
     .bandwidth = 0.2,
     .state_size = sizeof(struct plain),
     .accept = plain_accept,
     .setup = plain_setup,
     .run = plain_run},
    {.id = 2,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
     .name = "vnni",
     .rows = STRATA_ARRAY(packed_rows),
     .efficiency = 1,
     .bandwidth = 0.95, /* `amx` comes before it, whatever the number of threads */
     .state_size = sizeof(struct vnni),
     .accept = vnni_accept,
     .workspace = vnni_workspace,
     .setup = vnni_setup,
     .run = vnni_run},
    {.id = 3,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
     .name = "depthwise",
     .rows = STRATA_ARRAY(depthwise_rows),
     .efficiency = 1, /* oneDNN claims as much for all groups, and takes longer */
     .bandwidth = 1,
     .state_size = sizeof(struct depthwise),
     .accept = depthwise_accept,
     .setup = depthwise_setup,
     .run = depthwise_run},
    {.id = 4,
     .device = STRATA_HOST,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
     .name = "amx",
     .rows = STRATA_ARRAY(packed_rows),
     .efficiency = 1,
     .bandwidth = 1,
     .state_size = sizeof(struct amx),
     .accept = amx_accept,
     .workspace = amx_workspace,
     .setup = amx_setup,
     .run = amx_run},
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "QuantizedConvolution",
    .doc = "Convolution of 8-bit integers, scaled to floats or to 8-bit integers.",
    .min_in = 1,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_quantized_convolution),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .flops = flops,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedConvolution", layers)
