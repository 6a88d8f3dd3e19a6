/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan to steps. Nodes run in the network's order; a conversion runs just before its
 * first reader. A re-label and an in-place node share their source's memory; the rest is
 * placed in the arena by liveness. Memory of network inputs and outputs is the caller's:
 * inputs are never written, and every output has a value of its own.
 */
#include "core/engine.h"

#include <stdlib.h>
#include <string.h>

#include "core/arena.h"

static const struct plan_choice *choice_of(const strata_engine *e, size_t op)
{
    return &e->model->problem.ops[op].choices[e->plan->choices[op]];
}

static int find_value(const strata_engine *e, int tensor, struct plan_label label)
{
    for (size_t v = 0; v < e->n_values; v++)
        if (e->values[v].tensor == tensor && e->values[v].format == label.format &&
            e->values[v].pad == label.pad)
            return (int)v;
    return -1;
}

static int add_value(strata_engine *e, int *out, int tensor, struct plan_label label,
                     strata_error *err)
{
    int status =
        grow(&e->values, &e->values_capacity, e->n_values, sizeof *e->values, err);
    if (status != STRATA_OK)
        return status;
    struct engine_value *v = &e->values[e->n_values];
    *v = (struct engine_value){.tensor = tensor,
                               .format = label.format,
                               .pad = label.pad,
                               .binding = -1,
                               .alias = -1,
                               .first = (int)e->n_steps,
                               .last = (int)e->n_steps};
    status = engine_desc(&v->desc, e->network, tensor, label.format, err);
    v->bytes = strata_desc_bytes(&v->desc);
    *out = (int)e->n_values++;
    return status;
}

static int add_step(strata_engine *e, struct engine_step step, strata_error *err)
{
    int status = grow(&e->steps, &e->steps_capacity, e->n_steps, sizeof *e->steps, err);
    if (status == STRATA_OK)
        e->steps[e->n_steps++] = step;
    return status;
}

/* The value whose memory this one uses. */
static int owner(const strata_engine *e, int value)
{
    while (e->values[value].alias >= 0)
        value = e->values[value].alias;
    return value;
}

/* The plan's conversion that makes a label of a tensor, or NULL. */
static const struct plan_step *conversion_to(const strata_engine *e, int index, int label)
{
    for (size_t i = 0; i < e->plan->n_steps; i++)
        if (e->plan->steps[i].tensor == index && e->plan->steps[i].to == label)
            return &e->plan->steps[i];
    return NULL;
}

/* Have a tensor in a label, converting from what exists as the plan's tree says. */
static int need_value(strata_engine *e, int *out, int index, int label, strata_error *err)
{
    const struct plan_problem *p = &e->model->problem;
    int tensor = e->model->tensor_of[index], from;
    *out = find_value(e, tensor, p->labels[label]);
    if (*out >= 0)
        return STRATA_OK;
    const struct plan_step *c = conversion_to(e, index, label);
    if (!c)
        return error_set(err, STRATA_EINTERNAL, "tensor '%s': the plan does not make it",
                         p->tensors[index].name);
    int status = need_value(e, &from, index, c->from, err);
    if (status == STRATA_OK)
        status = add_value(e, out, tensor, p->labels[label], err);
    if (status != STRATA_OK)
        return status;
    struct engine_step step = {.kind = c->cost == 0 ? STEP_RELABEL : STEP_REFORMAT,
                               .node = -1,
                               .from = from,
                               .to = *out,
                               .cost = c->cost,
                               .reason = plan_step_reason(p, e->plan, c)};
    if (step.kind == STEP_RELABEL)
        e->values[*out].alias = from;
    return add_step(e, step, err);
}

static int schedule_inputs(strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    for (size_t i = 0; i < net->n_inputs; i++) {
        int value, label = choice_of(e, i)->out[0];
        int status = add_value(e, &value, net->inputs[i].tensor,
                               e->model->problem.labels[label], err);
        if (status != STRATA_OK)
            return status;
        e->values[value].binding = (int)i;
        e->bindings[i] = (struct engine_binding){net->inputs[i].name, true, value};
    }
    return STRATA_OK;
}

static int schedule_node(strata_engine *e, size_t node, strata_error *err)
{
    struct engine_node *n = &e->nodes[node];
    const struct plan_op *op = &e->model->problem.ops[e->n_inputs + node];
    const struct plan_choice *choice = choice_of(e, e->n_inputs + node);
    const struct engine_candidate *c = &e->model->candidates[choice->impl];
    n->impl = c->impl;
    n->row = c->row;
    n->workspace = c->workspace;
    for (int i = 0; i < n->n_in; i++) {
        int status =
            need_value(e, &n->in_values[i], op->in[i], plan_in_label(choice, i), err);
        if (status != STRATA_OK)
            return status;
    }
    for (int i = 0; i < n->n_out; i++) {
        int label = plan_out_label(choice, i);
        int status = add_value(e, &n->out_values[i], n->out[i],
                               e->model->problem.labels[label], err);
        if (status != STRATA_OK)
            return status;
    }
    return add_step(e,
                    (struct engine_step){.kind = STEP_RUN,
                                         .node = (int)node,
                                         .from = -1,
                                         .to = -1,
                                         .cost = choice->cost},
                    err);
}

/* Whether a value can live in an output's memory: made by a step of its own. */
static bool may_bind(const strata_engine *e, int value)
{
    return e->values[value].binding < 0 && e->values[value].alias < 0;
}

