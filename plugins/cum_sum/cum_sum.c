/* SPDX-License-Identifier: Apache-2.0
 *
 * CumSum: running sums or products along an axis. The host goes along a line that lies in
 * one piece element by element, several of them at once, and along columns side by side
 * together; floats gather in FP32 or better, integers wrap. May run in place.
 */
#include <strata/layers.h>

#include <stdbool.h>

#include "plugins/common/dense.h"
#include "plugins/common/lines.h"
#include "plugins/common/pointwise/row.h"
#include "plugins/common/walk.h"

#ifdef _OPENMP
#include <omp.h>
#endif

#define COLUMNS 2048 /* that are worked on together */
#define ROWS 4       /* lines of one piece, too */

static int cum_shape(const strata_node *n)
{
    const strata_cum_sum *p = n->params;
    const strata_tensor *x = &n->in[0];
    if (lines_axis(p->axis, x->rank) < 0)
        return STRATA_FAIL(n, STRATA_EINVAL, "axis %lld is outside a tensor of rank %d",
                           (long long)p->axis, (int)x->rank);
    n->out[0].rank = x->rank;
    memcpy(n->out[0].dims, x->dims, sizeof x->dims);
    return STRATA_OK;
}

/* In a line that lies in one piece each sum waits for the one before, which takes the
 * time of several. */
static double cum_flops(const strata_node *n)
{
    const strata_cum_sum *p = n->params;
    const strata_tensor *x = &n->in[0];
    const bool line = lines_of(x, lines_axis(p->axis, x->rank)).inner == 1;
    return (line ? 8.0 : 2.0) * (double)x->count;
}

/* Lines of doubles and of integers, from `from` on, `step` apart (negative: reversed);
 * y may be x. `a` is what came before. */
#define CUM_LINE(name, type, add, multiply)                                              \
    static void name(const strata_cum_sum *p, type *y, const type *x, int64_t n,         \
                     int64_t step)                                                       \
    {                                                                                    \
        type a = p->op == STRATA_CUM_PRODUCT;                                            \
        for (int64_t i = 0; i < n; i++) {                                                \
            const type before = a, value = x[i * step];                                  \
            a = p->op == STRATA_CUM_PRODUCT ? multiply : add;                            \
            y[i * step] = p->exclusive ? before : a;                                     \
        }                                                                                \
    }

CUM_LINE(cum_reals, double, a + value, a *value)
CUM_LINE(cum_whole, int64_t, (int64_t)((uint64_t)a + (uint64_t)value),
         (int64_t)((uint64_t)a *(uint64_t)value))

static int cum_reference(const strata_node *n, const void *const *in,
                         const void *const *weight, void *const *out)
{
    const strata_cum_sum *p = n->params;
    const struct lines l = lines_of(&n->in[0], lines_axis(p->axis, n->in[0].rank));
    const int64_t last = p->reverse ? (l.length - 1) * l.inner : 0;
    const int64_t step = p->reverse ? -l.inner : l.inner;
    (void)weight;
    for (int64_t i = 0; i < l.outer * l.inner; i++) {
        const int64_t at = lines_start(i, l.length, l.inner) + last;
        if (dense_is_real(n->in[0].dtype))
            cum_reals(p, (double *)out[0] + at, (const double *)in[0] + at, l.length,
                      step);
        else
            cum_whole(p, (int64_t *)out[0] + at, (const int64_t *)in[0] + at, l.length,
                      step);
    }
    for (int64_t i = 0; i < dense_count(&n->out[0]) && !dense_is_real(n->in[0].dtype);
         i++)
        ((int64_t *)out[0])[i] = dense_wrap(n->out[0].dtype, ((int64_t *)out[0])[i]);
    return STRATA_OK;
}

static const void *cum_extension(const char *id)
{
    static const strata_reference_typed reference = {sizeof reference, 0, cum_reference};
    return dense_extension_typed(id, &reference);
}

/* ---- the host's -----------------------------------------------------------------------
 */

struct cum_call {
    const strata_run *run;
    const strata_cum_sum *params;
    struct lines lines;
};

#define CUM_EACH(value)                                                                  \
    if (exclusive)                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                              \
        {                                                                                \
            const float x_i = x[i], last = before[i];                                    \
            a[i] = last value x_i;                                                       \
            y[i] = last;                                                                 \
        }                                                                                \
    else                                                                                 \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = before[i] value x[i];

