/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that are held in registers: two by a warp, one by a block, or one by a cluster of
 * blocks, which exchange their sums through each other's shared memory. A row is read
 * once; the mean is known before the variance is taken.
 */
#ifndef PLUGINS_NORMALIZATION_ROWS_CUH
#define PLUGINS_NORMALIZATION_ROWS_CUH

#include <cooperative_groups.h>

#include "plugins/normalization/job.cuh"
#include "kernels/overlap.cuh"

#define NORM_HELD 32         /* elements a thread holds of a row */
#define NORM_WARP_ROWS 2     /* that a warp holds at once */
#define NORM_ROW_THREADS 512 /* of a block at most */
#define NORM_CLUSTER 8       /* blocks at most */

/* The packs of a row that a thread holds: `thread`, `thread` + `team`, ... */
template <typename T, int N, int P>
static __device__ inline void row_load(float v[P * N], const norm_job &job, int64_t at,
                                       int32_t cols, int32_t thread, int32_t team)
{
    const pack<T, N> zero = {};
    pack<T, N> x[P], residual[P];
#pragma unroll
    for (int i = 0; i < P; i++) {
        const int32_t j = (thread + i * team) * N;
        x[i] = j < cols ? *(const pack<T, N> *)((const T *)job.x + at + j) : zero;
    }
    if (job.residual) {
#pragma unroll
        for (int i = 0; i < P; i++) {
            const int32_t j = (thread + i * team) * N;
            residual[i] =
                j < cols ? *(const pack<T, N> *)((const T *)job.residual + at + j) : zero;
        }
    }
#pragma unroll
    for (int i = 0; i < P * N; i++)
        v[i] = to_float(x[i / N].v[i % N]) +
               (job.residual ? to_float(residual[i / N].v[i % N]) : 0.0f);
    if (job.sum) {
#pragma unroll
        for (int i = 0; i < P; i++)
            if ((thread + i * team) * N < cols)
                norm_store<T, N>(job.sum, at + (thread + i * team) * N, v + i * N);
    }
}

template <int N, int P>
static __device__ inline float row_sum(const float v[P * N])
{
    float even = 0, odd = 0;
#pragma unroll
    for (int i = 0; i < P * N; i++)
        (i % 2 ? odd : even) += v[i];
    return even + odd;
}

template <int N, int P>
static __device__ inline float row_square(const float v[P * N], const norm_job &job,
                                          float mean, int32_t cols, int32_t thread,
                                          int32_t team)
{
    float even = 0, odd = 0;
#pragma unroll
    for (int i = 0; i < P * N; i++) {
        const float d = v[i] - mean;
        const float square =
            job.measure == NORM_POWERS ? norm_measured(job, v[i]) : d * d;
        if ((thread + i / N * team) * N < cols)
            (i % 2 ? odd : even) += square;
    }
    return even + odd;
}

/* first: column of the row at which `cols` begin; at: element of the tensor. */
template <typename T, int N, int P>
static __device__ inline void
row_store(float v[P * N], const norm_job &job, float mean, float factor, int64_t row,
          int64_t first, int64_t at, int32_t cols, int32_t thread, int32_t team)
{
#pragma unroll
    for (int i = 0; i < P; i++) {
        const int32_t j = (thread + i * team) * N;
        float scale[N], bias[N];
        if (j >= cols)
            continue;
        norm_weights<N>(scale, bias, job, row, first + j);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[i * N + k] = (v[i * N + k] - mean) * factor * scale[k] + bias[k];
        norm_activate<N>(v + i * N, job.activation);
        norm_store<T, N>(job.y, at + j, v + i * N);
    }
}

static __device__ inline void row_tell(const norm_job &job, int64_t row, float mean,
                                       float factor)
{
    if (!job.mean)
        return;
    job.mean[row] = mean;
    job.inverse[row] = factor;
}

static __device__ inline float warp_sum(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

template <typename T, int N, int P>
static __global__ void __launch_bounds__(CUDA_BLOCK) warp_kernel(norm_job job)
{
    launch_next();
    wait_for_previous();
    const int R = NORM_WARP_ROWS;
    const int32_t lane = (int32_t)threadIdx.x % 32, cols = (int32_t)job.cols;
    const int64_t first =
        ((int64_t)blockIdx.x * (CUDA_BLOCK / 32) + threadIdx.x / 32) * R;
    float v[R][P * N], mean[R], factor[R];
    if (first >= job.rows)
        return;
#pragma unroll
    for (int r = 0; r < R; r++)
        row_load<T, N, P>(v[r], job, min(first + r, job.rows - 1) * cols, cols, lane, 32);
#pragma unroll
    for (int r = 0; r < R; r++)
        mean[r] =
            job.measure == NORM_CENTRED ? warp_sum(row_sum<N, P>(v[r])) / (float)cols : 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
        const float square = row_square<N, P>(v[r], job, mean[r], cols, lane, 32);
        factor[r] = norm_factor(job, warp_sum(square), (float)cols);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (first + r >= job.rows)
            return;
        row_store<T, N, P>(v[r], job, mean[r], factor[r], first + r, 0,
                           (first + r) * cols, cols, lane, 32);
        if (lane == 0)
            row_tell(job, first + r, mean[r], factor[r]);
    }
}

