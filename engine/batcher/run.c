/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that run together, as the parts of a run.
 */
#include "engine/batcher/batcher.h"

void batcher_begin(struct worker *w, struct run *r)
{
    error_clear(&r->err);
    parts_take_slot(&w->room, &r->parts);
    for (strata_request *one = r->requests; one; one = one->next)
        r->parts.parts[r->parts.n++] = &one->part;
    r->parts.rows = r->rows;
    r->status = parts_begin(&w->room, &r->parts, &r->err);
}

static void count(struct worker *w, const struct run *run)
{
    strata_batcher *b = w->batcher;
    const strata_request *r = run->requests;
    const bool failed = run->status != STRATA_OK;
    pthread_mutex_lock(&b->lock);
    b->stats.runs++;
    b->stats.padding += (uint64_t)(w->context->active->engine->batch - run->rows);
    b->histogram[run->rows - 1]++;
    b->stats.failed += failed && !r->next;
    /* Of a run that failed, requests that will be tried each alone are not done yet. */
    for (; r && (!failed || !r->next); r = r->next) {
        b->stats.requests++;
        b->stats.rows += (uint64_t)r->rows;
        w->place->rows += r->rows;
    }
    pthread_mutex_unlock(&b->lock);
}

/* In any case: requests' memory may be in use. */
void batcher_await(struct worker *w, struct run *r)
{
    strata_error why;
    const bool begun = r->status == STRATA_OK;
    int ended = strata_context_wait(w->context, begun ? &r->err : &why);
    r->status = begun ? ended : r->status;
    r->given_back = batcher_give_back(w, r);
    if (!r->given_back)
        count(w, r);
    if (r->status != STRATA_OK)
        parts_clear(&w->room);
}

static void finish(strata_request *requests, const strata_error *err)
{
    while (requests) {
        strata_request *r = requests;
        requests = r->next;
        batcher_finish(r, err);
    }
}

/* One that fails must not take the others with it, so they then run each alone. */
static void run_each(struct worker *w, strata_request *requests)
{
    while (requests) {
        struct run one = {.requests = requests, .rows = requests->rows};
        requests = requests->next;
        one.requests->next = NULL;
        batcher_begin(w, &one);
        batcher_await(w, &one);
        batcher_end(w, &one);
    }
}

void batcher_end(struct worker *w, struct run *r)
{
    if (r->status == STRATA_OK)
        parts_end(&w->room, &r->parts);
    if (r->given_back)
        return;
    if (r->status != STRATA_OK && r->requests->next)
        run_each(w, r->requests);
    else
        finish(r->requests, &r->err);
}
