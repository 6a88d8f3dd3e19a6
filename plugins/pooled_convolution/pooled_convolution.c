/* SPDX-License-Identifier: Apache-2.0
 *
 * PooledConvolution: a convolution with a bias and an activation, and the maxima of
 * windows of its results, which need not be written, as floats or rounded to 8 bits. A
 * plan makes it of the layers that are such.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "plugins/common/activate.h"
#include "plugins/common/activation_attrs.h"
#include "plugins/common/dense.h"
#include "plugins/common/image.h"
#include "plugins/common/plane.h"
#include "plugins/common/quantized/quantized.h"
#include "plugins/pooled_convolution/shape.h"

struct pooled {
    struct pooled_shape shape;
    int64_t channels, groups;
    strata_activation f; /* kind -1: none */
    strata_quantized to; /* its dtype and zero alone */
};

static int resolve(const strata_node *n, struct pooled *s)
{
    const strata_pooled_convolution *p = n->params;
    s->channels = n->in[0].dims[1];
    s->groups = p->convolution.groups;
    s->f = (strata_activation){p->activation - 1, 0, p->alpha, p->beta};
    s->to = (strata_quantized){.zero_out = p->zero_out, .to = p->to};
    return pooled_resolve(n, &s->shape);
}

/* ---- shapes -------------------------------------------------------------------- */

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    struct pooled s;
    const int status = resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    expected[POOLED_WEIGHT].dtype = expected[POOLED_BIAS].dtype = STRATA_FP32;
    filters_weight_shape(&expected[POOLED_WEIGHT], &s.shape.w, s.shape.filters,
                         s.channels / s.groups);
    expected[POOLED_BIAS].rank = 1;
    expected[POOLED_BIAS].dims[0] = s.shape.filters;
    quantized_expect(&expected[POOLED_SCALE_OUT], STRATA_FP32, 1);
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    struct pooled s;
    const int status = resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    filters_shape(n, &s.shape.pool, s.shape.filters);
    return s.to.to == 0 ? STRATA_OK
                        : quantized_check_output(n, &s.to, &n->weight[POOLED_SCALE_OUT]);
}

static double flops(const strata_node *n)
{
    struct pooled s;
    if (resolve(n, &s) != STRATA_OK)
        return 0;
    const double results = (double)n->in[0].dims[0] * (double)s.shape.filters *
                           (double)window_out_count(&s.shape.w);
    const double depth =
        (double)(s.channels / s.groups) * (double)window_kernel_count(&s.shape.w);
    return results * 2 * depth + (double)n->in[0].dims[0] * (double)s.shape.filters *
                                     (double)window_out_count(&s.shape.pool) *
                                     (double)window_kernel_count(&s.shape.pool);
}

/* ---- plain C, an image at a time, FP32 between --------------------------------- */

struct job {
    const strata_run *r;
    const struct pooled *s;
    float *x, *between, *y;
};

static float larger(float a, float x)
{
    return x > a || x != x ? x : a; /* a NaN that was found stays */
}

/* A tap of a plane's windows onto all outputs that see it inside: the largest, or a
 * product added. */
static void slide(const struct window *w, const float *x, float *y, int64_t tap,
                  const float *factor)
{
    int64_t k[WINDOW_DIMS], lo[WINDOW_DIMS], hi[WINDOW_DIMS], shift[WINDOW_DIMS];
    plane_place(k, w->kernel, tap);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        window_valid(w, d, k[d], &lo[d], &hi[d]);
        shift[d] = k[d] * w->dilation[d] - w->begin[d];
    }
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            float *to = y + (d * w->out[1] + h) * w->out[2];
            const float *from = x + ((d * w->stride[0] + shift[0]) * w->in[1] +
                                     h * w->stride[1] + shift[1]) *
                                        w->in[2];
            for (int64_t i = lo[2]; i < hi[2]; i++) {
                const float v = from[i * w->stride[2] + shift[2]];
                to[i] = factor ? to[i] + *factor * v : larger(to[i], v);
            }
        }
}

/* A filter's results. */
static void convolve(const struct job *j, int64_t k, float *y)
{
    const struct pooled *s = j->s;
    const struct window *w = &s->shape.w;
    const strata_tensor *bias = &j->r->weight[POOLED_BIAS];
    const int64_t taps = window_kernel_count(w), depth = s->channels / s->groups;
    const float *weight = (const float *)j->r->weight[POOLED_WEIGHT].data;
    const float *x =
        j->x + k / (s->shape.filters / s->groups) * depth * window_in_count(w);
    const float first = bias->rank > 0 ? ((const float *)bias->data)[k] : 0;
    for (int64_t i = 0; i < window_out_count(w); i++)
        y[i] = first;
    for (int64_t i = 0; i < depth * taps; i++)
        slide(w, x + i / taps * window_in_count(w), y, i % taps,
              weight + k * depth * taps + i);
    if (s->f.kind >= 0)
        activate_row(s->f.kind, strata_activation_alpha(&s->f),
                     strata_activation_beta(&s->f), y, window_out_count(w));
}

