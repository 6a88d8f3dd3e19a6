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

#define MMA_COLUMNS 16 /* of Y a block */
#define MMA_DEPTH 64   /* of k a warp at a time */

struct gemv_job {
    matrix_job j;
    int32_t split;  /* blocks that share the depth: a cluster in z */
    int32_t groups; /* of A's rows */
};

/* ---- FP32 arithmetic ------------------------------------------------------------- */

template <typename T, int N, int Columns>
static __device__ inline void
read_b(pack<T, N> (&w)[Columns], const T *const (&b)[Columns], int64_t k, int64_t depth)
{
#pragma unroll
    for (int c = 0; c < Columns; c++)
        if (k < depth) {
            union {
                uint4 word;
                pack<T, N> x;
            } u = {read_once(b[c] + k)};
            w[c] = u.x;
        }
}

template <int Columns, int Rows>
static __device__ inline void add_lanes(float (&sum)[Columns][Rows])
{
#pragma unroll
    for (int c = 0; c < Columns; c++)
#pragma unroll
        for (int r = 0; r < Rows; r++)
#pragma unroll
            for (int lane = 16; lane > 0; lane /= 2)
                sum[c][r] += __shfl_xor_sync(0xffffffffu, sum[c][r], lane);
}

/* Columns and rows past the end are the last ones again, so that no load depends on a
 * condition. */
template <typename T, int Columns, int Rows>
static __global__ void __launch_bounds__(THREADS)
    gemv_kernel(const __grid_constant__ gemv_job g)
{
    const int N = 16 / sizeof(T);
    __shared__ float part[WARPS][Columns * Rows], total[Columns * Rows];
    const matrix_job &j = g.j;
    const matrix &x = j.p.at[PRODUCT_A];
    const matrix_offsets o = offsets_of(j.p, blockIdx.y);
    const int64_t first = (int64_t)(blockIdx.x / g.groups) * Columns;
    const int64_t row = (int64_t)(blockIdx.x % g.groups) * Rows;
    const int64_t step = (int64_t)g.split * THREADS * N;
    const T *a[Rows], *b[Columns];
    float sum[Columns][Rows] = {};
    pack<T, N> w[Columns];
#pragma unroll
    for (int c = 0; c < Columns; c++)
        b[c] = (const T *)j.b + o.at[PRODUCT_B] +
               min(first + c, j.p.n - 1) * j.p.at[PRODUCT_B].column;
#pragma unroll
    for (int r = 0; r < Rows; r++)
        a[r] = (const T *)j.a + o.at[PRODUCT_A] + min(row + r, j.p.m - 1) * x.row;
    int64_t k = ((int64_t)blockIdx.z * THREADS + threadIdx.x) * N;
    if (j.constant_b)
        read_b<T, N, Columns>(w, b, k, j.p.k);
    wait_for_previous();
    if (!j.constant_b)
        read_b<T, N, Columns>(w, b, k, j.p.k);
    for (; k < j.p.k; k += step) {
        pack<T, N> v[Rows], next[Columns];
#pragma unroll
        for (int r = 0; r < Rows; r++)
            v[r] = *(const pack<T, N> *)(a[r] + k);
        read_b<T, N, Columns>(next, b, k + step, j.p.k);
#pragma unroll
        for (int i = 0; i < N; i++)
#pragma unroll
            for (int c = 0; c < Columns; c++)
#pragma unroll
                for (int r = 0; r < Rows; r++)
                    sum[c][r] += to_float(w[c].v[i]) * to_float(v[r].v[i]);
#pragma unroll
        for (int c = 0; c < Columns; c++)
            w[c] = next[c];
    }
    launch_next();
    add_lanes(sum);
    if (threadIdx.x % 32 == 0)
#pragma unroll
        for (int c = 0; c < Columns; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++)
                part[threadIdx.x / 32][c * Rows + r] = sum[c][r];
    __syncthreads();
    if (threadIdx.x < Columns * Rows) {
        float all = 0;
        for (int i = 0; i < WARPS; i++)
            all += part[i][threadIdx.x];
        total[threadIdx.x] = all;
    }
    if (g.split == 1)
        __syncthreads();
    if (!add_ranks<Columns * Rows>(total, g.split) || threadIdx.x >= Columns * Rows)
        return;
    const int64_t m = row + threadIdx.x % Rows, n = first + threadIdx.x / Rows;
    if (m < j.p.m && n < j.p.n)
        store_sum<T>(j, o, m, n, total[threadIdx.x]);
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
    if (g.split == 1)
        __syncthreads();
    if (!add_ranks<Count>(total, g.split))
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
    if (p.batches > 65535 || p.n > INT32_MAX)
        return refuse(n, "a grid has at most 65535 products and 2^31 - 1 columns");
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

template <typename T, int Columns, int Rows>
static int launch_gemv(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    g.groups = (int32_t)((g.j.p.m + Rows - 1) / Rows);
    const int64_t blocks = (g.j.p.n + Columns - 1) / Columns * g.groups;
    g.split = few_rows_split(s->multiprocessors, s->overlaps, blocks * g.j.p.batches,
                             g.j.p.k, THREADS * 16 / sizeof(T));
    return enqueue(r, g, blocks, (const void *)gemv_kernel<T, Columns, Rows>);
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
