/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize on CUDA: a true division, rounded to nearest even.
 */
#include <type_traits>

#include "plugins/common/quantized/quantize.cuh"
#include "plugins/common/quantized/round.cuh"

/* x/scale + zero as an element. */
struct quantized {
    static __device__ void put(uint8_t *y, float x, float scale, float zero, bool)
    {
        const float v = rintf(x / scale) + zero;
        *y = (uint8_t)max(0, min(255, __float2int_rn(v)));
    }
    static __device__ void put(int8_t *y, float x, float scale, float zero, bool)
    {
        const float v = rintf(x / scale) + zero;
        *y = (int8_t)max(-128, min(127, __float2int_rn(v)));
    }
    template <typename T>
    static __device__ void put(T *y, float x, float scale, float, bool saturate)
    {
        cast_to(y, x / scale, saturate);
    }
    template <typename T, int N>
    static __device__ void put_all(T (&y)[N], const float (&x)[N], const float *scale,
                                   float zero, bool saturate)
    {
        if constexpr (sizeof(T) == 1 && std::is_integral<T>::value && N % 4 == 0)
            if (zero == truncf(zero)) {
                put_bytes(y, x, scale, (int32_t)zero, std::is_unsigned<T>::value);
                return;
            }
#pragma unroll
        for (int e = 0; e < N; e++)
            put(&y[e], x[e], *scale, zero, saturate);
    }

  private:
    template <typename T, int N>
    static __device__ void put_bytes(T (&y)[N], const float (&x)[N], const float *scale,
                                     int32_t zero, bool is_unsigned)
    {
        const quantized_rounding rounding(scale, zero, is_unsigned ? 128 : 0);
        int32_t whole[N];
        rounding.round(x, whole);
#pragma unroll
        for (int e = 0; e < N; e += 4) {
            const int32_t *v = whole + e;
            *(uint32_t *)(y + e) = saturate_four(v[0], v[1], v[2], v[3]) ^
                                   (is_unsigned ? QUANTIZED_FLIP : 0);
        }
    }
};

template <typename From>
static void quantize_of(const strata_run *r)
{
    switch (r->out[0].dtype) {
    case STRATA_INT8:
        quantize_pair<quantized, int8_t, From>(r);
        break;
    case STRATA_E4M3:
        quantize_pair<quantized, __nv_fp8_e4m3, From>(r);
        break;
    case STRATA_E5M2:
        quantize_pair<quantized, __nv_fp8_e5m2, From>(r);
        break;
    default:
        quantize_pair<quantized, uint8_t, From>(r);
        break;
    }
}

static int quantize_run(const strata_run *r)
{
    layer_float(r->in[0].dtype, [&](auto t) { quantize_of<decltype(t)>(r); });
    return layer_launched(r, "quantize");
}

static const strata_row rows[] = {
    {{POINT_LINEAR_FLOATS},
     {STRATA_U8_NCHW | STRATA_I8_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW}},
    {{STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC},
     {STRATA_U8_NHWC | STRATA_I8_NHWC}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = quantize_accept,
     .run = quantize_run,
     .bandwidth = 0.9},
};

static const strata_extends quantize = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Quantize",
    .params_size = sizeof(strata_quantize),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&quantize};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Quantize", extends)
