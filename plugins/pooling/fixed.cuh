/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling over the common square windows in two dims, whose size and stride the compiler
 * knows: all loads of a thread go out without waiting for a condition. Outside the input
 * the nearest element is read and dropped.
 */
#ifndef PLUGINS_POOLING_FIXED_CUH
#define PLUGINS_POOLING_FIXED_CUH

#include "plugins/pooling/halves.cuh"

/* Positions of the input that a window's row or column begins at, K of them. */
template <int K>
struct pool_reach {
    int64_t offset[K]; /* in elements, of the nearest position inside */
    bool inside[K];
};

template <int K>
static __device__ inline pool_reach<K> pool_reach_of(const pool_axis &a, int32_t first)
{
    pool_reach<K> reach;
#pragma unroll
    for (int i = 0; i < K; i++) {
        const int32_t at = first + i;
        reach.inside[i] = (uint32_t)at < (uint32_t)a.in;
        reach.offset[i] = (int64_t)min(max(at, 0), a.in - 1) * a.x_step;
    }
    return reach;
}

template <typename T, int N, bool Max, int K>
static __device__ inline void pool_fixed_row(float v[N], const T *x,
                                             const pool_reach<K> &columns)
{
    pack<T, N> p[K];
#pragma unroll
    for (int i = 0; i < K; i++)
        p[i] = *(const pack<T, N> *)(x + columns.offset[i]);
#pragma unroll
    for (int k = 0; k < N; k++) {
        v[k] = pool_start<Max>();
#pragma unroll
        for (int i = 0; i < K; i++)
            v[k] = pool_fold<Max>(v[k], columns.inside[i] ? to_float(p[i].v[k])
                                                          : pool_start<Max>());
    }
}

/* As pool_window_kernel, with windows of K x K that are S apart. */
template <typename T, int N, bool Last, int Rows, bool Max, int K, int S>
static __global__ void __launch_bounds__(CUDA_BLOCK, 3)
    pool_fixed_kernel(const __grid_constant__ pool_job job)
{
    const int64_t thread = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    launch_next();
    wait_for_previous();
    if (thread >= job.threads)
        return;
    const pool_place p = pool_find<Last, Rows, uint32_t>(job, (uint32_t)thread);
    const pool_axis &h = job.axis[1], &w = job.axis[2];
    const T *x = (const T *)job.x + p.image * job.x_image + p.block * job.x_block;
    T *y = (T *)job.y + p.image * job.y_image + p.block * job.y_block + p.w * w.y_step;
    const pool_reach<K> columns =
        pool_reach_of<K>(w, (int32_t)p.w * S - (int32_t)w.begin);
    const int32_t top = (int32_t)p.h * S - (int32_t)h.begin;
    float acc[Rows][N];
#pragma unroll
    for (int r = 0; r < Rows; r++)
#pragma unroll
        for (int k = 0; k < N; k++)
            acc[r][k] = pool_start<Max>();
#pragma unroll
    for (int row = 0; row < (Rows - 1) * S + K; row++) {
        float v[N];
        const pool_reach<1> line = pool_reach_of<1>(h, top + row);
        pool_fixed_row<T, N, Max, K>(v, x + line.offset[0], columns);
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int k = 0; k < N; k++)
                if (row >= r * S && row < r * S + K)
                    acc[r][k] = pool_fold<Max>(acc[r][k],
                                               line.inside[0] ? v[k] : pool_start<Max>());
    }
    const float wide = Max ? 1 : (float)pool_counted<int32_t>(w, p.w, job.with_pads);
#pragma unroll
    for (int r = 0; r < Rows; r++) {
        if (p.h + r >= (uint32_t)h.out)
            break;
        const float n =
            Max ? 1 : wide * (float)pool_counted<int32_t>(h, p.h + r, job.with_pads);
        pool_store<T, N, Max>(y + (p.h + r) * h.y_step, acc[r], n > 0 ? 1 / n : 0,
                              job.channels - (int32_t)p.block * N);
    }
}

/* ---- on the host --------------------------------------------------------------------
 */

static inline bool pool_is_square(const pool_job &job, int kernel, int stride)
{
    bool square = job.axis[0].out == 1 && job.axis[0].in == 1 && job.axis[0].kernel == 1;
    for (int d = 1; d < WINDOW_DIMS; d++)
        square = square && job.axis[d].kernel == kernel && job.axis[d].stride == stride &&
                 job.axis[d].dilation == 1;
    return square && pool_is_narrow(job);
}

template <typename T, int N, bool Last, int Rows, bool Max, int K, int S>
static bool pool_fixed_launch(const pool_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(job.threads, CUDA_BLOCK);
    void (*kernel)(pool_job) = pool_fixed_kernel<T, N, Last, Rows, Max, K, S>;
    if (!pool_is_square(job, K, S))
        return false;
    if constexpr (Max && Last && N == 8 && std::is_same<T, __half>::value)
        if (pool_all_meet(job))
            kernel = pool_halves_kernel<Rows, K, S>;
    launch_overlapped(kernel, blocks, CUDA_BLOCK, 0, stream, job);
    return true;
}

/* False where the windows are others, or channels lie side by side and move one by one.
 */
template <typename T, int N, bool Last, int Rows, bool Max>
static bool pool_fixed(const pool_job &job, cudaStream_t stream)
{
    if constexpr (Last && N == 1)
        return false;
    else if constexpr (Max)
        return pool_fixed_launch<T, N, Last, Rows, Max, 3, 2>(job, stream) ||
               pool_fixed_launch<T, N, Last, Rows, Max, 3, 1>(job, stream) ||
               pool_fixed_launch<T, N, Last, 1, Max, 2, 2>(job, stream);
    else
        return pool_fixed_launch<T, N, Last, Rows, Max, 3, 1>(job, stream);
}

#endif /* PLUGINS_POOLING_FIXED_CUH */