/* One more element of each column, into y, or where y is what was before into a; y may be
 * x or `before`, and a `before`. */
static inline __attribute__((always_inline)) void
cum_step_of(bool product, bool exclusive, const float *before, float *a, float *y,
            const float *x, int64_t n)
{
    if (product)
        CUM_EACH(*)
    else
        CUM_EACH(+)
}

typedef void cum_step(const strata_cum_sum *p, const float *before, float *a, float *y,
                      const float *x, int64_t n);

#define CUM_STEP(name, target)                                                           \
    target static void cum_step_##name(const strata_cum_sum *p, const float *before,     \
                                       float *a, float *y, const float *x, int64_t n)    \
    {                                                                                    \
        const bool product = p->op == STRATA_CUM_PRODUCT;                                \
        if (p->exclusive)                                                                \
            cum_step_of(product, true, before, a, y, x, n);                              \
        else                                                                             \
            cum_step_of(product, false, before, a, y, x, n);                             \
    }

CUM_STEP(plain, )
#ifdef ELEMENT_X86
CUM_STEP(avx2, __attribute__((target("avx2,fma"))))
CUM_STEP(avx512, ROW_AVX512)
#endif

/* n columns of floats side by side: a step of all, then the next. What was summed is the
 * row that was written, where that is FP32 and nothing is left out. */
static void cum_floats(const struct cum_call *c, int64_t from, int64_t n)
{
    const strata_cum_sum *p = c->params;
    const strata_tensor *in = &c->run->in[0], *out = &c->run->out[0];
    cum_step *step = ROW_BEST(cum_step);
    float a[COLUMNS], buffer[COLUMNS], result[COLUMNS];
    float *spare = p->exclusive ? result : a;
    const float *before = a;
    for (int64_t i = 0; i < n; i++)
        a[i] = p->op == STRATA_CUM_PRODUCT;
    for (int64_t k = 0; k < c->lines.length; k++) {
        const int64_t j = p->reverse ? c->lines.length - 1 - k : k;
        const int64_t at = from + j * c->lines.inner;
        const float *x = walk_load(in, at, 1, n, buffer);
        float *y = walk_target(out, at, 1, spare);
        step(p, before, a, y, x, n);
        walk_stored(out, at, 1, y, spare, n);
        before = p->exclusive ? a : y;
    }
}

/* What is known when the loops over lines are compiled. */
enum way { WAY_PRODUCT = 1, WAY_EXCLUSIVE = 2, WAY_REVERSE = 4 };

typedef float four __attribute__((vector_size(ROWS * sizeof(float))));
typedef double wide __attribute__((vector_size(ROWS * sizeof(double))));
typedef int32_t order __attribute__((vector_size(ROWS * sizeof(int32_t))));

/* Rows to columns, and back. */
static inline __attribute__((always_inline)) void turn(four v[ROWS])
{
    const order low = {0, 4, 1, 5}, high = {2, 6, 3, 7};
    const four a = __builtin_shuffle(v[0], v[2], low);
    const four b = __builtin_shuffle(v[1], v[3], low);
    const four c = __builtin_shuffle(v[0], v[2], high);
    const four d = __builtin_shuffle(v[1], v[3], high);
    v[0] = __builtin_shuffle(a, b, low);
    v[1] = __builtin_shuffle(a, b, high);
    v[2] = __builtin_shuffle(c, d, low);
    v[3] = __builtin_shuffle(c, d, high);
}

/* Up to ROWS columns of as many lines, whose sums do not wait for each other. In FP64,
 * which costs nothing here. */
static inline __attribute__((always_inline)) void
cum_block(int way, wide *sum, float *y, const float *x, int64_t stride, int64_t columns)
{
    const size_t bytes = (size_t)columns * sizeof *x;
    four v[ROWS] = {0};
    for (int r = 0; r < ROWS; r++)
        memcpy(&v[r], x + r * stride, bytes);
    turn(v);
    for (int64_t k = 0; k < columns; k++) {
        four *column = &v[way & WAY_REVERSE ? columns - 1 - k : k];
        const wide value = __builtin_convertvector(*column, wide), before = *sum;
        *sum = way & WAY_PRODUCT ? before * value : before + value;
        *column = __builtin_convertvector(way & WAY_EXCLUSIVE ? before : *sum, four);
    }
    turn(v);
    for (int r = 0; r < ROWS; r++)
        memcpy(y + r * stride, &v[r], bytes);
}

