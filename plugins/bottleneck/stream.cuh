/* SPDX-License-Identifier: Apache-2.0
 *
 * The three stages of a bottleneck's tile whose weights come through a ring.
 */
#ifndef PLUGINS_BOTTLENECK_STREAM_CUH
#define PLUGINS_BOTTLENECK_STREAM_CUH

#include "plugins/bottleneck/stream_job.cuh"
#include "plugins/bottleneck/strip_tail.cuh"

#if __CUDA_ARCH__ >= 900
#define N_52 N_48 ",%48,%49,%50,%51"
#define O_52(f, d) O_48(f, d), O_1(f, d, 12)
#define N_68 N_64 ",%64,%65,%66,%67"
#define O_68(f, d) O_64(f, d), O_1(f, d, 16)
PRODUCT(__half, "f16", 104, 52, 52, 53, 54, 55, 56)
PRODUCT(__half, "f16", 136, 68, 68, 69, 70, 71, 72)

/* ---- where a block is ------------------------------------------------------------- */

enum stream_barrier {
    STREAM_INPUT_FULL = 0,
    STREAM_INPUT_EMPTY = STREAM_INPUT_FULL + STREAM_SLOTS,
    STREAM_WEIGHTS_FULL = STREAM_INPUT_EMPTY + STREAM_SLOTS,
    STREAM_WEIGHTS_EMPTY = STREAM_WEIGHTS_FULL + STREAM_SLOTS, /* of both blocks */
    STREAM_TAKEN = STREAM_WEIGHTS_EMPTY + STREAM_SLOTS,
    STREAM_BARRIERS
};

enum { NAME_REDUCED = 1, NAME_SLID, NAME_CONVOLVED };

struct stream_block {
    const stream_job &job;
    uint32_t shared, rank; /* rank: of the two blocks of a cluster */
    uint8_t *memory;
    int32_t image, top, left;
    bool live; /* or there is no tile for this block */

    __device__ inline stream_block(const stream_job &job, uint8_t *memory) : job(job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        shared = shared_address(memory) + lost;
        this->memory = memory + lost;
        rank = blockIdx.x % 2;
    }
    __device__ inline uint32_t barrier(int which) const
    {
        return shared + which * 8;
    }
    __device__ inline uint16_t *masks(void) const
    {
        return (uint16_t *)(memory + STREAM_MASKS);
    }
    __device__ inline float *biases(void) const
    {
        return (float *)(memory + STREAM_BIASES);
    }
    __device__ inline uint32_t between(int panel) const
    {
        return shared + STREAM_BETWEEN + panel * STREAM_PANEL;
    }
    __device__ inline uint32_t input(int slot) const
    {
        return shared + STREAM_INPUT + slot * STREAM_PANEL;
    }
    __device__ inline uint32_t weights(int slot) const
    {
        return shared + STREAM_RING + slot * STREAM_WEIGHTS;
    }
    __device__ inline void open(void) const
    {
        for (int i = 0; i < STREAM_BARRIERS; i++)
            barrier_init(barrier(i), i < STREAM_INPUT_EMPTY     ? 1
                                     : i < STREAM_WEIGHTS_FULL  ? STREAM_GROUPS * 4
                                     : i < STREAM_WEIGHTS_EMPTY ? 1
                                     : i < STREAM_TAKEN         ? STREAM_GROUPS * 8
                                                                : STREAM_GROUPS * 4);
        barrier_publish();
    }
    /* Of the first two tiles of the cluster. */
    __device__ inline int32_t first(void) const
    {
        return (int32_t)(blockIdx.x - rank);
    }
    /* Both blocks of a cluster go on as long as one has a tile. Outside of all images
     * the input is 0. */
    __device__ inline void go_to(int32_t pair)
    {
        const uint32_t unit = (uint32_t)pair + rank;
        const uint32_t of = divide_by(unit, job.tiles);
        const uint32_t within = unit - of * job.tiles.d;
        const uint32_t down = divide_by(within, job.across);
        live = unit < (uint32_t)job.units;
        image = (int32_t)of;
        top = (int32_t)down * job.tile_h;
        left = (int32_t)(within - down * job.across.d) * job.tile_w;
    }
};

