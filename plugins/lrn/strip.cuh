/* SPDX-License-Identifier: Apache-2.0
 *
 * LRN of the usual window, of 5 channels with beta = 0.75, in large planes: blocks that
 * stay take strips of neighbouring pixels by many channels, which the copy engine brings,
 * the next ones while one is worked on. A thread has a pack of pixels of some channels,
 * and reads its neighbours' from shared memory.
 */
#ifndef PLUGINS_LRN_STRIP_CUH
#define PLUGINS_LRN_STRIP_CUH

#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/common/product/wgmma.cuh"
#include "plugins/lrn/job.cuh"

#define STRIP_PACKS 28    /* of pixels, of a strip at most */
#define STRIP_CHANNELS 64 /* of a strip */
#define STRIP_EACH 8      /* of a thread */
#define STRIP_STAGES 3
#define STRIP_BLOCKS 2 /* of a multiprocessor */
#define STRIP_THREADS (STRIP_PACKS * (STRIP_CHANNELS / STRIP_EACH))
#define STRIP_ROUNDS 4 /* strips of a block at least */

struct lrn_strips {
    uint32_t units;
    divisor across, segments; /* strips of a plane, of an image's channels */
    int32_t rows;             /* of a stage: channels and their neighbours */
};

/* Where a strip lies. */
struct lrn_place {
    int64_t at;          /* of its first pack in its image's first channel, in packs */
    int32_t from;        /* channel */
    int32_t first, last; /* channels that are read */
    int32_t packs;
};

static __device__ inline lrn_place lrn_place_of(const lrn_job &job, const lrn_strips &s,
                                                uint32_t unit)
{
    const uint32_t rest = divide_by(unit, s.across);
    const uint32_t image = divide_by(rest, s.segments);
    const int32_t strip = (int32_t)(unit - rest * s.across.d);
    lrn_place p;
    p.from = (int32_t)(rest - image * s.segments.d) * STRIP_CHANNELS;
    p.first = max(p.from - 2, 0);
    p.last = min(p.from + STRIP_CHANNELS + 2, job.channels);
    p.at = (int64_t)image * job.channels * job.packs + strip * STRIP_PACKS;
    p.packs = min((int32_t)job.packs - strip * STRIP_PACKS, STRIP_PACKS);
    return p;
}

#if __CUDA_ARCH__ >= 900
/* By a warp: the strip on its way; nothing behind the last one. */
static __device__ inline void lrn_ask(const lrn_job &job, const lrn_strips &s,
                                      uint32_t unit, uint4 *stage, uint32_t full)
{
    const int lane = (int)threadIdx.x;
    if (lane >= 32 || unit >= s.units)
        return;
    const lrn_place p = lrn_place_of(job, s, unit);
    const uint32_t bytes = (uint32_t)p.packs * 16;
    if (lane == 0)
        barrier_expect(full, (uint32_t)(p.last - p.first) * bytes);
    __syncwarp();
    for (int c = p.first + lane; c < p.last; c += 32)
        copy_bytes(
            (uint32_t)__cvta_generic_to_shared(stage + (c - p.first) * STRIP_PACKS),
            (const uint4 *)job.x + p.at + c * job.packs, bytes, full);
}

/* A pack of channel c as floats, zeros outside of the channels. */
template <typename T, int V>
static __device__ inline void lrn_take(float (&v)[V], const uint4 *column, int c,
                                       int channels)
{
    pack<T, V> p = {};
    if (c >= 0 && c < channels)
        p = *(const pack<T, V> *)(column + c * STRIP_PACKS);
#pragma unroll
    for (int k = 0; k < V; k++)
        v[k] = to_float(p.v[k]);
}

/* STRIP_EACH channels of a pack, from channel `from` on. column: channel 0's pack. Sums
 * of two squares are made once for both windows that have them. */
template <typename T, int V>
static __device__ inline void lrn_column(const lrn_job &job, const uint4 *column,
                                         uint4 *y, int from)
{
    float far[V], near[V], here[V], next[V], middle[2][V];
    {
        float a[V], b[V];
        lrn_take<T>(a, column, from - 2, job.channels);
        lrn_take<T>(b, column, from - 1, job.channels);
        lrn_take<T>(middle[0], column, from, job.channels);
        lrn_take<T>(middle[1], column, from + 1, job.channels);
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float c = middle[0][k], d = middle[1][k];
            far[k] = fmaf(a[k], a[k], b[k] * b[k]);
            near[k] = fmaf(b[k], b[k], c * c);
            here[k] = fmaf(c, c, d * d);
            next[k] = d * d;
        }
    }
