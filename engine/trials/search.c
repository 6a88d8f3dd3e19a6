/* SPDX-License-Identifier: Apache-2.0
 *
 * What is tried next: what costs least more by the prices. Of a way that was left in vain
 * what ran in its place is left, too; of a new best plan, what it runs that others did
 * not. Gains that were too small to be told from noise are tried together at the end.
 */
#include "engine/trials/trials.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 0.02     /* plans that cost so much more are worth a trial */
#define ALMOST 0.0005 /* gains that may add up */
#define TOGETHER 0.85 /* of the time, after which those are tried */

enum { MOST_WAYS = 4 }; /* that are left of one thing, one behind the other */

/* ---- plans ------------------------------------------------------------------------- */

static bool is_tried(const struct trials *t, const struct plan *plan)
{
    const size_t bytes = t->planner->model->problem.n_ops * sizeof *plan->choices;
    for (size_t i = 0; i < t->n_tried; i++)
        if (memcmp(t->tried[i]->choices, plan->choices, bytes) == 0)
            return true;
    return false;
}

static int add_tried(struct trials *t, const struct plan *plan, strata_error *err)
{
    int status = grow(&t->tried, &t->tried_capacity, t->n_tried, sizeof(*t->tried), err);
    if (status == STRATA_OK)
        status = plan_copy(&t->tried[t->n_tried], &t->planner->model->problem, plan, err);
    t->n_tried += status == STRATA_OK;
    return status;
}

/* What ends trials; otherwise one that cannot be made is none. */
static bool is_grave(int status)
{
    return status == STRATA_EDEVICELOST || status == STRATA_EBUSY;
}

/* The best plan without what the attempt leaves; NULL: there is none. */
static int plan_attempt(struct trials *t, struct attempt *a, strata_error *err)
{
    struct near_left left = {0};
    strata_error why;
    error_clear(&why);
    plan_free(a->plan);
    a->plan = NULL;
    a->wins = t->won;
    int status = near_add(&left, &t->left, err);
    if (status == STRATA_OK)
        status = near_add(&left, &a->left, err);
    const int found =
        status == STRATA_OK ? near_plan(&a->plan, t->near, &left, &why) : status;
    if (status == STRATA_OK && is_grave(found))
        status = error_set(err, found, "%s", why.message);
    near_free_left(&left);
    return status;
}

static bool is_worth(const struct trials *t, const struct attempt *a)
{
    return a->plan && (double)attempt_cost(a) <= (double)t->plan->cost * (1 + NEAR) &&
           !is_tried(t, a->plan);
}

/* Takes it. */
static int propose(struct trials *t, struct attempt *a, strata_error *err)
{
    int status = plan_attempt(t, a, err);
    if (status == STRATA_OK && is_worth(t, a))
        return attempts_put(&t->waiting, a, err);
    attempt_free(a);
    return status;
}

/* ---- attempts ---------------------------------------------------------------------- */

static bool is_known(const struct trials *t, const char *key)
{
    for (size_t i = 0; i < t->n_keys; i++)
        if (strcmp(t->keys[i], key) == 0)
            return true;
    return false;
}

static int propose_without(struct trials *t, const struct near_use *use,
                           strata_error *err)
{
    struct attempt a = {.n_ways = 0};
    int status = grow(&t->keys, &t->keys_capacity, t->n_keys, sizeof(*t->keys), err);
    if (status != STRATA_OK)
        return status;
    t->keys[t->n_keys++] = use->key;
    a.surplus = near_surplus(t->near, t->best.engine->execution, use->key);
    status = near_leave(&a.left, t->near, t->plan, use->key, err);
    if (status == STRATA_OK)
        status = attempt_add_way(&a, use, 0, err);
    if (status == STRATA_OK)
        return propose(t, &a, err);
    attempt_free(&a);
    return status;
}

/* Without each thing that the best plan runs, and that none before it ran. */
static int propose_each(struct trials *t, strata_error *err)
{
    struct near_use *uses = NULL;
    size_t n = 0;
    int status = near_uses(&uses, &n, t->near, t->plan, err);
    for (size_t i = 0; i < n && status == STRATA_OK && progress_now() < t->deadline; i++)
        if (!is_known(t, uses[i].key))
            status = propose_without(t, &uses[i], err);
    free(uses);
    return status;
}

