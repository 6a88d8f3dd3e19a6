/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedDeconvolution: Deconvolution of INT8 or UINT8 by INT8, sums in 32 bits,
 * scales, bias and activation in FP32, to FP32 or back to 8 bits. `c` is plain: it reads
 * and writes every format of 8 bits.
 */
#include "plugins/common/dense.h"
#include "plugins/common/filters.h"
#include "plugins/common/plane.h"
#include "plugins/common/quantized/channels.h"
#include "plugins/common/walk.h"
#include "plugins/common/deconvolution/deconvolution.h"

enum { WEIGHT = STRATA_QUANTIZED_WEIGHT };

#define OWN(member) offsetof(strata_quantized_deconvolution, deconvolution.member)
static const strata_attr attrs[] = {
    {.name = "filters",
     .type = STRATA_I64,
     .offset = OWN(filters),
     .min = 0,
     .max = INT32_MAX,
     .doc = "output channels; 0 takes them from the weight"},
    WINDOW_ATTRS(strata_deconvolution, /* which is the first member */
                 "window size, one value or one per spatial dim; empty: from the weight",
                 "what is cut from the output"),
    {.name = "output_pad",
     .type = STRATA_INTS,
     .offset = OWN(output_pad),
     .min = 0,
     .max = INT32_MAX,
     .doc = "outputs added at the end, one value or one per spatial dim; empty: 0"},
    {.name = "output_size",
     .type = STRATA_INTS,
     .offset = OWN(output_size),
     .min = 1,
     .max = INT32_MAX,
     .doc = "size of the output, from which the pads follow; empty: by the pads"},
    {.name = "groups",
     .type = STRATA_I64,
     .offset = OWN(groups),
     .def = 1,
     .min = 1,
     .max = INT32_MAX,
     .doc = "groups of channels deconvolved apart; the channel count is depthwise"},
    QUANTIZED_ATTRS(strata_quantized_deconvolution),
};

static const strata_weight weights[] = {
    QUANTIZED_WEIGHTS("channels x filters/groups x kernel", "filter"),
};

/* ---- shapes -------------------------------------------------------------------- */

static int resolve(const strata_node *n, struct window *w, int64_t *filters)
{
    const strata_quantized_deconvolution *p = n->params;
    const strata_deconvolution *d = &p->deconvolution;
    const strata_tensor *weight = &n->weight[WEIGHT];
    *filters = d->filters;
    if (!d->filters &&
        (weight->rank < 2 || __builtin_mul_overflow(weight->dims[1], d->groups, filters)))
        *filters = 0;
    int status = filters_check(n, *filters);
    if (status == STRATA_OK)
        status = filters_check_groups(n, d->groups, *filters);
    if (status == STRATA_OK)
        status = deconvolution_window(w, d, &n->in[0], weight, n->host, n->err);
    return status ? status : quantized_check_byte(n, &n->in[0], p->quantized.zero_in);
}

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_quantized_deconvolution *p = n->params;
    struct window w;
    int64_t filters;
    int status = resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    expected[WEIGHT].dtype = STRATA_INT8;
    filters_weight_shape(&expected[WEIGHT], &w, n->in[0].dims[1],
                         filters / p->deconvolution.groups);
    quantized_weight_shape(n, expected, filters);
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    const strata_quantized_deconvolution *p = n->params;
    struct window w;
    int64_t filters;
    int status = resolve(n, &w, &filters);
    if (status != STRATA_OK)
        return status;
    filters_shape(n, &w, filters);
    return quantized_check_output(n, &p->quantized,
                                  &n->weight[STRATA_QUANTIZED_SCALE_OUT]);
}

static double flops(const strata_node *n)
{
    return filters_flops(&n->in[0], &n->weight[WEIGHT]);
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
    const strata_quantized_deconvolution *p = n->params;
    int64_t filters;
    int status = resolve(n, &c->w, &filters);
    if (status != STRATA_OK)
        return status;
    c->groups = p->deconvolution.groups;
    c->in_c = n->in[0].dims[1] / c->groups;
    c->out_c = filters / c->groups;
    return STRATA_OK;
}

static int plain_accept(const strata_node *n)
{
    const strata_quantized_deconvolution *p = n->params;
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
    const int64_t taps = window_kernel_count(&c->w);
    status = quantized_factors(n, c->groups * c->out_c, &factor);
    if (status == STRATA_OK)
        status = quantized_pack(n, (size_t)n->weight[WEIGHT].count, &packed);
    if (status != STRATA_OK)
        return status;
    int8_t *to = packed;
    for (int64_t i = 0; i < c->groups * c->in_c; i++)
        for (int64_t k = 0; k < c->out_c; k++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t filter = i / c->in_c * c->out_c + k;
                to[(filter * taps + t) * c->in_c + i % c->in_c] = *from++;
            }
    c->packed = packed;
    c->factor = factor;
    return STRATA_OK;
}

/* The input that element t of the kernel brings to output o; whether there is one. */
static int source(const struct window *w, int64_t t, const int64_t *o, int64_t *i)
{
    int64_t k[WINDOW_DIMS];
    int inside = 1;
    plane_place(k, w->kernel, t);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t at = o[d] + w->begin[d] - k[d] * w->dilation[d];
        i[d] = at / w->stride[d];
        inside &= at >= 0 && at % w->stride[d] == 0 && i[d] < w->in[d];
    }
    return inside;
}

