/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and the steps that convert them, as the plan's trees say.
 */
#include "planner/schedule/schedule.h"

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
                                  .constant = -1,
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
