/* SPDX-License-Identifier: Apache-2.0
 *
 * A plan whose costs are known. What is not known yet counts with a lower bound; the
 * problem is solved, what the plan uses and is unknown is measured, and so on until the
 * plan uses known costs only. It is then the best: every other plan costs at least its
 * bounds. What could not matter was never timed.
 *
 * The least of many noisy times is too low. So the plan's own costs are measured once
 * more, all in one batch, and the plan stands if it is still the best.
 */
#include "planner/cost/slots.h"

#include <stdlib.h>
#include <string.h>

#include "planner/cost/progress.h"
#include "planner/cost/timer.h"
#include "planner/view.h"

/* ---- the problem's numbers ----------------------------------------------------- */

static int add_slot(struct costing *c, struct slot **out, strata_error *err)
{
    int status = grow(&c->slots, &c->capacity, c->n, sizeof *c->slots, err);
    if (status == STRATA_OK) {
        *out = &c->slots[c->n++];
        memset(*out, 0, sizeof **out);
    }
    return status;
}

static int64_t scaled(int64_t cost, double scale)
{
    const double to = (double)cost * scale;
    return to < 1 ? 1 : to < PLAN_INFINITE / 2 ? (int64_t)to : cost;
}

static int add_run(struct costing *c, size_t op, size_t choice, strata_error *err)
{
    struct plan_choice *p = &c->planner->model->problem.ops[op].choices[choice];
    struct node_view v = {0};
    struct slot *s;
    int status = add_slot(c, &s, err);
    if (status != STRATA_OK)
        return status;
    const struct planner_candidate *candidate = &c->planner->model->candidates[p->impl];
    const struct planner_node *n = planner_run_node(c->planner, candidate);
    const struct device_properties *d = &c->planner->device.properties;
    if ((status = cost_query_run(&s->query, c->planner, candidate, err)) != STRATA_OK)
        return status;
    v.in = s->query.in;
    v.out = s->query.out;
    v.weight = s->query.weights;
    planner_view(&v, c->planner, n, candidate->fused, candidate->row, NULL);
    const strata_layer *layer = &n->layer->type->layer;
    s->where = &p->cost;
    s->op = op;
    s->choice = choice;
    s->guess = cost_of_run(&v.node, &candidate->impl->impl,
                           &candidate->impl->rows[candidate->row], layer, d);
    s->bound = cost_bound_of_run(&v.node, layer, d);
    if (c->planner->scale)
        s->guess = scaled(s->guess, c->planner->scale[candidate->node]);
    return STRATA_OK;
}

static int add_conversion(struct costing *c, size_t tensor, int64_t *matrix, int from,
                          int to, strata_error *err)
{
    const struct plan_problem *p = &c->planner->model->problem;
    struct slot *s;
    int status = add_slot(c, &s, err);
    if (status != STRATA_OK)
        return status;
    status =
        cost_query_reformat(&s->query, c->planner, c->planner->model->tensor_of[tensor],
                            p->labels[from].format, p->labels[to].format, err);
    if (status != STRATA_OK)
        return status;
    int64_t a = strata_desc_bytes(&s->query.from), b = strata_desc_bytes(&s->query.to);
    s->matrix = matrix;
    s->where = &matrix[from * p->n_labels + to];
    s->from = from;
    s->to = to;
    s->guess = cost_of_reformat(a, b, &c->planner->device.properties);
    s->bound = cost_bound_of_reformat(a, b, &c->planner->device.properties);
    return STRATA_OK;
}

static int add_conversions(struct costing *c, int64_t *matrix, strata_error *err)
{
    const struct plan_problem *p = &c->planner->model->problem;
    size_t tensor = 0;
    int status = STRATA_OK;
    while (tensor < p->n_tensors && p->tensors[tensor].conversion != matrix)
        tensor++;
    if (tensor == p->n_tensors)
        return STRATA_OK;
    for (int from = 0; from < p->n_labels && status == STRATA_OK; from++)
        for (int to = 0; to < p->n_labels && status == STRATA_OK; to++) {
            int64_t cost = matrix[from * p->n_labels + to];
            if (from != to && cost > 0 && cost < PLAN_INFINITE)
                status = add_conversion(c, tensor, matrix, from, to, err);
        }
    return status;
}

/* Not a network input or output, nor a way that takes no time. */
static bool is_run(const struct planner_model *m, const struct plan_choice *choice)
{
    return choice->impl >= 0 && planner_runs(&m->candidates[choice->impl]);
}

