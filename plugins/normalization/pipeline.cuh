/* SPDX-License-Identifier: Apache-2.0
 *
 * What pipeline.cu's warps share, and what joiners do: moments of a block's part of a
 * slab from those of its threads, of the slab from those of its blocks.
 */
#ifndef PLUGINS_NORMALIZATION_PIPELINE_CUH
#define PLUGINS_NORMALIZATION_PIPELINE_CUH

#include "plugins/common/product/wgmma.cuh"
#include "plugins/normalization/slab.cuh"

#define PIPELINE_THREADS 320 /* of a block, beside joiners */
#define PIPELINE_JOINERS 2   /* warps */
#define PIPELINE_PACKS 4     /* of a thread at a step */
#define PIPELINE_AHEAD 3     /* steps whose loads are on their way */
#define PIPELINE_LANES 8     /* that join a group's moments; blocks at most */
#define PIPELINE_MEETINGS 4

enum { PIPELINE_PART = 1 }; /* named barrier */

struct norm_pipeline {
    int64_t pixels;              /* of an image */
    int32_t channels, span;      /* of an image, of a slab */
    int32_t slabs, groups, each; /* of an image; of a slab; channels of a group */
    int32_t units;               /* slabs of all images */
    int32_t blocks, share;       /* of a cluster; pixels of a block */
    int32_t across, down;        /* packs of a pixel; pixels that threads take at once */
    int32_t rows, chunks;        /* pixels of a step; steps of a slab */
    int32_t slots, delay;        /* steps of the ring; from a measure to its write */
    divisor by_each, by_slabs, by_across;
};

/* Pixels of a block. */
static __device__ inline int pipeline_count(const norm_pipeline &s, int rank)
{
    const int64_t left = s.pixels - (int64_t)rank * s.share;
    return (int)max((int64_t)0, min((int64_t)s.share, left));
}

/* What a block has in shared memory, behind its ring. */
struct pipeline_shared {
    uint4 *ring;     /* [slot][pack of a thread][thread] */
    float2 *part;    /* mean and squares about it, of a thread's groups, [2][thread] */
    float2 *ranks;   /* of blocks, [turn % PIPELINE_MEETINGS][block][group] */
    float2 *results; /* mean and factor, [turn % 2][group] */
    uint32_t told;   /* barriers: of moments, [turn % PIPELINE_MEETINGS], */
    uint32_t joined; /* of parts that have been read, */
    uint32_t ready;  /* and of results, [turn % 2] */
};

static __host__ __device__ inline size_t pipeline_slot(void)
{
    return (size_t)PIPELINE_THREADS * PIPELINE_PACKS * 16;
}

static __host__ __device__ inline size_t pipeline_beside(const norm_pipeline &s)
{
    return (size_t)(2 * PIPELINE_THREADS + (PIPELINE_MEETINGS * s.blocks + 2) * s.groups +
                    PIPELINE_MEETINGS + 3) *
           8;
}

static __device__ inline pipeline_shared pipeline_share(uint8_t *memory,
                                                        const norm_pipeline &s)
{
    pipeline_shared m;
    m.ring = (uint4 *)memory;
    m.part = (float2 *)(memory + s.slots * pipeline_slot());
    m.ranks = m.part + 2 * PIPELINE_THREADS;
    m.results = m.ranks + PIPELINE_MEETINGS * s.blocks * s.groups;
    m.told = (uint32_t)__cvta_generic_to_shared(m.results + 2 * s.groups);
    m.joined = m.told + PIPELINE_MEETINGS * 8;
    m.ready = m.joined + 8;
    return m;
}

#if __CUDA_ARCH__ >= 900
static __device__ inline void pipeline_init(const pipeline_shared &m,
                                            const norm_pipeline &s)
{
    for (uint32_t i = 0; i < PIPELINE_MEETINGS; i++)
        barrier_init(m.told + i * 8, 1);
    barrier_init(m.joined, PIPELINE_JOINERS * 32);
    for (uint32_t i = 0; i < 2; i++)
        barrier_init(m.ready + i * 8, (uint32_t)s.groups);
    barrier_publish();
    for (uint32_t i = 0; i < PIPELINE_MEETINGS; i++)
        barrier_expect(m.told + i * 8, (uint32_t)(s.blocks * s.groups) * 8);
}

