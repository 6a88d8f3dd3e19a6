/* @name@ on CUDA, in four formats. A module of its own, which adds an impl to the layer of
 * @file@.c: a machine without CUDA still loads that one. */
#include <strata/cuda.h>

#include "@file@.h"

enum { THREADS = 256 }; /* of a block */

/* What the kernel needs, by value. */
template <typename T> struct job {
    const T *in[@in@];
    T *out[@out@];
    int64_t size; /* elements, pad lanes included */
    strata_channels channels;
@if attr
    params p;
@end
@for weight
    const float *@weight.name@;@weight.null@
@end
};

static __device__ float element(@element_params@float x)
{
    return x > 0 ? x : @slope_float@ * x;
}

/* Walks over memory as it lies, whatever the format. Pad lanes are to hold zero. */
template <typename T> static __global__ void kernel(const job<T> j)
{
    STRATA_FOR_EACH(i, j.size) {
        float x = 0;
        for (int k = 0; k < @in@; k++)
            x += strata_get(&j.in[k][i]);
        const bool pad = strata_is_pad(j.channels, i);
@if weight
        const int64_t c = pad ? 0 : strata_channel(j.channels, i);
@end
@for weight
@if weight.optional
        if (j.@weight.name@)
            x @weight.operator@ j.@weight.name@[c];
@else
        x @weight.operator@ j.@weight.name@[c];
@end
@end
        for (int k = 0; k < @out@; k++)
            strata_put(&j.out[k][i], pad ? 0 : element(@element_job@x));
    }
}

template <typename T> static int launch(const strata_run *r)
{
    job<T> j = {};
    for (int k = 0; k < @in@; k++)
        j.in[k] = (const T *)r->in[k].data;
    for (int k = 0; k < @out@; k++)
        j.out[k] = (T *)r->out[k].data;
    j.size = r->out[0].size;
    j.channels = strata_channels_of(&r->out[0]);
@if attr
    j.p = *(const params *)r->params;
@end
@for weight
@if weight.optional
    if (r->weight[@weight.constant@].rank > 0)
        j.@weight.name@ = (const float *)r->weight[@weight.constant@].data;
@else
    j.@weight.name@ = (const float *)r->weight[@weight.constant@].data;
@end
@end
    kernel<T><<<strata_blocks(j.size, THREADS), THREADS, 0, strata_stream_of(r)>>>(j);
    return STRATA_LAUNCHED(r);
}

static int run(const strata_run *r)
{
    return r->out[0].dtype == STRATA_FP16 ? launch<__half>(r) : launch<float>(r);
}

/* Fields in the order of their declaration: C++ wants it so. */
@if several_in
static const strata_row rows[] = {{{STRATA_FOUR, STRATA_SAME}, {STRATA_SAME}}};
@else
static const strata_row rows[] = {{{STRATA_FOUR}, {STRATA_SAME}}};
@end

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .run = run},
};

static const strata_extends layer = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "@namespace@::@name@",
@if attr
    .params_size = sizeof(params),
@else
    .params_size = 0,
@end
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&layer};
STRATA_MODULE_EXTENDS("@namespace@", "1.0.0", "+@namespace@::@name@", extends)
