/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution on CUDA: plain, from and to every format of 8 bits; with a channel
 * a group; and on tensor cores.
 */
#include "plugins/common/quantized/direct.cuh"
#include "plugins/common/quantized/hopper_impls.cuh"
#include "plugins/quantized_convolution/depthwise.cuh"

static int resolve(const strata_node *n, quantized_state *s)
{
    const strata_quantized_convolution *p =
        (const strata_quantized_convolution *)n->params;
    s->groups = p->convolution.groups;
    s->in_c = n->in[0].dims[1] / s->groups;
    s->out_c = n->out[0].dims[1] / s->groups;
    return window_of_convolution(&s->w, &p->convolution, &n->in[0],
                                 &n->weight[STRATA_QUANTIZED_WEIGHT], n->host, n->err);
}

static int accept(const strata_node *n)
{
    const strata_quantized_convolution *p =
        (const strata_quantized_convolution *)n->params;
    quantized_state s;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = resolve(n, &s);
    return status ? status : quantized_check_depth(n, s.in_c, window_kernel_count(&s.w));
}

static int setup(const strata_node *n, void *state)
{
    quantized_state *s = (quantized_state *)state;
    const int status = resolve(n, s);
    const int64_t taps = status == STRATA_OK ? window_kernel_count(&s->w) : 0;
    return status ? status : quantized_setup(n, s, s->in_c * taps, taps, 0);
}

static quantized_joined joined_of(const strata_run *r)
{
    const strata_quantized_convolution *p =
        (const strata_quantized_convolution *)r->params;
    quantized_joined j = {};
    j.b = window_tensor_of(&r->in[1]);
    j.scale = (const float *)r->weight[STRATA_QUANTIZED_SCALE_ADDEND].data;
    j.scale_between = (const float *)r->weight[STRATA_QUANTIZED_SCALE_BETWEEN].data;
    j.zero = (int32_t)p->zero_addend;
    j.zero_between = (int32_t)p->zero_between;
    j.between = p->between;
    j.is_signed = r->in[1].dtype == STRATA_INT8;
    return j;
}

static int run(const strata_run *r)
{
    const quantized_state *s = (const quantized_state *)r->state;
    const strata_tensor *y = &r->out[0];
    const int64_t vector = y->vector_dim == 1 ? y->vector : 1;
    quantized_job j = {};
    j.q = ((const strata_quantized_convolution *)r->params)->quantized;
    j.x = window_tensor_of(&r->in[0]);
    j.y = window_tensor_of(y);
    j.stored = (y->dims[1] + vector - 1) / vector * vector;
    j.pixels = window_out_count(&s->w);
    j.total = y->dims[0] * j.pixels * j.stored;
    if (r->n_in > 1)
        j.joined = joined_of(r);
    return quantized_launch(r, &j);
}

/* ---- on tensor cores -------------------------------------------------------------- */

struct as_product {
    typedef strata_quantized_convolution Params;

    static const Params *joined(const Params *p)
    {
        return p;
    }
    static int64_t pixels(const strata_tensor *y, const struct window *w)
    {
        return y->dims[0] * window_out_count(w);
    }
    static int shape(const strata_node *n, quantized_shape *s)
    {
        const Params *p = (const Params *)n->params;
        const int status =
            window_of_convolution(&s->w, &p->convolution, &n->in[0],
                                  &n->weight[STRATA_QUANTIZED_WEIGHT], n->host, n->err);
        if (status != STRATA_OK)
            return status;
        s->groups = p->convolution.groups;
        s->in_c = n->in[0].dims[1] / s->groups;
        s->out_c = n->out[0].dims[1] / s->groups;
        s->in_stored = stored_channels(&n->in[0]);
        s->out_stored = stored_channels(&n->out[0]);
        s->addend_stored = n->n_in > 1 ? stored_channels(&n->in[1]) : 0;
        s->channel = window_kernel_count(&s->w);
        s->filter = s->in_c * s->channel;
        return STRATA_OK;
    }
};

/* ---- tables ------------------------------------------------------------------------ */

#define BYTES(layout) (STRATA_I8_##layout | STRATA_U8_##layout)
static const strata_row rows[] = {
    {{BYTES(NCHW), BYTES(NCHW)}, {BYTES(NCHW) | STRATA_F32_NCHW}},
    {{QUANTIZED_BYTES_LAST, QUANTIZED_BYTES_LAST},
     {QUANTIZED_BYTES_LAST | STRATA_F32_NHWC | STRATA_F16_NHWC | STRATA_F16_NHWC8}},
    {{BYTES(NC4HW4), BYTES(NC4HW4)}, {BYTES(NC4HW4)}},
    {{BYTES(NC32HW32), BYTES(NC32HW32)}, {BYTES(NC32HW32)}},
};

/* Where channels are whole vectors, nhwc is nhwc16 by another name, which costs nothing:
 * with both of each tensor, plans would time everything eight times. */
#define VECTORS_LAST (STRATA_I8_NHWC16 | STRATA_U8_NHWC)
static const strata_row depthwise_rows[] = {
    {{VECTORS_LAST}, {VECTORS_LAST}},
};
static const strata_row hopper_rows[] = {
    {{VECTORS_LAST, VECTORS_LAST}, {VECTORS_LAST | STRATA_F16_NHWC8}},
};
#define HOPPER_IMPL(tactic) HOPPER_IMPL_OF(as_product, 10, hopper_rows, tactic)

static const strata_impl impls[] = {{.id = 1,
                                     .device = STRATA_CUDA,
                                     .flags = STRATA_WEIGHT_PACKED,
                                     .name = "cuda",
                                     .rows = STRATA_ARRAY(rows),
                                     .efficiency = 0.005,
                                     .state_size = sizeof(quantized_state),
                                     .accept = accept,
                                     .setup = setup,
                                     .run = run},
                                    {.id = 2,
                                     .device = STRATA_CUDA,
                                     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,
                                     .min_sm = 80,
                                     .name = "depthwise",
                                     .rows = STRATA_ARRAY(depthwise_rows),
                                     .efficiency = 0.02,
                                     .state_size = sizeof(depthwise_state),
                                     .accept = depthwise_accept,
                                     .setup = depthwise_setup,
                                     .run = depthwise_run},
                                    HOPPER_EACH(HOPPER_IMPL)};

static const strata_extends quantized_convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedConvolution",
    .params_size = sizeof(strata_quantized_convolution),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&quantized_convolution};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::QuantizedConvolution", extends)
