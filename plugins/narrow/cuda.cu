/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrow on CUDA: an element a thread and turn.
 */
#include "kernels/layer.cuh"

#include "plugins/common/convert.cuh"
#include "plugins/narrow/narrow.h"

template <typename To, typename From>
struct narrow_element {
    static __device__ To of(const narrow_rule &r, From x)
    {
        return (To)narrow_integer(&r, x);
    }
};
template <typename From>
struct narrow_element<float, From> {
    static __device__ float of(const narrow_rule &r, From x)
    {
        return narrow_float(&r, cast_element<float>(x, false));
    }
};

template <typename To, typename From>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    narrow_kernel(To *y, const From *x, int64_t n, narrow_rule rule)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < n; i += step)
        y[i] = narrow_element<To, From>::of(rule, x[i]);
}

template <typename To, typename From>
static void narrow_of(const strata_run *r)
{
    const int64_t n = r->in[0].count;
    narrow_kernel<<<layer_blocks(n, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(
        (To *)r->out[0].data, (const From *)r->in[0].data, n,
        narrow_rule_of((const strata_narrow *)r->params));
}

static int narrow_run(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_FP32:
        narrow_of<float, float>(r);
        break;
    case STRATA_FP16:
        narrow_of<float, __half>(r);
        break;
    case STRATA_BF16:
        narrow_of<float, __nv_bfloat16>(r);
        break;
    case STRATA_INT8:
        narrow_of<int8_t, int8_t>(r);
        break;
    case STRATA_INT32:
        narrow_of<int32_t, int32_t>(r);
        break;
    default:
        narrow_of<int64_t, int64_t>(r);
        break;
    }
    return layer_launched(r, "narrow");
}

static const strata_row rows[] = {NARROW_ROWS};

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
