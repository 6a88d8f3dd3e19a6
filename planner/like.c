/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan for another size of a network that was planned: every layer keeps its impl, its
 * formats and what is fused where the impl takes the shape, so that weights can be shared
 * and nothing need be measured. What is left to choose, the solver chooses by the costs
 * of that plan, scaled as the analytic model scales them.
 */
#include "planner/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/team.h"
#include "planner/view.h"

/* What the analytic model says of a choice that runs; 0: nothing. */
static int64_t guess(const struct planner *p, const struct planner_candidate *c)
{
    const struct planner_node *n = planner_run_node(p, c);
    struct cost_query q = {0};
    int64_t cost = 0;
    if (cost_query_run(&q, p, c, NULL) == STRATA_OK) {
        struct node_view v = {.in = q.in, .out = q.out, .weight = q.weights};
        planner_view(&v, p, n, c->fused, c->row, NULL);
        cost = cost_of_run(&v.node, &c->impl->impl, &c->impl->rows[c->row],
                           &n->layer->type->layer, &p->device.properties);
    }
    cost_query_free(&q);
    return cost;
}

/* Of each node: its cost in the plan, as a multiple of the analytic one. */
static int make_scale(struct planner *planner, const struct planner *like,
                      strata_error *err)
{
    const struct plan_problem *p = &like->model->problem;
    planner->scale = zalloc(like->n_nodes, sizeof *planner->scale, "a planner", err);
    if (!planner->scale)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < like->n_nodes; i++)
        planner->scale[i] = 1;
    for (size_t op = 0; op < p->n_ops; op++) {
        const struct plan_choice *choice = plan_chosen(p, like->plan->choices, (int)op);
        const struct planner_candidate *c =
            choice->impl < 0 ? NULL : &like->model->candidates[choice->impl];
        const int64_t analytic = c && planner_runs(c) ? guess(like, c) : 0;
        if (analytic > 0 && choice->cost > 0)
            planner->scale[c->node] = (double)choice->cost / (double)analytic;
    }
    return STRATA_OK;
}

/* The first candidate's reason that a node has not what was decided. */
static const char *reason_of(const struct planner *planner, size_t node)
{
    const struct planner_model *m = planner->model;
    for (size_t i = m->first[node]; i < m->first[node + 1]; i++)
        if (m->candidates[i].reason)
            return m->candidates[i].reason;
    return "it cannot be as it was";
}

static void tell(const struct planner *planner)
{
    for (size_t i = 0; planner->guide && i < planner->n_nodes; i++) {
        const struct planner_candidate *c = planner_chosen(planner, planner->plan, i);
        const struct record_decision *d = &planner->guide->decisions[i];
        const char *impl = c && c->impl ? c->impl->impl.name : NULL;
        if (!c || (c->kind == d->kind && (!impl || strcmp(impl, d->impl) == 0)))
            continue;
        log_line(STRATA_LOG_INFO,
                 "%s: layer '%s' runs %s at this size, and %s at the planned one: %s",
                 planner->network->path, planner->nodes[i].layer->name,
                 impl ? impl : "nothing", d->impl ? d->impl : "nothing",
                 reason_of(planner, i));
    }
}

static int plan(struct planner *planner, const struct planner *like, strata_error *err)
{
    const struct cost_options costs = {.kind = COSTS_FILE, .miss = MISS_ANALYTIC};
    int status = planner_make_nodes(planner, err);
    if (status == STRATA_OK)
        status = make_scale(planner, like, err);
    if (status == STRATA_OK)
        status = planner_make_model(planner, err);
    if (status == STRATA_OK) /* a table that nothing is added to */
        status =
            cost_plan_from(planner, (struct cost_table *)&like->known, NULL, &costs, err);
    return status == STRATA_OK ? planner_note_fusions(planner, err) : status;
}

static int try_plan(struct planner **out, const strata_network *network,
                    const struct planner_device *device, const struct planner *like,
                    bool guided, strata_error *err)
{
    struct planner *planner;
    int status = planner_open(&planner, network, device, err);
    *out = NULL;
    if (status != STRATA_OK)
        return status;
    planner->math = like->math;
    planner->threads = like->threads;
    planner->plan_options = like->plan_options;
    if (guided)
        status = record_decisions(&planner->guide, like, err);
    const int before = threads_set(planner->threads);
    if (status == STRATA_OK)
        status = plan(planner, like, err);
    threads_set(before);
    if (status == STRATA_OK)
        *out = planner;
    else
        planner_free(planner);
    return status;
}

int planner_make_like(struct planner **out, const strata_network *network,
                      const struct planner_device *device, const struct planner *like,
                      strata_error *err)
{
    strata_error why = {0};
    int status = try_plan(out, network, device, like, true, &why);
    if (status == STRATA_EPLAN) {
        log_line(STRATA_LOG_INFO,
                 "%s: the plan of another size cannot be kept, this one is new: %s",
                 network->path, why.message);
        return try_plan(out, network, device, like, false, err);
    }
    if (status != STRATA_OK)
        return error_set(err, status, "%s", why.message);
    tell(*out);
    return STRATA_OK;
}
