/* SPDX-License-Identifier: Apache-2.0
 *
 * What warps of stream.cu do, by their role: loads, moments, results.
 */
#ifndef PLUGINS_NORMALIZATION_STREAM_CUH
#define PLUGINS_NORMALIZATION_STREAM_CUH

#include "plugins/common/product/wgmma.cuh"
#include "plugins/normalization/slab.cuh"

#define STREAM_WARPS 12 /* that measure, and that write, at most */
#define STREAM_SLOTS 64 /* of the ring at most */
#define STREAM_MEETINGS 4
#define STREAM_BLOCKS 16 /* of a cluster at most, where slabs have no room in fewer */
#define STREAM_LANES 8   /* that join a group's moments */

struct norm_stream {
    int64_t pixels;              /* of an image */
    int32_t channels, span;      /* of an image, of a slab */
    int32_t slabs, groups, each; /* of an image; of a slab; channels of a group */
    int32_t units;               /* slabs of all images */
    int32_t blocks, share;       /* of a cluster; pixels of a block */
    int32_t rows, chunks; /* pixels of a chunk; chunks of a block's part of a slab */
    int32_t slots, slot, bytes; /* of the ring; bytes of one, and of what is copied */
    int32_t across;             /* packs of a pixel */
    int32_t bits;               /* log2 of the packs of a pixel that a warp measures */
    int32_t sides, parts;       /* such packs; warps that share their pixels */
    int32_t writers;            /* warps */
    divisor by_each, by_slabs;
};

/* Pixels of a block. */
static __device__ inline int stream_count(const norm_stream &s, int rank)
{
    const int64_t left = s.pixels - (int64_t)rank * s.share;
    return (int)max((int64_t)0, min((int64_t)s.share, left));
}

/* What a block has in shared memory, behind its chunks. */
struct stream_shared {
    uint8_t *chunks;
    float *weights; /* shift, factor and addend of channels, [turn % 2][3][channel] */
    float2 *part;   /* mean and squares about it, [turn % 2][part][channel] */
    float2 *ranks;  /* the same of blocks, [turn % STREAM_MEETINGS][block][group] */
    float *count;   /* pixels of parts, [turn % 2][part] */
    uint32_t full;  /* barriers: of slots, [slot], */
    uint32_t empty; /* the same, */
    uint32_t told;  /* and of moments, [turn % STREAM_MEETINGS] */
};

static __host__ __device__ inline size_t stream_beside(const norm_stream &s)
{
    return (size_t)s.span * 24 + (size_t)(2 * s.parts * s.span) * 8 +
           (size_t)(STREAM_MEETINGS * s.blocks * s.groups) * 8 + STREAM_WARPS * 8 +
           (2 * STREAM_SLOTS + STREAM_MEETINGS) * 8;
}

static __device__ inline stream_shared stream_share(uint8_t *memory, const norm_stream &s)
{
    stream_shared m;
    m.chunks = memory;
    m.part = (float2 *)(memory + (size_t)s.slots * s.slot);
    m.ranks = m.part + 2 * s.parts * s.span;
    m.weights = (float *)(m.ranks + STREAM_MEETINGS * s.blocks * s.groups);
    m.count = m.weights + 6 * s.span;
    m.full = (uint32_t)__cvta_generic_to_shared(m.count + 2 * STREAM_WARPS);
    m.empty = m.full + STREAM_SLOTS * 8;
    m.told = m.empty + STREAM_SLOTS * 8;
    return m;
}

/* A slot of the ring, and how often it has been used, modulo 2. */
struct stream_slot {
    int32_t at;
    uint32_t parity;

    __device__ inline void advance(const norm_stream &s)
    {
        at++;
        if (at == s.slots) {
            at = 0;
            parity ^= 1;
        }
    }
};

#if __CUDA_ARCH__ >= 900
/* A slab, of an image. */
struct stream_place {
    int64_t image;
    int first; /* channel */
};

static __device__ inline stream_place stream_place_of(const norm_stream &s, int unit)
{
    const uint32_t image = divide_by((uint32_t)unit, s.by_slabs);
    return {image, (unit - (int)image * s.slabs) * s.span};
}

