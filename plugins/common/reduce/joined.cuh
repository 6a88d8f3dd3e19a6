/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of long columns in one launch: a line of columns is a block's, or a cluster's of
 * two that share the rows, a block on a multiprocessor. So nothing is left for a second
 * launch, which costs some 2 us, and nothing lies in memory between. The first block
 * joins the second's, so results are the same each time.
 *
 * Bytes under way on a multiprocessor: 1,024 threads with four packs each, 64 KB. What
 * counts besides is what comes before the first load and behind the last: places are
 * found without divisions, from few parameters, and the second block sends its sums to
 * where the first awaits them, so that none waits for the other's end.
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

/* Distances in elements: of rows; of kept ones that are not side by side, blockIdx.y, in
 * and out; of columns of the output. */
struct joined_cut {
    const void *x;
    int64_t pitch, in, out, step;
    int32_t rows;
};

/* Of a warp: a lane's columns are those of the lanes that are alike modulo
 * JOINED_PACKS. */
template <int N, typename Op>
static __device__ inline void join_alike(const Op &op, typename Op::Tally (&t)[N])
{
#pragma unroll
    for (int k = 0; k < N; k++)
#pragma unroll
        for (int d = 16; d >= JOINED_PACKS; d /= 2)
            op.join(t[k], op.below(t[k], d));
}

/* Of a block: column threadIdx.x / Team, in the first thread of its team. */
template <int N, int Team, typename Op>
static __device__ inline typename Op::Tally joined_block(const Op &op,
                                                         typename Op::Tally (&t)[N])
{
    const int Warps = JOINED_THREADS / 32, Columns = N * JOINED_PACKS;
    __shared__ typename Op::Tally warps[Warps][Columns + 1];
    const int lane = (int)threadIdx.x % 32, own = (int)threadIdx.x % Team;
    const int column = (int)threadIdx.x / Team;
    join_alike<N>(op, t);
    if (lane < JOINED_PACKS)
#pragma unroll
        for (int k = 0; k < N; k++)
            warps[threadIdx.x / 32][lane * N + k] = t[k];
    __syncthreads();
    typename Op::Tally all = warps[own][column];
#pragma unroll
    for (int w = own + Team; w < Warps; w += Team)
        op.join(all, warps[w][column]);
    join_lanes(op, all, Team);
    return all;
}

#if __CUDA_ARCH__ >= 900
/* Of a cluster's first block: `told` ends its phase once so many bytes have come. One
 * thread sets it up, then all threads of the cluster arrive, and wait ahead of a send. */
static __device__ inline void joined_expect(uint64_t *told, uint32_t bytes)
{
    const uint32_t barrier = (uint32_t)__cvta_generic_to_shared(told);
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n"
        "fence.mbarrier_init.release.cluster;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier),
        "r"(bytes)
        : "memory");
}

/* Relaxed: with a release the first loads would come behind a fence of all memory. */
static __device__ inline void joined_arrive(void)
{
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
}

static __device__ inline void joined_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;\n" ::: "memory");
}

/* To the same places of the cluster's first block. */
template <typename Tally>
static __device__ inline void joined_send(Tally *to, uint64_t *told, const Tally &t)
{
    uint32_t word;
    static_assert(sizeof t == sizeof word, "a tally is sent as one word");
    memcpy(&word, &t, sizeof word);
    asm volatile("{\n"
                 ".reg .b32 to, told;\n"
                 "mapa.shared::cluster.u32 to, %0, 0;\n"
                 "mapa.shared::cluster.u32 told, %1, 0;\n"
                 "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [to], %2, "
                 "[told];\n"
                 "}\n" ::"r"((uint32_t)__cvta_generic_to_shared(to)),
                 "r"((uint32_t)__cvta_generic_to_shared(told)), "r"(word)
                 : "memory");
}

static __device__ inline void joined_await(uint64_t *told)
{
    uint32_t passed = 0;
    while (!passed)
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], "
                     "0;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}\n"
                     : "=r"(passed)
                     : "r"((uint32_t)__cvta_generic_to_shared(told))
                     : "memory");
}
#endif

