/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan from a file, for a model whose candidates are the file's decisions. Nothing is
 * searched; it is checked that every operation has its one choice, that conversions exist
 * and come after their sources, and that every reader gets what it wants.
 */
#include "engine/file/stored.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"

static int find_label(const struct plan_problem *p, const struct plan_label *like)
{
    for (int l = 0; l < p->n_labels; l++)
        if (p->labels[l].format == like->format && p->labels[l].pad == like->pad &&
            p->labels[l].stage == like->stage)
            return l;
    return -1;
}

static int add_cost(int64_t *sum, int64_t cost, strata_error *err)
{
    return checked_add(*sum, cost, sum) && *sum < PLAN_INFINITE
               ? STRATA_OK
               : error_set(err, STRATA_EPARSE,
                           "the costs add up to more than a plan has");
}

/* The one choice of an operation is the decision about its layer. */
static int restore_choice(strata_engine *e, size_t op, strata_error *err)
{
    struct plan_op *o = &e->model->problem.ops[op];
    if (o->n_choices != 1)
        return error_set(err, STRATA_EPARSE, "'%s' has %zu choices; needed one", o->name,
                         o->n_choices);
    struct plan_choice *c = &o->choices[0];
    if (c->impl < 0)
        return STRATA_OK;
    const struct engine_candidate *candidate = &e->model->candidates[c->impl];
    const struct engine_decision *d = &e->stored->decisions[candidate->node];
    if (candidate->kind != d->kind || candidate->fused != d->fused)
        return error_set(err, STRATA_EPARSE,
                         "layer '%s': the decision is that %zu layers are fused, the "
                         "layer before it has %zu",
                         o->name, d->fused, candidate->fused);
    c->cost = d->cost;
    return add_cost(&e->plan->cost, d->cost, err);
}

static int refuse_step(const strata_engine *e, const struct engine_conversion *c,
                       const char *why, strata_error *err)
{
    return error_set(err, STRATA_EPARSE, "tensor '%s': the conversion from %s to %s %s",
                     e->network->tensors[c->tensor].name,
                     format_mask_name(UINT64_C(1) << c->from.format, 4),
                     format_mask_name(UINT64_C(1) << c->to.format, 4), why);
}

/* Label that a tensor's producer writes. */
static int root_of(const struct plan_problem *p, const struct plan_tensor *t)
{
    return plan_out_label(&p->ops[t->producer].choices[0], t->port);
}

/* have: labels that the tensor exists in by now. */
static int restore_step(strata_engine *e, const struct engine_conversion *c,
                        uint64_t *have, strata_error *err)
{
    const struct plan_problem *p = &e->model->problem;
    int index = e->model->index_of[c->tensor];
    int from = find_label(p, &c->from), to = find_label(p, &c->to);
    if (index < 0 || from < 0 || to < 0)
        return refuse_step(e, c, "is of formats that nothing has", err);
    const struct plan_tensor *t = &p->tensors[index];
    int64_t known = t->conversion[from * p->n_labels + to];
    if (known >= PLAN_INFINITE)
        return refuse_step(e, c, "does not exist", err);
    if ((known == 0) != (c->cost == 0))
        return refuse_step(e, c, known ? "is not free" : "is free", err);
    if (!plan_keeps_precision(p, root_of(p, t), from, to))
        return refuse_step(e, c, "loses precision", err);
    if (!(have[index] >> from & 1) || have[index] >> to & 1)
        return refuse_step(e, c, "is in the wrong place", err);
    have[index] |= UINT64_C(1) << to;
    e->plan->steps[e->plan->n_steps++] =
        (struct plan_step){.tensor = index, .from = from, .to = to, .cost = c->cost};
    e->plan->n_reformats += c->cost > 0;
    int status = add_cost(&e->plan->conversion_cost, c->cost, err);
    return status == STRATA_OK ? add_cost(&e->plan->cost, c->cost, err) : status;
}

static int restore_steps(strata_engine *e, strata_error *err)
{
    const struct plan_problem *p = &e->model->problem;
    uint64_t unused = 0, *have = zalloc(p->n_tensors, sizeof *have, "the plan", err);
    int status = have ? STRATA_OK : STRATA_ENOMEM;
    for (size_t t = 0; have && t < p->n_tensors; t++)
        have[t] = UINT64_C(1) << root_of(p, &p->tensors[t]);
    for (size_t i = 0; i < e->stored->n_conversions && status == STRATA_OK; i++)
        status = restore_step(e, &e->stored->conversions[i], have, err);
    for (int l = 0; l < p->n_labels; l++) /* any label will do for this one */
        unused |= p->labels[l].stage == PLAN_NONE ? UINT64_C(1) << l : 0;
    for (size_t t = 0; t < p->n_tensors && status == STRATA_OK; t++)
        if (plan_wanted(p, e->plan->choices, &p->tensors[t]) & ~have[t] & ~unused)
            status = error_set(err, STRATA_EPARSE,
                               "tensor '%s': no conversion makes what its readers want",
                               p->tensors[t].name);
    free(have);
    return status;
}

int engine_restore_plan(strata_engine *e, strata_error *err)
{
    const struct engine_stored *s = e->stored;
    const size_t n_ops = e->model->problem.n_ops;
    int status = STRATA_OK;
    e->plan = zalloc(1, sizeof *e->plan, "a plan", err);
    if (!e->plan)
        return STRATA_ENOMEM;
    e->plan->choices = zalloc(n_ops, sizeof *e->plan->choices, "a plan", err);
    e->plan->steps = zalloc(s->n_conversions, sizeof *e->plan->steps, "a plan", err);
    if (!e->plan->choices || !e->plan->steps)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < n_ops && status == STRATA_OK; op++)
        status = restore_choice(e, op, err);
    if (status == STRATA_OK)
        status = restore_steps(e, err);
    if (status != STRATA_OK)
        error_prefix(err, "section '" SECTION_PLAN "'");
    e->plan->objective = s->objective;
    e->plan->bound = s->bound;
    e->plan->proved = s->proved;
    e->plan->nodes = s->nodes;
    e->costs = s->costs;
    e->trade = s->trade;
    return status;
}
