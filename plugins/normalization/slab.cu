/* SPDX-License-Identifier: Apache-2.0
 *
 * Group and instance normalization where channels lie side by side: a slab is some whole
 * groups of an image, and its pixels are shared by the blocks of a cluster, which hold
 * them in shared memory and exchange their moments through it. Memory is read once.
 *
 * Two blocks have room on a multiprocessor, so that one loads while the other writes: of
 * 320 channels of 64x64 halves a slab has 80 channels, 160 bytes of each pixel, and a
 * block 80 KB of it.
 */
#include <cooperative_groups.h>

#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/normalization/slab.cuh"

#define SLAB_THREADS 320       /* of a block at most */
#define SLAB_HALF (108 * 1024) /* bytes of a block, of which two have room */
#define SLAB_WHOLE (220 * 1024)
#define SLAB_PIXELS 64 /* of an image at least */

struct norm_slab {
    int64_t images, pixels;      /* of an image */
    int32_t channels, span;      /* of an image, of a slab */
    int32_t slabs, groups, each; /* of an image; of a slab; channels of a group */
    int32_t blocks, share;       /* of a slab; pixels of a block */
    int32_t across, pitch;       /* packs of a pixel, with a gap, which spreads banks */
    int32_t parts, threads;      /* of a block's pixels, a warp each; of a block */
    divisor by_each;
};

/* Pixels of a block. */
static __device__ inline int slab_count(const norm_slab &s, int rank)
{
    const int64_t left = s.pixels - (int64_t)rank * s.share;
    return (int)max((int64_t)0, min((int64_t)s.share, left));
}

/* What a block has in shared memory, behind its packs. */
struct slab_shared {
    uint4 *held;
    float2 *part;                   /* mean and squares about it, [part][channel] */
    float2 *ranks;                  /* the same of blocks, [block][group] */
    float *shift, *factor, *addend; /* of channels */
};

static __host__ __device__ inline size_t slab_packs(const norm_slab &s)
{
    return (size_t)s.share * (size_t)s.pitch * 16;
}

static inline size_t slab_bytes(const norm_slab &s)
{
    return slab_packs(s) + (size_t)(s.parts * s.span + SLAB_BLOCKS * s.groups) * 8 +
           (size_t)s.span * 12;
}

static __device__ inline slab_shared slab_share(uint4 *memory, const norm_slab &s)
{
    slab_shared m;
    m.held = memory;
    m.shift = (float *)((char *)memory + slab_packs(s));
    m.factor = m.shift + s.span;
    m.addend = m.factor + s.span;
    m.part = (float2 *)(m.addend + s.span);
    m.ranks = m.part + s.parts * s.span;
    return m;
}

/* Pixels of a part, from `from` on. */
static __device__ inline int slab_pixels(const norm_slab &s, int count, int part,
                                         int *from)
{
    const int length = (count + s.parts - 1) / s.parts;
    *from = part * length;
    return max(0, min(length, count - *from));
}

/* By a warp: the N channels of a column of packs, in one part of the pixels. */
template <typename T, int N>
static __device__ inline void slab_measure(const slab_shared &m, const norm_slab &s,
                                           int count, int column, int part)
{
    const int lane = (int)threadIdx.x % 32, step = 32 * s.pitch;
    int from;
    const int pixels = slab_pixels(s, count, part, &from);
    const int rows = pixels > lane ? (pixels - lane + 31) / 32 : 0;
    const uint4 *held = m.held + (from + lane) * s.pitch + column;
    float sum[N] = {}, square[N] = {}, mean[N];
#pragma unroll 2
    for (int i = 0; i < rows; i++) {
        const pack<T, N> p = *(const pack<T, N> *)(held + i * step);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] += to_float(p.v[k]);
    }
    const float own = pixels ? slab_fold<N>(sum, 1) / (float)pixels : 0;
#pragma unroll
    for (int k = 0; k < N; k++)
        mean[k] = __shfl_sync(0xffffffffu, own, k);
#pragma unroll 2
    for (int i = 0; i < rows; i++) {
        const pack<T, N> p = *(const pack<T, N> *)(held + i * step);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = to_float(p.v[k]) - mean[k];
            square[k] += d * d;
        }
    }
    const float all = slab_fold<N>(square, 1);
    if (lane < N)
        m.part[part * s.span + column * N + lane] = make_float2(own, all);
}

/* Of a group, by a warp: what the parts have of its channels. */
static __device__ inline float2 slab_join(const slab_shared &m, const norm_slab &s,
                                          int group, int count)
{
    const int entries = s.each * s.parts, lane = (int)threadIdx.x % 32;
    float mean = 0, square = 0;
    int from;
    for (int i = lane; i < entries; i += 32) {
        const int part = (int)divide_by((uint32_t)i, s.by_each);
        const int c = group * s.each + i - part * s.each;
        mean += (float)slab_pixels(s, count, part, &from) * m.part[part * s.span + c].x;
    }
    mean = count ? slab_sum(mean) / ((float)count * (float)s.each) : 0;
    for (int i = lane; i < entries; i += 32) {
        const int part = (int)divide_by((uint32_t)i, s.by_each);
        const float2 t = m.part[part * s.span + group * s.each + i - part * s.each];
        const float n = (float)slab_pixels(s, count, part, &from);
        const float d = n > 0 ? t.x - mean : 0;
        square += t.y + n * d * d;
    }
    return make_float2(mean, slab_sum(square));
}

