/* SPDX-License-Identifier: Apache-2.0
 *
 * Layer normalization of rows of halves whose scale and bias are too much for the
 * first-level cache: blocks stay, one on a multiprocessor, and each thread keeps scale in
 * registers and bias in shared memory for its columns, and a row's elements as they lie,
 * two in a register. Two rows share joins and bias, while the next two are copied to
 * where the thread alone will read them.
 */
#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"
#include "plugins/normalization/packed.cuh"

#define PAIRS_ROWS 2      /* at once */
#define PAIRS_STAGES 2    /* of them in shared memory */
#define PAIRS_PACKS 4     /* of a row, that a thread holds */
#define PAIRS_THREADS 512 /* of a block, which has a row */

/* A thread's part of rows, the second one of two `by` behind the first. */
template <typename T>
struct pairs_rows {
    typedef packed_part<T, PAIRS_PACKS, false> part;
    static const int N = part::N;
    uint4 *slots;
    float4 *bias;
    const norm_job &job;
    int packs, lane, count, by; /* packs: of a row; count: the thread's */

    __device__ inline bool there(int row) const
    {
        return row < (int)job.rows;
    }

    __device__ inline uint4 *slot(int stage, int r, int i) const
    {
        return slots + ((stage * PAIRS_ROWS + r) * PAIRS_PACKS + i) * PAIRS_THREADS;
    }

    __device__ inline void fetch(int row, int stage) const
    {
#pragma unroll
        for (int r = 0; r < PAIRS_ROWS; r++, row += by) {
            const uint4 *x = (const uint4 *)job.x + (int64_t)row * packs + lane;
#pragma unroll
            for (int i = 0; i < PAIRS_PACKS; i++)
                if (there(row) && i < count)
                    copy_ahead<16>(slot(stage, r, i), x + i * PAIRS_THREADS);
        }
        end_copies();
    }

    __device__ inline void take(part &p, int row, int stage, int r) const
    {
#pragma unroll
        for (int i = 0; i < PAIRS_PACKS; i++) {
            p.x[i] = {};
            if (i < count && there(row))
                p.x[i] = *slot(stage, r, i);
        }
    }

    /* Scale stays with the thread, bias where it alone will read it. */
    __device__ inline void weights(float4 (&scale)[PAIRS_PACKS * N / 4]) const
    {
#pragma unroll
        for (int i = 0; i < PAIRS_PACKS * N / 4; i++) {
            const int pack = i / (N / 4);
            const int column = (lane + pack * PAIRS_THREADS) * N + i % (N / 4) * 4;
            const bool has = pack < count;
            scale[i] = packed_weights(has ? job.scale : NULL, column, 1);
            bias[i * PAIRS_THREADS] = packed_weights(has ? job.bias : NULL, column, 0);
        }
    }

    __device__ inline void store(const part (&p)[PAIRS_ROWS],
                                 const row_part (&t)[PAIRS_ROWS],
                                 const float (&factor)[PAIRS_ROWS],
                                 const float4 (&scale)[PAIRS_PACKS * N / 4],
                                 int row) const
    {
        pack<T, N> *y = (pack<T, N> *)job.y + (int64_t)row * packs + lane;
        const int64_t below = (int64_t)by * packs;
#pragma unroll
        for (int i = 0; i < PAIRS_PACKS; i++) {
            pack<T, N> out[PAIRS_ROWS];
            if (i >= count)
                continue;
#pragma unroll
            for (int k = 0; k < N; k += 4) {
                const int at = (i * N + k) / 4;
                const float4 addend = bias[at * PAIRS_THREADS];
#pragma unroll
                for (int r = 0; r < PAIRS_ROWS; r++) {
                    float v[N];
                    p[r].take(v, i);
                    packed_round(&out[r].v[k], v + k, t[r].mean, factor[r], scale[at],
                                 addend);
                }
            }
#pragma unroll
            for (int r = 0; r < PAIRS_ROWS; r++)
                if (there(row + r * by))
                    y[r * below + i * PAIRS_THREADS] = out[r];
        }
    }
};

/* Of rows at once: sums of all lanes. */
static __device__ inline void pairs_sum(float (&x)[PAIRS_ROWS])
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
#pragma unroll
        for (int r = 0; r < PAIRS_ROWS; r++)
            x[r] += __shfl_xor_sync(0xffffffffu, x[r], d);
}