/* Without what ran in the place of what was left, too. */
static int propose_more(struct trials *t, const struct attempt *a, double ms,
                        strata_error *err)
{
    struct attempt b = {.n_ways = 0};
    struct near_use use;
    near_instead(&use, t->near, a->plan, &a->left);
    if (use.uses == 0 || a->n_ways >= MOST_WAYS)
        return STRATA_OK;
    int status = attempt_join(&b, a, err);
    if (status == STRATA_OK)
        status = near_leave_more(&b.left, t->near, a->plan, err);
    if (status == STRATA_OK)
        status = attempt_add_way(&b, &use, ms, err);
    if (status == STRATA_OK)
        return propose(t, &b, err);
    attempt_free(&b);
    return status;
}

/* All that won too little by themselves, as one. */
static int join_almost(struct trials *t, struct attempt *out, strata_error *err)
{
    int status = STRATA_OK;
    *out = (struct attempt){.joined = true};
    t->joined = true;
    for (size_t i = 0; i < t->lost.n && status == STRATA_OK; i++)
        if (t->lost.list[i].gain >= ALMOST)
            status = attempt_join(out, &t->lost.list[i], err);
    return status == STRATA_OK && out->n_ways > 0 ? plan_attempt(t, out, err) : status;
}

/* The pair that may gain most. */
static int join_pair(struct trials *t, struct attempt *out, strata_error *err)
{
    const struct attempt_pair *pair = &t->pairs[--t->n_pairs];
    *out = (struct attempt){.joined = true};
    int status = attempt_join(out, &t->lost.list[pair->a], err);
    if (status == STRATA_OK)
        status = attempt_join(out, &t->lost.list[pair->b], err);
    return status == STRATA_OK ? plan_attempt(t, out, err) : status;
}

static int make_pairs(struct trials *t, strata_error *err)
{
    t->paired = true;
    return attempts_pair(&t->pairs, &t->n_pairs, &t->lost, -NEAR, err);
}

/* One that waits for its turn, or made of some that had it; *none: there is nothing. */
static int take(struct trials *t, struct attempt *a, bool *none, strata_error *err)
{
    const double late = t->started + TOGETHER * (t->deadline - t->started);
    int status = STRATA_OK;
    *none = false;
    if (!t->joined && (t->waiting.n == 0 || progress_now() > late))
        return join_almost(t, a, err);
    if (attempts_take(&t->waiting, a))
        return a->wins != t->won ? plan_attempt(t, a, err) : STRATA_OK;
    if (!t->paired)
        status = make_pairs(t, err);
    if (status == STRATA_OK && t->n_pairs > 0)
        return join_pair(t, a, err);
    *none = true;
    return status;
}

/* The next one that is worth it; *found: there is one. */
static int next(struct trials *t, struct attempt *a, bool *found, strata_error *err)
{
    bool none = false;
    int status = STRATA_OK;
    *found = false;
    while (!*found && !none && status == STRATA_OK && progress_now() < t->deadline) {
        status = take(t, a, &none, err);
        *found = status == STRATA_OK && !none && is_worth(t, a);
        if (!*found)
            attempt_free(a);
    }
    return status;
}

/* ---- trials ------------------------------------------------------------------------ */

static void tell(const struct trials *t, const struct attempt *a, const struct contest *c)
{
    const struct planner_left *way = &a->ways[0];
    const double excess = (double)a->plan->cost / (double)t->plan->cost - 1;
    char more[40] = "";
    if (a->n_ways > 1)
        snprintf(more, sizeof more, " and %zu more ways", a->n_ways - 1);
    log_line(STRATA_LOG_INFO,
             "trial: without %s for '%s' (%zu of it)%s, %+.2f %% by the prices"
             " (surplus %+.2f), a run takes %.4f ms, %.4f with it, %+.2f %%%s",
             way->impl, way->layer, way->uses, more, 100 * excess,
             100 * (double)a->surplus / (double)t->plan->cost, c->ms[1], c->ms[0],
             -100 * c->gain, c->won ? ": left" : "");
}

