/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles that lie in memory as long rows on both sides. A block makes several of them: it
 * copies the next ones into shared memory as they lie, asynchronously and 16 bytes at a
 * time, while it gathers the present one in the order of the destination and stores it 16
 * bytes a thread. Where a thread's elements lie in a tile is the same for every
 * tile and is worked out once, into registers, so that an element costs one read of shared
 * memory. Bytes bound it: each moves once, and reads are under way all the time.
 */
#include "kernels/reformat_slab.cuh"

#define STAGES 3         /* tiles in shared memory, one of them at work */
#define MOST_RUN 8       /* tiles of a block */

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
    else
        COPY(".L2::128B");
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

/* A block makes `run` tiles, one after the other. */
template <typename Item, int Held, int Threads, int Blocks>
static __global__ void __launch_bounds__(Threads, Blocks)
    slab_kernel(const __grid_constant__ reformat_slab j)
{
    extern __shared__ uint4 shared[];
    char *const stages = (char *)shared;
    const uint32_t first = blockIdx.x * j.run, tiles = min(j.run, j.tiles - first);
    slab_tile coming = tile_at(j, first), present = coming;
    Item items[Held];
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
    for (int u = 0; u < Held; u++)
        items[u].find(j, min(threadIdx.x + u * blockDim.x, j.items - 1));
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
        for (int u = 0; u < Held; u++)
            if (threadIdx.x + u * blockDim.x < j.items)
                items[u].move(j, here, dst);
        next_tile(j, &present);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
}

/* Runs of tiles hide the wait for the first; several rounds of blocks even out what some
 * multiprocessors are slower than others. */
template <typename Item, int Held, int Threads, int Blocks>
static int launch(const reformat_slab *job, cudaStream_t stream)
{
    const auto kernel = slab_kernel<Item, Held, Threads, Blocks>;
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

template <typename To, typename From, int Held>
static int launch_gather(const reformat_slab *j, cudaStream_t stream)
{
    return launch<slab_gather<To, From>, Held, Held * REFORMAT_SLAB_THREADS,
                  (Held > 2 ? 2 : 5)>(j, stream);
}

template <typename Item, int Held>
static int launch_quads(const reformat_slab *j, cudaStream_t stream)
{
    return launch<Item, Held, 512, 2>(j, stream);
}

extern "C" int reformat_launch_slab(const struct reformat_slab *j, void *stream)
{
    static const struct {
        int form, held, to, from;
        int (*launch)(const reformat_slab *j, cudaStream_t stream);
    } instances[] = {
#define PAIR(TO, To, FROM, From)                             \
    {SLAB_GATHER, 2, TO, FROM, launch_gather<To, From, 2>}, \
    {SLAB_GATHER, 4, TO, FROM, launch_gather<To, From, 4>},
        PAIR(STRATA_FP16, __half, STRATA_FP16, __half)
        PAIR(STRATA_FP16, __half, STRATA_FP32, float)
        PAIR(STRATA_FP32, float, STRATA_FP16, __half)
        PAIR(STRATA_FP32, float, STRATA_FP32, float)
#undef PAIR
        {SLAB_ZIP, 4, STRATA_FP16, STRATA_FP16, launch_quads<slab_zip, 4>},
        {SLAB_UNZIP, 4, STRATA_FP16, STRATA_FP16, launch_quads<slab_unzip, 4>},
        {SLAB_SPREAD, 4, STRATA_FP32, STRATA_FP16, launch_quads<slab_spread<float>, 4>},
        {SLAB_WEAVE, 1, STRATA_FP16, STRATA_FP16, launch_quads<slab_weave, 1>},
        {SLAB_UNWEAVE, 1, STRATA_FP32, STRATA_FP16, launch_quads<slab_unweave<float>, 1>},
        {SLAB_UNWEAVE, 1, STRATA_FP16, STRATA_FP16, launch_quads<slab_unweave<__half>, 1>},
    };
    for (const auto &i : instances)
        if (i.form == j->form && i.held == j->held && i.to == j->to_type &&
            i.from == j->from_type)
            return i.launch(j, (cudaStream_t)stream);
    return cudaErrorInvalidValue;
}
