/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of stride 1 with few filters, on Hopper's tensor cores. As a product whose
 * rows are windows, each pixel of the input would be read once for each element of the
 * kernel, and the way into a multiprocessor is the limit. Here the weights stay in shared
 * memory; of the input comes a patch with what its windows reach, once, and the windows
 * of another element of the kernel are the same patch from another pixel on: eight by
 * eight pixels are eight groups of eight rows of a factor, a row of the patch from one
 * group to the next.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_PATCH_CUH
#define PLUGINS_CONVOLUTION_CUDA_PATCH_CUH

#include "plugins/common/product/hopper.cuh"
#include "plugins/common/product/written.cuh"

#define PATCH_SIDE 8    /* output pixels */
#define PATCH_STAGES 16 /* at most, of all warpgroups */

/* Floats, as TF32, leave room for fewer warpgroups: weights of 64 x 64 x 9, or of 32 x
 * 128 x 9, are two thirds of a block's memory. */
template <typename Element_, int Columns_>
struct patch_tile {
    typedef Element_ Element;
    static const int Size = (int)sizeof(Element), Depth = PRODUCT_ROW / Size;
    static const int Columns = Columns_, Parts = 1;
    static const int Groups = Size == 4 ? 2 : 4;
    static const int Threads = Groups * (128 + 32);
    static const int Panel = Columns * Size % 128 == 0 ? 128 / Size : 64 / Size;
    static const int PanelBytes = 64 * Panel * Size;
    static const int StoreBytes = 64 * Columns * Size; /* of a warpgroup */
    static const int WeightBytes =
        Columns * PRODUCT_ROW; /* of 128 bytes of channels of an element */
    /* barriers and biases, panels, and room to begin at a multiple of 1024 */
    static const int Extra = 1024 + 2048 + Groups * StoreBytes;
    static_assert(Groups * Columns * 4 <= 1024, "biases");
};

/* Units are patches; blocks have the filters of one column tile each. d, c: boxes of
 * pixels, four dims. */
struct patch_job : product_job {
    divisor across, patches; /* patches in a row of an image; in an image */
    int32_t pieces, kernel_h, kernel_w;
    int32_t last; /* instructions of the last piece: depths of 32 bytes */
    int32_t begin_h, begin_w;
    int32_t step_h, step_w; /* bytes of a patch, from an element to the next */
    int32_t group;          /* bytes, from a row of the patch to the next */
    int32_t box, stage;     /* bytes of a patch; to whole 1024 */
    int32_t stages;         /* of a warpgroup's ring */
};

struct patch_place {
    int32_t row, column, image; /* of the output */
};

static __device__ inline patch_place patch_place_of(const patch_job &job, int32_t unit)
{
    const uint32_t image = divide_by((uint32_t)unit, job.patches);
    const uint32_t at = (uint32_t)unit - image * job.patches.d;
    const uint32_t row = divide_by(at, job.across);
    return {(int32_t)row * PATCH_SIDE, (int32_t)(at - row * job.across.d) * PATCH_SIDE,
            (int32_t)image};
}

template <class C>
struct patch_memory {
    uint32_t barriers, out, weights, ring;
    float *biases;

    __device__ inline patch_memory(uint8_t *memory, const patch_job &job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        barriers = shared_address(memory) + lost;
        biases = (float *)(memory + lost + 1024);
        out = barriers + 2048;
        weights = out + C::Groups * C::StoreBytes;
        ring = weights + job.steps * C::WeightBytes;
    }
    __device__ inline uint32_t full(int stage) const
    {
        return barriers + stage * 8;
    }
    __device__ inline uint32_t empty(int stage) const
    {
        return full(PATCH_STAGES + stage);
    }
    __device__ inline uint32_t loaded(void) const /* the weights */
    {
        return full(2 * PATCH_STAGES);
    }
    __device__ inline uint32_t addend(int group) const
    {
        return full(2 * PATCH_STAGES + 1 + group);
    }
    __device__ inline uint32_t stored(int group) const
    {
        return addend(C::Groups + group);
    }
    __device__ inline uint32_t panel(int group, int panel) const
    {
        return out + group * C::StoreBytes + panel * C::PanelBytes;
    }
    __device__ inline float *bias(int group) const
    {
        return biases + group * C::Columns;
    }
    __device__ inline void init(void) const
    {
        for (int s = 0; s < PATCH_STAGES; s++) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), 4);
        }
        for (int g = 0; g < 2 * C::Groups; g++)
            barrier_init(addend(g), 1);
        barrier_init(loaded(), 1);
        barrier_publish();
    }
};

