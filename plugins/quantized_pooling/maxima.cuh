/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima of floats that become bytes, channels last: eight channels a thread where they
 * move as a word. Of windows whose size is known, what lies outside the input is read
 * from the nearest place inside, which the window has, too.
 */
#ifndef PLUGINS_QUANTIZED_POOLING_MAXIMA_CUH
#define PLUGINS_QUANTIZED_POOLING_MAXIMA_CUH

#include <type_traits>

#include "plugins/common/quantized/direct.cuh"
#include "plugins/common/quantized/round.cuh"
#include "plugins/quantized_pooling/average.h"

enum { MAXIMA_CHANNELS = 8 };

struct maxima_job {
    window_tensor x, y;
    struct average a;
    const float *scale_out;
    quantized_activation activation;
    divisor columns, width, height, depth; /* columns: threads of a pixel's channels */
    uint32_t total, channels;
    int32_t zero, is_unsigned;
};

/* Position of element k of a window, from an input's first. */
template <int K>
static __device__ inline int64_t maxima_at(const struct window &w, int d,
                                           const struct average_span &s, int64_t o, int k)
{
    const int64_t at = o * w.stride[d] - w.begin[d] + k * w.dilation[d];
    if (K == 0)
        return s.first + k * w.dilation[d];
    return at < 0 ? 0 : at < w.in[d] ? at : w.in[d] - 1;
}

/* A NaN that was found stays. */
template <typename T, int N>
static __device__ inline void keep_larger(pack<T, N> &held, const pack<T, N> &p)
{
    if constexpr (std::is_same<T, __half>::value && N % 2 == 0) {
#pragma unroll
        for (int e = 0; e < N; e += 2)
            *(__half2 *)&held.v[e] =
                __hmax2_nan(*(__half2 *)&held.v[e], *(const __half2 *)&p.v[e]);
    } else {
#pragma unroll
        for (int e = 0; e < N; e++) {
            const float v = to_float(p.v[e]);
            if (v > to_float(held.v[e]) || v != v)
                held.v[e] = p.v[e];
        }
    }
}

/* Windows of K x K without dilation; 0: any. */
template <typename T, int N, int K>
static __device__ inline void maxima_of(float (&most)[N], const maxima_job &j, const T *x,
                                        const int64_t (&o)[WINDOW_DIMS])
{
    const struct window &w = j.a.w;
    struct average_span s[WINDOW_DIMS] = {};
    if (K == 0)
        for (int d = 0; d < WINDOW_DIMS; d++)
            s[d] = average_span(&j.a, d, o[d]);
    const int deep = K ? 1 : (int)s[0].n, high = K ? K : (int)s[1].n;
    const int wide = K ? K : (int)s[2].n;
    pack<T, N> held;
#pragma unroll
    for (int e = 0; e < N; e++)
        from_float(&held.v[e], -INFINITY);
    for (int d = 0; d < deep; d++)
#pragma unroll
        for (int h = 0; h < high; h++)
#pragma unroll
            for (int k = 0; k < wide; k++) {
                const int64_t at = maxima_at<K>(w, 0, s[0], o[0], d) * j.x.step[0] +
                                   maxima_at<K>(w, 1, s[1], o[1], h) * j.x.step[1] +
                                   maxima_at<K>(w, 2, s[2], o[2], k) * j.x.step[2];
                keep_larger(held, *(const pack<T, N> *)(x + at));
            }
#pragma unroll
    for (int e = 0; e < N; e++)
        most[e] = to_float(held.v[e]);
}

