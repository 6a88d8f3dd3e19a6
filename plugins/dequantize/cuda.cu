/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantize on CUDA.
 */
#include "plugins/common/quantized/quantize.cuh"

/* (x - zero)*scale as an element. */
struct dequantized {
    template <typename T>
    static __device__ void put(T *y, float x, float scale, float zero, bool)
    {
        cast_to(y, (x - zero) * scale, false);
    }
    template <typename T, int N>
    static __device__ void put_all(T (&y)[N], const float (&x)[N], const float *scale,
                                   float zero, bool saturate)
    {
        const float factor = *scale;
#pragma unroll
        for (int e = 0; e < N; e++)
            put(&y[e], x[e], factor, zero, saturate);
    }
};

template <typename To>
static void dequantize_to(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_INT8:
        quantize_pair<dequantized, To, int8_t>(r);
        break;
    case STRATA_INT32:
        quantize_pair<dequantized, To, int32_t>(r);
        break;
    case STRATA_E4M3:
        quantize_pair<dequantized, To, __nv_fp8_e4m3>(r);
        break;
    case STRATA_E5M2:
        quantize_pair<dequantized, To, __nv_fp8_e5m2>(r);
        break;
    default:
        quantize_pair<dequantized, To, uint8_t>(r);
        break;
    }
}

static int dequantize_run(const strata_run *r)
{
    layer_float(r->out[0].dtype, [&](auto t) { dequantize_to<decltype(t)>(r); });
    return layer_launched(r, "dequantize");
}

static const strata_row rows[] = {
    {{STRATA_U8_NCHW | STRATA_I8_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW |
      STRATA_I32_NCHW},
     {POINT_LINEAR_FLOATS}},
    {{STRATA_U8_NHWC | STRATA_I8_NHWC},
     {STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_BF16_NHWC}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = dequantize_run,
     .bandwidth = 0.9},
};

static const strata_extends dequantize = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Dequantize",
    .params_size = sizeof(strata_quantize),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&dequantize};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Dequantize", extends)