/* Of a block, in the order of its warps; `warps` is used once. */
static __device__ inline float block_sum(float x, float *warps)
{
    x = warp_sum(x);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = x;
    __syncthreads();
    x = 0;
    for (uint32_t i = 0; i < blockDim.x / 32; i++)
        x += warps[i];
    return x;
}

/* Of a cluster, in the order of its blocks; `mine` is used once. */
template <bool Cluster>
static __device__ inline float team_sum(float x, float *warps, float *mine)
{
    x = block_sum(x, warps);
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster) {
        cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
        if (threadIdx.x == 0)
            *mine = x;
        cluster.sync();
        x = 0;
        for (uint32_t i = 0; i < cluster.num_blocks(); i++)
            x += *cluster.map_shared_rank(mine, i);
    }
#endif
    return x;
}

/* span: columns of one block of a cluster, a multiple of N. */
template <typename T, int N, int P, bool Cluster>
static __global__ void __launch_bounds__(NORM_ROW_THREADS)
    block_kernel(norm_job job, int64_t span, uint32_t blocks)
{
    launch_next();
    wait_for_previous();
    __shared__ float warps[2][NORM_ROW_THREADS / 32], mine[2];
    const int64_t row = Cluster ? blockIdx.x / blocks : blockIdx.x;
    const int64_t first = Cluster ? blockIdx.x % blocks * span : 0;
    const int32_t cols =
        (int32_t)(Cluster ? max((int64_t)0, min(span, job.cols - first)) : job.cols);
    const int32_t thread = (int32_t)threadIdx.x, team = (int32_t)blockDim.x;
    const int64_t at = row * job.cols + first;
    const float n = (float)job.cols;
    float v[P * N], mean = 0;
    row_load<T, N, P>(v, job, at, cols, thread, team);
    if (job.measure == NORM_CENTRED)
        mean = team_sum<Cluster>(row_sum<N, P>(v), warps[0], &mine[0]) / n;
    const float part = row_square<N, P>(v, job, mean, cols, thread, team);
    const float factor = norm_factor(job, team_sum<Cluster>(part, warps[1], &mine[1]), n);
    row_store<T, N, P>(v, job, mean, factor, row, first, at, cols, thread, team);
    if (thread == 0 && first == 0)
        row_tell(job, row, mean, factor);
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster) /* others may still read what is here */
        cooperative_groups::this_cluster().sync();
#endif
}

/* ---- the choice ------------------------------------------------------------------- */

template <typename T, int N, int P>
static void warp_launch(const norm_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(job.rows, CUDA_BLOCK / 32 * NORM_WARP_ROWS);
    launch_overlapped(warp_kernel<T, N, P>, blocks, CUDA_BLOCK, 0, stream, job);
}

/* Threads that hold n elements, each up to P packs of N. */
static unsigned row_threads(int64_t n, int held)
{
    const int64_t threads = ((n + held - 1) / held + 31) / 32 * 32;
    return (unsigned)threads;
}

template <typename T, int N>
static void cluster_launch(const norm_job &job, cudaStream_t stream)
{
    const int P = NORM_HELD / N;
    uint32_t blocks = 2;
    while ((int64_t)blocks * NORM_ROW_THREADS * NORM_HELD < job.cols)
        blocks *= 2;
    const int64_t span = (job.cols / N + blocks - 1) / blocks * N;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    config.gridDim = dim3((unsigned)(job.rows * blocks));
    config.blockDim = dim3(row_threads(span, NORM_HELD));
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchKernelEx(&config, block_kernel<T, N, P, true>, job, span, blocks);
}

/* Rows of up to NORM_ROW_THREADS * NORM_HELD elements; N divides them. */
template <typename T, int N>
static void row_launch(const norm_job &job, cudaStream_t stream)
{
    const int P = NORM_HELD / N;
    if (job.cols <= 32 * NORM_HELD / 4)
        warp_launch<T, N, (P >= 4 ? P / 4 : 1)>(job, stream);
    else if (job.cols <= 32 * NORM_HELD / 2)
        warp_launch<T, N, (P >= 2 ? P / 2 : 1)>(job, stream);
    else if (job.cols <= 32 * NORM_HELD)
        warp_launch<T, N, P>(job, stream);
    else
        launch_overlapped(block_kernel<T, N, P, false>, (unsigned)job.rows,
                          row_threads(job.cols, NORM_HELD), 0, stream, job, job.cols, 1);
}

#endif /* PLUGINS_NORMALIZATION_ROWS_CUH */