template <typename T, int N, int K>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    maxima_kernel(const __grid_constant__ maxima_job j)
{
    const uint32_t i = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    launch_next();
    if (i >= j.total)
        return;
    const uint32_t pixel = divide_by(i, j.columns);
    const uint32_t channel = (i - pixel * j.columns.d) * N;
    const uint32_t row = divide_by(pixel, j.width), level = divide_by(row, j.height);
    const uint32_t image = divide_by(level, j.depth);
    const int64_t o[WINDOW_DIMS] = {level - image * j.depth.d, row - level * j.height.d,
                                    pixel - row * j.width.d};
    const quantized_rounding rounding(j.scale_out, j.zero, j.is_unsigned ? 128 : 0);
    float most[N];
    int32_t whole[N];
    wait_for_previous();
    const bool pads = channel >= j.channels; /* the output's alone */
    maxima_of<T, N, K>(most, j,
                       (const T *)j.x.data + image * j.x.image +
                           channel_offset(j.x, pads ? 0 : channel),
                       o);
    quantized_activate_all(most, j.activation);
    rounding.round(most, whole);
    uint8_t *y = (uint8_t *)j.y.data + image * j.y.image + o[0] * j.y.step[0] +
                 o[1] * j.y.step[1] + o[2] * j.y.step[2] + channel_offset(j.y, channel);
    const uint32_t flip = j.is_unsigned ? QUANTIZED_FLIP : 0;
#pragma unroll
    for (int e = 0; e < N; e++)
        whole[e] = channel + e < j.channels ? whole[e] : j.is_unsigned ? -128 : 0;
    if constexpr (N == MAXIMA_CHANNELS)
        *(uint2 *)y =
            make_uint2(saturate_four(whole[0], whole[1], whole[2], whole[3]) ^ flip,
                       saturate_four(whole[4], whole[5], whole[6], whole[7]) ^ flip);
    else
        *y = (uint8_t)(saturate_four(whole[0], 0, 0, 0) ^ flip);
}

/* ---- on the host ------------------------------------------------------------------- */

/* Whether eight channels move as a word on both sides. */
static inline bool maxima_has_words(const strata_tensor *x, const strata_tensor *y)
{
    bool whole = x->dims[1] % MAXIMA_CHANNELS == 0 && (uintptr_t)x->data % 16 == 0 &&
                 (uintptr_t)y->data % 8 == 0;
    for (int d = 0; d < x->rank; d++)
        whole = whole && (d == 1 || (x->strides[d] % MAXIMA_CHANNELS == 0 &&
                                     y->strides[d] % MAXIMA_CHANNELS == 0));
    return whole;
}

template <typename T, int N>
static void maxima_launch(const strata_run *r, maxima_job &j)
{
    const struct window &w = j.a.w;
    const bool plane = w.kernel[0] == 1 && w.in[0] == 1 && w.dilation[1] == 1 &&
                       w.dilation[2] == 1 && w.kernel[1] == w.kernel[2];
    const uint32_t stored = (j.channels + j.y.mask) & ~j.y.mask;
    j.columns = divisor_of(stored / N);
    j.width = divisor_of(w.out[2]);
    j.height = divisor_of(w.out[1]);
    j.depth = divisor_of(w.out[0]);
    j.total = (uint32_t)(r->out[0].dims[0] * window_out_count(&w)) * j.columns.d;
    auto *kernel = plane && w.kernel[1] == 3   ? maxima_kernel<T, N, 3>
                   : plane && w.kernel[1] == 2 ? maxima_kernel<T, N, 2>
                                               : maxima_kernel<T, N, 0>;
    if (j.total > 0)
        launch_overlapped(kernel, dim3(layer_blocks(j.total, CUDA_BLOCK)),
                          dim3(CUDA_BLOCK), 0, layer_stream(r), j);
}

static int maxima_run(const strata_run *r)
{
    const strata_quantized_pooling *p = (const strata_quantized_pooling *)r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    maxima_job j = {};
    j.x = window_tensor_of(x);
    j.y = window_tensor_of(y);
    j.a = *(const struct average *)r->state;
    j.scale_out = (const float *)r->weight[SCALE_OUT].data;
    j.activation = quantized_activation_of(&p->quantized);
    j.channels = (uint32_t)y->dims[1];
    j.zero = (int32_t)p->quantized.zero_out;
    j.is_unsigned = y->dtype == STRATA_UINT8;
    const bool words = maxima_has_words(x, y);
    if (x->dtype == STRATA_FP32)
        maxima_launch<float, 1>(r, j);
    else if (words)
        maxima_launch<__half, MAXIMA_CHANNELS>(r, j);
    else
        maxima_launch<__half, 1>(r, j);
    return layer_launched(r, "quantized_pooling");
}

#endif /* PLUGINS_QUANTIZED_POOLING_MAXIMA_CUH */
