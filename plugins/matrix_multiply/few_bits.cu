/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of up to 16 rows with a B of 8 or 4 bits, bound by reading it once: a block
 * has a panel of 16 columns, its warps take blocks of k in turn, with tensor cores. Bits
 * become floats in registers (few_bits.cuh), sums stay FP32 and are multiplied by the
 * factors at the end of every unit: of what shares one, as much as lies in a block. What
 * comes first of B and its factors is asked for before the kernel waits for the one
 * before it.
 */
#include "plugins/matrix_multiply/few_bits.cuh"

#include "plugins/matrix_multiply/few_rows.cuh"

#define STAGES 4 /* blocks of k on their way to a warp */
#define MOST_BLOCKS 65535

struct few_job {
    matrix_job j;
    few_matrix b;
    int32_t split;  /* blocks that share the depth: a cluster in z */
    int32_t groups; /* of A's rows */
};

/* ---- what both kernels do -------------------------------------------------------- */

/* A warp's block of k, and the factors of a lane's two columns in each of its units. */
template <int Units>
struct few_stage {
    uint4 piece[2];
    float factor[Units][2];
};

template <int Units>
static __device__ inline void read_stage(few_stage<Units> &s, const few_matrix &b,
                                         const uint4 *values, const float *factors,
                                         int64_t block)
{
    if (block >= b.blocks)
        return;
#pragma unroll
    for (int i = 0; i < 2; i++)
        s.piece[i] = read_once(values + block * FEW_PIECES + i * 32);
#pragma unroll
    for (int u = 0; u < Units; u++)
#pragma unroll
        for (int i = 0; i < 2; i++)
            s.factor[u][i] =
                __ldg(factors + (block * Units + u) * b.each * FEW_COLUMNS + i * 8);
}

/* The warps' sums and those of the cluster, [column][row], to Y from row `row` on. */
template <typename T, int Rows>
static __device__ inline void finish_panel(const few_job &g, const matrix_offsets &o,
                                           float (*part)[FEW_COLUMNS * Rows],
                                           float *total, int64_t panel, int64_t row)
{
    const int Count = FEW_COLUMNS * Rows;
    __syncthreads();
    for (int i = threadIdx.x; i < Count; i += THREADS) {
        float sum = 0;
        for (int s = 0; s < WARPS; s++)
            sum += part[s][i];
        total[i] = sum;
    }
    if (!add_ranks(total, g.split, Count))
        return;
    for (int i = threadIdx.x; i < Count; i += THREADS) {
        const int64_t m = row + i % Rows, n = panel * FEW_COLUMNS + i / Rows;
        if (m < g.j.p.m && n < g.j.p.n)
            store_sum<T>(g.j, o, m, n, total[i]);
    }
}

/* Where a lane's row of A begins; past the last it is the last again. */
template <typename T>
static __device__ inline const T *row_of(const few_job &g, const matrix_offsets &o,
                                         int64_t row)
{
    return (const T *)g.j.a + o.at[PRODUCT_A] + threadIdx.x % 4 * 8 +
           min(row, g.j.p.m - 1) * g.j.p.at[PRODUCT_A].row;
}

/* multiply(stage, k): of each block of this warp. */
template <int Bits, int Flush, typename Multiply>
static __device__ inline void walk_panel(const few_job &g, int64_t panel,
                                         const Multiply &multiply)
{
    const int lane = threadIdx.x % 32;
    const int64_t step = (int64_t)g.split * WARPS;
    const uint4 *values = g.b.values + panel * g.b.blocks * FEW_PIECES + lane;
    const float *factors = g.b.factors + panel * g.b.units * FEW_COLUMNS + lane / 4;
    few_stage<few_block<Bits>::pairs / Flush> stage[STAGES];
    int64_t block = (int64_t)blockIdx.z * WARPS + threadIdx.x / 32;
#pragma unroll
    for (int s = 0; s < STAGES; s++)
        read_stage(stage[s], g.b, values, factors, block + s * step);
    wait_for_previous();
    for (; block < g.b.blocks; block += STAGES * step) {
#pragma unroll
        for (int s = 0; s < STAGES; s++) {
            const int64_t at = block + s * step;
            if (at < g.b.blocks) /* of the whole warp */
                multiply(stage[s], at * few_block<Bits>::depth);
            read_stage(stage[s], g.b, values, factors, at + STAGES * step);
        }
    }
    launch_next();
}

/* ---- FP32 arithmetic ------------------------------------------------------------- */

