/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of contiguous lines that a team of warps holds in registers, as they lie: with
 * two halves in a register so many blocks have room on a multiprocessor that others load
 * while one computes, and nothing else is needed to keep memory at work. Elements become
 * FP32 anew in each pass, and take two exponentials.
 *
 * A block is one line, or four short ones, and the hardware hands blocks out in order, to
 * whichever multiprocessor is free: no one ends late, and what is under way is one
 * stretch of the tensor. Bytes under way on a multiprocessor: 64 KB at the start of
 * blocks.
 */
#include <cfloat>

#include "plugins/common/copy_ahead.cuh"
#include "plugins/softmax/job.cuh"

#define PACKED_LINES 4 /* of a block, of a warp each */

/* A line is a team's of some warps, and P packs of it a thread's. */
template <int P, int Warps>
struct packed_shape {
    static const int Team = Warps * 32, Lines = Warps == 1 ? PACKED_LINES : 1;
    static const int Threads = Team * Lines;
    static const int Blocks = (P < 4 ? 1280 : 1024) / Threads; /* of a multiprocessor */
};

/* ---- packs as they lie --------------------------------------------------------------
 */

static __device__ inline void take_larger(pack<float, 4> &most, const pack<float, 4> &p)
{
#pragma unroll
    for (int k = 0; k < 4; k++)
        most.v[k] = fmaxf(most.v[k], p.v[k]);
}

static __device__ inline void take_larger(pack<__half, 8> &most, const pack<__half, 8> &p)
{
#pragma unroll
    for (int k = 0; k < 8; k += 2)
        *(__half2 *)&most.v[k] =
            __hmax2(*(const __half2 *)&most.v[k], *(const __half2 *)&p.v[k]);
}

static __device__ inline void take_larger(pack<__nv_bfloat16, 8> &most,
                                          const pack<__nv_bfloat16, 8> &p)
{
#pragma unroll
    for (int k = 0; k < 8; k += 2)
        *(__nv_bfloat162 *)&most.v[k] = __hmax2(*(const __nv_bfloat162 *)&most.v[k],
                                                *(const __nv_bfloat162 *)&p.v[k]);
}

/* What a thread holds of a line. */
template <typename T, int P>
struct packed_part {
    static const int N = 16 / (int)sizeof(T);
    uint4 held[P];

    __device__ inline pack<T, N> at(int i) const
    {
        return *(const pack<T, N> *)&held[i];
    }

    /* Packs past `count` are -infinity. */
    __device__ inline void load(const uint4 *x, int step, int count)
    {
        pack<T, N> none;
#pragma unroll
        for (int k = 0; k < N; k++)
            from_float(&none.v[k], -INFINITY);
#pragma unroll
        for (int i = 0; i < P; i++) {
            held[i] = *(const uint4 *)&none;
            if (i < count)
                held[i] = x[i * step];
        }
    }

    /* Opaque: or what one pass made FP32 would be kept for the next one. */
    __device__ inline void forget(void)
    {
#pragma unroll
        for (int i = 0; i < P; i++)
            asm volatile(""
                         : "+r"(held[i].x), "+r"(held[i].y), "+r"(held[i].z),
                           "+r"(held[i].w));
    }

    __device__ inline float largest(void) const
    {
        pack<T, N> most = at(0);
        float x = -INFINITY;
#pragma unroll
        for (int i = 1; i < P; i++)
            take_larger(most, at(i));
#pragma unroll
        for (int k = 0; k < N; k++)
            x = fmaxf(x, to_float(most.v[k]));
        return x;
    }

    __device__ inline float sum(float base) const
    {
        float sum[4] = {}; /* short chains */
#pragma unroll
        for (int i = 0; i < P; i++)
#pragma unroll
            for (int k = 0; k < N; k++)
                sum[k % 4] += exp2_near(LOG2_E * (to_float(at(i).v[k]) - base));
        return sum[0] + sum[1] + (sum[2] + sum[3]);
    }
};

/* ---- teams --------------------------------------------------------------------------
 */

/* Finite where there is nothing but -infinity. */
static __device__ inline float packed_base(float largest)
{
    return fmaxf(largest, -FLT_MAX);
}

static __device__ inline float lanes_sum(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

static __device__ inline float lanes_largest(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, d));
    return x;
}