int costing_open(struct costing *c, strata_error *err)
{
    struct plan_problem *p = &c->planner->model->problem;
    int status = STRATA_OK;
    for (size_t op = 0; op < p->n_ops; op++)
        for (size_t k = 0; k < p->ops[op].n_choices && status == STRATA_OK; k++)
            if (is_run(c->planner->model, &p->ops[op].choices[k]))
                status = add_run(c, op, k, err);
    for (size_t i = 0; i < c->planner->model->n_matrices && status == STRATA_OK; i++)
        status = add_conversions(c, c->planner->model->matrices[i], err);
    return status;
}

/* Of a run that was measured. */
struct ratio {
    const struct registry_impl *impl;
    double value; /* measured over modelled */
};

/* All there are, by impl and each one's the least first; NULL: none, or no memory, which
 * does without. */
struct ratios {
    struct ratio *list;
    size_t n;
    double median; /* of all */
};

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct ratio *)a)->value;
    const double y = ((const struct ratio *)b)->value;
    return (x > y) - (x < y);
}

static int by_impl(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct ratio *)a)->impl;
    const uintptr_t y = (uintptr_t)((const struct ratio *)b)->impl;
    return x != y ? (x > y) - (x < y) : by_value(a, b);
}

/* The median of n that ascend; `few` where they are too few to tell. */
static double median_of(const struct ratio *list, size_t n, double few)
{
    enum { FEW = 8 };
    return n < FEW ? few : list[n / 2].value;
}

static void find_ratios(const struct costing *c, struct ratios *out)
{
    struct ratio *list = c->source ? zalloc(c->n, sizeof *list, "costs", NULL) : NULL;
    size_t n = 0;
    for (size_t i = 0; list && i < c->n; i++) {
        const struct slot *s = &c->slots[i];
        const struct cost *cost = cost_table_find(c->table, s->query.key);
        if (cost && !s->matrix && cost->ns < COST_NS_MAX)
            list[n++] =
                (struct ratio){s->query.candidate->impl,
                               (double)cost->ns * PLAN_UNIT_PER_NS / (double)s->guess};
    }
    if (n > 0)
        qsort(list, n, sizeof *list, by_value);
    *out = (struct ratios){list, n, median_of(list, n, 1)};
    if (n > 0)
        qsort(list, n, sizeof *list, by_impl);
}

/* Where an impl's begin, or what is behind them. */
static size_t edge_of(const struct ratios *r, const struct registry_impl *impl,
                      bool behind)
{
    size_t low = 0, high = r->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const uintptr_t at = (uintptr_t)r->list[middle].impl;
        if (at < (uintptr_t)impl || (behind && at == (uintptr_t)impl))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* What the model's costs are multiplied by where they stand beside measured ones: the
 * median of measured over modelled, of the impl or of all. A slower machine's impls, and
 * a busy one's, would else lose to those that were not measured, and an impl that is
 * faster than it claims to one that was. */
static double guess_scale(const struct ratios *r, const struct slot *s)
{
    if (s->matrix || r->n == 0)
        return r->median;
    const size_t first = edge_of(r, s->query.candidate->impl, false);
    const size_t end = edge_of(r, s->query.candidate->impl, true);
    return median_of(&r->list[first], end - first, r->median);
}

static void fill_in(struct costing *c)
{
    struct ratios ratios = {0};
    if (c->guess)
        find_ratios(c, &ratios);
    c->planner->costs.unknown = 0;
    for (size_t i = 0; i < c->n; i++) {
        struct slot *s = &c->slots[i];
        const struct cost *cost = cost_table_find(c->table, s->query.key);
        s->known = cost != NULL;
        *s->where = cost       ? cost->ns * PLAN_UNIT_PER_NS
                    : c->guess ? scaled(s->guess, guess_scale(&ratios, s))
                               : s->bound;
        const bool bounded = !cost && !c->guess;
        c->planner->costs.unknown += bounded;
        if (s->matrix)
            continue;
        struct planner_candidate *candidate =
            &c->planner->model
                 ->candidates[s->query.candidate - c->planner->model->candidates];
        candidate->cost = *s->where;
        candidate->bounded = bounded;
    }
    free(ratios.list);
}

/* ---- what to measure ----------------------------------------------------------- */

static bool used(const struct costing *c, const struct slot *s)
{
    const struct plan *plan = c->planner->plan;
    const struct plan_problem *p = &c->planner->model->problem;
    if (!s->matrix)
        return plan->choices[s->op] == s->choice;
    for (size_t i = 0; i < plan->n_steps; i++)
        if (p->tensors[plan->steps[i].tensor].conversion == s->matrix &&
            plan->steps[i].from == s->from && plan->steps[i].to == s->to)
            return true;
    return false;
}

static int by_key(const void *a, const void *b)
{
    const struct slot *x = *(const struct slot *const *)a;
    const struct slot *y = *(const struct slot *const *)b;
    return strcmp(x->query.key, y->query.key);
}

/* Keep one slot of each key; returns how many remain, sorted by key. */
static size_t distinct(const struct slot **slots, size_t n)
{
    size_t kept = 0;
    qsort(slots, n, sizeof(const struct slot *), by_key);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_key(&slots[i], &slots[kept - 1]) != 0)
            slots[kept++] = slots[i];
    return kept;
}

