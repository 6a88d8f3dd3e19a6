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

typedef float vector __attribute__((vector_size(RNN_LANES * 4)));
#define UNROLL _Pragma("GCC unroll 8")

/* Gate g of a panel at k = i. Pairs of gates lie apart, so that what is read at once is
 * one stream. */
ROW_INLINE const float *weight_at(const float *panel, const int g, const int gates,
                                  int64_t k, int64_t i)
{
    const int width = gates - g / 2 * 2 > 1 ? 2 : 1;
    return panel + (g / 2 * 2 * k + i * width + g % 2) * RNN_LANES;
}

/* Gates [first, first + n) of `stride`. One row alone goes along k in several streams, as
 * a sum waits for the one before it. */
ROW_INLINE void sum_some(float *sum, const float *const *a, int64_t k, const float *panel,
                         const int rows, const int gates, const int first, const int n,
                         const int skipped, const int stride)
{
    const int streams = rows > 1 ? 1 : n > 2 ? 2 : 4, from = skipped + first;
    vector part[RNN_ROWS][4] = {{{0}}}; /* a row or a stream each */
    int64_t i = 0;
    for (; i + streams <= k; i += streams)
        UNROLL for (int s = 0; s < streams; s++) UNROLL for (int g = 0; g < n; g++)
        {
            vector x;
            memcpy(&x, weight_at(panel, from + g, stride, k, i + s), sizeof x);
            UNROLL for (int m = 0; m < rows; m++) part[m + s][g] += a[m][i + s] * x;
        }
    for (; i < k; i++)
        UNROLL for (int g = 0; g < n; g++)
        {
            vector x;
            memcpy(&x, weight_at(panel, from + g, stride, k, i), sizeof x);
            part[0][g] += a[0][i] * x;
        }
    UNROLL for (int s = 1; s < streams; s++) UNROLL for (int g = 0; g < n; g++)
        part[0][g] += part[s][g];
    UNROLL for (int m = 0; m < rows; m++) UNROLL for (int g = 0; g < n; g++)
        memcpy(sum + (m * gates + first + g) * RNN_LANES, &part[m][g], sizeof(vector));
}

/* All gates but the `skipped` first of `stride`, so many at a time as registers hold. */
ROW_INLINE void sum_of(float *sum, const float *const *a, int64_t k, const float *panel,
                       const int rows, const int gates, const int skipped,
                       const int stride, const int registers)
{
    const int fit = registers / rows, step = fit < 1 ? 1 : fit < 4 ? fit : 4;
    UNROLL for (int g = 0; g < gates; g += step)
        sum_some(sum, a, k, panel, rows, gates, g, gates - g < step ? gates - g : step,
                 skipped, stride);
}

/* Sums that registers hold beside operands. */
enum { registers_plain = 3, registers_avx2 = 6, registers_avx512 = 16 };

#define SUM(kind, target, rows, name, gates, skipped, stride)                            \
    target static void name##_##rows##_##kind(float *sum, const float *const *a,         \
                                              int64_t k, const float *panel)             \
    {                                                                                    \
        sum_of(sum, a, k, panel, rows, gates, skipped, stride, registers_##kind);        \
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

#define CODE(kind, target)                                                               \
    SUMS(kind, target, 1)                                                                \
    SUMS(kind, target, 2)                                                                \
    SUMS(kind, target, 4)                                                                \
    SUMS(kind, target, 8)                                                                \
    target static void lstm_##kind(const struct rnn_rule *r, float *z, const float *p,   \
                                   float *c, float *h)                                   \
    {                                                                                    \
        cell_lstm(r, z, RNN_LANES, p, RNN_LANES, c, h, RNN_LANES);                       \
    }                                                                                    \
    target static void gru_gates_##kind(const struct rnn_rule *r, float *z)              \
    {                                                                                    \
        cell_gru_gates(r, z, RNN_LANES, RNN_LANES);                                      \
    }                                                                                    \
    target static void gru_##kind(const struct rnn_rule *r, float *z,                    \
                                  const float *after, const float *old, float *h)        \
    {                                                                                    \
        cell_gru(r, z, RNN_LANES, after, old, h, RNN_LANES);                             \
    }                                                                                    \
    target static void simple_##kind(const struct rnn_rule *r, float *z, float *h)       \
    {                                                                                    \
        cell_simple(r, z, h, RNN_LANES);                                                 \
    }                                                                                    \
    static const struct rnn_code code_##kind = {                                         \
        {SUM_ENTRIES(kind, 1), SUM_ENTRIES(kind, 2), SUM_ENTRIES(kind, 4),               \
         SUM_ENTRIES(kind, 8)},                                                          \
        lstm_##kind,                                                                     \
        gru_gates_##kind,                                                                \
        gru_##kind,                                                                      \
        simple_##kind};

CODE(plain, )
#ifdef ELEMENT_X86
CODE(avx2, __attribute__((target("avx2,fma"))))
CODE(avx512, ROW_AVX512)
#endif

const struct rnn_code *rnn_code_choose(void)
{
    return ROW_BEST(code);
}
