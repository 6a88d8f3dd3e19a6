/* SPDX-License-Identifier: Apache-2.0
 *
 * What a bottleneck's blocks are made of beside common/product: copies to all blocks of a
 * cluster, stores into another's shared memory, matrices turned around, activations.
 */
#ifndef PLUGINS_BOTTLENECK_PIECES_CUH
#define PLUGINS_BOTTLENECK_PIECES_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/product/turned_moves.cuh"
#include "plugins/common/product/wgmma.cuh"
#include "plugins/common/stages/tail.cuh"

/* A piece of memory into shared memory. */
static __device__ inline void copy_piece(uint32_t to, const void *from, uint32_t bytes,
                                         uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* The same into the shared memory of all blocks of a cluster of so many. */
template <int Blocks>
static __device__ inline void copy_piece_to_all(uint32_t to, const void *from,
                                                uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1], %2, [%3], %4;\n" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier), "h"((uint16_t)((1 << Blocks) - 1))
                 : "memory");
}

/* A box into L2. */
static __device__ inline void fetch_box(const CUtensorMap *map, int32_t x, int32_t column,
                                        int32_t row, int32_t image)
{
    asm volatile(
        "cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];\n" ::"l"(map),
        "r"(x), "r"(column), "r"(row), "r"(image)
        : "memory");
}

/* A piece of this block's shared memory to a block of the cluster, whose barrier expects
 * it; it is read at any time until then. */
static __device__ inline void copy_there(uint32_t to, uint32_t from, uint32_t bytes,
                                         uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];\n" ::"r"(to),
                 "r"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* 16 bytes to a block of the cluster, whose barrier expects them; addresses are there. */
static __device__ inline void send_four(uint32_t to, uint32_t barrier, const uint4 &v)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
                 "[%0], {%1, %2, %3, %4}, [%5];\n" ::"r"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(barrier)
                 : "memory");
}

static __device__ inline uint4 load_four(uint32_t from)
{
    uint4 v;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(from)
                 : "memory");
    return v;
}

static __device__ inline void store_four(uint32_t to, const uint4 &v)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(to), "r"(v.x),
                 "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

static __device__ inline void warp_sync(void)
{
    __syncwarp();
}

/* ---- activations ----------------------------------------------------------------- */

static __device__ inline uint32_t bottleneck_halves(float a, float b)
{
    const __half2 two = __floats2half2_rn(a, b);
    uint32_t word;
    memcpy(&word, &two, sizeof word);
    return word;
}

/* Rounding keeps order, so that halves may be bounded, two at once. */
static __device__ inline uint32_t bottleneck_bounded(uint32_t word, const stage_tail &f)
{
    __half2 two;
    memcpy(&two, &word, sizeof two);
    two =
        __hmin2_nan(__hmax2_nan(two, __float2half2_rn(f.low)), __float2half2_rn(f.high));
    memcpy(&word, &two, sizeof word);
    return word;
}

static __device__ inline float bottleneck_curve(float x, const stage_tail &f)
{
    return x * (f.kind == STAGE_SILU ? sigmoid(x) : clamp(fmaf(x, 1 / 6.0f, 0.5f), 0, 1));
}

/* The activation, held to its bounds, and two to a word. */
template <int N>
static __device__ inline void
bottleneck_activate(uint32_t (&words)[N], const float (&v)[2 * N], const stage_tail &f)
{
    if (f.kind == STAGE_BOUNDS)
#pragma unroll
        for (int i = 0; i < N; i++)
            words[i] = bottleneck_bounded(bottleneck_halves(v[2 * i], v[2 * i + 1]), f);
    else
#pragma unroll
        for (int i = 0; i < N; i++)
            words[i] =
                bottleneck_bounded(bottleneck_halves(bottleneck_curve(v[2 * i], f),
                                                     bottleneck_curve(v[2 * i + 1], f)),
                                   f);
}

static __device__ inline float2 bottleneck_floats(uint32_t word)
{
    __half2 two;
    memcpy(&two, &word, sizeof two);
    return __half22float2(two);
}

#endif /* PLUGINS_BOTTLENECK_PIECES_CUH */
