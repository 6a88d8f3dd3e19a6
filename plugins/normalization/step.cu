/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalization of long rows of halves whose scale and bias, four times a row, are
 * too much for the first-level cache: a cluster of blocks that stay has a row, so that a
 * thread has one pack of it and keeps its scale and bias in registers. The copy engine
 * brings rows into a ring, STEP_ROWS at each step. A step's moments are exchanged while
 * the rows of the step before are written, so that nobody waits for them.
 */
#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/common/product/wgmma.cuh"
#include "plugins/normalization/packed.cuh"

#define STEP_BLOCKS 4    /* of a cluster */
#define STEP_ROWS 4      /* of a step */
#define STEP_THREADS 512 /* of a block at most */
#define STEP_STAGES 6    /* of the ring at most */
#define STEP_TURNS 3     /* moments of so many steps are about at once */
#define STEP_LEAST 1024  /* rows below which starts and ends count for more */

struct step_shape {
    int32_t packs, share; /* of a row; of a block's part, a thread each */
    int32_t stages;
};

#if __CUDA_ARCH__ >= 900
/* Mean, and squares about it, of the warps of a cluster, [turn][row][warp]. */
typedef float2 step_slots[STEP_ROWS][STEP_BLOCKS * STEP_THREADS / 32];

/* A barrier of the cluster in two parts; what was written before the first is read
 * behind the second. */
static __device__ inline void step_arrive(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n" ::: "memory");
}
static __device__ inline void step_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

/* To the same place of the cluster's block `rank`. */
static __device__ inline void step_tell(float2 *place, uint32_t rank, float2 t)
{
    const uint32_t to = address_of_rank((uint32_t)__cvta_generic_to_shared(place), rank);
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};\n" ::"r"(to), "f"(t.x),
                 "f"(t.y)
                 : "memory");
}

/* Mean and squares about it of two parts, each of twice `half` elements. */
static __device__ inline void step_merge(float2 &a, float2 b, float half)
{
    const float d = b.x - a.x;
    a.x = 0.5f * (a.x + b.x);
    a.y += b.y + d * d * half;
}

/* Over the lanes of a warp, each of n elements of each row: lane l gets row
 * l / (32 / STEP_ROWS). */
static __device__ inline float2 step_fold(float2 (&t)[STEP_ROWS], float n)
{
    const int lane = (int)threadIdx.x % 32;
    float half = 0.5f * n;
    int apart = 16;
#pragma unroll
    for (int h = STEP_ROWS / 2; h > 0; h /= 2, apart /= 2, half *= 2)
#pragma unroll
        for (int r = 0; r < h; r++) {
            const float2 mine = lane & apart ? t[r + h] : t[r];
            const float2 other = lane & apart ? t[r] : t[r + h];
            t[r] = mine;
            step_merge(t[r],
                       make_float2(__shfl_xor_sync(0xffffffffu, other.x, apart),
                                   __shfl_xor_sync(0xffffffffu, other.y, apart)),
                       half);
        }
#pragma unroll
    for (; apart > 0; apart /= 2, half *= 2)
        step_merge(t[0],
                   make_float2(__shfl_xor_sync(0xffffffffu, t[0].x, apart),
                               __shfl_xor_sync(0xffffffffu, t[0].y, apart)),
                   half);
    return t[0];
}

/* Sums over lanes, of which each has STEP_ROWS; placed as step_fold() has it. */
static __device__ inline float step_sum(float (&v)[STEP_ROWS])
{
    const int lane = (int)threadIdx.x % 32;
    int apart = 16;
#pragma unroll
    for (int h = STEP_ROWS / 2; h > 0; h /= 2, apart /= 2)
#pragma unroll
        for (int r = 0; r < h; r++) {
            const float mine = lane & apart ? v[r + h] : v[r];
            const float other = lane & apart ? v[r] : v[r + h];
            v[r] = mine + __shfl_xor_sync(0xffffffffu, other, apart);
        }
#pragma unroll
    for (; apart > 0; apart /= 2)
        v[0] += __shfl_xor_sync(0xffffffffu, v[0], apart);
    return v[0];
}

template <typename T>
struct step_part {
    static const int N = 16 / (int)sizeof(T);
    uint4 x[STEP_ROWS];

    __device__ inline void take(float (&v)[N], int r) const
    {
        const pack<T, N> p = *(const pack<T, N> *)&x[r];
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = to_float(p.v[k]);
    }

