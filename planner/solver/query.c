/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions that are answered by solving again: the next-best plans, and what a ban would
 * cost.
 */
#include "planner/solver/private.h"

#include <stdlib.h>
#include <string.h>

/* ---- the best plans ---------------------------------------------------------------- */

/* Lawler (1972): what is left after the best is split by the first operation that differs
 * from it; the best of each part competes. */
struct part {
    bool *banned;
    struct plan_run run;
    int64_t cost; /* with ties */
};

struct ranking {
    struct plan_model m;
    const struct plan_options *options;
    struct part *parts;
    size_t n_parts, capacity;
    int64_t limit; /* objectives under it count */
    bool proved;
    strata_error *err;
};

static size_t n_choices(const struct plan_model *m)
{
    return m->first[m->p.n_ops];
}

/* Solve with the model's present bans; kept if it has a plan under the limit. */
static int add_part(struct ranking *r)
{
    size_t bytes = n_choices(&r->m) * sizeof *r->m.banned;
    struct part part = {0};
    int status = plan_run_search(&part.run, &r->m, r->options, r->limit, r->err);
    r->proved &= part.run.proved;
    if (status != STRATA_OK || !part.run.found) {
        free(part.run.choices);
        return status;
    }
    part.cost = plan_model_scaled(&r->m, part.run.choices);
    part.banned = zalloc(bytes, 1, "the planner", r->err);
    if (!part.banned) {
        free(part.run.choices);
        return STRATA_ENOMEM;
    }
    memcpy(part.banned, r->m.banned, bytes);
    status = grow(&r->parts, &r->capacity, r->n_parts, sizeof part, r->err);
    if (status == STRATA_OK) {
        r->parts[r->n_parts++] = part;
        return STRATA_OK;
    }
    free(part.banned);
    free(part.run.choices);
    return status;
}

static struct part take_best(struct ranking *r)
{
    size_t best = 0;
    for (size_t i = 1; i < r->n_parts; i++)
        if (r->parts[i].cost < r->parts[best].cost)
            best = i;
    struct part part = r->parts[best];
    r->parts[best] = r->parts[--r->n_parts];
    return part;
}

static int split(struct ranking *r, const struct part *from)
{
    struct plan_model *m = &r->m;
    int status = STRATA_OK;
    memcpy(m->banned, from->banned, n_choices(m) * sizeof *m->banned);
    for (size_t op = 0; op < m->p.n_ops && status == STRATA_OK; op++) {
        bool *banned = m->banned + m->first[op];
        size_t chosen = from->run.choices[op], left = 0;
        banned[chosen] = true;
        for (size_t k = 0; k < m->p.ops[op].n_choices; k++)
            left += !banned[k];
        if (left)
            status = add_part(r);
        for (size_t k = 0; k < m->p.ops[op].n_choices; k++)
            banned[k] = k != chosen;
    }
    return status;
}

static int emit(struct ranking *r, struct plan **out, size_t *n, const struct part *part)
{
    int status = plan_from_run(&out[*n], &r->m, &part->run, r->err);
    if (status != STRATA_OK)
        return status;
    struct plan *plan = out[(*n)++];
    plan->bound = out[0]->bound;
    plan->proved &= r->proved && plan->objective == plan->bound;
    return status;
}

static int64_t limit_of(int64_t best, double percent)
{
    double limit = (double)best * (1 + percent / 100) + 1;
    return limit < (double)PBQP_DEAD / 16 ? (int64_t)limit : PLAN_INFINITE;
}

static int rank(struct ranking *r, struct plan **out, size_t capacity, size_t *n,
                double percent)
{
    int status = add_part(r);
    while (status == STRATA_OK && r->n_parts > 0 && *n < capacity) {
        struct part part = take_best(r);
        status = emit(r, out, n, &part);
        if (*n == 1)
            r->limit = limit_of(part.run.objective, percent);
        if (status == STRATA_OK && *n < capacity)
            status = split(r, &part);
        free(part.banned);
        free(part.run.choices);
    }
    return status;
}

int plan_solve_best(struct plan **out, size_t capacity, size_t *n, double percent,
                    const struct plan_problem *p, const struct plan_options *options,
                    strata_error *err)
{
    struct ranking r = {
        .options = options, .limit = PLAN_INFINITE, .proved = true, .err = err};
    int status = plan_model_open(&r.m, p, options, err);
    *n = 0;
    if (status == STRATA_OK)
        status = rank(&r, out, capacity, n, percent);
    for (size_t i = 0; i < r.n_parts; i++) {
        free(r.parts[i].banned);
        free(r.parts[i].run.choices);
    }
    free(r.parts);
    plan_model_close(&r.m);
    while (status != STRATA_OK && *n > 0)
        plan_free(out[--*n]);
    if (status == STRATA_OK && *n == 0 && capacity > 0)
        return plan_solve(out, p, options, err); /* says why there is none */
    return status;
}

/* ---- min-marginals ----------------------------------------------------------------- */

int plan_cost_without(int64_t *cost, const struct plan_problem *p,
                      const struct plan_options *options, const struct plan_ban *ban,
                      strata_error *err)
{
    struct plan_options more = options ? *options : (struct plan_options){0};
    struct plan_model m = {0};
    struct plan_run r = {0};
    struct plan_ban *bans = zalloc(more.n_bans + 1, sizeof *bans, "the planner", err);
    int status = STRATA_ENOMEM;
    if (!bans)
        return status;
    if (more.n_bans)
        memcpy(bans, more.bans, more.n_bans * sizeof *bans);
    bans[more.n_bans++] = *ban;
    more.bans = bans;
    status = plan_model_open(&m, p, &more, err);
    if (status == STRATA_OK)
        status = plan_run_search(&r, &m, &more, PLAN_INFINITE, err);
    if (status == STRATA_OK)
        *cost = r.bound;
    free(r.choices);
    plan_model_close(&m);
    free(bans);
    return status;
}
