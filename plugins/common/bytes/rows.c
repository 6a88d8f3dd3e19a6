/* SPDX-License-Identifier: Apache-2.0
 *
 * One source of the rows, compiled for each kind of vectors. Integers lie in the low bits
 * of a sum with 2^23*1.5.
 */
#include "plugins/common/bytes/rows.h"

#include "plugins/common/pointwise/row.h"
#include "plugins/common/quantized/quotient.h"

#ifdef ELEMENT_X86
#include <immintrin.h>
#endif

#define MAGIC 0x1.8p23f

/* As the definition has it. */
ROW_INLINE void row_divided(uint8_t *restrict y, const float *restrict x,
                            const struct quantize_scale *s, int64_t n)
{
    const struct quantize_scale c = *s;
    for (int64_t i = 0; i < n; i++) {
        const float whole = rintf(x[i] / c.scale) + c.zero;
        const float from = whole < c.low ? c.low : whole;
        const float to = from > c.high ? c.high : from;
        y[i] = (uint8_t)strata_bits_of_float((to == to ? to : 0) + MAGIC);
    }
}

/* The same quotient, as quotient.h has it, of values cut to where a byte saturates: what
 * a bound's quotient is off by, rounding takes away. */
ROW_INLINE void row_multiplied(uint8_t *restrict y, const float *restrict x,
                               const struct quantize_scale *s, int64_t n)
{
    const float scale = s->scale, r = 1 / scale;
    const float low = (s->low - s->zero) * scale, high = (s->high - s->zero) * scale;
    const uint32_t zero = (uint32_t)(int32_t)s->zero;
    for (int64_t i = 0; i < n; i++) {
        const float from = low > x[i] ? low : x[i], v = high < from ? high : from;
        const float q0 = v * r;
        const float q1 = __builtin_fmaf(__builtin_fmaf(-q0, scale, v), r, q0);
        const float q2 = __builtin_fmaf(__builtin_fmaf(-q1, scale, v), r, q1);
        const uint32_t whole = strata_bits_of_float(q2 + MAGIC) + zero;
        y[i] = (uint8_t)(x[i] == x[i] ? whole : 0);
    }
}

#ifdef ELEMENT_X86
#define ROW_AVX2 __attribute__((target("avx2,fma")))
#define ROW_AVX2_INLINE ROW_AVX2 ROW_INLINE

struct row_vectors {
    __m256 scale, r, low, high, nothing;
};

#define EACH_VECTOR _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++)

/* The quotients of 32 values, rounded, step by step for all: each step waits for the one
 * before. Where a byte has no sign, the lowest is the 0 that a NaN becomes: the larger of
 * a NaN and a bound is the bound. */
ROW_AVX2_INLINE void row_quotients(__m256i *whole, const float *x,
                                   const struct row_vectors *c, int is_signed)
{
    __m256 v[4], q[4], rest[4];
    EACH_VECTOR
    {
        const __m256 a = _mm256_loadu_ps(x + 8 * k);
        const __m256 odd = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
        const __m256 b = is_signed ? _mm256_blendv_ps(a, c->nothing, odd) : a;
        v[k] = _mm256_min_ps(_mm256_max_ps(b, c->low), c->high);
    }
    EACH_VECTOR q[k] = _mm256_mul_ps(v[k], c->r);
    EACH_VECTOR rest[k] = _mm256_fnmadd_ps(q[k], c->scale, v[k]);
    EACH_VECTOR q[k] = _mm256_fmadd_ps(rest[k], c->r, q[k]);
    EACH_VECTOR rest[k] = _mm256_fnmadd_ps(q[k], c->scale, v[k]);
    EACH_VECTOR q[k] = _mm256_fmadd_ps(rest[k], c->r, q[k]);
    EACH_VECTOR whole[k] = _mm256_cvtps_epi32(q[k]);
}

/* 32 values at once, for packs put those of four vectors into one, in an order that one
 * permutation undoes. The compiler's are masked and permuted at every step. */
ROW_AVX2_INLINE int64_t row_packed(uint8_t *y, const float *x,
                                   const struct quantize_scale *s, int64_t n,
                                   int is_signed)
{
    const struct row_vectors c = {_mm256_set1_ps(s->scale), _mm256_set1_ps(1 / s->scale),
                                  _mm256_set1_ps((s->low - s->zero) * s->scale),
                                  _mm256_set1_ps((s->high - s->zero) * s->scale),
                                  _mm256_set1_ps(-s->zero * s->scale)};
    const __m256i zero = _mm256_set1_epi16((int16_t)s->zero);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i w[4];
        row_quotients(w, x + i, &c, is_signed);
        const __m256i a = _mm256_add_epi16(_mm256_packs_epi32(w[0], w[1]), zero);
        const __m256i b = _mm256_add_epi16(_mm256_packs_epi32(w[2], w[3]), zero);
        const __m256i bytes =
            is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
        _mm256_storeu_si256((__m256i *)(void *)(y + i),
                            _mm256_permutevar8x32_epi32(bytes, order));
    }
    return i;
}

ROW_AVX2 static void row_avx2(uint8_t *y, const float *x, const struct quantize_scale *s,
                              int64_t n)
{
    const int64_t done =
        s->low < 0 ? row_packed(y, x, s, n, 1) : row_packed(y, x, s, n, 0);
    row_multiplied(y + done, x + done, s, n - done);
}
#endif

#define ROW(name, target, arithmetic)                                                    \
    target static void row_##name(uint8_t *y, const float *x,                            \
                                  const struct quantize_scale *s, int64_t n)             \
    {                                                                                    \
        row_##arithmetic(y, x, s, n);                                                    \
    }

ROW(plain, , divided)
#ifdef ELEMENT_X86
ROW(avx512, ROW_AVX512, multiplied)
#endif

quantize_row *quantize_row_for(const struct quantize_scale *s)
{
#ifdef ELEMENT_X86
    const int multiply = quotient_is_middling(s->scale) && fabsf(s->zero) <= 256 &&
                         s->zero == rintf(s->zero);
    if (multiply && row_has_avx512())
        return row_avx512;
    if (multiply && element_has_f16c())
        return row_avx2;
#endif
    (void)s;
    return row_plain;
}
