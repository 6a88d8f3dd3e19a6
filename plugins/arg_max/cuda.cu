/* SPDX-License-Identifier: Apache-2.0
 *
 * ArgMax on CUDA: the best element and its index, by plugins/common/reduce/reduce.cuh. A
 * smallest element is the largest of the negated ones (integers: of the complements).
 */
#include "plugins/common/reduce/reduce.cuh"

static __device__ inline float number(float x)
{
    return x;
}
static __device__ inline float number(__half x)
{
    return __half2float(x);
}
static __device__ inline float number(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline int32_t number(int8_t x)
{
    return x;
}
static __device__ inline int32_t number(uint8_t x)
{
    return x;
}
static __device__ inline int32_t number(int32_t x)
{
    return x;
}
static __device__ inline int64_t number(int64_t x)
{
    return x;
}
static __device__ inline float turned(float x)
{
    return -x;
}
static __device__ inline int32_t turned(int32_t x)
{
    return ~x;
}
static __device__ inline int64_t turned(int64_t x)
{
    return ~x;
}

/* A: the numbers that are compared. index -1: none yet. */
template <typename A>
struct extreme {
    struct Tally {
        A value;
        int32_t index;
    };
    void *y;
    bool wide; /* y is of INT64, else of INT32 */
    bool least, last;

    __device__ void start(Tally &t) const
    {
        t.value = 0;
        t.index = -1;
    }

    /* Whether x, which comes later, is taken; a NaN is the largest. */
    __device__ bool takes(const Tally &t, A x) const
    {
        const bool over = last ? !(x < t.value) : !(x <= t.value);
        return t.index < 0 || (over && (t.value == t.value || (last && x != x)));
    }

    template <typename T, int N>
    __device__ void take(Tally &t, const pack<T, N> &p, int64_t row) const
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            const A x = least ? turned(number(p.v[k])) : number(p.v[k]);
            const bool better = takes(t, x);
            t.value = better ? x : t.value;
            t.index = better ? (int32_t)row + k : t.index;
        }
    }

    __device__ void join(Tally &t, const Tally &other) const
    {
        const bool later = other.index > t.index;
        if (other.index >= 0 && (later ? takes(t, other.value) : !takes(other, t.value)))
            t = other;
    }

    __device__ Tally below(const Tally &t, int d) const
    {
        return {__shfl_down_sync(0xffffffffu, t.value, d),
                __shfl_down_sync(0xffffffffu, t.index, d)};
    }

    __device__ void close(const Tally &t, int64_t at) const
    {
        if (wide)
            ((int64_t *)y)[at] = t.index;
        else
            ((int32_t *)y)[at] = t.index;
    }
};

/* ---- the choice ----------------------------------------------------------------------
 */

static size_t arg_bytes(int32_t dtype)
{
    switch (dtype) {
    case STRATA_FP16:
    case STRATA_BF16:
        return 2;
    case STRATA_INT64:
        return 8;
    case STRATA_FP32:
    case STRATA_INT32:
        return 4;
    default:
        return 1;
    }
}

static reduce_cut arg_cut_of(const strata_arg_max *p, const strata_tensor *x,
                             const strata_tensor *y)
{
    strata_reduce reduce = {};
    reduce.keep_dims = p->keep_dims;
    reduce.axes.v = &p->axis;
    reduce.axes.n = 1;
    return reduce_cut_of(&reduce, x, y, arg_bytes(x->dtype));
}

static size_t arg_workspace(const strata_node *n)
{
    const reduce_cut c =
        arg_cut_of((const strata_arg_max *)n->params, &n->in[0], &n->out[0]);
    return reduce_parts(c, sizeof(extreme<int64_t>::Tally));
}

template <typename T, typename A>
static void arg_launch(const strata_run *r)
{
    const strata_arg_max *p = (const strata_arg_max *)r->params;
    const extreme<A> op = {r->out[0].data, r->out[0].dtype != STRATA_INT32,
                           p->op == STRATA_ARG_MIN, p->ties == STRATA_TIES_LAST};
    reduce_cut c = arg_cut_of(p, &r->in[0], &r->out[0]);
    c.x = r->in[0].data;
    c.part = r->workspace;
    reduce_launch<T>(c, op, layer_stream(r));
}

static int arg_run(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_INT8:
        arg_launch<int8_t, int32_t>(r);
        break;
    case STRATA_UINT8:
        arg_launch<uint8_t, int32_t>(r);
        break;
    case STRATA_INT32:
        arg_launch<int32_t, int32_t>(r);
        break;
    case STRATA_INT64:
        arg_launch<int64_t, int64_t>(r);
        break;
    default:
        layer_float(r->in[0].dtype, [&](auto t) { arg_launch<decltype(t), float>(r); });
    }
    return layer_launched(r, "arg_max");
}

/* ---- tables --------------------------------------------------------------------------
 */

static int arg_accept(const strata_node *n)
{
    const strata_arg_max *p = (const strata_arg_max *)n->params;
    const strata_tensor *x = &n->in[0];
    const int64_t axis = p->axis < 0 ? p->axis + x->rank : p->axis;
    if (x->dims[axis] > INT32_MAX)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "dim %lld is %lld; indices here have 31 bits", (long long)axis,
                           (long long)x->dims[axis]);
    const reduce_cut c = arg_cut_of(p, x, &n->out[0]);
    if (reduce_blocks(c) > 0x7fffffff)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld outputs; a launch has at most 2^31 - 1 blocks",
                           (long long)c.outputs);
    return STRATA_OK;
}

#define INPUTS                                                                           \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F32_NHWC |            \
     STRATA_F16_NHWC | STRATA_BF16_NHWC | STRATA_I32_NCHW | STRATA_I64_NCHW |            \
     STRATA_U8_NCHW | STRATA_I8_NCHW)

static const strata_row rows[] = {
    {{INPUTS}, {STRATA_I64_NCHW | STRATA_I32_NCHW}, {0}, {0}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = 0,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = arg_accept,
     .workspace = arg_workspace,
     .run = arg_run,
     .bandwidth = 0.85},
};

static const strata_extends arg_max = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::ArgMax",
    .params_size = sizeof(strata_arg_max),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&arg_max};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::ArgMax", extends)
