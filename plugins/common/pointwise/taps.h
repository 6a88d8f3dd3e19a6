/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums of elements that lie anywhere, for layers that sample a plane at points:
 * tables of offsets and weights that serve all planes. What has no weight does not count,
 * even if it is no number. Elements are collected one by one and then added in vectors:
 * on many processors that is faster than their instructions that gather.
 */
#ifndef PLUGINS_COMMON_POINTWISE_TAPS_H
#define PLUGINS_COMMON_POINTWISE_TAPS_H

#include "plugins/common/pointwise/row.h"

#ifdef ELEMENT_X86
#include <immintrin.h>
#endif

/* ---- taps: single elements ------------------------------------------------------- */

#define TAPS_BLOCK 64 /* sums made at once */

/* Tap k of sum j: the element at[k*pitch + j] by weight[k*pitch + j]. */
struct taps {
    const int64_t *at;
    const float *weight;
    int64_t count, pitch; /* count: 1 or more */
};

/* Compiled for no processor in particular, so that nothing becomes a gathering load. */
__attribute__((noinline)) static void taps_collect(float *restrict to, const float *plane,
                                                   const int64_t *restrict at, int64_t n)
{
#pragma GCC unroll 4
    for (int64_t j = 0; j < n; j++)
        to[j] = plane[at[j]];
}

ROW_INLINE void taps_add(float *restrict sum, const float *restrict weight,
                         const float *restrict x, int64_t n, int first)
{
    for (int64_t j = 0; j < n; j++) {
        const float value = weight[j] != 0 ? weight[j] * x[j] : 0;
        sum[j] = first ? value : sum[j] + value;
    }
}

ROW_INLINE void taps_sum_of(float *sum, const struct taps *t, const float *plane,
                            int64_t n)
{
    float some[TAPS_BLOCK];
    for (int64_t i = 0, part; i < n; i += part) {
        part = n - i < TAPS_BLOCK ? n - i : TAPS_BLOCK;
        taps_collect(some, plane, t->at + i, part);
        taps_add(sum + i, t->weight + i, some, part, 1);
        for (int64_t k = 1; k < t->count; k++) {
            taps_collect(some, plane, t->at + k * t->pitch + i, part);
            taps_add(sum + i, t->weight + k * t->pitch + i, some, part, 0);
        }
    }
}

/* ---- patches: neighbours ----------------------------------------------------------- */

typedef float patch_4 __attribute__((vector_size(16)));
typedef int32_t patch_4_mask __attribute__((vector_size(16)));
typedef int64_t patch_2 __attribute__((vector_size(16)));

/* Of each sum `count` patches of four elements, sum after sum: two by two, from two
 * offsets, or four in a row, from one. Elements without weight may be looked at. */
struct patches {
    const int64_t *at;
    const float *weight;
    int64_t count;
    int32_t in_row, has_zeros; /* has_zeros: there are weights of 0 */
};

ROW_INLINE patch_4 patch_sum(const struct patches *p, const float *plane, int64_t j,
                             int in_row, int has_zeros)
{
    const int64_t *at = p->at + j * p->count * (in_row ? 1 : 2);
    const float *weight = p->weight + j * p->count * 4;
    patch_4 sum = {0};
    for (int64_t c = 0; c < p->count; c++, weight += 4) {
        patch_4 x, w;
        memcpy(&w, weight, sizeof w);
        if (in_row) {
            memcpy(&x, plane + *at++, sizeof x);
        } else {
            int64_t low, high;
            memcpy(&low, plane + *at++, sizeof low);
            memcpy(&high, plane + *at++, sizeof high);
            x = (patch_4)(patch_2){low, high};
        }
        if (has_zeros)
            x = (patch_4)((patch_4_mask)x & (w != 0));
        sum += w * x;
    }
    return sum;
}

/* Four sums at a time: the columns of four vectors. */
ROW_INLINE void patches_sums(float *y, const struct patches *p, const float *plane,
                             int64_t n, int in_row, int has_zeros)
{
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const patch_4 a = patch_sum(p, plane, j, in_row, has_zeros);
        const patch_4 b = patch_sum(p, plane, j + 1, in_row, has_zeros);
        const patch_4 c = patch_sum(p, plane, j + 2, in_row, has_zeros);
        const patch_4 d = patch_sum(p, plane, j + 3, in_row, has_zeros);
        const patch_4 ab = __builtin_shuffle(a, b, (patch_4_mask){0, 4, 1, 5}) +
                           __builtin_shuffle(a, b, (patch_4_mask){2, 6, 3, 7});
        const patch_4 cd = __builtin_shuffle(c, d, (patch_4_mask){0, 4, 1, 5}) +
                           __builtin_shuffle(c, d, (patch_4_mask){2, 6, 3, 7});
        const patch_4 sum = __builtin_shuffle(ab, cd, (patch_4_mask){0, 1, 4, 5}) +
                            __builtin_shuffle(ab, cd, (patch_4_mask){2, 3, 6, 7});
        memcpy(y + j, &sum, sizeof sum);
    }
    for (; j < n; j++) {
        const patch_4 a = patch_sum(p, plane, j, in_row, has_zeros);
        y[j] = (a[0] + a[2]) + (a[1] + a[3]);
    }
}

/* What follows the first n sums. */
ROW_INLINE struct patches patches_behind(const struct patches *p, int64_t n)
{
    struct patches rest = *p;
    rest.at += n * p->count * (p->in_row ? 1 : 2);
    rest.weight += n * p->count * 4;
    return rest;
}

