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

/* ---- the functions for this processor ------------------------------------------------
 */

struct taps_code {
    void (*sum)(float *sum, const struct taps *t, const float *plane, int64_t n);
    void (*patches)(float *sum, const struct patches *p, const float *plane, int64_t n);
};

#define TAPS_CODE(name, target)                                                          \
    target static void taps_sum_##name(float *sum, const struct taps *t,                 \
                                       const float *plane, int64_t n)                    \
    {                                                                                    \
        taps_sum_of(sum, t, plane, n);                                                   \
    }                                                                                    \
    target static void patches_sum_##name(float *sum, const struct patches *p,           \
                                          const float *plane, int64_t n)                 \
    {                                                                                    \
        patches_sum_of(sum, p, plane, n);                                                \
    }                                                                                    \
    static const struct taps_code taps_code_##name = {taps_sum_##name,                   \
                                                      patches_sum_##name};

TAPS_CODE(plain, )
#ifdef ELEMENT_X86
TAPS_CODE(avx2, __attribute__((target("avx2,fma"))))
TAPS_CODE(avx512, ROW_AVX512)
#endif

static inline const struct taps_code *taps_choose(void)
{
    return ROW_BEST(taps_code);
}

#endif /* PLUGINS_COMMON_POINTWISE_TAPS_H */