template <typename T, int Bits, int Rows, int Flush>
static __device__ inline void
multiply_plain(float (&all)[2][Rows], const few_stage<few_block<Bits>::pairs / Flush> &s,
               const T *const (&a)[Rows], int64_t k, int64_t depth)
{
    const int Pairs = few_block<Bits>::pairs;
#pragma unroll
    for (int u = 0; u < Pairs / Flush; u++) {
        float sum[2][Rows] = {};
#pragma unroll
        for (int p = u * Flush; p < (u + 1) * Flush; p++) {
            uint32_t x[2][4];
            uint4 v[Rows];
#pragma unroll
            for (int r = 0; r < Rows; r++)
                v[r] = read_eight(a[r], k + p * FEW_PAIR, depth);
#pragma unroll
            for (int c = 0; c < 2; c++)
                few_unpack<T, Bits>(x[c], s.piece[c], p);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int r = 0; r < Rows; r++) {
                    const float2 y = few_pair_of(few_word_of(v[r], i), T());
#pragma unroll
                    for (int c = 0; c < 2; c++) {
                        const float2 w = few_pair_of(x[c][i], T());
                        sum[c][r] += w.x * y.x + w.y * y.y;
                    }
                }
        }
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++)
                all[c][r] += s.factor[u][c] * sum[c][r];
    }
}

template <typename T, int Bits, int Rows, int Flush>
static __global__ void __launch_bounds__(THREADS)
    few_bits_kernel(const __grid_constant__ few_job g)
{
    __shared__ float part[WARPS][FEW_COLUMNS * Rows], total[FEW_COLUMNS * Rows];
    const matrix_offsets o = offsets_of(g.j.p, blockIdx.y);
    const int lane = threadIdx.x % 32;
    const int64_t panel = blockIdx.x / g.groups;
    const int64_t row = (int64_t)(blockIdx.x % g.groups) * Rows;
    const T *a[Rows];
    float all[2][Rows] = {};
#pragma unroll
    for (int r = 0; r < Rows; r++)
        a[r] = row_of<T>(g, o, row + r);
    walk_panel<Bits, Flush>(g, panel, [&](const auto &stage, int64_t k) {
        multiply_plain<T, Bits, Rows, Flush>(all, stage, a, k, g.j.p.k - lane % 4 * 8);
    });
#pragma unroll
    for (int c = 0; c < 2; c++)
#pragma unroll
        for (int r = 0; r < Rows; r++) {
            all[c][r] += __shfl_xor_sync(0xffffffffu, all[c][r], 2);
            all[c][r] += __shfl_xor_sync(0xffffffffu, all[c][r], 1);
            if (lane % 4 == 0)
                part[threadIdx.x / 32][(lane / 4 + c * 8) * Rows + r] = all[c][r];
        }
    finish_panel<T, Rows>(g, o, part, total, panel, row);
}

/* ---- tensor cores ---------------------------------------------------------------- */

