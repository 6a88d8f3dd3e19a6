/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the runs under way: the profiler is told of one that it watched.
 */
#include "engine/context/context.h"

#include <strata/state.h>

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

/* Whether the runs left the states in order. */
static int check_states(strata_context *whole, strata_error *err)
{
    strata_error own;
    error_clear(&own);
    const int status = context_check_counts(whole, &own);
    if (status == STRATA_OK)
        return status;
    if (status != STRATA_EOVERFLOW || !whole->starts_over || whole->runs < 2)
        return error_set(err, status, "%s", own.message);
    whole->runs = 0;
    return context_reset_states(whole, STRATA_ALL_ROWS, err);
}

int context_settle(strata_context *c, strata_error *err)
{
    strata_context *whole = c->whole;
    c->queued = whole->queued = false;
    int status = strata_stream_synchronize(c->stream, err);
    if (status != STRATA_OK)
        whole->lost = whole->execution->n_states > 0;
    else if (!whole->rehearses)
        status = check_states(whole, err);
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