#pragma unroll 4
    for (int j = 0; j < STRIP_EACH; j++) {
        float e[V];
        pack<T, V> out;
        lrn_take<T>(e, column, from + j + 2, job.channels);
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float square = e[k] * e[k];
            from_float(&out.v[k],
                       lrn_usual(middle[j % 2][k], far[k] + here[k] + square, job.l));
            middle[j % 2][k] = e[k];
            far[k] = near[k];
            near[k] = here[k];
            here[k] = next[k] + square;
            next[k] = square;
        }
        if (from + j < job.channels)
            store_once<T, V>((T *)(y + (int64_t)(from + j) * job.packs), out);
    }
}
#endif

template <typename T, int V>
static __global__ void __launch_bounds__(STRIP_THREADS, STRIP_BLOCKS)
    lrn_strip_kernel(const __grid_constant__ lrn_job job,
                     const __grid_constant__ lrn_strips s)
{
#if __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) uint4 strips[];
    __shared__ __align__(8) uint64_t barriers[STRIP_STAGES];
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers);
    const int column = (int)threadIdx.x % STRIP_PACKS;
    const int channel = (int)threadIdx.x / STRIP_PACKS * STRIP_EACH;
    const int stage = s.rows * STRIP_PACKS;
    uint32_t parity = 0;
    int at = 0;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < STRIP_STAGES; i++)
            barrier_init(full + i * 8, 1);
        barrier_publish();
    }
    __syncthreads();
    wait_for_previous();
    launch_next();
    for (uint32_t i = 0; i < STRIP_STAGES; i++)
        lrn_ask(job, s, blockIdx.x + i * gridDim.x, strips + (int)i * stage,
                full + i * 8);
    for (uint32_t unit = blockIdx.x; unit < s.units; unit += gridDim.x) {
        const lrn_place p = lrn_place_of(job, s, unit);
        uint4 *const memory = strips + at * stage;
        barrier_wait(full + (uint32_t)at * 8, parity);
        if (column < p.packs && p.from + channel < job.channels)
            lrn_column<T, V>(job, memory + column - p.first * STRIP_PACKS,
                             (uint4 *)job.y + p.at + column, p.from + channel);
        __syncthreads(); /* all have read what the next strip overwrites */
        lrn_ask(job, s, unit + STRIP_STAGES * gridDim.x, memory, full + (uint32_t)at * 8);
        at = at + 1 == STRIP_STAGES ? 0 : at + 1;
        parity ^= at == 0;
    }
#endif
}

/* False where other kernels are for it. */
template <typename T, int V>
static bool lrn_strip(const strata_run *r, lrn_job job)
{
    lrn_strips s = {};
    const auto kernel = lrn_strip_kernel<T, V>;
    const int64_t blocks =
        (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) * STRIP_BLOCKS;
    job.packs = job.plane / V;
    const int64_t across = (job.packs + STRIP_PACKS - 1) / STRIP_PACKS;
    const int64_t segments = (job.channels + STRIP_CHANNELS - 1) / STRIP_CHANNELS;
    const int64_t units = r->in[0].dims[0] * segments * across;
    const int32_t rows = STRIP_CHANNELS + 4;
    s.rows = job.channels < rows ? job.channels : rows;
    const size_t bytes = (size_t)STRIP_STAGES * (size_t)s.rows * STRIP_PACKS * 16;
    if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ||
        job.channels < STRIP_CHANNELS / 2 || units < STRIP_ROUNDS * blocks ||
        units > 0x3fffffff || across * STRIP_PACKS * 8 > job.packs * 9 ||
        shared_allow((const void *)kernel, bytes) != cudaSuccess)
        return give_up();
    s.units = (uint32_t)units;
    s.across = divisor_of(across);
    s.segments = divisor_of(segments);
    launch_overlapped(kernel, (unsigned)blocks, STRIP_THREADS, bytes, layer_stream(r),
                      job, s);
    return true;
}

#endif /* PLUGINS_LRN_STRIP_CUH */
