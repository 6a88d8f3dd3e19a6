/* SPDX-License-Identifier: Apache-2.0
 *
 * ParametricReLU on CUDA: the slope, an FP32 weight, is the second operand of a walk.
 */
#include "plugins/common/pointwise_walk.cuh"

template <typename T>
static void parametric_relu_of(const strata_run *r)
{
    const pointwise_args k = pointwise_args_of(0, 0, 0);
    point_binary_run<POINTWISE_SIMPLE, T, float, T>(r, &r->in[0], &r->weight[0],
                                                    POINTWISE_PRELU, k);
}

static int parametric_relu_run(const strata_run *r)
{
    layer_float(r->out[0].dtype, [&](auto t) { parametric_relu_of<decltype(t)>(r); });
    return layer_launched(r, "parametric_relu");
}

static const strata_row rows[] = {{{CUDA_FLOATS}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags =
         STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = parametric_relu_run,
     .bandwidth = 0.9},
};

static const strata_extends parametric_relu = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::ParametricReLU",
    .params_size = 0,
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&parametric_relu};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::ParametricReLU", extends)
