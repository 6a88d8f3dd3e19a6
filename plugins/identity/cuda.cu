/* SPDX-License-Identifier: Apache-2.0
 *
 * Identity on CUDA: a copy in any format, or nothing in place; then pad lanes are cleared
 * unless the input's are known to be zero.
 */
#include "kernels/layer.cuh"
#include "plugins/common/dtype.h"

struct pads {
    int64_t count;        /* pad elements */
    int64_t inner, step;  /* pixels inside a block, and their distance in elements */
    int64_t first, outer; /* of the first block's; from one image or pixel to the next */
    uint32_t lanes, lane; /* pad lanes of a vector, the first of them */
};

/* Where pads lie in a dense tensor with vectors: the last block of each image and pixel.
 * Channels-last: pixels, a block apart by Cp. Blocked: `inner` pixels V apart. */
static pads pads_of(const strata_tensor *t)
{
    const int64_t blocks = (t->dims[1] + t->vector - 1) / t->vector;
    pads p = {};
    p.lanes = (uint32_t)(blocks * t->vector - t->dims[1]);
    p.lane = (uint32_t)t->vector - p.lanes;
    p.step = t->vector;
    p.inner = t->strides[1] / t->vector;
    p.first = (blocks - 1) * t->strides[1];
    p.outer = blocks * t->strides[1];
    p.count = t->size / p.outer * p.inner * p.lanes;
    return p;
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK) clear_pads_kernel(T *y, pads p)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < p.count;
         i += step) {
        const int64_t pixel = i / p.lanes;
        y[pixel / p.inner * p.outer + p.first + pixel % p.inner * p.step + p.lane +
          i % p.lanes] = 0;
    }
}

static int clear_pads(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    const pads p = pads_of(y);
    const unsigned blocks = layer_blocks(p.count, CUDA_BLOCK);
    const cudaStream_t stream = layer_stream(r);
    switch (dtype_size(y->dtype)) {
    case 4:
        clear_pads_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>((uint32_t *)y->data, p);
        break;
    case 2:
        clear_pads_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>((uint16_t *)y->data, p);
        break;
    default:
        clear_pads_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>((uint8_t *)y->data, p);
    }
    return layer_launched(r, "identity");
}

static int identity_run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const size_t bytes = (size_t)y->size * dtype_size(y->dtype);
    if (y->data != x->data) {
        const cudaError_t e = cudaMemcpyAsync(y->data, x->data, bytes,
                                              cudaMemcpyDeviceToDevice, layer_stream(r));
        if (e != cudaSuccess)
            return STRATA_FAIL(r, STRATA_EDEVICE, "copy of %zu bytes: %s", bytes,
                               cudaGetErrorString(e));
    }
    return y->size != y->count && x->pad != STRATA_PAD_ZERO ? clear_pads(r) : STRATA_OK;
}

/* Every format: elements are not looked at. */
#define ALL ((UINT64_C(1) << STRATA_FORMAT_COUNT) - 1)
static const strata_row rows[] = {{{ALL}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = identity_run},
};

static const strata_extends identity = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Identity",
    .params_size = 0,
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&identity};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Identity", extends)
