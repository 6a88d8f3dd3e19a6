/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of an element, for C and CUDA.
 */
#ifndef PLUGINS_COMMON_DTYPE_H
#define PLUGINS_COMMON_DTYPE_H

#include <stddef.h>

#include <strata/plugin.h>

static inline size_t dtype_size(int32_t dtype)
{
    switch (dtype) {
    case STRATA_INT64:
    case STRATA_FP64:
        return 8;
    case STRATA_FP32:
    case STRATA_INT32:
        return 4;
    case STRATA_FP16:
    case STRATA_BF16:
        return 2;
    default:
        return 1;
    }
}

#endif /* PLUGINS_COMMON_DTYPE_H */
