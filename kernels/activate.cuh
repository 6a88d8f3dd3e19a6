/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations of many values that a thread holds: those that networks have most are in
 * line, behind one branch for all; the others are called, or each kernel would hold all.
 */
#ifndef KERNELS_ACTIVATE_CUH
#define KERNELS_ACTIVATE_CUH

#include "kernels/layer.cuh"

static __device__ __noinline__ float activate_called(float x, const activation_args &p)
{
    return activate(x, p);
}

/* The larger of both, the smaller; a NaN stays one. */
static __device__ inline float larger(float x, float y)
{
    float z;
    asm("max.NaN.f32 %0, %1, %2;\n" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

static __device__ inline float smaller(float x, float y)
{
    float z;
    asm("min.NaN.f32 %0, %1, %2;\n" : "=f"(z) : "f"(x), "f"(y));
    return z;
}

template <int N>
static __device__ inline void activate_all(float (&v)[N], const activation_args &p)
{
    if (p.kind < 0)
        return;
    if (p.kind == STRATA_RELU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = larger(v[i], 0);
    } else if (p.kind == STRATA_RELU6 || p.kind == STRATA_CLIP) {
        const float low = p.kind == STRATA_CLIP ? p.alpha : 0;
        const float high = p.kind == STRATA_CLIP ? p.beta : 6;
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = smaller(larger(v[i], low), high);
    } else if (p.kind == STRATA_GELU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = gelu(v[i]);
    } else if (p.kind == STRATA_SILU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = v[i] * sigmoid(v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = activate_called(v[i], p);
    }
}

#endif /* KERNELS_ACTIVATE_CUH */
