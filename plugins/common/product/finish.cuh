/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a product's sums.
 */
#ifndef PLUGINS_COMMON_PRODUCT_FINISH_CUH
#define PLUGINS_COMMON_PRODUCT_FINISH_CUH

#include "kernels/layer.cuh"
#include "plugins/common/product/pair.cuh"

/* Called, not inlined: it holds every activation. */
static __device__ __noinline__ float activate_called(float x, const activation_args &p)
{
    return activate(x, p);
}

/* Above 0, and a NaN stays one. */
static __device__ inline float positive(float x)
{
    float y;
    asm("max.NaN.f32 %0, %1, 0f00000000;\n" : "=f"(y) : "f"(x));
    return y;
}

template <int N>
static __device__ inline void product_activate(float (&v)[N], const activation_args &p)
{
    if (p.kind == STRATA_RELU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = positive(v[i]);
    } else if (p.kind == STRATA_GELU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = gelu(v[i]);
    } else if (p.kind >= 0) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = activate_called(v[i], p);
    }
}

static __device__ inline void add_eight(float (&v)[8], const float *from)
{
    const float4 x = *(const float4 *)from, y = *(const float4 *)(from + 4);
    const float more[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};
#pragma unroll
    for (int e = 0; e < 8; e++)
        v[e] += more[e];
}

#endif /* PLUGINS_COMMON_PRODUCT_FINISH_CUH */
