/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan from a record, for a model whose candidates are its decisions. Nothing is
 * searched; it is checked that every operation has its one choice, that conversions exist
 * and come after their sources, and that every reader gets what it wants.
 */
#include "planner/record.h"

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
static int restore_choice(struct planner *planner, size_t op, strata_error *err)
{
    struct plan_op *o = &planner->model->problem.ops[op];
    if (o->n_choices != 1)
        return error_set(err, STRATA_EPARSE, "'%s' has %zu choices; needed one", o->name,
                         o->n_choices);
    struct plan_choice *c = &o->choices[0];
    if (c->impl < 0)
        return STRATA_OK;
    const struct planner_candidate *candidate = &planner->model->candidates[c->impl];
    const struct record_decision *d = &planner->record->decisions[candidate->node];
    if (candidate->homed != d->homed)
        return error_set(err, STRATA_EPARSE,
                         "layer '%s': the decision is that its output lies %s, which the "
                         "layer before it has otherwise",
                         o->name, d->homed ? "inside another" : "by itself");
    if (candidate->kind != d->kind || candidate->fused != d->fused)
        return error_set(err, STRATA_EPARSE,
                         "layer '%s': the decision is that %zu layers are fused, the "
                         "layer before it has %zu",
                         o->name, d->fused, candidate->fused);
    c->cost = d->cost;
    return add_cost(&planner->plan->cost, d->cost, err);
}

static int refuse_step(const struct planner *planner, const struct record_conversion *c,
                       const char *why, strata_error *err)
{
    return error_set(err, STRATA_EPARSE, "tensor '%s': the conversion from %s to %s %s",
                     planner->network->tensors[c->tensor].name,
                     format_mask_name(UINT64_C(1) << c->from.format, 4),
                     format_mask_name(UINT64_C(1) << c->to.format, 4), why);
}

/* Label that a tensor's producer writes. */
static int root_of(const struct plan_problem *p, const struct plan_tensor *t)
{
    return plan_out_label(&p->ops[t->producer].choices[0], t->port);
}

/* have: labels that the tensor exists in by now. */
static int restore_step(struct planner *planner, const struct record_conversion *c,
                        uint64_t *have, strata_error *err)
{
    const struct plan_problem *p = &planner->model->problem;
    int index = planner->model->index_of[c->tensor];
    int from = find_label(p, &c->from), to = find_label(p, &c->to);
    if (index < 0 || from < 0 || to < 0)
        return refuse_step(planner, c, "is of formats that nothing has", err);
    const struct plan_tensor *t = &p->tensors[index];
    int64_t known = t->conversion[from * p->n_labels + to];
    if (known >= PLAN_INFINITE)
        return refuse_step(planner, c, "does not exist", err);
    /* To its place in a concatenation a tensor was copied where its layer could have been
     * an alias, which the record does not tell. */
    if (known > 0 ? c->cost == 0 : c->cost > 0 && c->to.stage != PLAN_HOME)
        return refuse_step(planner, c, known ? "is not free" : "is free", err);
    if (!plan_keeps_precision(p, root_of(p, t), from, to))
        return refuse_step(planner, c, "loses precision", err);
    struct plan *plan = planner->plan;
    bool apart = plan->n_steps && plan->steps[plan->n_steps - 1].tensor != index &&
                 (have[index] & (have[index] - 1));
    if (!(have[index] >> from & 1) || have[index] >> to & 1 || apart)
        return refuse_step(planner, c, "is in the wrong place", err);
    have[index] |= UINT64_C(1) << to;
    plan->steps[plan->n_steps++] =
        (struct plan_step){.tensor = index, .from = from, .to = to, .cost = c->cost};
    plan->n_reformats += c->cost > 0;
    int status = add_cost(&plan->conversion_cost, c->cost, err);
    return status == STRATA_OK ? add_cost(&plan->cost, c->cost, err) : status;
}

static int restore_steps(struct planner *planner, strata_error *err)
{
    const struct plan_problem *p = &planner->model->problem;
    uint64_t unused = 0, *have = zalloc(p->n_tensors, sizeof *have, "the plan", err);
    int status = have ? STRATA_OK : STRATA_ENOMEM;
    for (size_t t = 0; have && t < p->n_tensors; t++)
        have[t] = UINT64_C(1) << root_of(p, &p->tensors[t]);
    for (size_t i = 0; i < planner->record->n_conversions && status == STRATA_OK; i++)
        status = restore_step(planner, &planner->record->conversions[i], have, err);
    for (int l = 0; l < p->n_labels; l++) /* any label will do for this one */
        unused |= p->labels[l].stage == PLAN_NONE ? UINT64_C(1) << l : 0;
    for (size_t t = 0; t < p->n_tensors && status == STRATA_OK; t++)
        if (plan_wanted(p, planner->plan->choices, &p->tensors[t]) & ~have[t] & ~unused)
            status = error_set(err, STRATA_EPARSE,
                               "tensor '%s': no conversion makes what its readers want",
                               p->tensors[t].name);
    free(have);
    return status;
}

int planner_restore(struct planner *planner, strata_error *err)
{
    const struct record *r = planner->record;
    const size_t n_ops = planner->model->problem.n_ops;
    int status = STRATA_OK;
    planner->plan = zalloc(1, sizeof *planner->plan, "a plan", err);
    if (!planner->plan)
        return STRATA_ENOMEM;
    planner->plan->choices = zalloc(n_ops, sizeof *planner->plan->choices, "a plan", err);
    planner->plan->steps =
        zalloc(r->n_conversions, sizeof *planner->plan->steps, "a plan", err);
    if (!planner->plan->choices || !planner->plan->steps)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < n_ops && status == STRATA_OK; op++)
        status = restore_choice(planner, op, err);
    if (status == STRATA_OK)
        status = restore_steps(planner, err);
    if (status == STRATA_OK)
        status = record_read_left(planner, json_object_get(r->json, "left"), err);
    if (status != STRATA_OK)
        error_prefix(err, "section '" RECORD_SECTION "'");
    planner->plan->objective = r->objective;
    planner->plan->bound = r->bound;
    planner->plan->proved = r->proved;
    planner->plan->nodes = r->nodes;
    planner->costs = r->costs;
    planner->trade = r->trade;
    return status;
}
