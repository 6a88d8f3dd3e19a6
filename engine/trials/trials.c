/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials in the network. A price is what a kernel takes between two that are always the
 * same; what it takes between its neighbours of a network differs by some per cent, and
 * where two prices are near each other, the dearer kernel may well make the faster
 * network. So once a network is built, plans are made that leave a way in which the best
 * one runs its layers; those that cost little more are built, and whole runs of both are
 * timed. A faster one takes the place of the best, and what it leaves stays left.
 */
#include "engine/trials/trials.h"

#include <stdlib.h>

#define IN_PLACE_MS 300.0 /* to time the steps of the first plan */

enum { POOLED = 8 }; /* one in so many bytes of the device that are free */

/* Trials are of runs that are one graph, by plans that were made from measured costs. */
static bool is_wanted(const strata_engine *e, const struct build_options *b)
{
    return build_tries_plans(b) && !e->planner->record &&
           e->planner->costs.kind == COSTS_MEASURE && b->objective == OBJECTIVE_TIME &&
           e->handle->device->ops->capture_begin && e->execution->n_steps > 0;
}

/* Bytes for parts that later trials may need. */
static uint64_t room_of(const strata_handle *h)
{
    const struct device_ops *ops = h->device->ops;
    return ops->free_bytes ? ops->free_bytes(h->device) / POOLED : 0;
}

/* Takes the engine. */
static int open_trials(struct trials *t, strata_engine *e, uint64_t ns, strata_error *err)
{
    *t = (struct trials){.planner = e->planner, .started = progress_now()};
    t->deadline = t->started + (double)ns / 1e9;
    t->pool = (struct engine_pool){.handle = e->handle, .most = room_of(e->handle)};
    cost_device_init(&t->costs, e->handle);
    int status = contender_open(&t->best, e, err);
    if (status == STRATA_OK)
        status = context_cost_in_place(t->best.context, e->execution, IN_PLACE_MS, err);
    if (status == STRATA_OK)
        status = plan_copy(&t->plan, &t->planner->model->problem, t->planner->plan, err);
    return status == STRATA_OK ? near_open(&t->near, t->planner, &t->costs.source, err)
                               : status;
}

static void free_search(struct trials *t)
{
    attempts_free(&t->waiting);
    attempts_free(&t->lost);
    free(t->pairs);
    engine_pool_free(&t->pool);
    near_free_left(&t->left);
    for (size_t i = 0; i < t->n_tried; i++)
        plan_free(t->tried[i]);
    free(t->tried);
    free(t->keys);
}

/* The planner's plan is the best's; what was measured is kept, whatever happened. */
static int settle(struct trials *t, int status, strata_error *err)
{
    strata_error why;
    error_clear(&why);
    if (status == STRATA_OK && t->won > 0) {
        status = near_settle(t->near, t->plan, &t->left, err);
        t->plan = NULL;
    }
    if (near_close(t->near, &why) != STRATA_OK)
        log_line(STRATA_LOG_WARNING, "measured costs are not kept: %s", why.message);
    plan_free(t->plan);
    return status;
}

/* Leaves *engine the best, whole: with the sizes that trials leave out; NULL: there is
 * none that could be. */
static int close_trials(struct trials *t, strata_engine **engine, int status,
                        strata_error *err)
{
    status = settle(t, status, err);
    free_search(t);
    strata_engine *best = t->best.engine;
    t->best.engine = NULL;
    contender_close(&t->best);
    *engine = best;
    if (t->won == 0)
        return status;
    if (status == STRATA_OK)
        return engine_complete_kin(best, t->planner, err);
    strata_engine_destroy(best);
    planner_free(t->planner);
    *engine = NULL;
    return status;
}

int engine_try_plans(strata_engine **engine, const strata_network *network,
                     strata_error *err)
{
    strata_error why;
    struct trials t;
    error_clear(&why);
    if (!is_wanted(*engine, &network->build))
        return STRATA_OK;
    int status = open_trials(&t, *engine, network->build.trials, &why);
    if (status == STRATA_OK)
        status = trials_run(&t, err);
    else if (status == STRATA_EDEVICELOST)
        error_set(err, status, "%s", why.message);
    else {
        log_line(STRATA_LOG_INFO, "no trials in the network: %s", why.message);
        status = STRATA_OK;
    }
    return close_trials(&t, engine, status, err);
}
