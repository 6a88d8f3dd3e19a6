/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan to an execution: nodes that run, in the network's order; a conversion runs just
 * before its first reader. A re-label shares its source's memory, the parts of a
 * concatenation in place lie in its output's. Memory of network inputs and outputs is
 * the caller's: inputs are never written, and every output has a value of its own.
 */
#include "planner/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct plan_choice *choice_of(const struct schedule *s, size_t op)
{
    return plan_chosen(s->problem, s->plan->choices, (int)op);
}

/* ---- nodes that run -------------------------------------------------------------- */

/* "conv1 + relu1" */
static char *node_name(const struct execution_node *n, strata_error *err)
{
    size_t size = strlen(n->layer->name) + 1, used;
    for (size_t i = 0; i < n->n_fused; i++)
        size += strlen(n->fused[i]->name) + 3;
    char *name = zalloc(size, 1, "a node's name", err);
    if (!name)
        return NULL;
    used = (size_t)snprintf(name, size, "%s", n->layer->name);
    for (size_t i = 0; i < n->n_fused; i++)
        used += (size_t)snprintf(name + used, size - used, " + %s", n->fused[i]->name);
    return name;
}

/* Of the node's parameters, if it computes a Shuffle of its tail. */
static int compose(struct execution_node *n, const struct planner_node *from,
                   const strata_network *net, strata_error *err)
{
    n->params = n->layer->params;
    if (!n->n_fused || !from->composed)
        return STRATA_OK;
    n->params = n->composed = planner_compose(net, n->layer, n->fused[0], err);
    return n->composed ? STRATA_OK : STRATA_ENOMEM;
}

/* A copy of a group's layer: the planner may go first. */
static int own_layer(struct execution_node *n, const struct planner *planner,
                     const struct planner_candidate *c, strata_error *err)
{
    n->made = zalloc(1, sizeof *n->made, "a node", err);
    if (!n->made)
        return STRATA_ENOMEM;
    *n->made = planner_group_of(&planner->nodes[c->node], c->kind)->made;
    made_layer_settle(n->made);
    n->layer = &n->made->layer;
    return STRATA_OK;
}

static void list_fused(struct execution_node *n, const struct planner *planner,
                       const struct planner_candidate *c)
{
    const struct planner_node *node = &planner->nodes[c->node];
    const bool group = planner_group_of(node, c->kind);
    int next = node->next;
    for (size_t i = 0; i < n->n_fused; i++) {
        n->fused[i] = &planner->network->layers[group ? next : node->tail[i]];
        next = group ? planner->nodes[next].next : -1;
    }
}

static int make_node(struct execution_node *n, const struct planner *planner,
                     const struct planner_candidate *c, strata_error *err)
{
    const struct planner_node *from = planner_run_node(planner, c);
    *n = (struct execution_node){.layer = from->layer,
                                 .impl = c->impl,
                                 .row = c->row,
                                 .candidate = (size_t)(c - planner->model->candidates),
                                 .n_in = from->n_in,
                                 .n_ports = from->n_ports,
                                 .ports = from->rewritten ? NULL : from->layer->ports,
                                 .n_out = from->n_out,
                                 .residual_value = -1,
                                 .n_fused = planner_fused(planner, c),
                                 .n_scales = planner_scales(planner, from, c->fused),
                                 .epilogue = planner_epilogue(planner, from, c->fused),
                                 .workspace = c->workspace};
    if (c->kind != CANDIDATE_RUN && own_layer(n, planner, c, err) != STRATA_OK)
        return STRATA_ENOMEM;
    n->in_values = zalloc((size_t)n->n_in, sizeof *n->in_values, "a node", err);
    n->out_values = zalloc((size_t)n->n_out, sizeof *n->out_values, "a node", err);
    n->fused = zalloc(n->n_fused, sizeof(*n->fused), "a node", err);
    n->weights = zalloc(n->layer->type->n_weights, sizeof *n->weights, "a node", err);
    if (!n->in_values || !n->out_values || !n->fused || !n->weights)
        return STRATA_ENOMEM;
    list_fused(n, planner, c);
    if (!(n->name = node_name(n, err)))
        return STRATA_ENOMEM;
    int status = compose(n, from, planner->network, err);
    return status == STRATA_OK
               ? planner_weights(planner, from, &c->impl->impl, c->fused, n->weights, err)
               : status;
}

