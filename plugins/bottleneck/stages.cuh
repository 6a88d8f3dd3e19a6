/* SPDX-License-Identifier: Apache-2.0
 *
 * The three stages of a bottleneck's tile, and a block's way from tile to tile.
 */
#ifndef PLUGINS_BOTTLENECK_STAGES_CUH
#define PLUGINS_BOTTLENECK_STAGES_CUH

#include "plugins/bottleneck/block.cuh"

#if __CUDA_ARCH__ >= 900
/* ---- stages ----------------------------------------------------------------------- */

template <int G>
static __device__ inline void bottleneck_reduce(const bottleneck_block<G> &b,
                                                const uint32_t (&mask)[8 / G],
                                                uint32_t parity)
{
    typedef bottleneck_layout<G> Layout;
    const uint32_t panel = b.shared + Layout::Reduced;
    const uint32_t whole = b.barrier(BOTTLENECK_FIRST_WHOLE);
    const bottleneck_team team = {b.j, G, b.i};
    float sum[8][4], own[8 / G][4];
    hold(sum);
#pragma unroll
    for (int p = 0; p < BOTTLENECK_REDUCE; p++) {
        if (!b.has(p))
            continue;
        barrier_wait(b.barrier(BOTTLENECK_LOADED + p), 0);
        barrier_wait(b.barrier(BOTTLENECK_INPUT + p), parity);
        bottleneck_multiply<64>(
            sum, b.shared + Layout::Weights + p * BOTTLENECK_PIECE,
            b.shared + Layout::Input + p * BOTTLENECK_REACH * BOTTLENECK_ROW, 1024, p);
    }
    multiply_wait<0>();
    hold(sum);
    if (threadIdx.x % 32 == 0)
        barrier_arrive(b.barrier(BOTTLENECK_INPUT_FREE));
    bottleneck_join<G>(own, sum, team, b.shared + Layout::First,
                       b.barrier(BOTTLENECK_FIRST), parity);
    bottleneck_keep(panel, own, b.biases, b.job.reduced, mask, (int)b.i * (8 / G));
    publish_shared();
    named_sync(NAME_FIRST, 128);
    if constexpr (G > 1) {
        bottleneck_tell<G>(team, panel + b.i * (8192 / G), 8192 / G, whole);
        barrier_wait(whole, parity);
    }
}

template <int G>
static __device__ inline void bottleneck_convolve(const bottleneck_block<G> &b,
                                                  uint32_t parity)
{
    typedef bottleneck_layout<G> Layout;
    const uint32_t panel = b.shared + Layout::Convolved + b.i * BOTTLENECK_PANEL;
    const bottleneck_team team = {b.i * G, 1, b.j}, all = {0, 1, b.rank};
    float sum[4][4], own[4 / G][4];
    uint32_t mask[4 / G];
    bottleneck_mask(mask, ~UINT64_C(0), 0);
    hold(sum);
#pragma unroll
    for (int e = 0; e < BOTTLENECK_WINDOWS; e++) {
        const int p = BOTTLENECK_REDUCE + e;
        barrier_wait(b.barrier(BOTTLENECK_LOADED + p), 0);
        bottleneck_multiply<32>(sum, b.shared + Layout::Weights + p * BOTTLENECK_PIECE,
                                b.shared + Layout::Reduced +
                                    (e / 3 * b.job.pitch + e % 3) * BOTTLENECK_ROW,
                                b.job.group, e);
    }
    multiply_wait<0>();
    hold(sum);
    bottleneck_join<G>(own, sum, team, b.shared + Layout::Second,
                       b.barrier(BOTTLENECK_SECOND), parity);
    bottleneck_keep(panel, own, b.biases + 64, b.job.convolved, mask, (int)b.j * (4 / G));
    publish_shared();
    named_sync(NAME_FIRST, 128);
    if constexpr (G > 1)
        bottleneck_tell<G * G>(all, panel + b.j * (BOTTLENECK_PANEL / G),
                               BOTTLENECK_PANEL / G, b.barrier(BOTTLENECK_SECOND_WHOLE));
}

/* Until all of what was convolved is here, for all that multiply it. */
template <int G>
static __device__ inline void bottleneck_meet(const bottleneck_block<G> &b, int group,
                                              uint32_t parity)
{
    const uint32_t mine = b.barrier(BOTTLENECK_CONVOLVED);
    if (G > 1)
        barrier_wait(b.barrier(BOTTLENECK_SECOND_WHOLE), parity);
    if (group > 0)
        barrier_wait(mine, parity);
    else if (bottleneck_layout<G>::Parts > 1 && threadIdx.x % 32 == 0)
        barrier_arrive(mine);
}