static int schedule_output(strata_engine *e, size_t o, strata_error *err)
{
    const struct plan_problem *p = &e->model->problem;
    size_t op = e->n_inputs + e->n_nodes + o;
    int label = choice_of(e, op)->in[0], index = p->ops[op].in[0], value, copy;
    int binding = (int)(e->n_inputs + o);
    int status = need_value(e, &value, index, label, err);
    if (status == STRATA_OK && !may_bind(e, value)) {
        status = add_value(e, &copy, e->values[value].tensor, p->labels[label], err);
        if (status == STRATA_OK)
            status = add_step(e,
                              (struct engine_step){.kind = STEP_REFORMAT,
                                                   .node = -1,
                                                   .from = value,
                                                   .to = copy,
                                                   .reason = PLAN_FIXED_IO},
                              err);
        value = copy;
    }
    if (status != STRATA_OK)
        return status;
    e->values[value].binding = binding;
    e->bindings[binding] =
        (struct engine_binding){e->network->outputs[o].name, false, value};
    return STRATA_OK;
}

/* ---- memory ------------------------------------------------------------------------ */

static void touch(strata_engine *e, int value, int step)
{
    struct engine_value *v = &e->values[owner(e, value)];
    v->first = step < v->first ? step : v->first;
    v->last = step > v->last ? step : v->last;
    if (v->binding >= 0 && v->binding < (int)e->n_inputs && step > e->last_input_step)
        e->last_input_step = step;
}

static void find_lifetimes(strata_engine *e)
{
    e->last_input_step = -1;
    for (size_t v = 0; v < e->n_values; v++) {
        e->values[v].first = (int)e->n_steps;
        e->values[v].last = -1;
    }
    for (size_t s = 0; s < e->n_steps; s++) {
        const struct engine_step *step = &e->steps[s];
        if (step->kind != STEP_RUN) {
            touch(e, step->from, (int)s);
            touch(e, step->to, (int)s);
            continue;
        }
        const struct engine_node *n = &e->nodes[step->node];
        for (int i = 0; i < n->n_in; i++)
            touch(e, n->in_values[i], (int)s);
        for (int i = 0; i < n->n_out; i++)
            touch(e, n->out_values[i], (int)s);
    }
}

static bool read_later(const strata_engine *e, int memory, size_t step)
{
    for (size_t s = step + 1; s < e->n_steps; s++) {
        const struct engine_step *later = &e->steps[s];
        if (later->kind != STEP_RUN && owner(e, later->from) == memory)
            return true;
        for (int i = 0; later->kind == STEP_RUN && i < e->nodes[later->node].n_in; i++)
            if (owner(e, e->nodes[later->node].in_values[i]) == memory)
                return true;
    }
    return false;
}

static bool can_share(const strata_engine *e, const struct engine_node *n, size_t step)
{
    if (!(n->impl->impl.flags & STRATA_INPLACE_OK) || n->n_in < 1 || n->n_out < 1)
        return false;
    const struct engine_value *in = &e->values[n->in_values[0]];
    const struct engine_value *out = &e->values[n->out_values[0]];
    int memory = owner(e, n->in_values[0]);
    for (int i = 1; i < n->n_in; i++)
        if (owner(e, n->in_values[i]) == memory)
            return false;
    return in->format == out->format && in->bytes == out->bytes &&
           e->values[memory].binding < 0 && out->binding < 0 &&
           !read_later(e, memory, step);
}

static void share_in_place(strata_engine *e)
{
    for (size_t s = 0; s < e->n_steps; s++) {
        if (e->steps[s].kind != STEP_RUN)
            continue;
        struct engine_node *n = &e->nodes[e->steps[s].node];
        if (can_share(e, n, s))
            e->values[n->out_values[0]].alias = n->in_values[0];
    }
}

static bool in_arena(const struct engine_value *v)
{
    return v->alias < 0 && v->binding < 0 && v->last >= 0;
}

/* One block for each value that owns arena memory and one for each workspace. */
static int place(strata_engine *e, strata_error *err)
{
    size_t n = 0;
    struct arena_block *blocks =
        zalloc(e->n_values + e->n_steps, sizeof *blocks, "the arena planner", err);
    if (!blocks)
        return STRATA_ENOMEM;
    for (size_t v = 0; v < e->n_values; v++)
        if (in_arena(&e->values[v]))
            blocks[n++] = (struct arena_block){e->values[v].bytes, e->values[v].first,
                                               e->values[v].last, 0};
    for (size_t s = 0; s < e->n_steps; s++)
        if (e->steps[s].kind == STEP_RUN && e->nodes[e->steps[s].node].workspace)
            blocks[n++] = (struct arena_block){
                (int64_t)e->nodes[e->steps[s].node].workspace, (int)s, (int)s, 0};
    int status = arena_place(blocks, n, &e->arena_bytes, &e->arena_bound, err);
    n = 0;
    for (size_t v = 0; v < e->n_values; v++)
        if (in_arena(&e->values[v]))
            e->values[v].offset = blocks[n++].offset;
    for (size_t s = 0; s < e->n_steps; s++)
        if (e->steps[s].kind == STEP_RUN && e->nodes[e->steps[s].node].workspace)
            e->nodes[e->steps[s].node].workspace_offset = blocks[n++].offset;
    free(blocks);
    return status;
}

int engine_make_schedule(strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    int status;
    e->n_inputs = net->n_inputs;
    e->n_bindings = net->n_inputs + net->n_outputs;
    e->bindings = zalloc(e->n_bindings, sizeof *e->bindings, "the bindings", err);
    if (!e->bindings)
        return STRATA_ENOMEM;
    if ((status = schedule_inputs(e, err)) != STRATA_OK)
        return status;
    for (size_t i = 0; i < e->n_nodes && status == STRATA_OK; i++)
        status = schedule_node(e, i, err);
    for (size_t i = 0; i < net->n_outputs && status == STRATA_OK; i++)
        status = schedule_output(e, i, err);
    if (status != STRATA_OK)
        return status;
    share_in_place(e);
    find_lifetimes(e);
    return place(e, err);
}
