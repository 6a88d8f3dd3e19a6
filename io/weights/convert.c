/* SPDX-License-Identifier: Apache-2.0
 *
 * From the element types of files to the core's. What the core has too it converts as in
 * a reformat. Other values go through double, which holds them exactly but for 64-bit
 * integers: those are rounded to odd, so that the step after is the only rounding that
 * shows.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include "io/weights/weights.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <strata/narrow.h>

#include "formats/reformat/reformat.h"

#define BLOCK 512 /* elements converted at a time, on the stack */

/* As strata_odd_of_int64. */
static double odd_of_unsigned(uint64_t x)
{
    const uint64_t kept = x & ~UINT64_C(0x7ff);
    return (double)(x >> 53 ? kept | (kept != x ? 0x800 : 0) : x);
}

#define LOADER(name, ctype, expression)                                                  \
    static void load_##name(double *out, const char *bytes, size_t n)                    \
    {                                                                                    \
        for (size_t i = 0; i < n; i++) {                                                 \
            ctype x;                                                                     \
            memcpy(&x, bytes + i * sizeof x, sizeof x);                                  \
            out[i] = expression;                                                         \
        }                                                                                \
    }
LOADER(f64, double, x)
LOADER(f32, float, (double)x)
LOADER(f16, uint16_t, (double)strata_float_of_half(x))
LOADER(bf16, uint16_t, (double)strata_float_of_bfloat(x))
LOADER(f8_e4m3, uint8_t, (double)strata_float_of_e4m3(x))
LOADER(f8_e5m2, uint8_t, (double)strata_float_of_e5m2(x))
LOADER(i64, int64_t, strata_odd_of_int64(x))
LOADER(i32, int32_t, x)
LOADER(i16, int16_t, x)
LOADER(i8, int8_t, x)
LOADER(u64, uint64_t, odd_of_unsigned(x))
LOADER(u32, uint32_t, x)
LOADER(u16, uint16_t, x)
LOADER(u8, uint8_t, x)
LOADER(bool, uint8_t, x != 0)

static void (*const loaders[WEIGHT_DTYPE_COUNT])(double *out, const char *bytes,
                                                 size_t n) = {
    [WEIGHT_F64] = load_f64,         [WEIGHT_F32] = load_f32,
    [WEIGHT_F16] = load_f16,         [WEIGHT_BF16] = load_bf16,
    [WEIGHT_F8_E4M3] = load_f8_e4m3, [WEIGHT_F8_E5M2] = load_f8_e5m2,
    [WEIGHT_I64] = load_i64,         [WEIGHT_I32] = load_i32,
    [WEIGHT_I16] = load_i16,         [WEIGHT_I8] = load_i8,
    [WEIGHT_U64] = load_u64,         [WEIGHT_U32] = load_u32,
    [WEIGHT_U16] = load_u16,         [WEIGHT_U8] = load_u8,
    [WEIGHT_BOOL] = load_bool,
};

/* The finite values of the core's dtypes. */
static const struct {
    double low, high;
    bool whole; /* integers */
} ranges[STRATA_DTYPE_COUNT] = {
    [STRATA_FP64] = {-DBL_MAX, DBL_MAX, false},
    [STRATA_FP32] = {-(double)FLT_MAX, (double)FLT_MAX, false},
    [STRATA_FP16] = {-65504, 65504, false},
    [STRATA_BF16] = {-0x1.fep127, 0x1.fep127, false},
    [STRATA_E4M3] = {-448, 448, false},
    [STRATA_E5M2] = {-57344, 57344, false},
    [STRATA_INT8] = {INT8_MIN, INT8_MAX, true},
    [STRATA_UINT8] = {0, UINT8_MAX, true},
    [STRATA_BOOL8] = {0, 1, true},
    [STRATA_INT32] = {INT32_MIN, INT32_MAX, true},
    [STRATA_INT64] = {-0x1p63, 0x1.fffffffffffffp62, true}, /* the last below 2^63 */
};

/* 64-bit integers into what holds more of them than the odd double does; false for other
 * dtypes. */
static bool convert_unsigned(void *dst, int dtype, const uint64_t *x, size_t n)
{
    int64_t *whole = dst;
    double *number = dst;
    for (size_t i = 0; i < n && dtype == STRATA_INT64; i++)
        whole[i] = x[i] < INT64_MAX ? (int64_t)x[i] : INT64_MAX;
    for (size_t i = 0; i < n && dtype == STRATA_FP64; i++)
        number[i] = (double)x[i];
    return dtype == STRATA_INT64 || dtype == STRATA_FP64;
}

/* n elements, at most BLOCK. */
static void convert_block(void *dst, int dtype, const char *bytes, enum weight_dtype from,
                          size_t n)
{
    union {
        double numbers[BLOCK];
        uint64_t wholes[BLOCK];
    } block; /* aligned, as the bytes need not be */
    const int core = weight_dtype_core(from);
    memcpy(&block, bytes, n * weight_dtype_size(from));
    if (core >= 0 && from != WEIGHT_BOOL) { /* whose bytes may be other than 0 and 1 */
        reformat_elements(dst, dtype, &block, core, n);
    } else if (from != WEIGHT_U64 || !convert_unsigned(dst, dtype, block.wholes, n)) {
        loaders[from](block.numbers, bytes, n);
        reformat_from_double(dst, dtype, block.numbers, n);
    }
}

