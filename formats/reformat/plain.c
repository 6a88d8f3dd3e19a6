/* SPDX-License-Identifier: Apache-2.0
 *
 * Reformat kernels in plain C: any processor, and the tails of the others.
 */
#include "formats/reformat/kernels.h"

#include <math.h>
#include <string.h>

/* ---- conversion ------------------------------------------------------------------ */

static float clamp(float x, float low, float high)
{
    return x != x ? 0 : x < low ? low : x > high ? high : x;
}

static void half_to(float *dst, const void *src, size_t n)
{
    const uint16_t *s = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = half_to_float(s[i]);
}

static void half_from(void *dst, const float *src, size_t n)
{
    uint16_t *d = dst;
    for (size_t i = 0; i < n; i++)
        d[i] = half_from_float(src[i]);
}

static void int8_to(float *dst, const void *src, size_t n)
{
    const int8_t *s = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = s[i];
}

static void int8_from(void *dst, const float *src, size_t n)
{
    int8_t *d = dst;
    for (size_t i = 0; i < n; i++)
        d[i] = (int8_t)rintf(clamp(src[i], INT8_MIN, INT8_MAX));
}

static void uint8_to(float *dst, const void *src, size_t n)
{
    const uint8_t *s = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = s[i];
}

static void uint8_from(void *dst, const float *src, size_t n)
{
    uint8_t *d = dst;
    for (size_t i = 0; i < n; i++)
        d[i] = (uint8_t)rintf(clamp(src[i], 0, UINT8_MAX));
}

static void int32_to(float *dst, const void *src, size_t n)
{
    const int32_t *s = src;
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)s[i];
}

static void int32_from(void *dst, const float *src, size_t n)
{
    int32_t *d = dst;
    for (size_t i = 0; i < n; i++)
        d[i] = src[i] >= 0x1p31f ? INT32_MAX
                                 : (int32_t)rintf(clamp(src[i], -0x1p31f, 0x1p31f));
}

/* ---- transposition --------------------------------------------------------------- */

#define TRANSPOSITION(bytes, type)                                                       \
    static void pack##bytes(void *dst, size_t lanes, const void *src, size_t pitch,      \
                            size_t valid, size_t n, size_t ahead)                        \
    {                                                                                    \
        (void)ahead;                                                                     \
        const type *s = src;                                                             \
        type *d = dst;                                                                   \
        for (size_t i = 0; i < n; i++)                                                   \
            for (size_t l = 0; l < lanes; l++)                                           \
                d[i * lanes + l] = l < valid ? s[l * pitch + i] : 0;                     \
    }                                                                                    \
    static void unpack##bytes(void *dst, size_t dst_pitch, const void *src,              \
                              size_t pitch, size_t lanes, size_t n, size_t ahead)        \
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

static void stream_plain(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void fence_plain(void)
{
}

const struct reformat_kernels reformat_plain = {
    .to_float = {[STRATA_FP16] = half_to,
                 [STRATA_INT8] = int8_to,
                 [STRATA_UINT8] = uint8_to,
                 [STRATA_INT32] = int32_to},
    .from_float = {[STRATA_FP16] = half_from,
                   [STRATA_INT8] = int8_from,
                   [STRATA_UINT8] = uint8_from,
                   [STRATA_INT32] = int32_from},
    .pack = {pack1, pack2, pack4},
    .unpack = {unpack1, unpack2, unpack4},
    .stream = stream_plain,
    .fence = fence_plain,
};
