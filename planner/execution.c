/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of an execution.
 */
#include "planner/execution.h"

#include "core/alloc.h"
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

/* Follow the aliases to a value that is settled, or to their end, then once more. */
static void settle(struct execution_value *values, int value)
{
    int end = value, next;
    int64_t at = 0;
    for (; values[end].owner < 0 && values[end].alias >= 0; end = values[end].alias)
        at += values[end].begin;
    if (values[end].owner < 0) {
        values[end].owner = end;
        values[end].at = 0;
    }
    at += values[end].at;
    for (int v = value; v != end; v = next) {
        next = values[v].alias;
        values[v].owner = values[end].owner;
        values[v].at = at;
        at -= values[v].begin;
    }
}

struct execution *execution_open(const struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    struct execution *x = zalloc(1, sizeof *x, "an execution", err);
    if (!x)
        return NULL;
    *x = (struct execution){.n_inputs = net->n_inputs - net->n_states,
                            .n_bindings =
                                net->n_inputs + net->n_outputs - 2 * net->n_states,
                            .n_states = net->n_states,
                            .device = planner->device.properties.kind,
                            .sm = planner->device.properties.sm,
                            .math = planner->math,
                            .threads = planner->threads};
    x->nodes = zalloc(planner->n_nodes, sizeof *x->nodes, "an execution", err);
    x->bindings = zalloc(execution_bound(x), sizeof *x->bindings, "the bindings", err);
    x->states = zalloc(x->n_states, sizeof *x->states, "the states", err);
    if (x->nodes && x->bindings && x->states) {
        for (size_t i = 0; i < x->n_states; i++)
            x->states[i] =
                (struct execution_state){.state = &net->states[i],
                                         .now = (int)(x->n_bindings + i),
                                         .next = (int)(x->n_bindings + x->n_states + i)};
        return x;
    }
    execution_free(x);
    return NULL;
}

void execution_settle(struct execution *x)
{
    for (size_t v = 0; v < x->n_values; v++)
        x->values[v].owner = -1;
    for (size_t v = 0; v < x->n_values; v++)
        if (x->values[v].owner < 0)
            settle(x->values, (int)v);
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
    memset(in, 0, (size_t)n->n_ports * sizeof *in);
    for (int i = 0; i < n->n_in; i++)
        view_value(&in[execution_port(n, i)], &x->values[n->in_values[i]]);
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
    if (!x || x->others-- > 0)
        return;
    for (size_t i = 0; i < x->n_nodes; i++) {
        struct execution_node *n = &x->nodes[i];
        free(n->name);
        free(n->in_values);
        free(n->out_values);
        free(n->fused);
        free(n->composed);
        free(n->made);
        free(n->weights);
    }
    free(x->nodes);
    free(x->values);
    free(x->steps);
    free(x->bindings);
    free(x->states);
    free(x);
}

bool execution_erases(const struct execution *x, const struct execution_step *s)
{
    return s->kind == STEP_RELABEL &&
           x->values[s->from].tensor != x->values[s->to].tensor;
}
