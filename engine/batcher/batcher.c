/* SPDX-License-Identifier: Apache-2.0
 *
 * A batcher: a queue and a few threads, each with a context. A thread that finds requests
 * takes them at once if no other is running; else it lets them gather until they fill a
 * batch or the oldest has waited long enough. A request that finds nothing running does
 * not wait for a thread to wake: who submits it puts it on an idle one's stream, if the
 * device has queues of its own. On the host the threads compute themselves.
 */
#include "engine/batcher/batcher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/arguments.h"

#define MAX_CONTEXTS 64
#define MAX_PLACES 64

/* ---- what goes when -------------------------------------------------------------- */

/* The counter of what lets the waiting requests go now, or NULL. Called, as the next
 * ones, with the lock held. */
static uint64_t *cause(strata_batcher *b, const struct place *p)
{
    if (b->waiting_rows >= b->max_batch)
        return &b->stats.full;
    if (p->running == 0 || b->stop)
        return &b->stats.idle;
    if (batcher_has_idle(b, p)) /* it takes them */
        return NULL;
    return batcher_now() - b->first->arrival >= (int64_t)b->max_delay ? &b->stats.late
                                                                      : NULL;
}

static void wait_for_oldest(strata_batcher *b)
{
    const uint64_t until = (uint64_t)b->first->arrival + b->max_delay;
    const struct timespec t = {.tv_sec = (time_t)(until / 1000000000),
                               .tv_nsec = (long)(until % 1000000000)};
    pthread_cond_timedwait(&b->changed, &b->lock, &t);
}

/* The engine inside that so many rows are run by, or, with `down`, the largest that they
 * fill; then NULL if they fill none. */
static const strata_engine *engine_of(const strata_engine *e, int64_t rows, bool down)
{
    const strata_engine *found = down ? NULL : e;
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    memcpy(sizes, e->sizes, sizeof sizes);
    for (size_t i = 0; i <= e->n_smaller; i++) {
        const strata_engine *one = engine_plan(e, i);
        if (e->batch_symbol >= 0)
            sizes[e->batch_symbol] = one->batch;
        if (!engine_has_sizes(one, sizes)) /* requests have the largest of the others */
            continue;
        if (down && one->batch <= rows)
            found = one;
        else if (!down && one->batch >= rows)
            return one;
    }
    return found;
}

/* Rows of the oldest requests, at most so many. */
static int64_t rows_within(const strata_batcher *b, int64_t most)
{
    int64_t rows = 0;
    for (const strata_request *r = b->first; r && rows + r->rows <= most; r = r->next)
        rows += r->rows;
    return rows;
}

/* All that wait, or fewer that are a batch by themselves where the plans' costs say that
 * so more rows are computed in the same time: then the others are better off too. */
static int64_t rows_to_take(const strata_batcher *b, const strata_engine *e)
{
    const int64_t all = rows_within(b, b->max_batch);
    const strata_engine *whole = engine_of(e, all, false),
                        *filled = engine_of(e, all, true);
    if (!filled || filled == whole || rows_within(b, filled->batch) < filled->batch)
        return all;
    return (double)filled->batch * (double)whole->execution->cost >
                   (double)all * (double)filled->execution->cost
               ? filled->batch
               : all;
}

/* Of the oldest. */
static void take(strata_batcher *b, struct place *p, struct run *out)
{
    const int64_t most = rows_to_take(b, p->engine);
    strata_request **last = &b->first;
    out->requests = b->first;
    out->rows = 0;
    while (*last && out->rows + (*last)->rows <= most) {
        out->rows += (*last)->rows;
        b->stats.waiting--;
        last = &(*last)->next;
    }
    b->first = *last;
    *last = NULL;
    if (!b->first)
        b->end = &b->first;
    b->waiting_rows -= out->rows;
    p->running++;
    if (b->first) /* there is more: another may take it, or watch over its delay */
        batcher_wake(b);
}

/* Whether a run may go now: it then is out. */
static bool take_now(strata_batcher *b, struct place *p, struct run *out)
{
    uint64_t *why = b->first && !p->lost ? cause(b, p) : NULL;
    if (!why)
        return false;
    ++*why;
    take(b, p, out);
    return true;
}

/* Waits for a run, which out is unless it was given; false when the batcher ends, or the
 * worker's device is lost. */
static bool next_run(struct worker *w, struct run *out)
{
    strata_batcher *b = w->batcher;
    w->idle = true;
    while (!w->given.requests && !take_now(b, w->place, out)) {
        if (w->place->lost) {
            w->idle = false;
            return false;
        }
        if (b->first && !batcher_has_idle(b, w->place))
            wait_for_oldest(b);
        else if (b->stop && !b->first)
            return false;
        else
            pthread_cond_wait(&b->changed, &b->lock);
    }
    w->idle = false;
    return true;
}

