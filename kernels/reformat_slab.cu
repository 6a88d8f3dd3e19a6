/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that lie in memory as long rows on both sides. A block stays for many of them: it
 * copies the next ones into shared memory as they lie, asynchronously and 16 bytes at a
 * time, while it gathers the present one in the order of the destination and stores it 16
 * (or 4) bytes a thread. Where a thread's elements lie in a tile is the same for every
 * tile and is worked out once, into registers, so that an element costs one read of shared
 * memory. Bytes bound it: each moves once, and reads are under way all the time.
 */
#include "kernels/reformat_common.cuh"

#define STAGES 3         /* tiles in shared memory, one of them at work */
#define MOST_THREADS 256 /* of a block */
#define ZEROS 32         /* bytes at the end of a stage that pads are read from */

/* Pieces of 16 bytes, spread over the banks by their rows. */
static __device__ inline uint32_t spread(uint32_t piece)
{
    return piece ^ (((piece >> 3) ^ (piece >> 6)) & 7);
}

struct slab_place {
    char *dst;
    const char *src;
    uint32_t skew; /* bytes from the last 16-byte boundary to src */
};

template <typename To, typename From>
static __device__ inline slab_place tile_place(const reformat_slab &j, uint32_t tile)
{
    uint32_t c = 0, p = 0;
    if (j.channel_tiles > 1) {
        const uint32_t rest = tile / j.channel_tiles;
        c = tile - rest * j.channel_tiles;
        tile = rest;
    }
    if (j.pixel_tiles > 1) {
        const uint32_t rest = tile / j.pixel_tiles;
        p = min((tile - rest * j.pixel_tiles) * j.pixels.d, j.last_pixel);
        tile = rest;
    }
    const place at = loops_at(j.images, (uint64_t)tile * j.each);
    slab_place s;
    s.dst = (char *)j.dst + at.dst * (int64_t)sizeof(To) + p * j.to.pixel_step +
            c * j.to.tile_step;
    s.src = (const char *)j.src + at.src * (int64_t)sizeof(From) +
            p * j.from.pixel_step + c * j.from.tile_step;
    s.skew = (uint32_t)((uintptr_t)s.src % 16);
    return s;
}

static __device__ inline void copy_piece(char *shared, const char *memory, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (uint32_t)__cvta_generic_to_shared(shared)),
                 "l"(memory), "r"(bytes)
                 : "memory");
}

/* A source at any alignment is copied from the 16-byte boundary before it, and not read
 * past its end. */
