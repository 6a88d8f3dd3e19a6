/* SPDX-License-Identifier: Apache-2.0
 *
 * ShortcutConvolution: a convolution with windows of all channels, and a 1x1 one of a
 * second input, perhaps with a stride, which are added, each with its bias; then an
 * activation. A plan makes it of the layers that are such, and neither is written alone.
 */
#include "plugins/shortcut_convolution/shape.h"

#include "plugins/common/activate.h"
#include "plugins/common/activation_attrs.h"
#include "plugins/common/image.h"
#include "plugins/common/plane.h"

/* An input's part: its windows, factors and channels. */
struct part {
    const struct window *w;
    int64_t channels;
    int weight; /* its bias is the next one */
};

static void parts_of(const struct shortcut_shape *s, struct part parts[2])
{
    parts[0] = (struct part){&s->w, s->channels, STRATA_SHORTCUT_CONVOLUTION_WEIGHT};
    parts[1] =
        (struct part){&s->shortcut, s->others, STRATA_SHORTCUT_CONVOLUTION_SHORTCUT};
}

static strata_activation activation_of(const strata_shortcut_convolution *p)
{
    return (strata_activation){p->activation - 1, 0, p->alpha, p->beta};
}

/* ---- shapes ---------------------------------------------------------------------- */

static int weight_shape(const strata_node *n, strata_tensor *expected)
{
    struct shortcut_shape s;
    struct part parts[2];
    const int status = shortcut_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    parts_of(&s, parts);
    for (int i = 0; i < 2; i++) {
        strata_tensor *w = &expected[parts[i].weight], *bias = w + 1;
        w->dtype = bias->dtype = STRATA_FP32;
        w->rank = i ? 2 : 4;
        w->dims[0] = bias->dims[0] = s.filters;
        w->dims[1] = parts[i].channels;
        bias->rank = 1;
    }
    expected[STRATA_SHORTCUT_CONVOLUTION_WEIGHT].dims[2] = s.w.kernel[1];
    expected[STRATA_SHORTCUT_CONVOLUTION_WEIGHT].dims[3] = s.w.kernel[2];
    return STRATA_OK;
}

static int shape(const strata_node *n)
{
    struct shortcut_shape s;
    const int status = shortcut_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    strata_tensor *y = &n->out[0];
    y->rank = 4;
    y->dims[0] = n->in[0].dims[0];
    y->dims[1] = s.filters;
    y->dims[2] = s.w.out[1];
    y->dims[3] = s.w.out[2];
    return STRATA_OK;
}

static double flops(const strata_node *n)
{
    struct shortcut_shape s;
    if (shortcut_resolve(n, &s) != STRATA_OK)
        return 0;
    const double results =
        (double)n->in[0].dims[0] * (double)s.filters * (double)window_out_count(&s.w);
    return 2 * results *
           ((double)s.channels * (double)window_kernel_count(&s.w) + (double)s.others);
}

/* ---- plain C, an image at a time, FP32 ------------------------------------------- */

/* A filter's results of one input, added to what is there. */
static void add_part(const strata_run *r, const struct part *p, const float *x, int64_t k,
                     float *plane)
{
    const struct window *w = p->w;
    const int64_t taps = window_kernel_count(w), in = window_in_count(w);
    const float *weight = (const float *)r->weight[p->weight].data;
    const float *bias =
        r->weight[p->weight + 1].rank > 0 ? r->weight[p->weight + 1].data : NULL;
    for (int64_t i = 0; i < window_out_count(w) && bias; i++)
        plane[i] += bias[k];
    for (int64_t d = 0; d < p->channels * taps; d++)
        plane_slide(w, x + d / taps * in, plane, weight[k * p->channels * taps + d],
                    d % taps / w->kernel[2], d % w->kernel[2]);
}

/* Floats of an image of both inputs and the results; 0: too many. */
static int64_t sizes_of(const struct shortcut_shape *s, int64_t size[3])
{
    return plane_sizes(3, (const int64_t[]){s->channels, s->others, s->filters},
                       (const int64_t[]){window_in_count(&s->w),
                                         window_in_count(&s->shortcut),
                                         window_out_count(&s->w)},
                       size);
}

static size_t workspace(const strata_node *n)
{
    struct shortcut_shape s;
    int64_t size[3];
    return shortcut_resolve(n, &s) == STRATA_OK ? plane_bytes(sizes_of(&s, size))
                                                : SIZE_MAX;
}

