/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of up to 16 rows with a B of 8 or 4 bits, bound by reading it once. Blocks go
 * from panel to panel of 16 columns, as many as fill the chip once; each of a block's
 * warps takes some of a panel's depth, which the copy engine brings (few_walk.cuh), and
 * keeps its sums of several panels apart until they are added. Bits become floats in
 * registers (few_bits.cuh), sums stay FP32 and are multiplied by the factors at the end
 * of every unit: of what shares one, as much as lies in a block. What comes first of B is
 * asked for before the kernel waits for the one before it.
 */
#include "plugins/matrix_multiply/few_walk.cuh"

#define MOST_SLOTS 16    /* panels whose sums are kept */
#define SLOT_ROWS 64     /* of all of them, or one panel's */
#define MULTIPROCESSOR 2 /* blocks of it */
#define MOST_BLOCKS 65535

/* ---- FP32 arithmetic ------------------------------------------------------------- */

template <typename T, int Bits, int Rows, int Flush>
struct few_plain {
    enum { Pairs = few_block<Bits>::pairs };
    const T *a[Rows];
    int32_t depth, k; /* of A, less where the lane begins; of the block */
    float all[2][Rows];
    int rows;

    __device__ inline void read(int32_t from)
    {
        k = from;
    }

    __device__ inline void multiply(const few_stage &s)
    {
#pragma unroll
        for (int u = 0; u < Pairs / Flush; u++) {
            float sum[2][Rows] = {};
#pragma unroll
            for (int p = u * Flush; p < (u + 1) * Flush; p++)
                multiply_pair(sum, s, p);
#pragma unroll
            for (int c = 0; c < 2; c++)
#pragma unroll
                for (int r = 0; r < Rows; r++)
                    all[c][r] += s.factor(u, c) * sum[c][r];
        }
    }

    __device__ inline void multiply_pair(float (&sum)[2][Rows], const few_stage &s,
                                         int p) const
    {
        uint32_t x[2][4];
        uint4 v[Rows];
#pragma unroll
        for (int r = 0; r < Rows; r++)
            v[r] = few_eight(a[r], k + p * FEW_PAIR, depth);
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

    __device__ inline void put(float *part)
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int c = 0; c < 2; c++)
#pragma unroll
            for (int r = 0; r < Rows; r++) {
                all[c][r] += __shfl_xor_sync(0xffffffffu, all[c][r], 2);
                all[c][r] += __shfl_xor_sync(0xffffffffu, all[c][r], 1);
                if (lane % 4 == 0 && r < rows)
                    part[(lane / 4 + c * 8) * rows + r] = all[c][r];
                all[c][r] = 0;
            }
    }
};

template <typename T, int Bits, int Rows, int Flush>
static __global__ void __launch_bounds__(THREADS, MULTIPROCESSOR)
    few_bits_kernel(const __grid_constant__ few_job g)
{
    const matrix_offsets o = offsets_of(g.j.p, blockIdx.y);
    const int64_t row = (int64_t)(blockIdx.x % g.groups) * Rows;
    few_plain<T, Bits, Rows, Flush> work = {};
#pragma unroll
    for (int r = 0; r < Rows; r++)
        work.a[r] = row_of<T>(g, o, row + r);
    work.depth = (int32_t)g.j.p.k - threadIdx.x % 4 * 8;
    work.rows = g.rows;
    walk_panels<T, Bits>(g, o, row, work);
}

/* ---- tensor cores ---------------------------------------------------------------- */

template <typename T, int Bits, int Tiles, int Flush>
struct few_tiles {
    enum { Pairs = few_block<Bits>::pairs };
    const T *a[Tiles];
    int64_t
        depth[Tiles]; /* of A, less where the lane begins; none of rows past the end */
    uint4 v[Pairs][Tiles];
    float all[Tiles][4];
    int rows;

    __device__ inline void read(int32_t k)
    {
#pragma unroll
        for (int p = 0; p < Pairs; p++)
#pragma unroll
            for (int t = 0; t < Tiles; t++)
                v[p][t] = few_eight(a[t], k + p * FEW_PAIR, depth[t]);
    }

    __device__ inline void multiply(const few_stage &s)
    {
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
                    all[t][i] += s.factor(u, i / 2) * (sum[t][0][i] + sum[t][1][i]);
        }
    }

    __device__ inline void put(float *part)
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int t = 0; t < Tiles; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int row = t * 8 + lane % 4 * 2 + i % 2;
                if (row < rows)
                    part[(lane / 4 + i / 2 * 8) * rows + row] = all[t][i];
                all[t][i] = 0;
            }
    }
};

template <typename T, int Bits, int Tiles, int Flush>
static __global__ void __launch_bounds__(THREADS, MULTIPROCESSOR)
    few_bits_mma_kernel(const __grid_constant__ few_job g)
{
    const matrix_offsets o = offsets_of(g.j.p, blockIdx.y);
    few_tiles<T, Bits, Tiles, Flush> work = {};
#pragma unroll
    for (int t = 0; t < Tiles; t++) {
        const int64_t row = threadIdx.x % 32 / 4 + t * 8;
        work.a[t] = row_of<T>(g, o, row);
        work.depth[t] = row < g.j.p.m ? (int32_t)g.j.p.k - threadIdx.x % 4 * 8 : 0;
    }
    work.rows = g.rows;
    walk_panels<T, Bits>(g, o, 0, work);
}

