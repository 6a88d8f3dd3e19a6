/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of up to 16 rows, bound by reading B once. B lies as rows of K, one a column
 * of Y; a block reads a few of them, 16 bytes a thread, along the whole depth or, where
 * that makes too few blocks, a part of it: the blocks of a cluster then add their sums in
 * the order of their rank.
 *   gemv      FP32 arithmetic, the sums of a thread over its part of k
 *   gemv_mma  tensor cores, 16 rows of B by 8 or 16 of A. A thread's 16 bytes are 8
 *             neighbouring k of one row; as A and B permute k alike, these are the
 *             operands of two products as they come.
 * The first of B is asked for before the kernel waits for the one before it, where B is
 * constant.
 */
#include "plugins/matrix_multiply/few_rows.cuh"
#include "plugins/matrix_multiply/pack.h"

#define MMA_COLUMNS 16    /* of Y a block */
#define MMA_DEPTH 64      /* of k a warp at a time */
#define AHEAD 65536       /* bytes of B that a block asks for ahead */
#define MOST_ASKED 262144 /* and more than that it does for no tile */
#define SLOTS 16          /* tiles that a block keeps sums of */

struct gemv_job {
    matrix_job j;
    int32_t split;  /* blocks that share the depth: a cluster in z */
    int32_t groups; /* of A's rows */
    int32_t ahead;  /* tiles of a constant B that a block asks the L2 cache for; or 0 */
};

/* ---- FP32 arithmetic ------------------------------------------------------------- */

/* Tiles of Columns columns of Y, of which a block has every by-th, and what it is of A's
 * rows and the depth. */
template <typename T, int Columns, int Rows>
struct gemv_walk {
    enum { N = 16 / sizeof(T) }; /* elements of an access */
    const matrix_job &j;
    const T *b;
    int32_t tile, by, tiles, begin, step, row;

    __device__ inline gemv_walk(const gemv_job &g, int64_t b_begin) : j(g.j)
    {
        b = (const T *)j.b + b_begin;
        tile = (int32_t)(blockIdx.x / g.groups);
        by = (int32_t)(gridDim.x / g.groups);
        tiles = (int32_t)((j.p.n + Columns - 1) / Columns);
        begin = (int32_t)(blockIdx.z * THREADS + threadIdx.x) * N;
        step = g.split * THREADS * N;
        row = (int32_t)(blockIdx.x % g.groups) * Rows;
    }

    /* 16 bytes of each of a tile's rows of B. Rows past the end are the last one again,
     * so that no load depends on a condition. */
    __device__ inline void read(pack<T, N> (&w)[Columns], int32_t tile, int32_t k) const
    {
#pragma unroll
        for (int c = 0; c < Columns; c++) {
            const int32_t line = min(tile * Columns + c, (int32_t)j.p.n - 1);
            union {
                uint4 word;
                pack<T, N> x;
            } u = {read_once(b + line * j.p.at[PRODUCT_B].column + k)};
            w[c] = u.x;
        }
    }

    /* Asks the L2 cache for a tile of a constant B, whose rows lie behind each other. */
    __device__ inline void ask(int32_t tile) const
    {
        const int64_t columns = min(Columns, (int32_t)j.p.n - tile * Columns);
        if (tile < tiles)
            prefetch_run(b + tile * Columns * j.p.k,
                         columns * j.p.k * (int64_t)sizeof(T));
    }
};

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

/* What the warps found of the block's last `tiles` tiles, to Y. */
template <typename T, int Columns, int Rows>
static __device__ inline void
store_tiles(const gemv_job &g, const gemv_walk<T, Columns, Rows> &last, int tiles,
            const float (*part)[WARPS][Columns * Rows], float *total)
{
    enum { V = Columns * Rows };
    const matrix_offsets o = offsets_of(g.j.p, blockIdx.y);
    __syncthreads();
    for (int i = threadIdx.x; i < tiles * V; i += THREADS) {
        float all = 0;
        for (int warp = 0; warp < WARPS; warp++)
            all += part[i / V][warp][i % V];
        total[i] = all;
    }
    if (add_ranks(total, g.split, tiles * V))
        for (int i = threadIdx.x; i < tiles * V; i += THREADS) {
            const int32_t tile = last.tile - (tiles - 1 - i / V) * last.by;
            const int64_t m = last.row + i % Rows, n = tile * Columns + i % V / Rows;
            if (m < g.j.p.m && n < g.j.p.n)
                store_sum<T>(g.j, o, m, n, total[i]);
        }
    __syncthreads();
}

/* One wave of blocks, each with tiles from the whole width one behind the other: no warp
 * waits for another before all of them have been read. */
