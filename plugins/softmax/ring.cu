/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of lines that a block holds, with the next lines under way in shared memory: a
 * thread copies what it alone will read, asynchronously, so that loads need no barrier and
 * go on while it computes. Memory bounds it: a line is read once and written once.
 *
 * Bytes under way on a multiprocessor, all but the stage at work of all blocks: of lines
 * of 1,000 halves 96 KB, of 4,096 halves 96 KB, of 65,536 halves 128 KB, of 21 planes of
 * halves 84 KB; 32 KB cover the latency of memory at its full rate. So the floor is that
 * of a copy of the tensor: 65536 x 1000 FP16 in 63 us at 4.13 TB/s, 16384 x 4096 in 65,
 * 64 x 21 x 256 x 256 in 85; predicted are 0.9, 0.9 and 0.78 of it (the last takes two
 * exponentials an element, 0.6 of what the units for them can).
 */
#include <cfloat>
#include <cooperative_groups.h>

#include "plugins/common/copy_ahead.cuh"
#include "plugins/softmax/job.cuh"

#define WARPS (CUDA_BLOCK / 32)

/* ---- contiguous lines ---------------------------------------------------------------
 *
 * A line is a team's: 1, 2, 4 or 8 warps, or 8 warps of each block of a cluster.
 */

/* A thread holds E elements of a line. */
template <typename T, int E>
struct ring_shape {
    static const int N = 16 / (int)sizeof(T), Packs = E / N;
    static const int StageBytes = CUDA_BLOCK * Packs * 16;
    static const int Stages = StageBytes <= 32 * 1024 ? 3 : 2;
    static const int Shared = Stages * StageBytes;
    static const int Fit = 200 * 1024 / Shared, Most = E == 8 ? 6 : E == 32 ? 3 : 2;
    static const int Blocks = Fit < Most ? Fit : Most; /* of a multiprocessor */
};

/* A warp's elements: exponentials in place of them, but for a logarithm; *base is what
 * they are relative to, finite where the warp has nothing but -infinity. */
template <int E>
static __device__ inline tally ring_warp(float (&v)[E], bool log, float *base)
{
    tally t = {-INFINITY, 0};
#pragma unroll
    for (int e = 0; e < E; e++)
        t.largest = fmaxf(t.largest, v[e]);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        t.largest = fmaxf(t.largest, __shfl_xor_sync(0xffffffffu, t.largest, d));
    *base = t.largest == -INFINITY ? -FLT_MAX : t.largest;
#pragma unroll
    for (int e = 0; e < E; e++) {
        const float power = __expf(v[e] - *base);
        t.sum += power;
        v[e] = log ? v[e] : power;
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        t.sum += __shfl_xor_sync(0xffffffffu, t.sum, d);
    return t;
}

/* Of the warps of a team, then of the blocks of a cluster, in the order of their ranks.
 * Slots alternate, so that one barrier a line is enough. */
template <int Cluster>
static __device__ inline tally ring_join(tally t, int warps, int parity)
{
    __shared__ tally slots[2][WARPS];
    if (warps > 1) {
        const int warp = (int)threadIdx.x / 32, first = warp / warps * warps;
        if (threadIdx.x % 32 == 0)
            slots[parity][warp] = t;
        __syncthreads();
        t = slots[parity][first];
        for (int i = 1; i < warps; i++)
            t = tally_join(t, slots[parity][first + i]);
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster > 1) {
        __shared__ tally parts[2][Cluster];
        cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
        if (threadIdx.x < Cluster)
            *cluster.map_shared_rank(&parts[parity][cluster.block_rank()], threadIdx.x) =
                t;
        cluster.sync();
        t = parts[parity][0];
        for (int i = 1; i < Cluster; i++)
            t = tally_join(t, parts[parity][i]);
    }
#endif
    return t;
}

/* A thread's part of the lines of its team. */
template <typename T, int E>
struct ring_lines {
    typedef ring_shape<T, E> shape;
    uint4 *slots;
    const uint4 *x;
    int64_t lines, pitch; /* of a line, in packs */
    int lane, threads, packs; /* packs of the block's part of a line */

    __device__ inline void fetch(int64_t line, int stage)
    {
#pragma unroll
        for (int i = 0; i < shape::Packs; i++)
            if (line < lines && lane + i * threads < packs)
                copy_ahead<16>(&slots[(stage * shape::Packs + i) * CUDA_BLOCK],
                               x + line * pitch + lane + i * threads);
        end_copies();
    }

    __device__ inline void take(float (&v)[E], bool live, int stage) const
    {
        const int N = shape::N;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++) {
            const bool held = live && lane + i * threads < packs;
            const pack<T, N> p =
                *(const pack<T, N> *)&slots[(stage * shape::Packs + i) * CUDA_BLOCK];
#pragma unroll
            for (int k = 0; k < N; k++)
                v[i * N + k] = held ? to_float(p.v[k]) : -INFINITY;
        }
    }

    __device__ inline void store(uint4 *y, const float (&v)[E]) const
    {
        const int N = shape::N;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++)
            if (lane + i * threads < packs)
                walk_store<T, N>((T *)(y + lane + i * threads), v + i * N);
    }
};

