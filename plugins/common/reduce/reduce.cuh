/* SPDX-License-Identifier: Apache-2.0
 *
 * Reducing dims on CUDA, whatever is gathered (Reduce, ArgMax). Where reduced elements
 * lie side by side, a team of threads has an output element and reads along; where kept
 * ones do, threads have columns side by side and rows are shared by a block. What is
 * behind few outputs is cut into pieces, which a second launch joins. Cuts and joins
 * depend on sizes alone, so results are the same each time.
 *
 * A thread finds where its next packs lie, then makes all their loads, then uses them:
 * with a search for the place in each load, registers were spilled inside of the loop,
 * and of 16384 x 4096 halves on an H200 sums of rows had 2.5 TB/s and of columns 1.8.
 * Rows in one piece have no place to find, and a kernel of their own: with a search, 52
 * registers and 64-bit rows they had 2.9, as blocks of a row each are over when others
 * have hardly begun, and 4.0 without. Columns go through whole batches first, of which
 * nothing is to be checked, and read what is not used again as such: 3.4 became 3.8. The
 * floor is 4.4.
 *
 * What is gathered is a type Op, given to kernels by value:
 *   Tally                            what a thread has seen; plain data
 *   void start(Tally &) const
 *   void take<T, N>(Tally &, const pack<T, N> &, int64_t row) const
 *                                    N elements, of which the first is the row-th
 *   void join(Tally &, const Tally &) const    what another has seen
 *   Tally below(const Tally &, int d) const    the tally of the thread d lanes on
 *   void close(const Tally &, int64_t at) const  write the output element at offset `at`
 * An Op may overload take_along, take_rows, blank_pack and join_lanes.
 */
#ifndef PLUGINS_COMMON_REDUCE_REDUCE_CUH
#define PLUGINS_COMMON_REDUCE_REDUCE_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/reduce/cut.cuh"

#define PIECE_BLOCKS 1056 /* to be had, where there is work for them */
#define ROW_PIECES 1024   /* of one output at most */
#define COLUMN_BLOCKS 528 /* that run at once */
#define COLUMN_PIECES 512
#define UNROLL 4 /* packs of a thread on their way at once */
#define FINISH 9 /* parts of a thread; of COLUMN_BLOCKS all, where spans are 8 */

/* Blocks of a processor, lest packs on their way are spilled to run more of them. */
template <typename Tally, int Tallies>
constexpr int reduce_resident()
{
    return sizeof(Tally) * Tallies > 64 ? 2 : 4;
}

/* A piece's, or the result. */
template <typename Op>
static __device__ inline void close_tally(const reduce_cut &cut, const Op &op,
                                          const typename Op::Tally &t, int64_t o,
                                          int64_t piece)
{
    if (cut.pieces > 1)
        ((typename Op::Tally *)cut.part)[piece * cut.outputs + o] = t;
    else
        op.close(t, output_at(cut, o));
}

/* ---- packs ------------------------------------------------------------------------- */

/* What is not loaded: of an Op that says so, what changes no tally. */
template <typename T, int N, typename Op>
static __device__ inline pack<T, N> blank_pack(const Op &)
{
    return {};
}

/* U packs of one output, `step` rows apart; those from row `to` on, of which the first is
 * none, are not there; blank: they are blank_pack(). v is used up. */
template <typename T, int N, int U, typename Op>
static __device__ inline void take_along(const Op &op, typename Op::Tally &t,
                                         pack<T, N> (&v)[U], int64_t row, int64_t step,
                                         int64_t to, bool)
{
#pragma unroll
    for (int u = 0; u < U; u++)
        if (row + u * step < to)
            op.template take<T, N>(t, v[u], row + u * step);
}

