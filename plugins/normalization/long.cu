/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer and rms normalization of rows whose weights are too much for the first-level
 * cache: blocks stay, one on a multiprocessor, and each thread keeps the weights of its
 * columns in registers, and a row's elements as they lie. The copy engine brings rows
 * into two places, one of which is asked for again as soon as its row is in registers.
 *
 * Memory serves multiprocessors unlike: with as many rows for each one, the last takes
 * 1.6 times as long as the first. So blocks take two rows by their number and ask for
 * all others.
 *
 * One block leaves memory alone while its threads measure a row, if a row is short. By an
 * impl of its own some blocks are beside each other on a multiprocessor. Their length
 * follows from the registers that they share (long_packs), and a block has no more warps
 * than its row has work for, so that at most one pack in P of a thread is of nothing.
 */
#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/common/product/wgmma.cuh"
#include "plugins/normalization/packed.cuh"

#define LONG_PLACES 2 /* of rows in shared memory */
#define LONG_WARPS 16
#define LONG_THREADS (LONG_WARPS * 32)
#define LONG_ROWS 0x3fffffff /* at most */
#define LONG_BESIDE 384      /* threads of a block beside another, at most */
#define LONG_WIDE 192        /* the same, of rows that these have no registers for */
#define LONG_OTHER 20        /* registers of a thread but for packs and weights */
#define LONG_LEAST 4096      /* elements: 32 KB of weights, which one block reads a row */
#define LONG_MOST 16384      /* elements of a row of a block alone */

/* Packs of a row that a thread has registers for where two blocks share a
 * multiprocessor's 65,536, which threads have by eights: a pack takes 4, its scale and
 * bias two for each element. 384 threads: 80 registers, three packs of halves (rows of up
 * to 9,216), five of floats (7,680). 192 threads: 168 registers, seven of halves (9,224
 * to 10,752). Between them are fewer elements: 256 threads have 128 registers, five
 * packs, 10,240; of 224, 14 warps count as 16 on four schedulers, each of which has
 * registers of its own. Shared memory, two places a block, would have room for twice as
 * much.
 *
 * weights: 1 without a bias. 384 threads: five packs of halves (15,360), seven of floats
 * (10,752). */
static constexpr int long_packs(int size, int threads, int weights)
{
    return (65536 / (2 * threads) / 8 * 8 - LONG_OTHER) / (4 + weights * (16 / size));
}

/* A row of rms norm that few packs a thread hold gets no more of them: more blocks of
 * fewer threads would have more rows by their number, and fewer by asking. */
enum long_form {
    LONG_NONE,
    LONG_FEW,   /* packs of a thread that keeps scale and bias */
    LONG_WIDER, /* the same of LONG_WIDE threads */
    LONG_FULL,  /* packs of a thread that keeps a scale alone */
    LONG_ALONE, /* one block a multiprocessor */
};

/* Blocks of a multiprocessor and the row of each, of constant memory: registers are
 * short. */
struct long_blocks {
    int threads, blocks;
    int packs;
    int more; /* threads that have all packs; others have one less */
    long_form form;
};

/* Elements' sum, and squares about their mean. */
struct long_part {
    float sum, square;
};

/* Of `count` packs of a thread, all or one less; about its first element, one of those
 * measured, so that no more bits cancel than their number has. */
template <typename Part>
static __device__ inline long_part long_measure(const Part &p, int count)
{
    const int N = Part::N, All = Part::Packs * N, Less = All - N;
    const bool all = count == Part::Packs;
    float sum[4] = {}, square[4] = {}, v[N];
    p.take(v, 0);
    const float pivot = v[0];
#pragma unroll
    for (int i = 0; i < Part::Packs; i++) {
        if (i + 1 == Part::Packs && !all)
            continue;
        p.take(v, i);
#pragma unroll
        for (int k = 0; k < N; k++) {
            const float d = v[k] - pivot;
            sum[k % 4] += d;
            square[k % 4] += d * d;
        }
    }
    const float s = sum[0] + sum[1] + (sum[2] + sum[3]);
    const float q = square[0] + square[1] + (square[2] + square[3]);
    const float each = all ? All : Less, inverse = all ? 1.0f / All : 1.0f / Less;
    return {fmaf(pivot, each, s), fmaxf(q - s * (s * inverse), 0)};
}

/* Of parts that some lanes have, of 0.5 / half elements each, both sums in one chain
 * (Chan, Golub and LeVeque). */
