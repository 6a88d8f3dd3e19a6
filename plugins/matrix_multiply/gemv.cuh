/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of up to 16 rows in FP32 arithmetic, bound by reading B once, for
 * MatrixMultiply and Projection. B lies as rows of K, one a column of the product; a
 * block has some of them at a time, a tile, of which a thread reads 16 bytes each, a
 * step. It goes from tile to tile along the width, two steps on their way, and keeps the
 * sums of its warps apart until all of its tiles are read: no warp waits for another
 * before.
 *
 * Where few tiles make too few blocks, the blocks of a cluster share the depth and add
 * their sums in the order of their rank.
 *
 * The first two steps of a constant B are asked for before the kernel waits for the one
 * before it. Bulk copies of more into the L2 cache, which were tried, take a tenth longer
 * than loads that registers wait for.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_GEMV_CUH
#define PLUGINS_MATRIX_MULTIPLY_GEMV_CUH

#include "kernels/activate.cuh"
#include "plugins/matrix_multiply/gemv_walk.cuh"
#include "plugins/matrix_multiply/pack.h"

#define GEMV_SLOTS 16 /* tiles that a block keeps sums of */

/* ---- sums ------------------------------------------------------------------------ */

/* The lanes' sums of each v in v[0] of the lanes from its index * 32 / V on: what is
 * still apart is halved from step to step. */
template <int V, int Bit = 16, int All>
static __device__ inline void add_lanes(float (&v)[All])
{
    const bool upper = threadIdx.x & Bit;
    if constexpr (V > 1) {
#pragma unroll
        for (int i = 0; i < V / 2; i++) {
            const float away = upper ? v[i] : v[i + V / 2];
            v[i] =
                (upper ? v[i + V / 2] : v[i]) + __shfl_xor_sync(0xffffffffu, away, Bit);
        }
    } else {
        v[0] += __shfl_xor_sync(0xffffffffu, v[0], Bit);
    }
    if constexpr (Bit > 1)
        add_lanes<(V > 1 ? V / 2 : 1), Bit / 2>(v);
}

/* The warp's sums of v to to[]. */
template <int V>
static __device__ inline void put_sums(float (&v)[V], float *to)
{
    const int lane = threadIdx.x % 32;
    add_lanes<V>(v);
    if (lane % (32 / V) == 0)
        to[lane / (32 / V)] = v[0];
}

/* What a block's warps find, and together. */
template <class S>
struct gemv_sums {
    matrix_offsets begin; /* of the block's matrices: in registers they are too many */
    float part[GEMV_SLOTS][WARPS][S::V];
    float squares[WARPS][S::Rows];
    float total[GEMV_SLOTS * S::V + S::Rows]; /* then the sums of squares */
    float2 turn[S::Turned ? GEMV_SLOTS * S::Half * S::Rows : 1]; /* of each pair */
};

/* ---- turns ----------------------------------------------------------------------- */

/* One of the pairs of the block's tiles from `first` on. */
template <class S>
struct gemv_pair {
    int32_t slot, a, b; /* of the tile: columns of the pair */
    int32_t row;

    __device__ inline gemv_pair(int i, const gemv_turn &t)
    {
        const int p = i / S::Rows % S::Half;
        slot = i / (S::Half * S::Rows);
        a = t.interleaved ? 2 * p : p;
        b = t.interleaved ? 2 * p + 1 : p + S::Half;
        row = i % S::Rows;
    }
};

/* The angle of the thread's pair, if it has one, at position 1. */
template <class S>
static __device__ inline double frequency_of(const gemv_walk<S> &walk, const gemv_turn &t,
                                             int32_t first)
{
    const gemv_pair<S> pair((int)threadIdx.x, t);
    const int32_t tile = first + pair.slot * walk.by;
    if (pair.slot >= GEMV_SLOTS || tile >= walk.tiles)
        return 0;
    const int32_t d = walk.column(tile, pair.a) % t.dim;
    return t.frequencies[t.interleaved ? d / 2 : d];
}

