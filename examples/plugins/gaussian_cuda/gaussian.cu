/* SPDX-License-Identifier: Apache-2.0
 * Gaussian: y = exp(-x*x/(2*sigma*sigma)) on CUDA, in the four formats. */
#include <strata/cuda.h>
#include <math.h>
#include <string.h>
typedef struct { double sigma; } params;

template <typename T>
static __global__ void gaussian(T *y, const T *x, int64_t size, strata_channels channels,
                                float factor)
{
    STRATA_FOR_EACH(i, size) {
        const float value = strata_get(&x[i]);
        strata_put(&y[i], strata_is_pad(channels, i) ? 0 : expf(factor * value * value));
    }
}
template <typename T> static int launch(const strata_run *r)
{
    const params *p = (const params *)r->params;
    const strata_tensor *y = &r->out[0];
    gaussian<<<strata_blocks(y->size, 256), 256, 0, strata_stream_of(r)>>>(
        (T *)y->data, (const T *)r->in[0].data, y->size, strata_channels_of(y),
        (float)(-0.5 / (p->sigma * p->sigma)));
    return STRATA_LAUNCHED(r);
}
static int run(const strata_run *r)
{
    return r->out[0].dtype == STRATA_FP16 ? launch<__half>(r) : launch<float>(r);
}
static int define(const strata_node *n, const double *const *in, const double *const *,
                  double *const *out) /* what `strata check` compares with */
{
    const double sigma = ((const params *)n->params)->sigma;
    for (int64_t i = 0; i < n->out[0].count; i++)
        out[0][i] = exp(-in[0][i] * in[0][i] / (2 * sigma * sigma));
    return STRATA_OK;
}
static const strata_reference reference = {sizeof(strata_reference), 0, define};
static const void *extension(const char *id)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? &reference : NULL;
}
static const strata_attr attrs[] = {
    {.name = "sigma", .type = STRATA_F64, .flags = 0, .offset = offsetof(params, sigma),
     .def = 1, .min = 1e-3, .max = 1e3, .doc = "width of the bell"},
};
static const strata_row rows[] = {{{STRATA_FOUR}, {STRATA_SAME}}};
static const strata_impl impls[] = {
    {.id = 1, .device = STRATA_CUDA, .flags = STRATA_INPLACE_OK | STRATA_PAD_IGNORED,
     .name = "cuda", .rows = STRATA_ARRAY(rows), .run = run},
};
static const strata_layer layer = {
    .struct_size = sizeof(strata_layer), .version = 1, .name = "Gaussian",
    .doc = "exp(-x*x/(2*sigma*sigma))", .min_in = 1, .max_in = 1, .n_out = 1,
    .params_size = sizeof(params), .attrs = STRATA_ARRAY(attrs),
    .impls = STRATA_ARRAY(impls), .extension = extension,
};
static const strata_layer *const layers[] = {&layer};
STRATA_MODULE("org.example", "1.0.0", "Gaussian", layers)