int weights_convert(void *dst, int dtype, const void *src, enum weight_dtype from,
                    int64_t count, strata_error *err)
{
    char *to = dst;
    const char *bytes = src;
    if (dtype < 0 || dtype >= STRATA_DTYPE_COUNT || (size_t)from >= WEIGHT_DTYPE_COUNT ||
        count < 0)
        return error_set(err, STRATA_EINVAL,
                         "cannot convert %" PRId64 " elements from file type %d to dtype "
                         "%d",
                         count, (int)from, dtype);
    if (weight_dtype_core(from) == dtype && dtype != STRATA_BOOL8) {
        if (count > 0)
            memcpy(dst, src, (size_t)count * strata_dtype_size(dtype));
        return STRATA_OK;
    }
    for (size_t left = (size_t)count; left > 0;) {
        size_t n = left < BLOCK ? left : BLOCK;
        convert_block(to, dtype, bytes, from, n);
        bytes += n * weight_dtype_size(from);
        to += n * strata_dtype_size(dtype);
        left -= n;
    }
    return STRATA_OK;
}

/* Past the largest, and not rounded back to it. */
static bool passes_range(int dtype, double x)
{
    char narrow[sizeof x];
    double back = x;
    if (!isfinite(x) || (x >= ranges[dtype].low && x <= ranges[dtype].high))
        return false;
    if (dtype == STRATA_E4M3 || dtype == STRATA_E5M2)
        return true; /* they saturate, none turns infinite */
    reformat_from_double(narrow, dtype, &x, 1);
    reformat_elements(&back, STRATA_FP64, narrow, dtype, 1);
    return isinf(back);
}

static void add_loss(struct weight_loss *l, int dtype, double x)
{
    const bool whole = ranges[dtype].whole;
    l->low = x < l->low ? x : l->low; /* a NaN is neither */
    l->high = x > l->high ? x : l->high;
    if (dtype == STRATA_BOOL8)
        l->beyond += x != 0 && x != 1;
    else if (!whole)
        l->beyond += passes_range(dtype, x);
    else if (isnan(x))
        l->nans++;
    else if (x < ranges[dtype].low || x > ranges[dtype].high)
        l->beyond++;
    else
        l->rounded += x != rint(x);
}

int weights_loss(struct weight_loss *out, int dtype, const struct weight_view *v,
                 strata_error *err)
{
    double block[BLOCK];
    const size_t size = weight_dtype_size(v->dtype);
    *out = (struct weight_loss){.low = (double)INFINITY, .high = -(double)INFINITY};
    if (dtype < 0 || dtype >= STRATA_DTYPE_COUNT || !size)
        return error_set(err, STRATA_EINVAL, "no dtype %d, or no file type %d", dtype,
                         (int)v->dtype);
    for (size_t left = v->bytes / size, n; left > 0; left -= n) {
        n = left < BLOCK ? left : BLOCK;
        loaders[v->dtype](block, (const char *)v->data + v->bytes - left * size, n);
        for (size_t i = 0; i < n; i++)
            add_loss(out, dtype, block[i]);
    }
    return STRATA_OK;
}

void weights_range(int dtype, double *low, double *high)
{
    *low = ranges[dtype].low;
    *high = ranges[dtype].high;
}

#define NAN_TEST(name, ctype, magnitude, infinity)                                       \
    static bool nan_##name(const char *bytes, size_t n)                                  \
    {                                                                                    \
        bool any = false;                                                                \
        for (size_t i = 0; i < n; i++) {                                                 \
            ctype x;                                                                     \
            memcpy(&x, bytes + i * sizeof x, sizeof x);                                  \
            any |= (x & (magnitude)) > (infinity);                                       \
        }                                                                                \
        return any;                                                                      \
    }
NAN_TEST(f64, uint64_t, UINT64_MAX >> 1, UINT64_C(0x7ff0000000000000))
NAN_TEST(f32, uint32_t, UINT32_MAX >> 1, UINT32_C(0x7f800000))
NAN_TEST(f16, uint16_t, 0x7fff, 0x7c00)
NAN_TEST(bf16, uint16_t, 0x7fff, 0x7f80)
NAN_TEST(f8_e4m3, uint8_t, 0x7f, 0x7e)
NAN_TEST(f8_e5m2, uint8_t, 0x7f, 0x7c)

int64_t weights_first_nan(const struct weight_view *v)
{
    static bool (*const tests[WEIGHT_DTYPE_COUNT])(const char *bytes, size_t n) = {
        [WEIGHT_F64] = nan_f64,         [WEIGHT_F32] = nan_f32,
        [WEIGHT_F16] = nan_f16,         [WEIGHT_BF16] = nan_bf16,
        [WEIGHT_F8_E4M3] = nan_f8_e4m3, [WEIGHT_F8_E5M2] = nan_f8_e5m2,
    };
    const size_t size = weight_dtype_size(v->dtype), count = v->bytes / size;
    const char *bytes = v->data;
    size_t at = 0, n = BLOCK;
    while (tests[v->dtype] && at < count) {
        n = count - at < n ? count - at : n;
        if (!tests[v->dtype](bytes + at * size, n))
            at += n;
        else if (n == 1)
            return (int64_t)at;
        else
            n /= 2;
    }
    return -1;
}
