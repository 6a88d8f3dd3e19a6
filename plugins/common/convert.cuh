/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements from type to type on the device by the rule of Cast, as plugins/common/cast.h
 * has it for the host: floats round to nearest even, to integers they are cut off and
 * limited and a NaN is 0, integers keep their low bits.
 */
#ifndef PLUGINS_COMMON_CONVERT_CUH
#define PLUGINS_COMMON_CONVERT_CUH

#include "kernels/layer.cuh"

#include <cuda_bf16.h>
#include <cuda_fp8.h>

/* BOOL8, to be told from UINT8. */
struct truth {
    uint8_t v;
};

/* ---- what an element is computed in ---------------------------------------------------- */

static __device__ inline float cast_value(float x)
{
    return x;
}
static __device__ inline float cast_value(__half x)
{
    return __half2float(x);
}
static __device__ inline float cast_value(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline float cast_value(__nv_fp8_e4m3 x)
{
    return (float)x;
}
static __device__ inline float cast_value(__nv_fp8_e5m2 x)
{
    return (float)x;
}
static __device__ inline double cast_value(double x)
{
    return x;
}
static __device__ inline int32_t cast_value(int8_t x)
{
    return x;
}
static __device__ inline int32_t cast_value(uint8_t x)
{
    return x;
}
static __device__ inline int32_t cast_value(int32_t x)
{
    return x;
}
static __device__ inline int64_t cast_value(int64_t x)
{
    return x;
}
static __device__ inline int32_t cast_value(truth x)
{
    return x.v != 0;
}

/* ---- from that to an element ------------------------------------------------------------- */

/* Cut off and limited; of NaN 0, which conversions to 64 bits do not give. */
static __device__ inline int32_t cut32(float x)
{
    return __float2int_rz(x);
}
static __device__ inline int32_t cut32(double x)
{
    return x == x ? __double2int_rz(x) : 0;
}
static __device__ inline int64_t cut64(float x)
{
    return x == x ? __float2ll_rz(x) : 0;
}
static __device__ inline int64_t cut64(double x)
{
    return x == x ? __double2ll_rz(x) : 0;
}
static __device__ inline int32_t cut32(int32_t x)
{
    return x;
}
static __device__ inline int32_t cut32(int64_t x)
{
    return (int32_t)x;
}
static __device__ inline int64_t cut64(int32_t x)
{
    return x;
}
static __device__ inline int64_t cut64(int64_t x)
{
    return x;
}

template <typename V> static __device__ inline void cast_to(float *y, V x, bool)
{
    *y = (float)x;
}
template <typename V> static __device__ inline void cast_to(double *y, V x, bool)
{
    *y = (double)x;
}
template <typename V> static __device__ inline void cast_to(int32_t *y, V x, bool)
{
    *y = cut32(x);
}
template <typename V> static __device__ inline void cast_to(int64_t *y, V x, bool)
{
    *y = cut64(x);
}
template <typename V> static __device__ inline void cast_to(truth *y, V x, bool)
{
    y->v = x != 0;
}

/* To a byte floats are limited, integers not. */
static __device__ inline void cast_to(int8_t *y, int32_t x, bool)
{
    *y = (int8_t)x;
}
static __device__ inline void cast_to(int8_t *y, int64_t x, bool)
{
    *y = (int8_t)x;
}
template <typename V> static __device__ inline void cast_to(int8_t *y, V x, bool)
{
    *y = (int8_t)max(-128, min(127, cut32(x)));
}
static __device__ inline void cast_to(uint8_t *y, int32_t x, bool)
{
    *y = (uint8_t)x;
}
static __device__ inline void cast_to(uint8_t *y, int64_t x, bool)
{
    *y = (uint8_t)x;
}
template <typename V> static __device__ inline void cast_to(uint8_t *y, V x, bool)
{
    *y = (uint8_t)max(0, min(255, cut32(x)));
}

static __device__ inline void cast_to(__half *y, float x, bool)
{
    *y = __float2half_rn(x);
}
static __device__ inline void cast_to(__half *y, double x, bool)
{
    *y = __double2half(x);
}
static __device__ inline void cast_to(__half *y, int32_t x, bool)
{
    *y = __int2half_rn(x);
}
static __device__ inline void cast_to(__half *y, int64_t x, bool)
{
    *y = __ll2half_rn(x);
}

static __device__ inline void cast_to(__nv_bfloat16 *y, float x, bool)
{
    *y = __float2bfloat16_rn(x);
}
static __device__ inline void cast_to(__nv_bfloat16 *y, double x, bool)
{
    *y = __double2bfloat16(x);
}
static __device__ inline void cast_to(__nv_bfloat16 *y, int32_t x, bool)
{
    *y = __int2bfloat16_rn(x);
}
static __device__ inline void cast_to(__nv_bfloat16 *y, int64_t x, bool)
{
    *y = __ll2bfloat16_rn(x);
}

/* What the hardware does not convert is long, so it is called. An INT64 that a double does
 * not hold is past the range of FP8. */
static __device__ __noinline__ __nv_fp8_storage_t to_fp8(double x, bool saturate,
                                                         __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_double_to_fp8(x, saturate ? __NV_SATFINITE : __NV_NOSAT, kind);
}
static __device__ __noinline__ __nv_fp8_storage_t
to_infinite_fp8(float x, __nv_fp8_interpretation_t kind)
{
    return __nv_cvt_float_to_fp8(x, __NV_NOSAT, kind);
}
static __device__ inline __nv_fp8_storage_t to_fp8(float x, bool saturate,
                                                   __nv_fp8_interpretation_t kind)
{
    return saturate ? __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kind)
                    : to_infinite_fp8(x, kind);
}
template <typename V>
static __device__ inline __nv_fp8_storage_t to_fp8(V x, bool saturate,
                                                   __nv_fp8_interpretation_t kind)
{
    return to_fp8((double)x, saturate, kind);
}
template <typename V>
static __device__ inline void cast_to(__nv_fp8_e4m3 *y, V x, bool saturate)
{
    y->__x = to_fp8(x, saturate, __NV_E4M3);
}
template <typename V>
static __device__ inline void cast_to(__nv_fp8_e5m2 *y, V x, bool saturate)
{
    y->__x = to_fp8(x, saturate, __NV_E5M2);
}

template <typename To, typename From>
static __device__ inline To cast_element(From x, bool saturate)
{
    To y;
    cast_to(&y, cast_value(x), saturate);
    return y;
}

/* Call f with a value of the type of `dtype`. */
template <typename F>
static inline void layer_dtype(int32_t dtype, const F &f)
{
    switch (dtype) {
    case STRATA_FP16: f(__half()); break;
    case STRATA_BF16: f(__nv_bfloat16()); break;
    case STRATA_E4M3: f(__nv_fp8_e4m3()); break;
    case STRATA_E5M2: f(__nv_fp8_e5m2()); break;
    case STRATA_FP64: f(double()); break;
    case STRATA_INT8: f(int8_t()); break;
    case STRATA_UINT8: f(uint8_t()); break;
    case STRATA_INT32: f(int32_t()); break;
    case STRATA_INT64: f(int64_t()); break;
    case STRATA_BOOL8: f(truth()); break;
    default: f(float()); break;
    }
}

#endif /* PLUGINS_COMMON_CONVERT_CUH */