    /* Of the thread's elements. */
    __device__ inline float2 measure(int r) const
    {
        float v[N], sum = 0, square = 0;
        take(v, r);
#pragma unroll
        for (int k = 0; k < N; k += 2)
            sum += v[k] + v[k + 1];
        const float mean = sum * (1.0f / N);
#pragma unroll
        for (int k = 0; k < N; k++)
            square = fmaf(v[k] - mean, v[k] - mean, square);
        return make_float2(mean, square);
    }
};

/* Row r of step s, of a cluster. */
static __device__ inline int64_t step_row(int s, int r)
{
    const int clusters = (int)gridDim.x / STEP_BLOCKS;
    return (int64_t)(s * STEP_ROWS + r) * clusters + blockIdx.x / STEP_BLOCKS;
}

/* By one thread: the rows of step s on their way. */
template <typename T>
static __device__ inline void step_ask(const norm_job &job, const step_shape &p, int s,
                                       uint4 *ring, uint32_t full)
{
    const int64_t rank = blockIdx.x % STEP_BLOCKS;
    const uint32_t bytes = (uint32_t)p.share * 16;
    int count = 0;
    for (int r = 0; r < STEP_ROWS; r++)
        count += step_row(s, r) < job.rows;
    if (count == 0)
        return;
    barrier_expect(full, (uint32_t)count * bytes);
    for (int r = 0; r < count; r++)
        copy_bytes((uint32_t)__cvta_generic_to_shared(ring + r * p.share),
                   (const uint4 *)job.x + step_row(s, r) * p.packs + rank * p.share,
                   bytes, full);
}

/* Moments of a step's rows in the lanes of each warp, placed as step_fold() has it. */
static __device__ inline float2 step_join(const step_slots &slots, int warps, float own)
{
    const int lane = (int)threadIdx.x % 32;
    float2 t[STEP_ROWS][2];
    float sum[STEP_ROWS], square[STEP_ROWS];
#pragma unroll
    for (int r = 0; r < STEP_ROWS; r++) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            t[r][i] = lane + i * 32 < warps ? slots[r][lane + i * 32] : float2{};
        sum[r] = t[r][0].x + t[r][1].x;
    }
    const float mean = held_mean(step_sum(sum), (float)warps);
#pragma unroll
    for (int r = 0; r < STEP_ROWS; r++) {
        const float all = __shfl_sync(0xffffffffu, mean, r * (32 / STEP_ROWS));
        square[r] = 0;
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (lane + i * 32 < warps) {
                const float d = t[r][i].x - all;
                square[r] += t[r][i].y + own * d * d;
            }
    }
    return make_float2(mean, step_sum(square));
}

template <typename T>
static __device__ inline void
step_write(const norm_job &job, const step_shape &p, const step_part<T> &part,
           float2 moments, int s, const float4 (&scale)[2], const float4 (&bias)[2])
{
    const int N = step_part<T>::N, at = (int)(blockIdx.x % STEP_BLOCKS) * p.share;
    const float own = held_factor(job, moments.y);
#pragma unroll
    for (int r = 0; r < STEP_ROWS; r++) {
        const float mean = __shfl_sync(0xffffffffu, moments.x, r * (32 / STEP_ROWS));
        const float factor = __shfl_sync(0xffffffffu, own, r * (32 / STEP_ROWS));
        const int64_t row = step_row(s, r);
        float v[N];
        pack<T, N> out;
        if (row >= job.rows)
            continue;
        part.take(v, r);
#pragma unroll
        for (int k = 0; k < N; k += 4)
            packed_round(&out.v[k], v + k, mean, factor, scale[k / 4], bias[k / 4]);
        ((pack<T, N> *)job.y)[row * p.packs + at + threadIdx.x] = out;
        if (job.mean && at + threadIdx.x == 0) {
            job.mean[row] = mean;
            job.inverse[row] = factor;
        }
    }
}
#endif

