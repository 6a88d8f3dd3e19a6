/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling by windows of 3x3, 2 apart, with at most one element of pad at the begin, on
 * x86: a row of outputs straight from its three rows of inputs, in whole vectors of which
 * the last one may repeat outputs. Columns are joined first; of two vectors of them the
 * even ones are the middles of windows and the odd ones their ends, which are the begins
 * of the windows behind.
 */
#ifndef PLUGINS_POOLING_TRIPLES_H
#define PLUGINS_POOLING_TRIPLES_H

#include "plugins/pooling/strip.h"

#ifdef ELEMENT_X86
#include <immintrin.h>

/* Outputs of a row before those whose last columns are pads. */
static inline int64_t pooling_triples_whole(const struct window *w)
{
    return window_min((w->in[2] + w->begin[2] - 1) / 2, w->out[2]);
}

static inline int pooling_is_triples(const struct window *w, int64_t lanes)
{
    int triples = w->kernel[0] == 1 && w->out[0] == w->in[0] && w->begin[0] == 0 &&
                  w->in[2] <= POOLING_FOLDED && pooling_triples_whole(w) >= lanes;
    for (int d = 1; d < WINDOW_DIMS; d++)
        triples = triples && w->kernel[d] == 3 && w->stride[d] == 2 &&
                  w->dilation[d] == 1 && w->begin[d] >= 0 && w->begin[d] <= 1;
    return triples;
}

/* A row of outputs: its three rows of inputs, pads among them, and what an average is
 * multiplied by. */
struct pooling_triple {
    const float *row[3];
    float share, share_first; /* of output 0 */
};

/* Of what is counted, if anything is. */
POOLING_INLINE float pooling_share(int64_t count)
{
    return count > 0 ? 1 / (float)count : 0;
}

/* Output o, some of whose last columns are pads. */
POOLING_INLINE float pooling_triple_edge(int32_t kind, float p,
                                         const struct pooling *pool,
                                         const struct pooling_triple *t, int64_t o)
{
    const struct window *w = &pool->w;
    const int64_t at = 2 * o - w->begin[2];
    float all = pooling_none(kind);
    for (int64_t i = window_max(at, 0); i < window_min(at + 3, w->in[2]); i++)
        for (int k = 0; k < 3; k++)
            all = pooling_join(kind, all, pooling_value(kind, p, t->row[k][i]));
    return kind == STRATA_POOL_MAX ? all
           : kind == STRATA_POOL_AVERAGE
               ? all * 3 * t->share * pooling_share(pooling_counted(pool, 2, o))
               : sqrtf(all);
}

/* The rows that output row h sees; none: a row of what pads count as. */
POOLING_INLINE struct pooling_triple pooling_triple_at(int32_t kind,
                                                       const struct pooling *pool,
                                                       const float *in, const float *none,
                                                       int64_t h)
{
    const struct window *w = &pool->w;
    struct pooling_triple t = {.share = 0};
    for (int64_t k = 0; k < 3; k++) {
        const int64_t at = 2 * h - w->begin[1] + k;
        t.row[k] = at >= 0 && at < w->in[1] ? in + at * w->in[2] : none;
    }
    if (kind == STRATA_POOL_AVERAGE) {
        t.share = pooling_share(pooling_counted(pool, 1, h)) / 3;
        t.share_first = 3 * t.share * pooling_share(pooling_counted(pool, 2, 0));
    }
    return t;
}

/* ---- vectors ----------------------------------------------------------------------- */

#define POOLING_512 ROW_AVX512 __attribute__((always_inline)) static inline
#define POOLING_256 __attribute__((target("avx2,fma"), always_inline)) static inline

/* As pooling_larger: of two numbers the instruction gives the second where one is NaN. */
POOLING_512 __m512 pooling_larger_512(__m512 a, __m512 x)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_mov_ps(_mm512_max_ps(x, a), nan, x);
}

