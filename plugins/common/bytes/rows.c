/* SPDX-License-Identifier: Apache-2.0
 *
 * One source of the rows, compiled for each kind of vectors. Integers lie in the low bits
 * of a sum with 2^23*1.5.
 */
#include "plugins/common/bytes/rows.h"

#include "plugins/common/pointwise/row.h"
#include "plugins/common/quantized/quotient.h"

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

#define ROW(name, target, arithmetic)                                                    \
    target static void row_##name(uint8_t *y, const float *x,                            \
                                  const struct quantize_scale *s, int64_t n)             \
    {                                                                                    \
        row_##arithmetic(y, x, s, n);                                                    \
    }

ROW(plain, , divided)
#ifdef ELEMENT_X86
ROW(avx2, __attribute__((target("avx2,fma"))), multiplied)
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
