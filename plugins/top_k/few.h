/* SPDX-License-Identifier: Apache-2.0
 *
 * The best few of a line of floats, in order, in two registers of AVX-512: one more goes
 * among them by minima and maxima, where a heap has a branch for each comparison that
 * none foresees.
 */
#ifndef PLUGINS_TOP_K_FEW_H
#define PLUGINS_TOP_K_FEW_H

#include "plugins/common/pointwise/row.h"
#include "plugins/top_k/top_k.h"

#define FEW 16 /* elements, the best first; of which k are asked for */

/* An element is its key and, below it, how far its index is from the last of all: no two
 * are equal, and none is 0. */
struct few {
    uint64_t best[FEW];
    int64_t k;
    uint32_t flip; /* makes the smallest the best */
};

static inline int64_t few_index(uint64_t element)
{
    return (int64_t)(uint32_t)~element;
}

#ifdef ELEMENT_X86
/* Elements [index, index + n) of the line; those before 16 of the line are all taken. */
ROW_AVX512 static void few_take(struct few *f, const float *x, int64_t n, int64_t index)
{
    __m512i first = _mm512_loadu_si512(f->best), second = _mm512_loadu_si512(f->best + 8);
    const __m512i place = _mm512_set1_epi64((f->k - 1) % 8);
    for (int64_t i = 0; i < n; i += FEW) {
        const __m512i last = _mm512_permutexvar_epi64(place, f->k <= 8 ? first : second);
        const uint32_t key =
            (uint32_t)((uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(last)) >> 32) ^
            f->flip;
        const __m512 bar =
            _mm512_set1_ps(strata_float_of_bits(key >> 31 ? key & 0x7fffffff : ~key));
        const __mmask16 here = (__mmask16)(n - i < FEW ? (1u << (n - i)) - 1 : 0xffff);
        const __m512 row = _mm512_maskz_loadu_ps(here, x + i);
        uint32_t past = index + i < FEW ? here
                        : f->flip ? _mm512_mask_cmp_ps_mask(here, row, bar, _CMP_NGE_UQ)
                                  : _mm512_mask_cmp_ps_mask(here, row, bar, _CMP_NLE_UQ);
        for (; past; past &= past - 1) {
            const int64_t at = i + __builtin_ctz(past);
            const uint32_t order = top_k_key32(strata_bits_of_float(x[at])) ^ f->flip;
            const __m512i next = _mm512_set1_epi64(
                (int64_t)((uint64_t)order << 32 | (uint32_t) ~(uint64_t)(index + at)));
            second = _mm512_max_epu64(
                second, _mm512_min_epu64(_mm512_alignr_epi64(second, first, 7), next));
            first = _mm512_max_epu64(
                first, _mm512_min_epu64(_mm512_alignr_epi64(first, next, 7), next));
        }
    }
    _mm512_storeu_si512(f->best, first);
    _mm512_storeu_si512(f->best + 8, second);
}

static inline int few_fits(int64_t k, int64_t length)
{
    return k <= FEW && length < UINT32_MAX && row_has_avx512();
}
#else
static inline void few_take(struct few *f, const float *x, int64_t n, int64_t index)
{
    (void)f, (void)x, (void)n, (void)index;
}

static inline int few_fits(int64_t k, int64_t length)
{
    (void)k, (void)length;
    return 0;
}
#endif

#endif /* PLUGINS_TOP_K_FEW_H */
