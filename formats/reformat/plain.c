/* SPDX-License-Identifier: Apache-2.0
 *
 * Reformat kernels in plain C: any processor, and the tails of the others.
 */
#include "formats/reformat/kernels.h"

#include <strata/narrow.h>

#include <math.h>
#include <string.h>

/* ---- conversion ------------------------------------------------------------------ */

#define TO_FLOAT(name, type, value)                                                      \
    static void name##_to(float *dst, const void *src, size_t n)                         \
    {                                                                                    \
        const type *s = src;                                                             \
        for (size_t i = 0; i < n; i++)                                                   \
            dst[i] = (float)(value);                                                     \
    }
TO_FLOAT(half, uint16_t, strata_float_of_half(s[i]))
TO_FLOAT(bfloat, uint16_t, strata_float_of_bfloat(s[i]))
TO_FLOAT(e4m3, uint8_t, strata_float_of_e4m3(s[i]))
TO_FLOAT(e5m2, uint8_t, strata_float_of_e5m2(s[i]))
TO_FLOAT(int8, int8_t, s[i])
TO_FLOAT(uint8, uint8_t, s[i])
TO_FLOAT(bool, uint8_t, s[i] != 0)
TO_FLOAT(int32, int32_t, s[i])

static float clamp(float x, float low, float high)
{
    return x != x ? 0 : x < low ? low : x > high ? high : x;
}

#define FROM_FLOAT(name, type, value)                                                    \
    static void name##_from(void *dst, const float *src, size_t n)                       \
    {                                                                                    \
        type *d = dst;                                                                   \
        for (size_t i = 0; i < n; i++) {                                                 \
            const float x = src[i];                                                      \
            d[i] = (type)(value);                                                        \
        }                                                                                \
    }
FROM_FLOAT(half, uint16_t, strata_half_of_float(x))
FROM_FLOAT(bfloat, uint16_t, strata_bfloat_of_float(x))
FROM_FLOAT(e4m3, uint8_t, strata_e4m3_of_float(x, 1))
FROM_FLOAT(e5m2, uint8_t, strata_e5m2_of_float(x, 1))
FROM_FLOAT(double, double, x)
FROM_FLOAT(int8, int8_t, rintf(clamp(x, INT8_MIN, INT8_MAX)))
FROM_FLOAT(uint8, uint8_t, rintf(clamp(x, 0, UINT8_MAX)))
FROM_FLOAT(bool, uint8_t, x != 0)
FROM_FLOAT(int32, int32_t,
           x >= 0x1p31f ? INT32_MAX : (int32_t)rintf(clamp(x, -0x1p31f, 0x1p31f)))
FROM_FLOAT(int64, int64_t,
           x >= 0x1p63f ? INT64_MAX : (int64_t)rintf(clamp(x, -0x1p63f, 0x1p63f)))

/* ---- transposition --------------------------------------------------------------- */

#define TRANSPOSITION(bytes, type)                                                       \
    void reformat_pack##bytes##_plain(void *dst, size_t lanes, const void *src,          \
                                      size_t pitch, size_t valid, size_t n,              \
                                      size_t ahead)                                      \
    {                                                                                    \
        (void)ahead;                                                                     \
        const type *s = src;                                                             \
        type *d = dst;                                                                   \
        for (size_t i = 0; i < n; i++)                                                   \
            for (size_t l = 0; l < lanes; l++)                                           \
                d[i * lanes + l] = l < valid ? s[l * pitch + i] : 0;                     \
    }                                                                                    \
    void reformat_unpack##bytes##_plain(void *dst, size_t dst_pitch, const void *src,    \
                                        size_t pitch, size_t lanes, size_t n,            \
                                        size_t ahead)                                    \
    {                                                                                    \
        (void)ahead;                                                                     \
        const type *s = src;                                                             \
        type *d = dst;                                                                   \
        for (size_t l = 0; l < lanes; l++)                                               \
            for (size_t i = 0; i < n; i++)                                               \
                d[l * dst_pitch + i] = s[i * pitch + l];                                 \
    }
TRANSPOSITION(1, uint8_t)
TRANSPOSITION(2, uint16_t)
TRANSPOSITION(4, uint32_t)
TRANSPOSITION(8, uint64_t)

static void stream_plain(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void fence_plain(void)
{
}

const struct reformat_kernels reformat_plain = {
    .to_float = {[STRATA_FP16] = half_to,
                 [STRATA_BF16] = bfloat_to,
                 [STRATA_E4M3] = e4m3_to,
                 [STRATA_E5M2] = e5m2_to,
                 [STRATA_INT8] = int8_to,
                 [STRATA_UINT8] = uint8_to,
                 [STRATA_BOOL8] = bool_to,
                 [STRATA_INT32] = int32_to},
    .from_float = {[STRATA_FP16] = half_from,
                   [STRATA_BF16] = bfloat_from,
                   [STRATA_E4M3] = e4m3_from,
                   [STRATA_E5M2] = e5m2_from,
                   [STRATA_FP64] = double_from,
                   [STRATA_INT8] = int8_from,
                   [STRATA_UINT8] = uint8_from,
                   [STRATA_BOOL8] = bool_from,
                   [STRATA_INT32] = int32_from,
                   [STRATA_INT64] = int64_from},
    .pack = {reformat_pack1_plain, reformat_pack2_plain, reformat_pack4_plain,
             reformat_pack8_plain},
    .unpack = {reformat_unpack1_plain, reformat_unpack2_plain, reformat_unpack4_plain,
               reformat_unpack8_plain},
    .stream = stream_plain,
    .fence = fence_plain,
};
