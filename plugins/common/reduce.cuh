/* SPDX-License-Identifier: Apache-2.0
 *
 * Reducing dims on CUDA, whatever is gathered (Reduce, ArgMax). Where reduced elements
 * lie side by side, a team of threads has an output element and reads along; where kept
 * ones do, threads have columns side by side and rows are shared by a block. What is
 * behind few outputs is cut into pieces, which a second launch joins. Cuts and joins
 * depend on sizes alone, so results are the same each time.
 *
 * What is gathered is a type Op, given to kernels by value:
 *   Tally                            what a thread has seen; plain data
 *   void start(Tally &) const
 *   void take<T, N>(Tally &, const pack<T, N> &, int64_t row) const
 *                                    N elements, of which the first is the row-th
 *   void join(Tally &, const Tally &) const    what another has seen
 *   Tally below(const Tally &, int d) const    the tally of the thread d lanes on
 *   void close(const Tally &, int64_t at) const  write the output element at offset `at`
 * An Op may overload take_along and take_rows, which take several packs at once.
 */
#ifndef PLUGINS_COMMON_REDUCE_CUH
#define PLUGINS_COMMON_REDUCE_CUH

#include "kernels/layer.cuh"
#include "plugins/common/reduce_plan.h"

#define PIECE_BLOCKS 1056 /* to be had, where there is work for them */
#define ROW_PIECES 1024   /* of one output at most */
#define COLUMN_BLOCKS 528 /* that run at once */
#define COLUMN_PIECES 512
#define UNROLL 4 /* packs of a thread on their way at once, at most */

/* Blocks of a processor, lest packs on their way are spilled to run more of them. */
template <typename Tally, int Tallies>
constexpr int reduce_resident()
{
    return sizeof(Tally) * Tallies > 64 ? 2 : 4;
}

struct reduce_cut {
    const void *x;
    void *part; /* tallies, [piece][output]; where there is more than one piece */
    reduce_plan plan;
    int64_t outputs, rows; /* kept*width; run*gone */
    int32_t pieces;
    int32_t across, down, spans; /* of columns */
};

static __device__ inline int64_t place_of(const reduce_axis *axis, int32_t n, int64_t i,
                                          bool out)
{
    int64_t at = 0;
#pragma unroll 1 /* few axes; a division each is long, and is in a kernel for each load */
    for (int32_t d = 0; d < n; d++) {
        int64_t next = 0, c = i;
        if (d + 1 < n) {
            next = i >> 32 || axis[d].n >> 32
                       ? i / axis[d].n
                       : (int64_t)((uint32_t)i / (uint32_t)axis[d].n);
            c = i - next * axis[d].n;
        }
        at += c * (out ? axis[d].out : axis[d].in);
        i = next;
    }
    return at;
}

/* Where output o lies. */
static __device__ inline int64_t output_at(const reduce_cut &cut, int64_t o)
{
    const reduce_plan &p = cut.plan;
    const int64_t column = p.width == 1 ? 0 : o % p.width, kept = o / p.width;
    return place_of(p.keep, p.n_kept, kept, true) + column * p.step;
}

