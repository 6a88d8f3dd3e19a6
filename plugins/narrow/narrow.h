/* SPDX-License-Identifier: Apache-2.0
 *
 * What Narrow's impls on all devices share: one element, in C and in CUDA.
 */
#ifndef PLUGINS_NARROW_NARROW_H
#define PLUGINS_NARROW_NARROW_H

#include <math.h>
#include <stdint.h>

#include <strata/half.h>
#include <strata/layers.h>

#ifdef __CUDACC__
#define NARROW_INLINE static __device__ __forceinline__
#define narrow_bits __float_as_uint
#define narrow_of_bits __uint_as_float
#else
#define NARROW_INLINE static inline
#define narrow_bits strata_bits_of_float
#define narrow_of_bits strata_float_of_bits
#endif

#define NARROW_ROWS                                                                      \
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW}, {STRATA_F32_NCHW}},         \
    {                                                                                    \
        {STRATA_I8_NCHW | STRATA_I32_NCHW | STRATA_I64_NCHW},                            \
        {                                                                                \
            STRATA_SAME                                                                  \
        }                                                                                \
    }

/* What an element takes. */
struct narrow_rule {
    int32_t bits;      /* of an integer; 0: a float */
    int32_t is_signed; /* of an integer */
    int32_t fraction;  /* bits behind the leading one; -1: powers of two alone (E8M0) */
    int32_t least;     /* exponent of the smallest step between values */
    float most;        /* the largest */
    int32_t saturate;  /* beyond it: itself, else NaN */
    int32_t has_nan;   /* else NaN is 0, and what lies beyond `most` is `most` */
    int32_t has_minus_zero;
    int32_t round; /* STRATA_NARROW_UP ..., of E8M0 */
};

static inline struct narrow_rule narrow_rule_of(const strata_narrow *p)
{
    static const struct narrow_rule rules[] = {
        [STRATA_NARROW_INT16] = {.bits = 16, .is_signed = 1},
        [STRATA_NARROW_UINT16] = {.bits = 16},
        [STRATA_NARROW_UINT32] = {.bits = 32},
        [STRATA_NARROW_INT4] = {.bits = 4, .is_signed = 1},
        [STRATA_NARROW_UINT4] = {.bits = 4},
        [STRATA_NARROW_INT2] = {.bits = 2, .is_signed = 1},
        [STRATA_NARROW_UINT2] = {.bits = 2},
        [STRATA_NARROW_E4M3FNUZ] = {.fraction = 3,
                                    .least = -10,
                                    .most = 240,
                                    .has_nan = 1},
        [STRATA_NARROW_E5M2FNUZ] = {.fraction = 2,
                                    .least = -17,
                                    .most = 57344,
                                    .has_nan = 1},
        [STRATA_NARROW_E8M0] = {.fraction = -1, .most = 0x1p127f, .has_nan = 1},
        [STRATA_NARROW_E2M1] = {.fraction = 1,
                                .least = -1,
                                .most = 6,
                                .has_minus_zero = 1},
    };
    struct narrow_rule rule = rules[p->values];
    rule.saturate = p->saturate || !rule.has_nan;
    rule.round = p->round;
    return rule;
}

/* The low bits, as a number of the type. */
NARROW_INLINE int64_t narrow_integer(const struct narrow_rule *r, int64_t x)
{
    const uint64_t low = (uint64_t)x & ((UINT64_C(1) << r->bits) - 1);
    const uint64_t sign = r->is_signed ? UINT64_C(1) << (r->bits - 1) : 0;
    return (int64_t)(low ^ sign) - (int64_t)sign;
}

/* A power of two from 2^-127 on, of the magnitude. */
NARROW_INLINE float narrow_power(const struct narrow_rule *r, float x)
{
    const uint32_t magnitude = narrow_bits(x) & 0x7fffffff, rest = magnitude & 0x7fffff;
    uint32_t exponent = magnitude >> 23;
    const uint32_t least = 0x400000; /* 2^-127 */
    if (magnitude > 0x7f800000 || (!r->saturate && magnitude < least))
        return narrow_of_bits(0x7fc00000);
    if (magnitude <= least)
        return narrow_of_bits(least);
    if (exponent == 0) /* between 2^-127 and 2^-126 */
        exponent = r->round == STRATA_NARROW_UP ||
                   (r->round == STRATA_NARROW_NEAREST && rest >= 0x600000);
    else
        exponent += (r->round == STRATA_NARROW_UP && rest > 0) ||
                    (r->round == STRATA_NARROW_NEAREST && rest >= 0x400000);
    if (exponent > 254)
        return r->saturate ? 0x1p127f : narrow_of_bits(0x7fc00000);
    return narrow_of_bits(exponent ? exponent << 23 : least);
}

/* To the nearest multiple of the step at its magnitude, the even one of two. */
NARROW_INLINE float narrow_float(const struct narrow_rule *r, float x)
{
    if (r->fraction < 0)
        return narrow_power(r, x);
    if (x != x)
        return r->has_nan ? x : 0;
    const float near = fabsf(x) < 2 * r->most ? x : copysignf(2 * r->most, x);
    const int32_t exponent = (int32_t)(narrow_bits(near) >> 23 & 255) - 127 - r->fraction;
    const int32_t step = exponent < r->least ? r->least : exponent;
    const float y = rintf(near * narrow_of_bits((uint32_t)(127 - step) << 23)) *
                    narrow_of_bits((uint32_t)(127 + step) << 23);
    if (fabsf(y) > r->most)
        return r->saturate ? copysignf(r->most, y) : narrow_of_bits(0x7fc00000);
    return y == 0 && !r->has_minus_zero ? 0 : y;
}

#endif /* PLUGINS_NARROW_NARROW_H */
