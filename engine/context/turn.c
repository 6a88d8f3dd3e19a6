/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of an engine's contexts on its device. Two runs that share it end at about the
 * same time, so both then copy while nothing computes, and so again. One after the other,
 * each context copies while the other computes.
 */
#include <pthread.h>
#include <stdlib.h>

#include "core/arguments.h"
#include "core/handle.h"
#include "engine/context/context.h"
#include "planner/planner.h"

/* A fast link of today copies so many bytes a ns; over a slower one turns gain more. */
#define LINK 50.0
/* Of a run, at least, that copies take: with less, runs that gain a third by sharing the
 * device lose by turns. What travels as halves counts as floats: where costs were measured
 * runs gain some hundredths by sharing, and half a share is enough. */
#define SHARE 0.25

struct engine_turns {
    pthread_mutex_t lock;
    const strata_context *last; /* whose run is the last in the queue */
};

struct engine_turns *engine_open_turns(strata_error *err)
{
    struct engine_turns *t = zalloc(1, sizeof *t, "turns of contexts", err);
    if (t)
        pthread_mutex_init(&t->lock, NULL);
    return t;
}

void engine_close_turns(struct engine_turns *t)
{
    if (t)
        pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- the rule -------------------------------------------------------------------- */

static bool on_host(const strata_context *c)
{
    return c->handle->properties.kind == STRATA_HOST;
}

static bool costs_measured(const strata_engine *e)
{
    return e->planner && (e->planner->costs.kind == COSTS_MEASURE ||
                          e->planner->costs.kind == COSTS_FILE);
}

/* In the order in which they are asked. */
enum why { SET, HOST, STREAM, COSTS, COPIES, PAYS };

static const char *const whys[] = {
    [SET] = "not in turns: so it was set",
    [HOST] = "not in turns: the host runs one after the other by its own rule",
    [STREAM] = "not in turns: the stream is the application's own",
    [COSTS] = "not in turns: the plan's costs are a model's; build with measured costs, "
              "or set turns on",
    [COPIES] = "not in turns: copies of a full batch take less than a quarter of its run",
    [PAYS] = "in turns: costs were measured, and copies of a full batch take a quarter "
             "of its run or more"};

static enum why rule(const strata_context *c, const struct execution *x, uint64_t moved)
{
    const double run_ns = (double)execution_predicts(x) / PLAN_UNIT_PER_NS;
    return on_host(c)                              ? HOST
           : c->stream != c->handle->own_stream    ? STREAM
           : !costs_measured(c->engine)            ? COSTS
           : (double)moved < SHARE * LINK * run_ns ? COPIES
                                                   : PAYS;
}

bool context_turn_pays(const strata_context *c, uint64_t moved)
{
    return rule(c, c->active->execution, moved) == PAYS;
}

static bool takes_turn(const strata_context *c, uint64_t moved)
{
    return c->turn.use == STRATA_TURNS_AUTO
               ? context_turn_pays(c, moved)
               : c->turn.use == STRATA_TURNS_ON && !on_host(c);
}

/* ---- runs ------------------------------------------------------------------------ */

int context_take_turn(strata_context *c, uint64_t moved, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    struct engine_turns *turns = c->engine->turns;
    int status = STRATA_OK;
    c->turn.taken = false;
    if (!takes_turn(c, moved))
        return STRATA_OK;
    if (!c->turn.ran)
        status = ops->event_create(c->handle->device, &c->turn.ran, err);
    if (status != STRATA_OK)
        return status;
    c->turn.taken = true;
    pthread_mutex_lock(&turns->lock);
    const strata_context *last = turns->last;
    return last && last->stream != c->stream
               ? ops->stream_wait(c->stream, last->turn.ran, err)
               : STRATA_OK;
}

int context_leave_turn(strata_context *c, int status, strata_error *err)
{
    struct engine_turns *turns = c->engine->turns;
    if (!c->turn.taken)
        return status;
    if (status == STRATA_OK)
        status = c->handle->device->ops->event_record(c->turn.ran, c->stream, err);
    if (status == STRATA_OK)
        turns->last = c;
    pthread_mutex_unlock(&turns->lock);
    c->turn.taken = false;
    return status;
}

void context_close_turn(strata_context *c)
{
    struct engine_turns *turns = c->engine->turns;
    if (!c->turn.ran)
        return;
    pthread_mutex_lock(&turns->lock);
    if (turns->last == c)
        turns->last = NULL;
    pthread_mutex_unlock(&turns->lock);
    c->handle->device->ops->event_destroy(c->turn.ran);
    c->turn.ran = NULL;
}

/* ---- the application's ------------------------------------------------------------ */

int strata_context_set_turns(strata_context *c, int use, strata_error *err)
{
    int status = ARGUMENTS(err, {"context", c});
    if (status == STRATA_OK && (use < STRATA_TURNS_OFF || use > STRATA_TURNS_ON))
        status = error_set(err, STRATA_EINVAL, "use %d: set STRATA_TURNS_*", use);
    if (status != STRATA_OK || (status = context_enter(c, __func__, err)) != STRATA_OK)
        return status;
    c->turn.use = use;
    return context_leave(c, STRATA_OK);
}

const char *strata_context_turns(const strata_context *c)
{
    uint64_t moved = 0;
    if (!c)
        return NULL;
    if (c->turn.use == STRATA_TURNS_ON && !on_host(c))
        return "in turns: so it was set";
    if (c->turn.use == STRATA_TURNS_OFF)
        return whys[SET];
    for (size_t i = 0; i < c->execution->n_bindings; i++)
        moved += (uint64_t)c->execution->values[c->execution->bindings[i].value].bytes;
    return whys[rule(c, c->execution, moved)];
}