static __device__ inline int64_t piece_start(const reduce_cut &cut, int64_t piece,
                                             int64_t whole)
{
    return cut.rows / whole * piece / cut.pieces * whole;
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

/* The pack of row `row`; N divides a run, or columns are N wide. */
template <typename T, int N>
static __device__ inline pack<T, N> reduce_load(const reduce_cut &cut, const T *x,
                                                int64_t row)
{
    const reduce_plan &p = cut.plan;
    if (p.n_gone == 0)
        return *(const pack<T, N> *)(x + row * p.width);
    const int64_t gone = row / p.run, at = place_of(p.go, p.n_gone, gone, false);
    return *(const pack<T, N> *)(x + at + (row - gone * p.run) * p.width);
}

/* ---- packs --------------------------------------------------------------------------
 */

/* U packs of one output, `step` rows apart; those from row `to` on are not there. v is
 * used up. */
template <typename T, int N, int U, typename Op>
static __device__ inline void take_along(const Op &op, typename Op::Tally &t,
                                         pack<T, N> (&v)[U], int64_t row, int64_t step,
                                         int64_t to)
{
#pragma unroll
    for (int u = 0; u < U; u++)
        if (row + u * step < to)
            op.template take<T, N>(t, v[u], row + u * step);
}

/* The same, each element of a pack to a column of its own. */
template <typename T, int N, int U, typename Op>
static __device__ inline void take_rows(const Op &op, typename Op::Tally (&t)[N],
                                        pack<T, N> (&v)[U], int64_t row, int64_t step,
                                        int64_t to)
{
#pragma unroll
    for (int u = 0; u < U; u++)
        if (row + u * step < to) {
#pragma unroll
            for (int k = 0; k < N; k++) {
                const pack<T, 1> one = {{v[u].v[k]}};
                op.template take<T, 1>(t[k], one, row + u * step);
            }
        }
}

/* All loads before the first use. */
template <typename T, int N, int U>
static __device__ inline void load_batch(pack<T, N> (&v)[U], const reduce_cut &cut,
                                         const T *x, int64_t row, int64_t step,
                                         int64_t to)
{
#pragma unroll
    for (int u = 0; u < U; u++) {
        v[u] = pack<T, N>();
        if (row + u * step < to)
            v[u] = reduce_load<T, N>(cut, x, row + u * step);
    }
}

/* ---- reduced elements side by side --------------------------------------------------
 */

template <typename T, int N, int U, typename Op>
static __device__ inline void row_batch(const reduce_cut &cut, const Op &op,
                                        typename Op::Tally &t, const T *x, int64_t row,
                                        int64_t step, int64_t to)
{
    pack<T, N> v[U];
    load_batch<T, N, U>(v, cut, x, row, step, to);
    take_along(op, t, v, row, step, to);
}

template <typename T, int N, int Team, typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK,
                                         (reduce_resident<typename Op::Tally, N>()))
    row_kernel(const __grid_constant__ reduce_cut cut, Op op)
{
    typedef typename Op::Tally Tally;
    const int64_t item = (int64_t)blockIdx.x * (CUDA_BLOCK / Team) + threadIdx.x / Team;
    const bool live =
        item < cut.outputs * cut.pieces; /* the others take part in shuffles */
    const int64_t pieces = cut.pieces;
    const int64_t o = !live ? 0 : pieces == 1 ? item : item / pieces;
    const int64_t piece = live ? item - o * pieces : 0;
    const reduce_plan &p = cut.plan;
    const T *x = (const T *)cut.x + place_of(p.keep, p.n_kept, o, false);
    const int64_t to = live ? piece_start(cut, piece + 1, N) : 0, step = Team * N;
    const int64_t own = threadIdx.x % Team * N;
    Tally t;
    op.start(t);
    for (int64_t row = piece_start(cut, piece, N); row < to;) {
        if (Team > 8 && row + 2 * step < to) {
            row_batch<T, N, UNROLL>(cut, op, t, x, row + own, step, to);
            row += UNROLL * step;
        } else {
            row_batch<T, N, 2>(cut, op, t, x, row + own, step, to);
            row += 2 * step;
        }
    }
    const int width = Team < 32 ? Team : 32;
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2)
        op.join(t, op.below(t, d));
    if constexpr (Team > 32) {
        __shared__ Tally warps[Team / 32];
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = t;
        __syncthreads();
        for (int i = 1; i < Team / 32 && threadIdx.x == 0; i++)
            op.join(t, warps[i]);
    }
    if (live && threadIdx.x % Team == 0)
        close_tally(cut, op, t, o, piece);
}

/* ---- kept elements side by side ------------------------------------------------------
 */

