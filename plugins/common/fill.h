/* SPDX-License-Identifier: Apache-2.0
 *
 * A constant as elements of any dtype: what lies outside of a tensor.
 */
#ifndef PLUGINS_COMMON_FILL_H
#define PLUGINS_COMMON_FILL_H

#include <math.h>
#include <string.h>

#include <strata/narrow.h>
#include <strata/plugin.h>

#include "plugins/common/element.h"
#include "plugins/common/index.h"

/* A whole number in an integer dtype's range; NaN becomes 0. */
static inline int64_t fill_whole(double value, double low, double high)
{
    const double whole = nearbyint(value);
    if (isnan(value))
        return 0;
    if (whole >= 0x1p63)
        return high >= 0x1p63 ? INT64_MAX : (int64_t)high;
    return (int64_t)element_clamp(whole, low, high);
}

/* The constant as an element's bits, repeated up to 64; limited to integers' ranges. */
static inline uint64_t fill_bits(int32_t dtype, double value)
{
    const uint64_t bytes = UINT64_C(0x0101010101010101), words = UINT64_C(0x100000001),
                   halves = UINT64_C(0x0001000100010001);
    uint64_t bits;
    switch (dtype) {
    case STRATA_FP32:
        return strata_bits_of_float((float)value) * words;
    case STRATA_FP16:
        return strata_half_of_float((float)value) * halves;
    case STRATA_BF16:
        return strata_bfloat_of_float((float)value) * halves;
    case STRATA_E4M3:
        return strata_e4m3_of_float((float)value, 1) * bytes;
    case STRATA_E5M2:
        return strata_e5m2_of_float((float)value, 1) * bytes;
    case STRATA_INT8:
        return (uint8_t)fill_whole(value, INT8_MIN, INT8_MAX) * bytes;
    case STRATA_UINT8:
        return (uint8_t)fill_whole(value, 0, UINT8_MAX) * bytes;
    case STRATA_BOOL8:
        return (value != 0) * bytes;
    case STRATA_INT32:
        return (uint32_t)fill_whole(value, INT32_MIN, INT32_MAX) * words;
    case STRATA_INT64:
        return (uint64_t)fill_whole(value, -0x1p63, 0x1p63);
    default:
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
}

/* Write the constant everywhere, pads included. */
static inline void fill_memory(const strata_tensor *y, double value)
{
    const uint64_t bits = fill_bits(y->dtype, value);
    const size_t bytes = (size_t)(y->size * index_size(y->dtype));
    size_t i = 0;
    for (; i + sizeof bits <= bytes; i += sizeof bits)
        memcpy((char *)y->data + i, &bits, sizeof bits);
    memcpy((char *)y->data + i, &bits, bytes - i);
}

/* The constant as a typed reference has it: a double, or the int64_t that it becomes. */
static inline void fill_reference(int32_t dtype, double value, void *out)
{
    const uint64_t bits = fill_bits(dtype, value);
    int64_t whole;
    switch (dtype) {
    case STRATA_INT8:
        whole = (int8_t)bits;
        break;
    case STRATA_UINT8:
    case STRATA_BOOL8:
        whole = (uint8_t)bits;
        break;
    case STRATA_INT32:
        whole = (int32_t)bits;
        break;
    case STRATA_INT64:
        whole = (int64_t)bits;
        break;
    default:
        memcpy(out, &value, 8);
        return;
    }
    memcpy(out, &whole, 8);
}

#endif /* PLUGINS_COMMON_FILL_H */
