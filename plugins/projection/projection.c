/* SPDX-License-Identifier: Apache-2.0
 *
 * Projection: rows times a constant matrix, with what stands around such a product in
 * transformers: rows are normalised first (RMSNorm), halves of the result gated (SwiGLU).
 * A plan makes it of a Normalization, a MatrixMultiply and a Gated; impls read B once, and
 * nothing between the three is written.
 */
#include "plugins/common/dense.h"
#include "plugins/common/element.h"

#include <strata/layers.h>

enum {
    B = STRATA_PROJECTION_B,
    BIAS = STRATA_PROJECTION_BIAS,
    SCALE = STRATA_PROJECTION_SCALE
};

#define CHUNK 64 /* columns of a task */

/* ---- shapes ---------------------------------------------------------------------- */

static int resolve(const strata_node *n, int64_t *depth, int64_t *units)
{
    const strata_projection *p = n->params;
    const strata_tensor *x = &n->in[0], *b = &n->weight[B];
    if (x->rank < 2)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input has rank %d; a matrix has at least 2 dims: give it a "
                           "dim of 1 by a Shuffle",
                           (int)x->rank);
    *depth = x->dims[x->rank - 1];
    *units = p->product.units ? p->product.units
             : b->rank == 2   ? b->dims[p->product.transpose_b ? 0 : 1]
                              : 0;
    if (*units < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units is not known; give units = N or a weight b");
    if (p->gated && *units % 2 != 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units = %lld; an even number is needed, for it is halved",
                           (long long)*units);
    if (!p->normalized && n->weight[SCALE].rank > 0)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "a weight scale is given without normalized = yes");
    return STRATA_OK;
}

static int projection_weight_shape(const strata_node *n, strata_tensor *expected)
{
    const strata_projection *p = n->params;
    int64_t depth, units;
    const int status = resolve(n, &depth, &units);
    if (status != STRATA_OK)
        return status;
    expected[B].rank = 2;
    expected[B].dims[p->product.transpose_b ? 1 : 0] = depth;
    expected[B].dims[p->product.transpose_b ? 0 : 1] = units;
    expected[BIAS].rank = expected[SCALE].rank = 1;
    expected[BIAS].dims[0] = units;
    expected[SCALE].dims[0] = depth;
    return STRATA_OK;
}

static int projection_shape(const strata_node *n)
{
    const strata_projection *p = n->params;
    const strata_tensor *x = &n->in[0];
    int64_t depth, units;
    const int status = resolve(n, &depth, &units);
    if (status != STRATA_OK)
        return status;
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    n->out[0].dims[x->rank - 1] = p->gated ? units / 2 : units;
    return STRATA_OK;
}

static double projection_flops(const strata_node *n)
{
    const strata_projection *p = n->params;
    const strata_tensor *x = &n->in[0];
    return (p->gated ? 4 : 2) * (double)n->out[0].count *
           (double)x->dims[x->rank - 1];
}

/* ---- plain C --------------------------------------------------------------------- */

struct job {
    const strata_projection *p;
    const float *x, *b, *bias; /* x: its rows in FP32, normalised */
    const strata_tensor *y;
    double alpha, beta;
    int64_t rows, depth, units; /* units: columns of y */
};

static size_t projection_workspace(const strata_node *n)
{
    size_t bytes;
    return __builtin_mul_overflow((size_t)n->in[0].count, sizeof(float), &bytes) ? SIZE_MAX
                                                                                : bytes;
}

/* Columns [first, first + n) of B times a row. */
static void multiply(const struct job *j, const float *x, int64_t first, int64_t n,
                     float *sum)
{
    const int64_t across = j->units * (j->p->gated ? 2 : 1);
    memset(sum, 0, (size_t)n * sizeof *sum);
    if (j->p->product.transpose_b)
        for (int64_t i = 0; i < n; i++) {
            const float *b = j->b + (first + i) * j->depth;
            float all = 0;
#pragma omp simd reduction(+ : all)
            for (int64_t k = 0; k < j->depth; k++)
                all += x[k] * b[k];
            sum[i] = all;
        }
    else
        for (int64_t k = 0; k < j->depth; k++)
            for (int64_t i = 0; i < n; i++)
                sum[i] += x[k] * j->b[k * across + first + i];
    for (int64_t i = 0; i < n && j->bias; i++)
        sum[i] += j->bias[first + i];
}

static void run_chunk(const struct job *j, int64_t row, int64_t first, int64_t n)
{
    const float *x = j->x + row * j->depth;
    float sum[CHUNK], gated[CHUNK];
    multiply(j, x, first, n, sum);
    if (j->p->gated) {
        multiply(j, x, first + j->units, n, gated);
        element_activate_row(j->p->kind, j->alpha, j->beta, sum, n);
        for (int64_t i = 0; i < n; i++)
            sum[i] *= gated[i];
    }
    element_store_row(j->y->data, j->y->dtype, row * j->units + first, 1, sum, n);
}

static void normalize(float *x, const float *scale, int64_t n, double epsilon)
{
    double square = 0;
    for (int64_t k = 0; k < n; k++)
        square += (double)x[k] * (double)x[k];
    const float factor = (float)(1 / sqrt(square / (double)n + epsilon));
    for (int64_t k = 0; k < n; k++)
        x[k] *= scale ? factor * scale[k] : factor;
}