/* The same, each element of a pack to a column of its own. whole: all are there. */
template <typename T, int N, int U, typename Op>
static __device__ inline void take_rows(const Op &op, typename Op::Tally (&t)[N],
                                        pack<T, N> (&v)[U], int64_t row, int64_t step,
                                        int64_t to, bool whole)
{
#pragma unroll
    for (int u = 0; u < U; u++)
        if (whole || row + u * step < to) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                const pack<T, 1> one = {{v[u].v[k]}};
                op.template take<T, 1>(t[k], one, row + u * step);
            }
        }
}

/* All loads before the first use, and none behind a branch: elements that two branches
 * bring together are taken out of their words in each of them, which awaits its load.
 * What is not there is the first pack, which is. */
template <typename T, int N, int U>
static __device__ inline void load_batch(pack<T, N> (&v)[U], const reduce_cut &cut,
                                         const T *x, int64_t row, int64_t step,
                                         int64_t to)
{
    int64_t at[U] = {};
    reduce_places<U>(at, cut, row, step);
#pragma unroll
    for (int u = 1; u < U; u++)
        if (row + u * step >= to)
            at[u] = at[0];
#pragma unroll
    for (int u = 0; u < U; u++)
        v[u] = *(const pack<T, N> *)(x + at[u]);
}

/* ---- reduced elements side by side ------------------------------------------------- */

/* Of the lanes of a warp that are in one team, in the first one. */
template <typename Op>
static __device__ inline void join_lanes(const Op &op, typename Op::Tally &t, int team)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        if (d < team)
            op.join(t, op.below(t, d));
}

/* Of the threads of a team, in the first one. */
template <typename Op>
static __device__ inline void join_team(const Op &op, typename Op::Tally &t,
                                        typename Op::Tally *warps, int team, int own)
{
    join_lanes(op, t, team);
    if (team <= 32)
        return;
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = t;
    __syncthreads();
    for (int i = 1; i < team / 32 && own == 0; i++)
        op.join(t, warps[threadIdx.x / 32 + i]);
}

/* A team is 1 << bits threads of a block. */
template <typename T, int N, typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK,
                                         (reduce_resident<typename Op::Tally, N>()))
    row_kernel(const __grid_constant__ reduce_cut cut, Op op, int bits)
{
    typedef typename Op::Tally Tally;
    launch_next();
    wait_for_previous();
    __shared__ Tally warps[CUDA_BLOCK / 32];
    const int team = 1 << bits, own = (int)threadIdx.x & (team - 1);
    const int64_t item =
        (int64_t)blockIdx.x * (CUDA_BLOCK >> bits) + (threadIdx.x >> bits);
    const bool live =
        item < cut.outputs * cut.pieces; /* the others take part in shuffles */
    const int64_t pieces = cut.pieces;
    const int64_t o = !live ? 0 : pieces == 1 ? item : item / pieces;
    const int64_t piece = live ? item - o * pieces : 0;
    const reduce_plan &p = cut.plan;
    const T *x = (const T *)cut.x + place_of(p.keep, p.n_kept, o, false);
    const int64_t to = live ? piece_start(cut, piece + 1) : 0, step = team * N;
    Tally t;
    op.start(t);
    for (int64_t row = piece_start(cut, piece) + own * N; row < to;
         row += UNROLL * step) {
        pack<T, N> v[UNROLL];
        load_batch<T, N, UNROLL>(v, cut, x, row, step, to);
        take_along(op, t, v, row, step, to, false);
    }
    join_team(op, t, warps, team, own);
    if (live && own == 0)
        close_tally(cut, op, t, o, piece);
}

