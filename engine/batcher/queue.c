/* SPDX-License-Identifier: Apache-2.0
 *
 * The queue: requests handed in by any thread, to wait or to go to an idle worker.
 */
#include "engine/batcher/batcher.h"

#include <inttypes.h>
#include <time.h>

#include "core/arguments.h"

static int check_request(const strata_batcher *b, const strata_request_options *o,
                         strata_error *err)
{
    int status = struct_check(o->struct_size, sizeof *o, "strata_request_options", err);
    if (status != STRATA_OK)
        return status;
    if (o->rows < 1 || o->rows > b->max_batch)
        return error_set(err, STRATA_EINVAL,
                         "a request of %" PRId64 " rows; the batcher takes 1 to %" PRId64,
                         o->rows, b->max_batch);
    if (!o->inputs || !o->outputs)
        return error_set(err, STRATA_EINVAL, "a request needs inputs and outputs");
    for (size_t i = 0; i < b->engine->execution->n_inputs; i++)
        if (!o->inputs[i])
            return error_set(err, STRATA_EINVAL, "a request needs input '%s'",
                             b->engine->execution->bindings[i].name);
    return STRATA_OK;
}

/* Wakes a worker if there is reason to: nothing runs, a batch is full, or nobody watches
 * over a delay yet. Called, as the next one, with the lock held. */
static void append(strata_batcher *b, strata_request *r)
{
    const bool first = !b->first;
    r->arrival = batcher_now();
    *b->end = r;
    b->end = &r->next;
    b->stats.waiting++;
    b->waiting_rows += r->rows;
    if (first || b->waiting_rows >= b->max_batch || batcher_has_idle(b, NULL))
        batcher_wake(b);
}

/* The worker that a request goes to at once, or NULL: its device does not run by itself,
 * or is busy. */
static struct worker *give(strata_batcher *b, strata_request *r)
{
    struct worker *w = b->workers;
    if (b->first || b->engine->handle->device->ops->stream_run_here)
        return NULL;
    while (w < b->workers + b->n_workers &&
           !(w->idle && w->place->running == 0 && !w->place->lost))
        w++;
    if (w == b->workers + b->n_workers)
        return NULL;
    w->idle = false;
    w->given.requests = r;
    w->given.rows = r->rows;
    w->place->running++;
    b->stats.idle++;
    pthread_cond_broadcast(&b->changed); /* it wakes while the run is begun for it */
    return w;
}

static int put(strata_batcher *b, strata_request *r, strata_error *err)
{
    struct worker *w = NULL;
    int status = STRATA_OK;
    pthread_mutex_lock(&b->lock);
    if (b->stats.waiting >= b->max_waiting)
        status =
            error_set(err, STRATA_EBUSY, "%zu requests wait already; hand it in later",
                      (size_t)b->stats.waiting);
    else if (!(w = give(b, r)))
        append(b, r);
    pthread_mutex_unlock(&b->lock);
    if (w) {
        batcher_begin(w, &w->given);
        sem_post(&w->begun);
    }
    return status;
}

int64_t batcher_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int strata_batcher_submit(strata_batcher *b, strata_request **out,
                          const strata_request_options *o, strata_error *err)
{
    int status = ARGUMENTS(err, {"batcher", b}, {"options", o});
    if (out)
        *out = NULL;
    if (status == STRATA_OK)
        status = check_request(b, o, err);
    if (status != STRATA_OK)
        return status;
    strata_request *r = batcher_make_request(b, o, out != NULL, err);
    if (!r)
        return STRATA_ENOMEM;
    if (out) /* before a callback can be called that looks at it */
        *out = r;
    if ((status = put(b, r, err)) != STRATA_OK) {
        if (out)
            *out = NULL;
        batcher_free_request(r);
    }
    return status;
}

int strata_batcher_run(strata_batcher *b, const strata_request_options *o,
                       strata_error *err)
{
    strata_request *r;
    int status = ARGUMENTS(err, {"batcher", b}, {"options", o});
    if (status == STRATA_OK)
        status = strata_batcher_submit(b, &r, o, err);
    return status != STRATA_OK ? status : strata_request_wait(r, err);
}
