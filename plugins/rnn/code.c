/* SPDX-License-Identifier: Apache-2.0
 *
 * One source, compiled for each kind of vectors.
 */
#include "plugins/rnn/code.h"

#include "plugins/common/pointwise/functions.h"
#include "plugins/common/pointwise/row.h"

#define CELL_REAL float
#define CELL_FUNCTION ROW_INLINE
CELL_FUNCTION void cell_activate(const strata_activation *f, float *x, int64_t n)
{
    if (f->kind == STRATA_SIGMOID)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] = sigmoid_float(x[i]);
    else if (f->kind == STRATA_TANH)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] = tanh_float(x[i]);
    else
        element_activate_row(f->kind, f->alpha, f->beta, x, n);
}
#include "plugins/rnn/cell.h"
#ifdef ELEMENT_X86
#include "plugins/rnn/cell_avx512.h"
#endif

typedef float vector __attribute__((vector_size(RNN_LANES * 4)));
#define UNROLL _Pragma("GCC unroll 8")
#define AHEAD 256 /* floats that are asked for before their turn: R may be behind L2 */

/* Gate g of a panel at k = i. Pairs of gates lie apart, so that what is read at once is
 * one stream. */
ROW_INLINE const float *weight_at(const float *panel, const int g, const int gates,
                                  int64_t k, int64_t i)
{
    const int width = gates - g / 2 * 2 > 1 ? 2 : 1;
    return panel + (g / 2 * 2 * k + i * width + g % 2) * RNN_LANES;
}

/* Where gate g of the sums of row m begins, and goes. */
ROW_INLINE const float *start_of(const struct rnn_sums *s, const int m, const int g,
                                 const int gates)
{
    return s->own && g == gates - 1 ? s->own : s->start[m] + g * RNN_LANES;
}

ROW_INLINE float *place_of(const struct rnn_sums *s, const int m, const int g,
                           const int gates)
{
    return s->sum[m] + (s->own && g == gates - 1 ? gates : g) * s->gate;
}

/* Gates [first, first + n) of `stride`. One row alone goes along k in several streams, as
 * a sum waits for the one before it. */
ROW_INLINE void sum_some(const struct rnn_sums *s, int64_t k, const float *panel,
                         const int rows, const int gates, const int first, const int n,
                         const int skipped, const int stride)
{
    const int streams = rows > 1 ? 1 : n > 2 ? 2 : 4, from = skipped + first;
    vector part[RNN_ROWS][4] = {{{0}}}; /* a row or a stream each */
    const float *a[RNN_ROWS];
    int64_t i = 0;
    UNROLL for (int m = 0; m < rows; m++)
    {
        a[m] = s->a[m];
        UNROLL for (int g = 0; g < n; g++)
            memcpy(&part[m][g], start_of(s, m, first + g, gates), sizeof(vector));
    }
    for (; i + streams <= k; i += streams)
        UNROLL for (int t = 0; t < streams; t++) UNROLL for (int g = 0; g < n; g++)
        {
            vector x;
            memcpy(&x, weight_at(panel, from + g, stride, k, i + t), sizeof x);
            if (rows >= 4) /* a row alone has no room for it between its loads */
                __builtin_prefetch(weight_at(panel, from + g, stride, k, i + t) + AHEAD);
            UNROLL for (int m = 0; m < rows; m++) part[m + t][g] += a[m][i + t] * x;
        }
    for (; i < k; i++)
        UNROLL for (int g = 0; g < n; g++)
        {
            vector x;
            memcpy(&x, weight_at(panel, from + g, stride, k, i), sizeof x);
            part[0][g] += a[0][i] * x;
        }
    UNROLL for (int t = 1; t < streams; t++) UNROLL for (int g = 0; g < n; g++)
        part[0][g] += part[t][g];
    UNROLL for (int m = 0; m < rows; m++) UNROLL for (int g = 0; g < n; g++)
        memcpy(place_of(s, m, first + g, gates), &part[m][g], sizeof(vector));
}

/* All gates but the `skipped` first of `stride`, so many at a time as registers hold. */
ROW_INLINE void sum_of(const struct rnn_sums *s, int64_t k, const float *panel,
                       const int rows, const int gates, const int skipped,
                       const int stride, const int registers)
{
    const int fit = registers / rows, step = fit < 1 ? 1 : fit < 4 ? fit : 4;
    UNROLL for (int g = 0; g < gates; g += step)
        sum_some(s, k, panel, rows, gates, g, gates - g < step ? gates - g : step, skipped,
                 stride);
}

/* Sums that registers hold beside operands. */
enum { registers_plain = 3, registers_avx2 = 6, registers_avx512 = 16 };