template <typename T, int E, int Cluster>
static __global__ void __launch_bounds__(CUDA_BLOCK, (ring_shape<T, E>::Blocks))
    ring_kernel(const __grid_constant__ softmax_job job, int warps)
{
    typedef ring_shape<T, E> shape;
    extern __shared__ uint4 ring[];
    const int ahead = shape::Stages - 1, teams = WARPS / warps;
    const int64_t pitch = job.length / shape::N, share = (pitch + Cluster - 1) / Cluster;
    const int64_t first = blockIdx.x % Cluster * share; /* the rank, clusters lie in x */
    const int64_t step = (int64_t)(gridDim.x / Cluster) * teams;
    const int64_t begin = (int64_t)(blockIdx.x / Cluster) * teams;
    ring_lines<T, E> lines = {ring + threadIdx.x,
                              (const uint4 *)job.x + first,
                              job.n_lines,
                              pitch,
                              (int)threadIdx.x % (warps * 32),
                              warps * 32,
                              (int)max((int64_t)0, min(share, pitch - first))};
    int64_t line = begin + threadIdx.x / (warps * 32);
    int stage = 0, parity = 0;
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster > 1) /* its blocks run before one writes to another */
        cooperative_groups::this_cluster().sync();
#endif
    for (int s = 0; s < ahead; s++)
        lines.fetch(line + s * step, s);
    for (int64_t i = begin; i < job.n_lines; i += step, line += step) {
        float v[E], base;
        lines.fetch(line + ahead * step, (stage + ahead) % shape::Stages);
        await_copies<shape::Stages - 1>();
        lines.take(v, line < job.n_lines, stage);
        const tally t =
            ring_join<Cluster>(ring_warp<E>(v, job.log, &base), warps, parity);
        const float sum = job.log ? logf(t.sum) : __expf(base - t.largest) / t.sum;
#pragma unroll
        for (int e = 0; e < E; e++)
            v[e] = job.log ? v[e] - t.largest - sum : v[e] * sum;
        if (line < job.n_lines)
            lines.store((uint4 *)job.y + line * pitch + first, v);
        stage = stage + 1 == shape::Stages ? 0 : stage + 1;
        parity ^= 1;
    }
}

/* ---- strided lines ------------------------------------------------------------------
 *
 * A thread holds some elements of 8 bytes of lines that lie side by side; rows of threads
 * share long lines.
 */

template <typename T, int Most>
struct columns_shape {
    static const int V = 8 / (int)sizeof(T);
    static const int Stages = Most == 8 ? 4 : 2;
    static const int Blocks = Most == 8 ? 3 : 2; /* of a multiprocessor */
};

/* The largest, or the sum, of what the rows of threads have of each line. */
template <typename T, int Most, bool Sum>
static __device__ inline void columns_join(float *parts, int rows, float *value)
{
    const int V = columns_shape<T, Most>::V, across = CUDA_BLOCK / rows;
    const int column = (int)threadIdx.x % across;
    if (rows == 1)
        return;
#pragma unroll
    for (int k = 0; k < V; k++)
        parts[k * CUDA_BLOCK + threadIdx.x] = value[k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V; k++) {
        value[k] = parts[k * CUDA_BLOCK + column];
        for (int i = 1; i < rows; i++) {
            const float other = parts[k * CUDA_BLOCK + i * across + column];
            value[k] = Sum ? value[k] + other : fmaxf(value[k], other);
        }
    }
}

template <typename T, int Most>
struct columns_lines {
    typedef columns_shape<T, Most> shape;
    uint2 *slots;
    const softmax_job &job;
    int rows, row, held; /* held: packs of a thread */

    __device__ inline bool has(int i) const
    {
        return i < held && row + i * rows < (int)job.length;
    }

    /* Where the lines are; copies nothing past the last. */
    template <typename Index>
    __device__ inline int64_t fetch(int64_t line, int stage)
    {
        const bool live = line < job.n_lines;
        const int64_t at = walk_find<1, Index>(job.lines, live ? (Index)line : 0).at[0];
        const T *x = (const T *)job.x + at + row * job.step;
        for (int i = 0; i < held; i++)
            if (live && has(i))
                copy_ahead<8>(&slots[(stage * held + i) * CUDA_BLOCK],
                              x + (int64_t)i * rows * job.step);
        end_copies();
        return at;
    }

