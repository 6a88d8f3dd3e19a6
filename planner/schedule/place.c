/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that are memory of others: outputs that lie in their input, inputs that lie in
 * their output.
 */
#include "planner/schedule/schedule.h"

#include <stdlib.h>

int schedule_alias(struct schedule *s, const struct planner_node *n,
                   const struct plan_op *op, const struct plan_choice *choice,
                   strata_error *err)
{
    int in, out;
    int status = schedule_input(s, &in, op, choice, 0, err);
    for (int i = 0; i < n->n_out && status == STRATA_OK; i++) {
        const struct plan_label label = s->problem->labels[plan_out_label(choice, i)];
        if ((status = schedule_add_value(s, &out, n->out[i], label, err)) != STRATA_OK)
            break;
        struct execution_value *v = &s->x->values[out];
        v->alias = in;
        v->begin = s->x->values[in].format == v->format
                       ? planner_find_alias(s->planner, n->layer, i, v->format).begin
                       : 0; /* all of it, turned */
        v->pitched = label.stage == PLAN_CUT;
        status = schedule_relabel(s->x, in, out, err);
    }
    return status;
}

/* Put a part where it belongs: its memory there if it has its own, else a copy in the
 * whole's format, which that of what it is a slice of may not be. */
static int settle_piece(struct schedule *s, int part, int format, int64_t cost, int whole,
                        int64_t begin, strata_error *err)
{
    struct execution *x = s->x;
    struct execution_value *memory = &x->values[schedule_owner(x, part)];
    int copy;
    if (cost == 0 && memory->binding < 0 && memory->bytes == x->values[part].bytes) {
        memory->alias = whole;
        memory->begin = begin;
        return schedule_relabel(x, part, whole, err);
    }
    struct plan_label home = {.format = format, .stage = PLAN_HOME};
    int status = schedule_add_value(s, &copy, x->values[part].tensor, home, err);
    if (status != STRATA_OK)
        return status;
    x->values[copy].alias = whole;
    x->values[copy].begin = begin;
    struct execution_step step = {.kind = STEP_REFORMAT,
                                  .node = -1,
                                  .from = part,
                                  .to = copy,
                                  .cost = cost,
                                  .reason = PLAN_ECONOMIC};
    status = schedule_add_step(x, step, err);
    return status == STRATA_OK ? schedule_relabel(x, copy, whole, err) : status;
}

/* The part was written, or will be, for this place alone. */
static int settle_apart(struct schedule *s, int part, int whole, int64_t begin,
                        strata_error *err)
{
    struct execution_value *v = &s->x->values[part];
    v->alias = whole;
    v->begin = begin;
    v->pitched = true;
    return schedule_relabel(s->x, part, whole, err);
}

/* An input as it lies in its concatenation, or what is put there as one piece. */
static int need_part(struct schedule *s, int *out, const struct planner_node *n,
                     const struct plan_op *op, const struct plan_choice *choice, int i,
                     strata_error *err)
{
    const int label = plan_in_label(choice, i);
    const int format = s->problem->labels[label].format;
    const struct plan_step *c = schedule_conversion(s, op->in[i], label);
    if (planner_find_part(s->planner, n, i, format).pitched)
        return schedule_value(s, out, op->in[i], label, err);
    return c ? schedule_value(s, out, op->in[i], c->from, err)
             : error_set(err, STRATA_EINTERNAL, "layer '%s': input %d has no place",
                         n->layer->name, i);
}

static int join(struct schedule *s, const struct planner_node *n, int *parts,
                const struct plan_op *op, const struct plan_choice *choice,
                strata_error *err)
{
    int format = s->problem->labels[choice->in[0]].format, whole = -1;
    int status = STRATA_OK;
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++)
        status = need_part(s, &parts[i], n, op, choice, i, err);
    if (status == STRATA_OK)
        status = schedule_add_value(s, &whole, n->out[0],
                                    s->problem->labels[plan_out_label(choice, 0)], err);
    for (int i = 0; i < n->n_in && status == STRATA_OK; i++) {
        const struct planner_slice at = planner_find_part(s->planner, n, i, format);
        const struct plan_step *c =
            schedule_conversion(s, op->in[i], plan_in_label(choice, i));
        status = at.pitched
                     ? settle_apart(s, parts[i], whole, at.begin, err)
                     : settle_piece(s, parts[i], format, c->cost, whole, at.begin, err);
    }
    return status;
}

int schedule_join(struct schedule *s, const struct planner_node *n,
                  const struct plan_op *op, const struct plan_choice *choice,
                  strata_error *err)
{
    int *parts = zalloc((size_t)n->n_in, sizeof *parts, "a node", err);
    int status = parts ? join(s, n, parts, op, choice, err) : STRATA_ENOMEM;
    free(parts);
    return status;
}
