/* SPDX-License-Identifier: Apache-2.0
 *
 * From dtype to dtype by a middle type, so that a value is rounded once: FP32, by the
 * kernels of an instruction set, where it holds the source's values or what it loses is
 * out of the destination's range anyway; else FP64, in plain C.
 */
#include "formats/reformat/kernels.h"

#include <strata/narrow.h>

#include <math.h>
#include <string.h>

enum { CHUNK = 512 }; /* elements of a middle type, on the stack */

#define BIT(dtype) (1u << STRATA_##dtype)
#define ALL ((1u << STRATA_DTYPE_COUNT) - 1)

/* Destinations of each dtype that FP32 may stand before. */
static const unsigned by_float[STRATA_DTYPE_COUNT] = {
    [STRATA_FP32] = ALL,
    [STRATA_FP16] = ALL,
    [STRATA_BF16] = ALL,
    [STRATA_E4M3] = ALL,
    [STRATA_E5M2] = ALL,
    [STRATA_INT8] = ALL,
    [STRATA_UINT8] = ALL,
    [STRATA_BOOL8] = ALL,
    [STRATA_INT32] = ALL & ~(BIT(BF16) | BIT(FP64) | BIT(INT64)),
};

/* ---- by FP64 ---------------------------------------------------------------------- */

static void double_of(double *dst, const void *src, int dtype, int to, size_t n)
{
    const int32_t *i32 = src;
    const int64_t *i64 = src;
    if (dtype == STRATA_FP64)
        memcpy(dst, src, n * sizeof *dst);
    else if (dtype == STRATA_INT32)
        for (size_t i = 0; i < n; i++)
            dst[i] = i32[i];
    else if (to == STRATA_FP64)
        for (size_t i = 0; i < n; i++)
            dst[i] = (double)i64[i];
    else
        for (size_t i = 0; i < n; i++)
            dst[i] = strata_odd_of_int64(i64[i]);
}

static double clamp(double x, double low, double high)
{
    return x != x ? 0 : x < low ? low : x > high ? high : x;
}

#define FROM_DOUBLE(name, type, value)                                                   \
    static void name##_from(void *dst, const double *src, size_t n)                      \
    {                                                                                    \
        type *d = dst;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                 \
            const double x = src[i];                                                     \
            d[i] = (type)(value);                                                        \
        }                                                                                \
    }
FROM_DOUBLE(double, double, x)
FROM_DOUBLE(float, float, x)
FROM_DOUBLE(half, uint16_t, strata_half_of_float(strata_odd_of_double(x)))
FROM_DOUBLE(bfloat, uint16_t, strata_bfloat_of_float(strata_odd_of_double(x)))
FROM_DOUBLE(e4m3, uint8_t, strata_e4m3_of_float(strata_odd_of_double(x), 1))
FROM_DOUBLE(e5m2, uint8_t, strata_e5m2_of_float(strata_odd_of_double(x), 1))
FROM_DOUBLE(int8, int8_t, rint(clamp(x, INT8_MIN, INT8_MAX)))
FROM_DOUBLE(uint8, uint8_t, rint(clamp(x, 0, UINT8_MAX)))
FROM_DOUBLE(bool, uint8_t, x != 0)
FROM_DOUBLE(int32, int32_t, rint(clamp(x, INT32_MIN, INT32_MAX)))
FROM_DOUBLE(int64, int64_t,
            x >= 0x1p63 ? INT64_MAX : (int64_t)rint(clamp(x, -0x1p63, 0x1p63)))

void reformat_from_double(void *dst, int dtype, const double *src, size_t n)
{
    static void (*const from[STRATA_DTYPE_COUNT])(void *, const double *, size_t) = {
        [STRATA_FP64] = double_from, [STRATA_FP32] = float_from,
        [STRATA_FP16] = half_from,   [STRATA_BF16] = bfloat_from,
        [STRATA_E4M3] = e4m3_from,   [STRATA_E5M2] = e5m2_from,
        [STRATA_INT8] = int8_from,   [STRATA_UINT8] = uint8_from,
        [STRATA_BOOL8] = bool_from,  [STRATA_INT32] = int32_from,
        [STRATA_INT64] = int64_from,
    };
    from[dtype](dst, src, n);
}

static void convert_by_double(char *dst, int to, const char *src, int from, size_t n)
{
    const size_t dst_size = strata_dtype_size(to), src_size = strata_dtype_size(from);
    double middle[CHUNK];
    for (size_t i = 0; i < n; i += CHUNK) {
        const size_t m = n - i < CHUNK ? n - i : CHUNK;
        double_of(middle, src + i * src_size, from, to, m);
        reformat_from_double(dst + i * dst_size, to, middle, m);
    }
}

/* ---- by FP32 ---------------------------------------------------------------------- */

static to_float_fn *to_float(const struct reformat_kernels *k, int dtype)
{
    return k->to_float[dtype] ? k->to_float[dtype] : reformat_plain.to_float[dtype];
}

static from_float_fn *from_float(const struct reformat_kernels *k, int dtype)
{
    return k->from_float[dtype] ? k->from_float[dtype] : reformat_plain.from_float[dtype];
}

static void convert_by_float(const struct reformat_kernels *k, char *dst, int to,
                             const char *src, int from, size_t n)
{
    const size_t dst_size = strata_dtype_size(to), src_size = strata_dtype_size(from);
    _Alignas(64) float middle[CHUNK];
    if (from == STRATA_FP32) {
        from_float(k, to)(dst, (const float *)(const void *)src, n);
    } else if (to == STRATA_FP32) {
        to_float(k, from)((float *)(void *)dst, src, n);
    } else {
        for (size_t i = 0; i < n; i += CHUNK) {
            const size_t m = n - i < CHUNK ? n - i : CHUNK;
            to_float(k, from)(middle, src + i * src_size, m);
            from_float(k, to)(dst + i * dst_size, middle, m);
        }
    }
}

void reformat_convert(const struct reformat_kernels *k, void *dst, int dst_dtype,
                      const void *src, int src_dtype, size_t n)
{
    if (dst_dtype == src_dtype)
        memcpy(dst, src, n * strata_dtype_size(dst_dtype));
    else if (by_float[src_dtype] >> dst_dtype & 1)
        convert_by_float(k, dst, dst_dtype, src, src_dtype, n);
    else
        convert_by_double(dst, dst_dtype, src, src_dtype, n);
}
