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

/* The earliest of a tensor in a label. */
static int find_value(const struct schedule *s, int tensor, struct plan_label label)
{
    int found = -1;
    for (int v = s->latest[tensor]; v >= 0; v = s->before[v]) {
        const struct execution_value *value = &s->x->values[v];
        if (value->format == label.format && value->pad == label.pad &&
            value->stage == label.stage)
            found = v;
    }
    return found;
}

int schedule_add_value(struct schedule *s, int *out, int tensor, struct plan_label label,
                       strata_error *err)
{
    struct execution *x = s->x;
    int status =
        grow(&x->values, &x->values_capacity, x->n_values, sizeof *x->values, err);
    if (status == STRATA_OK)
        status =
            grow(&s->before, &s->before_capacity, x->n_values, sizeof *s->before, err);
    if (status != STRATA_OK)
        return status;
    s->before[x->n_values] = s->latest[tensor];
    s->latest[tensor] = (int)x->n_values;
    struct execution_value *v = &x->values[x->n_values];
    *v = (struct execution_value){.tensor = tensor,
                                  .format = label.format,
                                  .pad = label.pad,
                                  .stage = label.stage,
                                  .binding = -1,
                                  .alias = -1,
                                  .first = (int)x->n_steps,
                                  .last = (int)x->n_steps};
    status = planner_desc(&v->desc, s->planner->network, tensor, label.format, err);
    v->bytes = strata_desc_bytes(&v->desc);
    *out = (int)x->n_values++;
    return status;
}

/* While aliases are still being made. */
int schedule_owner(const struct execution *x, int value)
{
    while (x->values[value].alias >= 0)
        value = x->values[value].alias;
    return value;
}

int schedule_add_step(struct execution *x, struct execution_step step, strata_error *err)
{
    int status = grow(&x->steps, &x->steps_capacity, x->n_steps, sizeof *x->steps, err);
    if (status == STRATA_OK)
        x->steps[x->n_steps++] = step;
    return status;
}

/* ---- conversions ----------------------------------------------------------------- */

/* The plan's conversion that makes a label of a tensor, or NULL. */
const struct plan_step *schedule_conversion(const struct schedule *s, int index,
                                            int label)
{
    const struct plan *plan = s->plan;
    if (s->first_step[index] < 0)
        return NULL;
    for (size_t i = (size_t)s->first_step[index];
         i < plan->n_steps && plan->steps[i].tensor == index; i++)
        if (plan->steps[i].to == label)
            return &plan->steps[i];
    return NULL;
}

/* Why a conversion stands; a record remembers, since the alternatives are gone. */
static enum plan_reason reason_of(const struct schedule *s, const struct plan_step *c)
{
    const struct record *r = s->planner->record;
    return r ? r->conversions[c - s->plan->steps].reason
             : plan_step_reason(s->problem, s->plan, c);
}

/* Have a tensor in a label, converting from what exists as the plan's tree says. */
int schedule_value(struct schedule *s, int *out, int index, int label, strata_error *err)
{
    const struct plan_problem *p = s->problem;
    int tensor = s->planner->model->tensor_of[index], from;
    *out = find_value(s, tensor, p->labels[label]);
    if (*out >= 0)
        return STRATA_OK;
    const struct plan_step *c = schedule_conversion(s, index, label);
    if (!c)
        return error_set(err, STRATA_EINTERNAL, "tensor '%s': the plan does not make it",
                         p->tensors[index].name);
    if (p->labels[label].stage == PLAN_ANYWHERE)
        return schedule_value(s, out, index, c->from, err);
    int status = schedule_value(s, &from, index, c->from, err);
    if (status == STRATA_OK)
        status = schedule_add_value(s, out, tensor, p->labels[label], err);
    if (status != STRATA_OK)
        return status;
    struct execution_step step = {.kind = c->cost == 0 ? STEP_RELABEL : STEP_REFORMAT,
                                  .node = -1,
                                  .from = from,
                                  .to = *out,
                                  .cost = c->cost,
                                  .reason = reason_of(s, c)};
    if (step.kind == STEP_RELABEL)
        s->x->values[*out].alias = from;
    return schedule_add_step(s->x, step, err);
}

int schedule_input(struct schedule *s, int *out, const struct plan_op *op,
                   const struct plan_choice *choice, int port, strata_error *err)
{
    return schedule_value(s, out, op->in[port], plan_in_label(choice, port), err);
}

int schedule_relabel(struct execution *x, int from, int to, strata_error *err)
{
    struct execution_step step = {.kind = STEP_RELABEL,
                                  .node = -1,
                                  .from = from,
                                  .to = to,
                                  .reason = PLAN_ECONOMIC};
    return schedule_add_step(x, step, err);
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
    *n->made = planner->nodes[c->node].group->made;
    made_layer_settle(n->made);
    n->layer = &n->made->layer;
    return STRATA_OK;
}

static void list_fused(struct execution_node *n, const struct planner *planner,
                       const struct planner_candidate *c)
{
    const struct planner_node *node = &planner->nodes[c->node];
    const bool group = c->kind == CANDIDATE_GROUP;
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
                                 .n_in = from->n_in,
                                 .n_ports = from->n_ports,
                                 .ports = from->rewritten ? NULL : from->layer->ports,
                                 .n_out = from->n_out,
                                 .residual_value = -1,
                                 .n_fused = planner_fused(planner, c),
                                 .n_scales = planner_scales(planner, from, c->fused),
                                 .epilogue = planner_epilogue(planner, from, c->fused),
                                 .workspace = c->workspace};
    if (c->kind == CANDIDATE_GROUP && own_layer(n, planner, c, err) != STRATA_OK)
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
    return status == STRATA_OK ? planner_weights(planner, from, c->fused, n->weights, err)
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
                                i + (i >= own->n_in && own->residual >= 0), err);
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
    if (status == STRATA_OK)
        status = execution_place(s->x, err);
    return status == STRATA_OK ? execution_keep_states(s->x, err) : status;
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
    if (status == STRATA_OK)
        *out = s.x;
    else
        execution_free(s.x);
    free(s.first_step);
    free(s.latest);
    free(s.before);
    return status;
}
