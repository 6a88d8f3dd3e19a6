/* SPDX-License-Identifier: Apache-2.0
 *
 * RotaryEmbedding: pairs of a head's elements turned by angles that grow with the token's
 * position. The cosines and sines of a token are taken once for all of its heads.
 */
#include "plugins/rotary_embedding/rotary_embedding.h"

#include <math.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "plugins/common/dense.h"
#include "plugins/common/dtype.h"
#include "plugins/common/element.h"

#define PARALLEL (1 << 15) /* elements below which threads do not pay */

/* ---- shapes ---------------------------------------------------------------------- */

static int check_x(const strata_node *n)
{
    const strata_rotary_embedding *p = n->params;
    const strata_tensor *x = &n->in[ROTARY_X];
    const int32_t rank = p->heads ? 3 : 4;
    if (x->rank != rank || (p->heads && x->dims[2] % p->heads != 0))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "x has rank %d and rows of %lld elements; needed is rank %d "
                           "with %lld heads",
                           (int)x->rank,
                           (long long)(x->rank > 0 ? x->dims[x->rank - 1] : 0), (int)rank,
                           (long long)(p->heads ? p->heads : x->dims[1]));
    const int64_t dim = rotary_dim(p, x), turned = p->dims ? p->dims : dim;
    if (turned % 2 != 0 || turned > dim)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%lld elements turn; an even part of heads of %lld can",
                           (long long)turned, (long long)dim);
    if (p->turned > rotary_heads(p, x))
        return STRATA_FAIL(n, STRATA_EINVAL, "%lld heads turn, of %lld",
                           (long long)p->turned, (long long)rotary_heads(p, x));
    return STRATA_OK;
}

static int check_positions(const strata_node *n)
{
    const strata_tensor *x = &n->in[ROTARY_X];
    const strata_tensor *at = rotary_input(n->n_in, n->in, ROTARY_POSITIONS);
    const int64_t length = x->dims[x->rank - 2];
    if (!at)
        return STRATA_OK;
    if (!index_is_integer(at->dtype))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "positions are of no integer type; i32 or i64 is needed: a "
                           "Cast gives one");
    if (at->rank > 2 || at->dims[0] != x->dims[0] ||
        (at->rank == 2 && at->dims[1] != length))
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "positions have rank %d and begin with %lld; needed is one "
                           "for each of a batch of %lld, or for each of its %lld tokens",
                           (int)at->rank, (long long)at->dims[0], (long long)x->dims[0],
                           (long long)length);
    return STRATA_OK;
}

static int check_cache(const strata_node *n, const char *name, const strata_tensor *t)
{
    const strata_rotary_embedding *p = n->params;
    const strata_tensor *x = &n->in[ROTARY_X];
    const int64_t half = (p->dims ? p->dims : rotary_dim(p, x)) / 2;
    const int placed = rotary_input(n->n_in, n->in, ROTARY_POSITIONS) != NULL;
    int fits = dense_is_real(t->dtype) && t->rank >= 2 && t->rank <= 3 &&
               t->dims[t->rank - 1] == half;
    if (fits && t->rank == 3)
        fits = !placed && t->dims[0] == x->dims[0] && t->dims[1] == x->dims[x->rank - 2];
    if (!fits)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "%s has rank %d and rows of %lld; needed are positions x %lld, "
                           "or without positions batch x sequence x %lld",
                           name, (int)t->rank,
                           (long long)(t->rank > 0 ? t->dims[t->rank - 1] : 0),
                           (long long)half, (long long)half);
    return STRATA_OK;
}

static int check_caches(const strata_node *n)
{
    const strata_tensor *c = rotary_cache(n->n_in, n->in, n->weight, ROTARY_CACHE_COS),
                        *s = rotary_cache(n->n_in, n->in, n->weight, ROTARY_CACHE_SIN);
    if (!c != !s)
        return STRATA_FAIL(n, STRATA_EINVAL, "%s is given without %s", c ? "cos" : "sin",
                           c ? "sin" : "cos");
    if (!c)
        return STRATA_OK;
    int status = check_cache(n, "cos", c);
    if (status == STRATA_OK)
        status = check_cache(n, "sin", s);
    if (status == STRATA_OK && (c->rank != s->rank || c->dims[0] != s->dims[0]))
        status = STRATA_FAIL(n, STRATA_EINVAL, "cos and sin differ in shape");
    return status;
}

