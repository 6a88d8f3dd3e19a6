/* SPDX-License-Identifier: Apache-2.0
 *
 * ElementWise on CUDA: one walk over the output, all inputs combined from left to right
 * in FP32 and rounded once; then a fused residual and activation.
 */
#include "kernels/walk.cuh"

#define MAX_INPUTS 8

struct combine {
    const void *in[MAX_INPUTS];
    int32_t n_in, op;
    epilogue_args epilogue;
};

static __device__ inline float combine_one(int32_t op, float a, float b)
{
    switch (op) {
    case STRATA_SUM:
        return a + b;
    case STRATA_SUB:
        return a - b;
    case STRATA_PRODUCT:
        return a * b;
    case STRATA_DIV:
        return a / b;
    case STRATA_MAX:
        return a > b || isnan(a) ? a : b;
    case STRATA_MIN:
        return a < b || isnan(a) ? a : b;
    default:
        return power(a, b);
    }
}

template <typename T>
struct combine_of : combine {
    template <int N, int K>
    __device__ void apply(float v[N], const walk<K> &w, const walk_place<K> &p, int lane,
                          int64_t i) const
    {
        walk_load<T, N>(v, in[0], w, p, 0, lane);
#pragma unroll
        for (int k = 1; k < K; k++) {
            float next[N];
            if (k >= 2 && k >= n_in)
                break;
            walk_load<T, N>(next, in[k], w, p, k, lane);
#pragma unroll
            for (int e = 0; e < N; e++)
                v[e] = combine_one(op, v[e], next[e]);
        }
        walk_finish<T, N>(v, i, epilogue);
    }
};

template <typename T, int K>
static void combine_launch(const strata_run *r)
{
    const strata_elementwise *params = (const strata_elementwise *)r->params;
    walk_operand operand[K] = {};
    combine_of<T> c = {};
    c.n_in = r->n_in;
    c.op = params->op;
    c.epilogue = epilogue_of(r);
    for (int k = 0; k < r->n_in; k++) {
        c.in[k] = r->in[k].data;
        operand[k] = walk_tensor(&r->out[0], &r->in[k]);
    }
    for (int k = r->n_in; k < K; k++) /* keeps dims apart no more than input 0 does */
        operand[k] = operand[0];
    walk_launch<T, K>(r, walk_over<K>(&r->out[0], operand), c);
}

static int elementwise_run(const strata_run *r)
{
    const bool half = r->out[0].dtype == STRATA_FP16;
    if (r->n_in <= 2)
        half ? combine_launch<__half, 2>(r) : combine_launch<float, 2>(r);
    else
        half ? combine_launch<__half, MAX_INPUTS>(r)
             : combine_launch<float, MAX_INPUTS>(r);
    return layer_launched(r, "elementwise");
}

static const strata_row rows[] = {{{CUDA_FLOATS, STRATA_SAME}, {STRATA_SAME}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .epilogues = STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .run = elementwise_run},
};

static const strata_extends elementwise = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::ElementWise",
    .params_size = sizeof(strata_elementwise),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&elementwise};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::ElementWise", extends)
