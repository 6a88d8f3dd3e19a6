/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs that are watched: step by step, an event before the first and behind each, told to
 * the profiler once the run is complete. One such run is under way at a time.
 */
#include "engine/context/context.h"

#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"

static void free_profile(struct context_profile *p, size_t n_steps)
{
    if (!p)
        return;
    for (size_t i = 0; p->events && i <= n_steps; i++)
        strata_event_destroy(p->events[i]);
    free(p->events);
    free(p);
}

void context_free_profile(strata_context *c)
{
    free_profile(c->profile, c->execution->n_steps);
    c->profile = NULL;
}

/* Named as the user named what the step computes or converts. */
static void begin_range(const strata_context *c, size_t step)
{
    const strata_engine *e = c->engine;
    const struct execution_step *s = &e->execution->steps[step];
    c->handle->device->ops->range_begin(
        s->kind == STEP_RUN
            ? e->execution->nodes[s->node].name
            : e->network->tensors[e->execution->values[s->to].tensor].name);
}

static int enqueue_watched(strata_context *c, size_t step, strata_error *err)
{
    const bool range = c->profile->caller.ranges && context_step_enqueues(c, step);
    if (range)
        begin_range(c, step);
    int status = context_enqueue_steps(c, step, step + 1, NULL, err);
    if (range)
        c->handle->device->ops->range_end();
    if (status == STRATA_OK && context_step_enqueues(c, step))
        status = strata_event_record(c->profile->events[step + 1], c->stream, err);
    return status;
}

int context_enqueue_profiled(strata_context *c, size_t consumed,
                             strata_event *input_consumed, strata_error *err)
{
    struct context_profile *p = c->profile;
    int status = p->pending ? context_settle(c, err) : STRATA_OK;
    c->queued = true;
    if (status == STRATA_OK)
        status = context_begin(c, err);
    if (status != STRATA_OK) {
        c->warm = p->pending = false;
        return status;
    }
    status = strata_event_record(p->events[0], c->stream, err);
    for (size_t s = 0; s <= c->execution->n_steps && status == STRATA_OK; s++) {
        if (input_consumed && s == consumed)
            status = strata_event_record(input_consumed, c->stream, err);
        if (status == STRATA_OK && s < c->execution->n_steps)
            status = enqueue_watched(c, s, err);
    }
    context_end(c);
    c->warm = p->pending = status == STRATA_OK;
    return status;
}

static int make_profile(strata_context *c, const strata_profiler *profiler,
                        strata_error *err)
{
    const size_t n = c->execution->n_steps;
    int status = STRATA_ENOMEM;
    struct context_profile *p = zalloc(1, sizeof *p, "a profiler", err);
    if (!p)
        return status;
    p->caller = *profiler;
    p->events = zalloc(n + 1, sizeof *p->events, "a profiler", err);
    if (!p->events)
        goto done;
    status = STRATA_OK;
    for (size_t i = 0; i <= n && status == STRATA_OK; i++)
        status = strata_event_create(&p->events[i], c->handle, err);
    if (status != STRATA_OK)
        goto done;
    c->profile = p;
    p = NULL;
done:
    free_profile(p, n);
    return status;
}

int context_watch(strata_context *c, const strata_profiler *profiler, strata_error *err)
{
    int status = STRATA_OK;
    context_free_profile(c);
    if (profiler)
        status = make_profile(c, profiler, err);
    for (size_t i = 0; i < c->n_smaller && status == STRATA_OK; i++)
        status = context_watch(c->smaller[i], profiler, err);
    return status;
}

int strata_context_set_profiler(strata_context *c, const strata_profiler *caller,
                                strata_error *err)
{
    strata_profiler known;
    const strata_profiler *profiler = caller ? &known : NULL;
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    if (caller) {
        status = struct_check(caller->struct_size, SIZE_THROUGH(strata_profiler, ranges),
                              "strata_profiler", err);
        if (status != STRATA_OK)
            return context_leave(c, status);
        struct_take(&known, sizeof known, caller, caller->struct_size);
    }
    status = context_settle(c, err);
    if (status == STRATA_OK && profiler && profiler->ranges &&
        !c->handle->device->ops->range_begin)
        status = error_set(err, STRATA_EUNSUPPORTED,
                           "device %s has no named ranges; profile without them",
                           c->handle->properties.name);
    if (status == STRATA_OK)
        status = context_watch(c, profiler, err);
    if (status != STRATA_OK)
        context_watch(c, NULL, NULL);
    return context_leave(c, status);
}
