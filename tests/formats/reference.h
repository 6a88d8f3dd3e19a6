/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of conversions compare with: elements of any dtype as long double, which
 * holds them all, and floats rounded by the definition of their fields.
 */
#ifndef TESTS_FORMATS_REFERENCE_H
#define TESTS_FORMATS_REFERENCE_H

#include <strata/half.h>
#include <strata/plugin.h>
#include <strata/strata.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

struct float_kind {
    int mantissa, least; /* significant bits; the exponent of the least normal */
    long double largest;
    bool infinite; /* what is beyond becomes so, else the largest */
};

static inline const struct float_kind *float_kind(int dtype)
{
    static const struct float_kind kinds[STRATA_DTYPE_COUNT] = {
        [STRATA_FP64] = {53, -1022, 0x1.fffffffffffffp1023L, true},
        [STRATA_FP32] = {24, -126, 0x1.fffffep127L, true},
        [STRATA_FP16] = {11, -14, 65504, true},
        [STRATA_BF16] = {8, -126, 0x1.fep127L, true},
        [STRATA_E4M3] = {4, -6, 448, false},
        [STRATA_E5M2] = {3, -14, 57344, false},
    };
    return kinds[dtype].mantissa > 0 ? &kinds[dtype] : NULL;
}

static inline uint64_t load_bits(const char *data, size_t size)
{
    uint64_t bits = 0;
    memcpy(&bits, data, size); /* little-endian */
    return bits;
}

/* A float out of its fields; a NaN's bits after the point, as FP64 has them, are *nan. */
static inline long double float_value(uint64_t bits, const struct float_kind *k,
                                      size_t size, uint64_t *nan)
{
    const int width = (int)size * 8, fraction = k->mantissa - 1;
    const uint64_t low = bits & ((UINT64_C(1) << fraction) - 1);
    const int exponent =
        (int)(bits >> fraction & ((UINT64_C(1) << (width - 1 - fraction)) - 1));
    const int top = (1 << (width - 1 - fraction)) - 1;
    const long double sign = bits >> (width - 1) & 1 ? -1 : 1;
    const bool e4m3 = !k->infinite && k->mantissa == 4;
    *nan = 0;
    if (e4m3 ? (bits & 0x7f) == 0x7f : exponent == top && low != 0)
        *nan = (e4m3 ? 0 : low << (53 - k->mantissa)) | UINT64_C(1) << 51; /* quiet */
    else if (!e4m3 && exponent == top)
        return sign * (long double)INFINITY;
    if (exponent == 0)
        return sign * ldexpl((long double)low, k->least - fraction);
    return sign * ldexpl((long double)(low | UINT64_C(1) << fraction),
                         exponent - 1 + k->least - fraction);
}

/* long double holds every value of every dtype. */
static inline long double reference_get(const char *data, int dtype, int64_t at,
                                        uint64_t *nan)
{
    const size_t size = strata_dtype_size(dtype);
    const char *p = data + at * (int64_t)size;
    const uint64_t bits = load_bits(p, size);
    *nan = 0;
    if (dtype == STRATA_FP32 && (bits & 0x7fffffff) <= 0x7f800000)
        return (long double)strata_float_of_bits((uint32_t)bits); /* often: be quick */
    switch (dtype) {
    case STRATA_INT64:
        return (int64_t)bits;
    case STRATA_INT32:
        return (int32_t)bits;
    case STRATA_INT8:
        return (int8_t)bits;
    case STRATA_UINT8:
        return bits;
    case STRATA_BOOL8:
        return bits != 0;
    default:
        return float_value(bits, float_kind(dtype), size, nan);
    }
}

static inline int64_t nearest(long double x, int64_t low, int64_t high)
{
    if (x <= (long double)low)
        return low;
    if (x >= (long double)high)
        return high;
    const long double down = floorl(x), rest = x - down;
    const int64_t n = (int64_t)down;
    return rest > 0.5L || (rest == 0.5L && n % 2 != 0) ? n + 1 : n;
}

/* The magnitude's bits, sign apart. */
static inline uint64_t float_bits(long double x, const struct float_kind *k, size_t size)
{
    const int fraction = k->mantissa - 1;
    const uint64_t top = (UINT64_C(1) << (size * 8 - 1)) - (UINT64_C(1) << fraction);
    int exponent = 0;
    if (isinf(x))
        return k->infinite ? top : k->mantissa == 4 ? 0x7e : 0x7b;
    if (x == 0)
        return 0;
    frexpl(x, &exponent);
    exponent = exponent - 1 < k->least ? k->least : exponent - 1;
    const uint64_t units =
        (uint64_t)nearest(ldexpl(x, fraction - exponent), 0, INT64_MAX); /* may carry */
    if (ldexpl((long double)units, exponent - fraction) > k->largest)
        return float_bits((long double)INFINITY, k, size);
    return units + ((uint64_t)(exponent - k->least) << fraction);
}

static inline uint64_t nan_bits(uint64_t nan, const struct float_kind *k)
{
    if (!k->infinite && k->mantissa == 4)
        return 0x7f;
    const uint64_t low = nan >> (53 - k->mantissa);
    static const uint64_t tops[] = {[53] = UINT64_C(0x7ff) << 52,
                                    [24] = 0x7f800000,
                                    [11] = 0x7c00,
                                    [8] = 0x7f80,
                                    [3] = 0x7c};
    return tops[k->mantissa] | low;
}

static inline uint64_t signed_bits(long double x, uint64_t nan,
                                   const struct float_kind *k, size_t size)
{
    if (nan == 0 && k->mantissa == 24)
        return strata_bits_of_float((float)x); /* often: be quick */
    if (nan == 0 && k->mantissa == 11 && (long double)(float)x == x)
        return strata_half_of_float((float)x);
    return (nan ? nan_bits(nan, k) : float_bits(fabsl(x), k, size)) |
           (uint64_t)(signbit(x) != 0) << (size * 8 - 1);
}

#endif /* TESTS_FORMATS_REFERENCE_H */
