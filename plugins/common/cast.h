/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements from dtype to dtype by the rule of the Cast layer (ONNX Cast), which is not
 * that of a reformat:
 *
 *   float to float      to nearest even; beyond the range infinite
 *   to FP8              the same; beyond the range, infinities too, with `saturate` the
 *                       largest, else NaN (E4M3) or infinity (E5M2)
 *   float to integer    towards zero; beyond the range its nearest end; NaN is 0
 *   integer to integer  the low bits
 *   integer to float    to nearest even, in one step
 *   anything to BOOL8   x != 0, so that NaN is 1
 *   BOOL8 to anything   1 or 0
 */
#ifndef PLUGINS_COMMON_CAST_H
#define PLUGINS_COMMON_CAST_H

#include <strata/narrow.h>
#include <strata/plugin.h>

#include <stddef.h>
#include <string.h>

typedef void cast_fn(void *dst, const void *src, size_t n, int saturate);

/* ---- one value, out of each type that values are computed in ----------------------- */

/* From `end` on a value is `high`; `top` is the last one before it. */
#define CAST_TRUNCATE(name, type, value_type, low, top, end, high)                       \
    static inline type cast_##name##_of_##value_type(value_type x)                       \
    {                                                                                    \
        const value_type least = (value_type)(low), most = (value_type)(top);            \
        const value_type above = x > least ? x : least; /* NaN: least */                 \
        const type value = (type)(above < most ? above : most);                          \
        const type whole = x >= (value_type)(end) ? (high) : value;                      \
        return x == x ? whole : 0;                                                       \
    }
CAST_TRUNCATE(int8, int8_t, float, INT8_MIN, 127, 127, INT8_MAX)
CAST_TRUNCATE(int8, int8_t, double, INT8_MIN, 127, 127, INT8_MAX)
CAST_TRUNCATE(uint8, uint8_t, float, 0, 255, 255, UINT8_MAX)
CAST_TRUNCATE(uint8, uint8_t, double, 0, 255, 255, UINT8_MAX)
CAST_TRUNCATE(int32, int32_t, float, INT32_MIN, 0x1.fffffep30, 0x1p31, INT32_MAX)
CAST_TRUNCATE(int32, int32_t, double, INT32_MIN, INT32_MAX, 0x1p31, INT32_MAX)
CAST_TRUNCATE(int64, int64_t, float, INT64_MIN, 0x1.fffffep62, 0x1p63, INT64_MAX)
CAST_TRUNCATE(int64, int64_t, double, INT64_MIN, 0x1.fffffffffffffp62, 0x1p63, INT64_MAX)

/* A value as an FP32 to be rounded again. */
static inline float cast_odd_of_float(float x)
{
    return x;
}
static inline float cast_odd_of_double(double x)
{
    return strata_odd_of_double(x);
}
static inline float cast_odd_of_int32_t(int32_t x)
{
    return strata_odd_of_double((double)x);
}
static inline float cast_odd_of_int64_t(int64_t x)
{
    return strata_odd_of_double(strata_odd_of_int64(x));
}

/* ---- loops of one pair --------------------------------------------------------------
 */

#define CAST_LOOP(to, from, to_type, from_type, value_type, load, store)                 \
    static inline void cast_##to##_##from(void *dst, const void *src, size_t n,          \
                                          int saturate)                                  \
    {                                                                                    \
        const from_type *s = (const from_type *)src;                                     \
        to_type *d = (to_type *)dst;                                                     \
        (void)saturate;                                                                  \
        for (size_t i = 0; i < n; i++) {                                                 \
            const value_type x = load(s[i]);                                             \
            d[i] = (to_type)(store);                                                     \
        }                                                                                \
    }
#define CAST_SAME(x) (x)
#define CAST_TRUTH(x) ((x) != 0)