template <typename T, int Columns, int Rows>
static __global__ void __launch_bounds__(THREADS, Rows == 1 ? 4 : 2)
    gemv_kernel(const __grid_constant__ gemv_job g)
{
    enum { N = 16 / sizeof(T), V = Columns * Rows };
    __shared__ float part[SLOTS][WARPS][V], total[SLOTS * V];
    const matrix_job &j = g.j;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int32_t depth = (int32_t)j.p.k;
    pack<T, N> w[Columns];
    int slot = 0;
    launch_next();
    const matrix_offsets o = offsets_of(j.p, blockIdx.y);
    gemv_walk<T, Columns, Rows> walk(g, o.at[PRODUCT_B]);
    const T *a[Rows];
    const bool asks = g.ahead > 0 && threadIdx.x == THREADS - 1;
    if (j.constant_b && walk.begin < depth)
        walk.read(w, walk.tile, walk.begin);
    for (int i = depth > walk.step ? 0 : 1; asks && i < g.ahead; i++)
        walk.ask(walk.tile + i * walk.by);
#pragma unroll
    for (int r = 0; r < Rows; r++)
        a[r] = (const T *)j.a + o.at[PRODUCT_A] +
               min(walk.row + r, (int32_t)j.p.m - 1) * j.p.at[PRODUCT_A].row;
    wait_for_previous();
    if (!j.constant_b && walk.begin < depth)
        walk.read(w, walk.tile, walk.begin);
    for (; walk.tile < walk.tiles; walk.tile += walk.by) {
        float sum[V] = {};
        if (asks)
            walk.ask(walk.tile + g.ahead * walk.by);
        for (int32_t k = walk.begin; k < depth; k += walk.step) {
            const bool ends = depth - k <= walk.step;
            const int32_t then = ends ? walk.tile + walk.by : walk.tile;
            pack<T, N> v[Rows], next[Columns];
#pragma unroll
            for (int r = 0; r < Rows; r++)
                v[r] = *(const pack<T, N> *)(a[r] + k);
            if (then < walk.tiles)
                walk.read(next, then, ends ? walk.begin : k + walk.step);
#pragma unroll
            for (int i = 0; i < N; i++)
#pragma unroll
                for (int c = 0; c < Columns; c++)
#pragma unroll
                    for (int r = 0; r < Rows; r++)
                        sum[c * Rows + r] += to_float(w[c].v[i]) * to_float(v[r].v[i]);
#pragma unroll
            for (int c = 0; c < Columns; c++)
                w[c] = next[c];
        }
        add_lanes<V>(sum);
        if (lane % (32 / V) == 0)
            part[slot][warp][lane / (32 / V)] = sum[0];
        if (++slot == SLOTS || walk.tile + walk.by >= walk.tiles) {
            store_tiles<T, Columns, Rows>(g, walk, slot, part, total);
            slot = 0;
        }
    }
}

/* ---- tensor cores ---------------------------------------------------------------- */

/* A warp's step of k: two halves of 32, of each two rows of B, 8 apart. */
template <typename T>
static __device__ inline void read_step(uint4 (&w)[2][2], const T *const (&b)[2],
                                        int64_t k, int64_t depth)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            w[half][i] = k + half * 32 < depth ? read_once(b[i] + k + half * 32)
                                               : make_uint4(0, 0, 0, 0);
}

template <typename T, int Tiles>
static __device__ inline void
multiply_step(float (&sum)[Tiles][4], const uint4 (&w)[2][2], const T *const (&a)[Tiles],
              int64_t k, int64_t depth)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const uint32_t low[4] = {w[half][0].x, w[half][1].x, w[half][0].y, w[half][1].y};
        const uint32_t high[4] = {w[half][0].z, w[half][1].z, w[half][0].w, w[half][1].w};
#pragma unroll
        for (int t = 0; t < Tiles; t++) {
            const uint4 v = read_eight(a[t], k + half * 32, depth);
            multiply_add(sum[t], low, v.x, v.y, T());
            multiply_add(sum[t], high, v.z, v.w, T());
        }
    }
}

template <typename T, int Tiles>
static __global__ void __launch_bounds__(THREADS)
    gemv_mma_kernel(const __grid_constant__ gemv_job g)
{
    const int Rows = Tiles * 8, Count = MMA_COLUMNS * Rows;
    __shared__ float part[WARPS][Count], total[Count];
    const matrix_job &j = g.j;
    const matrix_offsets o = offsets_of(j.p, blockIdx.y);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, line = lane / 4;
    const int64_t first = (int64_t)blockIdx.x * MMA_COLUMNS, depth = j.p.k;
    const int64_t step = (int64_t)g.split * WARPS * MMA_DEPTH;
    const T *a[Tiles], *b[2];
    float sum[Tiles][4] = {};
    uint4 w[2][2][2];
#pragma unroll
    for (int i = 0; i < 2; i++)
        b[i] = (const T *)j.b + o.at[PRODUCT_B] +
               min(first + line + i * 8, j.p.n - 1) * j.p.at[PRODUCT_B].column;
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        a[t] = (const T *)j.a + o.at[PRODUCT_A] +
               min((int64_t)(line + t * 8), j.p.m - 1) * j.p.at[PRODUCT_A].row;
    int64_t k = ((int64_t)blockIdx.z * WARPS + warp) * MMA_DEPTH + lane % 4 * 8;
    const int64_t end = depth + lane % 4 * 8; /* a warp's lanes end together */
    if (!j.constant_b)
        wait_for_previous();
#pragma unroll
    for (int s = 0; s < 2; s++)
        read_step(w[s], b, k + s * step, depth);
    if (j.constant_b)
        wait_for_previous();
    for (; k < end; k += 2 * step) {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            multiply_step<T, Tiles>(sum, w[s], a, k + s * step, depth);
            read_step(w[s], b, k + (s + 2) * step, depth);
        }
    }
    launch_next();
