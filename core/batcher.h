/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a batcher.
 *
 *   batcher        creation, the threads, what is taken from the queue and when
 *   batcher_run    requests that were taken, as one run or, if that fails, each alone
 *   batcher_queue  requests: made, handed in, waited for
 */
#ifndef CORE_BATCHER_H
#define CORE_BATCHER_H

#include <strata/batcher.h>

#include "core/context.h"

struct strata_request {
    strata_request *next;  /* in the queue, or in a run */
    int64_t rows, arrival; /* ns, monotonic */
    strata_done_fn done;
    void *user;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    bool complete, awaited; /* awaited: wait frees it, else its end */
    int status;
    char *message;       /* of a failure; NULL: none, or no memory for it */
    const void **inputs; /* with outputs, behind the request */
    void **outputs;
};

struct worker {
    strata_batcher *batcher;
    pthread_t thread;
    bool started;
    strata_handle *handle;
    strata_context *context;
    char **data; /* of the bindings */
    strata_error err;
};

struct strata_batcher {
    const strata_engine *engine;
    int64_t max_batch;
    uint64_t max_delay; /* ns */
    size_t max_waiting;
    struct worker *workers;
    int n_workers;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    strata_request *first, **end; /* the queue: the oldest first, where the next goes */
    int64_t waiting_rows;
    int running; /* workers with a run */
    bool stop;
    strata_batcher_stats stats;
    uint64_t *histogram; /* runs of 1 to max_batch rows */
};

int64_t batcher_now(void); /* ns, monotonic */
/* batcher_run.c: run and finish them. */
void batcher_run(struct worker *w, strata_request *requests, int64_t rows);
/* batcher_queue.c: tell it to whoever waits; err's status is OK if it went well. The
 * request is then gone. */
void batcher_finish(strata_request *r, const strata_error *err);

#endif /* CORE_BATCHER_H */