static int rotary_shape(const strata_node *n)
{
    const strata_tensor *x = &n->in[ROTARY_X];
    int status = check_x(n);
    if (status == STRATA_OK)
        status = check_positions(n);
    if (status == STRATA_OK)
        status = check_caches(n);
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    return status;
}

/* Caches have rows for whatever positions there are. */
static int rotary_weight_shape(const strata_node *n, strata_tensor *expected)
{
    (void)n;
    (void)expected;
    return STRATA_OK;
}

static double rotary_flops(const strata_node *n)
{
    return 3.0 * (double)n->out[0].count;
}

/* ---- a token --------------------------------------------------------------------- */

static double load(const void *data, int32_t dtype, int64_t i)
{
    return dtype == STRATA_FP64 ? ((const double *)data)[i]
                                : (double)element_load(data, dtype, i);
}

/* Cosines, then sines, of each pair. */
static void find_angles(const struct rotary_plan *r, const double *frequency, int64_t b,
                        int64_t i, double *angle)
{
    const double position = (double)rotary_position(r, b, i);
    const int64_t row = r->cos ? rotary_cache_row(r, b, i) : -1;
    for (int64_t k = 0; k < r->half; k++) {
        const double a = position * frequency[k];
        double c = 0, s = 0;
        if (!r->cos) {
            c = cos(a);
            s = sin(a);
        } else if (row >= 0) {
            c = load(r->cos, r->cos_dtype, row * r->cos_row + k);
            s = load(r->sin, r->sin_dtype, row * r->sin_row + k);
        }
        angle[k] = c;
        angle[r->half + k] = s;
    }
}

#define TURN(T)                                                                          \
    static void turn_##T(const struct rotary_plan *r, const double *angle, T *y,         \
                         const T *x)                                                     \
    {                                                                                    \
        const int64_t half = r->half, step = r->step, apart = r->apart;                  \
        for (int64_t k = 0; k < half; k++) {                                             \
            const T c = (T)angle[k], s = (T)angle[half + k];                             \
            const T a = x[k * step], b = x[k * step + apart];                            \
            y[k * step] = a * c - b * s;                                                 \
            y[k * step + apart] = a * s + b * c;                                         \
        }                                                                                \
        for (int64_t i = 2 * half; i < r->dim; i++)                                      \
            y[i] = x[i];                                                                 \
    }
TURN(float)
TURN(double)
#undef TURN

static void keep_head(const struct rotary_plan *r, const strata_run *run, int64_t to,
                      int64_t from)
{
    const strata_tensor *x = &run->in[ROTARY_X], *y = &run->out[0];
    const size_t size = dtype_size(x->dtype);
    memmove((char *)y->data + (size_t)to * size, (char *)x->data + (size_t)from * size,
            (size_t)r->dim * size);
}

/* A head of FP16 or BF16 goes through FP32, at `row`. */
static void turn_head(const struct rotary_plan *r, const strata_run *run,
                      const double *angle, int64_t to, int64_t from, float *row)
{
    const strata_tensor *x = &run->in[ROTARY_X], *y = &run->out[0];
    if (x->dtype == STRATA_FP64)
        turn_double(r, angle, (double *)y->data + to, (const double *)x->data + from);
    else if (x->dtype == STRATA_FP32)
        turn_float(r, angle, (float *)y->data + to, (const float *)x->data + from);
    else {
        element_load_row(row, x->data, x->dtype, from, 1, r->dim);
        turn_float(r, angle, row, row);
        element_store_row(y->data, y->dtype, to, 1, row, r->dim);
    }
}

/* ---- all of them ----------------------------------------------------------------- */