POOLING_256 __m256 pooling_larger_256(__m256 a, __m256 x)
{
    return _mm256_blendv_ps(_mm256_max_ps(x, a), x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

/* Every second element of a and b, from the first or the second one on. */
POOLING_512 __m512 pooling_half_512(__m512 a, __m512 b, int odd)
{
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(a, _mm512_add_epi32(even, _mm512_set1_epi32(odd)), b);
}

POOLING_256 __m256 pooling_half_256(__m256 a, __m256 b, int odd)
{
    const __m256 mixed =
        odd ? _mm256_shuffle_ps(a, b, 0xdd) : _mm256_shuffle_ps(a, b, 0x88);
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}

/* x moved up by a place, behind the last one of `before`. */
POOLING_512 __m512 pooling_behind_512(__m512 before, __m512 x)
{
    return _mm512_castsi512_ps(
        _mm512_alignr_epi32(_mm512_castps_si512(x), _mm512_castps_si512(before), 15));
}

POOLING_256 __m256 pooling_behind_256(__m256 before, __m256 x)
{
    const __m256i up = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
    return _mm256_blend_ps(_mm256_permutevar8x32_ps(x, up),
                           _mm256_permutevar8x32_ps(before, up), 1);
}

/* The functions of both widths; p of lp is 2. */
#define POOLING_TRIPLES(bits, lanes)                                                     \
    POOLING_##bits __m##bits pooling_value_##bits(int32_t kind, __m##bits x)             \
    {                                                                                    \
        return kind == STRATA_POOL_LP ? _mm##bits##_mul_ps(x, x) : x;                    \
    }                                                                                    \
    POOLING_##bits __m##bits pooling_join_##bits(int32_t kind, __m##bits a, __m##bits x) \
    {                                                                                    \
        return kind == STRATA_POOL_MAX ? pooling_larger_##bits(a, x)                     \
                                       : _mm##bits##_add_ps(a, x);                       \
    }                                                                                    \
    POOLING_##bits __m##bits pooling_three_##bits(int32_t kind, __m##bits x,             \
                                                  __m##bits y, __m##bits z)              \
    {                                                                                    \
        x = pooling_join_##bits(kind, pooling_value_##bits(kind, x),                     \
                                pooling_value_##bits(kind, y));                          \
        return pooling_join_##bits(kind, x, pooling_value_##bits(kind, z));              \
    }                                                                                    \
    /* As many columns as a vector has, from column i on. */                             \
    POOLING_##bits __m##bits pooling_columns_##bits(                                     \
        int32_t kind, const struct pooling_triple *t, int64_t i)                         \
    {                                                                                    \
        return pooling_three_##bits(kind, _mm##bits##_loadu_ps(t->row[0] + i),           \
                                    _mm##bits##_loadu_ps(t->row[1] + i),                 \
                                    _mm##bits##_loadu_ps(t->row[2] + i));                \
    }                                                                                    \
    /* Outputs from o on, which see column `at` first; a pad, if it is -1. */            \
    POOLING_##bits void pooling_triples_of_##bits(                                       \
        int32_t kind, float *y, const struct pooling_triple *t, int64_t at)              \
    {                                                                                    \
        const __m##bits a = pooling_columns_##bits(kind, t, at + 1);                     \
        const __m##bits b = pooling_columns_##bits(kind, t, at + 1 + (lanes));           \
        const __m##bits middle = pooling_half_##bits(a, b, 0);                           \
        const __m##bits end = pooling_half_##bits(a, b, 1);                              \
        __m##bits begin = _mm##bits##_set1_ps(pooling_none(kind));                       \
        if (at >= 0)                                                                     \
            begin = pooling_three_##bits(kind, _mm##bits##_set1_ps(t->row[0][at]),       \
                                         _mm##bits##_set1_ps(t->row[1][at]),             \
                                         _mm##bits##_set1_ps(t->row[2][at]));            \
        begin = pooling_behind_##bits(begin, end);                                       \
        __m##bits all = pooling_join_##bits(kind, begin, middle);                        \
        all = pooling_join_##bits(kind, all, end);                                       \
        if (kind == STRATA_POOL_AVERAGE)                                                 \
            all = _mm##bits##_mul_ps(all, _mm##bits##_set1_ps(t->share));                \
        else if (kind == STRATA_POOL_LP)                                                 \
            all = _mm##bits##_sqrt_ps(all);                                              \
        _mm##bits##_storeu_ps(y, all);                                                   \
    }                                                                                    \
    POOLING_##bits void pooling_triples_plane_##bits(                                    \
        int32_t kind, const struct pooling *pool, float *out, const float *in,           \
        const float *none)                                                               \
    {                                                                                    \
        const struct window *w = &pool->w;                                               \
        const int64_t whole = pooling_triples_whole(w), begin = w->begin[2];             \
        for (int64_t h = 0; h < w->out[1]; h++, out += w->out[2]) {                      \
            const struct pooling_triple t = pooling_triple_at(kind, pool, in, none, h);  \
            for (int64_t at = 0; at < whole; at += (lanes)) {                            \
                const int64_t o = window_min(at, whole - (lanes));                       \
                pooling_triples_of_##bits(kind, out + o, &t, 2 * o - begin);             \
            }                                                                            \
            if (kind == STRATA_POOL_AVERAGE && t.share_first != t.share)                 \
                out[0] *= t.share_first / t.share;                                       \
            for (int64_t o = whole; o < w->out[2]; o++)                                  \
                out[o] = pooling_triple_edge(kind, 2, pool, &t, o);                      \
        }                                                                                \
    }                                                                                    \
    POOLING_##bits void pooling_triples_kind_##bits(                                     \
        int32_t kind, const struct pooling *pool, float *out, const float *in,           \
        int64_t planes)                                                                  \
    {                                                                                    \
        const struct window *w = &pool->w;                                               \
        float none[POOLING_FOLDED];                                                      \
        for (int64_t i = 0; i < w->in[2]; i++)                                           \
            none[i] = pooling_none(kind);                                                \
        for (int64_t i = 0; i < planes * w->out[0]; i++)                                 \
            pooling_triples_plane_##bits(kind, pool, out + i * w->out[1] * w->out[2],    \
                                         in + i * w->in[1] * w->in[2], none);            \
    }

