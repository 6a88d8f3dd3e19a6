/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling by windows of 2x2, 2 apart, without pads: a row of outputs straight from its
 * two rows of inputs, in whole vectors of which the last one may repeat outputs.
 */
#ifndef PLUGINS_POOLING_PAIRS_H
#define PLUGINS_POOLING_PAIRS_H

#include "plugins/pooling/strip.h"

#define POOLING_PAIRS 16 /* outputs made at once */

static inline int pooling_is_pairs(const struct window *w)
{
    int pairs = w->kernel[0] == 1 && w->out[0] == w->in[0] && w->begin[0] == 0 &&
                w->out[2] >= POOLING_PAIRS;
    for (int d = 1; d < WINDOW_DIMS; d++)
        pairs = pairs && w->kernel[d] == 2 && w->stride[d] == 2 && w->dilation[d] == 1 &&
                w->begin[d] == 0 && 2 * w->out[d] <= w->in[d];
    return pairs;
}

/* The rows x and z into y. */
POOLING_INLINE void pooling_pairs_of(int32_t kind, float p, float *restrict y,
                                     const float *restrict x, const float *restrict z)
{
    float sum[2 * POOLING_PAIRS];
    for (int i = 0; i < 2 * POOLING_PAIRS; i++)
        sum[i] = pooling_join(kind, pooling_value(kind, p, x[i]),
                              pooling_value(kind, p, z[i]));
    for (int i = 0; i < POOLING_PAIRS; i++) {
        const float all = pooling_join(kind, sum[2 * i], sum[2 * i + 1]);
        y[i] = kind == STRATA_POOL_MAX       ? all
               : kind == STRATA_POOL_AVERAGE ? all * 0.25f
                                             : sqrtf(all);
    }
}

/* Rows of windows [0, rows) of planes that lie one after the other. */
POOLING_INLINE void pooling_pair_rows(int32_t kind, float p, const struct window *w,
                                      float *out, const float *in, int64_t rows)
{
    const int64_t n = w->out[2], pitch = w->in[2], odd = w->in[1] - 2 * w->out[1];
    for (int64_t i = 0, h = 0; i < rows; i++, out += n, in += 2 * pitch) {
        for (int64_t at = 0; at < n; at += POOLING_PAIRS) {
            const int64_t o = window_min(at, n - POOLING_PAIRS);
            pooling_pairs_of(kind, p, out + o, in + 2 * o, in + pitch + 2 * o);
        }
        if (++h == w->out[1]) {
            h = 0;
            in += odd * pitch;
        }
    }
}

typedef void pooling_run_pairs(const struct pooling *pool, float *out, const float *in,
                               int64_t rows);

#define POOLING_PAIRS_OF(name, target)                                                   \
    target static void pooling_pairs_##name(const struct pooling *pool, float *out,      \
                                            const float *in, int64_t rows)               \
    {                                                                                    \
        const struct window *w = &pool->w;                                               \
        if (pool->kind == STRATA_POOL_MAX)                                               \
            pooling_pair_rows(STRATA_POOL_MAX, 0, w, out, in, rows);                     \
        else if (pool->kind == STRATA_POOL_AVERAGE)                                      \
            pooling_pair_rows(STRATA_POOL_AVERAGE, 0, w, out, in, rows);                 \
        else                                                                             \
            pooling_pair_rows(STRATA_POOL_LP, 2, w, out, in, rows);                      \
    }

POOLING_PAIRS_OF(plain, )
#ifdef ELEMENT_X86
POOLING_PAIRS_OF(avx2, __attribute__((target("avx2,fma"))))
POOLING_PAIRS_OF(avx512, ROW_AVX512)
#endif

#endif /* PLUGINS_POOLING_PAIRS_H */
