/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalization of rows of halves whose scale and bias are too much for the
 * first-level cache: blocks stay, one on a multiprocessor, and each thread keeps the
 * weights of its columns in registers, and a row's elements as they lie. The copy engine
 * brings rows into two places, one of which is asked for again as soon as its row is in
 * registers.
 *
 * Memory serves multiprocessors unlike: with as many rows for each one, the last takes
 * 1.6 times as long as the first. So blocks take two rows by their number and ask for
 * all others.
 */
#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/common/product/wgmma.cuh"
#include "plugins/normalization/packed.cuh"

#define LONG_PLACES 2 /* of rows in shared memory */
#define LONG_WARPS 16
#define LONG_THREADS (LONG_WARPS * 32)

/* Elements' sum, and squares about their mean. */
struct long_part {
    float sum, square;
};

/* Of all packs of a thread; about its first element, one of those measured, so that no
 * more bits cancel than their number has. */
template <typename Part>
static __device__ inline long_part long_measure(const Part &p)
{
    const int E = Part::Packs * Part::N;
    float sum[4] = {}, square[4] = {}, v[Part::N];
    p.take(v, 0);
    const float pivot = v[0];
#pragma unroll
    for (int i = 0; i < Part::Packs; i++) {
        p.take(v, i);
#pragma unroll
        for (int k = 0; k < Part::N; k++) {
            const float d = v[k] - pivot;
            sum[k % 4] += d;
            square[k % 4] += d * d;
        }
    }
    const float s = sum[0] + sum[1] + (sum[2] + sum[3]);
    const float q = square[0] + square[1] + (square[2] + square[3]);
    return {fmaf(pivot, E, s), fmaxf(q - s * (s * (1.0f / E)), 0)};
}

/* Of parts of `each` elements that some lanes have, both sums in one chain (Chan, Golub
 * and LeVeque). */
static __device__ inline void long_join(long_part &t, int lanes, float each)
{
    float half = 0.5f / each;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        if (d >= lanes)
            continue;
        const float sum = __shfl_xor_sync(0xffffffffu, t.sum, d);
        const float square = __shfl_xor_sync(0xffffffffu, t.square, d);
        const float apart = t.sum - sum;
        t.sum += sum;
        t.square = fmaf(apart * half, apart, t.square + square);
        half *= 0.5f;
    }
}

/* Mean and squares of a row; one barrier. Even: all threads have all their packs. */
template <bool Even, typename Part>
static __device__ inline row_part long_moments(Part &p, row_part *parts, int count,
                                               float elements)
{
    const int warp = (int)threadIdx.x / 32;
    if constexpr (Even) {
        const float each = Part::Packs * Part::N;
        long_part t = long_measure(p);
        long_join(t, 32, each);
        if (threadIdx.x % 32 == 0)
            parts[warp] = {t.sum, 0, t.square, 0};
        __syncthreads();
        const row_part &other = parts[threadIdx.x % LONG_WARPS];
        t = {other.sum, other.square};
        long_join(t, LONG_WARPS, each * 32);
        return {t.sum, held_mean(t.sum, elements), t.square, elements};
    }
    const row_part t = packed_warp<true>(p, count);
    if (threadIdx.x % 32 == 0)
        parts[warp] = t;
    __syncthreads();
    return packed_join<LONG_WARPS, true>(parts, elements);
}

/* A row into a place, whose barrier tells when it is there; beyond the last row at once.
 */
