/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans without ways to run layers.
 */
#include "planner/cost/near.h"

#include <stdlib.h>
#include <string.h>

#include "planner/cost/slots.h"
#include "planner/planner.h"

struct near {
    struct costing costing;
    struct cost_table table;
    size_t n_runs; /* slots of runs: they come first */
};

int near_open(struct near **out, struct planner *planner, struct cost_source *source,
              strata_error *err)
{
    static const struct cost_options options = {.kind = COSTS_MEASURE};
    const char *build = planner->device.properties.build;
    struct near *near = *out = zalloc(1, sizeof *near, "near plans", err);
    if (!near)
        return STRATA_ENOMEM;
    cost_table_init(&near->table, build);
    near->costing = (struct costing){
        .planner = planner, .table = &near->table, .source = source, .options = &options};
    source->deadline = 0;
    int status = cost_table_merge(&near->table, &planner->known, err);
    cost_table_init(&near->costing.confirmed, build); /* all that is known already */
    if (status == STRATA_OK)
        status = cost_table_merge(&near->costing.confirmed, &planner->known, err);
    if (status == STRATA_OK)
        status = costing_open(&near->costing, err);
    while (near->n_runs < near->costing.n && !near->costing.slots[near->n_runs].matrix)
        near->n_runs++;
    return status;
}

/* What the planner did not know before. */
static int find_measured(struct cost_table *out, const struct near *near,
                         strata_error *err)
{
    const struct cost_table *known = &near->costing.planner->known;
    int status = STRATA_OK;
    cost_table_init(out, known->device);
    for (size_t i = 0; i < near->table.n && status == STRATA_OK; i++) {
        const struct cost_entry *e = &near->table.entries[i];
        if (!cost_table_find(known, e->key))
            status = cost_table_put(out, e->key, e->cost, err);
    }
    return status;
}

int near_close(struct near *near, strata_error *err)
{
    struct cost_table measured = {.n = 0};
    if (!near)
        return STRATA_OK;
    int status = find_measured(&measured, near, err);
    if (status == STRATA_OK)
        status = costing_keep(&near->costing, err);
    if (status == STRATA_OK && measured.n > 0)
        status = cost_save(near->costing.planner, &measured, err);
    cost_table_free(&measured);
    costing_close(&near->costing);
    cost_table_free(&near->table);
    free(near);
    return status;
}

/* ---- ways ------------------------------------------------------------------------ */

/* The slot of what a plan runs at an operation; NULL: it runs nothing there. Slots of
 * runs are in the order of operations and choices. */
static const struct slot *slot_of(const struct near *near, const struct plan *plan,
                                  size_t op)
{
    size_t low = 0, high = near->n_runs;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const struct slot *s = &near->costing.slots[mid];
        if (s->op < op || (s->op == op && s->choice < plan->choices[op]))
            low = mid + 1;
        else
            high = mid;
    }
    const struct slot *s = &near->costing.slots[low];
    return low < near->n_runs && s->op == op && s->choice == plan->choices[op] ? s : NULL;
}

static int by_time(const void *a, const void *b)
{
    const struct near_use *x = a, *y = b;
    return x->cost != y->cost ? (x->cost < y->cost) - (x->cost > y->cost)
                              : strcmp(x->key, y->key);
}

static void add_use(struct near_use *uses, size_t *n, const struct slot *s)
{
    size_t i = 0;
    while (i < *n && strcmp(uses[i].key, s->query.key) != 0)
        i++;
    if (i == *n)
        uses[(*n)++] = (struct near_use){.key = s->query.key,
                                         .layer = s->query.layer,
                                         .impl = s->query.candidate->impl->impl.name};
    uses[i].uses++;
    uses[i].cost += *s->where;
}

int near_uses(struct near_use **out, size_t *n, const struct near *near,
              const struct plan *plan, strata_error *err)
{
    const size_t n_ops = near->costing.planner->model->problem.n_ops;
    *n = 0;
    *out = zalloc(n_ops, sizeof **out, "what a plan runs", err);
    if (!*out)
        return STRATA_ENOMEM;
    for (size_t op = 0; op < n_ops; op++) {
        const struct slot *s = slot_of(near, plan, op);
        if (s)
            add_use(*out, n, s);
    }
    qsort(*out, *n, sizeof **out, by_time);
    return STRATA_OK;
}

void near_instead(struct near_use *out, const struct near *near, const struct plan *plan,
                  const struct near_left *left)
{
    size_t n = 0;
    int last = -1; /* bans of an operation stand together */
    *out = (struct near_use){.uses = 0};
    for (size_t i = 0; i < left->n; i++) {
        const int op = left->bans[i].op;
        const struct slot *s = op == last ? NULL : slot_of(near, plan, (size_t)op);
        last = op;
        if (s && (n == 0 || strcmp(s->query.key, out->key) == 0))
            add_use(out, &n, s);
    }
}

/* Of what candidate; NULL: it runs nothing that has a cost. */
static const struct slot *slot_for(const struct near *near, size_t candidate)
{
    const struct planner_candidate *c =
        &near->costing.planner->model->candidates[candidate];
    for (size_t i = 0; i < near->n_runs; i++)
        if (near->costing.slots[i].query.candidate == c)
            return &near->costing.slots[i];
    return NULL;
}

