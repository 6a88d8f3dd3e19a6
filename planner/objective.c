/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans chosen for something else than time, and what that costs. The solver counts
 * reformats itself. Memory is not a sum over a plan's parts, so plans are scheduled, each
 * to an execution for trial, and the one of the smallest arena is kept: of the fastest,
 * and of others within the slack that were found by giving bytes a price.
 */
#include "planner/planner.h"

#include <stdlib.h>

const char *const planner_objective_names[] = {
    [OBJECTIVE_TIME] = "time",
    [OBJECTIVE_REFORMATS] = "reformats",
    [OBJECTIVE_MEMORY] = "memory",
};

/* Bytes of the arena that a plan needs. */
static int arena_of(const struct planner *planner, const struct plan *plan,
                    int64_t *bytes, strata_error *err)
{
    struct execution *trial = NULL;
    int status = execution_make(&trial, planner, plan, err);
    *bytes = trial ? trial->arena_bytes : 0;
    execution_free(trial);
    return status;
}

/* ---- plans that weigh bytes -------------------------------------------------------- */

/* Plans differ by little from the fastest to the next, so the first few say little about
 * memory. More come from problems in which bytes cost time too: as much in all as a part
 * of the least time, doubled from one to the next. */
enum { WEIGHTS = 16, FIRST_PART = 64, GRAIN = 256 /* bytes that a weight is for */ };

/* A problem whose costs are its own. */
struct weighted {
    struct plan_problem p;
    int64_t *matrices; /* of every tensor */
};

static int64_t grains(const struct planner *planner, int tensor, int label)
{
    const struct plan_label *l = &planner->model->problem.labels[label];
    strata_desc d;
    if (l->stage == PLAN_NONE ||
        planner_desc(&d, planner->network, planner->model->tensor_of[tensor], l->format,
                     NULL) != STRATA_OK)
        return 0;
    return (strata_desc_bytes(&d) + GRAIN - 1) / GRAIN;
}

/* Of what a choice writes, and its workspace. */
static int64_t choice_grains(const struct planner *planner, const struct plan_op *o,
                             const struct plan_choice *c)
{
    int64_t n = 0;
    if (c->impl < 0)
        return 0;
    for (int i = 0; i < o->n_out; i++)
        n += grains(planner, o->out[i], plan_out_label(c, i));
    return n + (int64_t)(planner->model->candidates[c->impl].workspace / GRAIN);
}

static void weighted_free(struct weighted *w)
{
    for (size_t op = 0; w->p.ops && op < w->p.n_ops; op++)
        free(w->p.ops[op].choices);
    free(w->p.ops);
    free(w->p.tensors);
    free(w->matrices);
}

static int weigh_choices(struct weighted *w, const struct planner *planner,
                         int64_t weight, strata_error *err)
{
    const struct plan_problem *p = &planner->model->problem;
    for (size_t op = 0; op < p->n_ops; op++) {
        const struct plan_op *o = &p->ops[op];
        struct plan_choice *c = zalloc(o->n_choices, sizeof *c, "a plan", err);
        w->p.ops[op] = *o;
        w->p.ops[op].choices = c;
        if (!c)
            return STRATA_ENOMEM;
        for (size_t k = 0; k < o->n_choices; k++) {
            c[k] = o->choices[k];
            if (c[k].cost < PLAN_INFINITE)
                c[k].cost += weight * choice_grains(planner, o, &c[k]);
        }
    }
    return STRATA_OK;
}

static void weigh_conversions(struct weighted *w, const struct planner *planner,
                              int64_t weight)
{
    const struct plan_problem *p = &planner->model->problem;
    int n = p->n_labels;
    for (size_t t = 0; t < p->n_tensors; t++) {
        int64_t *matrix = w->matrices + t * (size_t)(n * n);
        w->p.tensors[t] = p->tensors[t];
        w->p.tensors[t].conversion = matrix;
        for (int to = 0; to < n; to++) {
            int64_t added = weight * grains(planner, (int)t, to);
            for (int from = 0; from < n; from++) {
                int64_t cost = p->tensors[t].conversion[from * n + to];
                bool paid = cost > 0 && cost < PLAN_INFINITE;
                matrix[from * n + to] = cost + (paid ? added : 0);
            }
        }
    }
}

static int weighted_make(struct weighted *w, const struct planner *planner,
                         int64_t weight, strata_error *err)
{
    const struct plan_problem *p = &planner->model->problem;
    size_t cells = (size_t)p->n_labels * (size_t)p->n_labels;
    *w = (struct weighted){.p = *p};
    w->p.ops = zalloc(p->n_ops, sizeof *p->ops, "a plan", err);
    w->p.tensors = zalloc(p->n_tensors, sizeof *p->tensors, "a plan", err);
    w->matrices = zalloc(p->n_tensors * cells, sizeof *w->matrices, "a plan", err);
    if (!w->p.ops || !w->p.tensors || !w->matrices)
        return STRATA_ENOMEM;
    weigh_conversions(w, planner, weight);
    return weigh_choices(w, planner, weight, err);
}

