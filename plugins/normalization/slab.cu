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

#include "plugins/common/copy_ahead.cuh"
#include "plugins/normalization/job.cuh"

#define SLAB_BLOCKS 8         /* of a cluster at most */
#define SLAB_GROUPS 64        /* of a slab at most */
#define SLAB_HALF (88 * 1024) /* bytes of a block, of which two have room */
#define SLAB_WHOLE (200 * 1024)
#define SLAB_PIXELS 64 /* of an image at least */
#define SLAB_RUN 32    /* bytes of a pixel at least, which memory moves at once */

struct norm_slab {
    int64_t images, pixels;      /* of an image */
    int32_t channels, span;      /* of an image, of a slab */
    int32_t slabs, groups, each; /* of an image; of a slab; channels of a group */
    int32_t blocks, share;       /* of a slab; pixels of a block */
};

/* Pixels of a block. */
static __device__ inline int slab_count(const norm_slab &s, int rank)
{
    const int64_t left = s.pixels - (int64_t)rank * s.share;
    return (int)max((int64_t)0, min((int64_t)s.share, left));
}

/* Every down-th of `count`, from the row-th on. */
static __device__ inline int slab_rows(int count, int row, int down)
{
    return count > row ? (count - row + down - 1) / down : 0;
}

static __device__ inline float slab_sum(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* Of the N channels of a thread: mean and squares about it. */
template <typename T, int N>
static __device__ inline void slab_measure(float2 (&seen)[N], const uint4 *held, int rows,
                                           int step)
{
    float sum[N] = {}, square[N] = {};
#pragma unroll 4
    for (int i = 0; i < rows; i++) {
        const pack<T, N> p = *(const pack<T, N> *)(held + i * step);
#pragma unroll
        for (int k = 0; k < N; k++)
            sum[k] += to_float(p.v[k]);
    }
    const float inverse = rows ? 1 / (float)rows : 0;
#pragma unroll
    for (int k = 0; k < N; k++)
        sum[k] *= inverse;
#pragma unroll 4
    for (int i = 0; i < rows; i++) {
        const pack<T, N> p = *(const pack<T, N> *)(held + i * step);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = to_float(p.v[k]) - sum[k];
            square[k] += d * d;
        }
    }
#pragma unroll
    for (int k = 0; k < N; k++)
        seen[k] = make_float2(sum[k], square[k]);
}

/* Of a group, by a warp: what all threads have seen of its channels. */
template <int N>
static __device__ inline float2 slab_join(const float2 (*seen)[CUDA_BLOCK],
                                          const norm_slab &s, int group, int count,
                                          int across, int down)
{
    const int parts = s.each * down, lane = (int)threadIdx.x % 32;
    float mean = 0, square = 0;
    for (int i = lane; i < parts; i += 32) {
        const int row = i / s.each, c = group * s.each + i % s.each;
        mean += (float)slab_rows(count, row, down) * seen[c % N][row * across + c / N].x;
    }
    mean = count ? slab_sum(mean) / ((float)count * (float)s.each) : 0;
    for (int i = lane; i < parts; i += 32) {
        const int row = i / s.each, c = group * s.each + i % s.each;
        const int n = slab_rows(count, row, down);
        const float2 t = seen[c % N][row * across + c / N];
        const float d = n ? t.x - mean : 0;
        square += t.y + (float)n * d * d;
    }
    return make_float2(mean, slab_sum(square));
}

/* Of a group: what the blocks have seen, to mean and factor. */
static __device__ inline float2 slab_close(const float2 (*parts)[SLAB_GROUPS],
                                           const norm_job &job, const norm_slab &s,
                                           int group)
{
    const float total = (float)s.pixels * (float)s.each;
    float mean = 0, square = 0;
    for (int r = 0; r < s.blocks; r++)
        mean += (float)slab_count(s, r) * (float)s.each * parts[r][group].x;
    mean /= total;
    for (int r = 0; r < s.blocks; r++) {
        const int n = slab_count(s, r);
        const float d = n ? parts[r][group].x - mean : 0;
        square += parts[r][group].y + (float)n * (float)s.each * d * d;
    }
    return make_float2(mean, norm_factor(job, square, total));
}