static void await_begun(struct worker *w)
{
    while (sem_wait(&w->begun) != 0) /* interrupted */
        ;
}

static void begin(struct worker *w, struct run *r)
{
    if (!w->given.requests) {
        batcher_begin(w, r);
        return;
    }
    await_begun(w);
    *r = w->given;
    w->given.requests = NULL;
}

/* A run is over, so another may go: this worker's own next one, or others'. */
static bool move_on(struct worker *w, const struct run *over, struct run *next)
{
    strata_batcher *b = w->batcher;
    pthread_mutex_lock(&b->lock);
    w->place->running--;
    const bool more =
        w->ahead && over->status == STRATA_OK && take_now(b, w->place, next);
    if (w->place->running == 0 && b->first)
        batcher_wake(b);
    pthread_mutex_unlock(&b->lock);
    return more;
}

/* Runs, one behind the other as long as some are ready. Those of a device that runs by
 * itself begin before the requests of the one before are finished. */
static void run_on(struct worker *w, struct run runs[2])
{
    int now = 0;
    for (bool more = true; more; now = !now) {
        batcher_await(w, &runs[now]);
        more = move_on(w, &runs[now], &runs[!now]);
        if (more)
            batcher_begin(w, &runs[!now]);
        batcher_end(w, &runs[now]);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    strata_batcher *b = w->batcher;
    struct run runs[2];
    w->given.status = batcher_open_worker(w, &w->given.err);
    const bool failed = w->given.status != STRATA_OK;
    sem_post(&w->begun); /* from now on another thread may use the worker */
    if (failed)
        return NULL;
    pthread_mutex_lock(&b->lock);
    while (next_run(w, &runs[0])) {
        pthread_mutex_unlock(&b->lock);
        begin(w, &runs[0]);
        run_on(w, runs);
        pthread_mutex_lock(&b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* ---- creation -------------------------------------------------------------------- */

static int check_engine(const strata_engine *e, strata_error *err)
{
    if (e->only_batch && e->batch != 1)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s: requests cannot share a batch of %" PRId64 ": %s",
                         e->network->path, e->batch, e->only_batch);
    if (e->execution->n_states)
        return error_set(err, STRATA_EUNSUPPORTED,
                         "%s: requests cannot share a batch: the rows of its states are "
                         "sequences, and a request does not say which is its own",
                         e->network->path);
    for (size_t i = 0; i < e->execution->n_inputs && !e->only_batch; i++)
        if (!e->row_bytes[i])
            return error_set(err, STRATA_EUNSUPPORTED,
                             "%s: requests cannot share input '%s': it has no rows of "
                             "the batch",
                             e->network->path, e->execution->bindings[i].name);
    return STRATA_OK;
}

/* Options of an older or newer application: what it does not know is zero. */
static int read_options(strata_batcher_options *out, const strata_batcher_options *from,
                        strata_error *err)
{
    *out = (strata_batcher_options){.struct_size = sizeof *out};
    if (!from)
        return STRATA_OK;
    const int status =
        struct_check(from->struct_size, SIZE_THROUGH(strata_batcher_options, max_waiting),
                     "strata_batcher_options", err);
    if (status == STRATA_OK)
        struct_take(out, sizeof *out, from, from->struct_size);
    return status;
}

static int check_options(const strata_batcher_options *o, const strata_engine *e,
                         strata_error *err)
{
    if (o->max_batch < 0 || o->max_batch > e->batch)
        return error_set(err, STRATA_EINVAL,
                         "max_batch is %" PRId64 "; the engine takes 1 to %" PRId64,
                         o->max_batch, e->batch);
    if (o->contexts < 0 || o->contexts > MAX_CONTEXTS)
        return error_set(err, STRATA_EINVAL, "%d contexts; 1 to %d are allowed",
                         o->contexts, MAX_CONTEXTS);
    if (o->max_delay_ns > INT64_MAX / 4)
        return error_set(err, STRATA_EINVAL, "max_delay_ns is %" PRIu64 "; at most %lld",
                         o->max_delay_ns, (long long)(INT64_MAX / 4));
    if (o->turns < STRATA_TURNS_OFF || o->turns > STRATA_TURNS_ON)
        return error_set(err, STRATA_EINVAL, "turns is %d: set STRATA_TURNS_*", o->turns);
    return check_engine(e, err);
}

static int init_lock(strata_batcher *b, strata_error *err)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return error_no_memory(err, 0, "a batcher's lock");
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(&b->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&b->lock, NULL);
    return failed ? error_no_memory(err, 0, "a batcher's lock") : STRATA_OK;
}

static int start_worker(struct worker *w, strata_error *err)
{
    if (pthread_create(&w->thread, NULL, work, w) != 0)
        return error_set(err, STRATA_ENOMEM, "cannot start a batcher's thread");
    w->started = true;
    await_begun(w);
    const struct run *r = &w->given;
    return r->status == STRATA_OK ? STRATA_OK
                                  : error_set(err, r->status, "%s", r->err.message);
}

/* Workers deal themselves to the places, so that each has one before any has two. */
static int start(strata_batcher *b, const strata_batcher_options *o, strata_error *err)
{
    const int usual = b->engine->handle->properties.kind == STRATA_HOST ? 1 : 2;
    const int n = b->n_places * (o->contexts ? o->contexts : usual);
    b->max_batch = o->max_batch ? o->max_batch : b->engine->batch;
    b->max_delay = o->max_delay_ns;
    b->max_waiting = o->max_waiting ? o->max_waiting : SIZE_MAX;
    b->turns = o->turns;
    b->end = &b->first;
    b->histogram =
        zalloc((size_t)b->max_batch, sizeof *b->histogram, "a batcher's histogram", err);
    b->workers = zalloc((size_t)n, sizeof *b->workers, "a batcher's workers", err);
    int status = b->histogram && b->workers ? STRATA_OK : STRATA_ENOMEM;
    for (int i = 0; i < n && status == STRATA_OK; i++) {
        struct worker *w = &b->workers[b->n_workers++];
        w->batcher = b;
        w->place = &b->places[i % b->n_places];
        sem_init(&w->begun, 0, 0);
        status = start_worker(w, err);
    }
    return status;
}

static int make_places(strata_batcher *b, const strata_engine *const *engines, int n,
                       strata_error *err)
{
    b->engine = engines[0];
    b->n_places = n;
    b->places = zalloc((size_t)n, sizeof *b->places, "a batcher's engines", err);
    for (int i = 0; b->places && i < n; i++)
        b->places[i].engine = engines[i];
    return b->places ? STRATA_OK : STRATA_ENOMEM;
}

static int create(strata_batcher **out, const strata_engine *const *engines, int n,
                  const strata_batcher_options *o, strata_error *err)
{
    strata_batcher *b = zalloc(1, sizeof *b, "a batcher", err);
    if (!b)
        return STRATA_ENOMEM;
    int status = make_places(b, engines, n, err);
    if (status == STRATA_OK)
        status = init_lock(b, err);
    if (status != STRATA_OK) {
        free(b->places);
        free(b);
        return status;
    }
    status = start(b, o, err);
    if (status != STRATA_OK)
        strata_batcher_destroy(b);
    else
        *out = b;
    return status;
}

int strata_batcher_create_over(strata_batcher **out, const strata_engine *const *engines,
                               int n, const strata_batcher_options *options,
                               strata_error *err)
{
    strata_batcher_options o;
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"engines", engines});
    if (status == STRATA_OK)
        status = read_options(&o, options, err);
    if (status != STRATA_OK)
        return status;
    if (n < 1 || n > MAX_PLACES)
        return error_set(err, STRATA_EINVAL, "%d engines; 1 to %d are allowed", n,
                         MAX_PLACES);
    status = batcher_compare(engines, n, err);
    for (int i = 0; i < n && status == STRATA_OK; i++)
        status = check_options(&o, engines[i], err);
    return status == STRATA_OK ? create(out, engines, n, &o, err) : status;
}

