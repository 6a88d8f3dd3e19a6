/* SPDX-License-Identifier: Apache-2.0
 *
 * ElementWise on CUDA: two operands as they lie or along a walk; more of them, and a fused
 * residual and activation, along a walk, combined from left to right and rounded once.
 */
#include "plugins/common/pointwise_walk.cuh"
#include "plugins/elementwise/elementwise.h"

/* Up to K inputs of one type, then what is fused, which floats alone have. */
template <int Group, typename T, int Inputs>
struct combine {
    typedef typename point_class<T>::type C;
    static const int K = Inputs, N = POINT_WIDTH<T>;
    T *y;
    const T *in[K];
    int32_t n_in, op;
    float factor; /* of the result of mean, else 1 */
    pointwise_args k;
    epilogue_args epilogue;

    template <int M> __device__ void fused(float *v, int64_t i) const
    {
        if (factor != 1)
#pragma unroll
            for (int e = 0; e < M; e++)
                v[e] *= factor;
        walk_finish<T, M>(v, i, epilogue);
    }
    template <int M> __device__ void fused(int32_t *, int64_t) const
    {
    }
    template <int M> __device__ void fused(int64_t *, int64_t) const
    {
    }
    template <int M> __device__ void at(const walk<K> &w, const walk_place<K> &p, int lane,
                                        int64_t i) const
    {
        C v[M], next[M];
        point_load<T, M>(v, in[0], w, p, 0, lane);
#pragma unroll 1
        for (int j = 1; j < (K > 2 ? n_in : 2); j++) {
            point_load<T, M>(next, in[j], w, p, j, lane);
            pointwise_apply<Group, M>(op, k, v, v, next, next);
        }
        fused<M>(v, i);
        point_store<T, M>(y + walk_to<K>(w, p, lane, i), v);
    }
    __device__ void zero_pad(int64_t i) const
    {
        y[i] = point_element<T>((C)0);
    }
};

template <int Group, typename T, int K>
static void combine_run(const strata_run *r, int op, const pointwise_args &k)
{
    const strata_elementwise *p = (const strata_elementwise *)r->params;
    walk_operand operand[K];
    combine<Group, T, K> c = {};
    c.y = (T *)r->out[0].data;
    c.n_in = r->n_in;
    c.op = op;
    c.factor = p->op == STRATA_MEAN ? 1.0f / (float)r->n_in : 1;
    c.k = k;
    c.epilogue = epilogue_of(r);
    for (int i = 0; i < K; i++) { /* those past the last keep no dims apart */
        const strata_tensor *t = &r->in[i < r->n_in ? i : 0];
        c.in[i] = (const T *)t->data;
        operand[i] = point_operand(&r->out[0], t);
    }
    point_walk(r, c, operand);
}

enum {
    SIMPLE = POINTWISE_OF_ELEMENTWISE + POINTWISE_SIMPLE,
    CURVES = POINTWISE_OF_ELEMENTWISE + POINTWISE_CURVES,
    RARE = POINTWISE_OF_ELEMENTWISE + POINTWISE_RARE
};

template <int Group, typename T>
static void elementwise_two(const strata_run *r, int op, const pointwise_args &k)
{
    const strata_elementwise *p = (const strata_elementwise *)r->params;
    if (r->epilogue->flags || p->op == STRATA_MEAN)
        combine_run<Group, T, 2>(r, op, k);
    else
        point_binary_run<Group, T, T, T>(r, &r->in[0], &r->in[1], op, k);
}

/* Operations of many inputs are simple ones. */
template <typename T>
static void elementwise_float(const strata_run *r, int op, const pointwise_args &k)
{
    if (r->n_in > 2)
        combine_run<SIMPLE, T, ELEMENTWISE_INPUTS>(r, op, k);
    else if (pointwise_group(op) == POINTWISE_SIMPLE)
        elementwise_two<SIMPLE, T>(r, op, k);
    else if (pointwise_group(op) == POINTWISE_CURVES)
        elementwise_two<CURVES, T>(r, op, k);
    else
        elementwise_two<RARE, T>(r, op, k);
}

/* Nothing is fused, and mean is an operation of floats. */
template <typename T>
static void elementwise_whole(const strata_run *r, int op, const pointwise_args &k)
{
    if (r->n_in > 2)
        combine_run<SIMPLE, T, ELEMENTWISE_INPUTS>(r, op, k);
    else
        point_binary_run<SIMPLE, T, T, T>(r, &r->in[0], &r->in[1], op, k);
}

/* A power whose exponent is an integer, and the base a float. */
template <typename T>
static void elementwise_power(const strata_run *r, int op, const pointwise_args &k)
{
    if (r->in[1].dtype == STRATA_INT64)
        point_binary_run<RARE, T, int64_t, T>(r, &r->in[0], &r->in[1], op, k);
    else
        point_binary_run<RARE, T, int32_t, T>(r, &r->in[0], &r->in[1], op, k);
}

static int elementwise_run(const strata_run *r)
{
    const strata_elementwise *p = (const strata_elementwise *)r->params;
    const struct pointwise_constants c = elementwise_constants(r->in[0].dtype);
    const pointwise_args k = pointwise_args_of(0, 0, c.bits);
    const int op = elementwise_operation(p), dtype = r->in[0].dtype;
    if (r->in[1].dtype != dtype)
        layer_float(dtype, [&](auto t) { elementwise_power<decltype(t)>(r, op, k); });
    else if (dtype == STRATA_INT8)
        elementwise_whole<int8_t>(r, op, k);
    else if (dtype == STRATA_UINT8 || dtype == STRATA_BOOL8)
        elementwise_whole<uint8_t>(r, op, k);
    else if (dtype == STRATA_INT32)
        elementwise_whole<int32_t>(r, op, k);
    else if (dtype == STRATA_INT64)
        elementwise_whole<int64_t>(r, op, k);
    else
        layer_float(dtype, [&](auto t) { elementwise_float<decltype(t)>(r, op, k); });
    return layer_launched(r, "elementwise");
}

/* A power of two dtypes fuses nothing, and integers have no activations. */
static int elementwise_accept(const strata_node *n)
{
    if (n->epilogue->flags && !(elementwise_class(n->out[0].dtype) & ELEMENTWISE_FLOATS))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "integers take nothing fused");
    if (n->epilogue->flags && n->in[1].dtype != n->in[0].dtype)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "a power of two dtypes takes nothing fused");
    int status = elementwise_check(n);
    return status ? status : point_accept(n);
}

static const strata_row rows[] = {
    {{CUDA_FLOATS | POINT_INTEGERS | STRATA_BOOL_NCHW, STRATA_SAME}, {STRATA_SAME}},
    {{POINT_LINEAR_FLOATS, STRATA_I32_NCHW | STRATA_I64_NCHW}, {STRATA_SAME}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED | STRATA_PITCHED_IN |
              STRATA_PITCHED_OUT,
     .epilogues = STRATA_EPILOGUE_RESIDUAL | STRATA_EPILOGUE_ACTIVATION,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .activations = CUDA_ALL_ACTIVATIONS,
     .accept = elementwise_accept,
     .run = elementwise_run,
     .bandwidth = 0.9},
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
