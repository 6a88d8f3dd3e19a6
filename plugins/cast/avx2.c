/* SPDX-License-Identifier: Apache-2.0
 *
 * Cast's loops for processors with AVX2 and FMA, and two that the compiler's vectors
 * serve badly there.
 */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma,f16c")
#include <immintrin.h>
#endif
#include "plugins/cast/loops.h"

#ifdef CAST_WIDE

/* The instruction makes INT32_MIN of what is out of range: right below it, the complement
 * of INT32_MAX above. */
static __m256i truncated(__m256 x)
{
    const __m256 above = _mm256_cmp_ps(x, _mm256_set1_ps(0x1p31F), _CMP_GE_OQ);
    const __m256 number = _mm256_cmp_ps(x, x, _CMP_ORD_Q);
    const __m256i whole =
        _mm256_xor_si256(_mm256_cvttps_epi32(x), _mm256_castps_si256(above));
    return _mm256_and_si256(whole, _mm256_castps_si256(number));
}

static void int32_of_float(void *dst, const void *src, size_t n, int saturate)
{
    const float *s = src;
    int32_t *d = dst;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_si256((__m256i *)(void *)(d + i),
                            truncated(_mm256_loadu_ps(s + i)));
    cast_int32_fp32(d + i, s + i, n - i, saturate);
}

/* There are no vectors of INT64 to FP32, but of INT32: a block whose values fit there is
 * rounded the same, one that has others is done again. */
static void float_of_int64(void *dst, const void *src, size_t n, int saturate)
{
    enum { BLOCK = 256 };
    const int64_t *s = src;
    float *d = dst;
    size_t done = 0;
    for (; done + BLOCK <= n; done += BLOCK) {
        __m128i all = _mm_setzero_si128();
        const __m128i half = _mm_set1_epi64x(1LL << 31);
        for (size_t i = done; i < done + BLOCK; i += 4) {
            const __m128i *at = (const __m128i *)(const void *)(s + i);
            const __m128i a = _mm_loadu_si128(at), b = _mm_loadu_si128(at + 1);
            const __m128 low =
                _mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), 0x88);
            all = _mm_or_si128(all, _mm_add_epi64(a, half));
            all = _mm_or_si128(all, _mm_add_epi64(b, half));
            _mm_storeu_ps(d + i, _mm_cvtepi32_ps(_mm_castps_si128(low)));
        }
        if (!_mm_testz_si128(all, _mm_set1_epi64x(-(1LL << 32))))
            cast_fp32_int64(d + done, s + done, BLOCK, saturate);
    }
    cast_fp32_int64(d + done, s + done, n - done, saturate);
}

cast_fn *cast_of_avx2(int to, int from)
{
    return to == STRATA_INT32 && from == STRATA_FP32   ? int32_of_float
           : to == STRATA_FP32 && from == STRATA_INT64 ? float_of_int64
                                                       : cast_of(to, from);
}
#endif