int64_t near_surplus(const struct near *near, const struct execution *x, const char *key)
{
    const double scale = x->in_place ? (double)x->cost / (double)x->in_place : 0;
    double surplus = 0;
    for (size_t i = 0; i < x->n_steps && scale > 0; i++) {
        const struct execution_step *step = &x->steps[i];
        const struct slot *s = step->kind == STEP_RUN
                                   ? slot_for(near, x->nodes[step->node].candidate)
                                   : NULL;
        if (s && strcmp(s->query.key, key) == 0)
            surplus += (double)step->in_place * scale - (double)step->cost;
    }
    return (int64_t)surplus;
}

static bool has_ban(const struct near_left *left, int op, int choice)
{
    for (size_t i = 0; i < left->n; i++)
        if (left->bans[i].op == op && left->bans[i].to == choice)
            return true;
    return false;
}

static int add_ban(struct near_left *left, size_t op, size_t choice, strata_error *err)
{
    int status = grow(&left->bans, &left->capacity, left->n, sizeof *left->bans, err);
    if (status == STRATA_OK)
        left->bans[left->n++] =
            (struct plan_ban){PLAN_BAN_CHOICE, -1, (int)op, -1, (int)choice};
    return status;
}

/* All choices of the operation with the slot's key: they run the same. */
static int leave(struct near_left *left, const struct near *near, const struct slot *way,
                 strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < near->n_runs && status == STRATA_OK; i++) {
        const struct slot *s = &near->costing.slots[i];
        if (s->op == way->op && strcmp(s->query.key, way->query.key) == 0 &&
            !has_ban(left, (int)s->op, (int)s->choice))
            status = add_ban(left, s->op, s->choice, err);
    }
    return status;
}

int near_leave(struct near_left *left, const struct near *near, const struct plan *plan,
               const char *key, strata_error *err)
{
    const size_t n_ops = near->costing.planner->model->problem.n_ops;
    int status = STRATA_OK;
    for (size_t op = 0; op < n_ops && status == STRATA_OK; op++) {
        const struct slot *s = slot_of(near, plan, op);
        if (s && strcmp(s->query.key, key) == 0)
            status = leave(left, near, s, err);
    }
    return status;
}

int near_leave_more(struct near_left *left, const struct near *near,
                    const struct plan *plan, strata_error *err)
{
    const size_t n = left->n;
    int status = STRATA_OK;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const struct slot *s = slot_of(near, plan, (size_t)left->bans[i].op);
        if (s)
            status = leave(left, near, s, err);
    }
    return status;
}

int near_add(struct near_left *left, const struct near_left *other, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < other->n && status == STRATA_OK; i++)
        status = add_ban(left, (size_t)other->bans[i].op, (size_t)other->bans[i].to, err);
    return status;
}

void near_free_left(struct near_left *left)
{
    free(left->bans);
    *left = (struct near_left){0};
}

/* ---- plans ----------------------------------------------------------------------- */

/* The planner's bans and those. */
static int join_bans(struct near_left *out, const struct plan_options *options,
                     const struct near_left *left, strata_error *err)
{
    *out = (struct near_left){0};
    for (size_t i = 0; i < options->n_bans; i++) {
        int status = grow(&out->bans, &out->capacity, out->n, sizeof *out->bans, err);
        if (status != STRATA_OK)
            return status;
        out->bans[out->n++] = options->bans[i];
    }
    return near_add(out, left, err);
}

/* Whether some operation has no choice left: the solver would look at length for more
 * reasons. */
static bool is_bare(const struct near *near, const struct near_left *left)
{
    const struct plan_op *ops = near->costing.planner->model->problem.ops;
    for (size_t i = 0; i < left->n; i++) {
        size_t banned = 0;
        for (size_t k = 0; k < left->n; k++)
            banned += left->bans[k].op == left->bans[i].op;
        if (banned >= ops[left->bans[i].op].n_choices)
            return true;
    }
    return false;
}

int near_plan(struct plan **out, struct near *near, const struct near_left *left,
              strata_error *err)
{
    struct planner *planner = near->costing.planner;
    const struct cost_report report = planner->costs;
    const struct plan_options options = planner->plan_options;
    struct plan *plan = planner->plan;
    struct near_left bans;
    *out = NULL;
    if (is_bare(near, left))
        return error_set(err, STRATA_EPLAN, "no way is left to run a layer");
    int status = join_bans(&bans, &options, left, err);
    if (status == STRATA_OK) {
        planner->plan = NULL;
        planner->plan_options.bans = bans.bans;
        planner->plan_options.n_bans = bans.n;
        planner->costs.measured = 0;
        status = costing_solve(&near->costing, err);
        *out = planner->plan;
        planner->plan = plan;
        planner->plan_options = options;
        planner->costs = report;
    }
    if (status != STRATA_OK) {
        plan_free(*out);
        *out = NULL;
    }
    near_free_left(&bans);
    return status;
}

int near_settle(struct near *near, struct plan *plan, const struct near_left *left,
                strata_error *err)
{
    struct planner *planner = near->costing.planner;
    struct near_left bans;
    plan_free(planner->plan);
    planner->plan = plan;
    int status = join_bans(&bans, &planner->plan_options, left, err);
    if (status != STRATA_OK) {
        near_free_left(&bans);
        return status;
    }
    free(planner->bans);
    planner->bans = bans.bans;
    planner->plan_options.bans = bans.bans;
    planner->plan_options.n_bans = bans.n;
    return planner_note_fusions(planner, err);
}
