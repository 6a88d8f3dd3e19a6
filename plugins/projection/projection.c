/* SPDX-License-Identifier: Apache-2.0
 *
 * Projection: rows times a constant matrix, with what stands around such a product in
 * transformers: rows are normalised first (RMSNorm), halves of the result gated (SwiGLU),
 * or pairs of its columns turned (rotary positions). A plan makes it of a Normalization,
 * a MatrixMultiply and a Gated or a RotaryEmbedding; impls read B once, and nothing
 * between the three is written.
 */
#include "plugins/common/activate.h"
#include "plugins/common/activation_attrs.h"
#include "plugins/common/dense.h"
#include "plugins/common/element.h"
#include "plugins/common/index.h"

#include <strata/layers.h>

enum {
    B = STRATA_PROJECTION_B,
    BIAS = STRATA_PROJECTION_BIAS,
    SCALE = STRATA_PROJECTION_SCALE
};

#define CHUNK 64 /* columns of a task */

/* ---- shapes ---------------------------------------------------------------------- */

/* Of each token, or of the first of each row. */
static const strata_tensor *positions_of(int n_in, const strata_tensor *in)
{
    return n_in > 1 && in[1].rank > 0 ? &in[1] : NULL;
}

static int check_no_heads(const strata_node *n)
{
    const strata_projection *p = n->params;
    return p->turned == 0 && !positions_of(n->n_in, n->in)
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EINVAL,
                             "positions and turned_heads are of heads that turn; give "
                             "heads = N");
}

static int check_heads(const strata_node *n, int64_t units)
{
    const strata_projection *p = n->params;
    const strata_tensor *x = &n->in[0], *at = positions_of(n->n_in, n->in);
    if (p->gated || x->rank != 3 || units % p->heads != 0 || units / p->heads % 2 != 0 ||
        p->turned > p->heads)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld heads of %lld columns, of which %lld turn, of an input "
                           "of rank %d; whole heads of an even size turn, of batch x "
                           "sequence x depth, and nothing that is gated",
                           (long long)p->heads, (long long)units, (long long)p->turned,
                           (int)x->rank);
    if (at && (!index_is_integer(at->dtype) || at->rank > 2 ||
               at->dims[0] != x->dims[0] || (at->rank == 2 && at->dims[1] != x->dims[1])))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "positions are one integer for each of a batch of %lld, or "
                           "for each of its %lld tokens",
                           (long long)x->dims[0], (long long)x->dims[1]);
    return STRATA_OK;
}

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
    return p->heads > 0 ? check_heads(n, *units) : check_no_heads(n);
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
    expected[BIAS].rank = 1;
    expected[SCALE].rank = p->normalized ? 1 : 0;
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
    return (p->gated ? 4 : 2) * (double)n->out[0].count * (double)x->dims[x->rank - 1];
}

/* ---- plain C --------------------------------------------------------------------- */

struct job {
    const strata_projection *p;
    const float *x, *b, *bias; /* x: its rows in FP32, normalised */
    const strata_tensor *y;
    float *turned; /* y before its heads turn, or NULL */
    double alpha, beta;
    int64_t rows, depth, units; /* units: columns of y */
};

static size_t projection_workspace(const strata_node *n)
{
    const strata_projection *p = n->params;
    const int64_t count = n->in[0].count + (p->heads > 0 ? n->out[0].count : 0);
    size_t bytes;
    return __builtin_mul_overflow((size_t)count, sizeof(float), &bytes) ? SIZE_MAX
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
        activate_row(j->p->kind, j->alpha, j->beta, sum, n);
        for (int64_t i = 0; i < n; i++)
            sum[i] *= gated[i];
    }
    if (j->turned)
        memcpy(j->turned + row * j->units + first, sum, (size_t)n * sizeof *sum);
    else
        element_store_row(j->y->data, j->y->dtype, row * j->units + first, 1, sum, n);
}

/* ---- turning --------------------------------------------------------------------- */

/* Columns of pair k, from where its head begins. */
static int64_t first_of(const strata_projection *p, int64_t k)
{
    return p->interleaved ? 2 * k : k;
}

static int64_t second_of(const strata_projection *p, int64_t k, int64_t dim)
{
    return p->interleaved ? 2 * k + 1 : k + dim / 2;
}

static double angle_of(const strata_projection *p, double position, int64_t k,
                       int64_t dim)
{
    return position * pow(p->base, -2.0 * (double)k / (double)dim);
}

static int64_t turned_of(const strata_projection *p)
{
    return p->turned ? p->turned : p->heads;
}