static int projection_run(const strata_run *r)
{
    const strata_projection *p = r->params;
    const strata_tensor *in = &r->in[0], *y = &r->out[0];
    const strata_activation f = {p->kind, 0, p->alpha, p->beta};
    const int64_t depth = in->dims[in->rank - 1], units = y->dims[y->rank - 1];
    float *x = r->workspace;
    const struct job j = {.p = p,
                          .x = x,
                          .b = r->weight[B].data,
                          .bias = r->weight[BIAS].data,
                          .y = y,
                          .alpha = strata_activation_alpha(&f),
                          .beta = strata_activation_beta(&f),
                          .rows = units > 0 ? y->count / units : 0,
                          .depth = depth,
                          .units = units};
    const int64_t chunks = (units + CHUNK - 1) / CHUNK;
    for (int64_t row = 0; row < j.rows; row++) {
        element_load_row(x + row * depth, in->data, in->dtype, row * depth, 1, depth);
        if (p->normalized)
            normalize(x + row * depth, r->weight[SCALE].data, depth, p->epsilon);
    }
#pragma omp parallel for schedule(static)
    for (int64_t task = 0; task < j.rows * chunks; task++) {
        const int64_t first = task / j.rows * CHUNK;
        run_chunk(&j, task % j.rows, first, first + CHUNK < units ? CHUNK : units - first);
    }
    return STRATA_OK;
}

/* ---- the definition -------------------------------------------------------------- */

static double reference_sum(const strata_node *n, const void *const *weight,
                            const double *x, double factor, int64_t unit, int64_t units)
{
    const strata_projection *p = n->params;
    const strata_tensor *in = &n->in[0];
    const int64_t depth = in->dims[in->rank - 1];
    const double *b = weight[B], *bias = weight[BIAS], *scale = weight[SCALE];
    double sum = 0;
    for (int64_t k = 0; k < depth; k++)
        sum += x[k] * factor * (n->weight[SCALE].rank > 0 ? scale[k] : 1) *
               b[p->product.transpose_b ? unit * depth + k : k * units + unit];
    return n->weight[BIAS].rank > 0 ? sum + bias[unit] : sum;
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_projection *p = n->params;
    const strata_activation f = {p->kind, 0, p->alpha, p->beta};
    const double alpha = strata_activation_alpha(&f), beta = strata_activation_beta(&f);
    const strata_tensor *y = &n->out[0];
    const int64_t width = y->dims[y->rank - 1], units = p->gated ? 2 * width : width;
    const int64_t depth = n->in[0].dims[n->in[0].rank - 1];
    for (int64_t i = 0; i < dense_count(y); i++) {
        const double *x = (const double *)in[0] + i / width * depth;
        double square = 0, factor = 1;
        for (int64_t k = 0; k < depth; k++)
            square += x[k] * x[k];
        if (p->normalized)
            factor = 1 / sqrt(square / (double)depth + p->epsilon);
        double sum = reference_sum(n, weight, x, factor, i % width, units);
        if (p->gated)
            sum = element_activate_exact(p->kind, sum, alpha, beta) *
                  reference_sum(n, weight, x, factor, i % width + width, units);
        ((double *)out[0])[i] = sum;
    }
    return STRATA_OK;
}

static const void *projection_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables ---------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "units",
     .type = STRATA_I64,
     .offset = offsetof(strata_projection, product.units),
     .max = 1e15,
     .doc = "columns of the product; 0: from the weight"},
    {.name = "transpose_b",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_projection, product.transpose_b),
     .doc = "b is units x depth instead of depth x units"},
    {.name = "normalized",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_projection, normalized),
     .doc = "rows are divided by their root mean square first"},
    {.name = "epsilon",
     .type = STRATA_F64,
     .offset = offsetof(strata_projection, epsilon),
     .def = 1e-5,
     .min = 0,
     .max = 1e30,
     .doc = "added to the mean square"},
    {.name = "gated",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_projection, gated),
     .doc = "the first half of the columns, through `kind`, times the second"},
    {.name = "kind",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_projection, kind),
     .def = STRATA_SILU,
     .choices = "relu|leaky_relu|relu6|clip|sigmoid|tanh|elu|selu|softplus|softsign|"
                "gelu|silu|hard_sigmoid|hard_swish|mish|gelu_tanh|swish|celu|"
                "thresholded_relu|shrink|scaled_tanh",
     .doc = "function of the first half, as in Activation"},
    {.name = "alpha",
     .type = STRATA_F64,
     .offset = offsetof(strata_projection, alpha),
     .def = STRATA_KIND_DEFAULT,
     .doc = "as in Activation; inf: the kind's own"},
    {.name = "beta",
     .type = STRATA_F64,
     .offset = offsetof(strata_projection, beta),
     .def = STRATA_KIND_DEFAULT,
     .doc = "as in Activation; inf: the kind's own"},
};

static const strata_weight weights[] = {
    {.name = "b", .rank = 2, .flags = STRATA_REQUIRED, .doc = "depth x units, or units x depth"},
    {.name = "bias", .rank = 1, .doc = "one a unit"},
    {.name = "scale", .rank = 1, .doc = "of normalized rows: one a column"},
};

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.3,
     .bandwidth = 0.6,
     .workspace = projection_workspace,
     .run = projection_run},
};

static const strata_layer projection = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "Projection",
    .doc = "Rows, normalised or not, times a constant matrix, its halves gated or not.",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_projection),
    .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights),
    .impls = STRATA_ARRAY(impls),
    .shape = projection_shape,
    .weight_shape = projection_weight_shape,
    .flops = projection_flops,
    .extension = projection_extension,
};

static const strata_layer *const layers[] = {&projection};
STRATA_MODULE("core", "1.0.0", "Projection", layers)