static __device__ inline void long_join(long_part &t, int lanes, float half)
{
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

/* The same of parts that differ: a lane has `each` elements, or 0, and all have so many.
 */
static __device__ inline row_part long_join_unlike(const long_part &t, int lanes,
                                                   float each, float elements)
{
    const float sum = lanes_sum(t.sum, lanes), mean = held_mean(sum, elements);
    const float d = held_mean(t.sum, each) - mean;
    return {sum, mean, lanes_sum(fmaf(d * each, d, t.square), lanes), elements};
}

/* Mean and squares of a row; one barrier. Even: all threads have all their packs. */
template <bool Even, typename Part>
static __device__ inline row_part long_moments(Part &p, row_part *parts, int count,
                                               float elements)
{
    const int warp = (int)threadIdx.x / 32;
    if constexpr (Even) {
        const float each = Part::Packs * Part::N;
        long_part t = long_measure(p, Part::Packs);
        long_join(t, 32, 0.5f / each);
        if (threadIdx.x % 32 == 0)
            parts[warp] = {t.sum, 0, t.square, 0};
        __syncthreads();
        const row_part &other = parts[threadIdx.x % LONG_WARPS];
        t = {other.sum, other.square};
        long_join(t, LONG_WARPS, 0.5f / (each * 32));
        return {t.sum, held_mean(t.sum, elements), t.square, elements};
    }
    const row_part t = packed_warp<true>(p, count);
    if (threadIdx.x % 32 == 0)
        parts[warp] = t;
    __syncthreads();
    return packed_join<LONG_WARPS, true>(parts, elements);
}

/* The same of a block beside others, where in one warp at most lanes have unlike
 * `count`s. */
template <typename Part>
static __device__ inline row_part long_moments_beside(const Part &p, row_part *parts,
                                                      int count, const long_blocks &each,
                                                      float elements)
{
    const int N = Part::N, P = Part::Packs;
    int thread; /* anew for each row: what follows of it would be kept in registers */
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    const int warp = thread / 32, slot = thread % LONG_WARPS;
    const int longer = min(max(each.more - warp * 32, 0), 32);
    const float n = (float)((32 * (P - 1) + longer) * N);
    long_part t = long_measure(p, count);
    if (longer % 32 == 0) {
        long_join(t, 32, count == P ? 0.5f / (P * N) : 0.5f / ((P - 1) * N));
    } else {
        const row_part all = long_join_unlike(t, 32, (float)(count * N), n);
        t = {all.sum, all.square};
    }
    if (thread % 32 == 0)
        parts[warp] = {t.sum, 0, t.square, n};
    __syncthreads();
    row_part other = {};
    if (slot < each.threads / 32)
        other = parts[slot];
    return long_join_unlike({other.sum, other.square}, LONG_WARPS, other.n, elements);
}

/* Squares of a row; zeros past a thread's packs add none. One barrier. */
template <typename Part>
static __device__ inline float long_squares(const Part &p, row_part *parts, int threads)
{
    const int slot = (int)threadIdx.x % LONG_WARPS;
    const float square = lanes_sum(p.squares(0, Part::Packs), 32);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32].square = square;
    __syncthreads();
    return lanes_sum(slot < threads / 32 ? parts[slot].square : 0, LONG_WARPS);
}

/* A row into a place, whose barrier tells when it is there; beyond the last row at once.
 */
