/* SPDX-License-Identifier: Apache-2.0
 *
 * Compare on CUDA: truths of two operands as they lie, or along a walk.
 */
#include "plugins/common/pointwise_walk.cuh"

template <typename T>
static void compare_of(const strata_run *r, int op)
{
    const pointwise_args k = pointwise_args_of(0, 0, 0);
    point_binary_run<POINTWISE_OF_COMPARE + POINTWISE_SIMPLE, T, T, uint8_t>(
        r, &r->in[0], &r->in[1], op, k);
}

static int compare_run(const strata_run *r)
{
    const strata_compare *p = (const strata_compare *)r->params;
    const int op = POINTWISE_COMPARE + p->op;
    switch (r->in[0].dtype) {
    case STRATA_INT8: compare_of<int8_t>(r, op); break;
    case STRATA_UINT8:
    case STRATA_BOOL8: compare_of<uint8_t>(r, op); break;
    case STRATA_INT32: compare_of<int32_t>(r, op); break;
    case STRATA_INT64: compare_of<int64_t>(r, op); break;
    default:
        layer_float(r->in[0].dtype, [&](auto t) { compare_of<decltype(t)>(r, op); });
        break;
    }
    return layer_launched(r, "compare");
}

static const strata_row rows[] = {
    {{POINT_LINEAR_FLOATS | POINT_INTEGERS | STRATA_BOOL_NCHW, STRATA_SAME},
     {STRATA_BOOL_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED | STRATA_PITCHED_IN | STRATA_PITCHED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = compare_run,
     .bandwidth = 0.9},
};

static const strata_extends compare = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Compare",
    .params_size = sizeof(strata_compare),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&compare};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Compare", extends)
