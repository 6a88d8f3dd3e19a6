/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer's impls on Hopper's tensor cores, a tactic each. Layer: Params; shape(node,
 * shape), what it is as a product; pixels(output, window), of a run; joined(params),
 * where it may have a second input. Sums are whole numbers, so that no math mode need
 * allow tensor cores.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_HOPPER_IMPLS_CUH
#define PLUGINS_COMMON_QUANTIZED_HOPPER_IMPLS_CUH

#include "plugins/common/quantized/hopper.h"

template <class Layer>
static int hopper_shape(const strata_node *n, quantized_shape *s)
{
    const int status = Layer::shape(n, s);
    s->q = &((const typename Layer::Params *)n->params)->quantized;
    s->pixels = status == STRATA_OK ? Layer::pixels(&n->out[0], &s->w) : 0;
    return status;
}

template <class Layer, int Tactic>
static int hopper_accept_of(const strata_node *n)
{
    quantized_shape s = {};
    const int status = hopper_shape<Layer>(n, &s);
    return status ? status : quantized_hopper_accept(n, &s, Tactic);
}

template <class Layer, int Tactic>
static int hopper_setup_of(const strata_node *n, void *state)
{
    quantized_shape s = {};
    const int status = hopper_shape<Layer>(n, &s);
    return status ? status
                  : quantized_hopper_setup(
                        n, &s, Layer::joined((const typename Layer::Params *)n->params),
                        (quantized_hopper_state *)state, Tactic);
}

template <class Layer, int Tactic>
static int hopper_run_of(const strata_run *r)
{
    const quantized_hopper_state *state = (const quantized_hopper_state *)r->state;
    const typename Layer::Params *p = (const typename Layer::Params *)r->params;
    return quantized_hopper_run(r, &p->quantized, Layer::joined(p),
                                Layer::pixels(&r->out[0], &state->shape.w), Tactic);
}

/* A table's entry; `rows`: an array of the layer's. */
#define HOPPER_IMPL_OF(layer, first_id, impl_rows, tactic)                               \
    {.id = first_id + HOPPER_##tactic,                                                   \
     .device = STRATA_CUDA,                                                              \
     .flags = STRATA_PAD_IGNORED | STRATA_WEIGHT_PACKED,                                 \
     .min_sm = 90,                                                                       \
     .max_sm = 90,                                                                       \
     .name = "hopper_" #tactic,                                                          \
     .rows = STRATA_ARRAY(impl_rows),                                                    \
     .efficiency = 0.9,                                                                  \
     .state_size = sizeof(quantized_hopper_state),                                       \
     .accept = hopper_accept_of<layer, HOPPER_##tactic>,                                 \
     .setup = hopper_setup_of<layer, HOPPER_##tactic>,                                   \
     .run = hopper_run_of<layer, HOPPER_##tactic>},

#endif /* PLUGINS_COMMON_QUANTIZED_HOPPER_IMPLS_CUH */