/* ---- loads ---------------------------------------------------------------------------
 */

static __device__ inline void stream_load(const stream_shared &m, const CUtensorMap *x,
                                          const norm_stream &s, int rank, int first,
                                          int by)
{
    const uint32_t chunks = (uint32_t)__cvta_generic_to_shared(m.chunks);
    stream_slot slot = {};
    for (int unit = first; unit < s.units; unit += by) {
        const stream_place p = stream_place_of(s, unit);
        for (int i = 0; i < s.chunks; i++) {
            const uint32_t full = m.full + (uint32_t)slot.at * 8;
            barrier_wait(m.empty + (uint32_t)slot.at * 8, slot.parity ^ 1);
            barrier_expect(full, (uint32_t)s.bytes);
            copy_matrix(chunks + (uint32_t)(slot.at * s.slot), x, full, p.first,
                        rank * s.share + i * s.rows, (int32_t)p.image);
            slot.advance(s);
        }
    }
}

/* ---- moments -------------------------------------------------------------------------
 */

/* Of N channels, about the first pixel of each that the thread has. */
template <int N>
struct stream_tally {
    float first[N], sum[N], square[N];
    int n;

    template <typename T>
    __device__ inline void add(const pack<T, N> &p)
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = to_float(p.v[k]) - first[k];
            sum[k] += d;
            square[k] += d * d;
        }
        n++;
    }

    /* Of a warp, whose lanes have columns of packs `apart`: mean of channel lane / apart
     * % N of the lane's column, and squares about it; *count: pixels. */
    __device__ inline float2 close(int apart, int *count)
    {
        const int lane = (int)threadIdx.x % 32;
        const float own = (float)n, inverse = n ? 1 / own : 0;
        float v[N], mean[N];
        *count = (int)__reduce_add_sync(0xffffffffu, (unsigned)n) / apart;
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = fmaf(own, first[k], sum[k]);
        const float all = *count ? slab_fold<N>(v, apart) / (float)*count : 0;
#pragma unroll
        for (int k = 0; k < N; k++) {
            mean[k] = __shfl_sync(0xffffffffu, all, k * apart + lane % apart);
            const float d = sum[k] * inverse, e = first[k] + d - mean[k];
            v[k] = fmaxf(square[k] - sum[k] * d, 0) + own * e * e;
        }
        return make_float2(all, slab_fold<N>(v, apart));
    }
};

/* By a warp: the channels of some columns of packs, in one part of a slab's pixels. */
template <typename T, int N>
static __device__ inline float2
stream_measure(const stream_shared &m, const norm_stream &s, stream_slot &slot, int count,
               int column, int begin, int *pixels)
{
    const int step = s.parts * (32 >> s.bits);
    stream_tally<N> tally = {};
    for (int i = 0; i < s.chunks; i++) {
        const uint4 *held = (const uint4 *)(m.chunks + slot.at * s.slot) + column;
        const int here = min(s.rows, count - i * s.rows);
        int row = begin;
        barrier_wait(m.full + (uint32_t)slot.at * 8, slot.parity);
        if (i == 0 && row < here) {
            const pack<T, N> p = *(const pack<T, N> *)(held + row * s.across);
#pragma unroll
            for (int k = 0; k < N; k++)
                tally.first[k] = to_float(p.v[k]);
            tally.n = 1;
            row += step;
        }
#pragma unroll 2
        for (; row < here; row += step)
            tally.add(*(const pack<T, N> *)(held + row * s.across));
        slot.advance(s);
    }
    return tally.close(1 << s.bits, pixels);
}

