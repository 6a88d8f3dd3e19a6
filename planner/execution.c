/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of an execution.
 */
#include "planner/execution.h"

#include <stdlib.h>

int execution_owner(const struct execution *x, int value)
{
    while (x->values[value].alias >= 0)
        value = x->values[value].alias;
    return value;
}

int execution_reads(const struct execution *x, const struct execution_step *s, int k)
{
    if (s->kind != STEP_RUN)
        return k == 0 ? s->from : -1;
    const struct execution_node *n = &x->nodes[s->node];
    return k < n->n_in ? n->in_values[k] : k == n->n_in ? n->residual_value : -1;
}

int execution_writes(const struct execution *x, const struct execution_step *s, int k)
{
    if (s->kind != STEP_RUN)
        return k == 0 ? s->to : -1;
    const struct execution_node *n = &x->nodes[s->node];
    return k < n->n_out ? n->out_values[k] : -1;
}

static void view_value(strata_tensor *out, const struct execution_value *v)
{
    tensor_view(out, &v->desc, UINT64_C(1) << v->format, v->pad, NULL);
}

void execution_tensors(const struct execution *x, const struct execution_node *n,
                       strata_tensor *in, strata_tensor *out)
{
    for (int i = 0; i < n->n_in; i++)
        view_value(&in[i], &x->values[n->in_values[i]]);
    for (int i = 0; i < n->n_out; i++)
        view_value(&out[i], &x->values[n->out_values[i]]);
}

void execution_residual(const struct execution *x, const struct execution_node *n,
                        strata_tensor *out)
{
    if (n->residual_value >= 0)
        view_value(out, &x->values[n->residual_value]);
}

void execution_free(struct execution *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n_nodes; i++) {
        struct execution_node *n = &x->nodes[i];
        free(n->name);
        free(n->in_values);
        free(n->out_values);
        free(n->fused);
        free(n->composed);
        free(n->weights);
    }
    free(x->nodes);
    free(x->values);
    free(x->steps);
    free(x->bindings);
    free(x);
}

bool execution_erases(const struct execution *x, const struct execution_step *s)
{
    return s->kind == STEP_RELABEL &&
           x->values[s->from].tensor != x->values[s->to].tensor;
}
