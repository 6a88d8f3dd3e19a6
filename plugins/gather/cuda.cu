/* SPDX-License-Identifier: Apache-2.0
 *
 * Gather on CUDA: rows go by plugins/common/index.cuh, single elements a thread each, as
 * the output lies.
 */
#include "plugins/common/index.cuh"
#include "plugins/gather/gather.h"

struct rows_source : public gather_rows {
    bool flat; /* one batch, nothing before the axis */

    __device__ int64_t operator()(int64_t row) const
    {
        if (flat)
            return gather_source(this, 0, 0, row);
        const int64_t o = (int64_t)index_divide((uint64_t)row, (uint64_t)per);
        const int64_t b = (int64_t)index_divide((uint64_t)o, (uint64_t)outer);
        return gather_source(this, b, o - b * outer, row - o * per);
    }
};

static int run_rows(const strata_run *r)
{
    const strata_gather *p = (const strata_gather *)r->params;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const int64_t row = gather_row(p, x, &r->in[1]), size = index_size(x->dtype);
    rows_source source;
    (struct gather_rows &)source = gather_rows(p, x, &r->in[1]);
    source.flat = source.per == y->count / row;
    return index_copy_rows(r, y->data, x->data, y->count / row, row * size, source,
                           "gather_rows");
}

template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    elements_kernel(T *y, const T *x, int64_t count,
                    const __grid_constant__ index_elements g)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    for (; i < count; i += step) {
        const int64_t at = index_at(g.index, g.dtype, i, g.dim);
        int64_t from = at * g.stride[g.axis];
        uint64_t rest = (uint64_t)i;
        for (int d = g.rank - 1; d >= 0; d--) {
            const uint64_t next = d > 0 ? index_divide(rest, (uint64_t)g.n[d]) : 0;
            if (d != g.axis)
                from += (int64_t)(rest - next * (uint64_t)g.n[d]) * g.stride[d];
            rest = next;
        }
        y[i] = at < 0 ? T(0) : x[from];
    }
}

template <typename T>
static int run_elements(const strata_run *r)
{
    const strata_gather *p = (const strata_gather *)r->params;
    const strata_tensor *y = &r->out[0];
    elements_kernel<T>
        <<<layer_blocks(y->count, CUDA_BLOCK), CUDA_BLOCK, 0, layer_stream(r)>>>(
            (T *)y->data, (const T *)r->in[0].data, y->count,
            index_join(index_axis(p->axis, y->rank), &r->in[0], &r->in[1]));
    return layer_launched(r, "gather_elements");
}

static int gather_run(const strata_run *r)
{
    const strata_gather *p = (const strata_gather *)r->params;
    if (p->mode != STRATA_GATHER_ELEMENTS)
        return run_rows(r);
    switch (index_size(r->out[0].dtype)) {
    case 1:
        return run_elements<uint8_t>(r);
    case 2:
        return run_elements<uint16_t>(r);
    case 4:
        return run_elements<uint32_t>(r);
    default:
        return run_elements<uint64_t>(r);
    }
}

static const strata_row rows[] = {{{INDEX_LINEAR, INDEX_FORMATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = gather_run,
     .bandwidth = 0.85},
};

static const strata_extends gather = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Gather",
    .params_size = sizeof(strata_gather),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&gather};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Gather", extends)
