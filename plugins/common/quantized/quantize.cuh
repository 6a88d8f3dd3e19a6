/* SPDX-License-Identifier: Apache-2.0
 *
 * What Quantize and Dequantize share on CUDA: as memory lies where one scale serves all,
 * else a walk on which scale and zero are operands.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_QUANTIZE_CUH
#define PLUGINS_COMMON_QUANTIZED_QUANTIZE_CUH

#include "plugins/common/convert.cuh"
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/common/quantized/quantize.h"

/* Element::put(to, x, scale, zero, saturate) is what one element becomes, and
 * put_all(to, x, scale, zero, saturate) what several of one scale do. */
template <typename Element, typename To, typename From>
struct quantize_body {
    static const int K = 3;
    static const int N =
        16 / (int)(sizeof(To) > sizeof(From) ? sizeof(To) : sizeof(From));
    typedef pack<From, N> raw;
    To *y;
    const From *x;
    const float *scale, *zero; /* zero is scale where there is none */
    bool has_zero, saturate;

    template <int M>
    __device__ void put(const float *v, const float *s, const float *z, int64_t i) const
    {
        pack<To, M> to;
#pragma unroll
        for (int e = 0; e < M; e++)
            Element::put(&to.v[e], v[e], s[e], z[e], saturate);
        *(pack<To, M> *)(y + i) = to;
    }
    template <int M>
    __device__ void put_one_scale(const From *from, int64_t i) const
    {
        float v[M];
        pack<To, M> to;
#pragma unroll
        for (int e = 0; e < M; e++)
            v[e] = (float)cast_value(from[e]);
        Element::put_all(to.v, v, scale, has_zero ? *zero : 0, saturate);
        *(pack<To, M> *)(y + i) = to;
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
    template <int M>
    __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                       int64_t i) const
    {
        float v[M], s[M], z[M];
        point_load<From, M>(v, x, w, p, 0, lane);
        point_load<float, M>(s, scale, w, p, 1, lane);
        point_load<float, M>(z, zero, w, p, 2, lane);
#pragma unroll
        for (int e = 0; e < M; e++)
            z[e] = has_zero ? z[e] : 0;
        put<M>(v, s, z, walk_to<K>(w, p, lane, i));
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = cast_element<To>((int8_t)0, true);
    }
};

/* Walks go over the output; with blocks, over it with the axis as two dims. */
template <typename Element, typename To, typename From>
static void quantize_pair(const strata_run *r)
{
    const strata_quantize *p = (const strata_quantize *)r->params;
    const bool has_zero = r->weight[1].rank > 0;
    strata_tensor out = r->out[0], x = r->in[0];
    const strata_tensor scale = quantize_view(p, &x, &r->weight[0]);
    const strata_tensor zero = has_zero ? quantize_view(p, &x, &r->weight[1]) : scale;
    const quantize_body<Element, To, From> body = {(To *)out.data,
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

#endif /* PLUGINS_COMMON_QUANTIZED_QUANTIZE_CUH */
