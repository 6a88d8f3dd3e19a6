/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions of single elements. Small floats go through one formula for all of them.
 */
#include "check/harness/number.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <strata/half.h>

static const struct kind {
    bool real, any;
    double largest; /* of a float */
    int64_t low, high;
    int exponent, mantissa; /* bits of a float that has no C type; 0: it has */
    bool infinite;
} kinds[STRATA_DTYPE_COUNT] = {
    [STRATA_FP32] = {.real = true, .any = true, .largest = FLT_MAX},
    [STRATA_FP16] = {.real = true, .any = true, .largest = 65504},
    [STRATA_BF16] = {.real = true,
                     .any = true,
                     .largest = 0x1.fep127,
                     .exponent = 8,
                     .mantissa = 7,
                     .infinite = true},
    [STRATA_E4M3] = {.real = true, .largest = 448, .exponent = 4, .mantissa = 3},
    [STRATA_E5M2] =
        {.real = true, .largest = 57344, .exponent = 5, .mantissa = 2, .infinite = true},
    [STRATA_FP64] = {.real = true, .largest = DBL_MAX},
    [STRATA_INT8] = {.low = INT8_MIN, .high = INT8_MAX},
    [STRATA_UINT8] = {.high = UINT8_MAX},
    [STRATA_INT32] = {.low = INT32_MIN, .high = INT32_MAX},
    [STRATA_INT64] = {.low = INT64_MIN, .high = INT64_MAX},
    [STRATA_BOOL8] = {.high = 1},
};

static const struct kind *kind_of(int32_t dtype)
{
    return &kinds[dtype >= 0 && dtype < STRATA_DTYPE_COUNT ? dtype : STRATA_FP32];
}

bool number_is_real(int32_t dtype)
{
    return kind_of(dtype)->real;
}

bool number_is_any(int32_t dtype)
{
    return kind_of(dtype)->any;
}

bool number_may_be(int32_t dtype, bool exact, int32_t stored)
{
    return dtype == stored || (!exact && number_is_any(dtype) && number_is_any(stored));
}

double number_largest(int32_t dtype)
{
    return kind_of(dtype)->largest;
}

int64_t number_lowest(int32_t dtype)
{
    return kind_of(dtype)->low;
}

int64_t number_highest(int32_t dtype)
{
    return kind_of(dtype)->high;
}

/* ---- small floats -------------------------------------------------------------- */

static double decode(const struct kind *k, unsigned bits)
{
    const unsigned sign = bits >> (k->exponent + k->mantissa) & 1;
    const unsigned magnitude = bits & ((1u << (k->exponent + k->mantissa)) - 1);
    const unsigned fraction = magnitude & ((1u << k->mantissa) - 1);
    const int top = (1 << k->exponent) - 1, bias = top / 2;
    const int exponent = (int)(magnitude >> k->mantissa);
    double x;
    if (exponent == top && (k->infinite || fraction == (1u << k->mantissa) - 1))
        x = k->infinite && fraction == 0 ? INFINITY : NAN;
    else
        x = ldexp(fraction + (exponent ? 1u << k->mantissa : 0),
                  (exponent ? exponent : 1) - bias - k->mantissa);
    return sign ? -x : x;
}

static unsigned encode(const struct kind *k, double x)
{
    const int top = (1 << k->exponent) - 1, bias = top / 2;
    const unsigned sign = (unsigned)(signbit(x) != 0) << (k->exponent + k->mantissa);
    const unsigned nan = (1u << (k->exponent + k->mantissa)) - 1;
    const unsigned beyond = k->infinite ? (unsigned)top << k->mantissa : nan;
    int exponent;
    if (isnan(x))
        return sign | nan;
    if (isinf(x))
        return sign | beyond;
    if (x == 0)
        return sign;
    frexp(x, &exponent);
    exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
    /* A mantissa that rounds up to the next power of 2 carries into the exponent. */
    const double steps = rint(ldexp(fabs(x), k->mantissa - exponent));
    const unsigned magnitude =
        ((unsigned)(exponent + bias - 1) << k->mantissa) + (unsigned)steps;
    return sign | (magnitude < beyond ? magnitude : beyond);
}

static double load_bf16(uint16_t bits)
{
    return (double)strata_float_of_bits((uint32_t)bits << 16);
}

/* ---- elements ------------------------------------------------------------------ */

static void store_real(void *data, int32_t dtype, int64_t at, double x)
{
    switch (dtype) {
    case STRATA_FP32:
        ((float *)data)[at] = (float)x;
        break;
    case STRATA_FP64:
        ((double *)data)[at] = x;
        break;
    case STRATA_FP16:
        ((uint16_t *)data)[at] = strata_half_of_float((float)x);
        break;
    case STRATA_BF16:
        ((uint16_t *)data)[at] = (uint16_t)encode(kind_of(dtype), x);
        break;
    default:
        ((uint8_t *)data)[at] = (uint8_t)encode(kind_of(dtype), x);
        break;
    }
}

