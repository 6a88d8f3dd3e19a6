/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of 16 lanes to floats, to whole numbers, to bytes. Operations are those of the
 * definition, each rounded; only quotients are found by products where that is the same
 * (plugins/common/quantized/quotient.h).
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_END_AVX512_H
#define PLUGINS_QUANTIZED_CONVOLUTION_END_AVX512_H

#include <immintrin.h>

#include "plugins/quantized_convolution/end.h"

#define TARGET                                                                           \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))
#define INSIDE TARGET static inline __attribute__((always_inline))

/* Of one vector of filters. */
struct lanes {
    __m512 factor, bias;
    __mmask16 mask;
};

INSIDE __m512 quotient(__m512 y, struct vnni_step s, int is_short)
{
    const __m512 scale = _mm512_set1_ps(s.scale), r = _mm512_set1_ps(s.reciprocal);
    if (is_short)
        return _mm512_fmadd_ps(y, r, _mm512_mul_ps(y, _mm512_set1_ps(s.rest)));
    const __m512 q0 = _mm512_mul_ps(y, r);
    const __m512 q1 = _mm512_fmadd_ps(_mm512_fnmadd_ps(q0, scale, y), r, q0);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(q1, scale, y), r, q1);
}

/* Steps from the zero, as whole numbers: what saturates is cut before it is rounded,
 * which comes to the same. */
INSIDE __m512i steps(__m512 y, struct vnni_step s, int is_short)
{
    const __m512 q = _mm512_max_ps(quotient(y, s, is_short), _mm512_set1_ps(s.low));
    return _mm512_cvtps_epi32(_mm512_min_ps(q, _mm512_set1_ps(s.high)));
}

/* What becomes of sums, known where code is made for it. joins: by the two FMAs of
 * vnni_join, without bounds of lanes; flips: the second input is INT8 there. */
struct kind {
    int adds, between, slopes, to_bytes, is_short, joins, flips;
};

INSIDE __m512 joined(const struct vnni_end *e, struct kind kind, __m512 y,
                     const uint8_t *addend, __mmask16 mask)
{
    if (kind.between)
        y = _mm512_mul_ps(_mm512_cvtepi32_ps(steps(y, e->between, kind.is_short)),
                          _mm512_set1_ps(e->between.scale));
    __m512i b = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, addend));
    b = _mm512_sub_epi32(_mm512_xor_si512(b, _mm512_set1_epi32(e->addend_flip)),
                         _mm512_set1_epi32(e->zero_addend));
    return _mm512_add_ps(
        y, _mm512_mul_ps(_mm512_cvtepi32_ps(b), _mm512_set1_ps(e->scale_addend)));
}

/* 16 bytes of a second input as whole numbers, INT8 as UINT8 by its flipped sign. */
INSIDE __m512 bytes(struct kind kind, const uint8_t *addend)
{
    __m128i b = _mm_loadu_si128((const __m128i *)addend);
    if (kind.flips)
        b = _mm_xor_si128(b, _mm_set1_epi8(-128));
    return _mm512_castsi512_ps(_mm512_cvtepu8_epi32(b));
}

INSIDE __m512 scaled(__m512i sum, __m512 factor, __m512 bias)
{
    return _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sum), factor), bias);
}

INSIDE __m512 sloped(const struct vnni_end *e, __m512 y)
{
    return _mm512_mask_mul_ps(y, _mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_LT_OQ),
                              y, _mm512_set1_ps(e->slope));
}

INSIDE __m512 bounded(const struct vnni_end *e, __m512 y)
{
    return _mm512_min_ps(_mm512_max_ps(y, _mm512_set1_ps(e->out.low)),
                         _mm512_set1_ps(e->out.high));
}

/* Four vectors of steps from the zero, lane by lane of 128 bits: bytes [L][vector][4].
 * What is past a byte saturates. */
INSIDE __m512i packed(const struct vnni_end *e, const __m512i whole[VNNI_VECTORS])
{
    const __m512i zero = _mm512_set1_epi16((int16_t)e->zero);
    const __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(whole[0], whole[1]), zero);
    const __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(whole[2], whole[3]), zero);
    return e->params->quantized.to == 2 ? _mm512_packus_epi16(a, b)
                                        : _mm512_packs_epi16(a, b);
}

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_END_AVX512_H */
