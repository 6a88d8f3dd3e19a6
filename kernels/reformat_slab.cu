/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that lie in memory as long rows on both sides. A block makes several of them: it
 * copies the next ones into shared memory as they lie, asynchronously and 16 bytes at a
 * time, while it gathers the present one in the order of the destination and stores it 16
 * bytes a thread. Where a thread's elements lie in a tile is the same for every
 * tile and is worked out once, into registers, so that an element costs one read of shared
 * memory. Bytes bound it: each moves once, and reads are under way all the time.
 */
#include "kernels/reformat_common.cuh"

#define STAGES 3         /* tiles in shared memory, one of them at work */
#define ZEROS 32         /* bytes at the end of a stage that pads are read from */
#define MOST_RUN 8       /* tiles of a block */

/* Where a piece of 16 bytes lies among the eight that fill all banks. */
static __device__ inline uint32_t spread(const reformat_slab &j, uint32_t piece)
{
    return piece ^ ((piece >> 3) & j.spread[0]) ^ ((piece >> 6) & j.spread[1]);
}

/* Tiles in order: of channels, then of pixels, then of images. */
struct slab_tile {
    uint32_t channel, pixel, image;
};

static __device__ inline slab_tile tile_at(const reformat_slab &j, uint32_t index)
{
    slab_tile t;
    const uint32_t rest = index / j.channel_tiles;
    t.channel = index - rest * j.channel_tiles;
    t.image = rest / j.pixel_tiles;
    t.pixel = rest - t.image * j.pixel_tiles;
    return t;
}

static __device__ inline void next_tile(const reformat_slab &j, slab_tile *t)
{
    t->channel++;
    if (t->channel == j.channel_tiles) {
        t->channel = 0;
        t->pixel++;
    }
    if (t->pixel == j.pixel_tiles) {
        t->pixel = 0;
        t->image++;
    }
}

static __device__ inline const char *tile_start(const void *data,
                                                const reformat_slab_side &s,
                                                const reformat_slab &j,
                                                const slab_tile &t)
{
    const uint32_t pixel = min(t.pixel * j.pixels.d, j.last_pixel);
    return (const char *)data + t.image * s.image_step + pixel * s.pixel_step +
           t.channel * s.tile_step;
}

static __device__ inline uint32_t skew_of(const reformat_slab &j, const char *src)
{
    return j.end ? (uint32_t)((uintptr_t)src % 16) : 0;
}

/* Ahead: what the L2 cache fetches with it, bytes. */
static __device__ inline void copy_piece(char *shared, const char *memory, uint32_t bytes,
                                         uint32_t ahead)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
#define COPY(hint)                                                                 \
    asm volatile("cp.async.cg.shared.global" hint " [%0], [%1], 16, %2;" ::"r"(to), \
                 "l"(memory), "r"(bytes)                                           \
                 : "memory")
    if (ahead == 256)
        COPY(".L2::256B");
    else if (ahead == 128)
        COPY(".L2::128B");
    else
        COPY("");
#undef COPY
}

/* A source at any alignment is copied from the 16-byte boundary before it, and not read
 * past its end. */
static __device__ inline void fetch(const reformat_slab &j, const char *src, char *stage)
{
    if (j.end) {
        const uint32_t skew = skew_of(j, src), pieces = (skew + j.bytes + 15) / 16;
        src -= skew;
        const int64_t left = (const char *)j.end - src;
        for (uint32_t i = threadIdx.x; i < pieces; i += blockDim.x)
            copy_piece(stage + i * 16, src + i * 16,
                       (uint32_t)min((int64_t)16, left - (int64_t)i * 16), j.ahead);
    } else {
        for (uint32_t i = threadIdx.x; i < j.from.pieces; i += blockDim.x) {
            const uint32_t row = divide(i, j.from.row), at = i - row * j.from.row.d;
            copy_piece(stage + spread(j, i) * 16, src + row * j.from.row_step + at * 16, 16,
                       j.ahead);
        }
    }
}

static __device__ inline void end_fetch(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Later> static __device__ inline void await_fetch(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Later) : "memory");
}

/* Where an element of the destination's tile lies among the source's, in bytes. */
struct slab_element {
    uint32_t lane, pixel, block, image;
};

static __device__ inline slab_element element_at(const reformat_slab &j, uint32_t index)
{
    slab_element e;
    uint32_t rest = divide(index, j.to.lanes);
    e.lane = index - rest * j.to.lanes.d;
    index = divide(rest, j.pixels);
    e.pixel = rest - index * j.pixels.d;
    e.image = divide(index, j.to.blocks);
    e.block = index - e.image * j.to.blocks.d;
    return e;
}

/* Without branches: neighbours part ways here. */
static __device__ inline void next_element(const reformat_slab &j, slab_element *e)
{
    e->lane++;
    const bool pixel = e->lane == j.to.lanes.d;
    e->lane = pixel ? 0 : e->lane;
    e->pixel += pixel;
    const bool block = e->pixel == j.pixels.d;
    e->pixel = block ? 0 : e->pixel;
    e->block += block;
    const bool image = e->block == j.to.blocks.d;
    e->block = image ? 0 : e->block;
    e->image += image;
}

