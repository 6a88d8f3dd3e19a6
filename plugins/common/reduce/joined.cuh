/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of long columns in one launch: a line of columns is a block's, or a cluster's of
 * two that share the rows, a block on a multiprocessor. So nothing is left for a second
 * launch, which costs some 2 us, and nothing lies in memory between. The first block
 * joins the second's, so results are the same each time.
 *
 * Bytes under way on a multiprocessor: 1,024 threads with four packs each, 64 KB.
 */
#ifndef PLUGINS_COMMON_REDUCE_JOINED_CUH
#define PLUGINS_COMMON_REDUCE_JOINED_CUH

#include "plugins/common/copy_ahead.cuh"
#include "plugins/common/reduce/reduce.cuh"

#define JOINED_PACKS 8 /* side by side: a line of memory */
#define JOINED_THREADS 1024
#define JOINED_UNROLL 4
#define JOINED_DOWN (JOINED_THREADS / JOINED_PACKS)
#define JOINED_ROWS 4 /* batches of loads of a thread at least */

/* Of a block, each column once. A lane's columns are those of the lanes that are alike
 * modulo JOINED_PACKS. */
template <int N, typename Op>
static __device__ inline void joined_block(const Op &op, typename Op::Tally (&t)[N],
                                           typename Op::Tally (&mine)[N * JOINED_PACKS])
{
    const int Warps = JOINED_THREADS / 32, Columns = N * JOINED_PACKS;
    const int Team = JOINED_THREADS / Columns; /* threads of a column */
    __shared__ typename Op::Tally warps[Warps][Columns + 1];
    const int lane = (int)threadIdx.x % 32, own = (int)threadIdx.x % Team;
    const int column = (int)threadIdx.x / Team;
#pragma unroll
    for (int k = 0; k < N; k++) {
#pragma unroll
        for (int d = 16; d >= JOINED_PACKS; d /= 2)
            op.join(t[k], op.below(t[k], d));
        if (lane < JOINED_PACKS)
            warps[threadIdx.x / 32][lane * N + k] = t[k];
    }
    __syncthreads();
    typename Op::Tally all = warps[own][column];
#pragma unroll
    for (int w = own + Team; w < Warps; w += Team)
        op.join(all, warps[w][column]);
    join_lanes(op, all, Team);
    if (own == 0)
        mine[column] = all;
}

static __device__ inline void joined_meet(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;\n" ::
                     : "memory");
#endif
}

/* What lies at `mine` in another block of the cluster. */
template <typename Tally>
static __device__ inline Tally joined_other(const Tally *mine, int block)
{
    Tally other = {};
#if __CUDA_ARCH__ >= 900
    uint32_t words[sizeof(Tally) / 4], at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(at)
        : "r"((uint32_t)__cvta_generic_to_shared(mine)), "r"(block));
#pragma unroll
    for (int w = 0; w < (int)sizeof(Tally) / 4; w++)
        asm volatile("ld.shared::cluster.u32 %0, [%1];"
                     : "=r"(words[w])
                     : "r"(at + w * 4)
                     : "memory");
    memcpy(&other, words, sizeof other);
#endif
    return other;
}

/* Dense columns, of which all packs are whole. sharers: blocks of a cluster, 1 or 2. */
template <typename T, int N, typename Op>
static __global__ void __launch_bounds__(JOINED_THREADS, 1)
    joined_kernel(const __grid_constant__ reduce_cut cut, Op op, int sharers)
{
    typedef typename Op::Tally Tally;
    const int U = JOINED_UNROLL, Down = JOINED_DOWN;
    __shared__ Tally mine[N * JOINED_PACKS];
    launch_next();
    wait_for_previous();
    const reduce_plan &p = cut.plan;
    const int rank = (int)(blockIdx.x % sharers), column = (int)threadIdx.x;
    const int64_t group = blockIdx.x / sharers;
    const int64_t kept = group / cut.spans, span = group - kept * cut.spans;
    const int64_t first = span * JOINED_PACKS * N, to = cut.rows * (rank + 1) / sharers;
    const T *x = (const T *)cut.x + place_of(p.keep, p.n_kept, kept, false) + first +
                 threadIdx.x % JOINED_PACKS * N;
    Tally t[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        op.start(t[k]);
    int64_t i = cut.rows * rank / sharers + threadIdx.x / JOINED_PACKS;
    for (; i + (U - 1) * Down < to; i += U * Down) {
        pack<T, N> v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] = load_once<T, N>(x + (i + u * Down) * p.width);
        take_rows(op, t, v, i, Down, to, true);
    }
    for (; i < to; i += Down) {
        pack<T, N> v[1] = {load_once<T, N>(x + i * p.width)};
        take_rows(op, t, v, i, Down, to, true);
    }
    joined_block(op, t, mine);
    sharers > 1 ? joined_meet() : __syncthreads();
    if (rank == 0 && column < N * JOINED_PACKS) {
        Tally all = mine[column];
        if (sharers > 1)
            op.join(all, joined_other(&mine[column], 1));
        op.close(all, output_at(cut, kept * p.width + first + column));
    }
    if (sharers > 1) /* shared memory ends with its block, and the first reads it */
        joined_meet();
}

/* Blocks of a cluster: as many as fill the device in one wave, where packs of columns
 * come in whole lines and each thread has many rows; 0: there is no such number. */
template <typename T, int N>
static int joined_sharers(const reduce_cut &c)
{
    const int64_t most = device_attribute(cudaDevAttrMultiProcessorCount);
    const int64_t packs = c.plan.width / N, lines = c.plan.kept * (packs / JOINED_PACKS);
    const int sharers = lines * 2 <= most ? 2 : 1;
    const bool dense = reduce_width(&c.plan, N) == N && c.plan.width > 1 &&
                       c.plan.n_gone == 0 && packs % JOINED_PACKS == 0;
    const bool full = lines * sharers <= most && lines * sharers * 10 >= most * 9;
    const bool many =
        c.rows >= (int64_t)sharers * JOINED_DOWN * JOINED_UNROLL * JOINED_ROWS &&
        c.rows < 1 << 30;
    return dense && full && many &&
                   device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9
               ? sharers
               : 0;
}

/* false: this is not for it, and another way is to be taken. */
template <typename T, int N, typename Op>
static bool joined_launch(reduce_cut c, const Op &op, cudaStream_t stream)
{
    const int sharers = joined_sharers<T, N>(c);
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    if (sharers == 0)
        return false;
    c.pieces = 1;
    c.spans = (int32_t)(c.plan.width / N / JOINED_PACKS);
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {(unsigned)sharers, 1, 1};
    config.gridDim = dim3((unsigned)(c.plan.kept * c.spans * sharers));
    config.blockDim = dim3(JOINED_THREADS);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = 2;
    return cudaLaunchKernelEx(&config, joined_kernel<T, N, Op>, c, op, sharers) ==
               cudaSuccess ||
           give_up();
}

#endif /* PLUGINS_COMMON_REDUCE_JOINED_CUH */