/* The plan of the choices that the weight asks for. */
static int solve_weighted(struct plan **out, const struct planner *planner,
                          int64_t weight, int64_t bound, strata_error *err)
{
    struct weighted w;
    struct plan *plan = NULL;
    int status = weighted_make(&w, planner, weight, err);
    if (status == STRATA_OK)
        status = plan_solve(&plan, &w.p, &planner->plan_options, err);
    if (status == STRATA_OK)
        status = plan_of_choices(out, &planner->model->problem, &planner->plan_options,
                                 plan->choices, bound, err);
    plan_free(plan);
    weighted_free(&w);
    return status;
}

static int64_t plan_grains(const struct planner *planner, const struct plan *plan)
{
    const struct plan_problem *p = &planner->model->problem;
    int64_t n = 1;
    for (size_t op = 0; op < p->n_ops; op++)
        n += choice_grains(planner, &p->ops[op], plan_chosen(p, plan->choices, (int)op));
    return n;
}

/* ---- the smallest arena ------------------------------------------------------------ */

struct weighing {
    struct planner *planner;
    struct plan *best; /* so far */
    int64_t least;     /* bytes of its arena */
};

/* Takes the plan. */
static int weigh(struct weighing *w, struct plan *plan, strata_error *err)
{
    int64_t bytes;
    int status = arena_of(w->planner, plan, &bytes, err);
    bool better =
        status == STRATA_OK && (!w->best || bytes < w->least ||
                                (bytes == w->least && plan->cost < w->best->cost));
    w->planner->trade.weighed++;
    plan_free(better ? w->best : plan);
    if (better) {
        w->best = plan;
        w->least = bytes;
    }
    return status;
}

static int weigh_fastest(struct weighing *w, strata_error *err)
{
    const struct build_options *b = &w->planner->network->build;
    struct planner_trade *t = &w->planner->trade;
    size_t capacity = (size_t)b->memory_plans, n = 0;
    struct plan **plans = zalloc(capacity, sizeof(struct plan *), "plans", err);
    if (!plans)
        return STRATA_ENOMEM;
    int status =
        plan_solve_best(plans, capacity, &n, b->memory_slack, &w->planner->model->problem,
                        &w->planner->plan_options, err);
    if (status == STRATA_OK) {
        t->cost = plans[0]->cost;
        t->reformats = plans[0]->n_reformats;
        t->cut = n == capacity;
    }
    for (size_t i = 0; i < n; i++) {
        if (status == STRATA_OK)
            status = weigh(w, plans[i], err);
        else
            plan_free(plans[i]);
        if (i == 0)
            t->arena_bytes = w->least;
    }
    free(plans);
    return status;
}

static int weigh_bytes(struct weighing *w, strata_error *err)
{
    const struct planner_trade *t = &w->planner->trade;
    double limit = (double)t->cost * (1 + w->planner->network->build.memory_slack / 100);
    int64_t weight = t->cost / FIRST_PART / plan_grains(w->planner, w->best) + 1;
    int status = STRATA_OK;
    for (int i = 0; i < WEIGHTS && status == STRATA_OK; i++, weight *= 2) {
        struct plan *plan = NULL;
        status = solve_weighted(&plan, w->planner, weight, t->cost, err);
        if (status == STRATA_OK && (double)plan->cost <= limit)
            status = weigh(w, plan, err);
        else
            plan_free(plan);
    }
    return status;
}

static int choose_memory(struct planner *planner, strata_error *err)
{
    struct weighing w = {.planner = planner};
    int status = weigh_fastest(&w, err);
    if (status == STRATA_OK)
        status = weigh_bytes(&w, err);
    if (status == STRATA_OK) {
        plan_free(planner->plan);
        planner->plan = w.best;
        w.best = NULL;
    }
    plan_free(w.best);
    return status;
}

/* ---- the fewest reformats ---------------------------------------------------------- */

/* The plan is made already; what would be the fastest? Costs that were not needed for it
 * count with their bounds. */
static int compare_time(struct planner *planner, strata_error *err)
{
    struct plan_options fastest = planner->plan_options;
    struct plan *plan = NULL;
    fastest.objective = PLAN_LEAST_TIME;
    int status = plan_solve(&plan, &planner->model->problem, &fastest, err);
    if (status != STRATA_OK)
        return status;
    planner->trade.cost = plan->cost;
    planner->trade.reformats = plan->n_reformats;
    planner->trade.at_least = planner->costs.kind != COSTS_ANALYTIC;
    status = arena_of(planner, plan, &planner->trade.arena_bytes, err);
    plan_free(plan);
    return status;
}

int planner_trade_time(struct planner *planner, strata_error *err)
{
    switch (planner->network->build.objective) {
    case OBJECTIVE_REFORMATS:
        return compare_time(planner, err);
    case OBJECTIVE_MEMORY:
        return choose_memory(planner, err);
    default:
        return STRATA_OK;
    }
}