/* ns of the fastest known way to run a slot's layer, 0: none is known. */
static int64_t best_of(const struct costing *c, const struct slot *slot)
{
    int64_t best = 0;
    for (size_t i = 0; i < c->n && !slot->matrix; i++) {
        const struct slot *s = &c->slots[i];
        int64_t ns = *s->where / PLAN_UNIT_PER_NS;
        if (!s->matrix && s->known && s->op == slot->op && (best == 0 || ns < best))
            best = ns;
    }
    return best;
}

static int missing(const struct slot *s, strata_error *err)
{
    return error_set(err, STRATA_ENOTFOUND,
                     "no cost of a way to %s '%s' that the plan needs:\n  %s\nadd it "
                     "with --costs=FILE --set build.costs_miss=measure "
                     "--save-costs=FILE on this device, or plan without it with "
                     "build.costs_miss=analytic",
                     s->matrix ? "convert" : "run", s->query.layer, s->query.key);
}

/* A second measurement counts by its runs; one of a quiet machine alone. */
static int keep(struct costing *c, const char *key, struct cost cost, bool again,
                strata_error *err)
{
    const struct cost *old = again ? cost_table_find(c->table, key) : NULL;
    c->planner->costs.mended += old && old->loaded && !cost.loaded;
    if (old && (old->loaded || cost.loaded)) {
        cost = cost_is_better(&cost, old) ? cost : *old;
    } else if (old) {
        int runs = old->runs + cost.runs;
        cost.ns =
            (int64_t)(((double)old->ns * old->runs + (double)cost.ns * cost.runs) / runs);
        cost.spread = cost.spread > old->spread ? cost.spread : old->spread;
        cost.runs = runs;
    } else {
        c->planner->costs.measured++;
    }
    int status = cost_table_put(c->table, key, cost, err);
    if (status == STRATA_OK && again)
        status = cost_table_put(&c->confirmed, key, cost, err);
    return status;
}

static int measure(struct costing *c, const struct slot **wanted, size_t n, bool again,
                   strata_error *err)
{
    int status = STRATA_ENOMEM;
    const struct cost_query **queries = zalloc(n, sizeof *queries, "costs", err);
    int64_t *best = zalloc(n, sizeof *best, "costs", err);
    struct cost *costs = zalloc(n, sizeof *costs, "costs", err);
    if (!queries || !best || !costs)
        goto done;
    for (size_t i = 0; i < n; i++) {
        queries[i] = &wanted[i]->query;
        best[i] = again ? 0 : best_of(c, wanted[i]); /* in full what the plan uses */
    }
    status = c->source->measure(c->source, c->planner, queries, best, n, costs, err);
    for (size_t i = 0; i < n; i++)
        if (costs[i].runs > 0) {
            int kept = keep(c, queries[i]->key, costs[i], again, err);
            status = status != STRATA_OK ? status : kept;
        }
done:
    free(queries);
    free(best);
    free(costs);
    return status;
}

enum purpose { EVERYTHING, NEEDED, CONFIRM, RETRY };

static bool wants(const struct costing *c, const struct slot *s, enum purpose purpose)
{
    const struct cost *cost =
        purpose == RETRY ? cost_table_find(c->table, s->query.key) : NULL;
    if (purpose == RETRY && !(cost && cost->loaded))
        return false;
    if (purpose == CONFIRM || purpose == RETRY)
        return used(c, s) && !cost_table_find(&c->confirmed, s->query.key);
    return !s->known && (purpose == EVERYTHING || used(c, s));
}