/* A place in a warpgroup's ring, and the parity of its round. */
struct patch_stage {
    int32_t at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(int32_t stages)
    {
        if (++at == stages) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* ---- the producer ---------------------------------------------------------------------
 */

template <class C>
static __device__ inline void
patch_load_weights(const patch_job &job, const patch_memory<C> &memory, int32_t column)
{
    barrier_expect(memory.loaded(), job.steps * C::WeightBytes);
    for (int32_t i = 0; i < job.steps; i++)
        copy_matrix(memory.weights + i * C::WeightBytes, &job.b, memory.loaded(),
                    i * C::Depth, column, 0);
}

/* n: of the warpgroup's patches before. */
template <class C>
static __device__ inline void
patch_load_addend(const patch_job &job, const patch_memory<C> &memory,
                  const patch_place &p, int32_t column, int group, uint32_t n)
{
    barrier_wait(memory.stored(group), n % 2 ^ 1);
    barrier_expect(memory.addend(group), C::StoreBytes);
    for (int x = 0; x < C::Columns / C::Panel; x++)
        copy_box(memory.panel(group, x), &job.c, memory.addend(group),
                 column + x * C::Panel, p.column, p.row, p.image);
}

/* For a warpgroup. Each has a warp that does: one for all would wait for the slowest, and
 * a patch takes a thread longer to ask for than its products take. */
template <class C>
static __device__ inline void patch_produce(const patch_job &job,
                                            const patch_memory<C> &memory, int group,
                                            int32_t first, int32_t by, int32_t column)
{
    patch_stage stage;
    uint32_t n = 0;
    if (group == 0)
        patch_load_weights<C>(job, memory, column);
    wait_for_previous();
    for (int32_t unit = first + group * by; unit < job.units;
         unit += C::Groups * by, n++) {
        const patch_place p = patch_place_of(job, unit);
        for (int32_t piece = 0; piece < job.pieces; piece++) {
            const int32_t at = group * job.stages + stage.at;
            barrier_wait(memory.empty(at), stage.parity ^ 1);
            barrier_expect(memory.full(at), job.box);
            copy_box(memory.ring + at * job.stage, &job.a, memory.full(at),
                     piece * C::Depth, p.column - job.begin_w, p.row - job.begin_h,
                     p.image);
            stage.advance(job.stages);
        }
        if (job.addend)
            patch_load_addend<C>(job, memory, p, column, group, n);
    }
}

/* ---- consumers ------------------------------------------------------------------------
 */

/* Eight groups of eight rows of 128 bytes, `group` bytes apart, swizzled by 128 bytes. */
static __device__ inline uint64_t patch_descriptor(uint32_t address, uint32_t group)
{
    return (uint64_t)(address >> 4 & 0x3fff) | UINT64_C(1) << 16 |
           (uint64_t)(group >> 4 & 0x3fff) << 32 | UINT64_C(1) << 62;
}

/* A piece of the channels, all elements of the kernel; Depths: of 32 bytes in it. */
template <class C, int Depths>
static __device__ inline void patch_multiply(float (&sum)[C::Columns / 8][4],
                                             const patch_job &job, uint32_t patch,
                                             uint32_t weights, int32_t add)
{
    typedef product<typename C::Element, C::Columns> tile;
    const int32_t elements = job.kernel_h * job.kernel_w;
    const int32_t down = (job.step_h - job.kernel_w * job.step_w) / 16;
    const int32_t step = job.pieces * C::WeightBytes / 16;
    uint64_t a = patch_descriptor(patch, job.group), b = panel_descriptor(weights, 16);
    multiply_begin();
    for (int32_t i = 0, s = 0; i < elements; i++, b += step) {
#pragma unroll
        for (int d = 0; d < Depths; d++)
            tile::scores(sum, a + d * 2, b + d * 2, add | d);
        add = 1;
        a += job.step_w / 16;
        if (++s == job.kernel_w) {
            s = 0;
            a += down;
        }
    }
    multiply_commit();
}

template <class C>
static __device__ inline void
patch_multiply_piece(float (&sum)[C::Columns / 8][4], const patch_job &job,
                     uint32_t patch, uint32_t weights, int32_t depths, int32_t add)
{
    if (depths == 4)
        patch_multiply<C, 4>(sum, job, patch, weights, add);
    else if (depths == 2)
        patch_multiply<C, 2>(sum, job, patch, weights, add);
    else if (depths == 1)
        patch_multiply<C, 1>(sum, job, patch, weights, add);
    else
        patch_multiply<C, 3>(sum, job, patch, weights, add);
}

template <class C>
using patch_store = std::conditional_t<C::Size == 4, product_store<C, patch_memory<C>>,
                                       product_written<C, STRATA_CLIP, patch_memory<C>>>;

template <class C>
static __device__ inline void patch_consume(const patch_job &job,
                                            const patch_memory<C> &memory, int group,
                                            int32_t first, int32_t by, int32_t column)
{
    patch_store<C> store(job, memory, group);
    patch_stage stage;
    uint32_t mine = group;
    store.fetch(column);
    wait_for_previous();
    barrier_wait(memory.loaded(), 0);
    for (int32_t unit = first + group * by; unit < job.units;
         unit += C::Groups * by, mine += C::Groups) {
        float sum[1][C::Columns / 8][4];
        for (int32_t piece = 0; piece < job.pieces; piece++) {
            const int32_t at = group * job.stages + stage.at;
            barrier_wait(memory.full(at), stage.parity);
            hold(sum[0]);
            patch_multiply_piece<C>(sum[0], job, memory.ring + at * job.stage,
                                    memory.weights + piece * C::WeightBytes,
                                    piece + 1 < job.pieces ? 4 : job.last, piece > 0);
            multiply_wait<0>();
            hold(sum[0]);
            if (threadIdx.x % 32 == 0)
                barrier_arrive(memory.empty(at));
            stage.advance(job.stages);
        }
        const patch_place p = patch_place_of(job, unit);
        store.run(sum, column, mine / C::Groups, [&](int) {
            for (int x = 0; x < C::Columns / C::Panel; x++)
                if (column + x * C::Panel < job.n)
                    store_box(&job.d, memory.panel(group, x), column + x * C::Panel,
                              p.column, p.row, p.image);
        });
    }
}

/* Grid: column_tiles times as many blocks as go through the patches. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, 1)
    patch_kernel(const __grid_constant__ patch_job job)
{
    extern __shared__ uint8_t shared[];
    const patch_memory<C> memory(shared, job);
    const int32_t first = (int32_t)blockIdx.x / job.column_tiles;
    const int32_t column = (int32_t)blockIdx.x % job.column_tiles * C::Columns;
    const int32_t by = (int32_t)gridDim.x / job.column_tiles;
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4;
    if (threadIdx.x == 0) {
        prefetch_map(&job.a);
        prefetch_map(&job.b);
        prefetch_map(&job.d);
        memory.init();
    }
    __syncthreads();
    launch_next();
    if (group < C::Groups)
        patch_consume<C>(job, memory, group, first, by, column);
    else if (threadIdx.x % 32 == 0)
        patch_produce<C>(job, memory, warp - C::Groups * 4, first, by, column);
}

#endif /* PLUGINS_CONVOLUTION_CUDA_PATCH_CUH */
