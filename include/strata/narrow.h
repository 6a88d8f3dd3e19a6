/* SPDX-License-Identifier: Apache-2.0
 *
 * Floats narrower than FP32 for host impls: BF16 kept as uint16_t and FP8 as uint8_t,
 * which is how the host holds tensors of STRATA_BF16, STRATA_E4M3 and STRATA_E5M2; FP16
 * is in half.h. Compute in FP32 and store in these. All round to nearest, of two as near
 * to the even one. Self-contained, C99 and C++14; without branches, so that a compiler
 * vectorises a loop over it. The rounding mode must be the default, to nearest.
 */
#ifndef STRATA_NARROW_H
#define STRATA_NARROW_H

#include <strata/half.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- BF16: the upper half of an FP32 ---------------------------------------------- */

/* Exact. A NaN keeps its bits. */
static inline float strata_float_of_bfloat(uint16_t bfloat)
{
    return strata_float_of_bits((uint32_t)bfloat << 16);
}

/* Rounds on to infinity as FP32 would. A NaN keeps its sign and the upper bits of its
 * payload, and becomes a quiet one. */
static inline uint16_t strata_bfloat_of_float(float x)
{
    const uint32_t bits = strata_bits_of_float(x), nan = (bits | 0x400000) >> 16;
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)strata_select((bits & 0x7fffffff) > 0x7f800000, nan, rounded);
}

/* ---- FP8 -------------------------------------------------------------------------- */

/* E4M3: bias 7, 448 the largest, no infinity, 0x7f and 0xff are NaN. Exact. */
static inline float strata_float_of_e4m3(uint8_t e4m3)
{
    const uint32_t sign = (uint32_t)(e4m3 & 0x80) << 24, magnitude = e4m3 & 0x7f;
    const uint32_t normal = (magnitude << 20) + ((uint32_t)120 << 23);
    const uint32_t small = strata_bits_of_float((float)(int32_t)magnitude / 512.0f);
    const uint32_t value = strata_select(magnitude < 8, small, normal);
    return strata_float_of_bits(sign |
                                strata_select(magnitude == 0x7f, 0x7fc00000, value));
}

/* Past the largest, infinities too: the largest with `saturate`, else NaN. A NaN keeps
 * its sign. */
static inline uint8_t strata_e4m3_of_float(float x, int saturate)
{
    const uint32_t bits = strata_bits_of_float(x), magnitude = bits & 0x7fffffff;
    const uint32_t most = 0x43e80000; /* 464, halfway to what would follow 448 */
    const uint32_t kept = strata_select(magnitude > most, most, magnitude);
    const uint32_t value = strata_narrow_magnitude(kept, 3, 7);
    const uint32_t over = saturate ? 0x7e : 0x7f;
    const uint32_t large = strata_select(magnitude > 0x7f800000, 0x7f, over);
    return (uint8_t)((bits >> 24 & 0x80) | strata_select(magnitude > most, large, value));
}

/* E5M2: the upper half of an FP16, 57344 the largest. Exact. A NaN becomes a quiet one.
 */
static inline float strata_float_of_e5m2(uint8_t e5m2)
{
    const uint32_t sign = (uint32_t)(e5m2 & 0x80) << 24, magnitude = e5m2 & 0x7f;
    const uint32_t normal = (magnitude << 21) + ((uint32_t)112 << 23);
    const uint32_t small = strata_bits_of_float((float)(int32_t)magnitude / 65536.0f);
    const uint32_t quiet = (uint32_t)(magnitude > 0x7c) << 22;
    const uint32_t large = 0x7f800000 | quiet | magnitude << 21;
    const uint32_t value = strata_select(magnitude < 4, small, normal);
    return strata_float_of_bits(sign | strata_select(magnitude < 0x7c, value, large));
}

/* Past the largest, infinities too: the largest with `saturate`, else infinity. A NaN
 * keeps its sign and the upper bits of its payload, and becomes a quiet one. */
static inline uint8_t strata_e5m2_of_float(float x, int saturate)
{
    const uint32_t bits = strata_bits_of_float(x), magnitude = bits & 0x7fffffff;
    const uint32_t most = 0x476fffff; /* below 61440, halfway to what would follow */
    const uint32_t kept = strata_select(magnitude > most, most, magnitude);
    const uint32_t value = strata_narrow_magnitude(kept, 2, 15);
    const uint32_t over = saturate ? 0x7b : 0x7c, nan = 0x7e | (bits >> 21 & 1);
    const uint32_t large = strata_select(magnitude > 0x7f800000, nan, over);
    return (uint8_t)((bits >> 24 & 0x80) | strata_select(magnitude > most, large, value));
}

/* ---- wider values on their way into a narrow float ----------------------------------
 *
 * Rounding twice may round wrong. Rounded to odd first (towards zero, and the last bit
 * set where anything was lost), a value may then be rounded to the nearest one of at
 * least two bits less, as if in one step.
 */

/* An FP64 as an FP32 to be rounded again, to FP16, BF16 or FP8. A NaN keeps its sign and
 * the upper bits of its payload. */
static inline float strata_odd_of_double(double x)
{
    const float nearest = (float)x;
    const double found = (double)nearest;
    const int below = found < x; /* a NaN is neither */
    const int above = found > x;
    const uint32_t bits = strata_bits_of_float(nearest);
    const uint32_t back =
        strata_select((int)(bits >> 31), (uint32_t)below, (uint32_t)above);
    const uint32_t lost = (uint32_t)(below | above);
    return strata_float_of_bits((bits - back) | lost);
}

/* An INT64 as an FP64 to be rounded again, to FP32 or less. */
static inline double strata_odd_of_int64(int64_t x)
{
    const uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const uint64_t rest = magnitude & 0x7ff; /* past 53 bits, of at most 64 */
    const uint64_t odd = (magnitude & ~(uint64_t)0x7ff) | (rest != 0 ? 0x800 : 0);
    const double value = (double)(magnitude >> 53 != 0 ? odd : magnitude);
    return x < 0 ? -value : value;
}

#ifdef __cplusplus
}
#endif

#endif /* STRATA_NARROW_H */