/* Of the group of channel c: what the blocks have, to mean and factor. */
static __device__ inline float2 slab_close(const slab_shared &m, const norm_job &job,
                                           const norm_slab &s, int group)
{
    const float total = (float)s.pixels * (float)s.each;
    float mean = 0, square = 0;
    for (int r = 0; r < s.blocks; r++)
        mean += (float)slab_count(s, r) * (float)s.each * m.ranks[r * s.groups + group].x;
    mean /= total;
    for (int r = 0; r < s.blocks; r++) {
        const float2 t = m.ranks[r * s.groups + group];
        const int n = slab_count(s, r);
        const float d = n ? t.x - mean : 0;
        square += t.y + (float)n * (float)s.each * d * d;
    }
    return make_float2(mean, norm_factor(job, square, total));
}

/* Groups of a block, to all blocks of its cluster. */
static __device__ inline void slab_tell(const slab_shared &m, const norm_slab &s,
                                        int count, int rank)
{
    const int lane = (int)threadIdx.x % 32, warps = s.threads / 32;
    for (int g = (int)threadIdx.x / 32; g < s.groups; g += warps) {
        const float2 t = slab_join(m, s, g, count);
        float2 *to = m.ranks + rank * s.groups + g;
        if (lane >= s.blocks)
            continue;
#if __CUDA_ARCH__ >= 900
        if (s.blocks > 1)
            to = cooperative_groups::this_cluster().map_shared_rank(to, (unsigned)lane);
#endif
        *to = t;
    }
}

/* Of all channels, from the first of the slab on. */
static __device__ inline void slab_weights(const slab_shared &m, const norm_job &job,
                                           const norm_slab &s, int64_t image, int first,
                                           int rank)
{
    for (int c = (int)threadIdx.x; c < s.span; c += s.threads) {
        const int group = (int)divide_by((uint32_t)c, s.by_each);
        const float2 t = slab_close(m, job, s, group);
        const int64_t set = (image * s.channels + first) / s.each + group;
        m.shift[c] = t.x;
        m.factor[c] = t.y * (job.scale ? job.scale[first + c] : 1);
        m.addend[c] = job.bias ? job.bias[first + c] : 0;
        if (job.mean && rank == 0 && c == group * s.each) {
            job.mean[set] = t.x;
            job.inverse[set] = t.y;
        }
    }
}

/* y = (x - shift)*factor + addend of a thread's packs, `down` pixels apart. */
template <typename T, int N>
static __device__ inline void slab_write(T *y, const uint4 *held, const norm_job &job,
                                         const norm_slab &s, const slab_shared &m,
                                         int column, int rows, int down)
{
    float shift[N], factor[N], addend[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        shift[k] = m.shift[column * N + k];
        factor[k] = m.factor[column * N + k];
        addend[k] = m.addend[column * N + k];
    }
#pragma unroll 2
    for (int i = 0; i < rows; i++) {
        const pack<T, N> p = *(const pack<T, N> *)(held + i * down * s.pitch);
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = (to_float(p.v[k]) - shift[k]) * factor[k] + addend[k];
        norm_activate<N>(v, job.activation);
        norm_store<T, N>(y, (int64_t)i * down * s.channels, v);
    }
}

/* A thread moves the same channels of every down-th pixel of its block; a warp measures
 * channels of a part of them. */
template <typename T>
static __global__ void __launch_bounds__(SLAB_THREADS, 2)
    slab_kernel(const __grid_constant__ norm_job job, const __grid_constant__ norm_slab s)
{
    const int N = 16 / (int)sizeof(T), down = s.threads / s.across;
    extern __shared__ uint4 slab[];
    const slab_shared m = slab_share(slab, s);
    const int thread = (int)threadIdx.x, rank = (int)(blockIdx.x % (uint32_t)s.blocks);
    const uint32_t index = blockIdx.x / (uint32_t)s.blocks;
    const int64_t image = index / (uint32_t)s.slabs;
    const int first = (int)(index % (uint32_t)s.slabs) * s.span; /* channel */
    const int column = thread % s.across, row = thread / s.across;
    const int count = slab_count(s, rank);
    const int rows = row < down && count > row ? (count - row + down - 1) / down : 0;
    const int64_t at = (image * s.pixels + (int64_t)rank * s.share + row) * s.channels +
                       first + column * N;
    uint4 *held = m.held + row * s.pitch + column;
    for (int i = 0; i < rows; i++)
        copy_ahead<16>(held + i * down * s.pitch,
                       (const T *)job.x + at + (int64_t)i * down * s.channels);
    end_copies();
#if __CUDA_ARCH__ >= 900
    if (s.blocks > 1) /* all of them run before one writes to another */
        asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
    await_copies<0>();
    __syncthreads();
    for (int unit = thread / 32; unit < s.across * s.parts; unit += s.threads / 32)
        slab_measure<T, N>(m, s, count, unit % s.across, unit / s.across);
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    if (s.blocks > 1)
        asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#endif
    slab_tell(m, s, count, rank);
#if __CUDA_ARCH__ >= 900
    if (s.blocks > 1)
        cooperative_groups::this_cluster().sync();
#endif
    __syncthreads();
    slab_weights(m, job, s, image, first, rank);
    __syncthreads();
    slab_write<T, N>((T *)job.y + at, held, job, s, m, column, rows, down);
}

