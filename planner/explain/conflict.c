/* SPDX-License-Identifier: Apache-2.0
 *
 * Why there is no plan, in the user's words: a smallest set of constraints that cannot
 * all hold, each with its formats and the line that asks for it.
 */
#include "planner/explain/explain.h"

#include <stdlib.h>

/* Whether a tensor joins two operations of the set, or is all that one is judged by. */
static bool is_disputed(const struct plan_problem *p, const struct plan_conflict *c,
                        int tensor)
{
    const struct plan_tensor *t = &p->tensors[tensor];
    bool made = false, read = false;
    for (size_t i = 0; i < c->n_ops; i++) {
        made |= c->ops[i] == t->producer;
        for (size_t r = 0; r < t->n_readers; r++)
            read |= c->ops[i] == t->readers[r].op;
    }
    return c->n_ops < 2 || (made && read);
}

static void append_formats(strata_error *err, const char *gap,
                           const struct planner *planner, int op, int port, bool output)
{
    const struct plan_op *o = &planner->model->problem.ops[op];
    int tensor = output ? o->out[port] : o->in[port];
    uint64_t labels = 0;
    for (size_t k = 0; k < o->n_choices; k++)
        labels |= UINT64_C(1) << (output ? plan_out_label(&o->choices[k], port)
                                         : plan_in_label(&o->choices[k], port));
    char *list = explain_labels(planner, tensor, labels);
    error_append(err, "%s %s %s {%s}", gap, output ? "writes" : "reads",
                 planner->model->problem.tensors[tensor].name, list ? list : "?");
    free(list);
}

/* "  layer 'conv1' (net.ini:12, impl = any)" */
static void append_layer(strata_error *err, const struct planner *planner,
                         const struct plan_op *o)
{
    const struct plan_choice *c = o->choices;
    char place[256];
    if (c->impl < 0) {
        error_append(err, "\n  %s '%s'", o->n_in ? "output" : "input", o->name);
        return;
    }
    const struct network_layer *layer =
        &planner->network->layers[planner->model->candidates[c->impl].node];
    config_describe(planner->network->config, layer->place, place, sizeof place);
    error_append(err, "\n  layer '%s' (%s%s%s%s)", o->name, place,
                 layer->impl ? ", impl = " : "", layer->impl ? layer->impl : "",
                 layer->formats ? ", format pinned" : "");
}

static void append_op(strata_error *err, const struct planner *planner,
                      const struct plan_conflict *c, int op)
{
    const struct plan_problem *p = &planner->model->problem;
    const struct plan_op *o = &p->ops[op];
    const char *gap = ":";
    append_layer(err, planner, o);
    for (int i = 0; i < o->n_in; i++)
        if (is_disputed(p, c, o->in[i])) {
            append_formats(err, gap, planner, op, i, false);
            gap = ";";
        }
    for (int i = 0; i < o->n_out; i++)
        if (is_disputed(p, c, o->out[i])) {
            append_formats(err, gap, planner, op, i, true);
            gap = ";";
        }
}

static void append_ban(strata_error *err, const struct planner *planner,
                       const struct plan_ban *ban)
{
    if (ban->kind == PLAN_BAN_CONVERSION && ban->tensor < 0)
        error_append(err, "\n  no_reformat = yes allows no reformat");
    else if (ban->tensor >= 0)
        error_append(err, "\n  a conversion of '%s' is forbidden",
                     planner->model->problem.tensors[ban->tensor].name);
    else
        error_append(err, "\n  an impl of '%s' is forbidden",
                     planner->model->problem.ops[ban->op].name);
}

int explain_conflict(const struct planner *planner, const struct plan_options *options,
                     strata_error *err)
{
    struct plan_conflict c = {0};
    strata_error plain = {0};
    if (plan_find_conflict(&c, &planner->model->problem, options, &plain) != STRATA_OK)
        return error_set(err, STRATA_EPLAN, "no plan: %s", plain.message);
    error_clear(err);
    error_set(err, STRATA_EPLAN,
              "no plan: not all of these can hold, and without any one there is a plan:");
    for (size_t i = 0; i < c.n_ops; i++)
        append_op(err, planner, &c, c.ops[i]);
    for (size_t i = 0; i < c.n_bans; i++)
        append_ban(err, planner, &options->bans[c.bans[i]]);
    error_append(err, "\n  remedy: allow one of them more formats, or another impl");
    plan_conflict_free(&c);
    return STRATA_EPLAN;
}