template <typename T>
static __device__ inline void long_fetch(const norm_job &job, int row, int *told,
                                         uint32_t place, uint32_t barrier)
{
    const uint32_t bytes = (uint32_t)job.cols * (uint32_t)sizeof(T);
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

/* A thread's columns: packs `lane`, `lane` + threads, ... */
template <typename T, int P, bool Centred>
struct long_columns {
    typedef packed_part<T, P, false> part;
    static const int N = part::N, Weights = P * N / 4;
    float4 scale[Weights], bias[Centred ? Weights : 1];

    __device__ inline void load(const norm_job &job, int lane, int threads, int count)
    {
#pragma unroll
        for (int i = 0; i < Weights; i++) {
            const int pack = i / (N / 4);
            const int column = (lane + pack * threads) * N + i % (N / 4) * 4;
            scale[i] = packed_weights(pack < count ? job.scale : NULL, column, 1);
            if constexpr (Centred)
                bias[i] = packed_weights(pack < count ? job.bias : NULL, column, 0);
        }
    }

    __device__ inline void store(uint4 *y, const part &p, float mean, float factor,
                                 int threads, int count) const
    {
#pragma unroll
        for (int i = 0; i < P; i++) {
            pack<T, N> out;
            float v[N];
            p.take(v, i);
#pragma unroll
            for (int k = 0; k < N; k += 4)
                packed_round(&out.v[k], v + k, mean, factor, scale[(i * N + k) / 4],
                             Centred ? bias[(i * N + k) / 4] : float4{});
            if (i < count)
                store_past(y + i * threads, *(const uint4 *)&out);
        }
    }
};

/* Rows beyond a block's first ones, in the order in which blocks ask. job.counters: rows
 * asked for, blocks that ended; who ends last leaves zeros.
 *
 * Late: the number is awaited when the row is asked for. Opaque, as a warp's sums are
 * gathered, which waits at once, some 0.7 us ahead of its stores. */
template <bool Late>
static __device__ inline int long_ask(const norm_job &job)
{
    int asked;
    if constexpr (Late)
        asm volatile("atom.global.inc.u32 %0, [%1], 0x7fffffff;\n"
                     : "=r"(asked)
                     : "l"(job.counters));
    else
        asked = LONG_PLACES * (int)gridDim.x + (int)atomicAdd(job.counters, 1u);
    return asked;
}

template <bool Late>
static __device__ inline int long_row(int asked)
{
    return Late ? LONG_PLACES * (int)gridDim.x + asked : asked;
}

static __device__ inline void long_end(const norm_job &job, int asked)
{
    if (asked >= 0 /* has come */ &&
        atomicInc(job.counters + 1, gridDim.x - 1) == gridDim.x - 1)
        job.counters[0] = 0;
}

/* Most: LONG_THREADS alone, or fewer of a block beside others. */
template <typename T, int P, int Most, bool Even, bool Centred>
static __global__ void __launch_bounds__(Most, Most < LONG_THREADS ? 2 : 1)
    long_kernel(const __grid_constant__ norm_job job,
                const __grid_constant__ long_blocks each)
{
#if __CUDA_ARCH__ >= 900
    wait_for_previous();
    launch_next();
    typedef long_columns<T, P, Centred> columns;
    extern __shared__ __align__(128) uint4 long_memory[];
    __shared__ uint64_t barriers[LONG_PLACES];
    __shared__ row_part parts[2][LONG_WARPS];
    __shared__ int told[LONG_PLACES]; /* rows */
    const bool Beside = Most < LONG_THREADS;
    const int threads = Beside ? each.threads : LONG_THREADS;
    const int lane = (int)threadIdx.x;
    const int packs = Beside ? each.packs : (int)job.cols / columns::N;
    const int some = packs > lane ? (packs - lane + LONG_THREADS - 1) / LONG_THREADS : 0;
    const int count = Even ? P : !Beside ? some : lane < each.more ? P : P - 1;
    int asked = 0;
    columns c;
    if (lane == 0) {
        for (int i = 0; i < LONG_PLACES; i++)
            barrier_init(shared_address(&barriers[i]), 1);
        barrier_publish();
        for (int i = 0; i < LONG_PLACES; i++)
            long_fetch<T>(job, (int)(blockIdx.x + i * gridDim.x), &told[i],
                          shared_address(long_memory + i * packs),
                          shared_address(&barriers[i]));
        asked = long_ask<Beside>(job);
    }
    c.load(job, lane, threads, count);
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
                part.x[k] = place[k * threads];
        }
        row_part t = {};
        if constexpr (!Centred)
            t.square = long_squares(part, parts[i], threads);
        else if constexpr (Beside)
            t = long_moments_beside(part, parts[i], count, each, job.elements);
        else
            t = long_moments<Even>(part, parts[i], count, job.elements);
        if (lane == 0) { /* all have taken the row; what was asked for has come */
            long_fetch<T>(job, long_row<Beside>(asked), &told[i],
                          shared_address(long_memory + i * packs),
                          shared_address(&barriers[i]));
            asked = long_ask<Beside>(job);
        }
        const float factor = held_factor(job, t.square);
        if constexpr (Beside)
            part.forget_all((uint32_t)job.batch);
        else
            part.forget();
        if (Centred && job.mean && lane == 0) {
            job.mean[row] = t.mean;
            job.inverse[row] = factor;
        }
        c.store((uint4 *)job.y + (int64_t)row * packs + lane, part, t.mean, factor,
                threads, count);
    }
    if (lane == 0)
        long_end(job, asked);
#endif
}

/* ---- launches ---------------------------------------------------------------------- */

/* 24 warps a multiprocessor, or fewer. each: packs of a thread. */
static long_blocks long_beside(int64_t packs, int each, long_form form)
{
    const int64_t threads = (packs + 32 * each - 1) / (32 * each) * 32;
    if (threads > LONG_BESIDE)
        return {};
    return {(int)threads, 2 * LONG_BESIDE / (int)threads, (int)packs,
            (int)(packs - (each - 1) * threads), form};
}

