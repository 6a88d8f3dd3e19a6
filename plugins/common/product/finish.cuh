/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a product's sums.
 */
#ifndef PLUGINS_COMMON_PRODUCT_FINISH_CUH
#define PLUGINS_COMMON_PRODUCT_FINISH_CUH

#include "kernels/activate.cuh"
#include "plugins/common/product/pair.cuh"

static __device__ inline void add_eight(float (&v)[8], const float *from)
{
    const float4 x = *(const float4 *)from, y = *(const float4 *)(from + 4);
    const float more[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
#pragma unroll
    for (int e = 0; e < 8; e++)
        v[e] += more[e];
}

#endif /* PLUGINS_COMMON_PRODUCT_FINISH_CUH */