/* ---- launches ---------------------------------------------------------------------- */

/* Pixels for each of `blocks` blocks of a slab of `span` channels, and what follows. */
static void slab_shape(norm_slab &s, int span, int blocks, int lanes)
{
    s.span = span;
    s.slabs = s.channels / span;
    s.groups = span / s.each;
    s.blocks = blocks;
    s.share = (int32_t)((s.pixels + blocks - 1) / blocks);
    s.across = span / lanes;
    s.pitch = s.across | 1;
    s.threads = SLAB_THREADS;
    while (s.threads > CUDA_BLOCK && s.threads % s.across != 0)
        s.threads -= 32;
    s.parts = s.threads / 32 / s.across;
    if (s.parts < 1)
        s.parts = 1;
}

/* The fewest blocks, at most `most`, that hold a slab of `span` channels with `room`
 * bytes each; 0: none. */
static int slab_blocks(norm_slab s, int span, int lanes, size_t room, int most)
{
    for (int blocks = 1; blocks <= most; blocks *= 2) {
        slab_shape(s, span, blocks, lanes);
        if (slab_bytes(s) <= room)
            return blocks;
    }
    return 0;
}

static bool slab_spans(const norm_slab &s, int span, int lanes, int size)
{
    return s.channels % span == 0 && span % s.each == 0 && span % lanes == 0 &&
           span / lanes <= CUDA_BLOCK && span / s.each <= SLAB_GROUPS &&
           span * size >= SLAB_RUN;
}

/* The widest slab of which there are enough, two on a multiprocessor; else the narrowest,
 * of which there are most. */
static bool slab_cut(norm_slab &s, int size, int most, int64_t processors)
{
    const int lanes = 16 / size;
    int best = 0, blocks = 0;
    for (int span = s.channels; span > 0; span -= s.each) {
        if (!slab_spans(s, span, lanes, size))
            continue;
        const int half = slab_blocks(s, span, lanes, SLAB_HALF, most);
        const int fits = half ? half : slab_blocks(s, span, lanes, SLAB_WHOLE, most);
        if (!fits)
            continue;
        best = span;
        blocks = fits;
        if (half && s.images * (s.channels / span) * most >= processors)
            break;
    }
    if (!best)
        return false;
    slab_shape(s, best, blocks, lanes);
    const int64_t down = s.threads / s.across;
    while (s.blocks < most && s.images * s.slabs * s.blocks < 2 * processors &&
           s.pixels / s.blocks >= 8 * down)
        slab_shape(s, best, s.blocks * 2, lanes);
    return s.images * s.slabs * s.blocks <= 0x7fffffff;
}

template <typename T>
static bool slab_launch(const norm_job &job, const norm_slab &s, cudaStream_t stream)
{
    const auto kernel = slab_kernel<T>;
    cudaLaunchAttribute size = {};
    cudaLaunchConfig_t config = {};
    if (shared_allow((const void *)kernel, slab_bytes(s)) != cudaSuccess)
        return give_up();
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim = {(unsigned)s.blocks, 1, 1};
    config.gridDim = dim3((unsigned)(s.images * s.slabs * s.blocks));
    config.blockDim = dim3((unsigned)s.threads);
    config.dynamicSmemBytes = slab_bytes(s);
    config.stream = stream;
    config.attrs = &size;
    config.numAttrs = s.blocks > 1;
    return cudaLaunchKernelEx(&config, kernel, job, s) == cudaSuccess || give_up();
}

bool norm_slab_run(const norm_job &job, int32_t dtype, int64_t images, int64_t channels,
                   cudaStream_t stream)
{
    norm_slab s = {};
    if (!job.by_channel || job.batch || job.residual || job.sum || channels > 65536 ||
        job.plane < SLAB_PIXELS || job.plane > 0x7fffff || (uintptr_t)job.x % 16 ||
        (uintptr_t)job.y % 16)
        return false;
    if (norm_pipeline_run(job, dtype, images, channels, stream) ||
        norm_stream_run(job, dtype, images, channels, stream))
        return true;
    s.images = images;
    s.pixels = job.plane;
    s.channels = (int32_t)channels;
    s.each = (int32_t)job.each;
    s.by_each = divisor_of(job.each);
    const int most =
        device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 ? SLAB_BLOCKS : 1;
    const int size = dtype == STRATA_FP32 ? 4 : 2;
    if (!slab_cut(s, size, most, device_attribute(cudaDevAttrMultiProcessorCount)))
        return false;
    bool launched = false;
    layer_float(dtype,
                [&](auto t) { launched = slab_launch<decltype(t)>(job, s, stream); });
    return launched;
}