/* The same of rows in one piece, each an output: there is no place to find. */
template <typename T, int N, int U, typename Op>
static __global__ void
__launch_bounds__(CUDA_BLOCK, (sizeof(typename Op::Tally) > 4 || U > UNROLL ? 4 : 6))
    line_kernel(const __grid_constant__ reduce_cut cut, Op op, int bits)
{
    typedef typename Op::Tally Tally;
    typedef typename word_of<sizeof(T) * N>::type word;
    launch_next();
    wait_for_previous();
    __shared__ Tally warps[CUDA_BLOCK / 32];
    const int team = 1 << bits, own = (int)threadIdx.x & (team - 1);
    const int64_t o = (int64_t)blockIdx.x * (CUDA_BLOCK >> bits) + (threadIdx.x >> bits);
    const bool live = o < cut.outputs; /* the others take part in shuffles */
    const T *x =
        (const T *)cut.x + place_of(cut.plan.keep, cut.plan.n_kept, live ? o : 0, false);
    const int32_t to = live ? (int32_t)cut.rows : 0, step = team * N;
    Tally t;
    op.start(t);
    for (int32_t row = own * N; row < to; row += U * step) {
        pack<T, N> v[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            const pack<T, N> blank = blank_pack<T, N>(op);
            word w; /* or elements are taken out of either at once */
            memcpy(&w, &blank, sizeof w);
            if (row + u * step < to)
                w = *(const word *)(x + row + u * step);
            memcpy(&v[u], &w, sizeof w);
        }
        take_along(op, t, v, row, step, to, true);
    }
    join_team(op, t, warps, team, own);
    if (live && own == 0)
        op.close(t, output_at(cut, o));
}

/* ---- kept elements side by side ---------------------------------------------------- */

/* Columns k to k + G of each thread: the first threads join those of all rows, each one
 * column, and write it. */
template <int G, int N, typename Op>
static __device__ inline void join_rows(const reduce_cut &cut, const Op &op,
                                        const typename Op::Tally *t,
                                        typename Op::Tally (*shared)[CUDA_BLOCK],
                                        int64_t first, int64_t kept, int64_t piece)
{
    __syncthreads();
#pragma unroll
    for (int k = 0; k < G; k++)
        shared[k][threadIdx.x] = t[k];
    __syncthreads();
    for (int32_t i = (int32_t)threadIdx.x; i < G * cut.across; i += CUDA_BLOCK) {
        const int32_t k = i / cut.across, lane = i - k * cut.across;
        const int64_t column = first + lane * N + k;
        typename Op::Tally all = shared[k][lane];
        for (int32_t row = 1; row < cut.down; row++)
            op.join(all, shared[k][row * cut.across + lane]);
        if (column < cut.plan.width)
            close_tally(cut, op, all, kept * cut.plan.width + column, piece);
    }
}

/* A block has `across` packs of columns and `down` rows of threads. Dense: what is
 * gathered lies `width` apart, with nothing between. */
