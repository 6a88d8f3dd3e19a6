/* SPDX-License-Identifier: Apache-2.0
 *
 * FP16 for host impls: IEEE 754 binary16 kept as uint16_t, which is how the host holds
 * tensors of STRATA_FP16. Compute in FP32 and store in FP16. Self-contained, C99 and
 * C++14; plain enough for a compiler to vectorise a loop over it.
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

/* Exact. A NaN keeps its sign and payload, and becomes a quiet one. */
static inline float strata_float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t magnitude = half & 0x7fff;
    if (magnitude > 0x7c00)
        return strata_float_of_bits(sign | 0x7fc00000 | magnitude << 13);
    if (magnitude == 0x7c00)
        return strata_float_of_bits(sign | 0x7f800000);
    if (magnitude >= 0x0400) /* the exponent's bias is 15 there, 127 here */
        return strata_float_of_bits(sign | ((magnitude << 13) + (112u << 23)));
    /* Subnormals are multiples of 2^-24. */
    return (sign ? -1.0f : 1.0f) * ((float)magnitude / 16777216.0f);
}

/* To the nearest half, of two as near to the even one; from 65520 on to infinity. A NaN
 * keeps its sign and the upper bits of its payload, and becomes a quiet one. */
static inline uint16_t strata_half_of_float(float x)
{
    const uint32_t bits = strata_bits_of_float(x), sign = bits >> 16 & 0x8000;
    const uint32_t magnitude = bits & 0x7fffffff;
    uint32_t value, drop = 13, odd;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x03ff));
    if (magnitude >= 0x477ff000)
        return (uint16_t)(sign | 0x7c00);
    if (magnitude <= 0x33000000) /* 2^-25, halfway to the least subnormal */
        return (uint16_t)sign;
    value = magnitude - (112u << 23);
    if (magnitude < 0x38800000) { /* below 2^-14: a subnormal */
        drop = 126 - (magnitude >> 23);
        value = (magnitude & 0x7fffff) | 0x800000;
    }
    odd = value >> drop & 1;
    value += ((uint32_t)1 << (drop - 1)) - 1 + odd;
    return (uint16_t)(sign | value >> drop);
}

#ifdef __cplusplus
}
#endif

#endif /* STRATA_HALF_H */
