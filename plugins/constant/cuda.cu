/* SPDX-License-Identifier: Apache-2.0
 *
 * Constant on CUDA: a walk over the output that reads the weight, FP32 and linear; other
 * dtypes are moved as they are.
 */
#include "kernels/walk.cuh"
#include "plugins/common/move/move.h"

struct spread {
    const float *value;

    template <int N, int K>
    __device__ void apply(float v[N], const walk<K> &w, const walk_place<K> &p, int lane,
                          int64_t) const
    {
        walk_load<float, N>(v, value, w, p, 0, lane);
    }
};

static int constant_move(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    int64_t stride = 1;
    move_job job;
    move_begin(&job, y, &r->weight[0]);
    for (int d = y->rank - 1; d >= 0; d--) {
        move_dense(&job, d, y, stride);
        stride *= y->dims[d];
    }
    const int status = move_launch(r, &job);
    return status == STRATA_OK ? move_clear_pads(r, y) : status;
}

static int constant_run(const strata_run *r)
{
    const strata_tensor *y = &r->out[0];
    if (r->weight[0].dtype != STRATA_FP32)
        return constant_move(r);
    const walk_operand operand = walk_dense(y, 0, y->rank - 1);
    const walk<1> w = walk_over<1>(y, &operand);
    const spread s = {(const float *)r->weight[0].data};
    layer_float(y->dtype, [&](auto t) { walk_launch<decltype(t), 1>(r, w, s); });
    return layer_launched(r, "constant");
}

#define EXACT                                                                            \
    (STRATA_I64_NCHW | STRATA_I32_NCHW | STRATA_I8_NCHW | STRATA_I8_NHWC |               \
     STRATA_I8_NHWC16 | STRATA_I8_NC4HW4 | STRATA_I8_NC32HW32 | STRATA_U8_NCHW |         \
     STRATA_U8_NHWC | STRATA_U8_NC4HW4 | STRATA_U8_NC32HW32 | STRATA_BOOL_NCHW |         \
     STRATA_E4M3_NCHW | STRATA_E4M3_NHWC16 | STRATA_E5M2_NCHW | STRATA_E5M2_NHWC16 |     \
     STRATA_F64_NCHW)
static const strata_row rows[] = {{{0}, {CUDA_FLOATS | EXACT}}};

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
