/* SPDX-License-Identifier: Apache-2.0
 *
 * Reformat kernels for AVX-512 (F, BW, VL): conversion and streaming; transpositions of
 * 8 x 8 are bound by shuffles and stores and stay those of AVX2.
 */
#include "formats/reformat/kernels.h"

#ifdef REFORMAT_X86
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,f16c")))

/* ---- conversion, 16 elements at a time, the rest under a mask ----------------------
 * Masks that a compiler does not know take three times as long, so whole vectors have a
 * constant. */

#define WHOLE 0xffff
#define EACH_VECTOR(n, body)                                                             \
    do {                                                                                 \
        size_t i = 0;                                                                    \
        for (; n - i >= 16; i += 16) {                                                   \
            const __mmask16 m = WHOLE;                                                   \
            body;                                                                        \
        }                                                                                \
        if (i < n) {                                                                     \
            const __mmask16 m = (__mmask16)((1u << (n - i)) - 1);                        \
            body;                                                                        \
        }                                                                                \
    } while (0)

#define TO_FLOAT(name, type, load)                                                       \
    TARGET static void name(float *dst, const void *src, size_t n)                       \
    {                                                                                    \
        EACH_VECTOR(n, const type *s = (const type *)src + i;                            \
                    _mm512_mask_storeu_ps(dst + i, m, load));                            \
    }
#define FROM_FLOAT(name, type, store)                                                    \
    TARGET static void name(void *dst, const float *src, size_t n)                       \
    {                                                                                    \
        EACH_VECTOR(n, type *d = (type *)dst + i;                                        \
                    const __m512 x = _mm512_maskz_loadu_ps(m, src + i); store);          \
    }

/* Rounded to nearest even within [low, high]; NaN is 0. */
TARGET static inline __m512i round_clamped(__m512 x, float low, float high)
{
    x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, x, _CMP_ORD_Q), x);
    x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(low)), _mm512_set1_ps(high));
    return _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

TARGET static inline __m512i round_int32(__m512 x)
{
    const __mmask16 over = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p31f), _CMP_GE_OQ);
    return _mm512_mask_mov_epi32(round_clamped(x, -0x1p31f, 0x1p31f), over,
                                 _mm512_set1_epi32(INT32_MAX));
}

/* The bits of BF16 in the low halves; as strata_bfloat_of_float. */
TARGET static inline __m512i round_bfloat(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd =
        _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i v = _mm512_mask_mov_epi32(_mm512_add_epi32(bits, half), nan, quiet);
    return _mm512_srli_epi32(v, 16);
}

TO_FLOAT(half_to, uint16_t, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, s)))
TO_FLOAT(bfloat_to, uint16_t,
         _mm512_castsi512_ps(_mm512_slli_epi32(
             _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, s)), 16)))
TO_FLOAT(int8_to, int8_t,
         _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(m, s))))
TO_FLOAT(uint8_to, uint8_t,
         _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(m, s))))
TO_FLOAT(int32_to, int32_t, _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(m, s)))
FROM_FLOAT(half_from, uint16_t,
           _mm256_mask_storeu_epi16(d, m,
                                    _mm512_maskz_cvtps_ph(m, x,
                                                          _MM_FROUND_TO_NEAREST_INT)))
FROM_FLOAT(bfloat_from, uint16_t,
           _mm512_mask_cvtepi32_storeu_epi16(d, m, round_bfloat(x)))
FROM_FLOAT(int8_from, int8_t,
           _mm512_mask_cvtepi32_storeu_epi8(d, m, round_clamped(x, INT8_MIN, INT8_MAX)))
FROM_FLOAT(uint8_from, uint8_t,
           _mm512_mask_cvtepi32_storeu_epi8(d, m, round_clamped(x, 0, UINT8_MAX)))
FROM_FLOAT(int32_from, int32_t, _mm512_mask_storeu_epi32(d, m, round_int32(x)))

/* ---- streaming -----------------------------------------------------------------------
 */

TARGET static void stream_avx512(void *dst, const void *src, size_t bytes)
{
    char *d = dst;
    const char *s = src;
    size_t head = -(uintptr_t)d & 63;
    if (head > bytes)
        head = bytes;
    memcpy(d, s, head);
    for (bytes -= head, d += head, s += head; bytes >= 64; bytes -= 64, d += 64, s += 64)
        _mm512_stream_si512((__m512i *)(void *)d, _mm512_loadu_si512(s));
    memcpy(d, s, bytes);
}

static void fence_avx512(void)
{
    _mm_sfence();
}

const struct reformat_kernels reformat_avx512 = {
    .to_float = {[STRATA_FP16] = half_to,
                 [STRATA_BF16] = bfloat_to,
                 [STRATA_INT8] = int8_to,
                 [STRATA_UINT8] = uint8_to,
                 [STRATA_INT32] = int32_to},
    .from_float = {[STRATA_FP16] = half_from,
                   [STRATA_BF16] = bfloat_from,
                   [STRATA_INT8] = int8_from,
                   [STRATA_UINT8] = uint8_from,
                   [STRATA_INT32] = int32_from},
    .pack = {reformat_pack1_avx2, reformat_pack2_avx2, reformat_pack4_avx2,
             reformat_pack8_plain},
    .unpack = {reformat_unpack1_avx2, reformat_unpack2_avx2, reformat_unpack4_avx2,
               reformat_unpack8_plain},
    .stream = stream_avx512,
    .fence = fence_avx512,
};

#endif /* REFORMAT_X86 */