template <typename T, int Bits, int Tiles, int Flush>
static __device__ inline void
multiply_tiles(float (&all)[Tiles][4], const few_stage<few_block<Bits>::pairs / Flush> &s,
               const T *const (&a)[Tiles], int64_t k, int64_t depth)
{
    const int Pairs = few_block<Bits>::pairs;
    uint4 v[Pairs][Tiles];
#pragma unroll
    for (int p = 0; p < Pairs; p++)
#pragma unroll
        for (int t = 0; t < Tiles; t++)
            v[p][t] = read_eight(a[t], k + p * FEW_PAIR, depth);
#pragma unroll
    for (int u = 0; u < Pairs / Flush; u++) {
        float sum[Tiles][2][4] = {}; /* two, that neither waits for the other */
#pragma unroll
        for (int p = u * Flush; p < (u + 1) * Flush; p++) {
            uint32_t x[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++)
                few_unpack<T, Bits>(x[i], s.piece[i], p);
            const uint32_t low[4] = {x[0][0], x[1][0], x[0][1], x[1][1]};
            const uint32_t high[4] = {x[0][2], x[1][2], x[0][3], x[1][3]};
#pragma unroll
            for (int t = 0; t < Tiles; t++) {
                multiply_add(sum[t][0], low, v[p][t].x, v[p][t].y, T());
                multiply_add(sum[t][1], high, v[p][t].z, v[p][t].w, T());
            }
        }
#pragma unroll
        for (int t = 0; t < Tiles; t++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                all[t][i] += s.factor[u][i / 2] * (sum[t][0][i] + sum[t][1][i]);
    }
}

template <typename T, int Bits, int Tiles, int Flush>
static __global__ void __launch_bounds__(THREADS)
    few_bits_mma_kernel(const __grid_constant__ few_job g)
{
    const int Rows = Tiles * 8;
    __shared__ float part[WARPS][FEW_COLUMNS * Rows], total[FEW_COLUMNS * Rows];
    const matrix_offsets o = offsets_of(g.j.p, blockIdx.y);
    const int lane = threadIdx.x % 32;
    const T *a[Tiles];
    float all[Tiles][4] = {};
#pragma unroll
    for (int t = 0; t < Tiles; t++)
        a[t] = row_of<T>(g, o, lane / 4 + t * 8);
    walk_panel<Bits, Flush>(g, blockIdx.x, [&](const auto &stage, int64_t k) {
        multiply_tiles<T, Bits, Tiles, Flush>(all, stage, a, k, g.j.p.k - lane % 4 * 8);
    });
#pragma unroll
    for (int t = 0; t < Tiles; t++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            part[threadIdx.x / 32][(lane / 4 + i / 2 * 8) * Rows + t * 8 + lane % 4 * 2 +
                                   i % 2] = all[t][i];
    finish_panel<T, Rows>(g, o, part, total, blockIdx.x, 0);
}

/* ---- packing --------------------------------------------------------------------- */

struct few_pack {
    few_source from;
    const float
        *factors; /* of the network: groups x n, or turned; or of all columns one */
    uint32_t *values;
    float *units_factors;
    int64_t words, n_factors, blocks, units, groups, columns;
    int64_t unit, group; /* values along k */
};

template <int Bits>
static __global__ void __launch_bounds__(THREADS)
    few_pack_kernel(const __grid_constant__ few_pack p)
{
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = first; i < p.words; i += step)
        p.values[i] = few_word<Bits>(p.from, p.blocks, i);
    for (int64_t i = first; i < p.n_factors; i += step) {
        const int64_t n = i / (p.units * FEW_COLUMNS) * FEW_COLUMNS + i % FEW_COLUMNS;
        const int64_t unit = i / FEW_COLUMNS % p.units, group = unit * p.unit / p.group;
        const int64_t column = p.columns > 1 ? n : 0;
        const bool inside = n < p.from.n && group < p.groups;
        p.units_factors[i] = inside
                                 ? p.factors[p.from.turned ? column * p.groups + group
                                                           : group * p.columns + column]
                                 : 0;
    }
}

static int get(const strata_node *n, int64_t count, int64_t size, void **out)
{
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    int64_t bytes;
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its packed weights");
    if (__builtin_mul_overflow(count, size, &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    return host->alloc(n, (size_t)(bytes > 0 ? bytes : 1), out);
}

/* What of p and s.b hangs on sizes. */
static void lay_out(const strata_node *n, few_pack *p, few_state *s)
{
    const strata_matrix_multiply *params = (const strata_matrix_multiply *)n->params;
    const strata_tensor *w = &n->weight[MATRIX_WEIGHT], *f = &n->weight[MATRIX_FACTORS];
    const strata_tensor *a = &n->in[MATRIX_A];
    const int depth = params->transpose_b ? 1 : 0;
    s->bits = w->dtype == STRATA_UINT8 ? 4 : 8;
    const int64_t block = s->bits == 4 ? few_block<4>::depth : few_block<8>::depth;
    p->from.bytes = (const uint8_t *)w->data;
    p->from.k = a->dims[a->rank - (params->transpose_a ? 2 : 1)];
    p->from.n = w->dims[1 - depth];
    p->from.rows = w->dims[depth];
    p->from.turned = params->transpose_b;
    p->factors = (const float *)f->data;
    p->groups = f->dims[depth];
    p->columns = f->dims[1 - depth];
    p->blocks = (p->from.k + block - 1) / block;
    p->group = p->groups > 1 ? params->weight_group : p->blocks * block;
    for (p->unit = block; p->group % p->unit != 0;)
        p->unit /= 2;
    p->units = p->groups > 1 ? p->blocks * (block / p->unit) : 1;
    s->flush = (int32_t)(p->unit / FEW_PAIR);
    s->b.blocks = p->blocks;
    s->b.units = p->units;
    s->b.each = p->groups > 1;
}

int few_bits_cuda_setup(const strata_node *n, void *state)
{
    few_state *s = (few_state *)state;
    few_pack p = {};
    void *values = NULL, *factors = NULL;
    lay_out(n, &p, s);
    s->overlaps = n->sm >= 90;
    const int64_t panels = (p.from.n + FEW_COLUMNS - 1) / FEW_COLUMNS;
    p.words = panels * p.blocks * FEW_PIECES * 4;
    p.n_factors = panels * p.units * FEW_COLUMNS;
    int status = few_rows_device(n, &s->multiprocessors);
    if (status == STRATA_OK)
        status = get(n, p.words, sizeof(uint32_t), &values);
    if (status == STRATA_OK)
        status = get(n, p.n_factors, sizeof(float), &factors);
    if (status != STRATA_OK || p.words == 0)
        return status;
    s->b.values = (const uint4 *)values;
    s->b.factors = (const float *)factors;
    p.values = (uint32_t *)values;
    p.units_factors = (float *)factors;
    const int64_t blocks = (p.words + THREADS - 1) / THREADS;
    const unsigned grid = (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    const cudaStream_t stream = (cudaStream_t)n->stream;
    if (s->bits == 4)
        few_pack_kernel<4><<<grid, THREADS, 0, stream>>>(p);
    else
        few_pack_kernel<8><<<grid, THREADS, 0, stream>>>(p);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

/* ---- runs ------------------------------------------------------------------------ */

int few_bits_cuda_accept(const strata_node *n)
{
    const strata_matrix_multiply *params = (const strata_matrix_multiply *)n->params;
    const int32_t dtype = n->weight[MATRIX_WEIGHT].dtype;
    const int depth = params->transpose_b ? 1 : 0;
    if (dtype != STRATA_INT8 && (dtype != STRATA_UINT8 || params->weight_bits != 4))
        return refuse(n, "it takes a weight of int8, or of 4 bits");
    if (n->weight[MATRIX_FACTORS].dims[depth] > 1 && params->weight_group % FEW_PAIR != 0)
        return refuse(n, "groups are no multiples of 32 values");
    const matrix_product p =
        matrix_product_of(params, n->n_in, n->in, n->weight, &n->out[0], NULL);
    const matrix &a = p.at[PRODUCT_A];
    if (p.m > MOST_ROWS)
        return refuse(n, "it multiplies up to 16 rows");
    if (p.k == 0 || p.n == 0 || p.k % 8 != 0 || a.column != 1 ||
        !is_aligned(p, a, p.m > 1 ? a.row : 0, 8))
        return refuse(n, "rows of A are not whole pieces of 16 bytes");
    if (p.batches > 65535 || p.n > INT32_MAX)
        return refuse(n, "a grid has at most 65535 products and 2^31 - 1 columns");
    return STRATA_OK;
}

int few_bits_mma_accept(const strata_node *n)
{
    return n->math == STRATA_MATH_TENSOR_OP
               ? few_bits_cuda_accept(n)
               : refuse(n, "tensor cores are for math = tensor_op");
}

typedef void (*few_kernel)(few_job);

/* By rows at a time. */
template <typename T, int Bits, int Flush>
static few_kernel choose_rows(bool mma, int64_t rows)
{
    if (mma)
        return rows <= 8 ? few_bits_mma_kernel<T, Bits, 1, Flush>
                         : few_bits_mma_kernel<T, Bits, 2, Flush>;
    return rows == 1   ? few_bits_kernel<T, Bits, 1, Flush>
           : rows == 2 ? few_bits_kernel<T, Bits, 2, Flush>
                       : few_bits_kernel<T, Bits, 4, Flush>;
}

/* By pairs of a unit. */
template <typename T>
static few_kernel choose(const few_state *s, bool mma, int64_t rows)
{
    if (s->bits == 8)
        return s->flush == 2 ? choose_rows<T, 8, 2>(mma, rows)
                             : choose_rows<T, 8, 1>(mma, rows);
    return s->flush == 4   ? choose_rows<T, 4, 4>(mma, rows)
           : s->flush == 2 ? choose_rows<T, 4, 2>(mma, rows)
                           : choose_rows<T, 4, 1>(mma, rows);
}

static int launch(const strata_run *r, bool mma)
{
    const few_state *s = (const few_state *)r->state;
    few_job g = {};
    g.j = matrix_job_of(r, s->b.values);
    g.b = s->b;
    const int64_t rows = g.j.p.m, panels = (g.j.p.n + FEW_COLUMNS - 1) / FEW_COLUMNS;
    const int64_t least = 2 * WARPS * few_block<8>::depth;
    g.groups = mma ? 1 : (int32_t)((rows + 3) / 4);
    /* Half as many as of halves: a block has much on its way. */
    g.split = few_rows_split(s->multiprocessors / 2, s->overlaps,
                             panels * g.groups * g.j.p.batches, g.j.p.k, least);
    const few_kernel kernel = r->out[0].dtype == STRATA_FP16
                                  ? choose<__half>(s, mma, rows)
                                  : choose<__nv_bfloat16>(s, mma, rows);
    const dim3 grid((unsigned)(panels * g.groups), (unsigned)g.j.p.batches,
                    (unsigned)g.split);
    return few_rows_launch(r, &g, grid, s->overlaps, (const void *)kernel, "few_bits");
}

int few_bits_cuda_run(const strata_run *r)
{
    return launch(r, false);
}

int few_bits_mma_run(const strata_run *r)
{
    return launch(r, true);
}
