/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of rows of whole packs that are too long for packed.cu,
 * with the next rows under way in shared memory: a thread copies what it alone will read,
 * so that loads need no barrier and go on while it computes. A thread has the same
 * columns of every row, so it reads scale and bias once and keeps them. Each row is read
 * once and written once.
 *
 * A warp measures its elements about their own mean, and the parts of warps and blocks
 * are joined in their order: one barrier a row.
 *
 * Bytes under way on a multiprocessor, all but the stage at work: 96 KB of halves; 32 KB
 * cover the latency of memory.
 */
#include <cooperative_groups.h>

#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/normalization/held.cuh"

#define RING_HELD 32       /* elements a thread holds of a row */
#define RING_STAGES 4      /* at most */
#define RING_BLOCKS 8      /* of a cluster at most */
#define PACKED_BIASED 8192 /* elements of a row whose scale and bias a cache has */
#define PACKED_FULL 12288  /* of which packed.cu leaves few threads without any */
#define RING_SLOW 15       /* bytes of memory a clock of a multiprocessor, that are few */

/* A thread holds E elements of a row, which is a team's of some warps. */
template <typename T, int E, int Warps>
struct ring_shape {
    static const int N = 16 / (int)sizeof(T), Packs = E / N, Team = Warps * 32;
    static const int Threads = Team > CUDA_BLOCK ? Team : CUDA_BLOCK;
    static const int StageBytes = Threads * Packs * 16;
    static const int Blocks = 512 / Threads; /* of an SM */
};

/* Parts in their order; n: elements of all. */
static __device__ inline row_part ring_join(const row_part *parts, int count, float n)
{
    row_part t = {0, 0, 0, n};
#pragma unroll 4
    for (int i = 0; i < count; i++)
        t.sum += parts[i].sum;
    t.mean = held_mean(t.sum, n);
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        const float d = parts[i].n > 0 ? parts[i].mean - t.mean : 0;
        t.square += parts[i].square + parts[i].n * d * d;
    }
    return t;
}

/* Of the warps of a team, then of the blocks of a cluster. Slots alternate, so that one
 * barrier a row is enough; teams have barriers of their own. own, whole: elements of the
 * block's part of a row, and of the row. */
template <int Threads, int Warps, bool Cluster>
static __device__ inline row_part ring_team(row_part t, int parity, float own,
                                            float whole)
{
    __shared__ row_part slots[2][Threads / 32];
    if (Warps > 1) {
        const int warp = (int)threadIdx.x / 32, team = warp / Warps;
        if (threadIdx.x % 32 == 0)
            slots[parity][warp] = t;
        asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(Warps * 32) : "memory");
        t = ring_join(&slots[parity][team * Warps], Warps, own);
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster) {
        __shared__ row_part parts[2][RING_BLOCKS];
        cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
        const uint32_t blocks = cluster.num_blocks();
        if (threadIdx.x < blocks)
            *cluster.map_shared_rank(&parts[parity][cluster.block_rank()], threadIdx.x) =
                t;
        cluster.sync();
        t = ring_join(parts[parity], (int)blocks, whole);
    }
#endif
    return t;
}

/* All but the oldest of `stages` copies may still be under way. */
static __device__ inline void ring_await(int stages)
{
    if (stages == 4)
        await_copies<3>();
    else if (stages == 3)
        await_copies<2>();
    else
        await_copies<1>();
}

/* A thread's part of the rows of its team: packs `first`, `first` + Team, ... */
template <typename T, int E, int Warps>
struct ring_rows {
    typedef ring_shape<T, E, Warps> shape;
    uint4 *slots;
    const norm_job &job;
    int pitch, first, held; /* packs: of a row; where the thread's begin; the thread's */
    int end;                /* row */

    __device__ inline uint4 *slot(int stage, int operand, int i) const
    {
        const int operands = job.residual ? 2 : 1;
        return &slots[((stage * operands + operand) * shape::Packs + i) * shape::Threads];
    }

    /* Where a row's packs begin. Opaque, so that what is added to it stays in the
     * instructions rather than in registers. */
    __device__ inline int64_t place(int row) const
    {
        int64_t at = (int64_t)row * pitch + first;
        asm volatile("" : "+l"(at));
        return at;
    }