POOLING_TRIPLES(512, 16)
POOLING_TRIPLES(256, 8)

#define POOLING_TRIPLES_OF(bits, target)                                                 \
    target static void pooling_triples_##bits(const struct pooling *pool, float *out,    \
                                              const float *in, int64_t planes)           \
    {                                                                                    \
        if (pool->kind == STRATA_POOL_MAX)                                               \
            pooling_triples_kind_##bits(STRATA_POOL_MAX, pool, out, in, planes);         \
        else if (pool->kind == STRATA_POOL_AVERAGE)                                      \
            pooling_triples_kind_##bits(STRATA_POOL_AVERAGE, pool, out, in, planes);     \
        else                                                                             \
            pooling_triples_kind_##bits(STRATA_POOL_LP, pool, out, in, planes);          \
    }

POOLING_TRIPLES_OF(512, ROW_AVX512)
POOLING_TRIPLES_OF(256, __attribute__((target("avx2,fma"))))
#endif

typedef void pooling_run_triples(const struct pooling *pool, float *out, const float *in,
                                 int64_t planes);

/* What makes such windows in the widest vectors that a row fills; NULL: nothing does. */
static inline pooling_run_triples *pooling_triples(const struct pooling *pool)
{
#ifdef ELEMENT_X86
    if (row_has_avx512() && pooling_is_triples(&pool->w, 16))
        return pooling_triples_512;
    if (element_has_f16c() && pooling_is_triples(&pool->w, 8))
        return pooling_triples_256;
#endif
    (void)pool;
    return NULL;
}

#endif /* PLUGINS_POOLING_TRIPLES_H */