#pragma unroll
    for (int t = 0; t < Tiles; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            part[warp][(line + i / 2 * 8) * Rows + t * 8 + lane % 4 * 2 + i % 2] =
                sum[t][i];
    __syncthreads();
    for (int i = threadIdx.x; i < Count; i += THREADS) {
        float all = 0;
        for (int s = 0; s < WARPS; s++)
            all += part[s][i];
        total[i] = all;
    }
    if (!add_ranks(total, g.split, Count))
        return;
    for (int i = threadIdx.x; i < Count; i += THREADS)
        if (i % Rows < j.p.m && first + i / Rows < j.p.n)
            store_sum<T>(j, o, i % Rows, first + i / Rows, total[i]);
}

/* ---- host ------------------------------------------------------------------------ */

int gemv_accept(const strata_node *n)
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

int gemv_mma_accept(const strata_node *n)
{
    return n->math == STRATA_MATH_TENSOR_OP
               ? gemv_accept(n)
               : refuse(n, "tensor cores are for math = tensor_op");
}

int gemv_setup(const strata_node *n, void *state)
{
    gemv_state *s = (gemv_state *)state;
    void *packed = NULL;
    const int status = matrix_is_constant(n->n_in, n->in)
                           ? matrix_weight_pack(n, 0, &packed)
                           : (int)STRATA_OK;
    s->weight = packed;
    s->overlaps = n->sm >= 90;
    if (status != STRATA_OK)
        return status;
    return few_rows_device(n, &s->multiprocessors);
}

static int enqueue(const strata_run *r, const gemv_job &g, int64_t blocks,
                   const void *kernel)
{
    const gemv_state *s = (const gemv_state *)r->state;
    const dim3 grid((unsigned)blocks, (unsigned)g.j.p.batches, (unsigned)g.split);
    return few_rows_launch(r, &g, grid, s->overlaps, kernel, "gemv");
}

/* Blocks of one wave that have as many tiles each, as far as possible. */
static int64_t walkers(int32_t multiprocessors, int64_t tiles, int64_t others)
{
    const int64_t room = (2 * multiprocessors + others - 1) / others;
    const int64_t each = (tiles + room - 1) / room;
    return (tiles + each - 1) / each;
}

template <typename T, int Columns, int Rows>
static int launch_gemv(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    g.groups = (int32_t)((g.j.p.m + Rows - 1) / Rows);
    const int64_t tiles = (g.j.p.n + Columns - 1) / Columns;
    const int64_t others = g.groups * g.j.p.batches, tile = Columns * g.j.p.k * sizeof(T);
    g.split = few_rows_split(s->multiprocessors, s->overlaps, tiles * others, g.j.p.k,
                             THREADS * 16 / sizeof(T));
    if (s->overlaps && g.j.constant_b && g.split == 1)
        g.ahead = (int32_t)(AHEAD / tile > 0 ? AHEAD / tile : tile <= MOST_ASKED);
    return enqueue(r, g, walkers(s->multiprocessors, tiles, others) * g.groups,
                   (const void *)gemv_kernel<T, Columns, Rows>);
}

template <typename T>
static int choose_gemv(const strata_run *r, int64_t rows)
{
    return rows == 1   ? launch_gemv<T, 4, 1>(r)
           : rows == 2 ? launch_gemv<T, 4, 2>(r)
           : rows <= 4 ? launch_gemv<T, 4, 4>(r)
                       : launch_gemv<T, 2, 8>(r);
}

static int64_t rows_of(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    return matrix_job_of(r, s->weight).p.m;
}

int gemv_run(const strata_run *r)
{
    const int64_t rows = rows_of(r);
    int status = STRATA_OK;
    layer_float(r->out[0].dtype,
                [&](auto t) { status = choose_gemv<decltype(t)>(r, rows); });
    return status;
}

template <typename T, int Tiles>
static int launch_mma(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    g.groups = 1;
    const int64_t blocks = (g.j.p.n + MMA_COLUMNS - 1) / MMA_COLUMNS;
    g.split = few_rows_split(s->multiprocessors, s->overlaps, blocks * g.j.p.batches,
                             g.j.p.k, 2 * WARPS * MMA_DEPTH);
    return enqueue(r, g, blocks, (const void *)gemv_mma_kernel<T, Tiles>);
}

int gemv_mma_run(const strata_run *r)
{
    const bool two = rows_of(r) > 8;
    if (r->out[0].dtype == STRATA_FP16)
        return two ? launch_mma<__half, 2>(r) : launch_mma<__half, 1>(r);
    return two ? launch_mma<__nv_bfloat16, 2>(r) : launch_mma<__nv_bfloat16, 1>(r);
}
