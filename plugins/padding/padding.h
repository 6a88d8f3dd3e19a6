/* SPDX-License-Identifier: Apache-2.0
 *
 * What Padding's impls share: where an output element comes from, and the constant.
 */
#ifndef PLUGINS_PADDING_PADDING_H
#define PLUGINS_PADDING_PADDING_H

#include <math.h>

#include <strata/layers.h>

#include "plugins/common/element.h"

/* Elements before and after dim d; lists are for the last dims. */
static inline int64_t padding_entry(strata_ints list, int32_t d, int32_t rank)
{
    int64_t k = d - (rank - list.n);
    return k < 0 ? 0 : list.v[k];
}

/* Input index under output index i, or -1 in a constant border. */
static inline int64_t padding_source(const strata_padding *p, int64_t i, int64_t begin,
                                     int64_t dim)
{
    int64_t at = i - begin;
    if (at >= 0 && at < dim)
        return at;
    if (p->mode == STRATA_PADDING_REFLECT)
        return at < 0 ? -at : 2 * (dim - 1) - at;
    if (p->mode == STRATA_PADDING_EDGE)
        return at < 0 ? 0 : dim - 1;
    return -1;
}

/* The constant as an element's bits, repeated up to 32; limited to integers' ranges. */
static inline uint32_t padding_bits(int32_t dtype, double value)
{
    static const struct {
        double low, high;
    } ranges[STRATA_DTYPE_COUNT] = {
        [STRATA_INT8] = {INT8_MIN, INT8_MAX},
        [STRATA_UINT8] = {0, UINT8_MAX},
        [STRATA_INT32] = {INT32_MIN, INT32_MAX},
    };
    if (dtype == STRATA_FP32)
        return strata_bits_of_float((float)value);
    if (dtype == STRATA_FP16)
        return element_to_half((float)value) * 0x10001u;
    double whole = nearbyint(element_clamp(value, ranges[dtype].low, ranges[dtype].high));
    int32_t integer = isnan(value) ? 0 : (int32_t)whole;
    return dtype == STRATA_INT32 ? (uint32_t)integer : (uint8_t)integer * 0x1010101u;
}

#endif /* PLUGINS_PADDING_PADDING_H */