/* Biases, addend and activation of 64 results; halves to where the addend was. */
template <int G>
static __device__ inline void bottleneck_finish(const bottleneck_block<G> &b,
                                                const float (&sum)[4][4], int part)
{
    typedef bottleneck_layout<G> Layout;
    const uint32_t warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const float *bias = b.biases + 128 + part * 64 + warp * 16 + lane / 4;
    const float low = bias[0], high = bias[8];
    const uint32_t at =
        b.shared + Layout::Output + part * BOTTLENECK_PANEL + bottleneck_turned(0);
    uint32_t words[8] = {};
    float v[16];
    if (b.job.adds)
#pragma unroll
        for (int n = 0; n < 4; n += 2) {
            uint32_t four[4];
            load_turned(four, at + n * 8 * BOTTLENECK_ROW);
#pragma unroll
            for (int k = 0; k < 4; k++)
                words[2 * n + k] = four[k];
        }
#pragma unroll
    for (int k = 0; k < 8; k++) {
        const float2 add = bottleneck_floats(words[k]);
        const float *two = &sum[k / 2][k % 2 * 2], shift = k % 2 ? high : low;
        v[2 * k] = two[0] + shift + add.x;
        v[2 * k + 1] = two[1] + shift + add.y;
    }
    bottleneck_activate(words, v, b.job.projected);
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
        const uint32_t four[4] = {words[2 * n], words[2 * n + 1], words[2 * n + 2],
                                  words[2 * n + 3]};
        store_turned(at + n * 8 * BOTTLENECK_ROW, four);
    }
}

enum { BOTTLENECK_EACH = 2 }; /* pixels of a thread, 8 channels each */

/* Where a thread's results of a part lie, or -1. */
template <int G>
static __device__ inline void bottleneck_find(const bottleneck_block<G> &b, int part,
                                              int64_t (&at)[BOTTLENECK_EACH])
{
    const bottleneck_job &job = b.job;
    const int32_t thread = (int32_t)threadIdx.x % 128;
    const int32_t channel =
        ((int32_t)b.rank * bottleneck_layout<G>::Parts + part) * 64 + thread % 8 * 8;
#pragma unroll
    for (int k = 0; k < BOTTLENECK_EACH; k++) {
        const int32_t pixel = thread / 8 + k * 16, row = pixel >> job.shift;
        const int32_t column = pixel - (row << job.shift);
        const int32_t h = b.top + row, w = b.left + column;
        at[k] =
            column < job.tile_w && h < job.height && w < job.width &&
                    channel < job.results
                ? (((int64_t)b.image * job.height + h) * job.width + w) * job.results +
                      channel
                : -1;
    }
}

/* 64 results of the tile to y, by a warpgroup. */
template <int G>
static __device__ inline void bottleneck_store(const bottleneck_block<G> &b, int part,
                                               const int64_t (&at)[BOTTLENECK_EACH])
{
    const uint32_t thread = threadIdx.x % 128;
    const uint32_t from =
        b.shared + bottleneck_layout<G>::Output + part * BOTTLENECK_PANEL;
    uint4 v[BOTTLENECK_EACH];
#pragma unroll
    for (int k = 0; k < BOTTLENECK_EACH; k++)
        v[k] = load_four(from + bottleneck_place(thread / 8 + k * 16, thread % 8));
#pragma unroll
    for (int k = 0; k < BOTTLENECK_EACH; k++)
        if (at[k] >= 0)
            *(uint4 *)(b.job.y + at[k]) = v[k];
}

/* Before the first warpgroup has others write what was convolved of the next tile. */
template <int G>
static __device__ inline void bottleneck_release(const bottleneck_block<G> &b, int group,
                                                 uint32_t parity)
{
    if (bottleneck_layout<G>::Parts == 1)
        return;
    if (group == 0)
        barrier_wait(b.barrier(BOTTLENECK_PROJECTED), parity);
    else if (threadIdx.x % 32 == 0)
        barrier_arrive(b.barrier(BOTTLENECK_PROJECTED));
}

/* The last stage: 64 results, by a warpgroup, of all convolved channels. */
template <int G>
static __device__ inline void bottleneck_project(const bottleneck_block<G> &b, int group,
                                                 const int64_t (&at)[BOTTLENECK_EACH],
                                                 uint32_t parity, bool more)
{
    typedef bottleneck_layout<G> Layout;
    float sum[4][4];
    hold(sum);
#pragma unroll
    for (int k = 0; k < G; k++) {
        const int p = BOTTLENECK_REDUCE + BOTTLENECK_WINDOWS + group * G + k;
        barrier_wait(b.barrier(BOTTLENECK_LOADED + p), 0);
        bottleneck_multiply<32>(sum, b.shared + Layout::Weights + p * BOTTLENECK_PIECE,
                                b.shared + Layout::Convolved + k * BOTTLENECK_PANEL, 1024,
                                k);
    }
    if (b.job.adds)
        barrier_wait(b.barrier(BOTTLENECK_ADDEND), parity);
    multiply_wait<0>();
    hold(sum);
    if (more)
        bottleneck_release(b, group, parity);
    bottleneck_finish(b, sum, group);
    named_sync(NAME_STORE + group, 128);
    bottleneck_store(b, group, at);
    if (!more)
        return; /* a fence would wait for what was stored */
    publish_shared();
    warp_sync();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(b.barrier(BOTTLENECK_OUTPUT_FREE));
}

/* ---- all of it -------------------------------------------------------------------- */

