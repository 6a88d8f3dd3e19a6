/* SPDX-License-Identifier: Apache-2.0
 *
 * Softmax of lines too long for packed.cu, and of those too short, with the next lines
 * under way in shared memory: a thread copies what it alone will read, asynchronously, so
 * that loads need no barrier and go on while it computes. Memory bounds it: a line is
 * read once and written once.
 *
 * Bytes under way on a multiprocessor, all but the stage at work of all blocks: of lines
 * of 65,536 halves 128 KB; 32 KB cover the latency of memory at its full rate.
 *
 * Where lines are many, a block takes a chunk of neighbouring ones, four for each of its
 * teams, and ends: the other blocks of its multiprocessor have loads under way meanwhile.
 * The hardware hands out chunks in order, to whichever multiprocessor is free, so no one
 * ends late, and what is under way is one stretch of the tensor.
 */
#include <cfloat>
#include <cooperative_groups.h>

#include "kernels/shared.cuh"
#include "plugins/common/copy_ahead.cuh"
#include "plugins/softmax/job.cuh"

#define WARPS (CUDA_BLOCK / 32)
#define CHUNK 4 /* lines of a team, of a block that ends with them */

/* ---- contiguous lines ---------------------------------------------------------------
 *
 * A line is a team's: 1, 2, 4 or 8 warps, or 8 warps of each block of a cluster.
 */

/* A thread holds E elements of a line, which is a team's of some warps. */
template <typename T, int E, int Warps>
struct ring_shape {
    static const int N = 16 / (int)sizeof(T), Packs = E / N, Team = Warps * 32;
    static const int StageBytes = CUDA_BLOCK * Packs * 16;
    static const int Stages = StageBytes <= 16 * 1024   ? 4
                              : StageBytes <= 32 * 1024 ? 3
                                                        : 2;
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
    float most[4] = {v[0], v[1], v[2], v[3]}, sum[2] = {}; /* short chains */
#pragma unroll
    for (int e = 4; e < E; e++)
        most[e % 4] = fmaxf(most[e % 4], v[e]);
    t.largest = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        t.largest = fmaxf(t.largest, __shfl_xor_sync(0xffffffffu, t.largest, d));
    *base = t.largest == -INFINITY ? -FLT_MAX : t.largest;
#pragma unroll
    for (int e = 0; e < E; e++) {
        const float power = __expf(v[e] - *base);
        sum[e % 2] += power;
        v[e] = log ? v[e] : power;
    }
    t.sum = sum[0] + sum[1];
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        t.sum += __shfl_xor_sync(0xffffffffu, t.sum, d);
    return t;
}

/* Parts in their order. */
static __device__ inline tally ring_parts(const tally *parts, int count)
{
    tally t = parts[0];
#pragma unroll 4
    for (int i = 1; i < count; i++)
        t.largest = fmaxf(t.largest, parts[i].largest);
    const float base = t.largest == -INFINITY ? -FLT_MAX : t.largest;
    t.sum = 0;
#pragma unroll 4
    for (int i = 0; i < count; i++)
        t.sum += parts[i].sum * __expf(parts[i].largest - base);
    return t;
}

/* Of the warps of a team, then of the blocks of a cluster, in the order of their ranks.
 * Slots alternate, so that one barrier a line is enough; teams have barriers of their
 * own. */
template <int Warps, int Cluster>
static __device__ inline tally ring_join(tally t, int parity)
{
    __shared__ tally slots[2][WARPS];
    if (Warps > 1) {
        const int warp = (int)threadIdx.x / 32, team = warp / Warps;
        if (threadIdx.x % 32 == 0)
            slots[parity][warp] = t;
        asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(Warps * 32) : "memory");
        t = ring_parts(&slots[parity][team * Warps], Warps);
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster > 1) {
        __shared__ tally parts[2][Cluster];
        cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
        if (threadIdx.x < Cluster)
            *cluster.map_shared_rank(&parts[parity][cluster.block_rank()], threadIdx.x) =
                t;
        cluster.sync();
        t = ring_parts(parts[parity], Cluster);
    }
#endif
    return t;
}

/* A thread's part of the lines of its team. */
template <typename T, int E, int Warps>
struct ring_lines {
    typedef ring_shape<T, E, Warps> shape;
    uint4 *slots;
    const uint4 *x;
    int end;                /* line */
    int pitch, first, held; /* packs: of a line; where the thread's begin; the thread's */

    /* Where the thread's packs of a line begin. Opaque, so that what is added to it stays
     * in the instructions rather than in registers. */
    __device__ inline int64_t place(int line) const
    {
        int64_t at = (int64_t)line * pitch + first;
        asm volatile("" : "+l"(at));
        return at;
    }

    __device__ inline void fetch(int line, int stage) const
    {
        const uint4 *from = x + place(line);
#pragma unroll
        for (int i = 0; i < shape::Packs; i++)
            if (line < end && i < held)
                copy_ahead<16>(&slots[(stage * shape::Packs + i) * CUDA_BLOCK],
                               from + i * shape::Team);
        end_copies();
    }

    __device__ inline void take(float (&v)[E], int stage) const
    {
        const int N = shape::N;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++) {
            const pack<T, N> p =
                *(const pack<T, N> *)&slots[(stage * shape::Packs + i) * CUDA_BLOCK];
#pragma unroll
            for (int k = 0; k < N; k++)
                v[i * N + k] = i < held ? to_float(p.v[k]) : -INFINITY;
        }
    }

    __device__ inline void store(void *y, int line, const float (&v)[E]) const
    {
        const int N = shape::N;
        uint4 *to = (uint4 *)y + place(line);
#pragma unroll
        for (int i = 0; i < shape::Packs; i++)
            if (i < held)
                walk_store<T, N>((T *)(to + i * shape::Team), v + i * N);
    }
};

