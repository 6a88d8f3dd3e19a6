/* SPDX-License-Identifier: Apache-2.0
 *
 * InvertedResidual: channels are expanded (1x1), convolved one by one, and projected
 * (1x1), each with its bias and activation; either product may be absent. A plan makes it
 * of the layers that are such a block, and what is between need not be written.
 */
#include "plugins/inverted_residual/shape.h"

#include <stdbool.h>

#include "plugins/common/image.h"

/* ---- shapes ---------------------------------------------------------------------- */

static int inverted_weight_shape(const strata_node *n, strata_tensor *expected)
{
    struct inverted_shape s;
    const int status = inverted_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.expands) {
        strata_tensor *w = &expected[STRATA_INVERTED_EXPAND];
        w->rank = 2;
        w->dims[0] = expected[STRATA_INVERTED_EXPAND_BIAS].dims[0] = s.middle;
        w->dims[1] = s.channels;
        expected[STRATA_INVERTED_EXPAND_BIAS].rank = 1;
    }
    strata_tensor *w = &expected[STRATA_INVERTED_DEPTHWISE];
    w->rank = 4;
    w->dims[0] = expected[STRATA_INVERTED_DEPTHWISE_BIAS].dims[0] = s.middle;
    w->dims[1] = 1;
    w->dims[2] = s.w.kernel[1];
    w->dims[3] = s.w.kernel[2];
    expected[STRATA_INVERTED_DEPTHWISE_BIAS].rank = 1;
    if (s.projects) {
        w = &expected[STRATA_INVERTED_PROJECT];
        w->rank = 2;
        w->dims[0] = expected[STRATA_INVERTED_PROJECT_BIAS].dims[0] = s.results;
        w->dims[1] = s.middle;
        expected[STRATA_INVERTED_PROJECT_BIAS].rank = 1;
    }
    return STRATA_OK;
}

/* A product by an attribute alone, which would multiply by nothing. */
static int refuse_absent(const strata_node *n, bool wanted, int weight, const char *name,
                         const char *attribute)
{
    return wanted && n->weight[weight].rank == 0
               ? STRATA_FAIL(n, STRATA_EINVAL,
                             "it has '%s' and no weight '%s'; give it one", attribute,
                             name)
               : STRATA_OK;
}

static int inverted_output(const strata_node *n)
{
    struct inverted_shape s;
    int status;
    if ((status = inverted_resolve(n, &s)) != STRATA_OK ||
        (status = refuse_absent(n, s.expands, STRATA_INVERTED_EXPAND, "expand",
                                "expanded")) != STRATA_OK ||
        (status = refuse_absent(n, s.projects, STRATA_INVERTED_PROJECT, "project",
                                "projected")) != STRATA_OK)
        return status;
    strata_tensor *y = &n->out[0];
    y->rank = 4;
    y->dims[0] = n->in[0].dims[0];
    y->dims[1] = s.results;
    y->dims[2] = s.w.out[1];
    y->dims[3] = s.w.out[2];
    for (int d = 0; d < 4 && n->n_in > 1; d++)
        if (n->in[1].rank != 4 || n->in[1].dims[d] != y->dims[d])
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "the second input is added to the results, of "
                               "%lld x %lld x %lld x %lld, and has another shape",
                               (long long)y->dims[0], (long long)y->dims[1],
                               (long long)y->dims[2], (long long)y->dims[3]);
    return STRATA_OK;
}

static double inverted_flops(const strata_node *n)
{
    struct inverted_shape s;
    if (inverted_resolve(n, &s) != STRATA_OK)
        return 0;
    const double pixels = (double)n->in[0].dims[0] * (double)window_in_count(&s.w);
    const double results = (double)n->in[0].dims[0] * (double)window_out_count(&s.w);
    return 2 * (double)s.middle *
           ((s.expands ? pixels * (double)s.channels : 0) +
            results * ((double)window_kernel_count(&s.w) +
                       (s.projects ? (double)s.results : 0)));
}

/* ---- plain C --------------------------------------------------------------------- */

/* An image at a time: what each stage makes, dense. */
struct job {
    const strata_run *r;
    const strata_inverted_residual *p;
    struct inverted_shape s;
    float *x, *expanded, *convolved, *y;
};

static const float *weight_of(const strata_run *r, int weight)
{
    return r->weight[weight].rank > 0 ? r->weight[weight].data : NULL;
}

static void activate(const strata_inverted_residual *p, int stage, float *row, int64_t n)
{
    const strata_activation f = {p->activation[stage] - 1, 0, p->alpha[stage],
                                 p->beta[stage]};
    if (p->activation[stage] > 0)
        element_activate_row(f.kind, strata_activation_alpha(&f),
                             strata_activation_beta(&f), row, n);
}

