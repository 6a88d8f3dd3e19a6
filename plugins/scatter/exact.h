/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of how an update joins what is there.
 */
#ifndef PLUGINS_SCATTER_EXACT_H
#define PLUGINS_SCATTER_EXACT_H

#include <strata/layers.h>

#include <math.h>

static inline double exact_double(int32_t reduction, double a, double b)
{
    switch (reduction) {
    case STRATA_SCATTER_ADD:
        return a + b;
    case STRATA_SCATTER_MUL:
        return a * b;
    case STRATA_SCATTER_MAX:
        return a > b || isnan(a) ? a : b;
    case STRATA_SCATTER_MIN:
        return a < b || isnan(a) ? a : b;
    default:
        return b;
    }
}

static inline int64_t exact_integer(int32_t reduction, int32_t dtype, int64_t a,
                                    int64_t b)
{
    const uint64_t sum = (uint64_t)a + (uint64_t)b, product = (uint64_t)a * (uint64_t)b;
    const int64_t y = reduction == STRATA_SCATTER_ADD   ? (int64_t)sum
                      : reduction == STRATA_SCATTER_MUL ? (int64_t)product
                      : reduction == STRATA_SCATTER_MAX ? (a > b ? a : b)
                      : reduction == STRATA_SCATTER_MIN ? (a < b ? a : b)
                                                        : b;
    switch (dtype) {
    case STRATA_INT8:
        return (int8_t)y;
    case STRATA_UINT8:
        return (uint8_t)y;
    case STRATA_INT32:
        return (int32_t)y;
    case STRATA_BOOL8:
        return y != 0;
    default:
        return y;
    }
}

#endif /* PLUGINS_SCATTER_EXACT_H */
