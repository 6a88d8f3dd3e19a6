/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalization of rows of halves whose scale and bias are too much for the
 * first-level cache: a block stays on each multiprocessor and keeps both in shared
 * memory, and two teams of its warps have a row each, so that one computes while the
 * other waits. A team's next row is copied to where its threads alone will read it. Rows
 * are handed out one by one, for memory does not serve all multiprocessors alike.
 */
#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/normalization/packed.cuh"

#define TEAMS 2 /* of a block */
#define TEAM_WARPS 16
#define TEAM_THREADS (TEAM_WARPS * 32)

/* A thread's part of rows, at most P packs of each. */
template <typename T, int P>
struct team_rows {
    typedef packed_part<T, P, false> part;
    static const int N = part::N, Slots = P * TEAM_THREADS; /* of a team's row */
    static const int Weights = Slots * N / 4; /* scale's float4, and bias's */
    uint4 *slot;
    const float4 *scale; /* bias: Weights behind */
    const norm_job &job;
    int packs, lane, count; /* packs: of a row; count: the thread's */

    __device__ inline const uint4 *begin(int row) const
    {
        return (const uint4 *)job.x + (int64_t)row * packs + lane;
    }

    __device__ inline void load(part &p, int row) const
    {
        const uint4 *x = begin(row);
#pragma unroll
        for (int i = 0; i < P; i++) {
            p.x[i] = {};
            if (i < count && row < (int)job.rows)
                p.x[i] = load_past(x + i * TEAM_THREADS);
        }
    }

    __device__ inline void fetch(int row) const
    {
        const uint4 *x = begin(row);
#pragma unroll
        for (int i = 0; i < P; i++)
            if (i < count && row < (int)job.rows)
                copy_ahead<16>(slot + i * TEAM_THREADS, x + i * TEAM_THREADS);
        end_copies();
    }

    /* What was fetched, or zeros; then the slot is free. */
    __device__ inline void take(part &p) const
    {
        await_copies<0>();
#pragma unroll
        for (int i = 0; i < P; i++) {
            p.x[i] = {};
            if (i < count)
                p.x[i] = slot[i * TEAM_THREADS];
        }
        p.forget();
    }

    __device__ inline void store(const part &p, float mean, float factor, int row) const
    {
        uint4 *y = (uint4 *)job.y + (int64_t)row * packs + lane;
#pragma unroll
        for (int i = 0; i < P; i++) {
            pack<T, N> out;
            if (i >= count)
                continue;
#pragma unroll
            for (int k = 0; k < N; k += 4) {
                float v[N];
                const float4 *weights = scale + (i * N + k) / 4 * TEAM_THREADS;
                p.take(v, i);
                packed_round(&out.v[k], v + k, mean, factor, weights[0],
                             weights[Weights]);
            }
            store_past(y + i * TEAM_THREADS, *(const uint4 *)&out);
        }
    }
};

/* Scale and bias as threads will read them, a line of both teams' threads after the
 * other; blocks begin at different lines, so that they do not all ask for the same
 * columns. */
template <typename T, int P>
static __device__ inline void team_weights(float4 *to, const norm_job &job, int team,
                                           int lane)
{
    const int N = team_rows<T, P>::N, Lines = P * N / 4; /* of each of them */
#pragma unroll
    for (int k = 0; k < 2 * Lines / TEAMS; k++) {
        const int line = (team + k * TEAMS + (int)blockIdx.x) % (2 * Lines);
        const int part = line % Lines;
        const int column =
            (lane + part / (N / 4) * TEAM_THREADS) * N + part % (N / 4) * 4;
        const float *from = line < Lines ? job.scale : job.bias;
        const float none = line < Lines ? 1 : 0;
        if (!from)
            to[line * TEAM_THREADS + lane] = make_float4(none, none, none, none);
        else if (column < (int)job.cols)
            copy_ahead<16>(to + line * TEAM_THREADS + lane, from + column);
    }
    end_copies();
}

/* Elements' sum, and squares about their mean. */
struct team_part {
    float sum, square;
};

/* Of all packs of a thread; about its first element, one of those measured, so that no
 * more bits cancel than their number has. */
template <typename Part>
static __device__ inline team_part team_measure(const Part &p)
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

/* Of parts of `each` elements that some lanes have, two sums in one chain (Chan, Golub
 * and LeVeque). */
static __device__ inline void team_join(team_part &t, int lanes, float each)
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

static __device__ inline void team_barrier(int team)
{
    asm volatile("bar.sync %0, %1;" ::"r"(team + 1), "n"(TEAM_THREADS) : "memory");
}

/* Mean and squares of a row, from its threads'. Even: all of them have all their packs.
 */