    /* The results into y; p: the elements, parts: shared memory of two joins. */
    __device__ inline void finish(T *y, bool live, const pack<T, shape::V> (&p)[Most],
                                  float *parts)
    {
        const int V = shape::V;
        float largest[V], sum[V];
#pragma unroll
        for (int k = 0; k < V; k++) {
            largest[k] = -INFINITY;
            sum[k] = 0;
        }
#pragma unroll
        for (int i = 0; i < Most; i++)
#pragma unroll
            for (int k = 0; k < V; k++)
                largest[k] =
                    has(i) ? fmaxf(largest[k], to_float(p[i].v[k])) : largest[k];
        columns_join<T, Most, false>(parts, rows, largest);
#pragma unroll
        for (int i = 0; i < Most; i++)
#pragma unroll
            for (int k = 0; k < V; k++)
                if (has(i))
                    sum[k] += __expf(to_float(p[i].v[k]) - largest[k]);
        columns_join<T, Most, true>(parts + V * CUDA_BLOCK, rows, sum);
#pragma unroll
        for (int k = 0; k < V; k++)
            sum[k] = job.log ? logf(sum[k]) : 1 / sum[k];
#pragma unroll
        for (int i = 0; i < Most; i++) {
            float v[V];
#pragma unroll
            for (int k = 0; k < V; k++) {
                const float x = to_float(p[i].v[k]) - largest[k];
                v[k] = job.log ? x - sum[k] : __expf(x) * sum[k];
            }
            if (live && has(i))
                walk_store<T, V>(y + (int64_t)i * rows * job.step, v);
        }
    }
};

template <typename T, int Most, typename Index>
static __global__ void __launch_bounds__(CUDA_BLOCK, (columns_shape<T, Most>::Blocks))
    columns_kernel(const __grid_constant__ softmax_job job, int rows, int held)
{
    typedef columns_shape<T, Most> shape;
    const int V = shape::V, ahead = shape::Stages - 1, across = CUDA_BLOCK / rows;
    extern __shared__ uint4 ring[];
    __shared__ float parts[2 * V * CUDA_BLOCK];
    columns_lines<T, Most> lines = {(uint2 *)ring + threadIdx.x, job, rows,
                                    (int)threadIdx.x / across, held};
    const int64_t step = (int64_t)gridDim.x * across * V;
    const int64_t begin = (int64_t)blockIdx.x * across * V;
    int64_t line = begin + (int)threadIdx.x % across * V, at[shape::Stages];
    T *y = (T *)job.y + lines.row * job.step;
#pragma unroll
    for (int s = 0; s < ahead; s++)
        at[s] = lines.template fetch<Index>(line + s * step, s);
    int stage = 0;
    for (int64_t i = begin; i < job.n_lines; i += step, line += step) {
        pack<T, V> p[Most];
        at[ahead] = lines.template fetch<Index>(line + ahead * step,
                                                (stage + ahead) % shape::Stages);
        await_copies<ahead>();
#pragma unroll
        for (int k = 0; k < Most; k++)
            p[k] = *(const pack<T, V> *)&lines
                        .slots[(stage * held + (k < held ? k : 0)) * CUDA_BLOCK];
        lines.finish(y + at[0], line < job.n_lines, p, parts);
#pragma unroll
        for (int s = 0; s < ahead; s++)
            at[s] = at[s + 1];
        stage = stage + 1 == shape::Stages ? 0 : stage + 1;
    }
}

/* ---- launches -----------------------------------------------------------------------
 */

/* As many blocks as are there at once, or clusters of them: each walks over its lines. */
template <typename T, int E, int Cluster>
static bool ring_launch(const softmax_job &job, int warps, cudaStream_t stream)
{
    typedef ring_shape<T, E> shape;
    const auto kernel = ring_kernel<T, E, Cluster>;
    const int64_t needed = (job.n_lines + WARPS / warps - 1) / (WARPS / warps);
    int64_t groups =
        (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) * shape::Blocks / Cluster;
    cudaLaunchAttribute size = {};
    cudaLaunchConfig_t config = {};
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             shape::Shared) != cudaSuccess)
        return give_up();
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim = {Cluster, 1, 1};
    config.blockDim = dim3(CUDA_BLOCK);
    config.gridDim = dim3(Cluster);
    config.dynamicSmemBytes = shape::Shared;
    config.stream = stream;
    config.attrs = &size;
    config.numAttrs = Cluster > 1;
    if constexpr (Cluster > 1) {
        int clusters = 0;
        if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess ||
            clusters < 1)
            return give_up();
        groups = clusters;
    }
    config.gridDim = dim3((unsigned)(groups < needed ? groups : needed) * Cluster);
    return cudaLaunchKernelEx(&config, kernel, job, warps) == cudaSuccess || give_up();
}

