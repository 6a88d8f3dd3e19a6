/* @name@: an impl for @extends@, tried against the others wherever accept takes a node.
@if convolution
 * It starts as windows of one element: kernel 1, stride 1, no pads, one group. */
@else
 * It starts by taking none: accept says which, and run computes those. */
@end
#include <strata/layers.h>
@if convolution

enum { WEIGHT, BIAS };

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
    const @params@ *p = n->params;
    const strata_tensor *weight = &n->weight[WEIGHT];
    for (int32_t d = 2; d < weight->rank; d++)
        if (weight->dims[d] != 1)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "the window is not one element");
    if (!only(p->stride, 1) || !only(p->pad, 0) || p->groups != 1)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "stride, pad or groups");
    return STRATA_OK;
}

static int run(const strata_run *r)
{
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const float *weight = r->weight[WEIGHT].data;
    const float *bias = r->weight[BIAS].rank > 0 ? r->weight[BIAS].data : NULL;
    const int64_t channels = x->dims[1], filters = y->dims[1];
    const int64_t pixels = y->count / (y->dims[0] * filters);
    for (int64_t i = 0; i < y->count; i++) {
        const int64_t image = i / (filters * pixels), k = i / pixels % filters;
        const float *in = (const float *)x->data + image * channels * pixels + i % pixels;
        float sum = bias ? bias[k] : 0;
        for (int64_t c = 0; c < channels; c++)
            sum += weight[k * channels + c] * in[c * pixels];
        ((float *)y->data)[i] = sum;
    }
    return STRATA_OK;
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

@if inputs
static const strata_row rows[] = {{.in = {STRATA_F32_NCHW}, .out = {STRATA_SAME}}};
@else
static const strata_row rows[] = {{.in = {0}, .out = {STRATA_F32_NCHW}}};
@end

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_HOST,
     .name = "@file@",
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
@end
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&layer};
STRATA_MODULE_EXTENDS("@namespace@", "1.0.0", "+@extends@", extends)