/* ---- loads, by a thread each ------------------------------------------------------- */

static __device__ inline void stream_load_weights(const stream_block &b)
{
    const int32_t pieces = stream_pieces(b.job);
    strip_slot slot;
    for (int32_t pair = b.first(); pair < b.job.units; pair += (int32_t)gridDim.x)
        for (int32_t p = 0; p < pieces; p++, slot.advance(STREAM_SLOTS)) {
            const uint32_t full = b.barrier(STREAM_WEIGHTS_FULL + slot.at);
            const uint32_t mine = b.rank * BOTTLENECK_PIECE;
            barrier_wait(b.barrier(STREAM_WEIGHTS_EMPTY + slot.at), slot.parity ^ 1);
            barrier_expect(full, STREAM_WEIGHTS);
            copy_piece_to_all<2>(b.weights(slot.at) + mine,
                                 b.job.weights + p * STREAM_WEIGHTS + mine,
                                 BOTTLENECK_PIECE, full);
        }
}

/* What the ring has no room for comes to L2 while the tile before is computed. */
static __device__ inline void stream_load_input(stream_block &b)
{
    strip_slot slot;
    wait_for_previous();
    for (int32_t pair = b.first(); pair < b.job.units; pair += (int32_t)gridDim.x) {
        b.go_to(pair);
        for (int32_t p = 0; p < b.job.panels; p++, slot.advance(STREAM_SLOTS)) {
            const uint32_t full = b.barrier(STREAM_INPUT_FULL + slot.at);
            barrier_wait(b.barrier(STREAM_INPUT_EMPTY + slot.at), slot.parity ^ 1);
            barrier_expect(full, b.job.box);
            copy_box(b.input(slot.at), &b.job.x, full, p * 64, b.left - 1, b.top - 1,
                     b.image);
            for (int32_t q = STREAM_SLOTS; q < b.job.panels && p == STREAM_SLOTS - 1; q++)
                fetch_box(&b.job.x, q * 64, b.left - 1, b.top - 1, b.image);
        }
    }
}

/* ---- a warpgroup's way --------------------------------------------------------------
 */

struct stream_group {
    const stream_block &b;
    uint32_t results, pixels; /* which half of them */
    strip_slot input, weights;
    uint32_t parity;

    __device__ inline stream_group(const stream_block &b, int group)
        : b(b), results(group % 2), pixels(group / 2), parity(0)
    {
    }
    __device__ inline void await_weights(void) const
    {
        barrier_wait(b.barrier(STREAM_WEIGHTS_FULL + weights.at), weights.parity);
    }

    /* `back`: how many slots before the one that is next. By one thread of a warp. */
    __device__ inline void release_weights(int back) const
    {
        const int slot = weights.at - back;
        const uint32_t empty =
            b.barrier(STREAM_WEIGHTS_EMPTY + (slot < 0 ? slot + STREAM_SLOTS : slot));
        barrier_arrive(empty);
        barrier_arrive_at(empty, b.rank ^ 1);
    }
    __device__ inline void release_input(int back) const
    {
        const int slot = input.at - back;
        barrier_arrive(
            b.barrier(STREAM_INPUT_EMPTY + (slot < 0 ? slot + STREAM_SLOTS : slot)));
    }
};

/* Where this lane's row of 8 channels goes that it stores, of two eights from n on. */
static __device__ inline uint32_t stream_place(uint32_t panel, uint32_t first, int n)
{
    const uint32_t lane = threadIdx.x % 32;
    return panel + bottleneck_place(first + (n + strip_lane_eight()) * 8 + lane % 8,
                                    strip_lane_channels());
}

/* Which of the pixels that a tile's windows reach are inside: of one thread, one. */
static __device__ inline void stream_mask(const stream_block &b)
{
    const uint32_t pixel = threadIdx.x, row = divide_by(pixel, b.job.pitch);
    const int32_t h = b.top - 1 + (int32_t)row;
    const int32_t w = b.left - 1 + (int32_t)(pixel - row * b.job.pitch.d);
    if (pixel < 2 * STREAM_REACHED)
        b.masks()[pixel] =
            (uint32_t)h < (uint32_t)b.job.height && (uint32_t)w < (uint32_t)b.job.width
                ? 0xffff
                : 0;
}

