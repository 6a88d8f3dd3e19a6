/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantize on CUDA: a true division, rounded to nearest even; as it lies where one scale
 * serves all, else along a walk on which scale and zero are operands.
 */
#include "plugins/common/convert.cuh"
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/common/quantize.h"

/* x/scale + zero as an element. */
static __device__ inline void quantize_element(uint8_t *y, float x, float scale,
                                               float zero, bool)
{
    const float v = rintf(x / scale) + zero;
    *y = (uint8_t)max(0, min(255, __float2int_rn(v)));
}
static __device__ inline void quantize_element(int8_t *y, float x, float scale,
                                               float zero, bool)
{
    const float v = rintf(x / scale) + zero;
    *y = (int8_t)max(-128, min(127, __float2int_rn(v)));
}
template <typename T>
static __device__ inline void quantize_element(T *y, float x, float scale, float,
                                               bool saturate)
{
    cast_to(y, x / scale, saturate);
}

template <typename To, typename From>
struct quantize_body {
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
            quantize_element(&to.v[e], v[e], s[e], z[e], saturate);
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
static void quantize_pair(const strata_run *r)
{
    const strata_quantize *p = (const strata_quantize *)r->params;
    const bool has_zero = r->weight[1].rank > 0;
    strata_tensor out = r->out[0], x = r->in[0];
    const strata_tensor scale = quantize_view(p, &x, &r->weight[0]);
    const strata_tensor zero = has_zero ? quantize_view(p, &x, &r->weight[1]) : scale;
    const quantize_body<To, From> body = {(To *)out.data,
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

template <typename From>
static void quantize_of(const strata_run *r)
{
    switch (r->out[0].dtype) {
    case STRATA_INT8: quantize_pair<int8_t, From>(r); break;
    case STRATA_E4M3: quantize_pair<__nv_fp8_e4m3, From>(r); break;
    case STRATA_E5M2: quantize_pair<__nv_fp8_e5m2, From>(r); break;
    default: quantize_pair<uint8_t, From>(r); break;
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
