/* SPDX-License-Identifier: Apache-2.0
 *
 * One run of the solver: a model's graph is searched; then the conversion trees of what
 * was chosen become the plan's steps.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- the search -------------------------------------------------------------------- */

struct start_context {
    const struct plan_model *m;
    size_t *choices;
    int64_t limit; /* scaled */
    bool found;
    strata_error *err;
    int status;
};

/* Called when the root's bound yields no assignment, or when a limit ends the search. */
static int64_t start(void *context)
{
    struct start_context *c = context;
    if (!plan_start(c->m, c->choices, c->err, &c->status))
        return c->limit;
    int64_t cost = plan_model_scaled(c->m, c->choices);
    c->found = cost < c->limit;
    return c->found ? cost : c->limit;
}

static void take_choices(struct plan_run *r, const struct plan_model *m,
                         const struct pbqp_search *s, const struct plan_graph *g)
{
    for (size_t op = 0; op < m->p.n_ops; op++)
        r->choices[op] = (size_t)s->labels[g->node_of_op[op]];
}

/* From scaled costs to objectives; a bound is rounded towards the safe side. */
static int finish_run(struct plan_run *r, const struct plan_model *m,
                      const struct pbqp_search *s, const struct plan_graph *g,
                      struct start_context *c)
{
    bool relaxed = plan_graph_is_relaxed(m);
    if (!c->found && (s->stopped || relaxed)) {
        c->limit = s->found && !relaxed ? s->best : c->limit;
        start(c);
    } else if (s->found) {
        c->found = false;
    }
    if (s->found && !relaxed && !c->found)
        take_choices(r, m, s, g);
    r->found = (s->found && !relaxed) || c->found;
    r->nodes = s->nodes;
    r->bound = s->bound >= PBQP_DEAD ? PLAN_INFINITE : s->bound >> m->shift;
    r->objective = r->found ? plan_model_cost(m, r->choices) : PLAN_INFINITE;
    r->bound = r->bound < r->objective ? r->bound : r->objective;
    r->proved = r->found ? r->bound == r->objective : !s->stopped && !relaxed;
    return c->status;
}

int plan_run_search(struct plan_run *r, const struct plan_model *m,
                    const struct plan_options *o, int64_t limit, strata_error *err)
{
    int64_t scaled = limit >= PLAN_INFINITE ? PBQP_DEAD : limit << m->shift;
    struct start_context c = {m, NULL, scaled, false, err, STRATA_OK};
    struct pbqp_search s = {.err = err, .best = scaled, .start = start, .context = &c};
    struct plan_graph g = {0};
    int status = STRATA_ENOMEM;
    *r = (struct plan_run){.objective = PLAN_INFINITE};
    s.max_nodes = o ? o->max_nodes : 0;
    s.deadline = o && o->max_seconds > 0 ? plan_seconds() + o->max_seconds : 0;
    r->choices = c.choices = zalloc(m->p.n_ops, sizeof *r->choices, "a plan", err);
    if (!r->choices)
        goto done;
    if ((status = plan_graph_build(&g, m, &s)) != STRATA_OK)
        goto done;
    if (plan_graph_is_relaxed(m))
        s.start = NULL; /* its cost is of another problem */
    if ((status = pbqp_search(&s, &g.pb)) == STRATA_OK)
        status = finish_run(r, m, &s, &g, &c);
done:
    plan_graph_close(&g);
    pbqp_search_close(&s);
    return status;
}

int plan_is_feasible(bool *feasible, struct plan_model *m, strata_error *err)
{
    struct pbqp_search s = {.err = err, .best = PBQP_DEAD};
    struct plan_graph g = {0};
    m->feasibility = true;
    int status = plan_graph_build(&g, m, &s);
    if (status == STRATA_OK)
        status = pbqp_search(&s, &g.pb);
    *feasible = s.found;
    m->feasibility = false;
    plan_graph_close(&g);
    pbqp_search_close(&s);
    return status;
}

/* ---- the plan ---------------------------------------------------------------------- */

static int make_steps(struct plan *plan, const struct plan_model *m, strata_error *err)
{
    size_t capacity = 0, labels = (size_t)m->p.n_labels;
    for (size_t i = 0; i < m->p.n_tensors; i++) {
        const struct plan_tensor *t = &m->p.tensors[i];
        const int64_t *cost = m->original->tensors[i].conversion;
        struct plan_step tree[PLAN_MAX_LABELS];
        size_t n = 0;
        int root =
            plan_out_label(plan_chosen(&m->p, plan->choices, t->producer), t->port);
        plan_tree(&m->p, (int)i, root, plan_wanted(&m->p, plan->choices, t), tree, &n);
        for (size_t k = 0; k < n; k++) {
            if (m->p.labels[tree[k].to].stage == PLAN_NONE)
                continue; /* nobody reads it */
            int status =
                grow(&plan->steps, &capacity, plan->n_steps, sizeof *plan->steps, err);
            if (status != STRATA_OK)
                return status;
            tree[k].cost = cost[(size_t)tree[k].from * labels + (size_t)tree[k].to];
            plan->steps[plan->n_steps++] = tree[k];
            plan->conversion_cost += tree[k].cost;
            plan->n_reformats += tree[k].cost > 0;
        }
    }
    return STRATA_OK;
}

int plan_from_run(struct plan **out, const struct plan_model *m, const struct plan_run *r,
                  strata_error *err)
{
    struct plan *plan = zalloc(1, sizeof *plan, "a plan", err);
    int status = STRATA_ENOMEM;
    if (!plan)
        return status;
    plan->choices = zalloc(m->p.n_ops, sizeof *plan->choices, "a plan", err);
    if (!plan->choices)
        goto done;
    memcpy(plan->choices, r->choices, m->p.n_ops * sizeof *plan->choices);
    if ((status = make_steps(plan, m, err)) != STRATA_OK)
        goto done;
    plan->cost = plan->conversion_cost;
    for (size_t op = 0; op < m->p.n_ops; op++)
        plan->cost += plan_chosen(&m->p, plan->choices, (int)op)->cost;
    plan->objective = r->objective;
    plan->bound = r->bound;
    plan->proved = r->proved;
    plan->nodes = r->nodes;
    *out = plan;
    plan = NULL;
done:
    plan_free(plan);
    return status;
}