/* Rows of `n` elements: each result is a sum of all of x; of what is in y, if `adds`. */
static void multiply(const struct job *j, int weight, int stage, const float *x, float *y,
                     int64_t depth, int64_t results, int64_t n, bool adds)
{
    const float *w = weight_of(j->r, weight), *bias = weight_of(j->r, weight + 1);
#pragma omp parallel for schedule(static) if (results * depth * n > IMAGE_PARALLEL)
    for (int64_t k = 0; k < results; k++) {
        float *row = y + k * n;
        for (int64_t i = 0; i < n; i++)
            row[i] = (adds ? row[i] : 0) + (bias ? bias[k] : 0);
        for (int64_t c = 0; c < depth; c++) {
            const float factor = w[k * depth + c], *from = x + c * n;
#pragma omp simd
            for (int64_t i = 0; i < n; i++)
                row[i] += factor * from[i];
        }
        activate(j->p, stage, row, n);
    }
}

/* A tap of a plane's windows onto all outputs that see it inside. */
static void slide(const struct window *w, const float *x, float *y, float factor,
                  int64_t r, int64_t s)
{
    int64_t top, bottom, left, right;
    window_valid(w, 1, r, &top, &bottom);
    window_valid(w, 2, s, &left, &right);
    const int64_t down = r * w->dilation[1] - w->begin[1];
    const int64_t across = s * w->dilation[2] - w->begin[2];
    for (int64_t h = top; h < bottom; h++)
        for (int64_t i = left; i < right; i++)
            y[h * w->out[2] + i] +=
                factor *
                x[(h * w->stride[1] + down) * w->in[2] + i * w->stride[2] + across];
}

static void convolve(const struct job *j, const float *x, float *y)
{
    const struct window *w = &j->s.w;
    const float *weight = weight_of(j->r, STRATA_INVERTED_DEPTHWISE);
    const float *bias = weight_of(j->r, STRATA_INVERTED_DEPTHWISE_BIAS);
    const int64_t in = window_in_count(w), out = window_out_count(w);
    const int64_t taps = window_kernel_count(w);
#pragma omp parallel for schedule(static) if (j->s.middle * out > IMAGE_PARALLEL)
    for (int64_t c = 0; c < j->s.middle; c++) {
        float *plane = y + c * out;
        for (int64_t i = 0; i < out; i++)
            plane[i] = bias ? bias[c] : 0;
        for (int64_t k = 0; k < taps; k++)
            slide(w, x + c * in, plane, weight[c * taps + k], k / w->kernel[2],
                  k % w->kernel[2]);
        activate(j->p, STRATA_INVERTED_CONVOLVED, plane, out);
    }
}

/* Of the four parts of memory, in floats; 0: too many. */
static int64_t sizes(const struct inverted_shape *s, int64_t size[4])
{
    const int64_t in = window_in_count(&s->w), out = window_out_count(&s->w);
    const int64_t rows[] = {s->channels, s->expands ? s->middle : 0, s->middle,
                            s->projects ? s->results : 0};
    int64_t all = 0;
    for (int i = 0; i < 4; i++)
        if (__builtin_mul_overflow(rows[i], i < 2 ? in : out, &size[i]) ||
            __builtin_add_overflow(all, size[i], &all))
            return 0;
    return all;
}

static size_t inverted_workspace(const strata_node *n)
{
    struct inverted_shape s;
    int64_t size[4], bytes;
    if (inverted_resolve(n, &s) != STRATA_OK)
        return SIZE_MAX;
    const int64_t all = sizes(&s, size);
    return all < 1 || __builtin_mul_overflow(all, (int64_t)sizeof(float), &bytes)
               ? SIZE_MAX
               : (size_t)bytes;
}

static void compute_image(const struct job *j, int64_t image)
{
    const struct inverted_shape *s = &j->s;
    const strata_run *r = j->r;
    const int64_t in = window_in_count(&s->w), out = window_out_count(&s->w);
    image_unpack(j->x, &r->in[0], image);
    if (s->expands)
        multiply(j, STRATA_INVERTED_EXPAND, STRATA_INVERTED_EXPANDED, j->x, j->expanded,
                 s->channels, s->middle, in, false);
    convolve(j, s->expands ? j->expanded : j->x, j->convolved);
    if (s->projects && r->n_in > 1)
        image_unpack(j->y, &r->in[1], image);
    if (s->projects)
        multiply(j, STRATA_INVERTED_PROJECT, STRATA_INVERTED_PROJECTED, j->convolved,
                 j->y, s->middle, s->results, out, r->n_in > 1);
    image_pack(&r->out[0], image, s->projects ? j->y : j->convolved);
}