/* Dense columns, of which all packs are whole. Sharers: blocks of a cluster, 1 or 2. */
template <typename T, int N, int Sharers, typename Op>
static __global__ void __launch_bounds__(JOINED_THREADS, 1)
    joined_kernel(const __grid_constant__ joined_cut cut, const __grid_constant__ Op op)
{
#if __CUDA_ARCH__ >= 900
    typedef typename Op::Tally Tally;
    const int U = JOINED_UNROLL, Down = JOINED_DOWN, Columns = N * JOINED_PACKS;
    const int Team = JOINED_THREADS / Columns; /* threads of a column, at the end */
    __shared__ Tally other[Columns];
    __shared__ __align__(8) uint64_t told;
    const int rank = Sharers > 1 ? (int)(blockIdx.x % Sharers) : 0;
    const int line = (int)(blockIdx.x / Sharers), share = cut.rows / Sharers;
    const int to = rank + 1 == Sharers ? cut.rows : share * (rank + 1);
    const int first = share * rank + (int)threadIdx.x / JOINED_PACKS;
    const T *x = (const T *)cut.x + blockIdx.y * cut.in + first * cut.pitch +
                 (line * JOINED_PACKS + (int)threadIdx.x % JOINED_PACKS) * N;
    const int64_t down = Down * cut.pitch;
    Tally t[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        op.start(t[k]);
    launch_next();
    wait_for_previous();
    if (Sharers > 1) {
        if (threadIdx.x == 0)
            joined_expect(&told, sizeof other);
        __syncwarp();
        joined_arrive();
    }
    int i = first;
#pragma unroll 1
    for (; i + (U - 1) * Down < to; i += U * Down, x += U * down) {
        pack<T, N> v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] = load_once<T, N>(x + u * down);
        take_rows(op, t, v, i, Down, to, true);
    }
#pragma unroll 1
    for (; i < to; i += Down, x += down) {
        pack<T, N> v[1] = {load_once<T, N>(x)};
        take_rows(op, t, v, i, Down, to, true);
    }
    Tally all = joined_block<N, Team>(op, t);
    const int column = (int)threadIdx.x / Team;
    if (Sharers > 1)
        joined_wait(); /* the first has set up what the second writes to */
    if (threadIdx.x % Team)
        return;
    if (rank > 0) {
        joined_send(&other[column], &told, all);
        return;
    }
    if (Sharers > 1) {
        joined_await(&told);
        op.join(all, other[column]);
    }
    op.close(all, blockIdx.y * cut.out + (line * Columns + column) * cut.step);
#endif
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
                       c.plan.n_gone == 0 && packs % JOINED_PACKS == 0 &&
                       c.plan.n_kept <= 1;
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
static bool joined_launch(const reduce_cut &c, const Op &op, cudaStream_t stream)
{
    const reduce_plan &p = c.plan;
    const int sharers = joined_sharers<T, N>(c);
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    if (sharers == 0)
        return false;
    const joined_cut cut = {
        c.x,    p.width,        p.n_kept ? p.keep[0].in : 0, p.n_kept ? p.keep[0].out : 0,
        p.step, (int32_t)c.rows};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {(unsigned)sharers, 1, 1};
    config.gridDim =
        dim3((unsigned)(p.width / N / JOINED_PACKS * sharers), (unsigned)p.kept);
    config.blockDim = dim3(JOINED_THREADS);
    config.stream = stream;
    config.attrs = attributes;
    config.numAttrs = sharers > 1 ? 2 : 1;
    const auto kernel =
        sharers > 1 ? joined_kernel<T, N, 2, Op> : joined_kernel<T, N, 1, Op>;
    return cudaLaunchKernelEx(&config, kernel, cut, op) == cudaSuccess || give_up();
}

#endif /* PLUGINS_COMMON_REDUCE_JOINED_CUH */
