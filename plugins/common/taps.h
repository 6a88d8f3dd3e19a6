/* SPDX-License-Identifier: Apache-2.0
 *
 * Weighted sums of elements that lie anywhere, for layers that sample a plane at points:
 * tables of offsets and weights that serve all planes. What has no weight is not looked
 * at, for it may be no number, or lie outside.
 */
#ifndef PLUGINS_COMMON_TAPS_H
#define PLUGINS_COMMON_TAPS_H

#include "plugins/common/pointwise/row.h"

/* Tap t of sum j: the element at[t*pitch + j] by weight[t*pitch + j]. */
struct taps {
    const int64_t *at;
    const float *weight;
    int64_t count, pitch; /* a multiple of 8, and n or more */
};

typedef void taps_function(float *sum, const struct taps *t, const float *plane,
                           int64_t n);

ROW_INLINE void taps_sum(float *restrict sum, const struct taps *t, const float *plane,
                         int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        sum[j] = 0;
    for (int64_t k = 0; k < t->count; k++) {
        const int64_t *at = t->at + k * t->pitch;
        const float *weight = t->weight + k * t->pitch;
        for (int64_t j = 0; j < n; j++)
            sum[j] += weight[j] != 0 ? weight[j] * plane[at[j]] : 0;
    }
}

static void taps_plain(float *sum, const struct taps *t, const float *plane, int64_t n)
{
    taps_sum(sum, t, plane, n);
}

#ifdef ELEMENT_X86
__attribute__((target("avx2,fma"))) static void
taps_avx2(float *sum, const struct taps *t, const float *plane, int64_t n)
{
    taps_sum(sum, t, plane, n);
}

/* Eight sums at a time, whose elements one instruction gathers. */
ROW_AVX512 static void taps_avx512(float *sum, const struct taps *t, const float *plane,
                                   int64_t n)
{
    const __m256 zero = _mm256_setzero_ps();
    for (int64_t j = 0; j < n; j += 8) {
        const __mmask8 live = (__mmask8)(n - j < 8 ? (1 << (n - j)) - 1 : 0xff);
        const int64_t *at = t->at + j;
        const float *weight = t->weight + j;
        __m256 all = zero;
        for (int64_t k = 0; k < t->count; k++, at += t->pitch, weight += t->pitch) {
            const __m256 w = _mm256_loadu_ps(weight);
            const __mmask8 taken =
                _mm256_mask_cmp_ps_mask(live, w, zero, _CMP_NEQ_UQ);
            const __m256 x = _mm512_mask_i64gather_ps(
                zero, taken, _mm512_loadu_si512(at), plane, sizeof *plane);
            all = _mm256_fmadd_ps(w, x, all);
        }
        _mm256_mask_storeu_ps(sum + j, live, all);
    }
}
#endif

static inline taps_function *taps_choose(void)
{
    return ROW_BEST(taps);
}

#endif /* PLUGINS_COMMON_TAPS_H */
