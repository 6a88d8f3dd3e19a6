/* SPDX-License-Identifier: Apache-2.0
 *
 * The two kinds of numbers that Reduce gathers on CUDA, float and int64_t: loads, stores
 * and arithmetic that are written alike for both.
 */
#ifndef PLUGINS_REDUCE_NUMBER_CUH
#define PLUGINS_REDUCE_NUMBER_CUH

#include "kernels/layer.cuh"

static __device__ inline float number(float x)
{
    return x;
}
static __device__ inline float number(__half x)
{
    return __half2float(x);
}
static __device__ inline float number(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline int64_t number(int8_t x)
{
    return x;
}
static __device__ inline int64_t number(uint8_t x)
{
    return x;
}
static __device__ inline int64_t number(int32_t x)
{
    return x;
}
static __device__ inline int64_t number(int64_t x)
{
    return x;
}

/* Unsigned, as integers wrap. */
static __device__ inline int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static __device__ inline float product(float a, float b)
{
    return a * b;
}
static __device__ inline int64_t total(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static __device__ inline float total(float a, float b)
{
    return a + b;
}
static __device__ inline int64_t magnitude(int64_t x)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}
static __device__ inline float magnitude(float x)
{
    return fabsf(x);
}

static __device__ inline void put(float *y, float x)
{
    *y = x;
}
static __device__ inline void put(__half *y, float x)
{
    *y = __float2half_rn(x);
}
static __device__ inline void put(__nv_bfloat16 *y, float x)
{
    *y = __float2bfloat16_rn(x);
}
static __device__ inline void put(int8_t *y, int64_t x)
{
    *y = (int8_t)x;
}
static __device__ inline void put(uint8_t *y, int64_t x)
{
    *y = (uint8_t)x;
}
static __device__ inline void put(int32_t *y, int64_t x)
{
    *y = (int32_t)x;
}
static __device__ inline void put(int64_t *y, int64_t x)
{
    *y = x;
}

/* A NaN is the largest and the smallest. */
template <typename A>
static __device__ inline A larger(A a, A x)
{
    return x > a || x != x ? x : a;
}
template <typename A>
static __device__ inline A smaller(A a, A x)
{
    return x < a || x != x ? x : a;
}

#endif
