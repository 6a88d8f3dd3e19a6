/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of a batcher.
 *
 *   batcher  creation, the threads, what is taken from the queue and when
 *   place    the engines it runs on, a device each
 *   worker   what a thread runs with
 *   queue    requests handed in
 *   run      requests that were taken, as one run or, if that fails, each alone
 *   request  one of them: made, finished, waited for
 */
#ifndef ENGINE_BATCHER_BATCHER_H
#define ENGINE_BATCHER_BATCHER_H

#include <semaphore.h>

#include <strata/batcher.h>

#include "engine/context/parts.h"

struct strata_request {
    strata_request *next;  /* in the queue, or in a run */
    int64_t rows, arrival; /* ns, monotonic */
    strata_done_fn done;
    void *user;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    bool complete, awaited; /* awaited: wait frees it, else its end */
    int status;
    char *message; /* of a failure; NULL: none, or no memory for it */
    strata_part part;
    strata_memory memory[]; /* the part's, inputs first */
};

/* Requests that run together, on a worker. */
struct run {
    strata_request *requests;
    int64_t rows;
    struct parts_run parts;
    int status;
    bool given_back; /* its requests are, as its device is lost */
    strata_error err;
};

/* An engine on its device, with workers of its own. All but the engine is guarded by the
 * batcher's lock. */
struct place {
    const strata_engine *engine;
    int running; /* workers with a run */
    bool lost;
    int64_t rows; /* done */
};

struct worker {
    strata_batcher *batcher;
    struct place *place;
    pthread_t thread;
    bool started;
    strata_handle *handle; /* made by the thread, as the next two */
    strata_context *context;
    struct parts_room room;
    bool ahead; /* its device runs by itself: it begins a run before it ends another */
    /* Posted when the thread is set up, which `given` tells the status of, and when a run
     * that the thread which submitted its request began is on the stream. */
    sem_t begun;
    bool idle;        /* guarded by the batcher's lock, as whether there is a given one */
    struct run given; /* by who submitted it */
};

struct strata_batcher {
    const strata_engine *engine; /* the first place's */
    struct place *places;
    int n_places;
    int64_t max_batch;
    uint64_t max_delay; /* ns */
    size_t max_waiting;
    int turns; /* STRATA_TURNS_* */
    struct worker *workers;
    int n_workers;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t changed;
    strata_request *first, **end; /* the queue: the oldest first, where the next goes */
    int64_t waiting_rows;
    bool stop;
    strata_batcher_stats stats;
    uint64_t *histogram; /* runs of 1 to max_batch rows */
};

/* place.c: what differs between engines that cannot share requests. */
int batcher_compare(const strata_engine *const *engines, int n, strata_error *err);
/* The next ones with the lock held. Whether a place runs nothing, other than `but`. */
bool batcher_has_idle(const strata_batcher *b, const struct place *but);
/* Wake the workers who can take what waits. */
void batcher_wake(strata_batcher *b);
/* A run's requests to the front of the queue, if it failed as its device is lost and
 * another one is left: they are the worker's no longer. Takes the lock. */
bool batcher_give_back(struct worker *w, struct run *r);
/* worker.c: on the worker's thread, handle, context and room; close takes what
 * there is. */
int batcher_open_worker(struct worker *w, strata_error *err);
void batcher_close_worker(struct worker *w);
/* run.c: put one on the stream; wait for it and count it; then finish its
 * requests. Its status may fail at each. */
void batcher_begin(struct worker *w, struct run *r);
void batcher_await(struct worker *w, struct run *r);
void batcher_end(struct worker *w, struct run *r);
/* queue.c: the clock of arrivals; ns, monotonic. */
int64_t batcher_now(void);
/* request.c: NULL without memory; the inputs and outputs of the options are pointed
 * at. */
strata_request *batcher_make_request(const strata_batcher *b,
                                     const strata_request_options *o, bool awaited,
                                     strata_error *err);
void batcher_free_request(strata_request *r);
/* Tell it to whoever waits; err's status is OK if it went well. The request is then
 * gone. */
void batcher_finish(strata_request *r, const strata_error *err);

#endif /* ENGINE_BATCHER_BATCHER_H */
