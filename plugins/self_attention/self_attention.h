/* SPDX-License-Identifier: Apache-2.0
 *
 * A SelfAttention as an Attention of its product, of which both devices have a plan.
 */
#ifndef PLUGINS_SELF_ATTENTION_SELF_ATTENTION_H
#define PLUGINS_SELF_ATTENTION_SELF_ATTENTION_H

#include <string.h>

#include "plugins/attention/attention.h"

/* x times b: queries, keys and values side by side. As the definition has it, where
 * nothing lies: dense and without data. */
static inline int self_attention_product(const strata_node *n, strata_tensor *product)
{
    const strata_self_attention *p = (const strata_self_attention *)n->params;
    const strata_tensor *x = &n->in[0], *b = &n->weight[STRATA_SELF_ATTENTION_B];
    if (x->rank != 3)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "input has rank %d; batch x sequence x depth is needed",
                           (int)x->rank);
    const int64_t units = p->product.units ? p->product.units
                          : b->rank == 2   ? b->dims[p->product.transpose_b ? 0 : 1]
                                           : 0;
    if (units < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "units is not known; give units = N or a weight b");
    memcpy(product, x, sizeof *product);
    product->data = NULL;
    product->dims[2] = units;
    product->strides[2] = 1;
    product->strides[1] = units;
    product->strides[0] = units * x->dims[1];
    return STRATA_OK;
}

/* The Attention behind it; of n it has what attention_plan reads. */
static inline strata_node self_attention_behind(const strata_node *n,
                                                const strata_tensor *product)
{
    strata_node inner = *n;
    inner.params = &((const strata_self_attention *)n->params)->attention;
    inner.in = product;
    inner.n_in = 1;
    return inner;
}

static inline int self_attention_plan(struct attention_plan *p, const strata_node *n)
{
    strata_tensor product;
    memset(&product, 0, sizeof product);
    const int status = self_attention_product(n, &product);
    if (status != STRATA_OK)
        return status;
    const strata_node inner = self_attention_behind(n, &product);
    return attention_plan(p, &inner);
}

/* The same in run, which may have a smaller batch than setup had. */
static inline int self_attention_plan_run(struct attention_plan *p, const strata_run *r)
{
    strata_node n;
    memset(&n, 0, sizeof n);
    n.struct_size = sizeof n;
    n.n_in = r->n_in;
    n.n_out = r->n_out;
    n.params = r->params;
    n.in = r->in;
    n.out = (strata_tensor *)r->out; /* it is only read */
    n.weight = r->weight;
    n.host = r->host;
    n.err = r->err;
    return self_attention_plan(p, &n);
}

#endif /* PLUGINS_SELF_ATTENTION_SELF_ATTENTION_H */