    __device__ inline void fetch(int row, int stage) const
    {
        const int64_t at = place(row);
        const uint4 *x = (const uint4 *)job.x + at;
        const uint4 *residual = (const uint4 *)job.residual + at;
        if (row < end)
#pragma unroll
            for (int i = 0; i < shape::Packs; i++)
                if (i < held)
                    copy_ahead<16>(slot(stage, 0, i), x + i * shape::Team);
        if (row < end && job.residual)
#pragma unroll
            for (int i = 0; i < shape::Packs; i++)
                if (i < held)
                    copy_ahead<16>(slot(stage, 1, i), residual + i * shape::Team);
        end_copies();
    }

    /* Zeros where the thread has nothing. */
    __device__ inline void take(float (&v)[E], int stage) const
    {
        const int N = shape::N;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++) {
            const pack<T, N> p = *(const pack<T, N> *)slot(stage, 0, i);
#pragma unroll
            for (int k = 0; k < N; k++)
                v[i * N + k] = i < held ? to_float(p.v[k]) : 0;
        }
        if (!job.residual)
            return;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++) {
            const pack<T, N> p = *(const pack<T, N> *)slot(stage, 1, i);
#pragma unroll
            for (int k = 0; k < N; k++)
                v[i * N + k] += i < held ? to_float(p.v[k]) : 0;
        }
    }

    __device__ inline void store(void *y, int row, const float (&v)[E]) const
    {
        const int N = shape::N;
        T *to = (T *)y + place(row) * N;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++)
            if (i < held)
                norm_store<T, N>(to, i * shape::Team * N, v + i * N);
    }

    /* value: where there are no weights. */
    __device__ inline void weights(float (&w)[E], const float *from, float value) const
    {
        const int N = shape::N;
#pragma unroll
        for (int e = 0; e < E; e++)
            w[e] = value;
#pragma unroll
        for (int i = 0; i < shape::Packs; i++)
            if (from && i < held)
                norm_read_weight<N>(w + i * N, from + (first + i * shape::Team) * N);
    }
};

/* share: packs of a row that a block of a cluster has. */
template <typename T, int E, int Warps, bool Cluster>
static __global__ void __launch_bounds__((ring_shape<T, E, Warps>::Threads),
                                         (ring_shape<T, E, Warps>::Blocks))
    ring_kernel(const __grid_constant__ norm_job job, int stages, int blocks, int share)
{
    wait_for_previous();
    launch_next();
    typedef ring_shape<T, E, Warps> shape;
    extern __shared__ uint4 ring[];
    const int teams = shape::Threads / shape::Team, ahead = stages - 1;
    const int lane = (int)threadIdx.x % shape::Team;
    const int pitch = (int)(job.cols / shape::N);
    const int first = Cluster ? (int)(blockIdx.x % blocks) * share : 0;
    const int packs = max(0, min(share, pitch - first));
    const int held = packs > lane ? (packs - lane + shape::Team - 1) / shape::Team : 0;
    const int step = (int)gridDim.x / blocks * teams;
    const int begin = (int)blockIdx.x / blocks * teams + (int)threadIdx.x / shape::Team;
    const ring_rows<T, E, Warps> rows = {ring + threadIdx.x, job,  pitch,
                                         first + lane,       held, (int)job.rows};
    const float n = lanes_sum((float)(held * shape::N), 32);
    float scale[E], bias[E];
    int stage = 0, parity = 0;
    for (int s = 0; s < ahead; s++)
        rows.fetch(begin + s * step, s);
    rows.weights(scale, job.scale, 1);
    rows.weights(bias, job.bias, 0);
#if __CUDA_ARCH__ >= 900
    if constexpr (Cluster) /* its blocks run before one writes to another */
        cooperative_groups::this_cluster().sync();
#endif
    for (int row = begin; row < rows.end; row += step) {
        float v[E];
        rows.fetch(row + ahead * step, stage == 0 ? ahead : stage - 1);
        ring_await(stages);
        rows.take(v, stage);
        if (job.sum)
            rows.store(job.sum, row, v);
        const row_part t = ring_team<shape::Threads, Warps, Cluster>(
            held_measure<shape::N>(v, job.measure == NORM_CENTRED, held, n), parity,
            Cluster ? (float)(packs * shape::N) : job.elements, job.elements);
        const float factor = held_factor(job, t.square);
#pragma unroll
        for (int e = 0; e < E; e++)
            v[e] = (v[e] - t.mean) * factor * scale[e] + bias[e];
        rows.store(job.y, row, v);
        if (job.mean && rows.first == 0) {
            job.mean[row] = t.mean;
            job.inverse[row] = factor;
        }
        stage = stage + 1 == stages ? 0 : stage + 1;
        parity ^= 1;
    }
}

/* ---- launches ---------------------------------------------------------------------- */