/* The position of the thread's row, as it is now: past this multiprocessor's cache. */
template <class S>
static __device__ inline double position_of(const gemv_walk<S> &walk, const gemv_turn &t)
{
    const gemv_pair<S> pair((int)threadIdx.x, t);
    const int32_t m = min(walk.row + pair.row, (int32_t)walk.j.p.m - 1);
    const int32_t row = m / t.length, token = m % t.length;
    const int32_t at = t.each ? m : row;
    int64_t first = 0;
    if (t.positions)
        first = t.wide ? ((const volatile int64_t *)t.positions)[at]
                       : ((const volatile int32_t *)t.positions)[at];
    return (double)(first + (t.positions && t.each ? 0 : token));
}

/* Cosine and sine of an angle: whole turns go in FP64, whose functions are many
 * instructions one behind the other. */
static __device__ inline float2 turn_by(double angle)
{
    const double turns = rint(angle * 0.15915494309189535);
    const double rest =
        fma(turns, -2.4492935982947064e-16, /* what 2 pi has beyond FP64 */
            fma(turns, -6.283185307179586, angle));
    float sine, cosine;
    sincosf((float)rest, &sine, &cosine);
    return make_float2(cosine, sine);
}

/* Cosine and sine of the thread's pair. */
template <class S>
static __device__ inline void find_turn(gemv_sums<S> &s, const gemv_walk<S> &walk,
                                        const gemv_turn &t, int32_t first,
                                        double frequency, double position)
{
    const gemv_pair<S> pair((int)threadIdx.x, t);
    const int32_t tile = first + pair.slot * walk.by;
    if (pair.slot >= GEMV_SLOTS || tile >= walk.tiles)
        return;
    s.turn[threadIdx.x] = walk.column(tile, pair.a) < t.turned
                              ? turn_by(position * frequency)
                              : make_float2(1, 0);
}

/* Both columns of a pair, from their sums. */
template <typename T>
static __device__ inline void store_pair(const gemv_job &g, const matrix_offsets &o,
                                         int64_t m, int32_t at_a, int32_t at_b, float a,
                                         float b, float2 turn)
{
    const matrix &d = g.j.p.at[PRODUCT_D];
    T *row = (T *)g.j.d + o.at[PRODUCT_D] + m * d.row;
    if (g.j.bias) {
        a += g.j.bias[at_a];
        b += g.j.bias[at_b];
    }
    from_float(row + at_a * d.column, a * turn.x - b * turn.y);
    from_float(row + at_b * d.column, a * turn.y + b * turn.x);
}

/* ---- results --------------------------------------------------------------------- */

/* The product of rows in `a`'s and `b`'s half from their sums. The gate of most networks
 * is in line; the others are called, as code that is not run has to come from memory. */
template <typename T>
static __device__ inline void store_gated(const gemv_job &g, const matrix_offsets &o,
                                          int64_t m, int64_t n, float a, float b)
{
    const matrix &d = g.j.p.at[PRODUCT_D];
    if (g.j.bias) {
        a += g.j.bias[n];
        b += g.j.bias[n + g.j.p.n];
    }
    const float gate = g.more.gate.kind == STRATA_SILU ? a * sigmoid(a)
                                                       : activate_called(a, g.more.gate);
    from_float((T *)g.j.d + o.at[PRODUCT_D] + m * d.row + n * d.column, gate * b);
}

/* Result i of the block's tiles from `first` on: a column of Y, or a pair. */
template <class S>
static __device__ inline void store_result(const gemv_job &g, const gemv_walk<S> &walk,
                                           const matrix_offsets &o, int32_t first, int i,
                                           const gemv_sums<S> &s, const float *squares,
                                           float residual)
{
    typedef typename S::T T;
    const int slot = i / S::Results, c = i % S::Results / S::Rows, r = i % S::Rows;
    const int32_t tile = first + slot * walk.by;
    const int64_t m = walk.row + r, n = walk.column(tile, 0) + c;
    const float *sum = s.total + slot * S::V + r;
    const float factor =
        S::Normal ? rsqrtf(squares[r] / (float)g.j.p.k + g.more.epsilon) : 1;
    if (m >= g.j.p.m || (!S::Turned && n >= g.j.p.n))
        return;
    if constexpr (S::Turned) {
        const gemv_pair<S> p(i, g.more.turn);
        store_pair<T>(g, o, m, walk.column(tile, p.a), walk.column(tile, p.b),
                      sum[p.a * S::Rows] * factor, sum[p.b * S::Rows] * factor,
                      s.turn[i]);
    } else if constexpr (S::Gated) {
        store_gated<T>(g, o, m, n, sum[c * S::Rows] * factor,
                       sum[(c + S::Half) * S::Rows] * factor);
    } else {
        const matrix &d = g.j.p.at[PRODUCT_D];
        const float x = sum[c * S::Rows] * factor;
        if (g.plain)
            from_float((T *)g.j.d + o.at[PRODUCT_D] + m * d.row + n * d.column,
                       g.j.alpha * x + residual);
        else
            store_sum<T>(g.j, o, m, n, x);
    }
}

