/* SPDX-License-Identifier: Apache-2.0
 *
 * Depthwise convolution with K x K windows of stride S, bound by memory. A thread goes
 * down its columns and reads every input row once, two rows before it is needed: it adds
 * the row to each output row, at most Slots, whose window it is in. Slots are used in
 * turn; the turns, Period rows, are unrolled so that sums stay in registers. A load is a
 * pixel's pack of V channels or, in planes, a group of A pixels that lie together: then
 * the pads are half the window and the widths multiples of A.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_SLIDE_CUH
#define PLUGINS_CONVOLUTION_CUDA_SLIDE_CUH

#include "kernels/overlap.cuh"
#include "plugins/convolution/cuda/depthwise.cuh"

template <typename T, int V, int A, int K, int S>
struct slide {
    static const int Wide = A > 1 ? A : DEPTHWISE_WIDE;
    static const int Ahead = sizeof(T) * V == 16 || (sizeof(T) * V == 8 && K > 3) ? 1 : 2;
    static const int Slots = (K + S - 1) / S, Period = Slots * S;
    /* Loads of a row; the first pixel of the window in them. */
    static const int First = A > 1 ? A - K / 2 : 0;
    static const int Loads = A > 1 ? (First + (Wide - 1) * S + K - 1) / A + 1
                                   : (Wide - 1) * S + K;
    /* Whether weights come before the wait for the kernel before: else there are not
     * enough registers for them beside the first rows. */
    static const bool Early = sizeof(T) * V < 8 || S == 1;
    static const int Blocks = /* of a multiprocessor, as registers allow */
        sizeof(T) * V == 16           ? 2
        : K > 3 || V * sizeof(T) == 8 ? 3
        : A *V > 1                    ? 4
                                      : 5;
    typedef pack<T, A * V> load_type;

    float weight[K][K][V]; /* times the scale */
    float shift[V];
    float sum[Slots][Wide][V];
    load_type in[Period][Loads]; /* at most Ahead + 1 rows are alive */

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
        for (int i = 0; i < Slots * Wide * V; i++)
            sum[i / (Wide * V)][i / V % Wide][i % V] = 0; /* of rows that are none */
    }

    /* A row that begins at `at` from a column on; zeros outside of the image. */
    __device__ inline void load(const depthwise_job &job, const T *x, bool inside,
                                int32_t at, int32_t column, int into)
    {
#pragma unroll
        for (int i = 0; i < Loads; i++) {
            const int32_t w = column + i * A;
            in[into][i] = load_pack_if<T, A * V>(
                x + (at + w * job.x_step), inside && (uint32_t)w < (uint32_t)job.width);
        }
    }

    /* Row j of a period of the input to the output rows in whose window it is. */
    __device__ inline void add(int j)
    {
        const int Span = (Wide - 1) * S + K;
#pragma unroll
        for (int i = 0; i < Span; i++) {
            float x[V];
#pragma unroll
            for (int v = 0; v < V; v++)
                x[v] = to_float(in[j][(First + i) / A].v[(First + i) % A * V + v]);
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
                        sum[l][o][v] = fmaf(x[v], weight[r][s][v],
                                            r == 0 && s == 0 ? shift[v] : sum[l][o][v]);
                }
            }
        }
    }
};

/* The images, once the kernel before has ended: loads through what this returns cannot be
 * moved before it, whatever the compiler knows of them. */
template <typename T>
static __device__ inline const T *depthwise_images(const depthwise_job &job)
{
    const T *x = (const T *)job.x;
    wait_for_previous();
    asm volatile("" : "+l"(x));
    return x;
}

template <typename T, int V, int A, int K, int S>
static __global__ void __launch_bounds__(DEPTHWISE_BLOCK, (slide<T, V, A, K, S>::Blocks))
    depthwise_slide_kernel(const __grid_constant__ depthwise_job job)
{
    typedef slide<T, V, A, K, S> shape;
    const uint32_t u = blockIdx.x * DEPTHWISE_BLOCK + threadIdx.x;
    launch_next();
    if (u >= job.units)
        return;
    const depthwise_unit unit = depthwise_unit_of(job, u, V, shape::Wide);
    shape it;
    if (shape::Early)
        it.start(job, unit.c);
    const T *x =
        depthwise_images<T>(job) + unit.image * job.x_image + unit.pack * job.x_pack;
    const int32_t column = unit.column * S - (A > 1 ? A : job.begin_w);
    const int32_t end = (unit.end_row - 1) * S - job.begin_h + K; /* of input rows */
    int32_t h = unit.first_row * S - job.begin_h, ahead = h;
#pragma unroll
    for (int j = 0; j < shape::Ahead; j++, ahead++)
        it.load(job, x, (uint32_t)ahead < (uint32_t)job.height, ahead * job.x_row, column,
                j);
    if (!shape::Early)
        it.start(job, unit.c);
    for (int32_t row = unit.first_row;; row += shape::Slots) {
#pragma unroll
        for (int j = 0; j < shape::Period; j++) {
            it.load(job, x, ahead < end && (uint32_t)ahead < (uint32_t)job.height,
                    ahead * job.x_row, column, (j + shape::Ahead) % shape::Period);
            it.add(j);
#pragma unroll
            for (int l = 0; l < shape::Slots; l++) {
                if ((j - l * S + shape::Period) % shape::Period != K - 1)
                    continue; /* no last row of its window */
                const int32_t done = row + l - (j < l * S ? shape::Slots : 0);
                if (done >= unit.first_row)
                    depthwise_store<T, V, shape::Wide, (A > 1)>(job, unit, done,
                                                                it.sum[l]);
            }
            h++, ahead++;
            if (h >= end)
                return;
        }
    }
}

#endif /* PLUGINS_CONVOLUTION_CUDA_SLIDE_CUH */