static __device__ inline void stream_reduce(stream_group &g)
{
    const stream_block &b = g.b;
    const uint32_t first = g.pixels * STREAM_REACHED;
    const bool tells = threadIdx.x % 32 == 0;
    float sum[STREAM_REACHED / 8][4];
    strip_begin(sum, b.biases() + g.results * 64);
    for (int32_t p = 0; p < b.job.panels; p++) {
        barrier_wait(b.barrier(STREAM_INPUT_FULL + g.input.at), g.input.parity);
        g.await_weights();
        bottleneck_multiply<STREAM_REACHED>(
            sum, b.weights(g.weights.at) + g.results * BOTTLENECK_PIECE,
            b.input(g.input.at) + first * BOTTLENECK_ROW, 1024, 1);
        g.input.advance(STREAM_SLOTS);
        g.weights.advance(STREAM_SLOTS);
        multiply_wait<1>();
        if (tells && p > 0)
            g.release_input(2), g.release_weights(2);
    }
    multiply_wait<0>();
    hold(sum);
    if (tells)
        g.release_input(1), g.release_weights(1);
    barrier_wait(b.barrier(STREAM_TAKEN), g.parity ^ 1);
    const uint32_t *masks =
        (const uint32_t *)(b.masks() + strip_late(first) + threadIdx.x % 4 * 2);
    strip_keep(
        sum, b.job.reduced, [&](int n) { return masks[n * 4]; },
        [&](int n) { return stream_place(b.between(g.results), strip_late(first), n); });
    publish_shared();
    named_sync(NAME_REDUCED, STREAM_GROUPS * 128);
}

static __device__ inline void stream_convolve(stream_group &g)
{
    const stream_block &b = g.b;
    const uint32_t first = g.pixels * STREAM_PIXELS;
    const bool tells = threadIdx.x % 32 == 0;
    float sum[STREAM_PIXELS / 8][4];
    strip_begin(sum, b.biases() + 128 + g.results * 64);
#pragma unroll 1
    for (int32_t e = 0; e < 2 * BOTTLENECK_WINDOWS; e++) {
        const uint32_t element = e / 2, row = element / 3;
        const uint32_t pixel = first + row * b.job.pitch.d + element - row * 3;
        g.await_weights();
        bottleneck_multiply<STREAM_PIXELS>(
            sum, b.weights(g.weights.at) + g.results * BOTTLENECK_PIECE,
            b.between(e % 2) + pixel * BOTTLENECK_ROW, 1024, 1);
        g.weights.advance(STREAM_SLOTS);
        multiply_wait<1>();
        if (tells && e > 0)
            g.release_weights(2);
    }
    multiply_wait<0>();
    hold(sum);
    if (tells)
        g.release_weights(1);
    named_sync(NAME_SLID, STREAM_GROUPS * 128);
    strip_keep(
        sum, b.job.convolved, [](int) { return ~0u; },
        [&](int n) { return stream_place(b.between(g.results), strip_late(first), n); });
    named_sync(NAME_CONVOLVED, STREAM_GROUPS * 128);
}

/* ---- project ---------------------------------------------------------------------- */