/* G columns a thread: those of the rows of threads are joined in the first row. */
template <int G, typename Op>
static __device__ inline void
join_rows(const reduce_cut &cut, const Op &op, typename Op::Tally *t,
          typename Op::Tally (*shared)[CUDA_BLOCK], int32_t row)
{
    int32_t half = 1;
    while (half * 2 < cut.down)
        half *= 2;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < G; k++)
        shared[k][threadIdx.x] = t[k];
    for (; half > 0; half /= 2) {
        __syncthreads();
        if (row < half && row + half < cut.down)
#pragma unroll
            for (int k = 0; k < G; k++)
                op.join(shared[k][threadIdx.x],
                        shared[k][threadIdx.x + half * cut.across]);
    }
#pragma unroll
    for (int k = 0; k < G; k++)
        t[k] = shared[k][threadIdx.x];
}

template <typename T, int N, int U, typename Op>
static __device__ inline void column_batch(const reduce_cut &cut, const Op &op,
                                           typename Op::Tally (&t)[N], const T *x,
                                           int64_t row, int64_t to)
{
    pack<T, N> v[U];
    load_batch<T, N, U>(v, cut, x, row, cut.down, to);
    take_rows(op, t, v, row, cut.down, to);
}

/* A block has `across` packs of columns and `down` rows of threads. */
template <typename T, int N, typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK,
                                         (reduce_resident<typename Op::Tally, N>()))
    column_kernel(const __grid_constant__ reduce_cut cut, Op op)
{
    typedef typename Op::Tally Tally;
    const int G = N < 4 ? N : 4;
    __shared__ Tally shared[G][CUDA_BLOCK];
    const reduce_plan &p = cut.plan;
    const int64_t span = blockIdx.x % (uint32_t)cut.spans;
    const uint32_t rest = blockIdx.x / (uint32_t)cut.spans;
    const int64_t piece = rest % (uint32_t)cut.pieces, kept = rest / (uint32_t)cut.pieces;
    const int32_t lane = (int32_t)threadIdx.x % cut.across;
    const int32_t row = (int32_t)threadIdx.x / cut.across;
    const int64_t column = (span * cut.across + lane) * N;
    const bool live = row < cut.down && column < p.width;
    const int64_t to = live ? piece_start(cut, piece + 1, 1) : 0;
    const T *x = (const T *)cut.x + place_of(p.keep, p.n_kept, kept, false) + column;
    Tally t[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        op.start(t[k]);
    for (int64_t i = piece_start(cut, piece, 1) + row; i < to;)
        if (i + 2 * cut.down < to) {
            column_batch<T, N, UNROLL>(cut, op, t, x, i, to);
            i += UNROLL * cut.down;
        } else {
            column_batch<T, N, 2>(cut, op, t, x, i, to);
            i += 2 * cut.down;
        }
#pragma unroll
    for (int k = 0; k < N; k += G) {
        if (cut.down > 1)
            join_rows<G>(cut, op, t + k, shared, row);
        if (live && row == 0)
#pragma unroll
            for (int g = k; g < k + G; g++)
                close_tally(cut, op, t[g], kept * p.width + column + g, piece);
    }
}

/* ---- the second launch ----------------------------------------------------------------
 */

/* A warp an output, */
template <typename Op>
static __global__ void __launch_bounds__(CUDA_BLOCK) finish_kernel(reduce_cut cut, Op op)
{
    typedef typename Op::Tally Tally;
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
    const int warps = CUDA_BLOCK / 32;
    __shared__ Tally shared[CUDA_BLOCK];
    const int32_t lane = (int32_t)threadIdx.x % 32, warp = (int32_t)threadIdx.x / 32;
    const int64_t o = (int64_t)blockIdx.x * 32 + lane;
    Tally t;
    op.start(t);
#pragma unroll 4
    for (int32_t i = warp; i < cut.pieces; i += warps)
        if (o < cut.outputs)
            op.join(t, ((const Tally *)cut.part)[i * cut.outputs + o]);
    shared[threadIdx.x] = t;
    __syncthreads();
    if (warp > 0 || o >= cut.outputs)
        return;
    for (int i = 1; i < warps; i++)
        op.join(t, shared[i * 32 + lane]);
    op.close(t, output_at(cut, o));
}

/* ---- the choice ----------------------------------------------------------------------
 */

/* Bytes are taken by eight: kernels for 16 of them would take twice as long to compile. */
constexpr int reduce_most(size_t size)
{
    return size == 1 ? 8 : 16 / (int)size;
}

/* Elements of one access: as many as that, if all rows and columns begin at multiples. */
static inline int reduce_width(const reduce_plan &p, size_t size)
{
    const int64_t most = reduce_most(size);
    bool fits = (p.width == 1 ? p.run : p.width) % most == 0;
    for (int d = 0; d < p.n_kept; d++)
        fits = fits && p.keep[d].in % most == 0;
    for (int d = 0; d < p.n_gone; d++)
        fits = fits && p.go[d].in % most == 0;
    return fits ? (int)most : 1;
}

static inline reduce_cut reduce_cut_of(const strata_reduce *p, const strata_tensor *x,
                                       const strata_tensor *y, size_t size)
{
    reduce_cut c = {};
    int64_t blocks, most, enough = PIECE_BLOCKS;
    c.plan = reduce_plan_of(p, x, y, INT64_MAX);
    c.outputs = c.plan.kept * c.plan.width;
    c.rows = c.plan.run * c.plan.gone;
    const int n = reduce_width(c.plan, size);
    if (c.plan.width == 1) {
        blocks = c.outputs;
        most = c.rows / (CUDA_BLOCK * UNROLL * n);
        most = most > ROW_PIECES ? ROW_PIECES : most;
    } else {
        /* Packs of 32 threads side by side, more where rows are few. */
        const int64_t packs = c.plan.width / n, deep = c.rows / 8;
        const int64_t side = CUDA_BLOCK / (deep < 1 ? 1 : deep < 8 ? deep : 8);
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

/* Bytes for tallies of `size` bytes. */
static inline size_t reduce_parts(const reduce_cut &c, size_t size)
{
    return c.pieces == 1 ? 0 : (size_t)(c.pieces * c.outputs) * size;
}

static inline int64_t reduce_blocks(const reduce_cut &c)
{
    return c.plan.width > 1 ? c.plan.kept * c.pieces * c.spans : c.outputs * c.pieces;
}

template <typename T, int N, typename Op>
static void reduce_launch_width(const reduce_cut &c, const Op &op, cudaStream_t stream)
{
    const int64_t items = c.outputs * c.pieces;
    const unsigned blocks = (unsigned)reduce_blocks(c);
    if (c.plan.width > 1)
        column_kernel<T, N, Op><<<blocks, CUDA_BLOCK, 0, stream>>>(c, op);
    else if (c.rows <= 16 * N)
        row_kernel<T, N, 8, Op>
            <<<layer_blocks(items, CUDA_BLOCK / 8), CUDA_BLOCK, 0, stream>>>(c, op);
    else if (c.rows <= 1024 * N && c.outputs >= PIECE_BLOCKS)
        row_kernel<T, N, 32, Op>
            <<<layer_blocks(items, CUDA_BLOCK / 32), CUDA_BLOCK, 0, stream>>>(c, op);
    else
        row_kernel<T, N, CUDA_BLOCK, Op><<<blocks, CUDA_BLOCK, 0, stream>>>(c, op);
    if (c.pieces > 1 && c.plan.width > 1)
        finish_columns_kernel<Op>
            <<<layer_blocks(c.outputs, 32), CUDA_BLOCK, 0, stream>>>(c, op);
    else if (c.pieces > 1)
        finish_kernel<Op>
            <<<layer_blocks(c.outputs, CUDA_BLOCK / 32), CUDA_BLOCK, 0, stream>>>(c, op);
}

template <typename T, typename Op>
static void reduce_launch(const reduce_cut &c, const Op &op, cudaStream_t stream)
{
    const int N = reduce_most(sizeof(T));
    if (reduce_width(c.plan, sizeof(T)) == N)
        reduce_launch_width<T, N, Op>(c, op, stream);
    else
        reduce_launch_width<T, 1, Op>(c, op, stream);
}

#endif /* PLUGINS_COMMON_REDUCE_CUH */
