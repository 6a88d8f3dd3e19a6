/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that lie inside others, once all of them are there: their strides, and what the
 * impls that read or write them need.
 */
#include "planner/view.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/team.h"

/* The value whose strides one has, at the end of those that are inside each other. */
static int outermost(const struct execution *x, int value)
{
    while (x->values[value].pitched && x->values[value].alias >= 0)
        value = x->values[value].alias;
    return value;
}

static bool touches_pitched(const struct execution *x, const struct execution_node *n)
{
    bool pitched = n->residual_value >= 0 && x->values[n->residual_value].pitched;
    for (int i = 0; i < n->n_in; i++)
        pitched |= x->values[n->in_values[i]].pitched;
    for (int i = 0; i < n->n_out; i++)
        pitched |= x->values[n->out_values[i]].pitched;
    return pitched;
}

static int ask(const struct execution *x, struct execution_node *n, uint64_t limit,
               strata_error *err)
{
    const strata_impl *impl = &n->impl->impl;
    struct node_view v = {.weight = n->weights};
    int status = STRATA_OK;
    v.in = zalloc((size_t)(n->n_ports + n->n_out), sizeof *v.in, "a node", err);
    if (!v.in)
        return STRATA_ENOMEM;
    v.out = v.in + n->n_ports;
    execution_tensors(x, n, v.in, v.out);
    execution_residual(x, n, &v.residual);
    execution_view(&v, x, n, err);
    if (impl->accept && (status = impl->accept(&v.node)) != STRATA_OK)
        error_prefix(err,
                     "layer '%s', impl %s, which takes tensors inside others, it says, "
                     "and refuses",
                     n->name, impl->name);
    if (status == STRATA_OK && impl->workspace)
        n->workspace = impl->workspace(&v.node);
    free(v.in);
    if (status == STRATA_OK && n->workspace >= SIZE_MAX / 4)
        return error_set(err, STRATA_EOVERFLOW, "layer '%s': its workspace overflows",
                         n->name);
    if (status == STRATA_OK && limit && n->workspace > limit)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "layer '%s': inside a larger tensor impl %s needs a workspace "
                         "of %zu bytes, over [build] workspace = %llu; allow that much, "
                         "or ask for another impl",
                         n->name, impl->name, n->workspace, (unsigned long long)limit);
    return status;
}

int execution_lay_inside(struct execution *x, uint64_t workspace, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t v = 0; v < x->n_values; v++) {
        struct execution_value *value = &x->values[v];
        value->pitched = value->pitched && value->alias >= 0;
    }
    for (size_t v = 0; v < x->n_values; v++) {
        struct execution_value *value = &x->values[v];
        const struct execution_value *all = &x->values[outermost(x, (int)v)];
        if (value->pitched)
            memcpy(value->desc.strides, all->desc.strides, sizeof all->desc.strides);
    }
    const int before = threads_set(x->threads); /* a workspace may be of as many */
    for (size_t i = 0; i < x->n_nodes && status == STRATA_OK; i++)
        if (touches_pitched(x, &x->nodes[i]))
            status = ask(x, &x->nodes[i], workspace, err);
    threads_set(before);
    return status;
}