/* What is added to the thread's result of the tiles from `first` on, if that is all that
 * is done with it: asked for early, and by less code, which memory has to give too. */
template <class S>
static __device__ inline float added_to(const gemv_job &g, const gemv_walk<S> &walk,
                                        const gemv_sums<S> &s, int32_t first)
{
    if constexpr (!S::Turned && !S::Gated) {
        const matrix &d = g.j.p.at[PRODUCT_RESIDUAL];
        const int i = (int)threadIdx.x, slot = i / S::Results;
        const int32_t tile = first + slot * walk.by;
        const int64_t m = walk.row + i % S::Rows;
        const int64_t n = walk.column(tile, 0) + i % S::Results / S::Rows;
        if (g.plain && g.j.epilogue.residual && slot < GEMV_SLOTS && tile < walk.tiles &&
            m < g.j.p.m && n < g.j.p.n)
            return to_float(
                ((const typename S::T *)g.j.epilogue
                     .residual)[s.begin.at[PRODUCT_RESIDUAL] + m * d.row + n * d.column]);
    }
    return 0;
}

/* The block's `tiles` tiles from `first` on, to Y: a result a thread at most. */
template <class S>
static __device__ inline void store_tiles(const gemv_job &g, const gemv_walk<S> &walk,
                                          int32_t first, int tiles, gemv_sums<S> &s,
                                          float residual)
{
    static_assert(GEMV_SLOTS * S::Results <= THREADS);
    const int sums = tiles * S::V, all = sums + (S::Normal ? S::Rows : 0);
    const int own = (int)threadIdx.x;
    __syncthreads();
    for (int i = own; i < all; i += THREADS) {
        float sum = 0;
        for (int warp = 0; warp < WARPS; warp++)
            sum += S::Normal && i >= sums ? s.squares[warp][i - sums]
                                          : s.part[i / S::V][warp][i % S::V];
        s.total[i] = sum;
    }
    if (add_ranks(s.total, g.split, all) && own < tiles * S::Results)
        store_result<S>(g, walk, s.begin, first, own, s, s.total + sums, residual);
    __syncthreads();
}

/* ---- the kernel ------------------------------------------------------------------ */

/* Rows past the end are the last one again. */
template <class S>
static __device__ inline void find_rows(const typename S::T *(&a)[S::Rows],
                                        const gemv_walk<S> &walk, int64_t begin)
{
#pragma unroll
    for (int r = 0; r < S::Rows; r++)
        a[r] = (const typename S::T *)walk.j.a + begin +
               min(walk.row + r, (int32_t)walk.j.p.m - 1) * walk.j.p.at[PRODUCT_A].row;
}

/* What N elements of A's rows from k on are multiplied by. */
template <class S>
static __device__ inline void read_scale(float (&scale)[S::N], int32_t k,
                                         const gemv_job &g)
{
#pragma unroll
    for (int i = 0; i < S::N; i++)
        scale[i] =
            S::Normal && g.more.scale && k < (int32_t)g.j.p.k ? g.more.scale[k + i] : 1;
}

/* N elements of each of A's rows from k on, scaled, zeros past the depth; their squares
 * are added to `square`. */
