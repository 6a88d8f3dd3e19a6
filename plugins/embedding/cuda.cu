/* SPDX-License-Identifier: Apache-2.0
 *
 * Embedding on CUDA: rows by plugins/common/index.cuh where the table has the output's
 * dtype; else packs of at most 8 elements are converted on their way. A table of floats
 * for a shorter output may be rounded once, in setup, to what it would be each time: half
 * as many bytes are read. `places` are added in FP32 on the way.
 */
#include "plugins/common/index.cuh"
#include "kernels/overlap.cuh"

#define ROUND_MOST (1 << 24) /* threads that round a table */

struct table_row {
    const void *index;
    int64_t rows;
    int32_t dtype;

    __device__ int64_t operator()(int64_t i) const
    {
        return index_at(index, dtype, i, rows);
    }
};

/* Rows to add, one for each place, or NULL. */
struct table_places {
    const float *rows;
    int64_t n;

    /* Pack `column` of row i, which has `by`. */
    template <int N>
    __device__ void load(float (&v)[N], int64_t i, uint32_t by, uint32_t column) const
    {
        const int WIDE = N % 4 == 0 ? 4 : 1;
        const pack<float, WIDE> *from =
            (const pack<float, WIDE> *)rows + (i % n * by + column) * (N / WIDE);
#pragma unroll
        for (int k = 0; k < N; k += WIDE) {
            const pack<float, WIDE> x = from[k / WIDE];
#pragma unroll
            for (int j = 0; j < WIDE; j++)
                v[k + j] = x.v[j];
        }
    }
};

/* by: packs of a row. Rows first, first + 1, ... */
template <typename To, typename From, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    convert_kernel(pack<To, N> *to, const pack<From, N> *from, divisor by, uint32_t count,
                   int64_t first, table_row source, table_places places)
{
    float shift[N] = {};
    launch_next();
    const uint32_t i = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i >= count) {
        wait_for_previous();
        return;
    }
    const uint32_t row = divide_by(i, by), column = i - row * by.d;
    if (places.rows)
        places.load<N>(shift, first + row, by.d, column);
    wait_for_previous();
    const int64_t at = source(first + row);
    pack<From, N> x = {};
    if (at >= 0)
        x = from[at * by.d + column];
    pack<To, N> y;
#pragma unroll
    for (int k = 0; k < N; k++)
        from_float(&y.v[k], to_float(x.v[k]) + shift[k]);
    to[first * by.d + i] = y;
}

static table_places places_of(const strata_run *r)
{
    if (r->n_weights < 2 || r->weight[1].rank == 0)
        return {NULL, 1};
    return {(const float *)r->weight[1].data, r->weight[1].dims[0]};
}

/* table: the weight's rows, as they are or rounded. */
template <typename To, typename From, int N>
static int launch(const strata_run *r, const void *table, const table_row &source)
{
    const int64_t packs = r->weight[0].dims[1] / N, rows = r->in[0].count;
    const int64_t most = 0x7fffffff / packs;
    int status = STRATA_OK;
    for (int64_t first = 0; first < rows && status == STRATA_OK; first += most) {
        const uint32_t count =
            (uint32_t)((rows - first < most ? rows - first : most) * packs);
        launch_overlapped(convert_kernel<To, From, N>, layer_blocks(count, CUDA_BLOCK),
                          CUDA_BLOCK, 0, layer_stream(r), (pack<To, N> *)r->out[0].data,
                          (const pack<From, N> *)table, divisor_of(packs), count, first,
                          source, places_of(r));
        status = layer_launched(r, "embedding");
    }
    return status;
}

template <typename To, typename From>
static int convert_rows(const strata_run *r, const void *table, const table_row &source)
{
    const int WIDE = sizeof(To) == 4 || sizeof(From) == 4 ? 4 : 8;
    return r->weight[0].dims[1] % WIDE == 0 ? launch<To, From, WIDE>(r, table, source)
                                            : launch<To, From, 1>(r, table, source);
}