static int inverted_run(const strata_run *r)
{
    struct job j = {.r = r, .p = r->params};
    int64_t size[4];
    j.s = *(const struct inverted_shape *)r->state;
    sizes(&j.s, size);
    j.x = r->workspace;
    j.expanded = j.x + size[0];
    j.convolved = j.expanded + size[1];
    j.y = j.convolved + size[2];
    for (int64_t image = 0; image < r->in[0].dims[0]; image++)
        compute_image(&j, image);
    return STRATA_OK;
}

static int inverted_setup(const strata_node *n, void *state)
{
    return inverted_resolve(n, state);
}

static int inverted_accept(const strata_node *n)
{
    struct inverted_shape s;
    const int status = inverted_resolve(n, &s);
    if (status == STRATA_OK && n->n_in > 1 && !s.projects)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a second input is added to projected results alone");
    return status;
}

/* ---- the definition -------------------------------------------------------------- */

/* What lies between is stored in FP16 where the input is, and never becomes infinite. */
static void hold(const strata_node *n, double *between, int64_t count)
{
    const double most = 65504;
    for (int64_t i = 0; i < count && n->in[0].dtype == STRATA_FP16; i++)
        if (!isnan(between[i]))
            between[i] = fmin(fmax(between[i], -most), most);
}

static double exact(const strata_inverted_residual *p, int stage, double x)
{
    const strata_activation f = {p->activation[stage] - 1, 0, p->alpha[stage],
                                 p->beta[stage]};
    return p->activation[stage] > 0
               ? element_activate_exact(f.kind, x, strata_activation_alpha(&f),
                                        strata_activation_beta(&f))
               : x;
}

static void reference_multiply(const strata_inverted_residual *p, int stage,
                               const double *w, const double *bias, const double *x,
                               double *y, int64_t depth, int64_t results, int64_t n,
                               const double *addend)
{
    for (int64_t k = 0; k < results; k++)
        for (int64_t i = 0; i < n; i++) {
            double sum = bias ? bias[k] : 0;
            for (int64_t c = 0; c < depth; c++)
                sum += w[k * depth + c] * x[c * n + i];
            y[k * n + i] = exact(p, stage, sum + (addend ? addend[k * n + i] : 0));
        }
}

static double reference_window(const struct window *w, const double *x,
                               const double *weight, int64_t h, int64_t v)
{
    double sum = 0;
    for (int64_t r = 0; r < w->kernel[1]; r++)
        for (int64_t s = 0; s < w->kernel[2]; s++) {
            const int64_t a = h * w->stride[1] - w->begin[1] + r * w->dilation[1];
            const int64_t b = v * w->stride[2] - w->begin[2] + s * w->dilation[2];
            if (a >= 0 && a < w->in[1] && b >= 0 && b < w->in[2])
                sum += weight[r * w->kernel[2] + s] * x[a * w->in[2] + b];
        }
    return sum;
}

static void reference_image(const strata_node *n, const struct inverted_shape *s,
                            const double *x, const double *addend,
                            const double *const *weight, double *expanded,
                            double *convolved, double *y)
{
    const strata_inverted_residual *p = n->params;
    const int64_t in = window_in_count(&s->w), out = window_out_count(&s->w);
    const double *bias = weight[STRATA_INVERTED_DEPTHWISE_BIAS];
    if (s->expands)
        reference_multiply(p, STRATA_INVERTED_EXPANDED, weight[STRATA_INVERTED_EXPAND],
                           weight[STRATA_INVERTED_EXPAND_BIAS], x, expanded, s->channels,
                           s->middle, in, NULL);
    if (s->expands)
        hold(n, expanded, s->middle * in);
    for (int64_t c = 0; c < s->middle; c++)
        for (int64_t i = 0; i < out; i++)
            convolved[c * out + i] =
                exact(p, STRATA_INVERTED_CONVOLVED,
                      (bias ? bias[c] : 0) +
                          reference_window(&s->w, (s->expands ? expanded : x) + c * in,
                                           weight[STRATA_INVERTED_DEPTHWISE] +
                                               c * window_kernel_count(&s->w),
                                           i / s->w.out[2], i % s->w.out[2]));
    if (s->projects)
        hold(n, convolved, s->middle * out);
    if (s->projects)
        reference_multiply(p, STRATA_INVERTED_PROJECTED, weight[STRATA_INVERTED_PROJECT],
                           weight[STRATA_INVERTED_PROJECT_BIAS], convolved, y, s->middle,
                           s->results, out, addend);
    else
        memcpy(y, convolved, (size_t)(s->middle * out) * sizeof *y);
}