/* chunk: lines of each team, which the block has side by side with its other teams'; 0:
 * every so many-th of all. */
template <typename T, int E, int Warps, int Cluster>
static __global__ void __launch_bounds__(CUDA_BLOCK, (ring_shape<T, E, Warps>::Blocks))
    ring_kernel(const __grid_constant__ softmax_job job, int chunk)
{
    typedef ring_shape<T, E, Warps> shape;
    extern __shared__ uint4 ring[];
    const int ahead = shape::Stages - 1, teams = WARPS / Warps;
    const int pitch = (int)job.length / shape::N, share = (pitch + Cluster - 1) / Cluster;
    const int first = (int)blockIdx.x % Cluster * share; /* the rank, clusters lie in x */
    const int all = (int)job.n_lines;                    /* below 2^31, for memory is */
    const int step = chunk ? teams : (int)gridDim.x / Cluster * teams;
    const int start = (int)blockIdx.x / Cluster * teams * (chunk ? chunk : 1);
    const int begin = start + (int)threadIdx.x / shape::Team;
    const int lane = (int)threadIdx.x % shape::Team;
    const int packs = max(0, min(share, pitch - first));
    const int held = packs > lane ? (packs - lane + shape::Team - 1) / shape::Team : 0;
    const ring_lines<T, E, Warps> lines = {ring + threadIdx.x,
                                           (const uint4 *)job.x,
                                           chunk ? min(all, start + teams * chunk) : all,
                                           pitch,
                                           first + lane,
                                           held};
    int stage = 0, parity = 0;
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster > 1) /* its blocks run before one writes to another */
        cooperative_groups::this_cluster().sync();
#endif
    for (int s = 0; s < ahead; s++)
        lines.fetch(begin + s * step, s);
    for (int line = begin; line < lines.end; line += step) {
        float v[E], base;
        lines.fetch(line + ahead * step, (stage + ahead) % shape::Stages);
        await_copies<shape::Stages - 1>();
        lines.take(v, stage);
        const tally t =
            ring_join<Warps, Cluster>(ring_warp<E>(v, job.log, &base), parity);
        const float sum = job.log ? logf(t.sum) : __expf(base - t.largest) / t.sum;
#pragma unroll
        for (int e = 0; e < E; e++)
            v[e] = job.log ? v[e] - t.largest - sum : v[e] * sum;
        lines.store(job.y, line, v);
        stage = stage + 1 == shape::Stages ? 0 : stage + 1;
        parity ^= 1;
    }
}

/* ---- launches -----------------------------------------------------------------------
 */

/* Lines of a team in a chunk, where `rounds` of blocks would take a line a team: at least
 * four rounds of chunks, which even out. 0: no chunks, as there would be fewer or blocks
 * have no other beside them. */
static int ring_chunk(bool cluster, int64_t rounds, int resident)
{
    return cluster || resident < 2 || rounds < 4 * CHUNK / 2 ? 0
           : rounds < 4 * CHUNK                              ? CHUNK / 2
                                                             : CHUNK;
}

/* Blocks of chunks; or as many as are there at once, or clusters of them, each of which
 * walks over its lines. */
template <typename T, int E, int Warps, int Cluster>
static bool ring_launch(const softmax_job &job, cudaStream_t stream)
{
    typedef ring_shape<T, E, Warps> shape;
    const auto kernel = ring_kernel<T, E, Warps, Cluster>;
    int64_t needed = (job.n_lines + WARPS / Warps - 1) / (WARPS / Warps);
    int64_t groups = (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) *
                     shape::Blocks / Cluster;
    cudaLaunchAttribute size = {};
    cudaLaunchConfig_t config = {};
    if (shared_allow((const void *)kernel, shape::Shared) != cudaSuccess)
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
    const int chunk = ring_chunk(Cluster > 1, needed / groups, shape::Blocks);
    if (chunk)
        needed = groups = (needed + chunk - 1) / chunk;
    config.gridDim = dim3((unsigned)(groups < needed ? groups : needed) * Cluster);
    return cudaLaunchKernelEx(&config, kernel, job, chunk) == cudaSuccess || give_up();
}

/* Lines of whole packs that follow each other without a gap. */
template <typename T>
static bool ring_contiguous(const softmax_job &job, int32_t dtype, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T);
    const int64_t n = job.length;
    if (n != job.padded || n % N || n <= 128 || (uintptr_t)job.x % 16 ||
        (uintptr_t)job.y % 16)
        return false;
    if (n <= 32 * N)
        return ring_launch<T, 8, 1, 1>(job, stream);
    if (softmax_packed(job, dtype, stream))
        return true;
    if (n <= 16384)
        return ring_launch<T, 64, 8, 1>(job, stream);
    if (n > 131072 || device_attribute(cudaDevAttrComputeCapabilityMajor) < 9)
        return false;
    return n <= 32768   ? ring_launch<T, 64, 8, 2>(job, stream)
           : n <= 65536 ? ring_launch<T, 64, 8, 4>(job, stream)
                        : ring_launch<T, 64, 8, 8>(job, stream);
}

bool softmax_ring(const softmax_job &job, int32_t dtype, cudaStream_t stream)
{
    const walk<1> &w = job.lines;
    const bool dense = w.dims == 1 && w.lanes == 1 && w.channel_dim < 0 &&
                       (w.stride[0][0] == job.padded || w.extent[0] == 1);
    bool launched = false;
    if (job.step != (int64_t)1 << job.shift)
        return softmax_columns(job, dtype, stream);
    if (dense)
        layer_float(dtype, [&](auto t) {
            launched = ring_contiguous<decltype(t)>(job, dtype, stream);
        });
    return launched;
}
