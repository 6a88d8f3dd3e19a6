/* SPDX-License-Identifier: Apache-2.0
 *
 * Dequantize on CUDA: as it lies where one scale serves all, else along a walk on which
 * scale and zero are operands.
 */
#include "plugins/common/convert.cuh"
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/common/quantize.h"

static __device__ inline float dequantized(float x, float scale, float zero)
{
    return (x - zero) * scale;
}

template <typename To, typename From>
struct dequantize_body {
    static const int K = 3;
    static const int N = 16 / (int)(sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));
    typedef pack<From, N> raw;
    To *y;
    const From *x;
    const float *scale, *zero; /* zero is scale where there is none */
    bool has_zero, saturate;

    template <int M> __device__ void put(const float *v, const float *s, const float *z,
                                         int64_t i) const
    {
        pack<To, M> to;
#pragma unroll
        for (int e = 0; e < M; e++)
            cast_to(&to.v[e], dequantized(v[e], s[e], z[e]), false);
        *(pack<To, M> *)(y + i) = to;
    }
    template <int M> __device__ void put_one_scale(const From *from, int64_t i) const
    {
        const float factor = *scale, offset = has_zero ? *zero : 0;
        float v[M], s[M], z[M];
#pragma unroll
        for (int e = 0; e < M; e++) {
            v[e] = (float)cast_value(from[e]);
            s[e] = factor;
            z[e] = offset;
        }
        put<M>(v, s, z, i);
    }
    __device__ void load(raw &v, int64_t i) const
    {
        v = *(const raw *)(x + i);
    }
    __device__ void finish(const raw &v, int64_t i) const
    {
        put_one_scale<N>(v.v, i);
    }
    __device__ void one(int64_t i) const
    {
        put_one_scale<1>(x + i, i);
    }
    template <int M> __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                                        int64_t i) const
    {
        float v[M], s[M], z[M];
        point_load<From, M>(v, x, w, p, 0, lane);
        point_load<float, M>(s, scale, w, p, 1, lane);
        point_load<float, M>(z, zero, w, p, 2, lane);
#pragma unroll
        for (int e = 0; e < M; e++)
            z[e] = has_zero ? z[e] : 0;
        put<M>(v, s, z, i);
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = cast_element<To>((int8_t)0, true);
    }
};

/* Walks go over the output; with blocks, over it with the axis as two dims. */
template <typename To, typename From>
static void dequantize_pair(const strata_run *r)
{
    const strata_quantize *p = (const strata_quantize *)r->params;
    const bool has_zero = r->weight[1].rank > 0;
    strata_tensor out = r->out[0], x = r->in[0];
    const strata_tensor scale = quantize_view(p, &x, &r->weight[0]);
    const strata_tensor zero = has_zero ? quantize_view(p, &x, &r->weight[1]) : scale;
    const dequantize_body<To, From> body = {(To *)out.data,
                                         (const From *)x.data,
                                         (const float *)scale.data,
                                         (const float *)zero.data,
                                         has_zero,
                                         p->saturate != 0};
    if (scale.count == 1) {
        point_flat(r, body);
        return;
    }
    if (p->block > 0) {
        const int32_t axis = quantize_axis(p, r->in[0].rank);
        x = quantize_split(&x, axis, p->block);
        out = quantize_split(&out, axis, p->block);
    }
    const walk_operand operand[3] = {point_operand(&out, &x), point_operand(&out, &scale),
                                     point_operand(&out, &zero)};
    point_walk_over(r, &out, body, operand);
}

template <typename To>
static void dequantize_to(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_INT8: dequantize_pair<To, int8_t>(r); break;
    case STRATA_INT32: dequantize_pair<To, int32_t>(r); break;
    case STRATA_E4M3: dequantize_pair<To, __nv_fp8_e4m3>(r); break;
    case STRATA_E5M2: dequantize_pair<To, __nv_fp8_e5m2>(r); break;
    default: dequantize_pair<To, uint8_t>(r); break;
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