static long_blocks long_blocks_of(int size, bool centred, int64_t cols)
{
    const int64_t elements = 16 / size, packs = cols / elements;
    const int few = long_packs(size, LONG_BESIDE, 2), wide = long_packs(2, LONG_WIDE, 2);
    if (cols % elements || cols < LONG_LEAST)
        return {};
    long_blocks each = long_beside(packs, few, LONG_FEW);
    if (each.form == LONG_NONE && !centred)
        each = long_beside(packs, long_packs(size, LONG_BESIDE, 1), LONG_FULL);
    if (each.form == LONG_NONE && !centred && cols <= LONG_MOST)
        each = {LONG_THREADS, 1, (int)packs, 0, LONG_ALONE};
    if (each.form == LONG_NONE && centred && size == 2 && packs <= wide * LONG_WIDE)
        each = {LONG_WIDE, 2, (int)packs, (int)packs - (wide - 1) * LONG_WIDE,
                LONG_WIDER};
    return each;
}

template <typename T, int P, int Most, bool Even, bool Centred>
static bool long_launch(const norm_job &job, const long_blocks &each, cudaStream_t stream)
{
    const auto kernel = long_kernel<T, P, Most, Even, Centred>;
    const size_t bytes = (size_t)LONG_PLACES * (size_t)job.cols * sizeof(T);
    const int64_t blocks =
        (int64_t)each.blocks * device_attribute(cudaDevAttrMultiProcessorCount);
    if (job.rows < LONG_PLACES * blocks || job.rows > LONG_ROWS ||
        device_attribute(cudaDevAttrComputeCapabilityMajor) < 9 ||
        shared_allow((const void *)kernel, bytes) != cudaSuccess)
        return give_up();
    launch_overlapped(kernel, (unsigned)blocks, (unsigned)each.threads, bytes, stream,
                      job, each);
    return true;
}

template <typename T, int P, bool Even>
static bool long_alone(const norm_job &job, cudaStream_t stream)
{
    return long_launch<T, P, LONG_THREADS, Even, true>(job, {LONG_THREADS, 1}, stream);
}

static bool long_takes(const norm_job &job)
{
    return job.counters && !job.residual && !job.sum &&
           (job.measure == NORM_CENTRED || (job.measure == NORM_SQUARES && !job.bias));
}

template <typename T>
bool norm_long(const norm_job &job, cudaStream_t stream)
{
    const int64_t packs = job.cols / (16 / (int)sizeof(T));
    if (!long_takes(job) || job.measure != NORM_CENTRED)
        return false;
    return packs < 3 * LONG_THREADS    ? long_alone<T, 3, false>(job, stream)
           : packs == 3 * LONG_THREADS ? long_alone<T, 3, true>(job, stream)
           : packs < 4 * LONG_THREADS  ? long_alone<T, 4, false>(job, stream)
           : packs == 4 * LONG_THREADS ? long_alone<T, 4, true>(job, stream)
                                       : false;
}

template <typename T, bool Centred>
static bool long_some(const norm_job &job, const long_blocks &each, cudaStream_t stream)
{
    const int size = (int)sizeof(T), Alone = LONG_MOST * size / 16 / LONG_THREADS;
    const int Few = long_packs(size, LONG_BESIDE, 2);
    const int Full = long_packs(size, LONG_BESIDE, 1);
    if (each.form == LONG_FEW)
        return long_launch<T, Few, LONG_BESIDE, false, Centred>(job, each, stream);
    if constexpr (!Centred)
        return each.form == LONG_FULL
                   ? long_launch<T, Full, LONG_BESIDE, false, false>(job, each, stream)
                   : long_launch<T, Alone, LONG_THREADS, false, false>(job, each, stream);
    else if constexpr (sizeof(T) == 2)
        return long_launch<T, long_packs(2, LONG_WIDE, 2), LONG_WIDE, false, true>(
            job, each, stream);
    return false;
}

template <typename T>
bool norm_beside(const norm_job &job, cudaStream_t stream)
{
    const bool centred = job.measure == NORM_CENTRED;
    const long_blocks each = long_blocks_of((int)sizeof(T), centred, job.cols);
    if (each.form == LONG_NONE || !long_takes(job))
        return false;
    return centred ? long_some<T, true>(job, each, stream)
                   : long_some<T, false>(job, each, stream);
}

int64_t norm_beside_rows(int32_t dtype, bool centred, int64_t cols)
{
    const long_blocks each = long_blocks_of(dtype == STRATA_FP32 ? 4 : 2, centred, cols);
    return (int64_t)LONG_PLACES * each.blocks *
           device_attribute(cudaDevAttrMultiProcessorCount);
}

template bool norm_long<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_long<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
template bool norm_beside<float>(const norm_job &job, cudaStream_t stream);
template bool norm_beside<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_beside<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
