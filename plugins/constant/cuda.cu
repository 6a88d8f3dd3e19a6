/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant on CUDA: a walk over the output that reads the weight, FP32 and linear.
 */
#include "kernels/walk.cuh"

struct spread {
    const float *value;

    template <int N, int K>
    __device__ void apply(float v[N], const walk<K> &w, const walk_place<K> &p, int lane,
                          int64_t) const
    {
        walk_load<float, N>(v, value, w, p, 0, lane);
    }
};

static int constant_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    const walk_operand operand = walk_dense(y, 0, y->rank - 1);
    const walk<1> w = walk_over<1>(y, &operand);
    const spread s = {(const float *)r->weight[0].data};
    layer_float(y->dtype, [&](auto t) { walk_launch<decltype(t), 1>(r, w, s); });
    return layer_launched(r, "constant");
}

static const strata_row rows[] = {{{0}, {CUDA_FLOATS}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = constant_run},
};

static const strata_extends constant = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Constant",
    .params_size = sizeof(strata_constant),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&constant};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Constant", extends)