static int32_t sum_of(const struct plain *c, const strata_tensor *in, int64_t n,
                      int64_t filter, const int64_t *o, int32_t zero)
{
    const int64_t taps = window_kernel_count(&c->w), group = filter / c->out_c;
    int64_t i[WINDOW_DIMS];
    int32_t sum = 0;
    for (int64_t t = 0; t < taps; t++)
        if (source(&c->w, t, o, i))
            sum += channels_dot(in, channels_place(in, &c->w, n, i), group * c->in_c,
                                c->in_c, c->packed + (filter * taps + t) * c->in_c, zero);
    return sum;
}

static int plain_run(const strata_run *r)
{
    const struct plain *c = r->state;
    const strata_quantized_deconvolution *p = r->params;
    const strata_quantized *q = &p->quantized;
    const strata_tensor *in = &r->in[0], *out = &r->out[0];
    const struct window *w = &c->w;
    const float *bias = r->weight[STRATA_QUANTIZED_BIAS].data;
    const float scale = quantized_scale_out(r);
    const int64_t plane = window_out_count(w), tasks = in->dims[0] * plane;
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t n = task / plane, i = task % plane;
        int64_t o[WINDOW_DIMS];
        plane_place(o, w->out, i);
        const int64_t at = channels_place(out, w, n, o);
        for (int64_t k = 0; k < c->groups * c->out_c; k++) {
            const int32_t sum = sum_of(c, in, n, k, o, (int32_t)q->zero_in);
            quantized_store(q, out, at + channels_offset(out, k),
                            quantized_value(q, sum, c->factor[k], bias ? bias[k] : 0),
                            scale);
        }
    }
    walk_clear_pads(out);
    return STRATA_OK;
}

/* ---- the definition: each input goes where the kernel takes it ------------------- */

struct defined {
    struct window w;
    int64_t groups, in_c, out_c, zero;
    const int64_t *in, *weight;
    int64_t *sum;
};

/* Output of input i by element t of the kernel; -1: outside. */
static int64_t target(const struct window *w, int64_t i, int64_t t)
{
    int64_t in[WINDOW_DIMS], k[WINDOW_DIMS], at = 0;
    plane_place(in, w->in, i);
    plane_place(k, w->kernel, t);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t o = in[d] * w->stride[d] + k[d] * w->dilation[d] - w->begin[d];
        if (o < 0 || o >= w->out[d])
            return -1;
        at = at * w->out[d] + o;
    }
    return at;
}

static void scatter(const struct defined *f, int64_t image, int64_t channel)
{
    const struct window *w = &f->w;
    const int64_t taps = window_kernel_count(w), plane = window_in_count(w);
    const int64_t places = window_out_count(w), group = channel / f->in_c;
    const int64_t *x = f->in + (image * f->groups * f->in_c + channel) * plane;
    for (int64_t k = 0; k < f->out_c; k++) {
        const int64_t *weight = f->weight + (channel * f->out_c + k) * taps;
        int64_t *sum = f->sum + ((image * f->groups + group) * f->out_c + k) * places;
        for (int64_t i = 0; i < plane; i++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t at = target(w, i, t);
                if (at >= 0)
                    sum[at] += (x[i] - f->zero) * weight[t];
            }
    }
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_quantized_deconvolution *p = n->params;
    const strata_quantized *q = &p->quantized;
    const double *bias = weight[STRATA_QUANTIZED_BIAS];
    struct defined f = {.groups = p->deconvolution.groups,
                        .zero = q->zero_in,
                        .in = in[0],
                        .weight = weight[WEIGHT]};
    int64_t filters;
    int status = resolve(n, &f.w, &filters);
    if (status != STRATA_OK)
        return status;
    f.in_c = n->in[0].dims[1] / f.groups;
    f.out_c = filters / f.groups;
    const int64_t count = dense_count(&n->out[0]), places = window_out_count(&f.w);
    if (!(f.sum = calloc(count > 0 ? (size_t)count : 1, sizeof *f.sum)))
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for %lld sums", (long long)count);
    for (int64_t c = 0; c < n->in[0].dims[0] * n->in[0].dims[1]; c++)
        scatter(&f, c / n->in[0].dims[1], c % n->in[0].dims[1]);
    for (int64_t e = 0; e < count; e++) {
        const int64_t k = e / places % filters;
        quantized_define(q, out[0], e,
                         quantized_value(q, (int32_t)f.sum[e],
                                         quantized_factor(n, weight, k),
                                         bias ? (float)bias[k] : 0),
                         weight[STRATA_QUANTIZED_SCALE_OUT]);
    }
    free(f.sum);
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
    {{BYTES(NCHW)}, {BYTES(NCHW) | STRATA_F32_NCHW}},
    {{BYTES(NHWC)}, {BYTES(NHWC) | STRATA_F32_NHWC}},
    {{BYTES(NC4HW4)}, {BYTES(NC4HW4)}},
    {{BYTES(NC32HW32)}, {BYTES(NC32HW32)}},
    {{STRATA_I8_NHWC16}, {STRATA_I8_NHWC16}},
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
};

static const strata_layer layer = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "QuantizedDeconvolution",
    .doc = "Deconvolution of 8-bit integers, scaled to floats or to 8-bit integers.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_quantized_deconvolution),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .flops = flops,
    .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("core", "1.0.0", "QuantizedDeconvolution", layers)