static int reference_run(const strata_node *n, const double *const *in,
                         const double *const *weight, double *const *out)
{
    struct inverted_shape s;
    const int status = inverted_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const int64_t plane = window_in_count(&s.w), results = window_out_count(&s.w);
    double *memory = calloc((size_t)s.middle, (size_t)(plane + results) * sizeof *memory);
    if (!memory)
        return STRATA_FAIL(n, STRATA_ENOMEM, "no memory for what is between");
    for (int64_t i = 0; i < n->in[0].dims[0]; i++)
        reference_image(n, &s, in[0] + i * s.channels * plane,
                        n->n_in > 1 ? in[1] + i * s.results * results : NULL, weight,
                        memory, memory + s.middle * plane,
                        out[0] + i * s.results * results);
    free(memory);
    return STRATA_OK;
}

static const strata_reference reference = {sizeof reference, STRATA_HELD_WITHIN,
                                           reference_run};

static const void *inverted_extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}

/* ---- tables ---------------------------------------------------------------------- */

#define AT(field) offsetof(strata_inverted_residual, field)
#define STAGE_ATTRS(stage, of)                                                           \
    {.name = of "_activation",                                                           \
     .type = STRATA_ENUM,                                                                \
     .offset = AT(activation[stage]),                                                    \
     .choices = "none|relu|leaky_relu|relu6|clip|sigmoid|tanh|elu|selu|softplus|"        \
                "softsign|gelu|silu|hard_sigmoid|hard_swish|mish|gelu_tanh|swish|"       \
                "celu|thresholded_relu|shrink|scaled_tanh",                              \
     .doc = "function of what is " of ", as in Activation"},                             \
        {.name = of "_alpha",                                                            \
         .type = STRATA_F64,                                                             \
         .offset = AT(alpha[stage]),                                                     \
         .def = STRATA_KIND_DEFAULT,                                                     \
         .doc = "as in Activation; inf: the kind's own"},                                \
    {                                                                                    \
        .name = of "_beta", .type = STRATA_F64, .offset = AT(beta[stage]),               \
        .def = STRATA_KIND_DEFAULT, .doc = "as in Activation; inf: the kind's own"       \
    }

static const strata_attr attrs[] = {
    {.name = "expanded",
     .type = STRATA_I64,
     .offset = AT(expanded),
     .max = INT32_MAX,
     .doc = "results of the first product; 0: from its weight, or there is none"},
    {.name = "projected",
     .type = STRATA_I64,
     .offset = AT(projected),
     .max = INT32_MAX,
     .doc = "results of the second product; 0: from its weight, or there is none"},
    WINDOW_ATTRS(strata_convolution, /* which is the first member */
                 "window size, one value or one per spatial dim; empty: from the weight",
                 "zeros around what is expanded"),
    STAGE_ATTRS(STRATA_INVERTED_EXPANDED, "expanded"),
    STAGE_ATTRS(STRATA_INVERTED_CONVOLVED, "convolved"),
    STAGE_ATTRS(STRATA_INVERTED_PROJECTED, "projected"),
};

static const strata_weight weights[] = {
    {.name = "expand", .rank = 2, .doc = "expanded x channels"},
    {.name = "expand_bias", .rank = 1, .doc = "expanded"},
    {.name = "depthwise",
     .flags = STRATA_REQUIRED,
     .rank = 4,
     .doc = "channels x 1 x kernel"},
    {.name = "depthwise_bias", .rank = 1, .doc = "one a channel"},
    {.name = "project", .rank = 2, .doc = "projected x channels between"},
    {.name = "project_bias", .rank = 1, .doc = "projected"},
};

static const strata_row rows[] = {{{ELEMENT_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.05,
     .bandwidth = 0.1,
     .state_size = sizeof(struct inverted_shape),
     .accept = inverted_accept,
     .workspace = inverted_workspace,
     .setup = inverted_setup,
     .run = inverted_run},
};

static const strata_layer inverted_residual = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "InvertedResidual",
    .doc = "Channels expanded, convolved one by one and projected, in one pass.",
    .min_in = 1,
    .max_in = 2,
    .n_out = 1,
    .params_size = sizeof(strata_inverted_residual),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = inverted_output,
    .weight_shape = inverted_weight_shape,
    .flops = inverted_flops,
    .extension = inverted_extension,
};

static const strata_layer *const layers[] = {&inverted_residual};
STRATA_MODULE("core", "1.0.0", "InvertedResidual", layers)
