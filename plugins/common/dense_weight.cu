/* SPDX-License-Identifier: Apache-2.0
 *
 * Packing weights, once an engine: a thread an element, bounded by 64-bit divisions.
 */
#include "plugins/common/dense_weight.h"
#include "plugins/common/dtype.h"
#include "kernels/layer.cuh"

#define THREADS 256
#define MOST_BLOCKS (1 << 20)

struct pack_job {
    const float *weight;
    void *packed;
    int64_t rows, columns;         /* logical */
    int64_t row_step, column_step; /* of weight */
    int64_t pitch;                 /* of packed */
    strata_tensor image;
};

struct repeat_job {
    const float *bias;
    void *packed;
    int64_t channels, repeat, count;
};

/* Where the column-th element of an image, in the order of its dims, lies. */
static __device__ inline int64_t place_in_image(const strata_tensor &t, int64_t column)
{
    int64_t at = 0;
    for (int d = t.rank - 1; d >= 1; d--) {
        const int64_t i = column % t.dims[d];
        column /= t.dims[d];
        at += d == t.vector_dim ? i / t.vector * t.strides[d] + i % t.vector
                                : i * t.strides[d];
    }
    return at;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    pack_kernel(const __grid_constant__ pack_job j)
{
    const int64_t step = (int64_t)gridDim.x * THREADS, count = j.rows * j.columns;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += step) {
        const int64_t row = i / j.columns, column = i % j.columns;
        from_float((T *)j.packed + row * j.pitch + place_in_image(j.image, column),
                   j.weight[row * j.row_step + column * j.column_step]);
    }
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    repeat_kernel(const __grid_constant__ repeat_job j)
{
    const int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < j.count;
         i += step) {
        const int64_t channel = i / j.repeat;
        from_float((T *)j.packed + i, channel < j.channels ? j.bias[channel] : 0.0f);
    }
}

static unsigned blocks_for(int64_t count)
{
    const int64_t blocks = (count + THREADS - 1) / THREADS;
    return (unsigned)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
}

static int allocate(const strata_node *n, int64_t elements, void **out)
{
    const strata_pack *pack =
        n->host->extension ? (const strata_pack *)n->host->extension(STRATA_PACK_V1)
                           : NULL;
    const size_t size = dtype_size(n->out[0].dtype);
    if (!pack)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "the host has no " STRATA_PACK_V1
                           ", which this impl needs for its packed weights");
    return pack->alloc(n, (size_t)elements * size, out);
}

static int launched(const strata_node *n, cudaError_t e)
{
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing the weights: %s",
                                          cudaGetErrorString(e));
}

extern "C" int64_t dense_image_size(const strata_tensor *t)
{
    return t->dims[0] > 0 ? t->size / t->dims[0] : 0;
}

extern "C" int64_t dense_channels(const strata_tensor *t)
{
    const int64_t v = t->vector_dim == 1 ? t->vector : 1;
    return (t->dims[1] + v - 1) / v * v;
}

/* Zeros, then the job's weights over them; in is its dtype. */
static int pack_rows(const strata_node *n, int64_t padded_rows, pack_job *job,
                     void **packed)
{
    const cudaStream_t stream = (cudaStream_t)n->stream;
    const int64_t elements = padded_rows * job->pitch;
    int status = allocate(n, elements, packed);
    if (status != STRATA_OK)
        return status;
    job->weight = (const float *)n->weight[0].data;
    job->packed = *packed;
    const cudaError_t e = cudaMemsetAsync(
        *packed, 0, (size_t)elements * dtype_size(n->in[0].dtype), stream);
    if (e != cudaSuccess)
        return launched(n, e);
    const unsigned blocks = blocks_for(job->rows * job->columns);
    layer_float(n->in[0].dtype, [&](auto t) {
        pack_kernel<decltype(t)><<<blocks, THREADS, 0, stream>>>(*job);
    });
    return launched(n, cudaGetLastError());
}

extern "C" int dense_weight_pack(const strata_node *n, int transposed, void **packed)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    pack_job job = {};
    *packed = NULL;
    if (x->dims[0] == 0)
        return STRATA_OK;
    job.rows = y->dims[1];
    job.columns = x->count / x->dims[0];
    job.row_step = transposed ? 1 : job.columns;
    job.column_step = transposed ? job.rows : 1;
    job.pitch = dense_image_size(x);
    job.image = *x;
    return pack_rows(n, dense_image_size(y), &job, packed);
}

extern "C" int dense_channels_pack(const strata_node *n, void **packed)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    pack_job job = {};
    job.rows = y->dims[1];
    job.columns = job.row_step = x->dims[1];
    job.column_step = 1;
    job.pitch = dense_channels(x);
    job.image.rank = 2; /* channels side by side */
    job.image.dims[1] = x->dims[1];
    job.image.strides[1] = 1;
    job.image.vector_dim = -1;
    return pack_rows(n, dense_channels(y), &job, packed);
}

extern "C" int dense_bias_pack(const strata_node *n, int64_t repeat, int64_t count,
                               void **packed)
{
    const strata_tensor *y = &n->out[0];
    const cudaStream_t stream = (cudaStream_t)n->stream;
    int status = allocate(n, count, packed);
    if (status != STRATA_OK)
        return status;
    repeat_job job = {(const float *)n->weight[1].data, *packed, y->dims[1], repeat,
                      count};
    layer_float(y->dtype, [&](auto t) {
        repeat_kernel<decltype(t)><<<blocks_for(count), THREADS, 0, stream>>>(job);
    });
    return launched(n, cudaGetLastError());
}
