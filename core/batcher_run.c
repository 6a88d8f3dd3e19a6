/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that run together: each one's rows go straight to their place in the bindings
 * and back. All of it is put on the stream at once.
 */
#include "core/batcher.h"

#include <string.h>

struct rows {
    int64_t first, n;
};

/* A request's rows of one binding, in or out; on the host, at once. */
static int copy_rows(struct worker *w, const strata_request *r, size_t index,
                     struct rows rows, strata_error *err)
{
    const strata_engine *e = w->context->engine;
    const struct device_ops *ops = w->handle->device->ops;
    const struct engine_binding *b = &e->bindings[index];
    const bool whole = b->row_bytes == 0;
    const size_t bytes =
        (size_t)(whole ? e->values[b->value].bytes : b->row_bytes * rows.n);
    char *data = w->data[index] + (whole ? 0 : b->row_bytes * rows.first);
    void *to = b->is_input ? data : r->outputs[index - e->n_inputs];
    if (!to)
        return STRATA_OK; /* an output that is not wanted */
    const void *from = b->is_input ? r->inputs[index] : data;
    if (w->handle->properties.kind != STRATA_HOST)
        return ops->copy(w->context->stream, to, from, bytes,
                         b->is_input ? COPY_TO_DEVICE : COPY_FROM_DEVICE, err);
    memcpy(to, from, bytes);
    return STRATA_OK;
}

/* Bindings from first to before end of all the requests. */
struct copies {
    struct worker *worker;
    const strata_request *requests;
    size_t first, end;
};

static int copy_all(void *payload, void *native, strata_error *err)
{
    const struct copies *c = payload;
    int status = STRATA_OK;
    struct rows rows = {0};
    (void)native;
    for (const strata_request *r = c->requests; r; r = r->next) {
        rows.n = r->rows;
        for (size_t i = c->first; i < c->end && status == STRATA_OK; i++)
            status = copy_rows(c->worker, r, i, rows, err);
        rows.first += rows.n;
    }
    return status;
}

/* One piece of work on the stream, of however many copies. */
static int enqueue_copies(struct worker *w, const strata_request *requests, size_t first,
                          size_t end, strata_error *err)
{
    struct copies c = {w, requests, first, end};
    return w->handle->device->ops->submit(w->context->stream, copy_all, &c, sizeof c,
                                          err);
}

static int run(struct worker *w, const strata_request *requests, int64_t rows,
               strata_error *err)
{
    const strata_engine *e = w->context->engine;
    int status = strata_context_set_batch(w->context, rows, err);
    if (status == STRATA_OK)
        status = enqueue_copies(w, requests, 0, e->n_inputs, err);
    if (status == STRATA_OK)
        status = strata_context_enqueue(w->context, NULL, err);
    if (status == STRATA_OK)
        status = enqueue_copies(w, requests, e->n_inputs, e->n_bindings, err);
    /* In any case: requests' memory may be in use. */
    strata_error why;
    int ended = strata_context_wait(w->context, status == STRATA_OK ? err : &why);
    return status != STRATA_OK ? status : ended;
}

/* What a request that failed left in the inputs must not fail a later one that is shorter
 * than the batch it is run at. */
static void clear_inputs(struct worker *w)
{
    const strata_engine *e = w->context->engine;
    for (size_t i = 0; i < e->n_inputs; i++) {
        const size_t bytes = (size_t)e->values[e->bindings[i].value].bytes;
        w->handle->device->ops->fill(w->context->stream, w->data[i], 0, bytes, NULL);
    }
}

static void count(struct worker *w, const strata_request *r, int64_t rows, int status)
{
    strata_batcher *b = w->batcher;
    pthread_mutex_lock(&b->lock);
    b->stats.runs++;
    b->stats.padding += (uint64_t)(w->context->active->engine->batch - rows);
    b->histogram[rows - 1]++;
    b->stats.failed += status != STRATA_OK && !r->next;
    /* Of a run that failed, requests that will be tried each alone are not done yet. */
    for (; r && (status == STRATA_OK || !r->next); r = r->next) {
        b->stats.requests++;
        b->stats.rows += (uint64_t)r->rows;
    }
    pthread_mutex_unlock(&b->lock);
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
void batcher_run(struct worker *w, strata_request *requests, int64_t rows)
{
    int status = run(w, requests, rows, &w->err);
    bool apart = status != STRATA_OK && requests->next;
    count(w, requests, rows, status);
    if (status != STRATA_OK)
        clear_inputs(w);
    if (!apart) {
        finish(requests, &w->err);
        return;
    }
    while (requests) {
        strata_request *r = requests;
        requests = r->next;
        r->next = NULL;
        batcher_run(w, r, r->rows);
    }
}
