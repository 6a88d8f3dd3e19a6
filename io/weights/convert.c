/* SPDX-License-Identifier: Apache-2.0
 *
 * From the element types of files to the core's. A value goes through double, which holds
 * every float of a file exactly; 64-bit integers are rounded to odd on their way into it.
 * So the step to FP32 or FP16 is the only rounding that shows. Integers beyond 2^53 are
 * beyond every integer type of the core, and saturate.
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

#define BLOCK 512 /* elements converted at a time, on the stack */

static uint16_t half_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t magnitude = bits & ~(UINT64_C(1) << 63);
    const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
    const int exponent = (int)(magnitude >> 52) - 1023;
    if (magnitude > UINT64_C(0x7ff0000000000000))
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 42 & 0x1ff)); /* quiet NaN */
    if (exponent < -25)
        return sign;
    /* Normal: the exponent is re-biased and rounding may carry into it, up to infinity.
     * Subnormal: the leading one becomes explicit and the unit is 2^-24. */
    uint64_t value = magnitude - (UINT64_C(1008) << 52);
    int shift = 42;
    if (exponent < -14) {
        value = (magnitude & (UINT64_MAX >> 12)) | UINT64_C(1) << 52;
        shift += -14 - exponent;
    }
    uint64_t half = UINT64_C(1) << (shift - 1);
    uint64_t rounded = (value + half - 1 + (value >> shift & 1)) >> shift;
    return (uint16_t)(sign | (rounded < 0x7c00 ? rounded : 0x7c00));
}

static double half_value(uint16_t h)
{
    const int exponent = h >> 10 & 0x1f, fraction = h & 0x3ff;
    double magnitude;
    if (exponent == 0x1f)
        magnitude = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        magnitude = fraction * 0x1p-24;
    else
        magnitude = (1024 + fraction) * 0x1p-25 * (double)(UINT32_C(1) << exponent);
    return h & 0x8000 ? -magnitude : magnitude;
}

/* Truncated to 53 bits, the last of which tells whether anything was lost. */
static double round_to_odd(uint64_t x)
{
    if (x >> 53) {
        uint64_t lost = (UINT64_C(1) << (11 - __builtin_clzll(x))) - 1;
        x = (x & ~lost) | (x & lost ? lost + 1 : 0);
    }
    return (double)x;
}

