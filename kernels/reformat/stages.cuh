/* SPDX-License-Identifier: Apache-2.0
 *
 * A block's tiles on their way into shared memory: the next ones come as they lie,
 * asynchronously and 16 bytes at a time, while the present one is at work. What slab.cu
 * and bytes.cu share.
 */
#ifndef KERNELS_REFORMAT_STAGES_CUH
#define KERNELS_REFORMAT_STAGES_CUH

#include "kernels/reformat/slab.cuh"
#include "kernels/shared.cuh"

#define STAGES 3   /* tiles in shared memory, one of them at work */
#define MOST_RUN 8 /* tiles of a block */
#define ROUNDS 20  /* of blocks, before runs get longer */

/* ---- from the source to shared memory -------------------------------------------- */

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

/* Ahead: bytes that the L2 cache fetches with it, for the tiles beside this one. */
static __device__ inline void copy_piece(char *shared, const char *memory, uint32_t ahead)
{
    const uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
#define COPY(hint)                                                                       \
    asm volatile("cp.async.cg.shared.global" hint " [%0], [%1], 16;" ::"r"(to),          \
                 "l"(memory)                                                             \
                 : "memory")
    if (ahead == 256)
        COPY(".L2::256B");
    else
        COPY(".L2::128B");
#undef COPY
}

/* The end of a source, which is no whole piece, and zeros. A copy of 16 bytes that were
 * told to be fewer would ask for all 16: memcheck sees it read past the end. */
static __device__ inline void copy_end(char *shared, const char *memory, int32_t bytes)
{
    for (int32_t i = 0; i < 16; i++)
        shared[i] = i < bytes ? memory[i] : 0;
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
            if (left - (int64_t)i * 16 >= 16)
                copy_piece(stage + i * 16, src + i * 16, j.ahead);
            else
                copy_end(stage + i * 16, src + i * 16, (int32_t)(left - (int64_t)i * 16));
    } else {
        for (uint32_t i = threadIdx.x; i < j.from.pieces; i += blockDim.x) {
            const uint32_t row = divide(i, j.from.row), at = i - row * j.from.row.d;
            copy_piece(stage + spread(j, i) * 16, src + row * j.from.row_step + at * 16,
                       j.ahead);
        }
    }
}

static __device__ inline void end_fetch(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Later>
static __device__ inline void await_fetch(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(Later) : "memory");
}

/* ---- blocks ---------------------------------------------------------------------- */

/* A block's tiles, one after the other. */
struct slab_run {
    char *stages;
    uint32_t tiles, stage; /* how many; the one at work */
    slab_tile coming, present;
};

static __device__ inline void fetch_next(const reformat_slab &j, slab_run *r,
                                         uint32_t stage, bool more)
{
    if (more)
        fetch(j, tile_start(j.src, j.from, j, r->coming), r->stages + stage * j.stage);
    end_fetch();
    next_tile(j, &r->coming);
}

static __device__ inline slab_run start_run(const reformat_slab &j, char *shared)
{
    slab_run r;
    const uint32_t first = blockIdx.x * j.run;
    r.stages = shared;
    r.tiles = min(j.run, j.tiles - first);
    r.stage = 0;
    r.coming = r.present = tile_at(j, first);
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++)
        fetch_next(j, &r, s, s < (int)r.tiles);
    for (uint32_t i = threadIdx.x; i < STAGES * ZEROS; i += blockDim.x)
        r.stages[(i / ZEROS + 1) * j.stage - ZEROS + i % ZEROS] = 0;
    return r;
}

/* Wait for the block's tile `at`, and let one come into the room of the last. */
static __device__ inline const char *await_tile(const reformat_slab &j, slab_run *r,
                                                uint32_t at)
{
    await_fetch<STAGES - 2>();
    __syncthreads();
    fetch_next(j, r, r->stage == 0 ? STAGES - 1 : r->stage - 1,
               at + STAGES - 1 < r->tiles);
    const char *here = r->stages + r->stage * j.stage;
    return j.end ? here + skew_of(j, tile_start(j.src, j.from, j, r->present)) : here;
}

static __device__ inline void end_tile(const reformat_slab &j, slab_run *r)
{
    next_tile(j, &r->present);
    r->stage = r->stage + 1 == STAGES ? 0 : r->stage + 1;
}

/* An item finds once where its elements lie, in every tile, and moves those of each. */
template <typename Item, int Held, int Threads, int Blocks>
static __global__ void __launch_bounds__(Threads, Blocks)
    slab_kernel(const __grid_constant__ reformat_slab j)
{
    extern __shared__ uint4 shared[];
    Item items[Held];
    slab_run run = start_run(j, (char *)shared);
#pragma unroll
    for (int u = 0; u < Held; u++)
        items[u].find(j, min(threadIdx.x + u * blockDim.x, j.items - 1));
    for (uint32_t tile = 0; tile < run.tiles; tile++) {
        const char *here = await_tile(j, &run, tile);
        char *dst = (char *)tile_start(j.dst, j.to, j, run.present);
#pragma unroll
        for (int u = 0; u < Held; u++)
            if (threadIdx.x + u * blockDim.x < j.items)
                items[u].move(j, here, dst);
        end_tile(j, &run);
    }
}

/* ---- launches -------------------------------------------------------------------- */

/* Runs of tiles hide the wait for the first; several rounds of blocks even out what some
 * multiprocessors are slower than others. */
static int launch_tiles(const reformat_slab *job, void (*kernel)(const reformat_slab),
                        cudaStream_t stream)
{
    const int shared = STAGES * (int)job->stage + (int)job->out;
    reformat_slab j = *job;
    int device = 0, processors = 1;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess)
        e = shared_allow((const void *)kernel, (size_t)shared);
    if (e != cudaSuccess)
        return e;
    j.run = min(max(j.tiles / (uint32_t)(processors * ROUNDS), 1u), (uint32_t)MOST_RUN);
    kernel<<<(j.tiles + j.run - 1) / j.run, j.threads, shared, stream>>>(j);
    return cudaPeekAtLastError();
}

#endif /* KERNELS_REFORMAT_STAGES_CUH */