static __device__ inline void long_fetch(const norm_job &job, int row, int *told,
                                         uint32_t place, uint32_t barrier)
{
    const uint32_t bytes = (uint32_t)job.cols * 2;
    *told = row;
    if (row >= (int)job.rows) {
        barrier_arrive(barrier);
        return;
    }
    barrier_expect(barrier, bytes);
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(place),
                 "l"((const char *)job.x + (int64_t)row * bytes), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* A thread's columns: packs `lane`, `lane` + LONG_THREADS, ... */
template <typename T, int P>
struct long_columns {
    typedef packed_part<T, P, false> part;
    static const int N = part::N, Weights = P * N / 4;
    float4 scale[Weights], bias[Weights];

    __device__ inline void load(const norm_job &job, int lane, int count)
    {
#pragma unroll
        for (int i = 0; i < Weights; i++) {
            const int pack = i / (N / 4);
            const int column = (lane + pack * LONG_THREADS) * N + i % (N / 4) * 4;
            scale[i] = packed_weights(pack < count ? job.scale : NULL, column, 1);
            bias[i] = packed_weights(pack < count ? job.bias : NULL, column, 0);
        }
    }

    __device__ inline void store(uint4 *y, const part &p, float mean, float factor,
                                 int count) const
    {
#pragma unroll
        for (int i = 0; i < P; i++) {
            pack<T, N> out;
            float v[N];
            p.take(v, i);
#pragma unroll
            for (int k = 0; k < N; k += 4)
                packed_round(&out.v[k], v + k, mean, factor, scale[(i * N + k) / 4],
                             bias[(i * N + k) / 4]);
            if (i < count)
                store_past(y + i * LONG_THREADS, *(const uint4 *)&out);
        }
    }
};

/* Rows beyond a block's first ones, in the order in which blocks ask. job.counters: rows
 * asked for, blocks that ended; who ends last leaves zeros. */
static __device__ inline int long_ask(const norm_job &job)
{
    return LONG_PLACES * (int)gridDim.x + (int)atomicAdd(job.counters, 1u);
}

static __device__ inline void long_end(const norm_job &job, int asked)
{
    if (asked >= 0 /* has come */ &&
        atomicInc(job.counters + 1, gridDim.x - 1) == gridDim.x - 1)
        job.counters[0] = 0;
}

template <typename T, int P, bool Even>
static __global__ void __launch_bounds__(LONG_THREADS, 1)
    long_kernel(const __grid_constant__ norm_job job)
{
#if __CUDA_ARCH__ >= 900
    wait_for_previous();
    launch_next();
    typedef long_columns<T, P> columns;
    extern __shared__ __align__(128) uint4 long_memory[];
    __shared__ uint64_t barriers[LONG_PLACES];
    __shared__ row_part parts[2][LONG_WARPS];
    __shared__ int told[LONG_PLACES]; /* rows */
    const int lane = (int)threadIdx.x, packs = (int)job.cols / columns::N;
    const int some = packs > lane ? (packs - lane + LONG_THREADS - 1) / LONG_THREADS : 0;
    const int count = Even ? P : some;
    int asked = 0;
    columns c;
    if (lane == 0) {
        for (int i = 0; i < LONG_PLACES; i++)
            barrier_init(shared_address(&barriers[i]), 1);
        barrier_publish();
        for (int i = 0; i < LONG_PLACES; i++)
            long_fetch(job, (int)(blockIdx.x + i * gridDim.x), &told[i],
                       shared_address(long_memory + i * packs),
                       shared_address(&barriers[i]));
        asked = long_ask(job);
    }
    c.load(job, lane, count);
    __syncthreads();
    for (int i = 0, parity = 0;; parity ^= i, i ^= 1) {
        const uint4 *place = long_memory + i * packs + lane;
        typename columns::part part;
        while (!barrier_passed(shared_address(&barriers[i]), parity)) {
        }
        const int row = told[i];
        if (row >= (int)job.rows)
            break;
#pragma unroll
        for (int k = 0; k < P; k++) {
            part.x[k] = {};
            if (k < count)
                part.x[k] = place[k * LONG_THREADS];
        }
        const row_part t = long_moments<Even>(part, parts[i], count, job.elements);
        if (lane == 0) { /* all have taken the row; what was asked for has come */
            long_fetch(job, asked, &told[i], shared_address(long_memory + i * packs),
                       shared_address(&barriers[i]));
            asked = long_ask(job);
        }
        const float factor = held_factor(job, t.square);
        part.forget();
        if (job.mean && lane == 0) {
            job.mean[row] = t.mean;
            job.inverse[row] = factor;
        }
        c.store((uint4 *)job.y + (int64_t)row * packs + lane, part, t.mean, factor,
                count);
    }
    if (lane == 0)
        long_end(job, asked);
#endif
}

/* ---- launches ---------------------------------------------------------------------- */

template <typename T, int P, bool Even>
static bool long_launch(const norm_job &job, cudaStream_t stream)
{
    const auto kernel = long_kernel<T, P, Even>;
    const size_t bytes = (size_t)LONG_PLACES * (size_t)job.cols * sizeof(T);
    const int64_t blocks = device_attribute(cudaDevAttrMultiProcessorCount);
    if (job.rows < LONG_PLACES * blocks || job.rows > 0x3fffffff ||
        device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ||
        shared_allow((const void *)kernel, bytes) != cudaSuccess)
        return give_up();
    launch_overlapped(kernel, (unsigned)blocks, LONG_THREADS, bytes, stream, job);
    return true;
}

template <typename T>
bool norm_long(const norm_job &job, cudaStream_t stream)
{
    const int64_t packs = job.cols / (16 / (int)sizeof(T));
    if (!job.counters || job.measure != NORM_CENTRED || job.residual || job.sum)
        return false;
    return packs < 3 * LONG_THREADS    ? long_launch<T, 3, false>(job, stream)
           : packs == 3 * LONG_THREADS ? long_launch<T, 3, true>(job, stream)
           : packs < 4 * LONG_THREADS  ? long_launch<T, 4, false>(job, stream)
           : packs == 4 * LONG_THREADS ? long_launch<T, 4, true>(job, stream)
                                       : false;
}

template bool norm_long<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_long<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
