/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of short rows of whole packs, which a warp holds: loads are
 * all made before the first use, and many warps hide each other's.
 */
#include "plugins/normalization/held.cuh"

/* ---- a row a warp -------------------------------------------------------------------
 *
 * A block is four rows and ends with them. The hardware hands blocks out in order, to
 * multiprocessors as they become free: what is under way in memory is one stretch of the
 * tensor, and none of them ends late. Of 65536 rows of 768 halves on an H200, TB/s of rms
 * and layer: 3.90 and 3.81; with eight rows a block 3.89 and 3.63; by blocks that stay
 * and walk over rows with a ring of four stages 3.62 and 3.52, or with one row ahead in
 * registers 3.64 and 3.12; with three warps a row, of which a thread has one load under
 * way, 2.49 and 2.09.
 */

#define WARP_BLOCK 128 /* threads */

/* Pack i of the thread is the one at + 32*i; zeros past those it has. */
template <typename T, int N, int P>
static __device__ inline void warp_load(pack<T, N> (&p)[P], const void *from, int64_t at,
                                        int held)
{
#pragma unroll
    for (int i = 0; i < P; i++) {
        p[i] = {};
        if (i < held)
            p[i] = ((const pack<T, N> *)from)[at + i * 32];
    }
}

/* value: where there are no weights. */
template <int N>
static __device__ inline void warp_weights(float (&w)[N], const float *from, float value)
{
#pragma unroll
    for (int k = 0; k < N; k += 4) {
        float4 p = {value, value, value, value};
        if (from)
            p = __ldg((const float4 *)(from + k));
        w[k] = p.x;
        w[k + 1] = p.y;
        w[k + 2] = p.z;
        w[k + 3] = p.w;
    }
}

/* A thread holds E elements; blocks of a multiprocessor: as many as have registers. */
template <typename T, int E>
static __global__ void __launch_bounds__(WARP_BLOCK, (E > 24 ? 6 : 8))
    warp_row_kernel(const __grid_constant__ norm_job job)
{
    const int N = 16 / (int)sizeof(T), P = E / N;
    const int lane = (int)threadIdx.x % 32, packs = (int)job.cols / N;
    const int held = packs > lane ? (packs - lane + 31) / 32 : 0;
    const int64_t row = (int64_t)blockIdx.x * (WARP_BLOCK / 32) + threadIdx.x / 32;
    const int64_t at = row * packs + lane;
    pack<T, N> x[P];
    float v[E];
    if (row >= job.rows)
        return;
    warp_load<T, N, P>(x, job.x, at, held);
    if (job.residual) {
        pack<T, N> residual[P];
        warp_load<T, N, P>(residual, job.residual, at, held);
#pragma unroll
        for (int e = 0; e < E; e++)
            v[e] = to_float(x[e / N].v[e % N]) + to_float(residual[e / N].v[e % N]);
    } else {
#pragma unroll
        for (int e = 0; e < E; e++)
            v[e] = to_float(x[e / N].v[e % N]);
    }
    const row_part t =
        held_measure<N, E>(v, job.measure == NORM_CENTRED, held, job.elements);
    const float factor = held_factor(job, t.square);
#pragma unroll
    for (int i = 0; i < P; i++) {
        const int column = (lane + i * 32) * N;
        float scale[N], bias[N];
        if (i >= held)
            continue;
        if (job.sum)
            norm_store<T, N>(job.sum, (at + i * 32) * N, v + i * N);
        warp_weights<N>(scale, job.scale ? job.scale + column : NULL, 1);
        warp_weights<N>(bias, job.bias ? job.bias + column : NULL, 0);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[i * N + k] = (v[i * N + k] - t.mean) * factor * scale[k] + bias[k];
        norm_store<T, N>(job.y, (at + i * 32) * N, v + i * N);
    }
    if (job.mean && lane == 0) {
        job.mean[row] = t.mean;
        job.inverse[row] = factor;
    }
}

/* ---- a row a part of a warp ---------------------------------------------------------
 *
 * A thread has one pack of a row, and two rows at once; the next two are under way in
 * registers.
 */

#define SHORT_ROWS 2

template <typename T, int N>
static __device__ inline void short_load(pack<T, N> (&p)[SHORT_ROWS], const void *from,
                                         const norm_job &job, int64_t row, int column)
{
#pragma unroll
    for (int r = 0; r < SHORT_ROWS; r++) {
        p[r] = {};
        if (row + r < job.rows && column < job.cols)
            p[r] = *(const pack<T, N> *)((const T *)from + (row + r) * job.cols + column);
    }
}