static __device__ inline float pipeline_sum(float x)
{
#pragma unroll
    for (int d = PIPELINE_LANES / 2; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* Of a group, by neighbouring lanes: what threads have of it. A column of packs has it as
 * the first or the second of its groups; the first threads have a pixel more. */
template <int N>
static __device__ inline float2
pipeline_join(const pipeline_shared &m, const norm_pipeline &s, int group, int count)
{
    const int lane = (int)threadIdx.x % PIPELINE_LANES, begin = group * s.each;
    const int end = group < s.groups ? begin + s.each : 0, rows = min(s.down, count);
    const int each = count / s.down, more = count - each * s.down;
    float mean = 0, all = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
        all = 0;
        for (int c = begin / N; c * N < end; c++) {
            const float2 *part = m.part + (c * N < begin ? PIPELINE_THREADS : 0) + c;
            const float own = (float)(min(c * N + N, end) - max(c * N, begin));
#pragma unroll 4
            for (int row = lane; row < rows; row += PIPELINE_LANES) {
                const float2 t = part[row * s.across];
                const float n = (float)(each + (row < more)) * own, d = t.x - mean;
                all += pass ? fmaf(n * d, d, t.y) : n * t.x;
            }
        }
        all = pipeline_sum(all);
        if (!pass)
            mean = count ? all / ((float)count * (float)s.each) : 0;
    }
    return make_float2(mean, all);
}

/* Moments of the block's part of a slab, to all blocks of the cluster. */
template <int N>
static __device__ inline void pipeline_tell(const pipeline_shared &m,
                                            const norm_pipeline &s, int warp, int rank,
                                            uint32_t meeting)
{
    enum { GROUPS = 32 / PIPELINE_LANES };
    const int lane = (int)threadIdx.x % 32, block = lane % PIPELINE_LANES;
    const int count = pipeline_count(s, rank);
    const float2 *to = m.ranks + ((int)meeting * s.blocks + rank) * s.groups;
    for (int first = warp * GROUPS; first < s.groups;
         first += PIPELINE_JOINERS * GROUPS) {
        const int g = first + lane / PIPELINE_LANES;
        const float2 joined = pipeline_join<N>(m, s, g, count);
        if (g < s.groups && block < s.blocks)
            send_two(address_of_rank((uint32_t)__cvta_generic_to_shared(to + g),
                                     (uint32_t)block),
                     address_of_rank(m.told + meeting * 8, (uint32_t)block), joined.x,
                     joined.y);
    }
    barrier_arrive(m.joined);
}

/* Of a group, by neighbouring lanes: what the blocks have, to mean and factor. */
static __device__ inline float2 pipeline_close(const float2 *ranks, const norm_job &job,
                                               const norm_pipeline &s, int group)
{
    const int block = (int)threadIdx.x % PIPELINE_LANES;
    const float total = (float)s.pixels * (float)s.each;
    float2 t = make_float2(0, 0);
    float n = 0;
    if (block < s.blocks && group < s.groups) {
        t = ranks[block * s.groups + group];
        n = (float)pipeline_count(s, block) * (float)s.each;
    }
    const float mean = pipeline_sum(n * t.x) / total, d = t.x - mean;
    return make_float2(mean, norm_factor(job, pipeline_sum(fmaf(n * d, d, t.y)), total));
}

/* Mean and factor of a slab's groups, for the block. */
static __device__ inline void pipeline_meet(const pipeline_shared &m, const norm_job &job,
                                            const norm_pipeline &s, int warp, int rank,
                                            int unit, uint32_t turn)
{
    enum { GROUPS = 32 / PIPELINE_LANES };
    const int lane = (int)threadIdx.x % 32;
    const uint32_t meeting = turn % PIPELINE_MEETINGS, told = m.told + meeting * 8;
    const float2 *ranks = m.ranks + (int)meeting * s.blocks * s.groups;
    barrier_wait(told, turn / PIPELINE_MEETINGS % 2);
    if (warp == 0 && lane == 0)
        barrier_expect(told, (uint32_t)(s.blocks * s.groups) * 8);
    for (int first = warp * GROUPS; first < s.groups;
         first += PIPELINE_JOINERS * GROUPS) {
        const int g = first + lane / PIPELINE_LANES;
        const float2 t = pipeline_close(ranks, job, s, g);
        if (g >= s.groups || lane % PIPELINE_LANES != 0)
            continue;
        m.results[(int)(turn % 2) * s.groups + g] = t;
        if (job.mean && rank == 0) {
            job.mean[(int64_t)unit * s.groups + g] = t.x;
            job.inverse[(int64_t)unit * s.groups + g] = t.y;
        }
        barrier_arrive(m.ready + turn % 2 * 8);
    }
    __syncwarp();
}

template <int N>
static __device__ inline void
pipeline_joiners(const pipeline_shared &m, const norm_job &job, const norm_pipeline &s,
                 int warp, int rank, int cluster, int by)
{
    uint32_t turn = 0;
    for (int unit = cluster; unit < s.units; unit += by, turn++) {
        named_sync(PIPELINE_PART, PIPELINE_THREADS + PIPELINE_JOINERS * 32);
        pipeline_tell<N>(m, s, warp, rank, turn % PIPELINE_MEETINGS);
        pipeline_meet(m, job, s, warp, rank, unit, turn);
    }
}
#endif

#endif /* PLUGINS_NORMALIZATION_PIPELINE_CUH */
