/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan to steps, in the network's order; a conversion runs just before its first
 * reader. A re-label shares its source's memory, the parts of a concatenation in place
 * lie in its output's. Memory of network inputs and outputs is the caller's: inputs are
 * never written, and every output has a value of its own.
 */
#include "engine/file/stored.h"

#include <stdlib.h>
#include <string.h>

static const struct plan_choice *choice_of(const strata_engine *e, size_t op)
{
    return &e->model->problem.ops[op].choices[e->plan->choices[op]];
}

static int find_value(const strata_engine *e, int tensor, struct plan_label label)
{
    for (size_t v = 0; v < e->n_values; v++)
        if (e->values[v].tensor == tensor && e->values[v].format == label.format &&
            e->values[v].pad == label.pad && e->values[v].stage == label.stage)
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
                               .stage = label.stage,
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

int engine_owner(const strata_engine *e, int value)
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

/* Why a conversion stands; a file's plan remembers, since the alternatives are gone. */
static enum plan_reason reason_of(const strata_engine *e, const struct plan_step *c)
{
    return e->stored ? e->stored->conversions[c - e->plan->steps].reason
                     : plan_step_reason(&e->model->problem, e->plan, c);
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
                               .reason = reason_of(e, c)};
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

static int add_relabel(strata_engine *e, int from, int to, strata_error *err)
{
    struct engine_step step = {.kind = STEP_RELABEL,
                               .node = -1,
                               .from = from,
                               .to = to,
                               .reason = PLAN_ECONOMIC};
    return add_step(e, step, err);
}

static int need_input(strata_engine *e, int *out, const struct plan_op *op,
                      const struct plan_choice *choice, int port, strata_error *err)
{
    return need_value(e, out, op->in[port], plan_in_label(choice, port), err);
}

/* What the node computes, of which the layers in its tail are not nodes any more. */
static int settle_node(strata_engine *e, struct engine_node *n,
                       const struct engine_candidate *c, strata_error *err)
{
    n->impl = c->impl;
    n->row = c->row;
    n->workspace = c->workspace;
    n->n_fused = c->fused;
    n->epilogue = engine_epilogue(e, n, c->fused);
    if (c->fused)
        n->out = e->network->layers[n->tail[c->fused - 1]].outputs;
    return engine_weights(e, n, c->fused, n->weights, err);
}

static int schedule_run(strata_engine *e, size_t node, const struct plan_op *op,
                        const struct plan_choice *choice, strata_error *err)
{
    struct engine_node *n = &e->nodes[node];
    const struct engine_candidate *c = &e->model->candidates[choice->impl];
    int status = settle_node(e, n, c, err);
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = need_input(e, &n->in_values[i], op, choice, i, err);
    if (status == STRATA_OK && n->epilogue.flags & STRATA_EPILOGUE_RESIDUAL)
        status = need_input(e, &n->residual_value, op, choice, n->n_in, err);
    for (int i = 0; i < n->n_out && status == STRATA_OK; i++) {
        struct plan_label label = e->model->problem.labels[plan_out_label(choice, i)];
        label.stage = PLAN_PLAIN; /* of the last fused layer's output */
        status = add_value(e, &n->out_values[i], n->out[i], label, err);
    }
    struct engine_step step = {
        .kind = STEP_RUN, .node = (int)node, .from = -1, .to = -1, .cost = choice->cost};
    return status == STRATA_OK ? add_step(e, step, err) : status;
}

static int schedule_alias(strata_engine *e, size_t node, const struct plan_op *op,
                          const struct plan_choice *choice, strata_error *err)
{
    int in, out;
    int status = need_input(e, &in, op, choice, 0, err);
    if (status == STRATA_OK)
        status = add_value(e, &out, e->nodes[node].out[0],
                           e->model->problem.labels[plan_out_label(choice, 0)], err);
    if (status != STRATA_OK)
        return status;
    e->values[out].alias = in;
    e->values[out].begin =
        engine_alias_begin(e, e->nodes[node].layer, e->values[in].format);
    return add_relabel(e, in, out, err);
}

/* Put a part where it belongs: its memory there if it has its own, else a copy. */
static int settle_part(strata_engine *e, int part, int64_t cost, int whole, int64_t begin,
                       strata_error *err)
{
    struct engine_value *memory = &e->values[engine_owner(e, part)];
    int copy;
    if (cost == 0 && memory->binding < 0 && memory->bytes == e->values[part].bytes) {
        memory->alias = whole;
        memory->begin = begin;
        return add_relabel(e, part, whole, err);
    }
    struct plan_label home = {.format = e->values[part].format, .stage = PLAN_HOME};
    int status = add_value(e, &copy, e->values[part].tensor, home, err);
    if (status != STRATA_OK)
        return status;
    e->values[copy].alias = whole;
    e->values[copy].begin = begin;
    struct engine_step step = {.kind = STEP_REFORMAT,
                               .node = -1,
                               .from = part,
                               .to = copy,
                               .cost = cost,
                               .reason = PLAN_ECONOMIC};
    status = add_step(e, step, err);
    return status == STRATA_OK ? add_relabel(e, copy, whole, err) : status;
}

static int schedule_join(strata_engine *e, size_t node, const struct plan_op *op,
                         const struct plan_choice *choice, strata_error *err)
{
    const struct engine_node *n = &e->nodes[node];
    int format = e->model->problem.labels[choice->in[0]].format, whole = -1;
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++) {
        const struct plan_step *c = conversion_to(e, op->in[i], plan_in_label(choice, i));
        status = c ? need_value(e, &n->in_values[i], op->in[i], c->from, err)
                   : error_set(err, STRATA_EINTERNAL, "layer '%s': input %d has no place",
                               n->name, i);
    }
    if (status == STRATA_OK)
        status = add_value(e, &whole, n->out[0],
                           e->model->problem.labels[plan_out_label(choice, 0)], err);
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = settle_part(e, n->in_values[i],
                             conversion_to(e, op->in[i], plan_in_label(choice, i))->cost,
                             whole, engine_part_begin(e, n, i, format, NULL), err);
    return status;
}