#define SUM(kind, target, rows, name, gates, skipped, stride)                            \
    target static void name##_##rows##_##kind(const struct rnn_sums *s, int64_t k,       \
                                              const float *panel)                        \
    {                                                                                    \
        sum_of(s, k, panel, rows, gates, skipped, stride, registers_##kind);             \
    }
#define SUMS(kind, target, rows)                                                         \
    SUM(kind, target, rows, one, 1, 0, 1)                                                \
    SUM(kind, target, rows, three, 3, 0, 3)                                              \
    SUM(kind, target, rows, four, 4, 0, 4)                                               \
    SUM(kind, target, rows, first_two, 2, 0, 3)                                          \
    SUM(kind, target, rows, last, 1, 2, 3)
#define SUM_ENTRIES(kind, rows)                                                          \
    {                                                                                    \
        one_##rows##_##kind, three_##rows##_##kind, four_##rows##_##kind,                \
            first_two_##rows##_##kind, last_##rows##_##kind                              \
    }

/* Peepholes are of one row's lanes, so then the rows go one by one. */
ROW_INLINE void lstm_rows(const struct rnn_rule *r, float *z, int64_t apart,
                          const float *p, float *c, float *h, int64_t n)
{
    const int64_t step = p ? RNN_LANES : n;
    for (int64_t i = 0; i < n; i += step)
        cell_lstm(r, z + i, apart, p, RNN_LANES, c + i, h + i, step);
}

ROW_INLINE void copy_lanes(float *to, const float *from)
{
    vector x;
    memcpy(&x, from, sizeof x);
    memcpy(to, &x, sizeof x);
}

#define CELLS(kind, target)                                                              \
    target static void lstm_##kind(const struct rnn_rule *r, float *z, int64_t apart,    \
                                   const float *p, float *c, float *h, int64_t n)        \
    {                                                                                    \
        lstm_rows(r, z, apart, p, c, h, n);                                              \
    }                                                                                    \
    target static void gru_gates_##kind(const struct rnn_rule *r, float *z,              \
                                        int64_t apart, int64_t n)                        \
    {                                                                                    \
        cell_gru_gates(r, z, apart, n);                                                  \
    }                                                                                    \
    target static void gru_##kind(const struct rnn_rule *r, float *z, int64_t apart,     \
                                  const float *after, const float *old, float *h,        \
                                  int64_t n)                                             \
    {                                                                                    \
        cell_gru(r, z, apart, after, old, h, n);                                         \
    }                                                                                    \
    target static void simple_##kind(const struct rnn_rule *r, float *z, float *h,       \
                                     int64_t n)                                          \
    {                                                                                    \
        cell_simple(r, z, h, n);                                                         \
    }                                                                                    \
    target static void gather_##kind(float *to, const float *x, const int64_t *place,    \
                                     int rows)                                           \
    {                                                                                    \
        for (int m = 0; m < rows; m++)                                                   \
            copy_lanes(to + m * RNN_LANES, x + place[m]);                                \
    }                                                                                    \
    target static void scatter_##kind(float *x, const int64_t *place, const float *from, \
                                      int rows)                                          \
    {                                                                                    \
        for (int m = 0; m < rows; m++)                                                   \
            copy_lanes(x + place[m], from + m * RNN_LANES);                              \
    }

#define CODE(kind, target, cells)                                                        \
    SUMS(kind, target, 1)                                                                \
    SUMS(kind, target, 2)                                                                \
    SUMS(kind, target, 4)                                                                \
    SUMS(kind, target, 8)                                                                \
    static const struct rnn_code code_##kind = {                                         \
        {SUM_ENTRIES(kind, 1), SUM_ENTRIES(kind, 2), SUM_ENTRIES(kind, 4),               \
         SUM_ENTRIES(kind, 8)},                                                          \
        lstm_##cells,                                                                    \
        gru_gates_##cells,                                                               \
        gru_##cells,                                                                     \
        simple_##kind,                                                                   \
        gather_##kind,                                                                   \
        scatter_##kind};

#ifdef ELEMENT_X86
CELLS(avx512, ROW_AVX512)

/* Whether activations take sums as they are, and are the op's own. */
static int is_own(const struct rnn_rule *r)
{
    return !r->custom && !r->clips && !r->coupled;
}

ROW_AVX512 static void lstm_own(const struct rnn_rule *r, float *z, int64_t apart,
                                const float *p, float *c, float *h, int64_t n)
{
    if (is_own(r) && !p)
        cell_own_lstm(z, apart, c, h, n);
    else
        lstm_avx512(r, z, apart, p, c, h, n);
}

ROW_AVX512 static void gru_gates_own(const struct rnn_rule *r, float *z, int64_t apart,
                                     int64_t n)
{
    if (is_own(r))
        cell_own_gates(z, apart, n);
    else
        gru_gates_avx512(r, z, apart, n);
}

ROW_AVX512 static void gru_own(const struct rnn_rule *r, float *z, int64_t apart,
                               const float *after, const float *old, float *h, int64_t n)
{
    if (is_own(r))
        cell_own_gru(z, apart, after, old, h, n);
    else
        gru_avx512(r, z, apart, after, old, h, n);
}
#endif

CELLS(plain, )
CODE(plain, , plain)
#ifdef ELEMENT_X86
CELLS(avx2, __attribute__((target("avx2,fma"))))
CODE(avx2, __attribute__((target("avx2,fma"))), avx2)
CODE(avx512, ROW_AVX512, own)
#endif

const struct rnn_code *rnn_code_choose(void)
{
    return ROW_BEST(code);
}