static __device__ inline uint32_t source_of(const reformat_slab &j, const slab_element &e,
                                            uint32_t size)
{
    const uint32_t c = e.block * j.to.lanes.d + e.lane;
    uint32_t block = 0, lane = c;
    if (j.from.blocks.d > 1) {
        block = divide(c, j.from.lanes);
        lane = c - block * j.from.lanes.d;
    }
    const uint32_t vector =
        (e.image * j.from.blocks.d + block) * j.pixels.d + e.pixel;
    const uint32_t byte = (vector * j.from.lanes.d + lane) * size;
    const uint32_t at = j.end ? byte : spread(j, byte / 16) * 16 + byte % 16;
    return c < j.channels ? at : j.stage - ZEROS;
}

/* The n-th piece that threads take. Neighbours of one plane would read one bank, so a warp
 * takes eight pieces from each of several planes. */
static __device__ inline uint32_t piece_at(const reformat_slab &j, uint32_t n)
{
    if (j.turn.d == 0)
        return n;
    const uint32_t fold = n / REFORMAT_SLAB_FOLD, group = divide(fold, j.turn);
    return (group * REFORMAT_SLAB_FOLD + n % REFORMAT_SLAB_FOLD) * j.turn.d + fold -
           group * j.turn.d;
}

/* A block makes `run` tiles, one after the other. */
template <typename To, typename From, int Pieces>
static __global__ void __launch_bounds__(Pieces * REFORMAT_SLAB_THREADS,
                                         Pieces > 2 ? 2 : 5)
    slab_kernel(const __grid_constant__ reformat_slab j)
{
    const int E = 16 / sizeof(To);
    extern __shared__ uint4 shared[];
    char *const stages = (char *)shared;
    const uint32_t first = blockIdx.x * j.run, tiles = min(j.run, j.tiles - first);
    slab_tile coming = tile_at(j, first), present = coming;
    uint32_t from[Pieces][E], to[Pieces];
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < (int)tiles)
            fetch(j, tile_start(j.src, j.from, j, coming), stages + s * j.stage);
        end_fetch();
        next_tile(j, &coming);
    }
    for (uint32_t i = threadIdx.x; i < STAGES * ZEROS; i += blockDim.x)
        stages[(i / ZEROS + 1) * j.stage - ZEROS + i % ZEROS] = 0;
#pragma unroll
    for (int u = 0; u < Pieces; u++) {
        const uint32_t piece =
            piece_at(j, min(threadIdx.x + u * blockDim.x, j.to.pieces - 1));
        const uint32_t row = divide(piece, j.to.row);
        to[u] = row * (uint32_t)j.to.row_step + (piece - row * j.to.row.d) * 16;
        slab_element e = element_at(j, piece * E);
#pragma unroll
        for (int i = 0; i < E; i++) {
            from[u][i] = source_of(j, e, sizeof(From));
            next_element(j, &e);
        }
    }
    uint32_t stage = 0;
    for (uint32_t tile = 0; tile < tiles; tile++) {
        await_fetch<STAGES - 2>();
        __syncthreads();
        if (tile + STAGES - 1 < tiles)
            fetch(j, tile_start(j.src, j.from, j, coming),
                  stages + (stage == 0 ? STAGES - 1 : stage - 1) * j.stage);
        end_fetch();
        next_tile(j, &coming);
        const char *here = stages + stage * j.stage;
        if (j.end)
            here += skew_of(j, tile_start(j.src, j.from, j, present));
        char *dst = (char *)tile_start(j.dst, j.to, j, present);
#pragma unroll
        for (int u = 0; u < Pieces; u++) {
            pack<To, E> x;
#pragma unroll
            for (int i = 0; i < E; i++)
                x.v[i] = convert<To>(*(const From *)(here + from[u][i]));
            if (threadIdx.x + u * blockDim.x >= j.to.pieces)
                continue;
            if (j.stays)
                *(pack<To, E> *)(dst + to[u]) = x;
            else
                store_once<To, E>((To *)(dst + to[u]), x);
        }
        next_tile(j, &present);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}

/* Runs of tiles hide the wait for the first; several rounds of blocks even out what some
 * multiprocessors are slower than others. */
template <typename To, typename From, int Pieces>
static int launch(const reformat_slab *job, cudaStream_t stream)
{
    const auto kernel = slab_kernel<To, From, Pieces>;
    const int shared = STAGES * (int)job->stage;
    reformat_slab j = *job;
    int device = 0, processors = 1;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess && shared > 48 * 1024)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 shared);
    if (e != cudaSuccess)
        return e;
    j.run = min(max(j.tiles / (uint32_t)(processors * j.rounds), 1u), (uint32_t)MOST_RUN);
    kernel<<<(j.tiles + j.run - 1) / j.run, j.threads, shared, stream>>>(j);
    return cudaPeekAtLastError();
}

extern "C" int reformat_launch_slab(const struct reformat_slab *j, void *stream)
{
    static const struct {
        int to, from, held;
        int (*launch)(const reformat_slab *j, cudaStream_t stream);
    } instances[] = {
#define PAIR(TO, To, FROM, From) \
    {TO, FROM, 2, launch<To, From, 2>}, {TO, FROM, 4, launch<To, From, 4>},
        PAIR(STRATA_FP16, __half, STRATA_FP16, __half)
        PAIR(STRATA_FP16, __half, STRATA_FP32, float)
        PAIR(STRATA_FP32, float, STRATA_FP16, __half)
        PAIR(STRATA_FP32, float, STRATA_FP32, float)
#undef PAIR
    };
    for (const auto &i : instances)
        if (i.to == j->to_type && i.from == j->from_type && i.held == j->held)
            return i.launch(j, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}