template <typename T, int N, int U, bool Dense, typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK,
                                         (reduce_resident<typename Op::Tally, N>()))
    column_kernel(const __grid_constant__ reduce_cut cut, Op op)
{
    typedef typename Op::Tally Tally;
    launch_next();
    wait_for_previous();
    const int G = sizeof(Tally) * N <= 64 ? N : 4; /* at once */
    __shared__ Tally shared[G][CUDA_BLOCK];
    const reduce_plan &p = cut.plan;
    const int64_t span = blockIdx.x % (uint32_t)cut.spans;
    const uint32_t rest = blockIdx.x / (uint32_t)cut.spans;
    const int64_t piece = rest % (uint32_t)cut.pieces, kept = rest / (uint32_t)cut.pieces;
    const int32_t lane = (int32_t)threadIdx.x % cut.across;
    const int32_t row = (int32_t)threadIdx.x / cut.across;
    const int64_t column = (span * cut.across + lane) * N;
    const bool live = row < cut.down && column < p.width;
    const int64_t to = live ? piece_start(cut, piece + 1) : 0;
    const T *x = (const T *)cut.x + place_of(p.keep, p.n_kept, kept, false) + column;
    Tally t[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        op.start(t[k]);
    const int64_t step = U * cut.down;
    int64_t i = piece_start(cut, piece) + row;
    for (; Dense && i + step - cut.down < to; i += step) {
        pack<T, N> v[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            v[u] = load_once<T, N>(x + (i + u * cut.down) * p.width);
        take_rows(op, t, v, i, cut.down, to, true);
    }
    for (; i < to; i += step) {
        pack<T, N> v[U];
        load_batch<T, N, U>(v, cut, x, i, cut.down, to);
        take_rows(op, t, v, i, cut.down, to, false);
    }
#pragma unroll
    for (int k = 0; k < N; k += G)
        join_rows<G, N>(cut, op, t + k, shared, span * cut.across * N + k, kept, piece);
}

/* ---- the second launch ------------------------------------------------------------- */

/* A warp an output, */
template <typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK) finish_kernel(reduce_cut cut, Op op)
{
    typedef typename Op::Tally Tally;
    launch_next();
    wait_for_previous();
    const int64_t o = (int64_t)blockIdx.x * (CUDA_BLOCK / 32) + threadIdx.x / 32;
    Tally t;
    if (o >= cut.outputs)
        return;
    op.start(t);
    for (int64_t i = threadIdx.x % 32; i < cut.pieces; i += 32)
        op.join(t, ((const Tally *)cut.part)[i * cut.outputs + o]);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        op.join(t, op.below(t, d));
    if (threadIdx.x % 32 == 0)
        op.close(t, output_at(cut, o));
}

/* or 32 outputs a block, as columns lie, and each warp a share of the pieces. */
template <typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    finish_columns_kernel(reduce_cut cut, Op op)
{
    typedef typename Op::Tally Tally;
    launch_next();
    wait_for_previous();
    const int warps = CUDA_BLOCK / 32;
    __shared__ Tally shared[CUDA_BLOCK];
    const int32_t lane = (int32_t)threadIdx.x % 32, warp = (int32_t)threadIdx.x / 32;
    const int64_t o = (int64_t)blockIdx.x * 32 + lane;
    Tally t;
    op.start(t);
    for (int32_t i = warp; i < cut.pieces && o < cut.outputs; i += FINISH * warps) {
        Tally part[FINISH]; /* all loads ahead of the joins, which are branches */
#pragma unroll
        for (int u = 0; u < FINISH; u++)
            part[u] =
                ((const Tally *)
                     cut.part)[min(i + u * warps, cut.pieces - 1) * cut.outputs + o];
#pragma unroll
        for (int u = 0; u < FINISH; u++)
            if (i + u * warps < cut.pieces)
                op.join(t, part[u]);
    }
    shared[threadIdx.x] = t;
    __syncthreads();
    if (warp > 0 || o >= cut.outputs)
        return;
    for (int i = 1; i < warps; i++)
        op.join(t, shared[i * 32 + lane]);
    op.close(t, output_at(cut, o));
}

/* ---- the choice -------------------------------------------------------------------- */

/* Bytes are taken by eight: kernels for 16 would take twice as long to compile. */
constexpr int reduce_most(size_t size)
{
    return size == 1 ? 8 : 16 / (int)size;
}

static inline reduce_cut reduce_cut_of(const strata_reduce *p, const strata_tensor *x,
                                       const strata_tensor *y, size_t size)
{
    reduce_cut c = {};
    int64_t blocks, most, enough = PIECE_BLOCKS;
    c.plan = reduce_plan_of(p, x, y, INT64_MAX);
    c.outputs = c.plan.kept * c.plan.width;
    c.rows = c.plan.run * c.plan.gone;
    const int n = reduce_width(&c.plan, reduce_most(size));
    if (c.plan.width == 1) {
        blocks = c.outputs;
        most = c.rows / (CUDA_BLOCK * UNROLL * n);
        most = most > ROW_PIECES ? ROW_PIECES : most;
    } else {
        /* Packs of 64 threads side by side, more where rows are few. */
        const int64_t packs = c.plan.width / n, deep = c.rows / 8;
        const int64_t side = CUDA_BLOCK / (deep < 1 ? 1 : deep < 4 ? deep : 4);
        c.spans = (int32_t)((packs + side - 1) / side);
        c.across = (int32_t)(c.spans ? (packs + c.spans - 1) / c.spans : 1);
        c.down = CUDA_BLOCK / c.across;
        if (c.down > c.rows)
            c.down = c.rows < 1 ? 1 : (int32_t)c.rows;
        blocks = c.plan.kept * c.spans;
        most = c.rows / (c.down * UNROLL);
        most = most > COLUMN_PIECES ? COLUMN_PIECES : most;
        enough = COLUMN_BLOCKS;
    }
    const int64_t pieces = blocks ? enough / blocks : 1;
    c.pieces = (int32_t)(pieces < 2 || most < 2 ? 1 : pieces < most ? pieces : most);
    return c;
}

static inline size_t reduce_parts(const reduce_cut &c, size_t size)
{
    return c.pieces == 1 ? 0 : (size_t)(c.pieces * c.outputs) * size;
}

static inline int64_t reduce_blocks(const reduce_cut &c)
{
    return c.plan.width > 1 ? c.plan.kept * c.pieces * c.spans : c.outputs * c.pieces;
}

/* log2 of the threads that share a row, of packs of n: a few loads each, all under way at
 * once, and few threads without any. */
static inline int reduce_team(const reduce_cut &c, int n)
{
    const int64_t packs = c.rows / n;
    return packs <= 16                                ? 3
           : c.outputs < PIECE_BLOCKS || packs > 1024 ? 8
           : packs <= 2 * 32 * UNROLL                 ? 5
           : packs <= 4 * 32 * UNROLL                 ? 6
                                                      : 7;
}

template <typename T, int N, typename Op>
static void reduce_launch_width(reduce_cut c, const Op &op, cudaStream_t stream)
{
    c.unit = c.plan.width > 1 ? 1 : N;
    c.each = c.rows / c.unit / c.pieces;
    c.more = c.rows / c.unit - c.each * c.pieces;
    const int U = sizeof(typename Op::Tally) * N <= 32 ? 8 : UNROLL; /* where they fit */
    const bool dense = N > 1 && c.plan.n_gone == 0 && c.rows < 1 << 30;
    const auto launch = [&](auto kernel, unsigned blocks, auto... bits) {
        launch_overlapped(kernel, blocks, CUDA_BLOCK, 0, stream, c, op, bits...);
    };
    if (c.plan.width > 1) {
        const unsigned blocks = (unsigned)reduce_blocks(c);
        dense ? launch(column_kernel<T, N, U, (N > 1), Op>, blocks)
              : launch(column_kernel<T, N, UNROLL, false, Op>, blocks);
    } else {
        const int bits = reduce_team(c, N);
        const unsigned blocks = layer_blocks(c.outputs * c.pieces, CUDA_BLOCK >> bits);
        const bool seven = bits == 6 && c.rows <= 64 * 7 * N; /* at once, and no more */
        if (dense && c.pieces == 1)
            seven ? launch(line_kernel<T, N, 7, Op>, blocks, bits)
                  : launch(line_kernel<T, N, UNROLL, Op>, blocks, bits);
        else
            launch(row_kernel<T, N, Op>, blocks, bits);
    }
    if (c.pieces > 1)
        c.plan.width > 1
            ? launch(finish_columns_kernel<Op>, layer_blocks(c.outputs, 32))
            : launch(finish_kernel<Op>, layer_blocks(c.outputs, CUDA_BLOCK / 32));
}

template <typename T, typename Op>
static void reduce_launch(const reduce_cut &c, const Op &op, cudaStream_t stream)
{
    const int N = reduce_most(sizeof(T));
    if (reduce_width(&c.plan, N) == N)
        reduce_launch_width<T, N, Op>(c, op, stream);
    else
        reduce_launch_width<T, 1, Op>(c, op, stream);
}

#endif /* PLUGINS_COMMON_REDUCE_REDUCE_CUH */