/* Barriers from `first` to `last`, by who uses them first. */
template <int G>
static __device__ inline void bottleneck_open(const bottleneck_block<G> &b, int first,
                                              int last)
{
    enum { OTHERS = bottleneck_layout<G>::Parts * 4 - 4 };
    for (int i = first; i <= last; i++)
        barrier_init(b.barrier(i), i == BOTTLENECK_INPUT_FREE            ? 4
                                   : i == BOTTLENECK_OUTPUT_FREE         ? OTHERS + 4
                                   : i == BOTTLENECK_CONVOLVED           ? 4
                                   : i == BOTTLENECK_PROJECTED && OTHERS ? OTHERS
                                                                         : 1);
    barrier_publish();
}

/* Before a block's threads meet. What the input waits for comes first: neither weights
 * nor their barriers are in its way, and most of them come behind it. */
template <int G>
static __device__ inline void bottleneck_begin(const bottleneck_block<G> &b)
{
    typedef bottleneck_layout<G> Layout;
    if (threadIdx.x == BOTTLENECK_LOADER) {
        prefetch_map(&b.job.x);
        prefetch_map(&b.job.addend);
        bottleneck_open(b, BOTTLENECK_INPUT, BOTTLENECK_OUTPUT_FREE);
        wait_for_previous();
        bottleneck_load_input(b);
        bottleneck_load_addend(b);
    } else if (threadIdx.x == BOTTLENECK_WEIGHER) {
        bottleneck_open(b, BOTTLENECK_LOADED, BOTTLENECK_INPUT - 1);
        bottleneck_load_weights(b, 0, b.job.ahead);
    } else if (threadIdx.x == 0) {
        bottleneck_open(b, BOTTLENECK_FIRST, BOTTLENECK_BARRIERS - 1);
    }
    if (threadIdx.x < 128)
        for (int c = (int)threadIdx.x; c < 128 + Layout::Parts * 64; c += 128)
            b.biases[c] = b.job.bias[b.bias(c)];
    warp_sync();
}

/* Other warpgroups: what is asked for, and their parts of the last stage. */
template <int G>
static __device__ inline void bottleneck_help(bottleneck_block<G> &b, int32_t first,
                                              int group)
{
    typedef bottleneck_layout<G> Layout;
    const bool loads = threadIdx.x == BOTTLENECK_LOADER;
    const int32_t units = b.job.units, by = b.job.by;
    uint32_t parity = 0;
    if (threadIdx.x == BOTTLENECK_WEIGHER)
        bottleneck_load_weights(b, b.job.ahead, BOTTLENECK_PIECES);
    warp_sync();
    for (int32_t unit = first; unit < units; unit += by, parity ^= 1) {
        const bool more = unit + by < units;
        bottleneck_block<G> next = b;
        if (more)
            next.go_to(unit + by);
        if (loads && more) {
            barrier_wait(b.barrier(BOTTLENECK_INPUT_FREE), parity);
            bottleneck_load_input(next);
        }
        warp_sync();
        if constexpr (Layout::Parts > 1) {
            int64_t at[BOTTLENECK_EACH];
            bottleneck_find(b, group, at);
            bottleneck_meet(b, group, parity);
            bottleneck_project(b, group, at, parity, more);
        }
        if (loads && more) {
            barrier_wait(b.barrier(BOTTLENECK_OUTPUT_FREE), parity);
            bottleneck_load_addend(next);
        }
        warp_sync();
        if (more)
            b.go_to(unit + by);
    }
}

template <int G>
static __device__ inline void bottleneck_work(bottleneck_block<G> &b, int32_t first)
{
    uint32_t parity = 0;
    for (int32_t unit = first; unit < b.job.units; unit += b.job.by, parity ^= 1) {
        uint32_t mask[8 / G];
        int64_t at[BOTTLENECK_EACH];
        b.go_to(unit);
        bottleneck_mask(mask, b.inside(), (int)b.i * (8 / G));
        bottleneck_find(b, 0, at);
        bottleneck_reduce(b, mask, parity);
        bottleneck_convolve(b, parity);
        bottleneck_meet(b, 0, parity);
        bottleneck_project(b, 0, at, parity, unit + b.job.by < b.job.units);
    }
}

/* There are no more clusters than tiles. A block may not end while others read its shared
 * memory, which they have when all of it has come to them. */
template <int G>
static __global__ void __launch_bounds__(bottleneck_layout<G>::Threads, 1)
    bottleneck_kernel(const __grid_constant__ bottleneck_job job)
{
    extern __shared__ uint8_t bottleneck_shared[];
    bottleneck_block<G> b(job, bottleneck_shared);
    const int32_t first = (int32_t)blockIdx.x / (G * G);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    launch_next();
    b.go_to(first);
    bottleneck_begin(b);
    if (G > 1)
        cluster_arrive();
    __syncthreads();
    if (G > 1)
        cluster_wait();
    if (group == 0)
        bottleneck_work(b, first);
    else
        bottleneck_help(b, first, group);
    if (G > 1)
        cluster_leave();
}
#else
template <int G>
static __global__ void bottleneck_kernel(const __grid_constant__ bottleneck_job)
{
}
#endif

#endif /* PLUGINS_BOTTLENECK_STAGES_CUH */