static double load_real(const void *data, int32_t dtype, int64_t at)
{
    switch (dtype) {
    case STRATA_FP32:
        return (double)((const float *)data)[at];
    case STRATA_FP64:
        return ((const double *)data)[at];
    case STRATA_FP16:
        return (double)strata_float_of_half(((const uint16_t *)data)[at]);
    case STRATA_BF16:
        return load_bf16(((const uint16_t *)data)[at]);
    default:
        return decode(kind_of(dtype), ((const uint8_t *)data)[at]);
    }
}

static int64_t limited(int32_t dtype, int64_t x)
{
    const struct kind *k = kind_of(dtype);
    return x < k->low ? k->low : x > k->high ? k->high : x;
}

static void store_whole(void *data, int32_t dtype, int64_t at, int64_t x)
{
    x = limited(dtype, x);
    switch (dtype) {
    case STRATA_INT32:
        ((int32_t *)data)[at] = (int32_t)x;
        break;
    case STRATA_INT64:
        ((int64_t *)data)[at] = x;
        break;
    default:
        ((uint8_t *)data)[at] = (uint8_t)x;
        break;
    }
}

/* A BOOL8 that is not 0 or 1 is read as the number it is, and so differs. */
static int64_t load_whole(const void *data, int32_t dtype, int64_t at)
{
    switch (dtype) {
    case STRATA_INT8:
        return ((const int8_t *)data)[at];
    case STRATA_INT32:
        return ((const int32_t *)data)[at];
    case STRATA_INT64:
        return ((const int64_t *)data)[at];
    default:
        return ((const uint8_t *)data)[at];
    }
}

void number_store(void *data, int32_t dtype, int64_t at, const void *values, int64_t i)
{
    if (number_is_real(dtype))
        store_real(data, dtype, at, ((const double *)values)[i]);
    else
        store_whole(data, dtype, at, ((const int64_t *)values)[i]);
}

void number_load(void *values, int64_t i, const void *data, int32_t dtype, int64_t at)
{
    if (number_is_real(dtype))
        ((double *)values)[i] = load_real(data, dtype, at);
    else
        ((int64_t *)values)[i] = load_whole(data, dtype, at);
}

double number_round(int32_t dtype, double x)
{
    double element;
    if (!number_is_real(dtype))
        return (double)limited(dtype, (int64_t)rint(x));
    store_real(&element, dtype, 0, x);
    return load_real(&element, dtype, 0);
}

double number_rounding(int32_t dtype, double want)
{
    return dtype == STRATA_E4M3   ? fmax(0x1p-4 * fabs(want), 0x1p-10)
           : dtype == STRATA_E5M2 ? fmax(0x1p-3 * fabs(want), 0x1p-17)
                                  : 0;
}

bool number_keeps(int32_t dtype, const void *values, int64_t i)
{
    if (!number_is_real(dtype)) {
        const int64_t x = ((const int64_t *)values)[i];
        return limited(dtype, x) == x;
    }
    const double x = ((const double *)values)[i];
    return isnan(x) || number_round(dtype, x) == x;
}

/* ---- values -------------------------------------------------------------------- */

double number_of(const void *values, int32_t dtype, int64_t i)
{
    return number_is_real(dtype) ? ((const double *)values)[i]
                                 : (double)((const int64_t *)values)[i];
}

void number_to_reals(double *out, const void *values, int32_t dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = number_of(values, dtype, i);
}

void number_from_reals(void *values, int32_t dtype, const double *in, int64_t n)
{
    if (number_is_real(dtype))
        memcpy(values, in, (size_t)n * sizeof *in);
    else
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)values)[i] = (int64_t)rint(in[i]);
}

bool number_same(int32_t dtype, const void *a, const void *b, int64_t i)
{
    const double *x = a, *y = b;
    return memcmp(&x[i], &y[i], VALUE_SIZE) == 0 ||
           (number_is_real(dtype) && isnan(x[i]) && isnan(y[i]));
}

const char *number_text(char text[NUMBER_TEXT], const void *values, int32_t dtype,
                        int64_t i)
{
    if (number_is_real(dtype))
        snprintf(text, NUMBER_TEXT, dtype == STRATA_FP64 ? "%.17g" : "%.9g",
                 ((const double *)values)[i]);
    else
        snprintf(text, NUMBER_TEXT, "%" PRId64, ((const int64_t *)values)[i]);
    return text;
}