/* An image's maxima, rounded; they lie dense. */
static void pack_bytes(const struct job *j, int64_t image)
{
    const strata_tensor *out = &j->r->out[0];
    const float scale = *(const float *)j->r->weight[POOLED_SCALE_OUT].data;
    const int64_t size = out->count / out->dims[0];
    for (int64_t i = 0; i < size; i++)
        quantized_store(&j->s->to, out, image * size + i, j->y[i], scale);
}

static void compute(const struct job *j, int64_t image)
{
    const struct pooled_shape *s = &j->s->shape;
    const int64_t plane = window_out_count(&s->w), maxima = window_out_count(&s->pool);
    image_unpack(j->x, &j->r->in[0], image);
#pragma omp parallel for schedule(static) if (s->filters * plane > IMAGE_PARALLEL)
    for (int64_t k = 0; k < s->filters; k++) {
        float *between = j->between + k * plane, *y = j->y + k * maxima;
        convolve(j, k, between);
        for (int64_t i = 0; i < maxima; i++)
            y[i] = -INFINITY;
        for (int64_t tap = 0; tap < window_kernel_count(&s->pool); tap++)
            slide(&s->pool, between, y, tap, NULL);
    }
    if (j->s->to.to == 0)
        image_pack(&j->r->out[0], image, j->y);
    else
        pack_bytes(j, image);
}

/* Of the three parts of memory, in floats; 0: too many. */
static int64_t sizes_of(const struct pooled *s, int64_t size[3])
{
    const int64_t filters = s->shape.filters;
    return plane_sizes(3, (const int64_t[]){s->channels, filters, filters},
                       (const int64_t[]){window_in_count(&s->shape.w),
                                         window_out_count(&s->shape.w),
                                         window_out_count(&s->shape.pool)},
                       size);
}

static size_t workspace(const strata_node *n)
{
    struct pooled s;
    int64_t size[3];
    return resolve(n, &s) == STRATA_OK ? plane_bytes(sizes_of(&s, size)) : SIZE_MAX;
}

/* Floats; bytes where they are asked for. */
static int accept_floats(const strata_node *n)
{
    return ((const strata_pooled_convolution *)n->params)->to == 0
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output is of 8 bits");
}

static int accept_bytes(const strata_node *n)
{
    const strata_pooled_convolution *p = n->params;
    const strata_quantized to = {.to = p->to};
    return p->to != 0 ? quantized_accept(n, &to)
                      : STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the output is a float");
}

static int setup(const strata_node *n, void *state)
{
    return resolve(n, state);
}

static int run(const strata_run *r)
{
    struct job j = {.r = r, .s = r->state};
    int64_t size[3];
    sizes_of(j.s, size);
    j.x = r->workspace;
    j.between = j.x + size[0];
    j.y = j.between + size[1];
    for (int64_t image = 0; image < r->in[0].dims[0]; image++)
        compute(&j, image);
    return STRATA_OK;
}

/* ---- the definition ------------------------------------------------------------ */

/* Element o of windows of a plane: the largest, or a sum of products. */
static double exact_window(const struct window *w, const double *x, const double *weight,
                           int64_t o)
{
    int64_t at[WINDOW_DIMS], i[WINDOW_DIMS];
    double v = weight ? 0 : -INFINITY;
    plane_place(at, w->out, o);
    for (int64_t k = 0; k < window_kernel_count(w); k++) {
        if (!plane_source(i, w, at, k))
            continue;
        const double e = x[plane_element(w->in, i)];
        v = weight ? v + weight[k] * e : e > v || isnan(e) ? e : v;
    }
    return v;
}