/* y = (x - shift)*factor + addend */
template <typename T, int N>
static __device__ inline void
slab_write(T *y, const uint4 *held, const norm_job &job, const norm_slab &s,
           const float2 *results, int first, int column, int rows, int step, int down)
{
    float shift[N], factor[N], addend[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        const int c = column * N + k;
        const float2 t = results[c / s.each];
        shift[k] = t.x;
        factor[k] = t.y * (job.scale ? job.scale[first + c] : 1);
        addend[k] = job.bias ? job.bias[first + c] : 0;
    }
#pragma unroll 2
    for (int i = 0; i < rows; i++) {
        const pack<T, N> p = *(const pack<T, N> *)(held + i * step);
        float v[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = (to_float(p.v[k]) - shift[k]) * factor[k] + addend[k];
        norm_activate<N>(v, job.activation);
        norm_store<T, N>(y, (int64_t)i * down * s.channels, v);
    }
}

/* A thread has the same channels of every down-th pixel of its block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK, 2)
    slab_kernel(const __grid_constant__ norm_job job, const __grid_constant__ norm_slab s)
{
    const int N = 16 / (int)sizeof(T), across = s.span / N, down = CUDA_BLOCK / across;
    extern __shared__ uint4 slab[];
    __shared__ float2 seen[N][CUDA_BLOCK], parts[SLAB_BLOCKS][SLAB_GROUPS];
    __shared__ float2 results[SLAB_GROUPS];
    const int thread = (int)threadIdx.x, rank = (int)(blockIdx.x % (uint32_t)s.blocks);
    const uint32_t index = blockIdx.x / (uint32_t)s.blocks;
    const int64_t image = index / (uint32_t)s.slabs;
    const int first = (int)(index % (uint32_t)s.slabs) * s.span; /* channel */
    const int column = thread % across, row = thread / across;
    const int count = slab_count(s, rank);
    const int rows = row < down ? slab_rows(count, row, down) : 0;
    const int64_t at = (image * s.pixels + (int64_t)rank * s.share + row) * s.channels +
                       first + column * N;
    uint4 *held = slab + thread;
    const int step = across * down;
    for (int i = 0; i < rows; i++)
        copy_ahead<16>(held + i * step,
                       (const T *)job.x + at + (int64_t)i * down * s.channels);
    end_copies();
#if __CUDA_ARCH__ >= 900
    if (s.blocks > 1) /* all of them run before one writes to another */
        cooperative_groups::this_cluster().sync();
#endif
    await_copies<0>();
    float2 mine[N];
    slab_measure<T, N>(mine, held, rows, step);
#pragma unroll
    for (int k = 0; k < N; k++)
        seen[k][thread] = mine[k];
    __syncthreads();
    for (int g = thread / 32; g < s.groups; g += CUDA_BLOCK / 32) {
        const float2 t = slab_join<N>(seen, s, g, count, across, down);
        if (thread % 32 >= s.blocks)
            continue;
        float2 *to = &parts[rank][g];
#if __CUDA_ARCH__ >= 900
        if (s.blocks > 1)
            to = cooperative_groups::this_cluster().map_shared_rank(
                to, (unsigned)(thread % 32));
#endif
        *to = t;
    }
#if __CUDA_ARCH__ >= 900
    if (s.blocks > 1)
        cooperative_groups::this_cluster().sync();
#endif
    __syncthreads();
    if (thread < s.groups) {
        const float2 t = slab_close(parts, job, s, thread);
        const int64_t set = (image * s.channels + first) / s.each + thread;
        results[thread] = t;
        if (job.mean && rank == 0) {
            job.mean[set] = t.x;
            job.inverse[set] = t.y;
        }
    }
    __syncthreads();
    slab_write<T, N>((T *)job.y + at, held, job, s, results, first, column, rows, step,
                     down);
}

/* ---- launches ---------------------------------------------------------------------- */

/* The fewest blocks, at most `most`, that hold a slab of `span` channels with `room`
 * bytes each; 0: none. */
static int slab_blocks(const norm_slab &s, int span, int size, int64_t room, int most)
{
    for (int blocks = 1; blocks <= most; blocks *= 2)
        if ((s.pixels + blocks - 1) / blocks * span * size <= room)
            return blocks;
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
    for (int span = s.channels; span > 0; span -= s.each) {
        if (!slab_spans(s, span, lanes, size))
            continue;
        const int half = slab_blocks(s, span, size, SLAB_HALF, most);
        const int blocks = half ? half : slab_blocks(s, span, size, SLAB_WHOLE, most);
        if (!blocks)
            continue;
        s.span = span;
        s.blocks = blocks;
        if (half && s.images * (s.channels / span) * most >= processors)
            break;
    }
    if (!s.span)
        return false;
    s.slabs = s.channels / s.span;
    s.groups = s.span / s.each;
    const int64_t down = CUDA_BLOCK / (s.span / lanes);
    while (s.blocks < most && s.images * s.slabs * s.blocks < 2 * processors &&
           s.pixels / s.blocks >= 8 * down)
        s.blocks *= 2;
    s.share = (int32_t)((s.pixels + s.blocks - 1) / s.blocks);
    return s.images * s.slabs * s.blocks <= 0x7fffffff;
}

template <typename T>
static bool slab_launch(const norm_job &job, const norm_slab &s, cudaStream_t stream)
{
    const auto kernel = slab_kernel<T>;
    const int across = s.span * (int)sizeof(T) / 16, down = CUDA_BLOCK / across;
    const int shared = (s.share + down - 1) / down * down * across * 16;
    cudaLaunchAttribute size = {};
    cudaLaunchConfig_t config = {};
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shared) != cudaSuccess)
        return give_up();
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim = {(unsigned)s.blocks, 1, 1};
    config.gridDim = dim3((unsigned)(s.images * s.slabs * s.blocks));
    config.blockDim = dim3(CUDA_BLOCK);
    config.dynamicSmemBytes = (size_t)shared;
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
    s.images = images;
    s.pixels = job.plane;
    s.channels = (int32_t)channels;
    s.each = (int32_t)job.each;
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
