/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct on CUDA: rows as pixels of a convolution by one element, plain and on
 * tensor cores. Of E4M3 as float8.h has it.
 */
#include "plugins/common/quantized/direct.cuh"
#include "plugins/common/quantized/hopper_impls.cuh"
#include "plugins/quantized_product/float8.h"

static struct window one_pixel(void)
{
    struct window w = {};
    w.first = WINDOW_DIMS;
    for (int d = 0; d < WINDOW_DIMS; d++)
        w.kernel[d] = w.stride[d] = w.dilation[d] = w.in[d] = w.out[d] = 1;
    return w;
}

static void resolve(const strata_node *n, quantized_state *s)
{
    s->w = one_pixel();
    s->groups = 1;
    s->in_c = n->in[0].dims[n->in[0].rank - 1];
    s->out_c = n->out[0].dims[n->out[0].rank - 1];
}

static int accept(const strata_node *n)
{
    const strata_quantized_product *p = (const strata_quantized_product *)n->params;
    const int status = quantized_accept(n, &p->quantized);
    return status ? status
                  : quantized_check_depth(n, n->in[0].dims[n->in[0].rank - 1], 1);
}

static int setup(const strata_node *n, void *state)
{
    const strata_quantized_product *p = (const strata_quantized_product *)n->params;
    quantized_state *s = (quantized_state *)state;
    resolve(n, s);
    return quantized_setup(n, s, p->transposed ? s->in_c : 1,
                           p->transposed ? 1 : s->out_c, 0);
}

static int run(const strata_run *r)
{
    const quantized_state *s = (const quantized_state *)r->state;
    quantized_job j = {};
    j.q = ((const strata_quantized_product *)r->params)->quantized;
    j.x.data = r->in[0].data;
    j.x.image = s->in_c;
    j.x.channel = 1;
    j.y.data = r->out[0].data;
    j.y.image = s->out_c;
    j.y.channel = 1;
    j.stored = s->out_c;
    j.pixels = 1;
    j.total = r->out[0].count;
    return quantized_launch(r, &j);
}

/* ---- on tensor cores -------------------------------------------------------------- */

struct as_product {
    typedef strata_quantized_product Params;

    static const strata_quantized_convolution *joined(const Params *)
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
        s->w = one_pixel();
        s->groups = 1;
        s->in_c = s->in_stored = n->in[0].dims[n->in[0].rank - 1];
        s->out_c = s->out_stored = n->out[0].dims[n->out[0].rank - 1];
        s->filter = p->transposed ? s->in_c : 1;
        s->channel = p->transposed ? 1 : s->out_c;
        return STRATA_OK;
    }
};

/* ---- of E4M3 ------------------------------------------------------------------------
 */

template <int Tactic>
static int float8_accept_of(const strata_node *n)
{
    return float8_accept(n, Tactic);
}

template <int Tactic>
static int float8_setup_of(const strata_node *n, void *state)
{
    return float8_setup(n, (float8_state *)state, Tactic);
}

template <int Tactic>
static int float8_run_of(const strata_run *r)
{
    return float8_run(r, Tactic);
}

/* ---- tables ------------------------------------------------------------------------ */

static const strata_row rows[] = {
    {{STRATA_I8_NCHW | STRATA_U8_NCHW},
     {STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_F32_NCHW | STRATA_F16_NCHW}},
};

static const strata_row hopper_rows[] = {
    {{STRATA_I8_NCHW | STRATA_U8_NCHW},
     {STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_F16_NCHW}},
};
#define HOPPER_IMPL(tactic) HOPPER_IMPL_OF(as_product, 10, hopper_rows, tactic)

static const strata_row float8_rows[] = {
    {{STRATA_E4M3_NCHW},
     {STRATA_E4M3_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F32_NCHW}},
};
#define FLOAT8_IMPL(tactic)                                                              \
    {.id = 31 + FLOAT8_##tactic,                                                         \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_WEIGHT_PACKED,                                                      \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .name = "float8_" #tactic,                                                          \
     .rows = STRATA_ARRAY(float8_rows),                                                  \
     .efficiency = 0.9,                                                                  \
     .state_size = sizeof(float8_state),                                                 \
     .accept = float8_accept_of<FLOAT8_##tactic>,                                        \
     .setup = float8_setup_of<FLOAT8_##tactic>,                                          \
     .run = float8_run_of<FLOAT8_##tactic>},

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
    HOPPER_EACH(HOPPER_IMPL){.id = 30,
                             .device = STRATA_CUDA,
                             .name = "float8",
                             .rows = STRATA_ARRAY(float8_rows),
                             .efficiency = 0.005,
                             .accept = float8_plain_accept,
                             .run = float8_plain_run},
    FLOAT8_EACH(FLOAT8_IMPL)};

static const strata_extends quantized_product = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedProduct",
    .params_size = sizeof(strata_quantized_product),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&quantized_product};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::QuantizedProduct", extends)
