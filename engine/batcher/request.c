/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: made by any thread, finished by a worker, waited for by any thread, after the
 * batcher's end too.
 */
#include "engine/batcher/batcher.h"

#include <stdlib.h>

#include "core/arguments.h"

strata_request *batcher_make_request(const strata_batcher *b,
                                     const strata_request_options *o, bool awaited,
                                     strata_error *err)
{
    const size_t n_in = b->engine->execution->n_inputs,
                 n = b->engine->execution->n_bindings;
    strata_request *r = zalloc(1, sizeof *r + n * sizeof *r->memory, "a request", err);
    if (!r)
        return NULL;
    for (size_t i = 0; i < n; i++)
        r->memory[i] = (strata_memory){
            .data = i < n_in ? (void *)(uintptr_t)o->inputs[i] : o->outputs[i - n_in],
            .bytes = engine_bytes_of_rows(b->engine, i, o->rows)};
    r->part = (strata_part){.struct_size = sizeof r->part,
                            .rows = o->rows,
                            .inputs = r->memory,
                            .outputs = r->memory + n_in};
    r->rows = o->rows;
    r->done = o->done;
    r->user = o->user;
    r->awaited = awaited;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    return r;
}

void batcher_free_request(strata_request *r)
{
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r->message);
    free(r);
}

void batcher_finish(strata_request *r, const strata_error *err)
{
    if (r->done)
        r->done(r->user, err);
    if (!r->awaited) {
        batcher_free_request(r);
        return;
    }
    pthread_mutex_lock(&r->lock);
    r->status = err->status;
    r->message = err->status != STRATA_OK ? duplicate(err->message, NULL) : NULL;
    r->complete = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
}

int strata_request_wait(strata_request *r, strata_error *err)
{
    int status = ARGUMENTS(err, {"request", r});
    if (status != STRATA_OK)
        return status;
    pthread_mutex_lock(&r->lock);
    while (!r->complete)
        pthread_cond_wait(&r->changed, &r->lock);
    status = r->status;
    pthread_mutex_unlock(&r->lock);
    if (status != STRATA_OK)
        error_set(err, status, "%s",
                  r->message ? r->message : strata_status_text(status));
    batcher_free_request(r);
    return status;
}