static int rotary_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

static int rotary_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

/* Frequencies, then of each thread angles and a head. */
static size_t rotary_workspace(const strata_node *n)
{
    const strata_rotary_embedding *p = n->params;
    size_t bytes = (size_t)rotary_dim(p, &n->in[ROTARY_X]);
    return __builtin_mul_overflow(bytes, 2 * sizeof(double), &bytes) ||
                   __builtin_mul_overflow(bytes, (size_t)rotary_threads() + 1, &bytes)
               ? SIZE_MAX
               : bytes;
}

static int rotary_run(const strata_run *run)
{
    const struct rotary_plan r = rotary_plan_of(run);
    double *frequency = run->workspace;
    const int64_t share = 2 * r.dim, tokens = r.batch * r.length;
    const int64_t made =
        share ? (int64_t)(run->workspace_size / sizeof(double)) / share - 1 : 1;
    const int most = rotary_threads();
    const int threads = run->out[0].count < PARALLEL ? 1 : made < most ? (int)made : most;
    (void)threads;
    for (int64_t k = 0; k < r.half && !r.cos; k++)
        frequency[k] = pow(r.base, -(double)k / (double)r.half);
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t t = 0; t < tokens; t++) {
        const int64_t b = t / r.length, i = t % r.length;
        double *angle = frequency + share * (rotary_thread() + 1);
        find_angles(&r, frequency, b, i, angle);
        for (int64_t h = 0; h < r.heads; h++) {
            const int64_t to = b * r.y_batch + h * r.y_head + i * r.y_row;
            const int64_t from = b * r.x_batch + h * r.x_head + i * r.x_row;
            if (h < r.turned)
                turn_head(&r, run, angle, to, from, (float *)(void *)(angle + r.dim));
            else
                keep_head(&r, run, to, from);
        }
    }
    return STRATA_OK;
}

/* ---- the definition -------------------------------------------------------------- */

/* The factors of pair k: of the caches' row for token i, or computed. */
static void reference_angle(const strata_node *n, const void *const *in,
                            const void *const *weight, int64_t b, int64_t i, int64_t k,
                            double *c, double *s)
{
    const strata_rotary_embedding *p = n->params;
    const strata_tensor *x = &n->in[ROTARY_X];
    const strata_tensor *at = rotary_input(n->n_in, n->in, ROTARY_POSITIONS);
    const strata_tensor *t = rotary_cache(n->n_in, n->in, n->weight, ROTARY_CACHE_COS);
    const int64_t turned = p->dims ? p->dims : rotary_dim(p, x), half = turned / 2;
    const int64_t token = b * x->dims[x->rank - 2] + i;
    int64_t position = i;
    if (at)
        position = at->rank == 1 ? ((const int64_t *)in[ROTARY_POSITIONS])[b] + i
                                 : ((const int64_t *)in[ROTARY_POSITIONS])[token];
    if (!t) {
        const double angle =
            (double)position * pow(p->base, -2.0 * (double)k / (double)turned);
        *c = cos(angle);
        *s = sin(angle);
        return;
    }
    const int input = rotary_input(n->n_in, n->in, ROTARY_COS) != NULL;
    const double *cos_of = input ? in[ROTARY_COS] : weight[ROTARY_CACHE_COS];
    const double *sin_of = input ? in[ROTARY_SIN] : weight[ROTARY_CACHE_SIN];
    const int64_t row = t->rank == 3 ? token : position;
    const int outside = t->rank == 2 && (position < 0 || position >= t->dims[0]);
    *c = outside ? 0 : cos_of[row * half + k];
    *s = outside ? 0 : sin_of[row * half + k];
}

