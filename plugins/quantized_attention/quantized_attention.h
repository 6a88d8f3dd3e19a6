/* SPDX-License-Identifier: Apache-2.0
 *
 * A QuantizedAttention as both devices compute it: an Attention's plan.
 */
#ifndef PLUGINS_QUANTIZED_ATTENTION_H
#define PLUGINS_QUANTIZED_ATTENTION_H

#include <string.h>

#include "plugins/attention/attention.h"

/* Inputs q, k, v and mask are Attention's; then come lengths. */
enum { QUANTIZED_ATTENTION_LENGTHS = 4, QUANTIZED_ATTENTION_INPUTS = 5 };

/* n with Attention's inputs, which go to `in`; it points to both. */
static inline strata_node quantized_attention_inner(const strata_node *n,
                                                    strata_tensor *in)
{
    strata_node inner = *n;
    for (int i = 0; i < ATTENTION_INPUTS; i++) {
        const int port = i <= ATTENTION_MASK      ? i
                         : i == ATTENTION_LENGTHS ? QUANTIZED_ATTENTION_LENGTHS
                                                  : QUANTIZED_ATTENTION_INPUTS;
        if (port < n->n_in)
            in[i] = n->in[port];
        else
            in[i].rank = 0;
    }
    inner.in = in;
    inner.n_in = ATTENTION_INPUTS;
    return inner;
}

/* As attention_plan; lengths_port is one of Attention's. */
static inline int quantized_attention_plan(struct attention_plan *p, const strata_node *n)
{
    strata_tensor in[ATTENTION_INPUTS];
    const strata_node inner = quantized_attention_inner(n, in);
    return attention_plan(p, &inner);
}

static inline int quantized_attention_plan_run(struct attention_plan *p,
                                               const strata_run *r)
{
    strata_node n;
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    n.n_in = r->n_in;
    n.n_out = r->n_out;
    n.params = r->params;
    n.in = r->in;
    n.out = (strata_tensor *)r->out; /* attention_plan only reads */
    n.host = r->host;
    n.err = r->err;
    return quantized_attention_plan(p, &n);
}

/* A scale in run; NULL: absent. */
static inline const float *quantized_attention_scale(const strata_run *r, int which)
{
    const strata_tensor *t = &r->weight[which];
    return t->rank > 0 ? (const float *)t->data : NULL;
}

#endif /* PLUGINS_QUANTIZED_ATTENTION_H */
