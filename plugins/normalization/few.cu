/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of so few rows that what a row waits for is what counts:
 * scale and bias, which come from memory, are in registers before the kernel before has
 * ended. A row is a warp's, or where there are multiprocessors for it a block's, whose
 * threads have a pack each.
 */
#include <stdlib.h>

#include "kernels/overlap.cuh"
#include "plugins/normalization/packed.cuh"

#define FEW_TEAMS 4    /* rows of a block, where each is a warp's */
#define FEW_THREADS 384 /* of a multiprocessor */

/* A row is a team's of some warps, and P packs of it a thread's. */
template <int P, int Warps>
struct few_shape {
    static const int Team = Warps * 32, Teams = Warps == 1 ? FEW_TEAMS : 1;
    static const int Threads = Team * Teams, Blocks = FEW_THREADS / Threads;
};

/* A plain load: those of constants are moved behind the wait for the kernel before. */
static __device__ inline float4 few_ask(const float *from)
{
    float4 w = {1, 1, 1, 1};
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];\n"
                 : "=f"(w.x), "=f"(w.y), "=f"(w.z), "=f"(w.w)
                 : "l"(from)
                 : "memory");
    return w;
}

/* Of a thread's columns; value: where there are none. */
template <int P, int N, int Team>
static __device__ inline void few_weights(float4 (&w)[P * N / 4], const float *from,
                                          int lane, int count, float value)
{
#pragma unroll
    for (int i = 0; i < P * N / 4; i++) {
        const int pack = i / (N / 4) < count ? lane + i / (N / 4) * Team : 0;
        w[i] = {value, value, value, value};
        if (from)
            w[i] = few_ask(from + pack * N + i % (N / 4) * 4);
    }
}

/* Of the warps of a row. */
template <int Warps, bool Centred>
static __device__ inline row_part few_join(row_part t, float n)
{
    __shared__ row_part slots[Warps];
    if (threadIdx.x % 32 == 0)
        slots[threadIdx.x / 32] = t;
    __syncthreads();
    return packed_join<Warps, Centred>(slots, n);
}

template <typename T, int P, int Warps, bool Centred>
static __global__ void __launch_bounds__((few_shape<P, Warps>::Threads),
                                         (few_shape<P, Warps>::Blocks))
    few_kernel(const __grid_constant__ norm_job job, int flags)
{
    typedef few_shape<P, Warps> shape;
    const int N = 16 / (int)sizeof(T), Team = shape::Team;
    const int packs = (int)job.cols / N, lane = (int)threadIdx.x % Team;
    const int count = packs > lane ? (packs - lane + Team - 1) / Team : 0;
    const int64_t row = (int64_t)blockIdx.x * shape::Teams + (int)threadIdx.x / Team;
    float4 scale[P * N / 4], bias[P * N / 4];
    packed_part<T, P, false> part;
    few_weights<P, N, Team>(scale, job.scale, lane, count, 1);
    few_weights<P, N, Team>(bias, job.bias, lane, count, 0);
#pragma unroll 1
    for (int pass = flags & 2 ? 0 : 1; pass < 2; pass++) {
        const int live = pass ? count : 0;
        if (pass) {
            if (flags & 1)
                launch_next();
            wait_for_previous();
            if (!(flags & 1))
                launch_next();
        }
        if (Warps == 1 && row >= job.rows)
            return;
        part.load(job, row * packs + lane, Team, live);
        row_part t = packed_warp<Centred>(part, live);
        if constexpr (Warps > 1) {
            t = few_join<Warps, Centred>(t, job.elements);
            if (!pass)
                __syncthreads();
        }
        const float factor = held_factor(job, t.square);
        if (job.mean && lane == 0 && pass) {
            job.mean[row] = t.mean;
            job.inverse[row] = factor;
        }
        pack<T, N> *y = (pack<T, N> *)job.y + row * packs + lane;
#pragma unroll
        for (int i = 0; i < P; i++) {
            pack<T, N> out;
            float v[N];
            part.take(v, i);
#pragma unroll
            for (int k = 0; k < N; k += 4)
                packed_round(&out.v[k], v + k, t.mean, factor, scale[(i * N + k) / 4],
                             bias[(i * N + k) / 4]);
            if (i < live)
                y[i * Team] = out;
        }
    }
}

/* ---- launches ---------------------------------------------------------------------- */

template <typename T, int P, int Warps, bool Centred>
static bool few_launch(const norm_job &job, int flags, cudaStream_t stream)
{
    typedef few_shape<P, Warps> shape;
    launch_overlapped(few_kernel<T, P, Warps, Centred>,
                      layer_blocks(job.rows, shape::Teams), shape::Threads, 0, stream,
                      job, flags);
    return true;
}

template <typename T, bool Centred>
static bool few_choose(const norm_job &job, cudaStream_t stream)
{
    const int64_t packs = job.cols / (16 / (int64_t)sizeof(T));
    const int64_t multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
    const char *e = getenv("STRATA_TRY");
    const int t = e ? atoi(e) : 0, flags = (t & 32 ? 1 : 0) | (t & 2048 ? 2 : 0);
    const int64_t most = t & 64 ? 12 : 3;
    if (!(t & 8) || packs > 128 || job.rows > (t & 256 ? 16384 : 3 * FEW_TEAMS * multiprocessors))
        return false;
    if ((t & 16) && job.rows <= most * multiprocessors)
        return packs <= 64   ? few_launch<T, 1, 2, Centred>(job, flags, stream)
               : packs <= 96 ? few_launch<T, 1, 3, Centred>(job, flags, stream)
                             : few_launch<T, 1, 4, Centred>(job, flags, stream);
    return packs <= 64   ? few_launch<T, 2, 1, Centred>(job, flags, stream)
           : packs <= 96 ? few_launch<T, 3, 1, Centred>(job, flags, stream)
                         : few_launch<T, 4, 1, Centred>(job, flags, stream);
}

template <typename T>
bool norm_few(const norm_job &job, cudaStream_t stream)
{
    if (job.residual || job.sum)
        return false;
    return job.measure == NORM_CENTRED ? few_choose<T, true>(job, stream)
                                       : few_choose<T, false>(job, stream);
}

template bool norm_few<float>(const norm_job &job, cudaStream_t stream);
template bool norm_few<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_few<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