/* What it leaves is left from now on. */
static int accept(struct trials *t, struct attempt *a, struct contender *c,
                  const struct contest *contest, strata_error *err)
{
    int status = near_add(&t->left, &a->left, err);
    for (size_t i = 0; i < a->n_ways && status == STRATA_OK; i++) {
        struct planner_left way = a->ways[i];
        way.without_ns = llround(contest->ms[1] * 1e6);
        way.with_ns = way.with_ns ? way.with_ns : llround(contest->ms[0] * 1e6);
        status = planner_add_left(t->planner, &way, err);
    }
    plan_free(t->plan);
    t->plan = a->plan;
    a->plan = NULL;
    t->best.engine->planner = NULL; /* the first one's, which all have */
    contender_close(&t->best);
    t->best = *c;
    *c = (struct contender){0};
    t->won++;
    t->ms = contest->ms[1];
    return status == STRATA_OK ? contender_find_lead(&t->best, err) : status;
}

static int conclude(struct trials *t, struct attempt *a, struct contender *c,
                    const struct contest *contest, strata_error *err)
{
    int status = STRATA_OK;
    t->before_ms = t->made++ ? t->before_ms : contest->ms[0];
    t->ms = contest->ms[0];
    tell(t, a, contest);
    if (contest->won) {
        status = accept(t, a, c, contest, err);
        return status == STRATA_OK ? propose_each(t, err) : status;
    }
    engine_pool_keep(&t->pool, c->engine);
    if (!a->joined)
        status = propose_more(t, a, contest->ms[1], err);
    a->gain = contest->gain;
    return status == STRATA_OK && !a->joined && a->gain >= -NEAR
               ? attempts_put(&t->lost, a, err)
               : status;
}

static int try(struct trials *t, struct attempt *a, strata_error *err)
{
    struct contender c = {0};
    struct contest contest;
    strata_engine *engine;
    strata_error why;
    error_clear(&why);
    int status = add_tried(t, a->plan, err);
    if (status != STRATA_OK)
        return status;
    const double begun = progress_now();
    int made =
        engine_build_kin(&engine, t->best.engine, &t->pool, t->planner, a->plan, &why);
    const double built = progress_now();
    if (made == STRATA_OK)
        made = contender_open(&c, engine, &why);
    const double opened = progress_now();
    if (made == STRATA_OK)
        made = contest_hold(&contest, &t->best, &c, &why);
    log_line(STRATA_LOG_DEBUG, "trial: built in %.1f ms, ready in %.1f, timed in %.1f",
             1e3 * (built - begun), 1e3 * (opened - built),
             1e3 * (progress_now() - opened));
    if (made == STRATA_OK)
        status = conclude(t, a, &c, &contest, err);
    else if (is_grave(made))
        status = error_set(err, made, "%s", why.message);
    else
        log_line(STRATA_LOG_INFO, "no trial without %s for '%s': %s", a->ways[0].impl,
                 a->ways[0].layer, why.message);
    contender_close(&c);
    return status;
}

static int search(struct trials *t, strata_error *err)
{
    bool found = true;
    int status = contender_find_lead(&t->best, err);
    if (status == STRATA_OK)
        status = propose_each(t, err);
    log_line(STRATA_LOG_INFO, "%zu plans near the best, of %zu, found in %.2f s",
             t->waiting.n, t->n_keys, progress_now() - t->started);
    while (status == STRATA_OK && found && progress_now() < t->deadline) {
        struct attempt a = {.n_ways = 0};
        progress_show(&t->progress,
                      &(struct progress_state){.layer = "trying other plans",
                                               .index = t->made,
                                               .count = t->made + t->waiting.n + 1});
        status = next(t, &a, &found, err);
        if (status == STRATA_OK && found)
            status = try(t, &a, err);
        attempt_free(&a);
        if (status == STRATA_OK && progress_interrupted())
            status = error_set(err, STRATA_EBUSY, "interrupted while plans were tried");
    }
    return status;
}

int trials_run(struct trials *t, strata_error *err)
{
    progress_begin(&t->progress);
    const int status = search(t, err);
    progress_end(&t->progress);
    if (t->made > 0)
        log_line(STRATA_LOG_INFO,
                 "%zu trials in the network, %zu won, in %.1f s: a run takes %.4f ms, "
                 "%.4f before",
                 t->made, t->won, progress_now() - t->started, t->ms, t->before_ms);
    return status;
}
