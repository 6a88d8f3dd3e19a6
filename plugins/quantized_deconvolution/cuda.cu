/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedDeconvolution on CUDA: plain, from and to every format of 8 bits.
 */
#include "plugins/common/quantized/direct.cuh"

#include "plugins/common/deconvolution/deconvolution.h"

static int resolve(const strata_node *n, quantized_state *s)
{
    const strata_quantized_deconvolution *p =
        (const strata_quantized_deconvolution *)n->params;
    s->groups = p->deconvolution.groups;
    s->in_c = n->in[0].dims[1] / s->groups;
    s->out_c = n->out[0].dims[1] / s->groups;
    return deconvolution_window(&s->w, &p->deconvolution, &n->in[0],
                                &n->weight[STRATA_QUANTIZED_WEIGHT], n->host, n->err);
}

static int accept(const strata_node *n)
{
    const strata_quantized_deconvolution *p =
        (const strata_quantized_deconvolution *)n->params;
    quantized_state s;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = resolve(n, &s);
    return status ? status : quantized_check_depth(n, s.in_c, window_kernel_count(&s.w));
}

/* The weight is [channel of all groups][filter of a group][element]. */
static int setup(const strata_node *n, void *state)
{
    quantized_state *s = (quantized_state *)state;
    const int status = resolve(n, s);
    const int64_t taps = status == STRATA_OK ? window_kernel_count(&s->w) : 0;
    const int64_t channel = s->out_c * taps;
    return status ? status
                  : quantized_setup(n, s, taps, channel, (s->in_c - 1) * channel);
}

static int run(const strata_run *r)
{
    const quantized_state *s = (const quantized_state *)r->state;
    const strata_tensor *y = &r->out[0];
    const int64_t vector = y->vector_dim == 1 ? y->vector : 1;
    quantized_job j = {};
    j.q = ((const strata_quantized_deconvolution *)r->params)->quantized;
    j.x = window_tensor_of(&r->in[0]);
    j.y = window_tensor_of(y);
    j.stored = (y->dims[1] + vector - 1) / vector * vector;
    j.pixels = window_out_count(&s->w);
    j.total = y->dims[0] * j.pixels * j.stored;
    j.transposed = 1;
    return quantized_launch(r, &j);
}

#define BYTES(layout) (STRATA_I8_##layout | STRATA_U8_##layout)
static const strata_row rows[] = {
    {{BYTES(NCHW)}, {BYTES(NCHW) | STRATA_F32_NCHW}},
    {{QUANTIZED_BYTES_LAST},
     {QUANTIZED_BYTES_LAST | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_F16_NHWC8}},
    {{BYTES(NC4HW4)}, {BYTES(NC4HW4)}},
    {{BYTES(NC32HW32)}, {BYTES(NC32HW32)}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_WEIGHT_PACKED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .efficiency = 0.005,
     .state_size = sizeof(quantized_state),
     .accept = accept,
     .setup = setup,
     .run = run},
};

static const strata_extends quantized_deconvolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedDeconvolution",
    .params_size = sizeof(strata_quantized_deconvolution),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&quantized_deconvolution};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::QuantizedDeconvolution", extends)
