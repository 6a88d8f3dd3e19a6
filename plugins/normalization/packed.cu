/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of rows of whole packs that a team of warps holds in
 * registers, as they lie: with two halves in a register so many blocks have room on a
 * multiprocessor that others load while one computes. Elements become FP32 anew in each
 * pass. Scale and bias are read where they are used; the first-level cache, of which
 * nothing is taken for shared memory, has them.
 *
 * A block is one row, or four short ones, and the hardware hands blocks out in order, to
 * whichever multiprocessor is free: no one ends late, and what is under way is one
 * stretch of the tensor.
 */
#include "kernels/overlap.cuh"
#include "plugins/normalization/packed.cuh"

#define PACKED_ROWS 4 /* of a block, of a warp each */

/* A row is a team's of some warps, and P packs of it a thread's, which has R rows. */
template <int P, int Warps, int R, bool Centred, bool Residual>
struct packed_shape {
    static const int Team = Warps * 32, Teams = Warps == 1 ? PACKED_ROWS : 1;
    static const int Threads = Team * Teams;
    static const int Resident = Residual               ? 640 /* of a multiprocessor */
                                : R > 1                ? 512
                                : Centred || Warps > 8 ? 1024
                                                       : 1152;
    static const int Blocks = Resident < Threads ? 1 : Resident / Threads;
};

/* What is normalized, where somebody wants it. */
template <typename T, int P>
static __device__ inline void packed_sum(const packed_part<T, P, true> &part,
                                         const norm_job &job, int64_t at, int step,
                                         int count)
{
    const int N = 16 / (int)sizeof(T);
#pragma unroll
    for (int i = 0; i < P; i++) {
        float v[N];
        part.take(v, i);
        if (job.sum && i < count)
            norm_store<T, N>(job.sum, (at + i * step) * N, v);
    }
}

template <typename T, int P, int Warps, int R, bool Centred, bool Residual>
static __global__ void
    __launch_bounds__((packed_shape<P, Warps, R, Centred, Residual>::Threads),
                      (packed_shape<P, Warps, R, Centred, Residual>::Blocks))
        packed_kernel(const __grid_constant__ norm_job job)
{
    wait_for_previous();
    launch_next();
    typedef packed_shape<P, Warps, R, Centred, Residual> shape;
    const int N = 16 / (int)sizeof(T), Team = shape::Team;
    const int packs = (int)job.cols / N, lane = (int)threadIdx.x % Team;
    const int count = packs > lane ? (packs - lane + Team - 1) / Team : 0;
    const int64_t row =
        ((int64_t)blockIdx.x * shape::Teams + (int)threadIdx.x / Team) * R;
    const int64_t at = row * packs + lane;
    packed_part<T, P, Residual> part[R];
    row_part t[R];
    float factor[R];
    if (Warps == 1 && row >= job.rows)
        return;
#pragma unroll
    for (int r = 0; r < R; r++)
        part[r].load(job, at + r * packs, Team, R == 1 || row + r < job.rows ? count : 0);
#pragma unroll
    for (int r = 0; r < R; r++)
        t[r] = packed_warp<Centred>(part[r], count);
    if constexpr (Warps > 1) {
        __shared__ row_part slots[R][Warps];
#pragma unroll
        for (int r = 0; r < R; r++)
            if (threadIdx.x % 32 == 0)
                slots[r][threadIdx.x / 32] = t[r];
        __syncthreads();
#pragma unroll
        for (int r = 0; r < R; r++)
            t[r] = packed_join<Warps, Centred>(slots[r], job.elements);
    }
#pragma unroll
    for (int r = 0; r < R; r++) {
        const bool live = R == 1 || row + r < job.rows;
        factor[r] = held_factor(job, t[r].square);
        part[r].forget();
        if (job.mean && lane == 0 && live) {
            job.mean[row + r] = t[r].mean;
            job.inverse[row + r] = factor[r];
        }
        if constexpr (Residual)
            packed_sum<T, P>(part[r], job, at + r * packs, Team, live ? count : 0);
    }
    const float *scales = job.scale ? job.scale + lane * N : NULL;
    const float *biases = Centred && job.bias ? job.bias + lane * N : NULL;
    pack<T, N> *y = (pack<T, N> *)job.y + at;
#pragma unroll
    for (int i = 0; i < P; i++) {
        pack<T, N> out[R];
        if (i >= count)
            continue;
#pragma unroll
        for (int k = 0; k < N; k += 4) {
            const int column = i * Team * N + k;
            const float4 scale = packed_weights(scales, column, 1);
            const float4 bias = packed_weights(biases, column, 0);
#pragma unroll
            for (int r = 0; r < R; r++) {
                float v[N];
                part[r].take(v, i);
                packed_round(&out[r].v[k], v + k, t[r].mean, factor[r], scale, bias);
            }
        }
#pragma unroll
        for (int r = 0; r < R; r++)
            if (R == 1 || row + r < job.rows)
                store_past((uint4 *)(y + r * packs + i * Team), *(const uint4 *)&out[r]);
    }
}

/* ---- launches ---------------------------------------------------------------------- */

template <typename T, int P, int Warps, int R, bool Centred, bool Residual>
static bool packed_launch(const norm_job &job, cudaStream_t stream)
{
    typedef packed_shape<P, Warps, R, Centred, Residual> shape;
    launch_overlapped(packed_kernel<T, P, Warps, R, Centred, Residual>,
                      layer_blocks(job.rows, shape::Teams * R), shape::Threads, 0, stream,
                      job);
    return true;
}

/* Scale and bias of long rows do not stay in the first-level cache: two rows at once. */
template <typename T, bool Centred, bool Residual>
static bool packed_choose(const norm_job &job, cudaStream_t stream)
{
    const int Two = Centred && !Residual ? 2 : 1;
    const int64_t packs = job.cols / (16 / (int64_t)sizeof(T));
    return packs <= 64     ? packed_launch<T, 2, 1, 1, Centred, Residual>(job, stream)
           : packs <= 96   ? packed_launch<T, 3, 1, 1, Centred, Residual>(job, stream)
           : packs <= 128  ? packed_launch<T, 4, 1, 1, Centred, Residual>(job, stream)
           : packs <= 256  ? packed_launch<T, 4, 2, 1, Centred, Residual>(job, stream)
           : packs <= 512  ? packed_launch<T, 4, 4, 1, Centred, Residual>(job, stream)
           : packs <= 1024 ? packed_launch<T, 4, 8, Two, Centred, Residual>(job, stream)
           : packs <= 2048 ? packed_launch<T, 4, 16, 1, Centred, Residual>(job, stream)
                           : false;
}

template <typename T>
bool norm_packed(const norm_job &job, cudaStream_t stream)
{
    if (job.measure == NORM_CENTRED)
        return job.residual ? packed_choose<T, true, true>(job, stream)
                            : packed_choose<T, true, false>(job, stream);
    if (job.bias)
        return false;
    return job.residual ? packed_choose<T, false, true>(job, stream)
                        : packed_choose<T, false, false>(job, stream);
}

template bool norm_packed<float>(const norm_job &job, cudaStream_t stream);
template bool norm_packed<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_packed<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
