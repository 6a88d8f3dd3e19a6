/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution with K x K windows of stride S, bound by memory. A thread goes
 * down its columns and reads every input row once, the next one while it works on one:
 * it adds the row to each output row, at most Slots, whose window it is in. Slots are
 * used in turn; the turns, Period rows, are unrolled so that sums stay in registers.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_SLIDE_CUH
#define PLUGINS_CONVOLUTION_CUDA_SLIDE_CUH

#include "plugins/convolution_cuda_depthwise.cuh"

template <typename T, int V, int K, int S>
struct slide {
    static const int Wide = V == 1 && S == 1 ? 2 * DEPTHWISE_WIDE : DEPTHWISE_WIDE;
    static const int Span = (Wide - 1) * S + K;
    static const int Slots = (K + S - 1) / S, Period = Slots * S;
    static const int Blocks = /* of a multiprocessor, as registers allow */
        K > 3 || V == 4 ? 3 : 5;

    float weight[K][K][V]; /* times the scale */
    float shift[V];
    float sum[Slots][Wide][V];
    pack<T, V> next[Span]; /* of the input row that comes next */

    __device__ inline void clear(int slot)
    {
#pragma unroll
        for (int o = 0; o < Wide; o++)
#pragma unroll
            for (int v = 0; v < V; v++)
                sum[slot][o][v] = shift[v];
    }

    __device__ inline void start(const depthwise_job &job, uint32_t c)
    {
        convolution_affine<V> affine;
        affine.load(job.bias, job.epilogue, c, job.channels);
#pragma unroll
        for (int v = 0; v < V; v++)
            shift[v] = affine.shift[v];
#pragma unroll
        for (int k = 0; k < K * K; k++) {
            const pack<float, V> w = load_pack<float, V>(job.weight + k * job.stored + c);
#pragma unroll
            for (int v = 0; v < V; v++)
                weight[k / K][k % K][v] = w.v[v] * affine.scale[v];
        }
#pragma unroll
        for (int l = 0; l < Slots; l++)
            clear(l);
    }

    /* A row from a column on; zeros outside of the image. */
    __device__ inline void load(const depthwise_job &job, const T *x, bool inside,
                                int32_t at, int32_t column)
    {
#pragma unroll
        for (int i = 0; i < Span; i++)
            next[i] = load_pack_if<T, V>(x + (at + i * job.x_step),
                                         inside && (uint32_t)(column + i) <
                                                       (uint32_t)job.width);
    }

    /* Row j of a period of the input to the output rows in whose window it is. */
    __device__ inline void add(const pack<T, V> (&in)[Span], int j)
    {
#pragma unroll
        for (int i = 0; i < Span; i++) {
            float x[V];
#pragma unroll
            for (int v = 0; v < V; v++)
                x[v] = to_float(in[i].v[v]);
#pragma unroll
            for (int l = 0; l < Slots; l++) {
                const int r = (j - l * S + Period) % Period;
#pragma unroll
                for (int o = 0; o < Wide; o++) {
                    const int s = i - o * S;
                    if (r >= K || s < 0 || s >= K)
                        continue;
#pragma unroll
                    for (int v = 0; v < V; v++)
                        sum[l][o][v] = fmaf(x[v], weight[r][s][v], sum[l][o][v]);
                }
            }
        }
    }
};

template <typename T, int V, int K, int S>
static __global__ void __launch_bounds__(DEPTHWISE_BLOCK, (slide<T, V, K, S>::Blocks))
    depthwise_slide_kernel(const __grid_constant__ depthwise_job job)
{
    typedef slide<T, V, K, S> shape;
    const uint32_t u = blockIdx.x * DEPTHWISE_BLOCK + threadIdx.x;
    if (u >= job.units)
        return;
    const depthwise_unit unit = depthwise_unit_of(job, u, V, shape::Wide);
    const T *x = (const T *)job.x + unit.image * job.x_image + unit.pack * job.x_pack;
    const int32_t column = unit.column * S - job.begin_w;
    const int32_t end = (unit.end_row - 1) * S - job.begin_h + K; /* of input rows */
    int32_t h = unit.first_row * S - job.begin_h;
    int32_t at = h * job.x_row + column * job.x_step;
    shape it;
    it.load(job, x, (uint32_t)h < (uint32_t)job.height, at, column);
    it.start(job, unit.c);
    for (int32_t row = unit.first_row;; row += shape::Slots) {
#pragma unroll
        for (int j = 0; j < shape::Period; j++) {
            pack<T, V> in[shape::Span];
#pragma unroll
            for (int i = 0; i < shape::Span; i++)
                in[i] = it.next[i];
            h++, at += job.x_row;
            it.load(job, x, h < end && (uint32_t)h < (uint32_t)job.height, at, column);
            it.add(in, j);
#pragma unroll
            for (int l = 0; l < shape::Slots; l++) {
                if ((j - l * S + shape::Period) % shape::Period != K - 1)
                    continue; /* no last row of its window */
                const int32_t done = row + l - (j < l * S ? shape::Slots : 0);
                if (done >= unit.first_row)
                    depthwise_store<T, V, shape::Wide>(job, unit, done, it.sum[l]);
                it.clear(l);
            }
            if (h >= end)
                return;
        }
    }
}

#endif /* PLUGINS_CONVOLUTION_CUDA_SLIDE_CUH */
