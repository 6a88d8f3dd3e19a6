/* SPDX-License-Identifier: Apache-2.0
 *
 * One update of Scatter on CUDA: an element, and what joins it.
 */
#ifndef PLUGINS_SCATTER_UPDATE_CUH
#define PLUGINS_SCATTER_UPDATE_CUH

#include "plugins/common/index.cuh"
#include "plugins/scatter/scatter.h"

template <typename T>
struct compute_of {
    typedef float type;
    static __device__ float load(T x)
    {
        return to_float(x);
    }
    static __device__ T store(float x)
    {
        T y;
        from_float(&y, x);
        return y;
    }
};

/* Integers wrap, as unsigned arithmetic does. */
template <typename T, typename C>
struct compute_plain {
    typedef C type;
    static __device__ C load(T x)
    {
        return (C)x;
    }
    static __device__ T store(C x)
    {
        return (T)x;
    }
};
template <>
struct compute_of<double> : compute_plain<double, double> {
};
template <>
struct compute_of<int8_t> : compute_plain<int8_t, long long> {
};
template <>
struct compute_of<uint8_t> : compute_plain<uint8_t, long long> {
};
template <>
struct compute_of<int32_t> : compute_plain<int32_t, long long> {
};
template <>
struct compute_of<int64_t> : compute_plain<int64_t, long long> {
};
template <>
struct compute_of<bool> : compute_plain<bool, int> {
};

template <typename C>
static __device__ inline C sum_of(C a, C b)
{
    return a + b;
}
template <>
__device__ inline long long sum_of(long long a, long long b)
{
    return (long long)((unsigned long long)a + (unsigned long long)b);
}
template <typename C>
static __device__ inline C product_of(C a, C b)
{
    return a * b;
}
template <>
__device__ inline long long product_of(long long a, long long b)
{
    return (long long)((unsigned long long)a * (unsigned long long)b);
}

/* NaN is the larger and the smaller one. */
template <typename T>
static __device__ inline T joined(int32_t reduction, T y, T u)
{
    typedef compute_of<T> of;
    const typename of::type a = of::load(y), b = of::load(u);
    switch (reduction) {
    case STRATA_SCATTER_ADD:
        return of::store(sum_of(a, b));
    case STRATA_SCATTER_MUL:
        return of::store(product_of(a, b));
    case STRATA_SCATTER_MAX:
        return a > b || a != a ? y : u;
    case STRATA_SCATTER_MIN:
        return a < b || a != a ? y : u;
    default:
        return u;
    }
}

/* An update as what it joins is held: of halves in FP32. */
template <typename T>
static __device__ inline T held_as(const T *, T x)
{
    return x;
}
static __device__ inline float held_as(const float *, __half x)
{
    return to_float(x);
}
static __device__ inline float held_as(const float *, __nv_bfloat16 x)
{
    return to_float(x);
}

#endif /* PLUGINS_SCATTER_UPDATE_CUH */
