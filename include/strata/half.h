/* SPDX-License-Identifier: Apache-2.0
 *
 * FP16 for host impls: IEEE 754 binary16 kept as uint16_t, which is how the host holds
 * tensors of STRATA_FP16. Compute in FP32 and store in FP16. Self-contained, C99 and
 * C++14; without branches, so that a compiler vectorises a loop over it. The rounding
 * mode must be the default, to nearest.
 */
#ifndef STRATA_HALF_H
#define STRATA_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline float strata_float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t strata_bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* a if `yes`, else b, without a branch: both are there already. */
static inline uint32_t strata_select(int yes, uint32_t a, uint32_t b)
{
    const uint32_t mask = (uint32_t)-yes;
    return (a & mask) | (b & ~mask);
}

/* The magnitude's bits of an FP32 below 2^16 as a float of `mantissa` bits behind an
 * exponent of that bias, rounded to nearest even; a carry goes on into the exponent. */
static inline uint32_t strata_narrow_magnitude(uint32_t magnitude, int mantissa, int bias)
{
    const int drop = 23 - mantissa;
    const uint32_t less = (uint32_t)(127 - bias) << 23;
    const uint32_t half = ((uint32_t)1 << (drop - 1)) - 1 + (magnitude >> drop & 1);
    const uint32_t normal = (magnitude - less + half) >> drop;
    /* Subnormals are multiples of what is also the last place of this sum. */
    const uint32_t unit = (uint32_t)(127 + 24 - bias - mantissa) << 23;
    const float sum = strata_float_of_bits(magnitude) + strata_float_of_bits(unit);
    const uint32_t subnormal = strata_bits_of_float(sum) - unit;
    return strata_select(magnitude < less + ((uint32_t)1 << 23), subnormal, normal);
}

/* Exact. A NaN keeps its sign and payload, and becomes a quiet one. */
static inline float strata_float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t magnitude = half & 0x7fff;
    /* The exponent's bias is 15 there, 127 here. Subnormals are multiples of 2^-24. */
    const uint32_t normal = (magnitude << 13) + ((uint32_t)112 << 23);
    const uint32_t small = strata_bits_of_float((float)(int32_t)magnitude / 16777216.0f);
    const uint32_t quiet = (uint32_t)(magnitude > 0x7c00) << 22;
    const uint32_t large = 0x7f800000 | quiet | magnitude << 13;
    const uint32_t finite = strata_select(magnitude < 0x0400, small, normal);
    return strata_float_of_bits(sign | strata_select(magnitude < 0x7c00, finite, large));
}

/* To the nearest half, of two as near to the even one; from 65520 on to infinity. A NaN
 * keeps its sign and the upper bits of its payload, and becomes a quiet one. */
static inline uint16_t strata_half_of_float(float x)
{
    const uint32_t bits = strata_bits_of_float(x), magnitude = bits & 0x7fffffff;
    const uint32_t most = 0x477fefff; /* below 65520 */
    const uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x03ff);
    const uint32_t large = strata_select(magnitude > 0x7f800000, nan, 0x7c00);
    const uint32_t kept = strata_select(magnitude > most, most, magnitude);
    const uint32_t value = strata_narrow_magnitude(kept, 10, 15);
    return (uint16_t)((bits >> 16 & 0x8000) |
                      strata_select(magnitude > most, large, value));
}

#ifdef __cplusplus
}
#endif

#endif /* STRATA_HALF_H */