static inline __attribute__((always_inline)) void
cum_rows_of(int way, double *a, float *y, const float *x, int64_t stride, int64_t n)
{
    const int64_t rest = n % ROWS, last = way & WAY_REVERSE ? 0 : n - rest;
    const int64_t first = way & WAY_REVERSE ? n - ROWS : 0;
    const int64_t step = way & WAY_REVERSE ? -ROWS : ROWS;
    wide sum;
    memcpy(&sum, a, sizeof sum);
    for (int64_t k = 0, at = first; k < n / ROWS; k++, at += step)
        cum_block(way, &sum, y + at, x + at, stride, ROWS);
    cum_block(way, &sum, y + last, x + last, stride, rest);
    memcpy(a, &sum, sizeof sum);
}

#define CUM_WAY(w)                                                                       \
    case w:                                                                              \
        cum_rows_of(w, a, y, x, stride, n);                                              \
        break;
#define CUM_ROWS(name, target)                                                           \
    target static void cum_rows_##name(int way, double *a, float *y, const float *x,     \
                                       int64_t stride, int64_t n)                        \
    {                                                                                    \
        switch (way) {                                                                   \
            CUM_WAY(0)                                                                   \
            CUM_WAY(1) CUM_WAY(2) CUM_WAY(3) CUM_WAY(4) CUM_WAY(5) CUM_WAY(6) CUM_WAY(7) \
        }                                                                                \
    }

/* n columns of ROWS lines, `stride` apart; a: what came before of each; y may be x. */
typedef void cum_rows(int way, double *a, float *y, const float *x, int64_t stride,
                      int64_t n);

CUM_ROWS(plain, )
#ifdef ELEMENT_X86
CUM_ROWS(avx2, __attribute__((target("avx2,fma"))))
CUM_ROWS(avx512, ROW_AVX512)
#endif

/* Up to ROWS lines in one piece: all of FP32 where they lie, others in parts that are
 * converted at once. */
static void cum_float_lines(const struct cum_call *c, int64_t line, int64_t rows)
{
    const strata_cum_sum *p = c->params;
    const strata_tensor *in = &c->run->in[0], *out = &c->run->out[0];
    const int way = (p->op == STRATA_CUM_PRODUCT ? WAY_PRODUCT : 0) |
                    (p->exclusive ? WAY_EXCLUSIVE : 0) | (p->reverse ? WAY_REVERSE : 0);
    const int64_t n = c->lines.length;
    cum_rows *run = ROW_BEST(cum_rows);
    double a[ROWS];
    float x[ROWS][COLUMNS];
    for (int64_t r = 0; r < ROWS; r++)
        a[r] = p->op == STRATA_CUM_PRODUCT;
    if (rows == ROWS && in->dtype == STRATA_FP32) {
        run(way, a, (float *)out->data + line * n, (const float *)in->data + line * n, n,
            n);
        return;
    }
    if (rows < ROWS)
        memset(x, 0, sizeof x);
    for (int64_t done = 0, part; done < n; done += part) {
        part = n - done < COLUMNS ? n - done : COLUMNS;
        const int64_t at = line * n + (p->reverse ? n - done - part : done);
        for (int64_t r = 0; r < rows; r++)
            element_load_row(x[r], in->data, in->dtype, at + r * n, 1, part);
        run(way, a, x[0], x[0], COLUMNS, part);
        for (int64_t r = 0; r < rows; r++)
            element_store_row(out->data, out->dtype, at + r * n, 1, x[r], part);
    }
}

static void cum_integer_line(const struct cum_call *c, int64_t from)
{
    const strata_cum_sum *p = c->params;
    const int32_t *x = c->run->in[0].data;
    int32_t *y = c->run->out[0].data;
    uint32_t a = p->op == STRATA_CUM_PRODUCT;
    for (int64_t k = 0; k < c->lines.length; k++) {
        const int64_t j = p->reverse ? c->lines.length - 1 - k : k;
        const int64_t at = from + j * c->lines.inner;
        const uint32_t before = a, value = (uint32_t)x[at];
        a = p->op == STRATA_CUM_PRODUCT ? a * value : a + value;
        y[at] = (int32_t)(p->exclusive ? before : a);
    }
}

