/* SPDX-License-Identifier: Apache-2.0
 *
 * How reach.cuh's images are shared by blocks, and their weights in pieces.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_REACH_PLAN_CUH
#define PLUGINS_CONVOLUTION_CUDA_REACH_PLAN_CUH

#include "plugins/convolution/cuda/reach.cuh"

enum {
    REACH_FEW = 104,          /* pixels of a block, at most */
    REACH_MORE = 120,         /* the same */
    REACH_MEMORY = 227 << 10, /* of a block, bytes */
    REACH_KEPT = 6,           /* pieces, where sums and results will lie */
    REACH_ROOM = 132,         /* blocks at once; clusters of four do not fill a chip */
    REACH_ROOM_OF_FOURS = 120,
};

struct reach_plan {
    int32_t pitch, high, rows; /* rows: of a box */
    int32_t parts, images, pixels, columns;
    int32_t filters, splits, panels; /* groups of 64; blocks of a cluster */
    int32_t stored;                  /* panels of a group of filters */
    int32_t panel, shared;           /* bytes */
    int32_t slots, input;            /* of the ring; place */
    int64_t units;                   /* parts of all images */
};

/* As many small images to a block as there is room for, or as few parts of one. */
static inline bool reach_choose_pixels(reach_plan *p, int64_t height, int64_t width)
{
    if (width + 1 > REACH_MORE || height > INT16_MAX)
        return false;
    const int32_t high = (int32_t)height, rows = (REACH_MORE + 1) / (int32_t)(width + 1);
    p->pitch = (int32_t)width + 1;
    p->images = (rows + 1) / (high + 1);
    p->parts = (high + rows - 1) / rows;
    p->high = (high + p->parts - 1) / p->parts;
    p->parts = (high + p->high - 1) / p->high;
    p->rows = p->high + 2;
    p->pixels = p->high * p->pitch - 1;
    if (p->images < 2) {
        p->images = 1;
    } else {
        p->high = p->rows = high + 1;
        p->pixels = (p->images * p->high - 1) * p->pitch - 1;
    }
    p->columns = p->pixels <= REACH_FEW ? (int32_t)REACH_FEW : (int32_t)REACH_MORE;
    return p->pixels > 0;
}

static inline int32_t reach_own(const reach_plan &p)
{
    const int32_t half = (p.columns / 8 + 1) / 2;
    return (half + p.splits - 1) / p.splits;
}

/* Where the weights and the input of a block lie; false: there is no room. */
static inline bool reach_place(reach_plan *p)
{
    const int32_t box = p->rows * p->pitch * p->images;
    const int32_t read = p->columns + 2 * p->pitch + 2;
    const int32_t sums = REACH_GROUPS * (p->splits - 1) * reach_own(*p) * REACH_SUMS;
    const int32_t pieces = p->panels * REACH_ELEMENTS;
    const int32_t most = pieces < REACH_SLOTS ? pieces : (int32_t)REACH_SLOTS;
    p->panel = ((box > read ? box : read) + 7) / 8 * REACH_EIGHT;
    const int32_t room =
        REACH_MEMORY - 1024 - REACH_WEIGHTS - p->panels * p->panel - sums;
    const int32_t slots = room < 0 ? 0 : room / REACH_PIECE;
    /* What fills a slot again is for the warpgroup that waited for what was in it: to
     * another one a barrier that is still in its first phase has passed the second. */
    p->slots = slots < most ? slots / REACH_GROUPS * REACH_GROUPS : most;
    p->input = REACH_WEIGHTS +
               (p->slots > REACH_KEPT ? p->slots : (int32_t)REACH_KEPT) * REACH_PIECE;
    p->shared = 1024 + p->input + p->panels * p->panel + sums;
    return p->shared <= REACH_MEMORY && p->slots >= (pieces < 10 ? pieces : 10);
}

/* What a block takes, clocks: its products and the rest. */
static inline int64_t reach_clocks(const reach_plan &p)
{
    const int64_t room = p.splits < REACH_SPLITS ? REACH_ROOM : REACH_ROOM_OF_FOURS;
    const int64_t blocks = p.units * p.filters * p.splits;
    return (blocks + room - 1) / room *
           (p.panels * (int64_t)(REACH_ELEMENTS * 240) + (p.splits > 1 ? 5500 : 4500));
}

