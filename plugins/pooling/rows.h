/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling of FP32: one element of the window folded into rows of outputs, in the vectors
 * of the processor at hand.
 */
#ifndef PLUGINS_POOLING_ROWS_H
#define PLUGINS_POOLING_ROWS_H

#include "plugins/common/pointwise/row.h"
#include "plugins/common/window.h"

struct pooling {
    struct window w;
    int32_t kind, count_include_pad;
    float p; /* of lp */
};

/* Rows of n outputs, `y_step` apart, and what they see: every stride-th element of rows
 * `x_step` apart. */
struct pooling_rows {
    int64_t rows, n, stride, y_step, x_step;
};

#define POOLING_INLINE __attribute__((always_inline)) static inline

POOLING_INLINE float pooling_larger(float a, float x)
{
    return x > a || x != x ? x : a; /* a NaN that was found stays */
}

/* |x|^p */
POOLING_INLINE float pooling_power(float x, float p)
{
    return p == 2 ? x * x : p == 1 ? fabsf(x) : powf(fabsf(x), p);
}

POOLING_INLINE float pooling_fold(int32_t kind, float p, float a, float x)
{
    return kind == STRATA_POOL_MAX       ? pooling_larger(a, x)
           : kind == STRATA_POOL_AVERAGE ? a + x
                                         : a + pooling_power(x, p);
}

/* kind, and p where it matters, are constants here, so that the loops are vector code. */
POOLING_INLINE void pooling_fold_row(int32_t kind, float p, float *restrict y,
                                     const float *restrict x, int64_t stride, int64_t n)
{
    if (stride == 1)
        for (int64_t i = 0; i < n; i++)
            y[i] = pooling_fold(kind, p, y[i], x[i]);
    else if (stride == 2)
        for (int64_t i = 0; i < n; i++)
            y[i] = pooling_fold(kind, p, y[i], x[2 * i]);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = pooling_fold(kind, p, y[i], x[i * stride]);
}

POOLING_INLINE void pooling_fold_rows(int32_t kind, float p, float *y, const float *x,
                                      const struct pooling_rows *r)
{
    for (int64_t i = 0; i < r->rows; i++)
        pooling_fold_row(kind, p, y + i * r->y_step, x + i * r->x_step, r->stride, r->n);
}

POOLING_INLINE void pooling_rows_of(const struct pooling *pool, float *y, const float *x,
                                    const struct pooling_rows *r)
{
    if (pool->kind == STRATA_POOL_MAX)
        pooling_fold_rows(STRATA_POOL_MAX, 0, y, x, r);
    else if (pool->kind == STRATA_POOL_AVERAGE)
        pooling_fold_rows(STRATA_POOL_AVERAGE, 0, y, x, r);
    else if (pool->p == 2)
        pooling_fold_rows(STRATA_POOL_LP, 2, y, x, r);
    else if (pool->p == 1)
        pooling_fold_rows(STRATA_POOL_LP, 1, y, x, r);
    else
        pooling_fold_rows(STRATA_POOL_LP, pool->p, y, x, r);
}

#define POOLING_ROWS(name, target)                                                       \
    target static void pooling_rows_##name(const struct pooling *pool, float *y,         \
                                           const float *x, const struct pooling_rows *r) \
    {                                                                                    \
        pooling_rows_of(pool, y, x, r);                                                  \
    }

POOLING_ROWS(plain, )
#ifdef ELEMENT_X86
POOLING_ROWS(avx2, __attribute__((target("avx2,fma"))))
POOLING_ROWS(avx512, ROW_AVX512)
#endif

typedef void pooling_run_rows(const struct pooling *pool, float *y, const float *x,
                              const struct pooling_rows *r);

#endif /* PLUGINS_POOLING_ROWS_H */