template <class S>
static __device__ inline void
read_a(float (&x)[S::Rows][S::N], const typename S::T *const (&a)[S::Rows], int32_t k,
       const gemv_job &g, const float (&scale)[S::N], float (&square)[S::Rows])
{
#pragma unroll
    for (int r = 0; r < S::Rows; r++) {
        pack<typename S::T, S::N> v = {};
        if (k < (int32_t)g.j.p.k)
            v = *(const pack<typename S::T, S::N> *)(a[r] + k);
#pragma unroll
        for (int i = 0; i < S::N; i++) {
            x[r][i] = to_float(v.v[i]);
            if (S::Normal) {
                square[r] += x[r][i] * x[r][i];
                x[r][i] *= scale[i];
            }
        }
    }
}

template <class S>
static __device__ inline void add_products(float (&sum)[S::V],
                                           const uint4 (&w)[S::Columns],
                                           const float (&x)[S::Rows][S::N])
{
#pragma unroll
    for (int c = 0; c < S::Columns; c++) {
        union {
            uint4 word;
            pack<typename S::T, S::N> x;
        } u = {w[c]};
#pragma unroll
        for (int i = 0; i < S::N; i++)
#pragma unroll
            for (int r = 0; r < S::Rows; r++)
                sum[c * S::Rows + r] += to_float(u.x.v[i]) * x[r][i];
    }
}

/* What a warp found of a tile. */
template <class S>
static __device__ inline void end_tile(gemv_sums<S> &s, int slot, float (&sum)[S::V])
{
    put_sums(sum, s.part[slot][threadIdx.x / 32]);
#pragma unroll
    for (int i = 0; i < S::V; i++)
        sum[i] = 0;
}

/* The same of every tile. */
template <class S>
static __device__ inline void end_squares(gemv_sums<S> &s, float (&square)[S::Rows])
{
    if (S::Normal)
        put_sums(square, s.squares[threadIdx.x / 32]);
#pragma unroll
    for (int r = 0; r < S::Rows; r++)
        square[r] = 0;
}

template <class S>
static __global__ void __launch_bounds__(THREADS, S::Blocks)
    gemv_kernel(const __grid_constant__ gemv_job g)
{
    typedef typename S::T T;
    __shared__ gemv_sums<S> sums;
    const matrix_job &j = g.j;
    if (threadIdx.x == 0)
        sums.begin = offsets_of(j.p, blockIdx.y);
    __syncthreads();
    gemv_walk<S> walk(g, sums.begin.at[PRODUCT_B]), ahead = walk;
    const bool once = (int32_t)j.p.k <= walk.step; /* a step is a tile, of the same A */
    uint4 w[2][S::Columns];
    const T *a[S::Rows];
    float sum[S::V] = {}, square[S::Rows] = {}, x[S::Rows][S::N], scale[S::N];
    int32_t first = walk.tile;
    int slot = 0;
    double frequency = 0, position = 0;
    launch_next();
    if (!j.constant_b)
        wait_for_previous();
#pragma unroll
    for (int s = 0; s < 2; s++) {
        ahead.read(w[s]);
        ahead.next();
    }
    find_rows<S>(a, walk, sums.begin.at[PRODUCT_A]);
    if (once)
        read_scale<S>(scale, walk.at(), g);
    if (S::Turned)
        frequency = frequency_of<S>(walk, g.more.turn, first);
    if (j.constant_b)
        wait_for_previous();
    if (S::Turned)
        position = position_of<S>(walk, g.more.turn);
    float residual = added_to<S>(g, walk, sums, first);
    if (once) {
        read_a<S>(x, a, walk.at(), g, scale, square);
        end_squares<S>(sums, square);
    }
    while (walk.tile < walk.tiles)
#pragma unroll
        for (int s = 0; s < 2; s++) {
            if (walk.tile >= walk.tiles)
                break;
            if (!once) {
                read_scale<S>(scale, walk.at(), g);
                read_a<S>(x, a, walk.at(), g, scale, square);
            }
            add_products<S>(sum, w[s], x);
            if (ahead.tile < ahead.tiles) { /* else its addresses take time for nothing */
                ahead.read(w[s]);
                ahead.next();
            }
            if (!walk.next())
                continue;
            end_tile<S>(sums, slot, sum);
            if (!once)
                end_squares<S>(sums, square);
            if (++slot == GEMV_SLOTS || walk.tile >= walk.tiles) {
                if (S::Turned)
                    find_turn<S>(sums, walk, g.more.turn, first, frequency, position);
                store_tiles<S>(g, walk, first, slot, sums, residual);
                first = walk.tile;
                slot = 0;
                if (S::Turned)
                    frequency = frequency_of<S>(walk, g.more.turn, first);
                residual = added_to<S>(g, walk, sums, first);
            }
        }
}

