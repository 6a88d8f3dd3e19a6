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
    const struct bounds in_exp = EXP_BOUNDS, in_tanh = TANH_BOUNDS;
    if (f->kind == STRATA_SIGMOID)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] = sigmoid_float(x[i], in_exp);
    else if (f->kind == STRATA_TANH)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            x[i] = tanh_float(x[i], in_tanh);
    else
        element_activate_row(f->kind, f->alpha, f->beta, x, n);
}
#include "plugins/rnn/cell.h"
#ifdef ELEMENT_X86
#include "plugins/rnn/cell_avx512.h"
#endif

#define UNROLL _Pragma("GCC unroll 16")
#define AHEAD 256 /* floats that are asked for before their turn: R may be behind L2 */

#define SUMS_WIDTH 4
#define SUMS_NAME(name) name##_plain
#define SUMS_TARGET
#define SUMS_WIDEN(to, from)                                                             \
    UNROLL for (int lane = 0; lane < SUMS_WIDTH; lane++)(to)[lane] = (from)[lane]
#include "plugins/rnn/sums.h"
#undef SUMS_WIDTH
#undef SUMS_NAME
#undef SUMS_TARGET
#undef SUMS_WIDEN
#ifdef ELEMENT_X86
#define AVX2 __attribute__((target("avx2,fma")))
#define SUMS_WIDTH 8
#define SUMS_NAME(name) name##_avx2
#define SUMS_TARGET AVX2
#define SUMS_WIDEN(to, from)                                                             \
    (to) = (integers_avx2)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(from)))
#include "plugins/rnn/sums.h"
#undef SUMS_WIDTH
#undef SUMS_NAME
#undef SUMS_TARGET
#undef SUMS_WIDEN
#define SUMS_WIDTH 16
#define SUMS_NAME(name) name##_avx512
#define SUMS_TARGET ROW_AVX512
#define SUMS_WIDEN(to, from)                                                             \
    (to) = (integers_avx512)_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)(from)))
#include "plugins/rnn/sums.h"
#undef SUMS_WIDTH
#undef SUMS_NAME
#undef SUMS_TARGET
#undef SUMS_WIDEN
#endif

/* Rows at once, and sums that registers hold beside operands. */
enum { rows_plain = 4, registers_plain = 8 };
enum { rows_avx2 = 4, registers_avx2 = 8 };
enum { rows_avx512 = 8, registers_avx512 = 16 };

#define SUM_OF(kind, target, rows, name, gates, skipped, stride, what, steps)            \
    target static void name##_##rows##_##what##_##kind(const struct rnn_sums *s,         \
                                                       int64_t k, const void *panel)     \
    {                                                                                    \
        sum_of_##kind(s, k, panel, rows, gates, skipped, stride, rows_##kind,            \
                      registers_##kind, steps);                                          \
    }
#define SUM(kind, target, rows, name, gates, skipped, stride)                            \
    SUM_OF(kind, target, rows, name, gates, skipped, stride, floats, 0)                  \
    SUM_OF(kind, target, rows, name, gates, skipped, stride, bytes, 1)
#define SUMS(kind, target, rows)                                                         \
    SUM(kind, target, rows, one, 1, 0, 1)                                                \
    SUM(kind, target, rows, three, 3, 0, 3)                                              \
    SUM(kind, target, rows, four, 4, 0, 4)                                               \
    SUM(kind, target, rows, first_two, 2, 0, 3)                                          \
    SUM(kind, target, rows, last, 1, 2, 3)
#define SUM_ENTRIES(kind, rows, what)                                                    \
    {                                                                                    \
        one_##rows##_##what##_##kind, three_##rows##_##what##_##kind,                    \
            four_##rows##_##what##_##kind, first_two_##rows##_##what##_##kind,           \
            last_##rows##_##what##_##kind                                                \
    }
#define SUM_TABLE(kind, what)                                                            \
    {                                                                                    \
        SUM_ENTRIES(kind, 1, what), SUM_ENTRIES(kind, 2, what),                          \
            SUM_ENTRIES(kind, 4, what), SUM_ENTRIES(kind, 8, what)                       \
    }

/* Peepholes are of one row's lanes, so then the rows go one by one. */
ROW_INLINE void lstm_rows(const struct rnn_rule *r, float *z, int64_t apart,
                          const float *p, float *c, float *h, int64_t n)
{
    const int64_t step = p ? RNN_LANES : n;
    for (int64_t i = 0; i < n; i += step)
        cell_lstm(r, z + i, apart, p, RNN_LANES, c + i, h + i, step);
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
            copy_lanes_##kind(to + m * RNN_LANES, x + place[m]);                         \
    }                                                                                    \
    target static void scatter_##kind(float *x, const int64_t *place, const float *from, \
                                      int rows)                                          \
    {                                                                                    \
        for (int m = 0; m < rows; m++)                                                   \
            copy_lanes_##kind(x + place[m], from + m * RNN_LANES);                       \
    }

#define CODE(kind, target, cells)                                                        \
    SUMS(kind, target, 1)                                                                \
    SUMS(kind, target, 2)                                                                \
    SUMS(kind, target, 4)                                                                \
    SUMS(kind, target, 8)                                                                \
    static const struct rnn_code code_##kind = {                                         \
        {SUM_TABLE(kind, floats), SUM_TABLE(kind, bytes)},                               \
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
CELLS(avx2, AVX2)
CODE(avx2, AVX2, avx2)
CODE(avx512, ROW_AVX512, own)
#endif

const struct rnn_code *rnn_code_choose(void)
{
    return ROW_BEST(code);
}