/* Lines of whole packs that follow each other without a gap. */
template <typename T>
static bool ring_contiguous(const softmax_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T);
    const int64_t n = job.length;
    if (n != job.padded || n % N || n <= 128 || (uintptr_t)job.x % 16 ||
        (uintptr_t)job.y % 16)
        return false;
    if (n <= 256)
        return ring_launch<T, 8, 1>(job, 1, stream);
    if (n <= 8192)
        return ring_launch<T, 32, 1>(job, n <= 1024   ? 1
                                          : n <= 2048 ? 2
                                          : n <= 4096 ? 4
                                                      : 8,
                                     stream);
    if (n <= 16384)
        return ring_launch<T, 64, 1>(job, 8, stream);
    if (n > 131072 || device_attribute(cudaDevAttrComputeCapabilityMajor) < 9)
        return false;
    return n <= 32768   ? ring_launch<T, 64, 2>(job, 8, stream)
           : n <= 65536 ? ring_launch<T, 64, 4>(job, 8, stream)
                        : ring_launch<T, 64, 8>(job, 8, stream);
}

template <typename T, int Most>
static bool columns_launch(const softmax_job &job, int rows, int held,
                           cudaStream_t stream)
{
    typedef columns_shape<T, Most> shape;
    const int64_t most =
        (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) * shape::Blocks;
    const int64_t each = CUDA_BLOCK / rows * shape::V;
    const int64_t needed = (job.n_lines + each - 1) / each;
    const int shared = shape::Stages * held * CUDA_BLOCK * (int)sizeof(uint2);
    const int limit = shape::Stages * Most * CUDA_BLOCK * (int)sizeof(uint2);
    const auto kernel = job.n_lines < 0x7fffffff ? columns_kernel<T, Most, uint32_t>
                                                 : columns_kernel<T, Most, uint64_t>;
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             limit) != cudaSuccess) /* the same for all: contexts race */
        return give_up();
    kernel<<<(unsigned)(needed < most ? needed : most), CUDA_BLOCK, shared, stream>>>(
        job, rows, held);
    return true;
}

enum { MOST_HELD = 24, MOST_ROWS = 32 };

/* Lines side by side, 8 bytes of them at a time, without pads. */
template <typename T>
static bool ring_columns(const softmax_job &job, cudaStream_t stream)
{
    const int V = 8 / (int)sizeof(T);
    const walk<1> &w = job.lines;
    bool fits = w.lanes == 1 && w.channel_dim < 0 && job.shift == 0 && job.step % V == 0 &&
                w.stride[0][0] == 1 && w.extent[0] % V == 0 && (uintptr_t)job.x % 8 == 0 &&
                (uintptr_t)job.y % 8 == 0 && job.length <= MOST_HELD * MOST_ROWS;
    for (int d = 1; d < w.dims; d++)
        fits = fits && w.stride[0][d] % V == 0;
    if (!fits)
        return false;
    const int64_t blocks = 2 * device_attribute(cudaDevAttrMultiProcessorCount);
    int rows = 1;
    while (job.length > rows * MOST_HELD ||
           (rows < MOST_ROWS && job.length >= rows * 4 &&
            job.n_lines / V * rows < blocks * CUDA_BLOCK))
        rows *= 2;
    const int held = (int)((job.length + rows - 1) / rows);
    return held <= 8    ? columns_launch<T, 8>(job, rows, held, stream)
           : held <= 16 ? columns_launch<T, 16>(job, rows, held, stream)
                        : columns_launch<T, MOST_HELD>(job, rows, held, stream);
}

bool softmax_ring(const softmax_job &job, int32_t dtype, cudaStream_t stream)
{
    const walk<1> &w = job.lines;
    const bool dense = w.dims == 1 && w.lanes == 1 && w.channel_dim < 0 &&
                       (w.stride[0][0] == job.padded || w.extent[0] == 1);
    const bool contiguous = job.step == (int64_t)1 << job.shift;
    bool launched = false;
    layer_float(dtype, [&](auto t) {
        launched = contiguous ? dense && ring_contiguous<decltype(t)>(job, stream)
                              : ring_columns<decltype(t)>(job, stream);
    });
    return launched;
}