static int reference_run(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_rotary_embedding *p = n->params;
    const strata_tensor *t = &n->in[ROTARY_X];
    const int64_t dim = rotary_dim(p, t), half = (p->dims ? p->dims : dim) / 2;
    const int64_t heads = rotary_heads(p, t), length = t->dims[t->rank - 2];
    const double *x = in[ROTARY_X];
    double *y = out[0];
    for (int64_t at = 0; at < dense_count(t); at += dim) {
        const int64_t row = at / dim;
        const int64_t i = p->heads ? row / heads % length : row % length;
        const int64_t head = p->heads ? row % heads : row / length % heads;
        const int64_t pairs = head < rotary_turned(p, t) ? half : 0;
        for (int64_t d = 2 * pairs; d < dim; d++)
            y[at + d] = x[at + d];
        for (int64_t k = 0; k < pairs; k++) {
            const int64_t a = at + (p->interleaved ? 2 * k : k);
            const int64_t b = p->interleaved ? a + 1 : a + half;
            double c, s;
            reference_angle(n, in, weight, row / heads / length, i, k, &c, &s);
            y[a] = x[a] * c - x[b] * s;
            y[b] = x[a] * s + x[b] * c;
        }
    }
    return STRATA_OK;
}

static const void *rotary_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, reference_run};
    return dense_extension_typed(id, &reference);
}

/* ---- tables -------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "heads", .type = STRATA_I64,
     .offset = offsetof(strata_rotary_embedding, heads), .max = 1 << 24,
     .doc = "side by side in x's rows; 0: a dim of their own (4-D x)"},
    {.name = "dims", .type = STRATA_I64, .offset = offsetof(strata_rotary_embedding, dims),
     .max = 1 << 24, .doc = "leading elements of a head that turn, even; 0: all"},
    {.name = "base", .type = STRATA_F64, .offset = offsetof(strata_rotary_embedding, base),
     .def = 10000, .min = 1e-30, .max = 1e30,
     .doc = "pair i turns by position*base^(-2*i/dims) where no caches are given"},
    {.name = "interleaved", .type = STRATA_BOOL,
     .offset = offsetof(strata_rotary_embedding, interleaved),
     .doc = "pairs are neighbours; else one is of either half"},
    {.name = "turned_heads", .type = STRATA_I64,
     .offset = offsetof(strata_rotary_embedding, turned), .max = 1 << 24,
     .doc = "heads that turn, the first ones; 0: all. The others stay as they are"},
};

static const strata_weight weights[] = {
    {.name = "cos", .rank = 2, .doc = "cosines, positions x dims/2"},
    {.name = "sin", .rank = 2, .doc = "sines, likewise"},
};

#define POSITIONS (STRATA_I32_NCHW | STRATA_I64_NCHW)
#define ROW(format, caches) {{(format), POSITIONS, (caches), (caches)}, {STRATA_SAME}}

static const strata_row rows[] = {
    ROW(STRATA_F32_NCHW, STRATA_F32_NCHW),
    ROW(STRATA_F16_NCHW, STRATA_F32_NCHW | STRATA_F16_NCHW),
    ROW(STRATA_BF16_NCHW, STRATA_F32_NCHW | STRATA_BF16_NCHW),
    ROW(STRATA_F64_NCHW, STRATA_F64_NCHW),
};

static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_HOST, .flags = STRATA_INPLACE_OK, .name = "c",
     .rows = STRATA_ARRAY(rows), .efficiency = 0.1, .bandwidth = 0.5,
     .workspace = rotary_workspace, .run = rotary_run},
};

static const strata_layer rotary_embedding = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "RotaryEmbedding",
    .doc = "Pairs of elements of each head turned by angles that grow with position.",
    .min_in = 1, .max_in = ROTARY_INPUTS, .n_out = 1,
    .params_size = sizeof(strata_rotary_embedding), .attrs = STRATA_ARRAY(attrs),
    .weights = STRATA_ARRAY(weights), .impls = STRATA_ARRAY(impls), .shape = rotary_shape,
    .weight_shape = rotary_weight_shape, .flops = rotary_flops,
    .extension = rotary_extension, .optional_in = ((1 << ROTARY_INPUTS) - 1) & ~1,
};
static const strata_layer *const layers[] = {&rotary_embedding};
STRATA_MODULE("core", "1.0.0", "RotaryEmbedding", layers)