static __device__ inline float stream_sum(float x)
{
#pragma unroll
    for (int d = STREAM_LANES / 2; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* Of a group, by neighbouring lanes: what the parts have of its channels. */
static __device__ inline float2 stream_join(const float2 *part, const float *count,
                                            const norm_stream &s, int group, int pixels)
{
    const int lane = (int)threadIdx.x % STREAM_LANES;
    const int entries = group < s.groups ? s.each * s.parts : 0;
    float mean = 0, square = 0;
    for (int i = lane; i < entries; i += STREAM_LANES) {
        const int at = (int)divide_by((uint32_t)i, s.by_each);
        mean += count[at] * part[at * s.span + group * s.each + i - at * s.each].x;
    }
    mean = stream_sum(mean);
    mean = pixels ? mean / ((float)pixels * (float)s.each) : 0;
    for (int i = lane; i < entries; i += STREAM_LANES) {
        const int at = (int)divide_by((uint32_t)i, s.by_each);
        const float2 t = part[at * s.span + group * s.each + i - at * s.each];
        const float d = count[at] > 0 ? t.x - mean : 0;
        square += t.y + count[at] * d * d;
    }
    return make_float2(mean, stream_sum(square));
}

/* By measurers: moments of the block's part of a slab, to all blocks. */
static __device__ inline void stream_tell(const stream_shared &m, const norm_stream &s,
                                          const float2 *parts, const float *count,
                                          int warp, int rank, uint32_t meeting)
{
    enum { GROUPS = 32 / STREAM_LANES };
    const int lane = (int)threadIdx.x % 32, warps = s.sides * s.parts;
    const int all = stream_count(s, rank);
    const float2 *to = m.ranks + ((int)meeting * s.blocks + rank) * s.groups;
    for (int first = warp * GROUPS; first < s.groups; first += warps * GROUPS) {
        const int g = first + lane / STREAM_LANES;
        const float2 joined = stream_join(parts, count, s, g, all);
        if (g >= s.groups)
            continue;
        for (int r = lane % STREAM_LANES; r < s.blocks; r += STREAM_LANES)
            send_two(
                address_of_rank((uint32_t)__cvta_generic_to_shared(to + g), (uint32_t)r),
                address_of_rank(m.told + meeting * 8, (uint32_t)r), joined.x, joined.y);
    }
}

/* Measurers, a column of packs and a part each. */
template <typename T, int N>
static __device__ inline void stream_moments(const stream_shared &m, const norm_stream &s,
                                             int warp, int rank, int cluster, int by)
{
    const int lane = (int)threadIdx.x % 32, apart = 1 << s.bits;
    const int warps = s.sides * s.parts, part = warp / s.sides;
    const int column = (warp - part * s.sides) * apart + lane % apart;
    const int begin = part * (32 >> s.bits) + (lane >> s.bits);
    const int all = stream_count(s, rank);
    uint32_t turn = 0;
    stream_slot slot = {};
    for (int unit = cluster; unit < s.units; unit += by, turn++) {
        float2 *parts = m.part + turn % 2 * s.parts * s.span;
        float *count = m.count + turn % 2 * STREAM_WARPS;
        int pixels;
        const float2 t = stream_measure<T, N>(m, s, slot, all, column, begin, &pixels);
        if (lane >> s.bits < N)
            parts[part * s.span + column * N + (lane >> s.bits)] = t;
        if (lane == 0 && column == 0)
            count[part] = (float)pixels;
        named_sync(1, (uint32_t)warps * 32);
        stream_tell(m, s, parts, count, warp, rank, turn % STREAM_MEETINGS);
    }
}

/* ---- results -------------------------------------------------------------------------
 */

/* Of a group: what the blocks have, to mean and factor. */
static __device__ inline float2 stream_close(const float2 *ranks, const norm_job &job,
                                             const norm_stream &s, int group)
{
    const float total = (float)s.pixels * (float)s.each;
    float mean = 0, square = 0;
    for (int r = 0; r < s.blocks; r++)
        mean += (float)stream_count(s, r) * (float)s.each * ranks[r * s.groups + group].x;
    mean /= total;
    for (int r = 0; r < s.blocks; r++) {
        const float2 t = ranks[r * s.groups + group];
        const int n = stream_count(s, r);
        const float d = n ? t.x - mean : 0;
        square += t.y + (float)n * (float)s.each * d * d;
    }
    return make_float2(mean, norm_factor(job, square, total));
}

/* Of a slab's channels. */
static __device__ inline void stream_weights(float *weights, const float2 *ranks,
                                             const norm_job &job, const norm_stream &s,
                                             const stream_place &p, int rank, int thread)
{
    for (int c = thread; c < s.span; c += s.writers * 32) {
        const int group = (int)divide_by((uint32_t)c, s.by_each);
        const float2 t = stream_close(ranks, job, s, group);
        const int64_t set = (p.image * s.channels + p.first) / s.each + group;
        weights[c] = t.x;
        weights[s.span + c] = t.y * (job.scale ? job.scale[p.first + c] : 1);
        weights[2 * s.span + c] = job.bias ? job.bias[p.first + c] : 0;
        if (job.mean && rank == 0 && c == group * s.each) {
            job.mean[set] = t.x;
            job.inverse[set] = t.y;
        }
    }
}

/* y = (x - shift)*factor + addend of N channels. */
template <typename T, int N>
struct stream_affine {
    float shift[N], factor[N], addend[N];

    __device__ inline void read(const float *weights, int span, int column)
    {
        norm_read_weight<N>(shift, weights + column * N);
        norm_read_weight<N>(factor, weights + span + column * N);
        norm_read_weight<N>(addend, weights + 2 * span + column * N);
    }

    __device__ inline void write(T *y, const uint4 *held, const norm_job &job) const
    {
        const pack<T, N> p = *(const pack<T, N> *)held;
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = (to_float(p.v[k]) - shift[k]) * factor[k] + addend[k];
        norm_activate<N>(v, job.activation);
        norm_store<T, N>(y, 0, v);
    }
};

/* Writers: a thread has the same channels of every down-th pixel of a chunk. */
template <typename T, int N>
static __device__ inline void stream_write(const stream_shared &m, const norm_job &job,
                                           const norm_stream &s, int thread, int rank,
                                           int cluster, int by)
{
    const int down = s.writers * 32 / s.across, column = thread % s.across;
    const int begin = thread / s.across < down ? thread / s.across : s.rows;
    const int all = stream_count(s, rank);
    uint32_t turn = 0;
    stream_slot slot = {};
    for (int unit = cluster; unit < s.units; unit += by, turn++) {
        const stream_place p = stream_place_of(s, unit);
        const uint32_t meeting = turn % STREAM_MEETINGS, told = m.told + meeting * 8;
        float *weights = m.weights + turn % 2 * 3 * s.span;
        stream_affine<T, N> affine;
        barrier_wait(told, turn / STREAM_MEETINGS % 2);
        if (thread == 0)
            barrier_expect(told, (uint32_t)(s.blocks * s.groups) * 8);
        stream_weights(weights, m.ranks + (int)meeting * s.blocks * s.groups, job, s, p,
                       rank, thread);
        named_sync(2, (uint32_t)s.writers * 32);
        affine.read(weights, s.span, column);
        T *y = (T *)job.y +
               (p.image * s.pixels + (int64_t)rank * s.share + begin) * s.channels +
               p.first + column * N;
        for (int i = 0; i < s.chunks; i++) {
            const uint4 *held = (const uint4 *)(m.chunks + slot.at * s.slot) + column;
            const int here = min(s.rows, all - i * s.rows);
            barrier_wait(m.full + (uint32_t)slot.at * 8, slot.parity);
#pragma unroll 2
            for (int row = begin; row < here; row += down)
                affine.write(y + (int64_t)(i * s.rows + row - begin) * s.channels,
                             held + row * s.across, job);
            __syncwarp();
            if (thread % 32 == 0)
                barrier_arrive(m.empty + (uint32_t)slot.at * 8);
            slot.advance(s);
        }
    }
}

static __device__ inline void stream_init(const stream_shared &m, const norm_stream &s)
{
    for (int i = 0; i < s.slots; i++) {
        barrier_init(m.full + (uint32_t)i * 8, 1);
        barrier_init(m.empty + (uint32_t)i * 8, (uint32_t)s.writers);
    }
    for (uint32_t i = 0; i < STREAM_MEETINGS; i++)
        barrier_init(m.told + i * 8, 1);
    barrier_publish();
    for (uint32_t i = 0; i < STREAM_MEETINGS; i++)
        barrier_expect(m.told + i * 8, (uint32_t)(s.blocks * s.groups) * 8);
}
#endif

#endif /* PLUGINS_NORMALIZATION_STREAM_CUH */
