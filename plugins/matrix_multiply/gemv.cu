/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of up to 16 rows, bound by reading B once.
 *   gemv      FP32 arithmetic (gemv.cuh)
 *   gemv_mma  tensor cores, 16 rows of B by 8 or 16 of A. B lies as rows of K; a thread's
 *             16 bytes are 8 neighbouring k of one row; as A and B permute k alike, these
 *             are the operands of two products as they come. A block has 16 columns of Y
 *             along the whole depth, or the blocks of a cluster share it.
 * The first of B is asked for before the kernel waits for the one before it, where B is
 * constant.
 */
#include "plugins/matrix_multiply/gemv_ring.cuh"

#define MMA_COLUMNS 16 /* of Y a block */
#define MMA_DEPTH 64   /* of k a warp at a time */

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
    return gemv_takes(n);
}

int gemv_mma_accept(const strata_node *n)
{
    return n->math == STRATA_MATH_TENSOR_OP
               ? gemv_accept(n)
               : refuse(n, "tensor cores are for math = tensor_op");
}

int gemv_setup(const strata_node *n, void *state)
{
    return gemv_prepare(n, matrix_is_constant(n->n_in, n->in), (gemv_state *)state);
}

template <typename T, int Columns, int Rows>
static int launch_gemv(const strata_run *r)
{
    const gemv_state *s = (const gemv_state *)r->state;
    gemv_job g = {};
    g.j = matrix_job_of(r, s->weight);
    if constexpr (Rows == 1)
        return ring_launch<gemv_shape<T, Columns, 1>>(r, g, *s, "gemv");
    else
        return gemv_launch<gemv_shape<T, Columns, Rows>>(r, g, s->multiprocessors,
                                                         s->overlaps, "gemv");
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
    const dim3 grid((unsigned)blocks, (unsigned)g.j.p.batches, (unsigned)g.split);
    return few_rows_launch(r, {(const void *)gemv_mma_kernel<T, Tiles>, &g, grid, THREADS,
                               0, s->overlaps, g.j.p.m == 1, "gemv_mma"});
}

int gemv_mma_run(const strata_run *r)
{
    const bool two = rows_of(r) > 8;
    if (r->out[0].dtype == STRATA_FP16)
        return two ? launch_mma<__half, 2>(r) : launch_mma<__half, 1>(r);
    return two ? launch_mma<__nv_bfloat16, 2>(r) : launch_mma<__nv_bfloat16, 1>(r);
}
