/* SPDX-License-Identifier: Apache-2.0
 *
 * MaxUnpool on CUDA. Two values may go to one place, and then the later one stays, in every
 * run: so each place first learns the last value that leads there, by an integer maximum,
 * and is then written once.
 */
#include "kernels/layer.cuh"
#include "plugins/max_unpool/max_unpool.h"

enum { X, INDICES };

/* Element (n, c, pixel) in a dense tensor, of either input or output. */
struct unpool_tensor {
    void *data;
    int64_t plane;
    uint32_t channels, stored, vector; /* stored: in memory */
    bool last;
};

struct unpool_place {
    int64_t image, pixel;
    uint32_t channel;
};

/* Of the i-th element in memory. */
static __device__ inline unpool_place unpool_find(const unpool_tensor &t, int64_t i)
{
    unpool_place p;
    if (t.last) {
        p.channel = (uint32_t)(i % t.stored);
        i /= t.stored;
        p.pixel = i % t.plane;
        p.image = i / t.plane;
    } else {
        const uint32_t lane = (uint32_t)(i % t.vector);
        i /= t.vector;
        p.pixel = i % t.plane;
        i /= t.plane;
        p.channel = (uint32_t)(i % (t.stored / t.vector)) * t.vector + lane;
        p.image = i / (t.stored / t.vector);
    }
    return p;
}

/* Of the i-th value, counted as if it were linear. */
static __device__ inline int64_t unpool_offset(const unpool_tensor &t, int64_t i)
{
    const int64_t pixel = i % t.plane, c = i / t.plane % t.channels;
    const int64_t image = i / t.plane / t.channels;
    return t.last ? (image * t.plane + pixel) * t.stored + c
                  : ((image * (t.stored / t.vector) + c / t.vector) * t.plane + pixel) *
                            t.vector +
                        c % t.vector;
}

/* owner: 1 + the last value that leads to each output, 0 before. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    unpool_own_kernel(uint32_t *owner, const int64_t *index, int64_t values,
                      int64_t outputs)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < values;
         i += step) {
        const int64_t to = index[i];
        if (to >= 0 && to < outputs)
            atomicMax(&owner[to], (uint32_t)i + 1);
    }
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    unpool_write_kernel(unpool_tensor y, unpool_tensor x, const uint32_t *owner,
                        int64_t size)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < size;
         i += step) {
        const unpool_place p = unpool_find(y, i);
        T v = zero_element<T>();
        if (p.channel < y.channels) {
            const uint32_t from =
                owner[(p.image * y.channels + p.channel) * y.plane + p.pixel];
            if (from)
                v = ((const T *)x.data)[unpool_offset(x, (int64_t)from - 1)];
        }
        ((T *)y.data)[i] = v;
    }
}

/* ---- on the host ----------------------------------------------------------------------
 */

static unpool_tensor unpool_tensor_of(const strata_tensor *t)
{
    unpool_tensor v = {t->data, 1, (uint32_t)t->dims[1], 0, 1, false};
    if (t->vector_dim == 1 && t->vector > 1)
        v.vector = (uint32_t)t->vector;
    for (int d = 2; d < t->rank; d++)
        v.plane *= t->dims[d];
    v.stored = (v.channels + v.vector - 1) / v.vector * v.vector;
    v.last = v.vector == 8 || (v.vector == 1 && t->strides[1] == 1 && v.channels > 1);
    return v;
}

static int unpool_accept(const strata_node *n)
{
    return n->in[X].count < UINT32_MAX
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                             "input of %lld elements; needed are fewer than 2^32 - 1",
                             (long long)n->in[X].count);
}

/* An owner of each output. */
static size_t unpool_workspace(const strata_node *n)
{
    size_t bytes;
    return __builtin_mul_overflow((size_t)n->out[0].count, sizeof(uint32_t), &bytes)
               ? SIZE_MAX
               : bytes;
}

static int unpool_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[X], *y = &r->out[0];
    const cudaStream_t stream = layer_stream(r);
    uint32_t *owner = (uint32_t *)r->workspace;
    const cudaError_t e =
        cudaMemsetAsync(owner, 0, (size_t)y->count * sizeof *owner, stream);
    if (e != cudaSuccess)
        return STRATA_FAIL(r, STRATA_EDEVICE, "clearing workspace: %s (%s)",
                           cudaGetErrorString(e), cudaGetErrorName(e));
    if (x->count > 0)
        unpool_own_kernel<<<layer_blocks(x->count, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(
            owner, (const int64_t *)r->in[INDICES].data, x->count, y->count);
    layer_float(y->dtype, [&](auto t) {
        unpool_write_kernel<decltype(t)>
            <<<layer_blocks(y->size, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(
                unpool_tensor_of(y), unpool_tensor_of(x), owner, y->size);
    });
    return layer_launched(r, "max unpool");
}

static const strata_row rows[] = {{{CUDA_FLOATS, STRATA_I64_NCHW}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = unpool_accept,
     .workspace = unpool_workspace,
     .run = unpool_run,
     .bandwidth = 0.4},
};

static const strata_extends unpool_extends = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::MaxUnpool",
    .params_size = sizeof(strata_max_unpool),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&unpool_extends};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::MaxUnpool", extends)