/* Moments of rows; n: elements of a row that the warp has. */
template <typename Part>
static __device__ inline void pairs_measure(row_part (&t)[PAIRS_ROWS],
                                            Part (&part)[PAIRS_ROWS], int count, float n,
                                            float elements, int parity)
{
    const int warps = PAIRS_THREADS / 32, warp = (int)threadIdx.x / 32;
    __shared__ row_part parts[2][PAIRS_ROWS][warps];
    float sum[PAIRS_ROWS], square[PAIRS_ROWS];
#pragma unroll
    for (int r = 0; r < PAIRS_ROWS; r++)
        sum[r] = part[r].sum();
    pairs_sum(sum);
#pragma unroll
    for (int r = 0; r < PAIRS_ROWS; r++) {
        t[r] = {sum[r], held_mean(sum[r], n), 0, n};
        part[r].forget();
        square[r] = part[r].squares(t[r].mean, count);
    }
    pairs_sum(square);
#pragma unroll
    for (int r = 0; r < PAIRS_ROWS; r++) {
        t[r].square = square[r];
        if (threadIdx.x % 32 == 0)
            parts[parity][r][warp] = t[r];
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < PAIRS_ROWS; r++)
        t[r] = packed_join<warps, true>(parts[parity][r], elements);
}

template <typename T>
static __global__ void __launch_bounds__(PAIRS_THREADS, 1)
    pairs_kernel(const __grid_constant__ norm_job job)
{
    wait_for_previous();
    launch_next();
    typedef pairs_rows<T> shape;
    extern __shared__ uint4 pairs[];
    const int lane = (int)threadIdx.x, packs = (int)job.cols / shape::N;
    const int by = (int)gridDim.x, step = PAIRS_ROWS * by;
    const int count =
        packs > lane ? (packs - lane + PAIRS_THREADS - 1) / PAIRS_THREADS : 0;
    float4 *bias =
        (float4 *)(pairs + PAIRS_STAGES * PAIRS_ROWS * PAIRS_PACKS * PAIRS_THREADS);
    const shape rows = {pairs + lane, bias + lane, job, packs, lane, count, by};
    const float n = lanes_sum((float)(count * shape::N), 32);
    float4 scale[PAIRS_PACKS * shape::N / 4];
    int stage = 0;
    rows.fetch((int)blockIdx.x, 0);
    rows.weights(scale);
    for (int row = (int)blockIdx.x; row < (int)job.rows; row += step, stage ^= 1) {
        typename shape::part part[PAIRS_ROWS];
        row_part t[PAIRS_ROWS];
        float factor[PAIRS_ROWS];
        rows.fetch(row + step, stage ^ 1);
        await_copies<PAIRS_STAGES - 1>();
#pragma unroll
        for (int r = 0; r < PAIRS_ROWS; r++)
            rows.take(part[r], row + r * by, stage, r);
        pairs_measure(t, part, count, n, job.elements, stage);
#pragma unroll
        for (int r = 0; r < PAIRS_ROWS; r++) {
            factor[r] = held_factor(job, t[r].square);
            part[r].forget();
            if (job.mean && lane == 0 && rows.there(row + r * by)) {
                job.mean[row + r * by] = t[r].mean;
                job.inverse[row + r * by] = factor[r];
            }
        }
        rows.store(part, t, factor, scale, row);
    }
}

/* ---- launches ---------------------------------------------------------------------- */

template <typename T>
bool norm_pairs(const norm_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T), packs = PAIRS_PACKS * PAIRS_THREADS;
    const size_t bytes = (size_t)PAIRS_STAGES * PAIRS_ROWS * packs * 16 +
                         (size_t)packs * N * sizeof(float);
    const int64_t blocks = device_attribute(cudaDevAttrMultiProcessorCount);
    const auto kernel = pairs_kernel<T>;
    if (job.measure != NORM_CENTRED || job.residual || job.sum || job.cols > packs * N ||
        job.rows < PAIRS_ROWS * blocks || job.rows > 0x3fffffff ||
        device_attribute(cudaDevAttrComputeCapabilityMajor) < 8 ||
        shared_allow((const void *)kernel, bytes) != cudaSuccess)
        return give_up();
    launch_overlapped(kernel, (unsigned)blocks, PAIRS_THREADS, bytes, stream, job);
    return true;
}

template bool norm_pairs<__half>(const norm_job &job, cudaStream_t stream);
template bool norm_pairs<__nv_bfloat16>(const norm_job &job, cudaStream_t stream);