/* bf16 is the high half of a float. */
static double bfloat_value(uint16_t high)
{
    uint32_t bits = (uint32_t)high << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static double signed_value(int64_t x)
{
    return x < 0 ? -round_to_odd(-(uint64_t)x) : round_to_odd((uint64_t)x);
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
LOADER(f16, uint16_t, half_value(x))
LOADER(bf16, uint16_t, bfloat_value(x))
LOADER(i64, int64_t, signed_value(x))
LOADER(i32, int32_t, x)
LOADER(i16, int16_t, x)
LOADER(i8, int8_t, x)
LOADER(u64, uint64_t, round_to_odd(x))
LOADER(u32, uint32_t, x)
LOADER(u16, uint16_t, x)
LOADER(u8, uint8_t, x)
LOADER(bool, uint8_t, x != 0)

static void (*const loaders[WEIGHT_DTYPE_COUNT])(double *out, const char *bytes,
                                                 size_t n) = {
    [WEIGHT_F64] = load_f64,   [WEIGHT_F32] = load_f32, [WEIGHT_F16] = load_f16,
    [WEIGHT_BF16] = load_bf16, [WEIGHT_I64] = load_i64, [WEIGHT_I32] = load_i32,
    [WEIGHT_I16] = load_i16,   [WEIGHT_I8] = load_i8,   [WEIGHT_U64] = load_u64,
    [WEIGHT_U32] = load_u32,   [WEIGHT_U16] = load_u16, [WEIGHT_U8] = load_u8,
    [WEIGHT_BOOL] = load_bool,
};

/* Saturated; rint is to nearest even in the default rounding mode. */
static int32_t to_integer(double x, double min, double max)
{
    if (isnan(x))
        return 0;
    return (int32_t)rint(x < min ? min : x > max ? max : x);
}

#define STORER(name, ctype, expression)                                                  \
    static void store_##name(void *dst, const double *in, size_t n)                      \
    {                                                                                    \
        ctype *out = dst;                                                                \
        for (size_t i = 0; i < n; i++)                                                   \
            out[i] = (ctype)(expression);                                                \
    }
STORER(fp32, float, in[i])
STORER(fp16, uint16_t, half_bits(in[i]))
STORER(int8, int8_t, to_integer(in[i], INT8_MIN, INT8_MAX))
STORER(uint8, uint8_t, to_integer(in[i], 0, UINT8_MAX))
STORER(int32, int32_t, to_integer(in[i], INT32_MIN, INT32_MAX))

static const struct {
    void (*store)(void *dst, const double *in, size_t n);
    size_t size;            /* bytes an element */
    enum weight_dtype same; /* the file type with the same bytes */
    double low, high;       /* finite values */
    bool whole;             /* integers */
} targets[STRATA_DTYPE_COUNT] = {
    [STRATA_FP32] = {store_fp32, 4, WEIGHT_F32, -(double)FLT_MAX, (double)FLT_MAX, false},
    [STRATA_FP16] = {store_fp16, 2, WEIGHT_F16, -65504, 65504, false},
    [STRATA_INT8] = {store_int8, 1, WEIGHT_I8, INT8_MIN, INT8_MAX, true},
    [STRATA_UINT8] = {store_uint8, 1, WEIGHT_U8, 0, UINT8_MAX, true},
    [STRATA_INT32] = {store_int32, 4, WEIGHT_I32, INT32_MIN, INT32_MAX, true},
};

int weights_convert(void *dst, int dtype, const void *src, enum weight_dtype from,
                    int64_t count, strata_error *err)
{
    double block[BLOCK];
    char *to = dst;
    const char *bytes = src;
    if (dtype < 0 || dtype >= STRATA_DTYPE_COUNT || (size_t)from >= WEIGHT_DTYPE_COUNT ||
        count < 0)
        return error_set(err, STRATA_EINVAL,
                         "cannot convert %" PRId64 " elements from file type %d to dtype "
                         "%d",
                         count, (int)from, dtype);
    if (targets[dtype].same == from) {
        if (count > 0)
            memcpy(dst, src, (size_t)count * targets[dtype].size);
        return STRATA_OK;
    }
    for (size_t left = (size_t)count; left > 0;) {
        size_t n = left < BLOCK ? left : BLOCK;
        loaders[from](block, bytes, n);
        targets[dtype].store(to, block, n);
        bytes += n * weight_dtype_size(from);
        to += n * targets[dtype].size;
        left -= n;
    }
    return STRATA_OK;
}

static bool turns_infinite(int dtype, double x)
{
    return isfinite(x) &&
           (dtype == STRATA_FP16 ? (half_bits(x) & 0x7fff) == 0x7c00 : isinf((float)x));
}

static void add_loss(struct weight_loss *l, int dtype, double x)
{
    const bool whole = targets[dtype].whole;
    if (isnan(x)) {
        l->nans += whole;
        return;
    }
    l->low = x < l->low ? x : l->low;
    l->high = x > l->high ? x : l->high;
    if (!whole)
        l->beyond += turns_infinite(dtype, x);
    else if (x < targets[dtype].low || x > targets[dtype].high)
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
    *low = targets[dtype].low;
    *high = targets[dtype].high;
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

int64_t weights_first_nan(const struct weight_view *v)
{
    static bool (*const tests[WEIGHT_DTYPE_COUNT])(const char *bytes, size_t n) = {
        [WEIGHT_F64] = nan_f64,
        [WEIGHT_F32] = nan_f32,
        [WEIGHT_F16] = nan_f16,
        [WEIGHT_BF16] = nan_bf16,
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