/* Columns from the first of `line` on. */
static void cum_columns(const struct cum_call *c, int64_t line, int64_t n)
{
    const strata_cum_sum *p = c->params;
    const struct lines *l = &c->lines;
    const int64_t first = lines_start(line, l->length, l->inner);
    const int64_t last = p->reverse ? (l->length - 1) * l->inner : 0;
    const int64_t step = p->reverse ? -l->inner : l->inner;
    void *y = c->run->out[0].data;
    const void *x = c->run->in[0].data;
    const int32_t dtype = c->run->in[0].dtype;
    if (l->inner > 1 && dense_is_real(dtype) && dtype != STRATA_FP64) {
        cum_floats(c, first, n);
        return;
    }
    if (dense_is_real(dtype) && dtype != STRATA_FP64) {
        cum_float_lines(c, line, n);
        return;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t from = lines_start(line + k, l->length, l->inner);
        if (dtype == STRATA_FP64)
            cum_reals(p, (double *)y + from + last, (const double *)x + from + last,
                      l->length, step);
        else if (dtype == STRATA_INT64)
            cum_whole(p, (int64_t *)y + from + last, (const int64_t *)x + from + last,
                      l->length, step);
        else
            cum_integer_line(c, from);
    }
}

static int64_t threads_now(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Long pieces of memory, and some for each thread. */
static int64_t columns_at_once(int64_t outer, int64_t inner)
{
    const int64_t threads = threads_now();
    const int64_t part = (inner / threads + 63) / 64 * 64;
    return outer >= 2 * threads || part > COLUMNS ? COLUMNS : part > 64 ? part : 64;
}

static int cum_run(const strata_run *r)
{
    struct cum_call c = {.run = r, .params = r->params};
    c.lines = lines_of(&r->in[0], lines_axis(c.params->axis, r->in[0].rank));
    const bool columns = c.lines.inner > 1;
    const int64_t at_once =
        columns ? columns_at_once(c.lines.outer, c.lines.inner) : ROWS;
    const int64_t outer = columns ? c.lines.outer : 1;
    const int64_t inner = columns ? c.lines.inner : c.lines.outer;
    const int64_t spans = (inner + at_once - 1) / at_once;
#pragma omp parallel for schedule(static) if (r->in[0].count >= WALK_PARALLEL)
    for (int64_t i = 0; i < outer * spans; i++) {
        const int64_t first = i % spans * at_once, rest = inner - first;
        cum_columns(&c, i / spans * inner + first, rest < at_once ? rest : at_once);
    }
    return STRATA_OK;
}

/* ---- tables
 * ---------------------------------------------------------------------------- */

static const strata_attr attrs[] = {
    {.name = "op",
     .type = STRATA_ENUM,
     .offset = offsetof(strata_cum_sum, op),
     .choices = "sum|product",
     .doc = "what runs along"},
    {.name = "axis",
     .type = STRATA_I64,
     .offset = offsetof(strata_cum_sum, axis),
     .min = -STRATA_MAX_RANK,
     .max = STRATA_MAX_RANK - 1,
     .doc = "dim along which it runs; negative counts from the end"},
    {.name = "exclusive",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_cum_sum, exclusive),
     .doc = "leave out the element itself"},
    {.name = "reverse",
     .type = STRATA_BOOL,
     .offset = offsetof(strata_cum_sum, reverse),
     .doc = "run from the end"},
};

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |
      STRATA_I32_NCHW | STRATA_I64_NCHW},
     {STRATA_SAME},
     {0},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .flags = STRATA_INPLACE_OK,
     .name = "c",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.1,
     .bandwidth = 0.3,
     .run = cum_run},
};

static const strata_layer cum_sum = {
    .struct_size = sizeof(strata_layer),
    .version = 1,
    .name = "CumSum",
    .doc = "Running sums or products along a dim",
    .min_in = 1,
    .max_in = 1,
    .n_out = 1,
    .params_size = sizeof(strata_cum_sum),
    .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls),
    .shape = cum_shape,
    .flops = cum_flops,
    .extension = cum_extension,
};

static const strata_layer *const layers[] = {&cum_sum};
STRATA_MODULE("core", "1.0.0", "CumSum", layers)