static void turn_row(const struct job *j, const strata_tensor *at, int64_t row,
                     int64_t length)
{
    const strata_projection *p = j->p;
    const int64_t dim = j->units / p->heads, token = row % length;
    int64_t position = token;
    if (at)
        position = at->rank == 2 ? index_value(at->data, at->dtype, row)
                                 : index_value(at->data, at->dtype, row / length) + token;
    for (int64_t k = 0; k < dim / 2; k++) {
        const double angle = angle_of(p, (double)position, k, dim);
        const float c = (float)cos(angle), s = (float)sin(angle);
        for (int64_t h = 0; h < turned_of(p); h++) {
            float *head = j->turned + row * j->units + h * dim;
            float *a = head + first_of(p, k), *b = head + second_of(p, k, dim);
            const float x = *a;
            *a = x * c - *b * s;
            *b = x * s + *b * c;
        }
    }
    element_store_row(j->y->data, j->y->dtype, row * j->units, 1,
                      j->turned + row * j->units, j->units);
}

/* ---- all of it ------------------------------------------------------------------- */

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
                          .turned = p->heads > 0 ? x + in->count : NULL,
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
        run_chunk(&j, task % j.rows, first,
                  first + CHUNK < units ? CHUNK : units - first);
    }
#pragma omp parallel for schedule(static) if (j.turned)
    for (int64_t row = 0; row < (j.turned ? j.rows : 0); row++)
        turn_row(&j, positions_of(r->n_in, r->in), row, in->dims[1]);
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

/* Element `unit` of a row whose heads turn, from its own sum. */
static double reference_turn(const strata_node *n, const void *const *in,
                             const void *const *weight, const double *x, double factor,
                             int64_t row, int64_t unit, double own)
{
    const strata_projection *p = n->params;
    const strata_tensor *y = &n->out[0], *at = positions_of(n->n_in, n->in);
    const int64_t units = y->dims[2], dim = units / p->heads, length = y->dims[1];
    const int64_t d = unit % dim, head = unit - d, *given = at ? in[1] : NULL;
    const int64_t k = p->interleaved ? d / 2 : d % (dim / 2);
    const int first = d == first_of(p, k);
    if (unit / dim >= turned_of(p))
        return own;
    int64_t position = row % length;
    if (at)
        position = at->rank == 2 ? given[row] : given[row / length] + position;
    const double angle = angle_of(p, (double)position, k, dim);
    const double other =
        reference_sum(n, weight, x, factor,
                      head + (first ? second_of(p, k, dim) : first_of(p, k)), units);
    return first ? own * cos(angle) - other * sin(angle)
                 : other * sin(angle) + own * cos(angle);
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
        if (p->heads > 0)
            sum = reference_turn(n, in, weight, x, factor, i / width, i % width, sum);
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
     .choices = ACTIVATION_KINDS,
     .doc = "function of the first half, as in Activation"},
    ACTIVATION_NUMBER("alpha", offsetof(strata_projection, alpha)),
    ACTIVATION_NUMBER("beta", offsetof(strata_projection, beta)),
    {.name = "heads",
     .type = STRATA_I64,
     .offset = offsetof(strata_projection, heads),
     .max = 1 << 24,
     .doc = "whose pairs of columns turn as in RotaryEmbedding, by positions; 0: none"},
    {.name = "turned_heads",
     .type = STRATA_I64,
     .offset = offsetof(strata_projection, turned),
     .max = 1 << 24,
     .doc = "heads that turn, the first ones; 0: all"},
    {.name = "base",
     .type = STRATA_F64,
     .offset = offsetof(strata_projection, base),
     .def = 10000,
     .min = 1e-30,
     .max = 1e30,
     .doc = "as in RotaryEmbedding"},
    {.name = "interleaved",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_projection, interleaved),
     .doc = "as in RotaryEmbedding"},
};

static const strata_weight weights[] = {
    {.name = "b",
     .rank = 2,
     .flags = STRATA_REQUIRED,
     .doc = "depth x units, or units x depth"},
    {.name = "bias", .rank = 1, .doc = "one a unit"},
    {.name = "scale", .rank = 1, .doc = "of normalized rows: one a column"},
};

static const strata_row rows[] = {{{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW,
                                    STRATA_I32_NCHW | STRATA_I64_NCHW},
                                   {STRATA_SAME}}};

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
    .doc =
        "Rows, normalised or not, times a constant matrix; halves gated, heads turned.",
    .min_in = 1,
    .max_in = 2,
    .optional_in = 1 << 1,
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