static int run(const strata_run *r)
{
    const struct shortcut_shape *s = r->state;
    const strata_activation f = activation_of(r->params);
    const int64_t out = window_out_count(&s->w);
    struct part parts[2];
    int64_t size[3];
    parts_of(s, parts);
    sizes_of(s, size);
    float *x[2] = {r->workspace, (float *)r->workspace + size[0]}, *y = x[1] + size[1];
    for (int64_t image = 0; image < r->in[0].dims[0]; image++) {
        for (int i = 0; i < 2; i++)
            image_unpack(x[i], &r->in[i], image);
#pragma omp parallel for schedule(static) if (size[2] > IMAGE_PARALLEL)
        for (int64_t k = 0; k < s->filters; k++) {
            float *plane = y + k * out;
            memset(plane, 0, (size_t)out * sizeof *plane);
            for (int i = 0; i < 2; i++)
                add_part(r, &parts[i], x[i], k, plane);
            if (f.kind >= 0)
                activate_row(f.kind, strata_activation_alpha(&f),
                             strata_activation_beta(&f), plane, out);
        }
        image_pack(&r->out[0], image, y);
    }
    return STRATA_OK;
}

static int setup(const strata_node *n, void *state)
{
    return shortcut_resolve(n, state);
}

/* ---- the definition -------------------------------------------------------------- */

/* One input's part of filter k's result i of an image. */
static double exact_part(const struct part *p, const double *x,
                         const double *const *weight, int64_t k, int64_t i)
{
    const struct window *w = p->w;
    const int64_t in = window_in_count(w), taps = window_kernel_count(w);
    const double *factors = weight[p->weight] + k * p->channels * taps;
    const double *bias = weight[p->weight + 1];
    double sum = bias ? bias[k] : 0;
    for (int64_t c = 0; c < p->channels; c++)
        sum +=
            plane_exact(w, x + c * in, factors + c * taps, i / w->out[2], i % w->out[2]);
    return sum;
}

static int reference_run(const strata_node *n, const double *const *in,
                         const double *const *weight, double *const *out)
{
    struct shortcut_shape s;
    struct part parts[2];
    const strata_activation f = activation_of(n->params);
    const int status = shortcut_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    parts_of(&s, parts);
    const int64_t results = window_out_count(&s.w);
    for (int64_t image = 0; image < n->in[0].dims[0]; image++)
        for (int64_t at = 0; at < s.filters * results; at++) {
            double sum = 0;
            for (int i = 0; i < 2; i++)
                sum += exact_part(&parts[i],
                                  in[i] + image * parts[i].channels *
                                              window_in_count(parts[i].w),
                                  weight, at / results, at % results);
            out[0][image * s.filters * results + at] =
                f.kind >= 0
                    ? element_activate_exact(f.kind, sum, strata_activation_alpha(&f),
                                             strata_activation_beta(&f))
                    : sum;
        }
    return STRATA_OK;
}

static const strata_reference reference = {sizeof reference, 0, reference_run};

static const void *extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "filters",
     .type = STRATA_I64,
     .offset = offsetof(strata_shortcut_convolution, convolution.filters),
     .max = INT32_MAX,
     .doc = "output channels; 0 takes them from the weight"},
    WINDOW_ATTRS(strata_convolution, /* which is the first member */
                 "window size, one value or one per spatial dim; empty: from the weight",
                 "zeros around the input"),
    {.name = "shortcut_stride",
     .type = STRATA_INTS,
     .offset = offsetof(strata_shortcut_convolution, shortcut_stride),
     .min = 1,
     .max = INT32_MAX,
     .doc = "step between the pixels taken of the second input; empty: 1"},
    ACTIVATION_ATTRS("", "", offsetof(strata_shortcut_convolution, activation),
                     offsetof(strata_shortcut_convolution, alpha),
                     offsetof(strata_shortcut_convolution, beta), "the sum"),
};

static const strata_weight weights[] = {
    {.name = "weight",
     .flags = STRATA_REQUIRED,
     .rank = 4,
     .doc = "filters x channels x kernel"},
    {.name = "bias", .rank = 1, .doc = "filters"},
    {.name = "shortcut",
     .flags = STRATA_REQUIRED,
     .rank = 2,
     .doc = "filters x channels of the second input"},
    {.name = "shortcut_bias", .rank = 1, .doc = "filters"},
};

static const strata_row rows[] = {{{ELEMENT_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.1,
     .state_size = sizeof(struct shortcut_shape),
     .workspace = workspace,
     .setup = setup,
     .run = run},
};

static const strata_layer shortcut_convolution = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "ShortcutConvolution",
    .doc = "A convolution to which a product of another input is added, in one pass.",
    .min_in = 2,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_shortcut_convolution),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = shape,
    .weight_shape = weight_shape,
    .flops = flops,
    .extension = extension,
};
static const strata_layer *const layers[] = {&shortcut_convolution};
STRATA_MODULE("core", "1.0.0", "ShortcutConvolution", layers)