/* Blocks that share the channels: as many as take least. False: it has no room. */
static inline bool reach_plan_of(reach_plan *plan, int64_t images, int64_t height,
                                 int64_t width, int64_t channels, int64_t filters)
{
    const int64_t pieces = (channels + 63) / 64;
    reach_plan p = {};
    bool any = false;
    if (pieces > REACH_SPLITS * REACH_PANELS || !reach_choose_pixels(&p, height, width))
        return false;
    p.stored = (int32_t)(pieces < 3 ? pieces : (pieces + 3) / 4 * 4);
    p.filters = (int32_t)((filters + 63) / 64);
    p.units = (images + p.images - 1) / p.images * p.parts;
    for (p.splits = 1; p.splits <= REACH_SPLITS && p.splits <= pieces; p.splits *= 2) {
        p.panels = (int32_t)((pieces + p.splits - 1) / p.splits);
        if (p.panels > REACH_PANELS || p.panels * p.splits > p.stored ||
            !reach_place(&p) || (any && reach_clocks(p) >= reach_clocks(*plan)))
            continue;
        *plan = p;
        any = true;
    }
    return any && plan->units * plan->filters * plan->splits <= INT32_MAX;
}

template <int N>
static inline const void *reach_kernel_with(int32_t splits)
{
    return splits == 1   ? (const void *)reach_kernel<N, 1>
           : splits == 2 ? (const void *)reach_kernel<N, 2>
                         : (const void *)reach_kernel<N, 4>;
}

static inline const void *reach_kernel_of(const reach_plan &p)
{
    return p.columns == REACH_FEW ? reach_kernel_with<REACH_FEW>(p.splits)
                                  : reach_kernel_with<REACH_MORE>(p.splits);
}

/* Boxes of 64 channels of what a block's windows reach; pixels `pitch` elements apart. */
static inline bool reach_map(CUtensorMap *map, const reach_plan &p, const void *data,
                             int64_t images, int64_t height, int64_t width,
                             int64_t channels, int64_t pitch)
{
    const uint64_t dims[4] = {(uint64_t)channels, (uint64_t)width, (uint64_t)height,
                              (uint64_t)images};
    const int64_t strides[3] = {pitch, pitch * width, pitch * width * height};
    const uint32_t box[4] = {64, (uint32_t)p.pitch, (uint32_t)p.rows, (uint32_t)p.images};
    return tensor_map_boxes(map, data, STRATA_FP16, 4, dims, strides, box,
                            strides[2] * images * 2);
}

static inline void reach_fill(reach_job *job, const reach_plan &p, int64_t images,
                              int64_t height, int64_t width)
{
    job->pitch = divisor_of(p.pitch);
    job->high = divisor_of(p.high);
    job->parts = divisor_of(p.parts);
    job->filters = divisor_of(p.filters);
    job->height = (int32_t)height;
    job->width = (int32_t)width;
    job->images = p.images;
    job->pixels = p.pixels;
    job->panels = p.panels;
    job->stored = p.stored;
    job->slots = p.slots;
    job->input = p.input;
    job->box = p.rows * p.pitch * p.images * PRODUCT_ROW;
    job->panel = p.panel;
    job->sums = p.input + p.panels * p.panel;
    job->m = (int32_t)images;
}

static inline cudaLaunchConfig_t reach_config(cudaLaunchAttribute (&attributes)[2],
                                              const reach_plan &p)
{
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim.x = (unsigned)(p.splits);
    attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
    config.gridDim = dim3((unsigned)(p.units * p.filters * p.splits));
    config.blockDim = dim3(REACH_THREADS);
    config.dynamicSmemBytes = (size_t)p.shared;
    config.attrs = attributes;
    config.numAttrs = p.splits > 1 ? 2 : 1;
    return config;
}

/* ---- weights ---------------------------------------------------------------------- */

struct reach_pack_job {
    __half *packed;      /* [64 filters][panel][element] pieces */
    const float *weight; /* [filter][channel][element] */
    int64_t size, in_c, out_c;
    int32_t panels;
};

static inline int64_t reach_packed(const reach_plan &p)
{
    return (int64_t)p.filters * p.stored * REACH_ELEMENTS * 64 * 64;
}

/* Rows of a piece, filters, lie as the copy engine would swizzle them. */
static __global__ void reach_pack_kernel(reach_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t piece = i / 4096, element = piece % REACH_ELEMENTS;
        const int64_t panel = piece / REACH_ELEMENTS % job.panels;
        const int64_t group = piece / REACH_ELEMENTS / job.panels;
        const int64_t row = i / 64 % 64, chunk = i / 8 % 8 ^ row % 8;
        const int64_t k = group * 64 + row, c = panel * 64 + chunk * 8 + i % 8;
        const bool has = k < job.out_c && c < job.in_c;
        job.packed[i] = __float2half(
            has ? job.weight[(k * job.in_c + c) * REACH_ELEMENTS + element] : 0.0f);
    }
}

#endif /* PLUGINS_CONVOLUTION_CUDA_REACH_PLAN_CUH */
