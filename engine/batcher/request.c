/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests: made by any thread, finished by a worker, waited for by any thread, after the
 * batcher's end too.
 */
#include "engine/batcher/batcher.h"

#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"

strata_request *batcher_make_request(const strata_batcher *b,
                                     const strata_request_options *o, bool awaited,
                                     strata_error *err)
{
    const size_t n_in = b->engine->execution->n_inputs,
                 n = b->engine->execution->n_bindings;
    strata_request *r = zalloc(1, sizeof *r + n * sizeof(void *), "a request", err);
    if (!r)
        return NULL;
    r->inputs = (const void **)(r + 1);
    r->outputs = (void **)(r->inputs + n_in);
    memcpy(r->inputs, o->inputs, n_in * sizeof *r->inputs);
    memcpy(r->outputs, o->outputs, (n - n_in) * sizeof *r->outputs);
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