/* Where a thread's results of a tile begin, of each pixel, or far less than 0. */
static __device__ inline void stream_find(const stream_block &b,
                                          int32_t (&at)[STRIP_EACH])
{
    const uint32_t first = strip_late(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
#pragma unroll
    for (uint32_t k = 0; k < STRIP_EACH; k++) {
        const uint32_t pixel = first + k * 8, row = divide_by(pixel, b.job.pitch);
        const int32_t column = (int32_t)(pixel - row * b.job.pitch.d);
        const int32_t h = b.top + (int32_t)row, w = b.left + column;
        at[k] = b.live && (int32_t)row < b.job.tile_h && column < b.job.tile_w &&
                        h < b.job.height && w < b.job.width
                    ? ((b.image * b.job.height + h) * b.job.width + w) * b.job.results +
                          (int32_t)threadIdx.x % 4 * 8
                    : INT32_MIN / 2;
    }
}

/* What was convolved of a warp's sixteen pixels, 128 channels. */
static __device__ inline void stream_take(uint32_t (&x)[8][4], const stream_block &b)
{
    const uint32_t lane = threadIdx.x % 32, pixel = threadIdx.x / 32 * 16 + lane % 16;
#pragma unroll
    for (int d = 0; d < 8; d++) {
        x[d][0] = x[d][1] = x[d][2] = x[d][3] = 0;
        if (threadIdx.x / 32 < 2 * STREAM_PIXELS / 16)
            load_matrices(x[d], b.between(d / 4) +
                                    bottleneck_place(pixel, d % 4 * 2 + lane / 16));
    }
    warp_sync();
    if (lane == 0)
        barrier_arrive(b.barrier(STREAM_TAKEN));
}

static __device__ inline void stream_project(stream_group &g, int32_t pair)
{
    const stream_block &b = g.b;
    const strip_cache cache(b.job.large);
    int32_t at[STRIP_EACH];
    uint32_t x[8][4];
    stream_find(b, at);
    stream_block next = b;
    next.go_to(pair + (int32_t)gridDim.x);
    stream_mask(next); /* nobody looks at this tile's any more */
    stream_take(x, b);
    for (int32_t part = 0; part < b.job.parts; part++) {
        const uint64_t from = bottleneck_rows(b.weights(g.weights.at), 1024);
        float sum[8][4];
        uint4 added[2][STRIP_EACH];
        strip_fetch(added, b.job, at, part, 0, cache);
        g.await_weights();
        strip_begin_part(sum, b.biases() + 256 + part * 64);
        multiply_begin();
#pragma unroll
        for (int d = 0; d < 8; d++)
            strip_product(sum, x[d], from + d / 4 * (BOTTLENECK_PIECE / 16) + d % 4 * 2);
        multiply_commit();
        g.weights.advance(STREAM_SLOTS);
        multiply_wait<0>();
        hold(sum);
        if (threadIdx.x % 32 == 0)
            g.release_weights(1);
        strip_finish(b.job, sum, added, at, part, cache);
        at[0] += 64, at[1] += 64;
    }
}

/* ---- all of it -------------------------------------------------------------------- */

static __device__ inline void stream_work(stream_block &b, int group)
{
    stream_group g(b, group);
    wait_for_previous();
    for (int32_t pair = b.first(); pair < b.job.units; pair += (int32_t)gridDim.x) {
        b.go_to(pair);
        stream_reduce(g);
        stream_convolve(g);
        stream_project(g, pair);
        g.parity ^= 1;
    }
}

/* There are no more clusters than pairs of tiles. A block may not end while the other one
 * tells it of slots. */
static __global__ void __launch_bounds__(STREAM_THREADS, 1)
    stream_kernel(const __grid_constant__ stream_job job)
{
    extern __shared__ uint8_t stream_shared[];
    stream_block b(job, stream_shared);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    launch_next();
    if (threadIdx.x == 0) {
        prefetch_map(&job.x);
        b.open();
    }
    b.go_to(b.first());
    stream_mask(b);
    for (int c = (int)threadIdx.x; c < 256 + job.parts * 64; c += STREAM_THREADS)
        b.biases()[c] = job.bias[c];
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    if (group == STREAM_GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)STREAM_KEPT));
        if (threadIdx.x == STREAM_GROUPS * 128)
            stream_load_input(b);
        else if (threadIdx.x == STREAM_GROUPS * 128 + 32)
            stream_load_weights(b);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"((int)STREAM_GIVEN));
        stream_work(b, group);
    }
    __syncwarp();
    cluster_leave();
}
#else
static __global__ void stream_kernel(const __grid_constant__ stream_job)
{
}
#endif

#endif /* PLUGINS_BOTTLENECK_STREAM_CUH */