static int schedule_run(struct schedule *s, const struct planner_candidate *c,
                        const struct plan_op *op, const struct plan_choice *choice,
                        strata_error *err)
{
    struct execution *x = s->x;
    const struct planner_node *from = planner_run_node(s->planner, c);
    const struct planner_node *own = &s->planner->nodes[c->node];
    struct execution_node *n = &x->nodes[x->n_nodes++];
    int status = make_node(n, s->planner, c, err);
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = schedule_input(s, &n->in_values[i], op, choice,
                                c->kind == CANDIDATE_RUN ? i : planner_group_port(own, i),
                                err);
    if (status == STRATA_OK && n->epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        status = schedule_input(s, &n->residual_value, op, choice, n->n_in, err);
    for (int i = 0; i < n->n_out && status == STRATA_OK; i++) {
        struct plan_label label = s->problem->labels[plan_out_label(choice, i)];
        const bool homed = label.stage == PLAN_HOME || label.stage > PLAN_HOMING;
        label.stage = homed ? PLAN_HOME : PLAN_PLAIN; /* of the last fused layer's */
        status =
            schedule_add_value(s, &n->out_values[i],
                               planner_output(s->planner, from, c->fused, i), label, err);
    }
    struct execution_step step = {.kind = STEP_RUN,
                                  .node = (int)x->n_nodes - 1,
                                  .from = -1,
                                  .to = -1,
                                  .cost = choice->cost};
    return status == STRATA_OK ? schedule_add_step(x, step, err) : status;
}

static int schedule_node(struct schedule *s, size_t node, strata_error *err)
{
    const struct planner *planner = s->planner;
    const struct planner_node *n = &planner->nodes[node];
    const size_t at = s->planner->network->n_inputs + node;
    const struct plan_op *op = &s->problem->ops[at];
    const struct planner_candidate *c = planner_chosen(planner, s->plan, node);
    switch (c->kind) {
    case CANDIDATE_RUN:
    case CANDIDATE_GROUP:
    case CANDIDATE_LONGER:
        return schedule_run(s, c, op, choice_of(s, at), err);
    case CANDIDATE_ALIAS:
        return schedule_alias(s, n, op, choice_of(s, at), err);
    case CANDIDATE_JOIN:
        return schedule_join(s, n, op, choice_of(s, at), err);
    default:
        return STRATA_OK; /* computed by the node it is fused into */
    }
}

/* ---- inputs and outputs ------------------------------------------------------------ */

/* The network has states' tensors behind its other inputs and outputs, an execution
 * behind both. */
static size_t input_binding(const struct execution *x, size_t input)
{
    return input < x->n_inputs ? input : x->n_bindings + input - x->n_inputs;
}

static size_t output_binding(const struct execution *x, size_t output)
{
    const size_t n_outputs = x->n_bindings - x->n_inputs;
    return output < n_outputs ? x->n_inputs + output
                              : x->n_bindings + x->n_states + output - n_outputs;
}

static int schedule_inputs(struct schedule *s, strata_error *err)
{
    const strata_network *net = s->planner->network;
    for (size_t i = 0; i < net->n_inputs; i++) {
        int value, label = choice_of(s, i)->out[0];
        int status = schedule_add_value(s, &value, net->inputs[i].tensor,
                                        s->problem->labels[label], err);
        if (status != STRATA_OK)
            return status;
        const size_t binding = input_binding(s->x, i);
        s->x->values[value].binding = (int)binding;
        s->x->bindings[binding] =
            (struct execution_binding){net->inputs[i].name, true, value};
    }
    return STRATA_OK;
}

/* Whether a value's memory can be an output's: nobody else's, and no part of a larger. */
static bool may_bind(const struct execution *x, int value)
{
    const struct execution_value *memory = &x->values[schedule_owner(x, value)];
    for (int v = value; x->values[v].alias >= 0; v = x->values[v].alias)
        if (x->values[v].begin != 0)
            return false;
    return memory->binding < 0 && memory->bytes == x->values[value].bytes;
}

static int schedule_output(struct schedule *s, size_t o, strata_error *err)
{
    const struct plan_problem *p = s->problem;
    struct execution *x = s->x;
    size_t op = s->planner->network->n_inputs + s->planner->n_nodes + o;
    int label = choice_of(s, op)->in[0], index = p->ops[op].in[0], value, copy;
    int binding = (int)output_binding(x, o);
    int status = schedule_value(s, &value, index, label, err);
    if (status == STRATA_OK && !may_bind(x, value)) {
        status =
            schedule_add_value(s, &copy, x->values[value].tensor, p->labels[label], err);
        if (status == STRATA_OK)
            status = schedule_add_step(x,
                                       (struct execution_step){.kind = STEP_REFORMAT,
                                                               .node = -1,
                                                               .from = value,
                                                               .to = copy,
                                                               .reason = PLAN_FIXED_IO},
                                       err);
        value = copy;
    }
    if (status != STRATA_OK)
        return status;
    x->values[schedule_owner(x, value)].binding = binding;
    x->bindings[binding] =
        (struct execution_binding){s->planner->network->outputs[o].name, false, value};
    return STRATA_OK;
}

/* ---- all of it -----------------------------------------------------------------------
 */

static int schedule(struct schedule *s, strata_error *err)
{
    const strata_network *net = s->planner->network;
    int status = schedule_inputs(s, err);
    for (size_t i = 0; i < s->planner->n_nodes && status == STRATA_OK; i++)
        status = schedule_node(s, i, err);
    for (size_t i = 0; i < net->n_outputs && status == STRATA_OK; i++)
        status = schedule_output(s, i, err);
    if (status == STRATA_OK)
        status = execution_lay_inside(s->x, net->build.workspace, err);
    if (status == STRATA_OK) {
        execution_find_constants(s->x);
        status = execution_place(s->x, err);
    }
    if (status == STRATA_OK)
        status = execution_keep_states(s->x, err);
    if (status == STRATA_OK)
        execution_find_rounded(s->x);
    return status;
}

static int make_indices(struct schedule *s, strata_error *err)
{
    size_t n = s->problem->n_tensors, tensors = s->planner->network->n_tensors;
    s->first_step = zalloc(n, sizeof *s->first_step, "the schedule", err);
    s->latest = zalloc(tensors, sizeof *s->latest, "the schedule", err);
    if (!s->first_step || !s->latest)
        return STRATA_ENOMEM;
    memset(s->first_step, -1, n * sizeof *s->first_step);
    memset(s->latest, -1, tensors * sizeof *s->latest);
    for (size_t i = s->plan->n_steps; i-- > 0;)
        s->first_step[s->plan->steps[i].tensor] = (int)i;
    return STRATA_OK;
}

int execution_make(struct execution **out, const struct planner *planner,
                   const struct plan *plan, strata_error *err)
{
    struct schedule s = {
        .planner = planner, .problem = &planner->model->problem, .plan = plan};
    *out = NULL;
    if (!(s.x = execution_open(planner, err)))
        return STRATA_ENOMEM;
    s.x->cost = plan->cost;
    int status = make_indices(&s, err);
    if (status == STRATA_OK)
        status = schedule(&s, err);
    if (status == STRATA_OK && planner->record && plan == planner->plan)
        record_in_place(planner->record, s.x);
    if (status == STRATA_OK)
        *out = s.x;
    else
        execution_free(s.x);
    free(s.first_step);
    free(s.latest);
    free(s.before);
    return status;
}
