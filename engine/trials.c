/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials in the network. A price is what a kernel takes between two that are always the
 * same; what it takes between its neighbours of a network differs by some per cent, and
 * where two prices are near each other, the dearer kernel may well make the faster
 * network. So once a network is built, the price of each thing that its plan runs is
 * raised in turn, and if the plan is then another one of almost the same cost, an engine
 * of that is built, too, and whole runs of both are timed. Where it is faster the price
 * stays raised, and the engine takes the place of the one before.
 */
#include "engine/engine.h"

#include <stdlib.h>

#include "engine/context/context.h"
#include "planner/cost/progress.h"
#include "planner/merge/merge.h"
#include "planner/planner.h"

#define RAISE 1.5     /* a price that is tried without */
#define NEAR 0.02     /* plans that cost so much more are worth a trial */
#define GAIN 0.004    /* of time: less is noise */
#define AGAIN 0.003   /* what is left of it in each round of a second look */
#define TIMED_MS 40.0 /* of whole runs */

enum { ROUNDS = 2 };

/* An engine whose runs are timed, by a context on random inputs. */
struct contender {
    strata_engine *engine;
    strata_context *context;
    double ms; /* of a run */
};

struct trials {
    strata_handle *handle;
    const strata_network *network;
    struct cost_table prices; /* all that are known, raised ones among them */
    struct cost_table tried;  /* keys whose price was raised once */
    struct contender best;
    double deadline; /* of progress_now() */
    size_t made, won;
};

static void close_contender(struct contender *c)
{
    strata_context_destroy(c->context);
    strata_engine_destroy(c->engine);
    *c = (struct contender){0};
}

/* Takes the engine. */
static int open_contender(struct contender *c, strata_engine *engine, strata_error *err)
{
    *c = (struct contender){.engine = engine};
    int status = strata_context_create(&c->context, engine, engine->handle, err);
    if (status == STRATA_OK)
        status = context_prepare_times(c->context, err);
    return status == STRATA_OK ? context_time_runs(c->context, TIMED_MS, &c->ms, err)
                               : status;
}

/* The best plan by the prices as they are, to which what it had to measure is added. */
static int plan_anew(struct planner **out, struct trials *t, strata_error *err)
{
    const strata_handle *h = t->handle;
    const struct planner_device device = {h->properties, h->math, h->threads};
    struct cost_device costs;
    cost_device_init(&costs, t->handle);
    costs.source.prices = &t->prices;
    int status = planner_make_merged(out, t->network, &device, &costs.source, err);
    return status == STRATA_OK ? cost_table_merge(&t->prices, &(*out)->known, err)
                               : status;
}

/* Whether a plan is another one than the best, and costs little more. */
static bool is_near(const struct trials *t, const struct planner *planner)
{
    const double now = (double)t->best.engine->planner->plan->cost;
    const double excess = (double)planner->plan->cost / now - 1;
    return planner->plan->cost != t->best.engine->planner->plan->cost && excess < NEAR;
}

/* One after the other again: what made one of them faster may have been the chip's. */
static int look_again(struct trials *t, struct contender *c, bool *faster,
                      strata_error *err)
{
    int status = STRATA_OK;
    *faster = c->ms < t->best.ms * (1 - GAIN);
    for (int i = 0; i < ROUNDS && *faster && status == STRATA_OK; i++) {
        status = context_time_runs(t->best.context, TIMED_MS, &t->best.ms, err);
        if (status == STRATA_OK)
            status = context_time_runs(c->context, TIMED_MS, &c->ms, err);
        *faster = status == STRATA_OK && c->ms < t->best.ms * (1 - AGAIN);
    }
    return status;
}

/* Takes the planner. */
static int time_plan(struct trials *t, struct planner *planner,
                     const struct cost_use *use, bool *won, strata_error *err)
{
    struct contender c = {0};
    strata_engine *engine;
    int status = engine_build_planned(&engine, t->handle, planner, err);
    if (status == STRATA_OK)
        status = open_contender(&c, engine, err);
    if (status == STRATA_OK)
        status = look_again(t, &c, won, err);
    if (status == STRATA_OK) {
        t->made++;
        log_line(STRATA_LOG_INFO,
                 "trial: without the plan's way for '%s' (%zu of it) a "
                 "run takes %.4f ms, %.4f with it%s",
                 use->layer, use->uses, c.ms, t->best.ms, *won ? ": left" : "");
    }
    if (status == STRATA_OK && *won) {
        close_contender(&t->best);
        t->best = c;
        t->won++;
    } else {
        close_contender(&c);
    }
    return status;
}