static __device__ inline void fetch(const reformat_slab &j, const slab_place &at,
                                    char *stage)
{
    if (j.end) {
        const uint32_t pieces = (at.skew + j.bytes + 15) / 16;
        const char *src = at.src - at.skew;
        const int64_t left = (const char *)j.end - src;
        for (uint32_t i = threadIdx.x; i < pieces; i += blockDim.x)
            copy_piece(stage + i * 16, src + i * 16,
                       (uint32_t)min((int64_t)16, left - (int64_t)i * 16));
    } else {
        for (uint32_t i = threadIdx.x; i < j.from.pieces; i += blockDim.x) {
            const uint32_t row = divide(i, j.from.row), step = i - row * j.from.row.d;
            copy_piece(stage + spread(i) * 16,
                       at.src + row * j.from.row_step + step * 16, 16);
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

static __device__ inline void next_element(const reformat_slab &j, slab_element *e)
{
    if (++e->lane < j.to.lanes.d)
        return;
    e->lane = 0;
    if (++e->pixel < j.pixels.d)
        return;
    e->pixel = 0;
    if (++e->block < j.to.blocks.d)
        return;
    e->block = 0;
    e->image++;
}

static __device__ inline uint32_t source_of(const reformat_slab &j, const slab_element &e,
                                            uint32_t size)
{
    const uint32_t c = e.block * j.to.lanes.d + e.lane, block = divide(c, j.from.lanes);
    if (c >= j.channels)
        return j.stage - ZEROS;
    const uint32_t row = e.image * j.from.blocks.d + block;
    const uint32_t vector = row * j.pixels.d + e.pixel;
    const uint32_t byte =
        (vector * j.from.lanes.d + c - block * j.from.lanes.d) * size;
    return j.end ? byte : spread(byte / 16) * 16 + byte % 16;
}

template <typename To, typename From, int Bytes, int Pieces>
static __global__ void __launch_bounds__(MOST_THREADS, Pieces * Bytes > 32 ? 4 : 5)
    slab_kernel(const __grid_constant__ reformat_slab j)
{
    const int E = Bytes / sizeof(To);
    extern __shared__ uint4 shared[];
    char *const stages = (char *)shared;
    slab_place at[STAGES];
    uint32_t from[Pieces][E], to[Pieces];
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        const uint32_t tile = blockIdx.x + s * gridDim.x;
        at[s] = tile_place<To, From>(j, tile);
        if (tile < j.tiles)
            fetch(j, at[s], stages + s * j.stage);
        end_fetch();
    }
    for (uint32_t i = threadIdx.x; i < STAGES * ZEROS; i += blockDim.x)
        stages[(i / ZEROS + 1) * j.stage - ZEROS + i % ZEROS] = 0;
#pragma unroll
    for (int u = 0; u < Pieces; u++) {
        const uint32_t piece = threadIdx.x + u * blockDim.x;
        const uint32_t row = Bytes < 16 ? 0 : divide(piece, j.to.row);
        to[u] = row * (uint32_t)j.to.row_step + (piece - row * j.to.row.d) * Bytes;
        slab_element e = element_at(j, piece * E);
#pragma unroll
        for (int i = 0; i < E; i++) {
            from[u][i] = piece < j.to.pieces ? source_of(j, e, sizeof(From))
                                             : j.stage - ZEROS;
            next_element(j, &e);
        }
    }
    uint32_t stage = 0;
    for (uint32_t tile = blockIdx.x; tile < j.tiles; tile += gridDim.x) {
        const uint32_t later = tile + (STAGES - 1) * gridDim.x;
        await_fetch<STAGES - 2>();
        __syncthreads();
        if (later < j.tiles) {
            at[STAGES - 1] = tile_place<To, From>(j, later);
            fetch(j, at[STAGES - 1],
                  stages + (stage == 0 ? STAGES - 1 : stage - 1) * j.stage);
        }
        end_fetch();
        const char *here = stages + stage * j.stage + at[0].skew;
#pragma unroll
        for (int u = 0; u < Pieces; u++) {
            pack<To, E> x;
#pragma unroll
            for (int i = 0; i < E; i++)
                x.v[i] = convert<To>(*(const From *)(here + from[u][i]));
            if (threadIdx.x + u * blockDim.x < j.to.pieces)
                store_once<To, E>((To *)(at[0].dst + to[u]), x);
        }
#pragma unroll
        for (int s = 0; s < STAGES - 1; s++)
            at[s] = at[s + 1];
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}

/* As many blocks as are at work at once. */
template <typename To, typename From, int Bytes, int Pieces>
static int launch(const reformat_slab *j, cudaStream_t stream)
{
    const auto kernel = slab_kernel<To, From, Bytes, Pieces>;
    const int shared = STAGES * (int)j->stage;
    int device = 0, processors = 0, blocks = 0;
    cudaError_t e = cudaGetDevice(&device);
    if (e == cudaSuccess && shared > 48 * 1024)
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 shared);
    if (e == cudaSuccess)
        e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    if (e == cudaSuccess)
        e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel,
                                                          (int)j->threads, shared);
    if (e != cudaSuccess)
        return e;
    const uint32_t most = (uint32_t)(processors * max(blocks, 1));
    kernel<<<min(j->tiles, most), j->threads, shared, stream>>>(*j);
    return cudaPeekAtLastError();
}

extern "C" int reformat_launch_slab(const struct reformat_slab *j, void *stream)
{
    static const struct {
        int to, from, piece, held;
        int (*launch)(const reformat_slab *j, cudaStream_t stream);
    } instances[] = {
#define HELD(TO, To, FROM, From, N)                              \
    {TO, FROM, 16, N, launch<To, From, 16, N>},                  \
    {TO, FROM, 4, 4 * (N), launch<To, From, 4, 4 * (N)>},
#define PAIR(TO, To, FROM, From) HELD(TO, To, FROM, From, 2) HELD(TO, To, FROM, From, 4)
        PAIR(STRATA_FP16, __half, STRATA_FP16, __half)
        PAIR(STRATA_FP16, __half, STRATA_FP32, float)
        PAIR(STRATA_FP32, float, STRATA_FP16, __half)
        PAIR(STRATA_FP32, float, STRATA_FP32, float)
#undef PAIR
#undef HELD
    };
    for (const auto &i : instances)
        if (i.to == j->to_type && i.from == j->from_type && i.piece == j->piece &&
            i.held == j->held)
            return i.launch(j, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}
