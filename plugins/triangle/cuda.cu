/* SPDX-License-Identifier: Apache-2.0
 *
 * Triangle on CUDA: a pack of up to 16 bytes a thread, zero where the diagonal says so.
 */
#include "kernels/layer.cuh"

#include "plugins/common/dtype.h"

/* N elements a pack; rows are a multiple of N where N > 1. */
template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    triangle_kernel(T *y, const T *x, int64_t packs, int64_t m, int64_t columns,
                    int64_t k, bool upper)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    for (int64_t at = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; at < packs;
         at += step) {
        const int64_t row = at * N / columns, first = at * N - row * columns;
        const int64_t right = first - row % m; /* of the main diagonal */
        pack<T, N> v = *(const pack<T, N> *)(x + at * N);
#pragma unroll
        for (int e = 0; e < N; e++)
            if (upper ? right + e < k : right + e > k)
                v.v[e] = 0;
        *(pack<T, N> *)(y + at * N) = v;
    }
}

template <typename T, int N>
static void triangle_packs(const strata_run *r)
{
    const strata_triangle *p = (const strata_triangle *)r->params;
    const strata_tensor *x = &r->in[0];
    const int64_t packs = x->count / N;
    triangle_kernel<T, N><<<layer_blocks(packs, CUDA_BLOCK), CUDA_BLOCK, 0,
                            layer_stream(r)>>>(
        (T *)r->out[0].data, (const T *)x->data, packs, x->dims[x->rank - 2],
        x->dims[x->rank - 1], p->k, p->upper != 0);
}

template <typename T>
static void triangle_of(const strata_run *r)
{
    const int N = 16 / (int)sizeof(T);
    if (r->in[0].dims[r->in[0].rank - 1] % N == 0)
        triangle_packs<T, N>(r);
    else
        triangle_packs<T, 1>(r);
}

static int triangle_run(const strata_run *r)
{
    switch (dtype_size(r->out[0].dtype)) {
    case 1: triangle_of<uint8_t>(r); break;
    case 2: triangle_of<uint16_t>(r); break;
    case 4: triangle_of<uint32_t>(r); break;
    default: triangle_of<uint64_t>(r); break;
    }
    return layer_launched(r, "triangle");
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |
      STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW |
      STRATA_BOOL_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW},
     {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = triangle_run,
     .bandwidth = 0.9},
};

static const strata_extends triangle = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Triangle",
    .params_size = sizeof(strata_triangle),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&triangle};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Triangle", extends)
