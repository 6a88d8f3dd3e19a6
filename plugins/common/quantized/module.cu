/* SPDX-License-Identifier: Apache-2.0
 *
 * Module quantized-cuda: CUDA impls on tensor cores for the layers of 8 bits that sum
 * products. Sums are whole numbers, so that no math mode need allow them.
 */
#include "plugins/common/quantized/hopper.h"

/* ---- the layers ------------------------------------------------------------------ */

static int64_t stored_channels(const strata_tensor *t)
{
    const int64_t vector = t->vector_dim == 1 ? t->vector : 1;
    return (t->dims[1] + vector - 1) / vector * vector;
}

struct of_convolution {
    typedef strata_quantized_convolution Params;

    static const Params *joined(const void *params)
    {
        return (const Params *)params;
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

struct of_product {
    typedef strata_quantized_product Params;

    static const strata_quantized_convolution *joined(const void *)
    {
        return NULL;
    }
    static int64_t pixels(const strata_tensor *y, const struct window *)
    {
        const int64_t columns = y->dims[y->rank - 1];
        return columns > 0 ? y->count / columns : 0;
    }
    static int shape(const strata_node *n, quantized_shape *s)
    {
        const Params *p = (const Params *)n->params;
        s->w.first = WINDOW_DIMS;
        for (int d = 0; d < WINDOW_DIMS; d++)
            s->w.kernel[d] = s->w.stride[d] = s->w.dilation[d] = s->w.in[d] =
                s->w.out[d] = 1;
        s->groups = 1;
        s->in_c = s->in_stored = n->in[0].dims[n->in[0].rank - 1];
        s->out_c = s->out_stored = n->out[0].dims[n->out[0].rank - 1];
        s->filter = p->transposed ? s->in_c : 1;
        s->channel = p->transposed ? 1 : s->out_c;
        return STRATA_OK;
    }
};

template <class Layer>
static int shape_of(const strata_node *n, quantized_shape *s)
{
    const int status = Layer::shape(n, s);
    s->q = &((const typename Layer::Params *)n->params)->quantized;
    s->pixels = status == STRATA_OK ? Layer::pixels(&n->out[0], &s->w) : 0;
    return status;
}

/* ---- impls ----------------------------------------------------------------------- */

template <class Layer, int Tactic>
static int accept(const strata_node *n)
{
    quantized_shape s = {};
    const int status = shape_of<Layer>(n, &s);
    return status ? status : quantized_hopper_accept(n, &s, Tactic);
}

template <class Layer, int Tactic>
static int setup(const strata_node *n, void *state)
{
    quantized_shape s = {};
    const int status = shape_of<Layer>(n, &s);
    return status
               ? status
               : quantized_hopper_setup(n, &s, (quantized_hopper_state *)state, Tactic);
}

template <class Layer, int Tactic>
static int run(const strata_run *r)
{
    const quantized_hopper_state *state = (const quantized_hopper_state *)r->state;
    return quantized_hopper_run(
        r, &((const typename Layer::Params *)r->params)->quantized,
        Layer::joined(r->params), Layer::pixels(&r->out[0], &state->shape.w), Tactic);
}

#define BYTES_LAST (STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_I8_NHWC16)

static const strata_row convolution_rows[] = {
    {{BYTES_LAST, BYTES_LAST}, {BYTES_LAST | STRATA_F16_NHWC | STRATA_F16_NHWC8}},
};
static const strata_row product_rows[] = {
    {{STRATA_I8_NCHW | STRATA_U8_NCHW},
     {STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_F16_NCHW}},
};

#define IMPL_OF(layer, tactic)                                                           \
    {.id = 10 + HOPPER_##tactic,                                                         \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,                                 \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .name = "hopper_" #tactic,                                                          \
     .rows = STRATA_ARRAY(layer##_rows),                                                 \
     .efficiency = 0.9,                                                                  \
     .state_size = sizeof(quantized_hopper_state),                                       \
     .accept = accept<of_##layer, HOPPER_##tactic>,                                      \
     .setup = setup<of_##layer, HOPPER_##tactic>,                                        \
     .run = run<of_##layer, HOPPER_##tactic>},
#define CONVOLUTION_IMPL(tactic) IMPL_OF(convolution, tactic)
#define PRODUCT_IMPL(tactic) IMPL_OF(product, tactic)

static const strata_impl convolution_impls[] = {HOPPER_EACH(CONVOLUTION_IMPL)};
static const strata_impl product_impls[] = {HOPPER_EACH(PRODUCT_IMPL)};

static const strata_extends convolution = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedConvolution",
    .params_size = sizeof(strata_quantized_convolution),
    .impls = STRATA_ARRAY(convolution_impls),
};
static const strata_extends product = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedProduct",
    .params_size = sizeof(strata_quantized_product),
    .impls = STRATA_ARRAY(product_impls),
};
static const strata_extends *const extends[] = {&convolution, &product};
STRATA_MODULE_EXTENDS("core.hopper", "1.0.0",
                      "+core::QuantizedConvolution,+core::QuantizedProduct", extends)
