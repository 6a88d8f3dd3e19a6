/* @name@ on CUDA: an impl for @extends@, in fp32:nchw and fp16:nchw.
@if convolution
 * It starts as windows of one element: kernel 1, stride 1, no pads, one group. */
@else
 * It starts by taking none: accept says which, and run computes those. */
@end
#include <strata/cuda.h>
#include <strata/layers.h>
@if convolution

enum { WEIGHT, BIAS };
enum { THREADS = 256 }; /* of a block */

/* Whether a list is empty or holds this value alone. */
static int only(strata_ints list, int64_t value)
{
    for (int64_t i = 0; i < list.n; i++)
        if (list.v[i] != value)
            return 0;
    return 1;
}

static int accept(const strata_node *n)
{
    const @params@ *p = (const @params@ *)n->params;
    const strata_tensor *weight = &n->weight[WEIGHT];
    for (int32_t d = 2; d < weight->rank; d++)
        if (weight->dims[d] != 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the window is not one element");
    if (!only(p->stride, 1) || !only(p->pad, 0) || p->groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "stride, pad or groups");
    return STRATA_OK;
}

/* One output element a thread, summed in FP32. */
template <typename T>
static __global__ void pointwise(T *y, const T *x, const float *weight, const float *bias,
                                 int64_t count, int64_t channels, int64_t filters,
                                 int64_t pixels)
{
    STRATA_FOR_EACH(i, count) {
        const int64_t image = i / (filters * pixels), k = i / pixels % filters;
        const T *in = x + image * channels * pixels + i % pixels;
        float sum = bias ? bias[k] : 0;
        for (int64_t c = 0; c < channels; c++)
            sum += weight[k * channels + c] * strata_get(&in[c * pixels]);
        strata_put(&y[i], sum);
    }
}

template <typename T> static int launch(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0], *bias = &r->weight[BIAS];
    pointwise<<<strata_blocks(y->count, THREADS), THREADS, 0, strata_stream_of(r)>>>(
        (T *)y->data, (const T *)x->data, (const float *)r->weight[WEIGHT].data,
        bias->rank > 0 ? (const float *)bias->data : NULL, y->count, x->dims[1],
        y->dims[1], y->count / (y->dims[0] * y->dims[1]));
    return STRATA_LAUNCHED(r);
}

static int run(const strata_run *r)
{
    return r->out[0].dtype == STRATA_FP16 ? launch<__half>(r) : launch<float>(r);
}
@else

static int accept(const strata_node *n)
{
    return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "impl @file@ takes no node yet");
}

static int run(const strata_run *r)
{
    return STRATA_FAIL(r, STRATA_EUNSUPPORTED, "impl @file@ computes nothing yet");
}
@end

/* Fields in the order of their declaration: C++ wants it so. */
@if inputs
static const strata_row rows[] = {{{STRATA_F32_NCHW | STRATA_F16_NCHW}, {STRATA_SAME}}};
@else
static const strata_row rows[] = {{{0}, {STRATA_F32_NCHW | STRATA_F16_NCHW}}};
@end

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .name = "@file@_cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = accept,
     .run = run},
};

static const strata_extends layer = {
    .struct_size = sizeof(strata_extends),
    .version = @extends_version@,
    .layer = "@extends@",
@if params
    .params_size = sizeof(@params@),
@else
    .params_size = 0,
@end
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&layer};
STRATA_MODULE_EXTENDS("@namespace@", "1.0.0", "+@extends@", extends)