/* Stages of `bytes` that `blocks` blocks of a multiprocessor have room for. */
static int ring_stages(int bytes, int blocks)
{
    const int own = 4096; /* of a block, besides stages: slots, and what the system has */
    int room = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / blocks;
    const int most = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    room = room < most ? room : most;
    const int stages = (room - own) / bytes;
    return stages < RING_STAGES ? stages : RING_STAGES;
}

/* As many blocks as are there at once, or clusters of them, each of which walks over its
 * rows. */
template <typename T, int E, int Warps, bool Cluster>
static bool ring_launch(const norm_job &job, int blocks, cudaStream_t stream)
{
    typedef ring_shape<T, E, Warps> shape;
    const auto kernel = ring_kernel<T, E, Warps, Cluster>;
    const int bytes = shape::StageBytes * (job.residual ? 2 : 1);
    const int teams = shape::Threads / shape::Team;
    const int64_t needed = (job.rows + teams - 1) / teams;
    const int64_t packs = job.cols / shape::N;
    int resident = shape::Blocks, stages = ring_stages(bytes, resident);
    while (stages < 2 && resident > 1)
        stages = ring_stages(bytes, --resident);
    int64_t groups = (int64_t)device_attribute(cudaDevAttrMultiProcessorCount) * resident;
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    if (stages < 2 ||
        shared_allow((const void *)kernel, (size_t)(stages * bytes)) != cudaSuccess)
        return give_up();
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {(unsigned)blocks, 1, 1};
    config.blockDim = dim3(shape::Threads);
    config.gridDim = dim3((unsigned)blocks);
    config.dynamicSmemBytes = (size_t)(stages * bytes);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ? 0
                      : Cluster                                               ? 2
                                                                              : 1;
    if constexpr (Cluster) {
        int clusters = 0;
        if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess ||
            clusters < 1)
            return give_up();
        groups = clusters;
    }
    config.gridDim = dim3((unsigned)((groups < needed ? groups : needed) * blocks));
    return cudaLaunchKernelEx(&config, kernel, job, stages, blocks,
                              (int)((packs + blocks - 1) / blocks)) == cudaSuccess ||
           give_up();
}

/* Scale and bias of 16,384 elements, 128 KB, come from the first-level cache for each
 * row, which an H100 has time for (13 bytes a clock; 97 us where the ring takes 103), and
 * an H200 has not (19; 3.3 TB/s where the ring reaches 3.65). For what long.cu leaves. */
static bool ring_cache_keeps_up(void)
{
    const double width = device_attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0;
    const double rate = 2.0 * width * device_attribute(cudaDevAttrMemoryClockRate);
    return rate < (double)RING_SLOW * device_attribute(cudaDevAttrClockRate) *
                      device_attribute(cudaDevAttrMultiProcessorCount);
}

template <typename T>
static bool ring_choose(const norm_job &job, norm_way way, cudaStream_t stream)
{
    const int64_t n = job.cols, N = 16 / (int)sizeof(T);
    if (n % N)
        return false;
    if (way == NORM_BESIDE)
        return norm_beside<T>(job, stream);
    if (way == NORM_CLUSTERS) {
        int blocks = 2;
        while ((int64_t)blocks * CUDA_BLOCK * RING_HELD < n)
            blocks *= 2;
        return blocks <= RING_BLOCKS &&
               ring_launch<T, RING_HELD, 8, true>(job, blocks, stream);
    }
    if (n <= 32 * N)
        return norm_short<T>(job, stream);
    if (norm_few<T>(job, stream))
        return true;
    if (n <= (job.bias ? PACKED_BIASED : 16384) && norm_packed<T>(job, stream))
        return true;
    if (n >= PACKED_FULL && n <= 16384 && !job.residual && ring_cache_keeps_up() &&
        norm_packed<T>(job, stream))
        return true;
    if constexpr (sizeof(T) == 2)
        if (norm_long<T>(job, stream))
            return true;
    return n <= 16384 && ring_launch<T, RING_HELD, 16, false>(job, 1, stream);
}

bool norm_ring(const norm_job &job, int32_t dtype, norm_way way, cudaStream_t stream)
{
    const void *const memory[] = {job.x,   job.residual, job.y,
                                  job.sum, job.scale,    job.bias};
    bool fits = job.measure != NORM_POWERS && !job.by_channel && job.activation.kind < 0;
    for (const void *m : memory)
        fits = fits && (uintptr_t)m % 16 == 0;
    bool launched = false;
    if (fits)
        layer_float(dtype, [&](auto t) {
            launched = ring_choose<decltype(t)>(job, way, stream);
        });
    return launched;
}