template <typename To>
static int convert_to(const strata_run *r, const table_row &source)
{
    const void *table = r->weight[0].data;
    switch (r->weight[0].dtype) {
    case STRATA_FP32:
        return convert_rows<To, float>(r, table, source);
    case STRATA_FP16:
        return convert_rows<To, __half>(r, table, source);
    default:
        return convert_rows<To, __nv_bfloat16>(r, table, source);
    }
}

static int embedding_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *table = &r->weight[0], *y = &r->out[0];
    const table_row source = {x->data, table->dims[0], x->dtype};
    if (y->dtype == table->dtype && !places_of(r).rows)
        return index_copy_rows(r, y->data, table->data, x->count,
                               table->dims[1] * index_size(y->dtype), source,
                               "embedding");
    switch (y->dtype) {
    case STRATA_FP32:
        return convert_to<float>(r, source);
    case STRATA_FP16:
        return convert_to<__half>(r, source);
    default:
        return convert_to<__nv_bfloat16>(r, source);
    }
}

/* ---- tables that are rounded in setup -------------------------------------------------
 */

struct rounded_table {
    void *data; /* of the output's dtype */
};

template <typename To>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    round_kernel(To *to, const float *from, int64_t count)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < count; i += step)
        from_float(&to[i], from[i]);
}

static bool is_rounded(const strata_node *n)
{
    return n->weight[0].dtype == STRATA_FP32 && n->out[0].dtype != STRATA_FP32;
}

/* A trial has few indices, so that it does not tell which of both is faster. Engines that
 * were made before `rounded` was there still run so. */
static int embedding_accept(const strata_node *n)
{
    return !is_rounded(n) ? STRATA_OK
                          : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                                        "`rounded` is for tables that are rounded");
}

static int rounded_accept(const strata_node *n)
{
    return is_rounded(n) ? STRATA_OK
                         : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                                       "tables are FP32 and rounded to FP16 or BF16");
}

static int rounded_setup(const strata_node *n, void *state)
{
    const strata_pack *pack =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    rounded_table *s = (rounded_table *)state;
    const float *from = (const float *)n->weight[0].data;
    const int64_t count = index_count(&n->weight[0], 0, 2);
    const unsigned blocks =
        layer_blocks(count < ROUND_MOST ? count : ROUND_MOST, CUDA_BLOCK);
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1 " for a rounded table");
    const int status = pack->alloc(n, (size_t)(count > 0 ? count : 1) * 2, &s->data);
    if (status != STRATA_OK || count == 0)
        return status;
    if (n->out[0].dtype == STRATA_FP16)
        round_kernel<<<blocks, CUDA_BLOCK, 0, (cudaStream_t)n->stream>>>(
            (__half *)s->data, from, count);
    else
        round_kernel<<<blocks, CUDA_BLOCK, 0, (cudaStream_t)n->stream>>>(
            (__nv_bfloat16 *)s->data, from, count);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "rounding the table: %s",
                                          cudaGetErrorString(e));
}

static int rounded_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *table = &r->weight[0], *y = &r->out[0];
    const table_row source = {x->data, table->dims[0], x->dtype};
    const void *data = ((const rounded_table *)r->state)->data;
    if (!places_of(r).rows)
        return index_copy_rows(r, y->data, data, x->count, table->dims[1] * 2, source,
                               "embedding");
    return y->dtype == STRATA_FP16
               ? convert_rows<__half, __half>(r, data, source)
               : convert_rows<__nv_bfloat16, __nv_bfloat16>(r, data, source);
}

/* ---- tables ---------------------------------------------------------------------------
 */

static const strata_row rows[] = {
    {{INDEX_FORMATS}, {STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW}}};
static const strata_row rounded_rows[] = {
    {{INDEX_FORMATS}, {STRATA_F16_NCHW | STRATA_BF16_NCHW}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = embedding_accept,
     .run = embedding_run,
     .bandwidth = 0.9},
    {.id = 2,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
     .name = "rounded",
     .rows = STRATA_ARRAY(rounded_rows),
     .state_size = sizeof(rounded_table),
     .accept = rounded_accept,
     .setup = rounded_setup,
     .run = rounded_run,
     .bandwidth = 0.95},
};

static const strata_extends embedding = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Embedding",
    .params_size = sizeof(strata_embedding),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&embedding};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Embedding", extends)