static int schedule_node(strata_engine *e, size_t node, strata_error *err)
{
    const struct plan_op *op = &e->model->problem.ops[e->n_inputs + node];
    const struct plan_choice *choice = choice_of(e, e->n_inputs + node);
    switch (e->model->candidates[choice->impl].kind) {
    case CANDIDATE_RUN:
        return schedule_run(e, node, op, choice, err);
    case CANDIDATE_ALIAS:
        return schedule_alias(e, node, op, choice, err);
    case CANDIDATE_JOIN:
        return schedule_join(e, node, op, choice, err);
    default:
        return STRATA_OK; /* computed by the node it is fused into */
    }
}

/* Whether a value's memory can be an output's: nobody else's, and no part of a larger. */
static bool may_bind(const strata_engine *e, int value)
{
    const struct engine_value *memory = &e->values[engine_owner(e, value)];
    for (int v = value; e->values[v].alias >= 0; v = e->values[v].alias)
        if (e->values[v].begin != 0)
            return false;
    return memory->binding < 0 && memory->bytes == e->values[value].bytes;
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
    e->values[engine_owner(e, value)].binding = binding;
    e->bindings[binding] =
        (struct engine_binding){e->network->outputs[o].name, false, value};
    return STRATA_OK;
}

/* ---- nodes that run ------------------------------------------------------------------
 */

/* What became of layers that run nothing, for the record. */
static int note_free(strata_engine *e, strata_error *err)
{
    static const char *const text[] = {
        [CANDIDATE_ALIAS] = "its output is its input's memory, or a part of it",
        [CANDIDATE_JOIN] = "its inputs are made inside its output",
    };
    for (size_t i = 0; i < e->n_nodes; i++) {
        const struct plan_choice *choice = choice_of(e, e->n_inputs + i);
        enum candidate_kind kind = e->model->candidates[choice->impl].kind;
        struct engine_fusion *f = &e->fusions[i];
        if (kind != CANDIDATE_ALIAS && kind != CANDIDATE_JOIN)
            continue;
        free(f->reason);
        f->possible = f->done = true;
        f->into = -1;
        if (!(f->reason = duplicate(text[kind], err)))
            return STRATA_ENOMEM;
    }
    return STRATA_OK;
}

static int drop_nodes(strata_engine *e, strata_error *err)
{
    size_t n = 0;
    int *now = zalloc(e->n_nodes, sizeof *now, "the schedule", err);
    if (!now)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < e->n_nodes; i++) {
        now[i] = (int)n;
        if (e->nodes[i].impl)
            e->nodes[n++] = e->nodes[i];
        else
            engine_free_node(&e->nodes[i]);
    }
    e->n_nodes = n;
    for (size_t s = 0; s < e->n_steps; s++)
        if (e->steps[s].kind == STEP_RUN)
            e->steps[s].node = now[e->steps[s].node];
    free(now);
    return STRATA_OK;
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
    if ((status = note_free(e, err)) != STRATA_OK ||
        (status = engine_note_fusions(e, err)) != STRATA_OK)
        return status;
    status = drop_nodes(e, err);
    return status == STRATA_OK ? engine_plan_memory(e, err) : status;
}
