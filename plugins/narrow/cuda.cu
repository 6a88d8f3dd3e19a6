/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow on CUDA: an element a thread and turn.
 */
#include "kernels/layer.cuh"

#include "plugins/narrow/narrow.h"

static __device__ inline float narrow_element(const narrow_rule &r, float x)
{
    return narrow_float(&r, x);
}

template <typename T>
static __device__ inline T narrow_element(const narrow_rule &r, T x)
{
    return (T)narrow_integer(&r, x);
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    narrow_kernel(T *y, const T *x, int64_t n, narrow_rule rule)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n; i += step)
        y[i] = narrow_element(rule, x[i]);
}

template <typename T>
static void narrow_of(const strata_run *r)
{
    const int64_t n = r->in[0].count;
    narrow_kernel<<<layer_blocks(n, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(
        (T *)r->out[0].data, (const T *)r->in[0].data, n,
        narrow_rule_of((const strata_narrow *)r->params));
}

static int narrow_run(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_FP32:
        narrow_of<float>(r);
        break;
    case STRATA_INT8:
        narrow_of<int8_t>(r);
        break;
    case STRATA_INT32:
        narrow_of<int32_t>(r);
        break;
    default:
        narrow_of<int64_t>(r);
        break;
    }
    return layer_launched(r, "narrow");
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_I8_NCHW | STRATA_I32_NCHW | STRATA_I64_NCHW},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = narrow_run,
     .bandwidth = 0.7},
};

static const strata_extends narrow = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Narrow",
    .params_size = sizeof(strata_narrow),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&narrow};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Narrow", extends)