int strata_batcher_create(strata_batcher **out, const strata_engine *engine,
                          const strata_batcher_options *options, strata_error *err)
{
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"engine", engine});
    return status == STRATA_OK ? strata_batcher_create_over(out, &engine, 1, options, err)
                               : status;
}

void strata_batcher_destroy(strata_batcher *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&b->lock);
    for (int i = 0; i < b->n_workers; i++)
        if (b->workers[i].started)
            pthread_join(b->workers[i].thread, NULL);
    for (int i = 0; i < b->n_workers; i++)
        batcher_close_worker(&b->workers[i]);
    free(b->workers);
    free(b->places);
    free(b->histogram);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* ---- statistics -------------------------------------------------------------------- */

void strata_batcher_get_stats(strata_batcher *b, strata_batcher_stats *out)
{
    if (!b || !out)
        return;
    pthread_mutex_lock(&b->lock);
    *out = b->stats;
    pthread_mutex_unlock(&b->lock);
}

int64_t strata_batcher_histogram(strata_batcher *b, uint64_t *out, int64_t n)
{
    if (!b)
        return 0;
    pthread_mutex_lock(&b->lock);
    for (int64_t i = 0; out && i < n && i < b->max_batch; i++)
        out[i] = b->histogram[i];
    pthread_mutex_unlock(&b->lock);
    return b->max_batch;
}