/* Measure what serves a purpose; *n is how much that was. */
static int measure_next(struct costing *c, enum purpose purpose, size_t *n,
                        strata_error *err)
{
    const struct slot **wanted = zalloc(c->n, sizeof *wanted, "costs", err);
    int status = STRATA_OK;
    *n = 0;
    if (!wanted)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < c->n; i++)
        if (wants(c, &c->slots[i], purpose))
            wanted[(*n)++] = &c->slots[i];
    *n = distinct(wanted, *n);
    if (*n > 0)
        status = c->source ? measure(c, wanted, *n, purpose >= CONFIRM, err)
                           : missing(wanted[0], err);
    free(wanted);
    return status;
}

static size_t count_keys(const struct costing *c)
{
    const struct slot **slots = zalloc(c->n, sizeof *slots, "costs", NULL);
    size_t n = 0;
    for (; slots && n < c->n; n++)
        slots[n] = &c->slots[n];
    n = slots ? distinct(slots, n) : c->n;
    free(slots);
    return n;
}

/* ---- planning ------------------------------------------------------------------ */

static int solve(struct costing *c, strata_error *err)
{
    plan_free(c->planner->plan);
    c->planner->plan = NULL;
    c->planner->costs.solved++;
    return plan_solve(&c->planner->plan, &c->planner->model->problem,
                      &c->planner->plan_options, err);
}

static bool out_of_time(const struct costing *c)
{
    return c->source && c->source->deadline > 0 && progress_now() > c->source->deadline;
}

/* What the plan uses of costs of a busy machine is measured anew, once for a build and
 * for not much longer than a second: some of them in a quiet moment now. */
static int retry(struct costing *c, size_t *n, strata_error *err)
{
    const double deadline = c->source->deadline, now = progress_now();
    if (c->retry_until == 0)
        c->retry_until = deadline > 0 && deadline < now + 1 ? deadline : now + 1;
    if (now >= c->retry_until)
        return STRATA_OK;
    c->source->deadline = c->retry_until;
    int status = measure_next(c, RETRY, n, err);
    c->source->deadline = deadline;
    return status;
}

int costing_solve(struct costing *c, strata_error *err)
{
    size_t n = 0;
    int status = STRATA_OK;
    fill_in(c);
    if (c->options->everything && !c->guess)
        status = measure_next(c, EVERYTHING, &n, err);
    while (status == STRATA_OK) {
        if (progress_interrupted())
            return error_set(err, STRATA_EBUSY, "interrupted while costs were measured");
        fill_in(c);
        if ((status = solve(c, err)) != STRATA_OK || c->guess)
            return status;
        status = measure_next(c, NEEDED, &n, err);
        if (status == STRATA_OK && n == 0 && c->source && c->source->confirms &&
            c->planner->costs.measured && !out_of_time(c))
            status = measure_next(c, CONFIRM, &n, err);
        else if (status == STRATA_OK && n == 0 && c->source && c->source->confirms)
            status = retry(c, &n, err);
        else if (n > 0)
            c->guess = out_of_time(c);
        c->planner->costs.complete = status == STRATA_OK && n == 0;
        if (n == 0)
            return status;
    }
    return status;
}

int costing_keep(struct costing *c, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < c->n && status == STRATA_OK; i++) {
        const char *key = c->slots[i].query.key;
        const struct cost *cost = key ? cost_table_find(c->table, key) : NULL;
        if (cost) /* the last slot has no key if making that failed */
            status = cost_table_put(&c->planner->known, key, *cost, err);
    }
    return status;
}

void costing_close(struct costing *c)
{
    for (size_t i = 0; i < c->n; i++)
        cost_query_free(&c->slots[i].query);
    free(c->slots);
    cost_table_free(&c->confirmed);
}

int cost_plan_from(struct planner *planner, struct cost_table *table,
                   struct cost_source *source, const struct cost_options *options,
                   strata_error *err)
{
    double start = progress_now();
    struct cost_report *report = &planner->costs;
    struct costing c = {
        .planner = planner, .table = table, .source = source, .options = options};
    *report = (struct cost_report){.kind = options->kind};
    c.guess = options->kind == COSTS_FILE && options->miss == MISS_ANALYTIC;
    if (source && source->deadline == 0 && options->budget)
        source->deadline = start + (double)options->budget / 1e9;
    int status = costing_open(&c, err);
    if (status == STRATA_OK) {
        report->queries = count_keys(&c);
        status = costing_solve(&c, err);
    }
    const int kept = costing_keep(&c, err); /* what was measured, if it failed, too */
    status = status != STRATA_OK ? status : kept;
    costing_close(&c);
    report->seconds = progress_now() - start;
    return status;
}
