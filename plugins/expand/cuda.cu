/* SPDX-License-Identifier: Apache-2.0
 *
 * Expand on CUDA: a unit of up to 16 bytes a thread; where single elements repeat, a pack
 * of one value.
 */
#include "kernels/layer.cuh"

#include "plugins/common/dtype.h"
#include "plugins/expand/expand.h"

/* Dims innermost first: n units that come `repeat` times. */
struct expand_job {
    int32_t dims;
    int64_t n[STRATA_MAX_RANK + 1], out[STRATA_MAX_RANK + 1];
    int64_t units; /* written */
};

/* Units of the output; unit `at` is unit (result) of the input. */
static __device__ inline int64_t expand_source(const expand_job &job, int64_t at)
{
    int64_t from = 0, step = 1;
    for (int d = 0; d < job.dims; d++) {
        const bool last = d + 1 == job.dims, small = at < 0x7fffffff &&
                                                     job.out[d] < 0x7fffffff;
        const int64_t next = last ? 0
                             : small ? (uint32_t)at / (uint32_t)job.out[d]
                                     : at / job.out[d];
        const int64_t i = at - next * job.out[d];
        const int64_t inside = i < 0x7fffffff && job.n[d] < 0x7fffffff
                                   ? (uint32_t)i % (uint32_t)job.n[d]
                                   : i % job.n[d];
        from += inside * step;
        step *= job.n[d];
        at = next;
    }
    return from;
}

/* T: a unit. */
template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    expand_kernel(T *y, const T *x, expand_job job)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < job.units;
         i += step)
        y[i] = x[expand_source(job, i)];
}

/* The innermost dim is one element that comes a multiple of N times. */
template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    expand_fill_kernel(T *y, const T *x, expand_job job)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < job.units / N;
         i += step) {
        const T value = x[expand_source(job, i * N)];
        pack<T, N> v;
#pragma unroll
        for (int e = 0; e < N; e++)
            v.v[e] = value;
        *(pack<T, N> *)(y + i * N) = v;
    }
}

template <typename T>
static void expand_units(const strata_run *r, const expand_job &job)
{
    expand_kernel<T><<<layer_blocks(job.units, CUDA_BLOCK), CUDA_BLOCK, 0,
                       layer_stream(r)>>>((T *)r->out[0].data,
                                          (const T *)r->in[0].data, job);
}

template <typename T>
static void expand_fill(const strata_run *r, const expand_job &job)
{
    const int N = 16 / (int)sizeof(T);
    expand_fill_kernel<T, N><<<layer_blocks(job.units / N, CUDA_BLOCK), CUDA_BLOCK, 0,
                               layer_stream(r)>>>((T *)r->out[0].data,
                                                  (const T *)r->in[0].data, job);
}

/* The largest unit of whole elements in which the innermost dim is counted. */
static int64_t expand_unit(int64_t n, int64_t size)
{
    int64_t unit = 1;
    while (unit * size < 16 && n % (unit * 2) == 0)
        unit *= 2;
    return unit;
}

static int expand_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    const int64_t size = (int64_t)dtype_size(y->dtype);
    struct expand_dim dim[STRATA_MAX_RANK + 1];
    expand_job job = {};
    job.dims = expand_dims(y, &r->in[0], dim);
    const struct expand_dim inner = dim[job.dims - 1];
    const int64_t unit = expand_unit(inner.n, size);
    for (int d = 0; d < job.dims; d++) {
        const struct expand_dim *from = &dim[job.dims - 1 - d];
        job.n[d] = d == 0 ? from->n / unit : from->n;
        job.out[d] = job.n[d] * from->repeat;
    }
    job.units = y->count / unit;
    if (inner.n == 1 && inner.repeat * size % 16 == 0)
        switch (size) {
        case 1: expand_fill<uint8_t>(r, job); break;
        case 2: expand_fill<uint16_t>(r, job); break;
        case 4: expand_fill<uint32_t>(r, job); break;
        default: expand_fill<uint64_t>(r, job); break;
        }
    else
        switch (unit * size) {
        case 1: expand_units<uint8_t>(r, job); break;
        case 2: expand_units<uint16_t>(r, job); break;
        case 4: expand_units<uint32_t>(r, job); break;
        case 8: expand_units<uint64_t>(r, job); break;
        default: expand_units<uint4>(r, job); break;
        }
    return layer_launched(r, "expand");
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |
      STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW |
      STRATA_BOOL_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = expand_run,
     .bandwidth = 0.9},
};

static const strata_extends expand = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Expand",
    .params_size = sizeof(strata_expand),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&expand};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Expand", extends)