/* A filter's results of an image, of whose group x is the first plane. */
static void exact_plane(const struct pooled *s, const double *x, const double *weight,
                        double bias, double *y)
{
    const struct window *w = &s->shape.w;
    for (int64_t i = 0; i < window_out_count(w); i++) {
        y[i] = bias;
        for (int64_t c = 0; c < s->channels / s->groups; c++)
            y[i] += exact_window(w, x + c * window_in_count(w),
                                 weight + c * window_kernel_count(w), i);
        if (s->f.kind >= 0)
            y[i] = element_activate_exact(s->f.kind, y[i], strata_activation_alpha(&s->f),
                                          strata_activation_beta(&s->f));
    }
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const double *x = in[0], *factors = weight[POOLED_WEIGHT],
                 *bias = weight[POOLED_BIAS];
    struct pooled s;
    const int status = resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const int64_t filters = s.shape.filters, depth = s.channels / s.groups;
    const int64_t maxima = window_out_count(&s.shape.pool);
    double *plane = calloc((size_t)window_out_count(&s.shape.w), sizeof *plane);
    if (!plane)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for what is between");
    for (int64_t i = 0; i < n->in[0].dims[0] * filters; i++) {
        const int64_t image = i / filters, k = i % filters;
        const int64_t first = image * s.channels + k / (filters / s.groups) * depth;
        exact_plane(&s, x + first * window_in_count(&s.shape.w),
                    factors + k * depth * window_kernel_count(&s.shape.w),
                    bias ? bias[k] : 0, plane);
        for (int64_t o = 0; o < maxima; o++) {
            const double y = exact_window(&s.shape.pool, plane, NULL, o);
            if (s.to.to == 0)
                ((double *)out[0])[i * maxima + o] = y;
            else
                quantized_define(&s.to, out[0], i * maxima + o, (float)y,
                                 weight[POOLED_SCALE_OUT]);
        }
    }
    free(plane);
    return STRATA_OK;
}

static const void *extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

#define PARAMS strata_pooled_convolution
#define POOL(field, low, says)                                                           \
    {                                                                                    \
        .name = "pool_" #field, .type = STRATA_INTS,                                     \
        .offset = offsetof(PARAMS, pooling.field), .min = low, .max = INT32_MAX,         \
        .doc = says                                                                      \
    }

static const strata_attr attrs[] = {
    FILTER_ATTRS,
    ACTIVATION_ATTRS("", "", offsetof(PARAMS, activation), offsetof(PARAMS, alpha),
                     offsetof(PARAMS, beta), "the convolution's results"),
    POOL(kernel, 1,
         "size of a maximum's window, one value or one per spatial dim; "
         "empty: 1"),
    POOL(stride, 1, "step of that window; empty: 1"),
    POOL(pad, 0,
         "border of the results, which no maximum has: one value, one per "
         "spatial dim, or all begins and then all ends; empty: 0"),
    POOL(dilation, 1, "distance of that window's elements; empty: 1"),
    {.name = "pool_pad_mode",
     .type = STRATA_ENUM,
     .offset = offsetof(PARAMS, pooling.pad_mode),
     .choices = "explicit|same_upper|same_lower|valid",
     .doc = "as pad_mode, with pool_pad"},
    {.name = "pool_ceil_mode",
     .type = STRATA_BOOL,
     .offset = offsetof(PARAMS, pooling.ceil_mode),
     .doc = "round the output size up; the last window still starts in the results or "
            "their begin pad"},
    {.name = "to",
     .type = STRATA_ENUM,
     .offset = offsetof(PARAMS, to),
     .choices = "float|int8|u8",
     .doc = "dtype of the output"},
    {.name = "zero_out",
     .type = STRATA_I64,
     .offset = offsetof(PARAMS, zero_out),
     .min = -128,
     .max = 255,
     .doc = "what stands for 0 in the output, where that is an integer"},
};

static const strata_weight weights[] = {
    [POOLED_WEIGHT] = {.name = "weight",
                       .flags = STRATA_REQUIRED,
                       .rank = -1,
                       .doc = "filters x channels/groups x kernel"},
    [POOLED_BIAS] = {.name = "bias", .rank = 1, .doc = "filters"},
    [POOLED_SCALE_OUT] = {.name = "scale_out",
                          .rank = -1,
                          .doc = "divisor of the output, above 0, where that is an "
                                 "integer"},
};

static const strata_row rows[] = {{{ELEMENT_FLOATS}, {STRATA_SAME}}};
static const strata_row byte_rows[] = {
    {{STRATA_F32_NCHW}, {STRATA_I8_NCHW | STRATA_U8_NCHW}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.1,
     .state_size = sizeof(struct pooled),
     .workspace = workspace,
     .accept = accept_floats,
     .setup = setup,
     .run = run},
    {.id = 2,
     .device = STRATA_HOST,
     .name = "bytes",
     .rows = STRATA_ARRAY(byte_rows),
     .efficiency = 0.05,
     .bandwidth = 0.1,
     .state_size = sizeof(struct pooled),
     .workspace = workspace,
     .accept = accept_bytes,
     .setup = setup,
     .run = run},
};

static const strata_layer pooled_convolution = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "PooledConvolution",
    .doc = "Convolution, an activation, and the maxima of windows of that, in one pass.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_pooled_convolution),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .flops = flops,
    .extension = extension,
};
static const strata_layer *const layers[] = {&pooled_convolution};
STRATA_MODULE("core", "1.0.0", "PooledConvolution", layers)
