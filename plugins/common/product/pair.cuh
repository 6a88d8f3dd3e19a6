/* SPDX-License-Identifier: Apache-2.0
 *
 * Two neighbours of FP16 or BF16 in a register, the first in its lower half. The first
 * parameter is there for its type.
 */
#ifndef PLUGINS_COMMON_PRODUCT_PAIR_CUH
#define PLUGINS_COMMON_PRODUCT_PAIR_CUH

#include "kernels/element.cuh"

static __device__ inline uint32_t pack_two(__half, float x, float y)
{
    const __half2 two = __floats2half2_rn(x, y);
    return *(const uint32_t *)&two;
}

static __device__ inline uint32_t pack_two(__nv_bfloat16, float x, float y)
{
    const __nv_bfloat162 two = __floats2bfloat162_rn(x, y);
    return *(const uint32_t *)&two;
}

static __device__ inline float2 unpack_two(__half, uint32_t x)
{
    return __half22float2(*(const __half2 *)&x);
}

static __device__ inline float2 unpack_two(__nv_bfloat16, uint32_t x)
{
    return __bfloat1622float2(*(const __nv_bfloat162 *)&x);
}

#endif /* PLUGINS_COMMON_PRODUCT_PAIR_CUH */
