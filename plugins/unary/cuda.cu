/* SPDX-License-Identifier: Apache-2.0
 *
 * Unary on CUDA: 16 bytes a pack, one switch a pack; pad lanes become zero, since f(0) is
 * not 0 for every op.
 */
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/unary/unary.h"

enum {
    SIMPLE = POINTWISE_OF_UNARY + POINTWISE_SIMPLE,
    CURVES = POINTWISE_OF_UNARY + POINTWISE_CURVES,
    RARE = POINTWISE_OF_UNARY + POINTWISE_RARE
};

template <typename T>
static void unary_of_float(const strata_run *r, int op, const pointwise_args &k)
{
    if (unary_tests(op))
        point_unary_run<SIMPLE, T, uint8_t>(r, op, k);
    else if (pointwise_group(op) == POINTWISE_SIMPLE)
        point_unary_run<SIMPLE, T, T>(r, op, k);
    else if (pointwise_group(op) == POINTWISE_CURVES)
        point_unary_run<CURVES, T, T>(r, op, k);
    else
        point_unary_run<RARE, T, T>(r, op, k);
}

template <typename T>
static void unary_of_integer(const strata_run *r, int op, const pointwise_args &k)
{
    if (unary_tests(op))
        point_unary_run<SIMPLE, T, uint8_t>(r, op, k);
    else
        point_unary_run<SIMPLE, T, T>(r, op, k);
}

static int unary_run(const strata_run *r)
{
    const strata_unary *p = (const strata_unary *)r->params;
    const pointwise_args k = pointwise_args_of(p->negative, p->positive, 0);
    switch (r->in[0].dtype) {
    case STRATA_FP16: unary_of_float<__half>(r, p->op, k); break;
    case STRATA_BF16: unary_of_float<__nv_bfloat16>(r, p->op, k); break;
    case STRATA_INT8: unary_of_integer<int8_t>(r, p->op, k); break;
    case STRATA_UINT8:
    case STRATA_BOOL8: unary_of_integer<uint8_t>(r, p->op, k); break;
    case STRATA_INT32: unary_of_integer<int32_t>(r, p->op, k); break;
    case STRATA_INT64: unary_of_integer<int64_t>(r, p->op, k); break;
    default: unary_of_float<float>(r, p->op, k); break;
    }
    return layer_launched(r, "unary");
}

static const strata_row rows[] = {
    {{CUDA_FLOATS | POINT_INTEGERS | STRATA_BOOL_NCHW}, {STRATA_SAME}},
    {{POINT_LINEAR_FLOATS | POINT_INTEGERS}, {STRATA_BOOL_NCHW}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = unary_accept,
     .run = unary_run,
     .bandwidth = 0.9},
};

static const strata_extends unary = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Unary",
    .params_size = sizeof(strata_unary),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&unary};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Unary", extends)