template <bool Even, typename Part>
static __device__ inline row_part team_moments(Part &p, row_part *parts, int team,
                                               int count, float elements)
{
    const int warp = (int)threadIdx.x % TEAM_THREADS / 32;
    if constexpr (Even) {
        const float each = Part::Packs * Part::N;
        team_part t = team_measure(p);
        team_join(t, 32, each);
        if (threadIdx.x % 32 == 0)
            parts[warp] = {t.sum, 0, t.square, 0};
        team_barrier(team);
        const row_part &other = parts[threadIdx.x % TEAM_WARPS];
        t = {other.sum, other.square};
        team_join(t, TEAM_WARPS, each * 32);
        return {t.sum, held_mean(t.sum, elements), t.square, elements};
    }
    const row_part t = packed_warp<true>(p, count);
    if (threadIdx.x % 32 == 0)
        parts[warp] = t;
    team_barrier(team);
    return packed_join<TEAM_WARPS, true>(parts, elements);
}

/* Opaque even to ptxas, which else keeps elements in FP32, in twice as many registers.
 * zero: 0, which the compiler does not know. */
template <typename Part>
static __device__ inline void team_forget(Part &p, uint32_t zero)
{
#pragma unroll
    for (int i = 0; i < Part::Packs; i++)
        p.x[i] = {p.x[i].x ^ zero, p.x[i].y ^ zero, p.x[i].z ^ zero, p.x[i].w ^ zero};
}

/* A team has its first two rows by its number, and the others in the order in which they
 * are asked for. job.counters: rows asked for, teams that ended; zeros again at the end.
 */
template <typename T, int P, bool Even>
static __global__ void __launch_bounds__(TEAMS *TEAM_THREADS, 1)
    teams_kernel(const __grid_constant__ norm_job job, uint32_t zero)
{
    wait_for_previous();
    launch_next();
    typedef team_rows<T, P> shape;
    extern __shared__ float4 teams_memory[];
    __shared__ row_part parts[TEAMS][2][TEAM_WARPS];
    __shared__ int handed[TEAMS][2];
    const int team = (int)threadIdx.x / TEAM_THREADS;
    const int lane = (int)threadIdx.x % TEAM_THREADS;
    const int packs = (int)job.cols / shape::N, all = TEAMS * (int)gridDim.x;
    const int some = packs > lane ? (packs - lane + TEAM_THREADS - 1) / TEAM_THREADS : 0;
    const int count = Even ? P : some;
    uint4 *slots = (uint4 *)(teams_memory + 2 * shape::Weights);
    const shape rows = {
        slots + team * shape::Slots + lane, teams_memory + lane, job, packs, lane, count};
    int row = team * (int)gridDim.x + (int)blockIdx.x, next = row + all, asked = 0;
    typename shape::part part;
    rows.load(part, row);
    team_weights<T, P>(teams_memory, job, team, lane);
    rows.fetch(next);
    if (lane == 0)
        asked = (int)atomicAdd(job.counters, 1u);
    await_copies<1>();
    __syncthreads();
    for (int parity = 0; row < (int)job.rows; parity ^= 1) {
        if (lane == 0) { /* what was asked for a row ago is there */
            handed[team][parity] = 2 * all + asked;
            asked = (int)atomicAdd(job.counters, 1u);
        }
        const row_part t =
            team_moments<Even>(part, parts[team][parity], team, count, job.elements);
        const int after = handed[team][parity];
        const float factor = held_factor(job, t.square);
        team_forget(part, zero);
        if (job.mean && lane == 0) {
            job.mean[row] = t.mean;
            job.inverse[row] = factor;
        }
        rows.store(part, t.mean, factor, row);
        rows.take(part);
        rows.fetch(after);
        row = next;
        next = after;
    }
    if (lane == 0 && asked >= 0 &&
        atomicInc(job.counters + 1, (unsigned)all - 1) == (unsigned)all - 1)
        job.counters[0] = 0;
}

/* ---- launches ---------------------------------------------------------------------- */

template <typename T, int P, bool Even>
static bool teams_launch(const norm_job &job, cudaStream_t stream)
{
    typedef team_rows<T, P> shape;
    const auto kernel = teams_kernel<T, P, Even>;
    const size_t bytes = (size_t)2 * shape::Weights * sizeof(float4) +
                         (size_t)TEAMS * shape::Slots * sizeof(uint4);
    const int64_t blocks = device_attribute(cudaDevAttrMultiProcessorCount);
    if (job.rows < TEAMS * blocks || job.rows > 0x3fffffff ||
        device_attribute(cudaDevAttrComputeCapabilityMajor) < 8 ||
        shared_allow((const void *)kernel, bytes) != cudaSuccess)
        return give_up();
    launch_overlapped(kernel, (unsigned)blocks, TEAMS * TEAM_THREADS, bytes, stream, job,
                      0u);
    return true;
}

template <typename T>
bool norm_teams(const norm_job &job, cudaStream_t stream)
{
    const int64_t packs = job.cols / (16 / (int)sizeof(T));
    if (!job.counters || job.measure != NORM_CENTRED || job.residual || job.sum)
        return false;
    return packs < 3 * TEAM_THREADS    ? teams_launch<T, 3, false>(job, stream)
           : packs == 3 * TEAM_THREADS ? teams_launch<T, 3, true>(job, stream)
           : packs < 4 * TEAM_THREADS  ? teams_launch<T, 4, false>(job, stream)
           : packs == 4 * TEAM_THREADS ? teams_launch<T, 4, true>(job, stream)
                                       : false;
}

template bool norm_teams<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_teams<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
