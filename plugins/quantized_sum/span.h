/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedSum of bytes to bytes, written without branches so that compilers make vectors
 * of it.
 */
#ifndef PLUGINS_QUANTIZED_SUM_SPAN_H
#define PLUGINS_QUANTIZED_SUM_SPAN_H

#include "plugins/common/quantized/quotient.h"

/* An input's bytes, INT8 as UINT8 by its flipped sign, and what stands for 0 then. */
struct span_input {
    int32_t flip, zero;
    float scale;
};

struct span {
    struct span_input a, b;
    float slope, low, high;                     /* the activation */
    float scale, reciprocal, zero, least, most; /* the output */
};

static inline struct span_input span_input(int32_t dtype, int64_t zero, float scale)
{
    const int32_t flip = dtype == STRATA_INT8 ? 128 : 0;
    return (struct span_input){flip, (int32_t)zero + flip, scale};
}

static inline struct span span_of(const strata_quantized *q, struct span_input a,
                                  struct span_input b, float scale)
{
    struct span s = {a,
                     b,
                     .scale = scale,
                     .reciprocal = 1 / scale,
                     .zero = (float)q->zero_out,
                     .least = q->to == 2 ? 0 : -128,
                     .most = q->to == 2 ? 255 : 127};
    quantized_bounds(q, &s.slope, &s.low, &s.high);
    return s;
}

static inline int span_multiplies(const struct span *s)
{
    return quotient_is_middling(s->a.scale) && quotient_is_middling(s->b.scale) &&
           quotient_is_middling(s->scale) &&
           quotient_is_bounded(s->slope, s->low, s->high);
}

#define SPAN_INLINE static inline __attribute__((always_inline))

SPAN_INLINE void span_bytes(const struct span *s, uint8_t *restrict y, const uint8_t *a,
                            const uint8_t *b, int64_t n, int multiply)
{
    const struct span c = *s;
    for (int64_t i = 0; i < n; i++) {
        const float x = (float)((a[i] ^ c.a.flip) - c.a.zero) * c.a.scale;
        const float f = x + (float)((b[i] ^ c.b.flip) - c.b.zero) * c.b.scale;
        const float sloped = f * c.slope;
        const float above = f > 0 ? f : sloped, low = above < c.low ? c.low : above;
        const float v = low > c.high ? c.high : low;
        float quotient;
        if (multiply) {
            const float q0 = v * c.reciprocal;
            const float q1 =
                __builtin_fmaf(__builtin_fmaf(-q0, c.scale, v), c.reciprocal, q0);
            quotient = __builtin_fmaf(__builtin_fmaf(-q1, c.scale, v), c.reciprocal, q1);
        } else {
            quotient = v / c.scale;
        }
        const float whole = rintf(quotient) + c.zero;
        const float from = whole < c.least ? c.least : whole;
        const float to = from > c.most ? c.most : from;
        y[i] = (uint8_t)(int32_t)(to == to ? to : 0);
    }
}

typedef void span_run(const struct span *s, uint8_t *y, const uint8_t *a,
                      const uint8_t *b, int64_t n);

#define SPAN(name, target, multiply)                                                     \
    target static void span_##name(const struct span *s, uint8_t *y, const uint8_t *a,   \
                                   const uint8_t *b, int64_t n)                          \
    {                                                                                    \
        span_bytes(s, y, a, b, n, multiply);                                             \
    }

SPAN(plain, , 0)
#ifdef __x86_64__
#define SPAN_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma")))
SPAN(avx2, __attribute__((target("avx2,fma"))), 1)
SPAN(avx2_divided, __attribute__((target("avx2,fma"))), 0)
SPAN(avx512, SPAN_AVX512, 1)
SPAN(avx512_divided, SPAN_AVX512, 0)
#endif

static inline span_run *span_choose(const struct span *s)
{
#ifdef __x86_64__
    const int multiply = span_multiplies(s);
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return multiply ? span_avx512 : span_avx512_divided;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return multiply ? span_avx2 : span_avx2_divided;
#endif
    (void)s;
    return span_plain;
}

#endif /* PLUGINS_QUANTIZED_SUM_SPAN_H */
