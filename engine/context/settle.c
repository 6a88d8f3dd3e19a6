/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the runs under way: states that count positions are looked at, and the
 * profiler is told of a run that it watched.
 */
#include "engine/context/context.h"

/* The runs under way have ended, with a status, which is handed on: tell the profiler. */
static int report(strata_context *c, int status, strata_error *err)
{
    struct context_profile *p = c->profile;
    const bool tell = p->pending && p->caller.step && status == STRATA_OK;
    double begin = 0, end = 0;
    p->pending = false;
    for (size_t s = 0; s < c->execution->n_steps && tell; s++) {
        if (!context_step_enqueues(c, s))
            continue;
        status = strata_event_elapsed(&end, p->events[0], p->events[s + 1], err);
        if (status != STRATA_OK)
            return status;
        p->caller.step(p->caller.user, c->engine, (int)s, begin * 1e3,
                       (end - begin) * 1e3);
        begin = end;
    }
    return status;
}

/* By the caller itself where it can, which has just computed the run. */
static int copy_counts(strata_context *whole, strata_error *err)
{
    if (whole->rehearses)
        whole->counted = false;
    if (!whole->counted)
        return STRATA_OK;
    context_visit(whole, 1);
    const int status = context_copy_counts(whole, err);
    context_end_visit(whole);
    return status;
}

/* A run that failed is told, and not what of its counts could not be copied then. */
int context_settle(strata_context *c, strata_error *err)
{
    strata_context *whole = c->whole;
    strata_error own;
    error_clear(&own);
    c->queued = whole->queued = false;
    const int copied = copy_counts(whole, &own);
    int status = strata_stream_synchronize(c->stream, err);
    if (status != STRATA_OK)
        whole->lost = whole->execution->n_states > 0;
    else if (copied != STRATA_OK)
        status = error_set(err, copied, "%s", own.message);
    else
        status = context_check_counts(whole, err);
    whole->counted = false;
    if (whole->profile)
        status = report(whole, status, err);
    for (size_t i = 0; i < whole->n_smaller; i++) {
        whole->smaller[i]->queued = false;
        if (whole->smaller[i]->profile)
            status = report(whole->smaller[i], status, err);
    }
    return status;
}