/* Of the warps of a block, in a fixed order; `largest` becomes a base. */
template <int Warps>
static __device__ inline tally packed_join(tally t)
{
    __shared__ tally slots[Warps];
    const int lane = (int)threadIdx.x % 32;
    if (lane == 0)
        slots[threadIdx.x / 32] = t;
    __syncthreads();
    if constexpr (Warps > 8) {
        t = {-INFINITY, 0};
        if (lane < Warps)
            t = slots[lane];
        const float base = packed_base(lanes_largest(t.largest));
        t = {base, lanes_sum(t.sum * exp2_near(LOG2_E * (t.largest - base)))};
    } else {
        t = {slots[0].largest, 0};
#pragma unroll
        for (int i = 1; i < Warps; i++)
            t.largest = fmaxf(t.largest, slots[i].largest);
        t.largest = packed_base(t.largest);
#pragma unroll
        for (int i = 0; i < Warps; i++)
            t.sum += slots[i].sum * exp2_near(LOG2_E * (slots[i].largest - t.largest));
    }
    return t;
}

template <typename T, int P, int Warps>
static __global__ void __launch_bounds__((packed_shape<P, Warps>::Threads),
                                         (packed_shape<P, Warps>::Blocks))
    packed_kernel(const __grid_constant__ softmax_job job)
{
    typedef packed_shape<P, Warps> shape;
    const int N = 16 / (int)sizeof(T), Team = shape::Team;
    const int packs = (int)job.length / N, lane = (int)threadIdx.x % Team;
    const int count = packs > lane ? (packs - lane + Team - 1) / Team : 0;
    const int64_t line = (int64_t)blockIdx.x * shape::Lines + (int)threadIdx.x / Team;
    const int64_t at = line * packs + lane;
    packed_part<T, P> part;
    if (Warps == 1 && line >= job.n_lines)
        return;
    part.load((const uint4 *)job.x + at, Team, count);
    tally t = {lanes_largest(part.largest()), 0};
    const float base = packed_base(t.largest);
    part.forget();
    t.sum = lanes_sum(part.sum(base));
    if constexpr (Warps > 1)
        t = packed_join<Warps>(t);
    else
        t.largest = base;
    const float close = job.log ? -logf(t.sum) : -log2f(t.sum);
    uint4 *y = (uint4 *)job.y + at;
    part.forget();
#pragma unroll
    for (int i = 0; i < P; i++) {
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float x = to_float(part.at(i).v[k]) - t.largest;
            v[k] = job.log ? x + close : exp2_near(fmaf(LOG2_E, x, close));
        }
        if (i < count)
            walk_store<T, N>((T *)(y + i * Team), v);
    }
}

/* ---- launches -----------------------------------------------------------------------
 */

template <typename T, int P, int Warps>
static bool packed_launch(const softmax_job &job, cudaStream_t stream)
{
    typedef packed_shape<P, Warps> shape;
    const unsigned blocks = layer_blocks(job.n_lines, shape::Lines);
    packed_kernel<T, P, Warps><<<blocks, shape::Threads, 0, stream>>>(job);
    return true;
}

template <typename T>
static bool packed_choose(const softmax_job &job, cudaStream_t stream)
{
    const int64_t n = job.length, N = 16 / (int64_t)sizeof(T), packs = n / N;
    if (n % N || packs <= 32 || job.n_lines > 0x7fffffff)
        return false;
    return packs <= 64     ? packed_launch<T, 2, 1>(job, stream)
           : packs <= 96   ? packed_launch<T, 3, 1>(job, stream)
           : packs <= 128  ? packed_launch<T, 4, 1>(job, stream)
           : packs <= 256  ? packed_launch<T, 4, 2>(job, stream)
           : packs <= 512  ? packed_launch<T, 4, 4>(job, stream)
           : packs <= 1024 ? packed_launch<T, 4, 8>(job, stream)
           : packs <= 2048 ? packed_launch<T, 4, 16>(job, stream)
                           : false;
}

bool softmax_packed(const softmax_job &job, int32_t dtype, cudaStream_t stream)
{
    bool launched = false;
    layer_float(dtype,
                [&](auto t) { launched = packed_choose<decltype(t)>(job, stream); });
    return launched;
}