/* From one dtype to all. whole(name, type): how its values become an integer. */
#define CAST_FROM(from, from_type, value, load, whole)                                   \
    CAST_LOOP(fp32, from, float, from_type, value, load, x)                              \
    CAST_LOOP(fp64, from, double, from_type, value, load, x)                             \
    CAST_LOOP(fp16, from, uint16_t, from_type, value, load,                              \
              strata_half_of_float(cast_odd_of_##value(x)))                              \
    CAST_LOOP(bf16, from, uint16_t, from_type, value, load,                              \
              strata_bfloat_of_float(cast_odd_of_##value(x)))                            \
    CAST_LOOP(e4m3, from, uint8_t, from_type, value, load,                               \
              strata_e4m3_of_float(cast_odd_of_##value(x), saturate))                    \
    CAST_LOOP(e5m2, from, uint8_t, from_type, value, load,                               \
              strata_e5m2_of_float(cast_odd_of_##value(x), saturate))                    \
    CAST_LOOP(int8, from, int8_t, from_type, value, load, whole(int8, value))            \
    CAST_LOOP(uint8, from, uint8_t, from_type, value, load, whole(uint8, value))         \
    CAST_LOOP(int32, from, int32_t, from_type, value, load, whole(int32, value))         \
    CAST_LOOP(int64, from, int64_t, from_type, value, load, whole(int64, value))         \
    CAST_LOOP(bool8, from, uint8_t, from_type, value, load, x != 0)

#define CAST_TO_WHOLE(to, value) cast_##to##_of_##value(x)
#define CAST_LOW_BITS(to, value) x

CAST_FROM(fp32, float, float, CAST_SAME, CAST_TO_WHOLE)
CAST_FROM(fp64, double, double, CAST_SAME, CAST_TO_WHOLE)
CAST_FROM(fp16, uint16_t, float, strata_float_of_half, CAST_TO_WHOLE)
CAST_FROM(bf16, uint16_t, float, strata_float_of_bfloat, CAST_TO_WHOLE)
CAST_FROM(e4m3, uint8_t, float, strata_float_of_e4m3, CAST_TO_WHOLE)
CAST_FROM(e5m2, uint8_t, float, strata_float_of_e5m2, CAST_TO_WHOLE)
CAST_FROM(int8, int8_t, int32_t, CAST_SAME, CAST_LOW_BITS)
CAST_FROM(uint8, uint8_t, int32_t, CAST_SAME, CAST_LOW_BITS)
CAST_FROM(int32, int32_t, int32_t, CAST_SAME, CAST_LOW_BITS)
CAST_FROM(int64, int64_t, int64_t, CAST_SAME, CAST_LOW_BITS)
CAST_FROM(bool8, uint8_t, int32_t, CAST_TRUTH, CAST_LOW_BITS)

/* ---- the table ----------------------------------------------------------------------
 */

#define CAST_ROW(from)                                                                   \
    {                                                                                    \
        [STRATA_FP32] = cast_fp32_##from, [STRATA_FP16] = cast_fp16_##from,              \
        [STRATA_INT8] = cast_int8_##from, [STRATA_UINT8] = cast_uint8_##from,            \
        [STRATA_INT32] = cast_int32_##from, [STRATA_INT64] = cast_int64_##from,          \
        [STRATA_BOOL8] = cast_bool8_##from, [STRATA_BF16] = cast_bf16_##from,            \
        [STRATA_E4M3] = cast_e4m3_##from, [STRATA_E5M2] = cast_e5m2_##from,              \
        [STRATA_FP64] = cast_fp64_##from                                                 \
    }

/* The loop of a pair: n contiguous elements, dst and src apart or the same memory where
 * the elements are of one size. `saturate` is looked at for FP8 alone. NULL for a dtype
 * that there is not. */
static inline cast_fn *cast_of(int to, int from)
{
    static cast_fn *const loops[STRATA_DTYPE_COUNT][STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = CAST_ROW(fp32),   [STRATA_FP16] = CAST_ROW(fp16),
        [STRATA_INT8] = CAST_ROW(int8),   [STRATA_UINT8] = CAST_ROW(uint8),
        [STRATA_INT32] = CAST_ROW(int32), [STRATA_INT64] = CAST_ROW(int64),
        [STRATA_BOOL8] = CAST_ROW(bool8), [STRATA_BF16] = CAST_ROW(bf16),
        [STRATA_E4M3] = CAST_ROW(e4m3),   [STRATA_E5M2] = CAST_ROW(e5m2),
        [STRATA_FP64] = CAST_ROW(fp64),
    };
    return to >= 0 && to < STRATA_DTYPE_COUNT && from >= 0 && from < STRATA_DTYPE_COUNT
               ? loops[from][to]
               : NULL;
}

#endif /* PLUGINS_COMMON_CAST_H */
