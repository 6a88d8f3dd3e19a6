/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of TopK: every element has a key, an unsigned number that is larger where the
 * element comes earlier; equal elements have equal keys. C99 and C++14.
 */
#ifndef PLUGINS_TOP_K_TOP_K_H
#define PLUGINS_TOP_K_TOP_K_H

#include <strata/layers.h>

#include "plugins/common/lines.h"

/* From the bits of an FP32: -0 is 0, and a NaN above infinity. */
LINES_INLINE uint32_t top_k_key32(uint32_t bits)
{
    const uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return 0xffffffff;
    if (magnitude == 0)
        return 0x80000000;
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

LINES_INLINE uint64_t top_k_key64(uint64_t bits)
{
    const uint64_t sign = (uint64_t)1 << 63, magnitude = bits & ~sign;
    if (magnitude > (uint64_t)0x7ff << 52)
        return ~(uint64_t)0;
    if (magnitude == 0)
        return sign;
    return bits & sign ? ~bits : bits | sign;
}

LINES_INLINE uint64_t top_k_key_integer(int64_t x)
{
    return (uint64_t)x ^ (uint64_t)1 << 63;
}

#endif /* PLUGINS_TOP_K_TOP_K_H */