ROW_INLINE void patches_sum_of(float *y, const struct patches *p, const float *plane,
                               int64_t n)
{
    if (p->in_row && p->has_zeros)
        patches_sums(y, p, plane, n, 1, 1);
    else if (p->in_row)
        patches_sums(y, p, plane, n, 1, 0);
    else if (p->has_zeros)
        patches_sums(y, p, plane, n, 0, 1);
    else
        patches_sums(y, p, plane, n, 0, 0);
}

#ifdef ELEMENT_X86
/* Sum j's two pairs. */
ROW_AVX512 static inline __m128i pairs_load(const struct patches *p, const float *plane,
                                            int64_t j)
{
    const int64_t *at = p->at + 2 * j;
    const __m128i low = _mm_loadl_epi64((const void *)(plane + at[0]));
    return _mm_castps_si128(
        _mm_loadh_pi(_mm_castsi128_ps(low), (const void *)(plane + at[1])));
}

/* Four sums' products. */
ROW_AVX512 static inline __m512 pairs_products(const struct patches *p,
                                               const float *plane, int64_t j)
{
    const __m512 weight = _mm512_loadu_ps(p->weight + 4 * j);
    __m512i x = _mm512_castsi128_si512(pairs_load(p, plane, j));
    x = _mm512_inserti32x4(x, pairs_load(p, plane, j + 1), 1);
    x = _mm512_inserti32x4(x, pairs_load(p, plane, j + 2), 2);
    x = _mm512_inserti32x4(x, pairs_load(p, plane, j + 3), 3);
    return _mm512_maskz_mul_ps(
        _mm512_cmp_ps_mask(weight, _mm512_setzero_ps(), _CMP_NEQ_UQ), weight,
        _mm512_castsi512_ps(x));
}

/* Sixteen sums at a time of one patch of two pairs each: the columns of four times four
 * vectors. How many were made. */
ROW_AVX512 static inline int64_t pairs_sums(float *y, const struct patches *p,
                                            const float *plane, int64_t n)
{
    const __m512i order =
        _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    int64_t j = 0;
    for (; j + 16 <= n; j += 16) {
        const __m512 a = pairs_products(p, plane, j);
        const __m512 b = pairs_products(p, plane, j + 4);
        const __m512 c = pairs_products(p, plane, j + 8);
        const __m512 d = pairs_products(p, plane, j + 12);
        const __m512 ab =
            _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        const __m512 cd =
            _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        const __m512 sum = _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44),
                                         _mm512_shuffle_ps(ab, cd, 0xee));
        _mm512_storeu_ps(y + j, _mm512_permutexvar_ps(order, sum));
    }
    return j;
}
#endif

/* Of `taps` weighted elements in a line, with no more than taps - 1 between the first and
 * the last that have weight, to their window of `taps` neighbours in a line of `size`:
 * where it begins. */
ROW_INLINE int64_t patch_window(float *window, const int64_t *at, const float *weight,
                                int64_t taps, int64_t size)
{
    int64_t first = size - taps;
    for (int64_t k = 0; k < taps; k++) {
        first = weight[k] != 0 && at[k] < first ? at[k] : first;
        window[k] = 0;
    }
    for (int64_t k = 0; k < taps; k++)
        if (weight[k] != 0)
            window[at[k] - first] += weight[k];
    return first;
}

typedef float four_floats __attribute__((vector_size(16)));
typedef int32_t four_truths __attribute__((vector_size(16)));

/* Four weights, `step` apart, times four, as rows; not 0 if a product is. */
ROW_INLINE int patch_products(float *patch, const float *down, const float *across,
                              int64_t step)
{
    const four_floats row = {across[0], across[step], across[2 * step], across[3 * step]};
    four_truths zero = {0};
    for (int k = 0; k < 4; k++) {
        const four_floats value = down[k * step] * row;
        memcpy(patch + 4 * k, &value, sizeof value);
        zero |= value == 0;
    }
    return zero[0] | zero[1] | zero[2] | zero[3];
}

/* ---- the functions for this processor ------------------------------------------------
 */

struct taps_code {
    void (*sum)(float *sum, const struct taps *t, const float *plane, int64_t n);
    void (*patches)(float *sum, const struct patches *p, const float *plane, int64_t n);
};

#define TAPS_NO_PAIRS(y, p, plane, n) 0
#define TAPS_CODE(name, target, pairs)                                                   \
    target static void taps_sum_##name(float *sum, const struct taps *t,                 \
                                       const float *plane, int64_t n)                    \
    {                                                                                    \
        taps_sum_of(sum, t, plane, n);                                                   \
    }                                                                                    \
    target static void patches_sum_##name(float *sum, const struct patches *p,           \
                                          const float *plane, int64_t n)                 \
    {                                                                                    \
        int64_t made = 0;                                                                \
        if (!p->in_row && p->count == 1)                                                 \
            made = pairs(sum, p, plane, n);                                              \
        const struct patches rest = patches_behind(p, made);                             \
        patches_sum_of(sum + made, &rest, plane, n - made);                              \
    }                                                                                    \
    static const struct taps_code taps_code_##name = {taps_sum_##name,                   \
                                                      patches_sum_##name};

TAPS_CODE(plain, , TAPS_NO_PAIRS)
#ifdef ELEMENT_X86
TAPS_CODE(avx2, __attribute__((target("avx2,fma"))), TAPS_NO_PAIRS)
TAPS_CODE(avx512, ROW_AVX512, pairs_sums)
#endif

static inline const struct taps_code *taps_choose(void)
{
    return ROW_BEST(taps_code);
}

#endif /* PLUGINS_COMMON_POINTWISE_TAPS_H */
