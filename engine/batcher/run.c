/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that run together: each one's rows go to their place in the bindings and back,
 * straight or with all others' in one copy. All of it is put on the stream at once.
 */
#include "engine/batcher/batcher.h"

#include <string.h>

static void *memory_of(const struct worker *w, const strata_request *r, size_t index)
{
    const size_t n_in = w->context->execution->n_inputs;
    return index < n_in ? (void *)(uintptr_t)r->inputs[index] : r->outputs[index - n_in];
}

static char *staged_at(const struct worker *w, const struct run *r, size_t index)
{
    return w->ports[index].staged + r->slot * w->ports[index].staged_bytes;
}

/* Rows of all requests between their memory and the staged. */
static void move_staged(const struct worker *w, const struct run *run, size_t index)
{
    const struct execution_binding *b = &w->context->execution->bindings[index];
    const int64_t row_bytes = w->context->engine->row_bytes[index];
    char *staged = staged_at(w, run, index);
    for (const strata_request *r = run->requests; r; r = r->next) {
        const size_t bytes = (size_t)(row_bytes * r->rows);
        char *theirs = memory_of(w, r, index);
        if (theirs) /* else an output that is not wanted */
            memcpy(b->is_input ? staged : theirs, b->is_input ? theirs : staged, bytes);
        staged += bytes;
    }
}

/* On the stream; on the host at once, where nothing is under way. */
static int copy(struct worker *w, const struct execution_binding *b, char *data,
                char *host, size_t bytes, strata_error *err)
{
    void *to = b->is_input ? data : host;
    const void *from = b->is_input ? host : data;
    if (w->handle->properties.kind != STRATA_HOST)
        return w->handle->device->ops->copy(
            w->context->stream, to, from, bytes,
            b->is_input ? COPY_TO_DEVICE : COPY_FROM_DEVICE, err);
    memcpy(to, from, bytes);
    return STRATA_OK;
}

/* A binding of all the requests. */
static int copy_binding(struct worker *w, struct run *run, size_t index)
{
    const struct execution *x = w->context->execution;
    const struct execution_binding *b = &x->bindings[index];
    const struct port *p = &w->ports[index];
    const int64_t row_bytes = w->context->engine->row_bytes[index];
    const bool whole = row_bytes == 0;
    char *data = p->data;
    int status = STRATA_OK;
    if (p->staged) {
        if (b->is_input)
            move_staged(w, run, index);
        return copy(w, b, data, staged_at(w, run, index), (size_t)(row_bytes * run->rows),
                    &run->err);
    }
    for (const strata_request *r = run->requests; r && !status; r = r->next) {
        const int64_t bytes = whole ? x->values[b->value].bytes : row_bytes * r->rows;
        char *theirs = memory_of(w, r, index);
        if (theirs)
            status = copy(w, b, data, theirs, (size_t)bytes, &run->err);
        data += whole ? 0 : bytes;
    }
    return status;
}

void batcher_begin(struct worker *w, struct run *r)
{
    const struct execution *x = w->context->execution;
    r->slot = w->last_slot = !w->last_slot;
    int status = strata_context_set_batch(w->context, r->rows, &r->err);
    for (size_t i = 0; i < x->n_inputs && status == STRATA_OK; i++)
        status = copy_binding(w, r, i);
    if (status == STRATA_OK)
        status = strata_context_enqueue(w->context, NULL, &r->err);
    if (status == STRATA_OK && !w->ahead) /* a crew may compute beside this thread */
        status = strata_context_wait(w->context, &r->err);
    for (size_t i = x->n_inputs; i < x->n_bindings && status == STRATA_OK; i++)
        status = copy_binding(w, r, i);
    r->status = status;
}

/* What a request that failed left in the inputs must not fail a later one that is shorter
 * than the batch it is run at. */
static void clear_inputs(struct worker *w)
{
    const struct execution *x = w->context->execution;
    for (size_t i = 0; i < x->n_inputs; i++) {
        const size_t bytes = (size_t)x->values[x->bindings[i].value].bytes;
        w->handle->device->ops->fill(w->context->stream, w->ports[i].data, 0, bytes,
                                     NULL);
    }
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
    count(w, r);
    if (r->status != STRATA_OK)
        clear_inputs(w);
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
    const struct execution *x = w->context->execution;
    for (size_t i = x->n_inputs; i < x->n_bindings && r->status == STRATA_OK; i++)
        if (w->ports[i].staged)
            move_staged(w, r, i);
    if (r->status != STRATA_OK && r->requests->next)
        run_each(w, r->requests);
    else
        finish(r->requests, &r->err);
}
