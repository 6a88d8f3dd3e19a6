/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's model: what an assignment of choices costs, and why its steps stand.
 */
#include "planner/solver/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

const struct plan_choice *plan_chosen(const struct plan_problem *p, const size_t *choices,
                                      int op)
{
    return &p->ops[op].choices[choices[op]];
}

uint64_t plan_wanted(const struct plan_problem *p, const size_t *choices,
                     const struct plan_tensor *t)
{
    uint64_t wanted = 0;
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_reader *r = &t->readers[i];
        wanted |= UINT64_C(1) << plan_in_label(plan_chosen(p, choices, r->op), r->port);
    }
    return wanted;
}

void plan_connect(struct plan_problem *p, struct plan_reader *readers)
{
    for (size_t op = 0; op < p->n_ops; op++) {
        for (int i = 0; i < p->ops[op].n_in; i++)
            p->tensors[p->ops[op].in[i]].n_readers++;
        for (int i = 0; i < p->ops[op].n_out; i++) {
            p->tensors[p->ops[op].out[i]].producer = (int)op;
            p->tensors[p->ops[op].out[i]].port = i;
        }
    }
    for (size_t t = 0; t < p->n_tensors; t++) {
        p->tensors[t].readers = readers;
        readers += p->tensors[t].n_readers;
        p->tensors[t].n_readers = 0;
    }
    for (size_t op = 0; op < p->n_ops; op++)
        for (int i = 0; i < p->ops[op].n_in; i++) {
            struct plan_tensor *t = &p->tensors[p->ops[op].in[i]];
            t->readers[t->n_readers++] = (struct plan_reader){(int)op, i};
        }
}

int64_t plan_cost(const struct plan_problem *p, const size_t *choices)
{
    int64_t total = 0;
    for (size_t op = 0; op < p->n_ops; op++)
        total += plan_chosen(p, choices, (int)op)->cost;
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct plan_tensor *t = &p->tensors[i];
        int root = plan_out_label(plan_chosen(p, choices, t->producer), t->port);
        int64_t cost = plan_tree(p, (int)i, root, plan_wanted(p, choices, t), NULL, NULL);
        if (cost >= PLAN_INFINITE)
            return PLAN_INFINITE;
        total += cost;
    }
    return total;
}

int plan_copy(struct plan **out, const struct plan_problem *p, const struct plan *plan,
              strata_error *err)
{
    struct plan *copy = zalloc(1, sizeof *copy, "a plan", err);
    if (!copy)
        return STRATA_ENOMEM;
    *copy = *plan;
    copy->choices = zalloc(p->n_ops, sizeof *plan->choices, "a plan", err);
    copy->steps = zalloc(plan->n_steps, sizeof *plan->steps, "a plan", err);
    if (!copy->choices || !copy->steps) {
        plan_free(copy);
        return STRATA_ENOMEM;
    }
    memcpy(copy->choices, plan->choices, p->n_ops * sizeof *plan->choices);
    if (plan->n_steps)
        memcpy(copy->steps, plan->steps, plan->n_steps * sizeof *plan->steps);
    *out = copy;
    return STRATA_OK;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    free(plan->choices);
    free(plan->steps);
    free(plan);
}

double plan_gap(const struct plan *plan)
{
    return (double)(plan->objective - plan->bound) /
           (double)(plan->bound > 0 ? plan->bound : 1);
}

static uint64_t offered(const struct plan_op *o, int port, bool output)
{
    uint64_t labels = 0;
    for (size_t k = 0; k < o->n_choices; k++)
        labels |= UINT64_C(1) << (output ? plan_out_label(&o->choices[k], port)
                                         : plan_in_label(&o->choices[k], port));
    return labels;
}

/* Whether some label of the one set becomes some label of the other at no cost. */
static bool meets(const struct plan_problem *p, int tensor, uint64_t from, uint64_t to)
{
    if (from & to)
        return true;
    for (int a = 0; a < p->n_labels; a++)
        for (int b = 0; b < p->n_labels; b++)
            if ((from >> a & 1) && (to >> b & 1) &&
                plan_tree(p, tensor, a, UINT64_C(1) << b, NULL, NULL) == 0)
                return true;
    return false;
}

uint64_t plan_step_labels(const struct plan *plan, const struct plan_step *step)
{
    const struct plan_step *end = plan->steps + plan->n_steps;
    uint64_t below = UINT64_C(1) << step->to;
    /* sources come first, so that what is made of it follows */
    for (const struct plan_step *s = step + 1; s < end && s->tensor == step->tensor; s++)
        if (below >> s->from & 1)
            below |= UINT64_C(1) << s->to;
    return below;
}

enum plan_reason plan_step_reason(const struct plan_problem *p, const struct plan *plan,
                                  const struct plan_step *step)
{
    const struct plan_tensor *t = &p->tensors[step->tensor];
    const struct plan_op *producer = &p->ops[t->producer];
    uint64_t below = plan_step_labels(plan, step);
    bool hard = false, fixed = producer->n_in == 0 && producer->n_choices == 1;
    if (p->labels[step->from].format == p->labels[step->to].format &&
        p->labels[step->from].stage == p->labels[step->to].stage)
        return PLAN_PADDING;
    for (size_t i = 0; i < t->n_readers; i++) {
        const struct plan_op *reader = &p->ops[t->readers[i].op];
        const struct plan_choice *c = plan_chosen(p, plan->choices, t->readers[i].op);
        if (!(below >> plan_in_label(c, t->readers[i].port) & 1))
            continue;
        fixed |= reader->n_out == 0;
        hard |= !meets(p, step->tensor, offered(producer, t->port, true),
                       offered(reader, t->readers[i].port, false));
    }
    return fixed ? PLAN_FIXED_IO : hard ? PLAN_HARD : PLAN_ECONOMIC;
}