/* Without one of the things that the plan runs. A trial that cannot be made is none. */
static int try_without(struct trials *t, const struct cost_use *use, strata_error *err)
{
    struct planner *planner = NULL;
    struct cost dearer = use->cost;
    strata_error why;
    bool won = false;
    error_clear(&why);
    dearer.ns = (int64_t)((double)dearer.ns * RAISE) + 1;
    int status = cost_table_put(&t->prices, use->key, dearer, err);
    if (status == STRATA_OK)
        status = cost_table_put(&t->tried, use->key, use->cost, err);
    if (status != STRATA_OK)
        return status;
    status = plan_anew(&planner, t, &why);
    if (status == STRATA_OK && is_near(t, planner))
        status = time_plan(t, planner, use, &won, &why);
    else
        planner_free(planner);
    if (status == STRATA_EDEVICELOST)
        return error_set(err, status, "%s", why.message);
    if (status != STRATA_OK)
        log_line(STRATA_LOG_INFO, "no trial without '%s': %s", use->layer, why.message);
    return won ? STRATA_OK : cost_table_put(&t->prices, use->key, use->cost, err);
}

/* Everything that the best plan runs, what takes most of its time first. */
static int try_each(struct trials *t, strata_error *err)
{
    struct cost_use *uses = NULL;
    struct progress progress;
    size_t n = 0;
    int status = cost_uses(&uses, &n, t->best.engine->planner, err);
    progress_begin(&progress);
    for (size_t i = 0; i < n && status == STRATA_OK && progress_now() < t->deadline;
         i++) {
        progress_show(&progress, &(struct progress_state){.layer = "trying other plans",
                                                          .index = i,
                                                          .count = n});
        if (!cost_table_find(&t->tried, uses[i].key))
            status = try_without(t, &uses[i], err);
        if (status == STRATA_OK && progress_interrupted())
            status = error_set(err, STRATA_EBUSY, "interrupted while plans were tried");
    }
    progress_end(&progress);
    cost_free_uses(uses, n);
    return status;
}

/* Until the best plan has nothing that was not tried. */
static int run_trials(struct trials *t, strata_error *err)
{
    const double before = t->best.ms;
    int status = STRATA_OK;
    for (size_t won = 1; status == STRATA_OK && won > 0;) {
        const size_t until = t->won;
        status = try_each(t, err);
        won = t->won - until;
    }
    log_line(STRATA_LOG_INFO,
             "%zu trials in the network, %zu won: a run takes %.4f ms, "
             "%.4f before",
             t->made, t->won, t->best.ms, before);
    return status;
}

/* Trials are of runs that are one graph, by plans that were made from measured costs. */
static bool is_wanted(const strata_engine *e, const struct build_options *b)
{
    return build_tries_plans(b) && !e->planner->record &&
           e->planner->costs.kind == COSTS_MEASURE && b->objective == OBJECTIVE_TIME &&
           e->handle->device->ops->capture_begin && e->execution->n_steps > 0;
}

static int open_trials(struct trials *t, strata_engine *e, strata_error *err)
{
    t->deadline = progress_now() + (double)t->network->build.trials / 1e9;
    cost_table_init(&t->prices, e->handle->properties.build);
    cost_table_init(&t->tried, e->handle->properties.build);
    int status = cost_table_merge(&t->prices, &e->planner->known, err);
    return status == STRATA_OK ? open_contender(&t->best, e, err) : status;
}

/* Leaves *engine the best, whole: with the sizes that trials leave out; NULL: there is
 * none that could be. */
static int close_trials(struct trials *t, strata_engine **engine, int status,
                        strata_error *err)
{
    if (t->won == 0) {
        *engine = t->best.engine;
        t->best.engine = NULL;
    }
    close_contender(&t->best);
    if (t->won > 0 && status == STRATA_OK)
        status = engine_build_priced(engine, t->handle, t->network, &t->prices, err);
    cost_table_free(&t->prices);
    cost_table_free(&t->tried);
    return status;
}

int engine_try_plans(strata_engine **engine, const strata_network *network,
                     strata_error *err)
{
    strata_error why;
    error_clear(&why);
    if (!is_wanted(*engine, &network->build))
        return STRATA_OK;
    struct trials t = {.handle = (*engine)->handle, .network = network};
    int status = open_trials(&t, *engine, &why);
    *engine = NULL; /* the best one has it */
    if (status == STRATA_OK)
        status = run_trials(&t, err);
    else if (status == STRATA_EDEVICELOST)
        error_set(err, status, "%s", why.message);
    else {
        log_line(STRATA_LOG_INFO, "no trials in the network: %s", why.message);
        status = STRATA_OK;
    }
    return close_trials(&t, engine, status, err);
}