/* ---- packing --------------------------------------------------------------------- */

struct few_pack {
    few_source from;
    const float
        *factors; /* of the network: groups x n, or turned; or of all columns one */
    uint32_t *to;
    float *once;         /* factors of all k: [panels][16], or NULL */
    int64_t words, each; /* of all, of a block */
    int64_t panels, blocks, units, groups, columns;
    int64_t unit, group; /* values along k */
};

/* That of column n in a unit, zero past the matrix. */
static __device__ inline float few_factor(const few_pack &p, int64_t n, int64_t unit)
{
    const int64_t group = unit * p.unit / p.group, column = p.columns > 1 ? n : 0;
    if (n >= p.from.n || group >= p.groups)
        return 0;
    return p
        .factors[p.from.turned ? column * p.groups + group : group * p.columns + column];
}

template <int Bits>
static __global__ void __launch_bounds__(THREADS)
    few_pack_kernel(const __grid_constant__ few_pack p)
{
    const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = first; i < p.words; i += step) {
        const int64_t block = i / p.each, word = i % p.each - FEW_PIECES * 4;
        const int64_t n = block / p.blocks * FEW_COLUMNS + word % FEW_COLUMNS;
        if (word < 0)
            p.to[i] =
                few_word<Bits>(p.from, p.blocks, block * FEW_PIECES * 4 + i % p.each);
        else
            p.to[i] = __float_as_uint(
                few_factor(p, n, block % p.blocks * p.units + word / FEW_COLUMNS));
    }
    for (int64_t i = first; p.once && i < p.panels * FEW_COLUMNS; i += step)
        p.once[i] = few_factor(p, i, 0);
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
    p->panels = (p->from.n + FEW_COLUMNS - 1) / FEW_COLUMNS;
    p->group = p->groups > 1 ? params->weight_group : p->blocks * block;
    for (p->unit = block; p->group % p->unit != 0;)
        p->unit /= 2;
    p->units = p->groups > 1 ? block / p->unit : 0;
    p->each = FEW_PIECES * 4 + p->units * FEW_COLUMNS;
    p->words = p->panels * p->blocks * p->each;
    s->flush = (int32_t)(p->unit / FEW_PAIR);
    s->b.blocks = p->blocks;
    s->b.block_bytes = (int32_t)(p->each * sizeof(uint32_t));
}

int few_bits_cuda_setup(const strata_node *n, void *state)
{
    few_state *s = (few_state *)state;
    few_pack p = {};
    void *values = NULL, *once = NULL;
    lay_out(n, &p, s);
    s->overlaps = n->sm >= 90;
    int status = few_rows_device(n, &s->multiprocessors);
    if (status == STRATA_OK)
        status = get(n, p.words, sizeof(uint32_t), &values);
    if (status == STRATA_OK && p.units == 0)
        status = get(n, p.panels * FEW_COLUMNS, sizeof(float), &once);
    if (status != STRATA_OK || p.words == 0)
        return status;
    s->b.values = values;
    s->b.factors = (const float *)once;
    p.to = (uint32_t *)values;
    p.once = (float *)once;
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
    if (p.batches > 65535 || p.n > INT32_MAX / 2 || p.k > INT32_MAX / 2)
        return refuse(n,
                      "it multiplies at most 65535 matrices of 2^30 - 1 columns and as "
                      "many rows");
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

/* Blocks that have as many panels each, as far as possible, and fill the chip once. */
static int64_t few_walkers(int64_t room, int64_t panels)
{
    const int64_t each = (panels + room - 1) / room;
    return (panels + each - 1) / each;
}

static int launch(const strata_run *r, bool mma)
{
    const few_state *s = (const few_state *)r->state;
    few_job g = {};
    g.j = matrix_job_of(r, s->b.values);
    g.b = s->b;
    const int64_t rows = g.j.p.m, panels = (g.j.p.n + FEW_COLUMNS - 1) / FEW_COLUMNS;
    const int64_t least = 2 * WARPS * few_block<8>::depth;
    const int64_t most = mma ? MOST_ROWS : 4;
    g.rows = (int32_t)(rows < most ? rows : most);
    g.groups = (int32_t)((rows + most - 1) / most);
    g.slots = SLOT_ROWS / g.rows < MOST_SLOTS ? SLOT_ROWS / g.rows : MOST_SLOTS;
    const int64_t others = g.groups * g.j.p.batches;
    if (others == 0)
        return STRATA_OK;
    /* Half as many as of halves: a block has much on its way. */
    g.split = few_rows_split(s->multiprocessors / 2, s->overlaps, panels * others,
                             g.j.p.k, least);
    const int64_t room = (MULTIPROCESSOR * s->multiprocessors + others - 1) / others;
    const few_kernel kernel = r->out[0].dtype == STRATA_FP16
                                  ? choose<__half>(s, mma, rows)
                                  : choose<__nv_bfloat16>(s, mma, rows);
    const dim3 grid((unsigned)(few_walkers(room, panels) * g.groups),
                    (unsigned)g.j.p.batches, (unsigned)g.split);
    return few_rows_launch(r, {(const void *)kernel, &g, grid, THREADS,
                               few_shared_bytes(g), s->overlaps, rows == 1, "few_bits"});
}

int few_bits_cuda_run(const strata_run *r)
{
    return launch(r, false);
}

int few_bits_mma_run(const strata_run *r)
{
    return launch(r, true);
}