/* lanes: of a row, a power of two. */
template <typename T, bool Residual>
static __global__ void __launch_bounds__(CUDA_BLOCK, (Residual ? 2 : 3))
    short_kernel(const __grid_constant__ norm_job job, int lanes)
{
    const int N = 16 / (int)sizeof(T), R = SHORT_ROWS;
    const int column = (int)threadIdx.x % lanes * N, teams = CUDA_BLOCK / lanes;
    const bool live = column < job.cols;
    const int64_t step = (int64_t)gridDim.x * teams * R;
    int64_t row = ((int64_t)blockIdx.x * teams + threadIdx.x / lanes) * R;
    pack<T, N> x[R], residual[Residual ? R : 1];
    float scale[N], bias[N];
    short_load<T, N>(x, job.x, job, row, column);
    if constexpr (Residual)
        short_load<T, N>(residual, job.residual, job, row, column);
    norm_weights<N>(scale, bias, job, 0, live ? column : 0);
    for (int64_t first = (int64_t)blockIdx.x * teams * R; first < job.rows;
         first += step, row += step) {
        float v[R][N], mean[R] = {}, factor[R];
#pragma unroll
        for (int r = 0; r < R; r++)
#pragma unroll
            for (int k = 0; k < N; k++)
                v[r][k] = to_float(x[r].v[k]) +
                          (Residual ? to_float(residual[Residual ? r : 0].v[k]) : 0);
        short_load<T, N>(x, job.x, job, row + step, column);
        if constexpr (Residual)
            short_load<T, N>(residual, job.residual, job, row + step, column);
        if (job.measure == NORM_CENTRED)
#pragma unroll
            for (int r = 0; r < R; r++) {
#pragma unroll
                for (int k = 0; k < N; k++)
                    mean[r] += v[r][k];
                mean[r] = lanes_sum(mean[r], lanes) / (float)job.cols;
            }
#pragma unroll
        for (int r = 0; r < R; r++) {
            float square = 0;
#pragma unroll
            for (int k = 0; k < N; k++)
                square += live ? (v[r][k] - mean[r]) * (v[r][k] - mean[r]) : 0;
            factor[r] = held_factor(job, lanes_sum(square, lanes));
        }
#pragma unroll
        for (int r = 0; r < R; r++) {
            if (!live || row + r >= job.rows)
                continue;
            const int64_t at = (row + r) * job.cols + column;
            if (job.sum)
                norm_store<T, N>(job.sum, at, v[r]);
#pragma unroll
            for (int k = 0; k < N; k++)
                v[r][k] = (v[r][k] - mean[r]) * factor[r] * scale[k] + bias[k];
            norm_store<T, N>(job.y, at, v[r]);
            if (job.mean && column == 0) {
                job.mean[row + r] = mean[r];
                job.inverse[row + r] = factor[r];
            }
        }
    }
}

/* ---- launches ---------------------------------------------------------------------- */

template <typename T>
static bool short_launch(const norm_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T);
    int lanes = 1;
    while (lanes * N < job.cols)
        lanes *= 2;
    const int64_t each = CUDA_BLOCK / lanes * SHORT_ROWS;
    const int64_t needed = (job.rows + each - 1) / each;
    const int64_t most = (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) *
                         (job.residual ? 2 : 3);
    const auto kernel = job.residual ? short_kernel<T, true> : short_kernel<T, false>;
    kernel<<<(unsigned)(needed < most ? needed : most), CUDA_BLOCK, 0, stream>>>(job,
                                                                                 lanes);
    return true;
}

template <typename T, int E>
static bool warp_row_launch(const norm_job &job, cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(job.rows, WARP_BLOCK / 32);
    warp_row_kernel<T, E><<<blocks, WARP_BLOCK, 0, stream>>>(job);
    return true;
}

template <typename T>
bool norm_short(const norm_job &job, cudaStream_t stream)
{
    const int64_t n = job.cols;
    return n <= 32 * (16 / (int)sizeof(T)) ? short_launch<T>(job, stream)
           : n <= 512                      ? warp_row_launch<T, 16>(job, stream)
           : n <= 768                      ? warp_row_launch<T, 24>(job, stream)
           : n <= SHORT_ROW                ? warp_row_launch<T, 32>(job, stream)
                                           : false;
}

template bool norm_short<float>(const norm_job &job, cudaStream_t stream);
template bool norm_short<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_short<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