template <typename T>
static __global__ void __launch_bounds__(STEP_THREADS, 1)
    step_kernel(const __grid_constant__ norm_job job,
                const __grid_constant__ step_shape p)
{
#if __CUDA_ARCH__ >= 900
    wait_for_previous();
    launch_next();
    extern __shared__ __align__(128) uint4 ring[];
    __shared__ __align__(8) uint64_t barriers[STEP_STAGES];
    __shared__ step_slots slots[STEP_TURNS];
    const int N = step_part<T>::N, rank = (int)(blockIdx.x % STEP_BLOCKS);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int warps = p.share / 32, column = (rank * p.share + (int)threadIdx.x) * N;
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers);
    const int by = STEP_ROWS * ((int)gridDim.x / STEP_BLOCKS);
    const int steps = (int)((job.rows - step_row(0, 0) + by - 1) / by);
    const auto ask = [&](int s) {
        if (threadIdx.x == 0)
            step_ask<T>(job, p, s, ring + s % p.stages * STEP_ROWS * p.share,
                        full + (uint32_t)(s % p.stages) * 8);
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < p.stages; i++)
            barrier_init(full + (uint32_t)i * 8, 1);
        barrier_publish();
    }
    step_arrive();
    for (int s = 0; s < p.stages; s++)
        ask(s);
    float4 scale[2], bias[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        scale[k] = packed_weights(job.scale, column + k * 4, 1);
        bias[k] = packed_weights(job.bias, column + k * 4, 0);
    }
    step_wait();
    step_arrive();
    step_part<T> part, before;
    for (int s = 0; s <= steps; s++) {
        float2 t[STEP_ROWS], own = {};
        if (s < steps) {
            const uint4 *rows = ring + s % p.stages * STEP_ROWS * p.share + threadIdx.x;
            barrier_wait(full + (uint32_t)(s % p.stages) * 8, (s / p.stages) & 1);
#pragma unroll
            for (int r = 0; r < STEP_ROWS; r++)
                part.x[r] = rows[r * p.share];
#pragma unroll
            for (int r = 0; r < STEP_ROWS; r++)
                t[r] = part.measure(r);
            own = step_fold(t, (float)N);
        }
        step_wait(); /* all have taken the rows of step s - 1, and told of them */
        if (s > 0)
            ask(s - 1 + p.stages);
        if (s < steps) {
            const int r = lane / (32 / STEP_ROWS), to = lane % (32 / STEP_ROWS);
            if (to < STEP_BLOCKS)
                step_tell(&slots[s % STEP_TURNS][r][rank * warps + warp], (uint32_t)to,
                          own);
            step_arrive();
        }
        if (s > 0)
            step_write(
                job, p, before,
                step_join(slots[(s - 1) % STEP_TURNS], STEP_BLOCKS * warps, 32.0f * N),
                s - 1, scale, bias);
        before = part;
    }
#endif
}

/* ---- launches ---------------------------------------------------------------------- */

/* As many clusters as are there at once; 0: none. */
template <typename T>
static int step_clusters(cudaLaunchConfig_t &config)
{
    int clusters = 0;
    config.gridDim = dim3(STEP_BLOCKS);
    return cudaOccupancyMaxActiveClusters(&clusters, step_kernel<T>, &config) ==
                   cudaSuccess
               ? clusters
               : 0;
}

template <typename T>
bool norm_step(const norm_job &job, cudaStream_t stream)
{
    const int packs = (int)job.cols / (16 / (int)sizeof(T)), share = packs / STEP_BLOCKS;
    const int stage = STEP_ROWS * share * 16;
    const int room =
        device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) -
        (int)sizeof(float2) * STEP_TURNS * STEP_ROWS * STEP_BLOCKS * STEP_THREADS / 32 -
        1024;
    step_shape p = {packs, share, stage ? room / stage : 0};
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    p.stages = p.stages < STEP_STAGES ? p.stages : STEP_STAGES;
    if (device_attribute(cudaDevAttrComputeCapabilityMajor) != 9 ||
        job.measure != NORM_CENTRED || job.residual || job.sum ||
        packs % (STEP_BLOCKS * 32) || share > STEP_THREADS || job.rows < STEP_LEAST ||
        job.rows > 0x3fffffff || p.stages < 2 ||
        shared_allow((const void *)step_kernel<T>, (size_t)(p.stages * stage)) !=
            cudaSuccess)
        return give_up();
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {STEP_BLOCKS, 1, 1};
    config.blockDim = dim3((unsigned)share);
    config.dynamicSmemBytes = (size_t)(p.stages * stage);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    const int clusters = step_clusters<T>(config);
    config.gridDim = dim3((unsigned)(clusters * STEP_BLOCKS));
    return (clusters > 0 &&
            cudaLaunchKernelEx(&config, step_kernel<T>, job, p) == cudaSuccess) ||
           give_up();
}

template bool norm_step<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_step<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
