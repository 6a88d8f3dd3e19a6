/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of rows of at most 32 packs: a row is a part of a warp's,
 * and a thread has one pack of it. It has two rows at once; the next two are under way in
 * registers.
 */
#include "plugins/normalization/held.cuh"
#include "kernels/overlap.cuh"

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
    launch_next();
    wait_for_previous();
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
bool norm_short(const norm_job &job, cudaStream_t stream)
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
    launch_overlapped(kernel, (unsigned)(needed < most ? needed : most), CUDA_BLOCK, 0,
                      stream, job, lanes);
    return true;
}

template bool norm_short<float>(const norm_job &job, cudaStream_t stream);
template bool norm_short<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_short<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