/* ---- host ------------------------------------------------------------------------ */

/* Whether a product of A and B, as they are, is one for these kernels. */
static inline int gemv_takes(const strata_node *n)
{
    const strata_matrix_multiply *params = (const strata_matrix_multiply *)n->params;
    const matrix_product p =
        matrix_product_of(params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    const matrix &a = p.at[PRODUCT_A], &b = p.at[PRODUCT_B];
    const int whole = n->in[MATRIX_A].dtype == STRATA_FP32 ? 4 : 8;
    const bool constant = matrix_is_constant(n->n_in, n->in);
    if (p.m > MOST_ROWS)
        return refuse(n, "it multiplies up to 16 rows");
    if (p.k == 0 || p.k % whole != 0 || a.column != 1 ||
        !is_aligned(p, a, p.m > 1 ? a.row : 0, whole))
        return refuse(n, "rows of A are not whole pieces of 16 bytes");
    if (!constant && (b.row != 1 || !is_aligned(p, b, p.n > 1 ? b.column : 0, whole)))
        return refuse(n, "B lies as columns: with transpose_b it would be read in rows");
    if (p.batches > 65535 || p.n > INT32_MAX / 2 || p.k > INT32_MAX / 2)
        return refuse(n,
                      "it multiplies at most 65535 matrices of 2^30 - 1 columns and as "
                      "many rows");
    return STRATA_OK;
}

/* Packs B, if it is constant. */
static inline int gemv_prepare(const strata_node *n, int constant, gemv_state *s)
{
    void *packed = NULL;
    int status = constant ? matrix_weight_pack(n, 0, &packed) : (int)STRATA_OK;
    s->weight = packed;
    s->overlaps = n->sm >= 90;
    if (status == STRATA_OK)
        status = few_rows_device(n, &s->multiprocessors);
    if (status == STRATA_OK)
        status = few_rows_ask(n, cudaDevAttrMaxSharedMemoryPerMultiprocessor, &s->shared);
    return status;
}

/* Blocks of one wave that have as many tiles each, as far as possible. */
static inline int64_t gemv_walkers(int64_t blocks, int64_t tiles, int64_t others)
{
    const int64_t room = (blocks + others - 1) / others;
    const int64_t each = (tiles + room - 1) / room;
    return (tiles + each - 1) / each;
}

/* Whether results are sums, or those with a residual added. */
static inline bool gemv_is_plain(const matrix_job &j)
{
    const epilogue_args &e = j.epilogue;
    return !j.c && !j.bias && !e.scale && !e.bias && e.activation.kind < 0;
}

/* g: all but its shares of the work. */
template <class S>
static int gemv_launch(const strata_run *r, gemv_job g, int32_t multiprocessors,
                       int32_t overlaps, const char *name)
{
    const matrix_product &p = g.j.p;
    const int64_t tiles = (p.n + S::Width - 1) / S::Width;
    g.groups = (int32_t)((p.m + S::Rows - 1) / S::Rows);
    g.plain = gemv_is_plain(g.j);
    const int64_t others = g.groups * p.batches;
    if (tiles * others == 0)
        return STRATA_OK;
    g.split =
        few_rows_split(multiprocessors, overlaps, tiles * others, p.k, THREADS * S::N);
    const int64_t blocks = gemv_walkers(S::Blocks * multiprocessors, tiles, others);
    const dim3 grid((unsigned)(blocks * g.groups), (unsigned)p.batches,
                    (unsigned)g.split);
    return few_rows_launch(r, {(const void *)gemv_kernel<S>, &g, grid, THREADS, 0,
                               overlaps, p.m == 1, name});
}

#endif /* PLUGINS_MATRIX_MULTIPLY_GEMV_CUH */
