/* SPDX-License-Identifier: Apache-2.0
 *
 * One source of the rows, compiled for each kind of vectors.
 */
#include "plugins/softmax/rows.h"

#include "plugins/common/pointwise/functions.h"
#include "plugins/common/pointwise/row.h"

/* Of a line: as many partial results, folded at its end. With more of powers than two
 * registers hold of AVX2, each goes through memory: 20 cycles for 8 of them, not 17. */
#define LANES 64
#define POWER_LANES 16

ROW_INLINE float larger(float a, float x)
{
    return x > a ? x : a;
}

/* Lanes to one: k first ones take the k behind them. */
#define FOLD(k, join)                                                                    \
    _Pragma("omp simd") for (int i = 0; i < (k); i++) lane[i] =                          \
        join(lane[i], lane[i + (k)]);
#define FOLD_16(join) FOLD(8, join) FOLD(4, join) FOLD(2, join) FOLD(1, join)
#define FOLD_ALL(join) FOLD(32, join) FOLD(16, join) FOLD_16(join)

ROW_INLINE float total(float a, float x)
{
    return a + x;
}

ROW_INLINE float line_maximum(const float *x, int64_t n)
{
    float lane[LANES], result = -INFINITY;
    const int64_t whole = n / LANES * LANES;
    for (int i = 0; i < LANES; i++)
        lane[i] = -INFINITY;
    for (int64_t at = 0; at < whole; at += LANES)
#pragma omp simd
        for (int i = 0; i < LANES; i++)
            lane[i] = larger(lane[i], x[at + i]);
    for (int64_t i = whole; i < n; i++)
        result = larger(result, x[i]);
    FOLD_ALL(larger)
    return larger(result, lane[0]);
}

/* The sum of exp(x - maximum); the powers go to y where that is not NULL. */
ROW_INLINE float line_powers(float *y, const float *x, float maximum, int64_t n)
{
    const struct bounds bounds = EXP_BOUNDS;
    float lane[POWER_LANES] = {0}, sum = 0;
    const int64_t whole = n / POWER_LANES * POWER_LANES;
    for (int64_t at = 0; at < whole; at += POWER_LANES)
#pragma omp simd
        for (int i = 0; i < POWER_LANES; i++) {
            const float power = exp_of_sum(x[at + i] - maximum, bounds);
            lane[i] += power;
            if (y)
                y[at + i] = power;
        }
    for (int64_t i = whole; i < n; i++) {
        const float power = exp_of_sum(x[i] - maximum, bounds);
        sum += power;
        if (y)
            y[i] = power;
    }
    FOLD_16(total)
    return sum + lane[0];
}

ROW_INLINE void line_of(float *y, const float *x, int64_t n, int logarithm)
{
    const float maximum = line_maximum(x, n);
    if (logarithm) {
        const float sum = logf(line_powers(NULL, x, maximum, n));
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - maximum - sum;
        return;
    }
    const float factor = 1 / line_powers(y, x, maximum, n);
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

ROW_INLINE void maximum_of(float *maximum, const float *x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        maximum[i] = larger(maximum[i], x[i]);
}

ROW_INLINE void sum_of(float *sum, const float *x, const float *maximum, int64_t n)
{
    const struct bounds bounds = EXP_BOUNDS;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        sum[i] += exp_of_sum(x[i] - maximum[i], bounds);
}

ROW_INLINE void result_of(float *y, const float *x, const float *maximum,
                          const float *factor, int64_t n, int logarithm)
{
    const struct bounds bounds = EXP_BOUNDS;
    if (logarithm)
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] - maximum[i] - factor[i];
    else
#pragma omp simd
        for (int64_t i = 0; i < n; i++)
            y[i] = exp_of_sum(x[i] - maximum[i], bounds) * factor[i];
}

#define ROWS(name, target)                                                               \
    target static void line_##name(float *y, const float *x, int64_t n, int logarithm)   \
    {                                                                                    \
        line_of(y, x, n, logarithm);                                                     \
    }                                                                                    \
    target static void maximum_##name(float *maximum, const float *x, int64_t n)         \
    {                                                                                    \
        maximum_of(maximum, x, n);                                                       \
    }                                                                                    \
    target static void sum_##name(float *sum, const float *x, const float *maximum,      \
                                  int64_t n)                                             \
    {                                                                                    \
        sum_of(sum, x, maximum, n);                                                      \
    }                                                                                    \
    target static void result_##name(float *y, const float *x, const float *maximum,     \
                                     const float *factor, int64_t n, int logarithm)      \
    {                                                                                    \
        result_of(y, x, maximum, factor, n, logarithm);                                  \
    }                                                                                    \
    static const struct softmax_rows rows_##name = {line_##name, maximum_##name,         \
                                                    sum_##name, result_##name};

ROWS(plain, )
#ifdef ELEMENT_X86
ROWS(avx2, __attribute__((target("avx2,fma"))))
ROWS(avx512, ROW_AVX512)
#endif

const struct softmax_rows *softmax_rows_choose(void)
{
    return ROW_BEST(rows);
}
