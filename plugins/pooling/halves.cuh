/* SPDX-License-Identifier: Apache-2.0
 *
 * Maxima of FP16 over the windows of fixed.cuh, two channels to an instruction: in floats
 * a maximum takes a conversion, a choice and an instruction for each channel, which is
 * longer than loads take. Where every window meets the input, the nearest element in
 * place of one outside is one of the window's own, and maxima do not change by it.
 */
#ifndef PLUGINS_POOLING_HALVES_CUH
#define PLUGINS_POOLING_HALVES_CUH

#include "plugins/pooling/window.cuh"

/* Two of eight channels, which move as one word. NaN where either is, as in pool_fold. */
static __device__ inline uint32_t pool_larger(uint32_t a, uint32_t b)
{
    const __half2 c = __hmax2_nan(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&c;
}

static __device__ inline uint4 pool_larger(const uint4 &a, const uint4 &b)
{
    return make_uint4(pool_larger(a.x, b.x), pool_larger(a.y, b.y), pool_larger(a.z, b.z),
                      pool_larger(a.w, b.w));
}

/* As one word: the compiler would read the parts of some apart to spare registers. */
static __device__ inline uint4 pool_load(const __half *x)
{
    uint4 v;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(x)
                 : "memory");
    return v;
}

/* The nearest position inside, in elements. */
static __device__ inline int64_t pool_nearest(const pool_axis &a, int32_t at)
{
    return (int64_t)min(max(at, 0), a.in - 1) * a.x_step;
}

/* Two channels, of which `n` are left. */
static __device__ inline uint32_t pool_kept(uint32_t word, int32_t n)
{
    return n >= 2 ? word : n == 1 ? word & 0xffff : 0;
}

static __device__ inline void pool_store_halves(__half *y, const uint4 &value,
                                                int32_t channels)
{
    *(uint4 *)y =
        make_uint4(pool_kept(value.x, channels), pool_kept(value.y, channels - 2),
                   pool_kept(value.z, channels - 4), pool_kept(value.w, channels - 6));
}

/* Eight channels of outputs below each other, of windows of K x K that are S apart. */
template <int Rows, int K, int S>
static __global__ void __launch_bounds__(CUDA_BLOCK, 4)
    pool_halves_kernel(const __grid_constant__ pool_job job)
{
    const int64_t thread = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    launch_next();
    wait_for_previous();
    if (thread >= job.threads)
        return;
    const pool_place p = pool_find<true, Rows, uint32_t>(job, (uint32_t)thread);
    const pool_axis &h = job.axis[1], &w = job.axis[2];
    const __half *x =
        (const __half *)job.x + p.image * job.x_image + p.block * job.x_block;
    __half *y =
        (__half *)job.y + p.image * job.y_image + p.block * job.y_block + p.w * w.y_step;
    const int32_t top = (int32_t)p.h * S - (int32_t)h.begin;
    int64_t columns[K];
    uint4 most[Rows];
#pragma unroll
    for (int i = 0; i < K; i++)
        columns[i] = pool_nearest(w, (int32_t)p.w * S - (int32_t)w.begin + i);
#pragma unroll
    for (int row = 0; row < (Rows - 1) * S + K; row++) {
        const __half *line = x + pool_nearest(h, top + row);
        uint4 v = pool_load(line + columns[0]);
#pragma unroll
        for (int i = 1; i < K; i++)
            v = pool_larger(v, pool_load(line + columns[i]));
#pragma unroll
        for (int r = 0; r < Rows; r++)
            if (row == r * S)
                most[r] = v;
            else if (row > r * S && row < r * S + K)
                most[r] = pool_larger(most[r], v);
    }
#pragma unroll
    for (int r = 0; r < Rows; r++)
        if (p.h + r < (uint32_t)h.out)
            pool_store_halves(y + (p.h + r) * h.y_step, most[r],
                              job.channels - (int32_t)p.block * 8);
}

/* ---- on the host --------------------------------------------------------------------
 */

/* Whether no window lies beside the input. */
static inline bool pool_all_meet(const pool_job &job)
{
    bool meet = true;
    for (int d = 1; d < WINDOW_DIMS; d++) {
        const pool_axis &a = job.axis[d];
        meet = meet && a.begin < a.kernel && (a.out - 1) * a.stride - a.begin < a.in;
    }
    return meet;
}

#endif /* PLUGINS_POOLING_HALVES_CUH */
