/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape on CUDA: the numbers travel as a kernel's parameters, so that graphs hold them.
 */
#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"

#include "plugins/shape/shape.h"

struct extents {
    int64_t v[STRATA_MAX_RANK];
};

template <typename T>
static __global__ void shape_kernel(T *y, const extents from, int64_t count)
{
    launch_next();
    wait_for_previous();
    for (int64_t k = threadIdx.x; k < count; k += blockDim.x)
        y[k] = (T)from.v[k % STRATA_MAX_RANK];
}

/* Of a list of axes longer than a tensor's rank, so many at a time. */
static int shape_run(const strata_run *r)
{
    const strata_shape *p = (const strata_shape *)r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    for (int64_t done = 0; done < y->dims[0]; done += STRATA_MAX_RANK) {
        const int64_t left = y->dims[0] - done;
        const int64_t count = left < STRATA_MAX_RANK ? left : STRATA_MAX_RANK;
        extents from = {};
        for (int64_t k = 0; k < count; k++)
            from.v[k] = x->dims[shape_axis(p, done + k, x)];
        if (y->dtype == STRATA_INT32)
            launch_overlapped(shape_kernel<int32_t>, 1, STRATA_MAX_RANK, 0,
                              layer_stream(r), (int32_t *)y->data + done, from, count);
        else
            launch_overlapped(shape_kernel<int64_t>, 1, STRATA_MAX_RANK, 0,
                              layer_stream(r), (int64_t *)y->data + done, from, count);
    }
    return layer_launched(r, "shape");
}

static const strata_row rows[] = {
    {{SHAPE_FORMATS}, {STRATA_I32_NCHW | STRATA_I64_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = shape_run,
     .bandwidth = 0.9},
};

static const strata_extends shape = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Shape",
    .params_size = sizeof(strata_shape),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&shape};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Shape", extends)
