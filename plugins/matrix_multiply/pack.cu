/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing weights, once an engine: tiles pass through shared memory, so that reads and
 * writes are both of neighbours when the weight is turned.
 */
#include "plugins/matrix_multiply/pack.h"

#include "kernels/element.cuh"
#include "plugins/matrix_multiply/product.h"

#define TILE 32  /* a side */
#define ROWS 8   /* of a tile at a time */
#define MOST_BLOCKS 65535

struct pack_job {
    const void *weight;
    void *packed;
    int64_t rows, columns; /* of weight */
    int32_t turned;        /* packed is columns x rows */
};

template <typename To, typename From>
static __global__ void __launch_bounds__(TILE *ROWS)
    pack_kernel(const __grid_constant__ pack_job j)
{
    __shared__ To tile[TILE][TILE + 1];
    const int64_t across = (j.columns + TILE - 1) / TILE;
    const int64_t tiles = (j.rows + TILE - 1) / TILE * across;
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * TILE, column = t % across * TILE;
        for (int i = threadIdx.y; i < TILE; i += ROWS)
            if (row + i < j.rows && column + threadIdx.x < j.columns)
                tile[i][threadIdx.x] =
                    convert<To>(((const From *)
                                     j.weight)[(row + i) * j.columns + column + threadIdx.x]);
        __syncthreads();
        for (int i = threadIdx.y; i < TILE; i += ROWS) {
            const int64_t to = j.turned ? column + i : row + i;
            const int64_t at = (j.turned ? row : column) + threadIdx.x;
            if (to < (j.turned ? j.columns : j.rows) &&
                at < (j.turned ? j.rows : j.columns))
                ((To *)j.packed)[to * (j.turned ? j.rows : j.columns) + at] =
                    j.turned ? tile[threadIdx.x][i] : tile[i][threadIdx.x];
        }
        __syncthreads();
    }
}

static int pack_weight(const strata_node *n, pack_job *j, int32_t dtype, void **packed)
{
    const strata_pack *host =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    const int size = dtype == STRATA_FP32                           ? 4
                     : dtype == STRATA_FP16 || dtype == STRATA_BF16 ? 2
                                                                    : 1;
    const int64_t tiles = (j->rows + TILE - 1) / TILE * ((j->columns + TILE - 1) / TILE);
    const unsigned blocks = (unsigned)(tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS);
    const cudaStream_t stream = (cudaStream_t)n->stream;
    const dim3 threads(TILE, ROWS);
    int64_t bytes;
    if (!host)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its packed weights");
    if (__builtin_mul_overflow(j->rows, j->columns, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)size, &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    const int status = host->alloc(n, (size_t)(bytes > 0 ? bytes : 1), packed);
    if (status != STRATA_OK || bytes == 0)
        return status;
    j->packed = *packed;
    if (size == 1)
        pack_kernel<uint8_t, uint8_t><<<blocks, threads, 0, stream>>>(*j);
    else if (dtype == STRATA_FP16)
        pack_kernel<__half, float><<<blocks, threads, 0, stream>>>(*j);
    else if (dtype == STRATA_BF16)
        pack_kernel<__nv_bfloat16, float><<<blocks, threads, 0, stream>>>(*j);
    else
        pack_kernel<float, float><<<blocks, threads, 0, stream>>>(*j);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

extern "C" int matrix_weight_pack(const strata_node *n, int rows_of_n,
                                  void **packed)
{
    const strata_matrix_multiply *p = (const strata_matrix_multiply *)n->params;
    const strata_tensor *w = &n->weight[MATRIX_WEIGHT];
    pack_job j = {w->data, NULL, w->dims[0], w->dims[1], 0};
    j.turned = rows_of_n ? p->transpose_b != 0 : !p->transpose_b;
    return pack_weight(
        n, &j, w->dtype == STRATA_FP32 ? n->in[MATRIX_A].dtype : w->dtype, packed);
}

extern "C" int matrix_bias_pack(const strata_node *n, void **packed)
{
    const strata_tensor *w = &n->weight[MATRIX_BIAS];
    pack_job j = {w->data, NULL, 1, w->dims[0], 0};
    return pack_weight(n, &j, n->out[0].dtype, packed);
}
