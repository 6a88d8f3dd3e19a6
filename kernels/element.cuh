/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements on the device: the dtypes' types, conversions with the host's rounding, and
 * packs of elements moved in one access. Device code only; shared by all kernels.
 */
#ifndef KERNELS_ELEMENT_CUH
#define KERNELS_ELEMENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include <strata/plugin.h>

/* ---- conversion: round to nearest even, integers saturate, NaN becomes 0 ------------ */

static __device__ inline float to_float(float x)
{
    return x;
}
static __device__ inline float to_float(__half x)
{
    return __half2float(x);
}
static __device__ inline float to_float(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline float to_float(int8_t x)
{
    return (float)x;
}
static __device__ inline float to_float(uint8_t x)
{
    return (float)x;
}
static __device__ inline float to_float(int32_t x)
{
    return (float)x;
}

static __device__ inline void from_float(float *y, float x)
{
    *y = x;
}
static __device__ inline void from_float(__half *y, float x)
{
    *y = __float2half_rn(x);
}
static __device__ inline void from_float(__nv_bfloat16 *y, float x)
{
    *y = __float2bfloat16_rn(x);
}
static __device__ inline void from_float(int32_t *y, float x)
{
    *y = __float2int_rn(x); /* saturates; NaN becomes 0 */
}
static __device__ inline void from_float(int8_t *y, float x)
{
    *y = (int8_t)max(-128, min(127, __float2int_rn(x)));
}
static __device__ inline void from_float(uint8_t *y, float x)
{
    *y = (uint8_t)max(0, min(255, __float2int_rn(x)));
}

/* Through fp32 every pair of these rounds once: only an i32 may not fit in fp32, and has
 * no pair here. Wider dtypes are the business of kernels/reformat/any.cu. */
template <typename To, typename From> struct convert_element {
    static __device__ inline To of(From x)
    {
        To y;
        from_float(&y, to_float(x));
        return y;
    }
};
template <typename Same> struct convert_element<Same, Same> {
    static __device__ inline Same of(Same x)
    {
        return x;
    }
};
template <typename To, typename From> static __device__ inline To convert(From x)
{
    return convert_element<To, From>::of(x);
}

template <typename T> static __device__ inline T zero_element(void)
{
    return convert<T>((int8_t)0);
}
template <> __device__ inline int8_t zero_element<int8_t>(void)
{
    return 0;
}

/* ---- packs --------------------------------------------------------------------------- */

template <int Bytes> struct word_of;
template <> struct word_of<1> {
    typedef uint8_t type;
};
template <> struct word_of<2> {
    typedef uint16_t type;
};
template <> struct word_of<4> {
    typedef uint32_t type;
};
template <> struct word_of<8> {
    typedef uint2 type;
};
template <> struct word_of<16> {
    typedef uint4 type;
};

/* N elements that move as one word of at most 16 bytes, aligned to their size. */
template <typename T, int N> struct alignas(sizeof(T) * N) pack {
    T v[N];
};

/* Memory read or written once: keep it out of the way of what is used again. */
template <typename T, int N>
static __device__ inline pack<T, N> load_once(const T *p)
{
    typedef typename word_of<sizeof(T) * N>::type word;
    union {
        word w;
        pack<T, N> x;
    } u = {__ldcs((const word *)p)};
    return u.x;
}

template <typename T, int N>
static __device__ inline void store_once(T *p, const pack<T, N> &x)
{
    typedef typename word_of<sizeof(T) * N>::type word;
    __stcs((word *)p, *(const word *)&x);
}

template <typename To, typename From, int N>
static __device__ inline pack<To, N> convert_pack(const pack<From, N> &x)
{
    pack<To, N> y;
#pragma unroll
    for (int i = 0; i < N; i++)
        y.v[i] = convert<To>(x.v[i]);
    return y;
}

/* Of something in the block's shared memory, as instructions take it. */
static __device__ inline uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

#endif /* KERNELS_ELEMENT_CUH */
