/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that drive the lanes. All warm up, meet, measure until the time and the runs
 * asked for are over, and end what is under way. A failure of one ends all.
 */
#include "tools/bench/bench.h"

#include <pthread.h>
#include <stdlib.h>

#include "planner/cost/busy.h"

struct crew {
    struct bench_run *run;
    pthread_mutex_t lock; /* guards the meeting */
    pthread_cond_t met;
    int64_t arrived;
    atomic_int failed;
    double start_ms; /* of the measurement, on the clock; written at the meeting */
};

struct driver {
    struct crew *crew;
    size_t first; /* drives lanes first, first + n_threads, ... */
    double end_ms;
    int status;
    strata_error err;
};

static void call_off(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    atomic_store(&crew->failed, 1);
    pthread_cond_broadcast(&crew->met);
    pthread_mutex_unlock(&crew->lock);
}

static bool fail(struct driver *d, int status)
{
    if (status == STRATA_OK)
        return false;
    d->status = status;
    call_off(d->crew);
    return true;
}

/* Until all have come, or one has failed. */
static void meet(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    if (++crew->arrived == crew->run->settings->base.threads) {
        crew->start_ms = bench_now_ms();
        pthread_cond_broadcast(&crew->met);
    }
    while (crew->arrived < crew->run->settings->base.threads &&
           !atomic_load(&crew->failed))
        pthread_cond_wait(&crew->met, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

typedef int lane_action(struct bench_lane *l, double start_ms, strata_error *err);

/* Whether it went well with each of the driver's lanes. */
static bool each_lane(struct driver *d, lane_action *action)
{
    const struct bench_run *r = d->crew->run;
    const size_t step = (size_t)r->settings->base.threads;
    for (size_t i = d->first; i < r->n_lanes; i += step)
        if (fail(d, action(&r->lanes[i], d->crew->start_ms, &d->err)))
            return false;
    return true;
}

/* Until `until` ms have gone by and every lane has begun so many runs. */
static bool drive(struct driver *d, double until, size_t runs)
{
    const struct bench_run *r = d->crew->run;
    const double begin = bench_now_ms();
    for (size_t i = d->first; i < r->n_lanes; i += (size_t)r->settings->base.threads)
        r->lanes[i].begun = 0;
    do {
        if (!each_lane(d, bench_lane_step))
            return false;
    } while (!atomic_load(&d->crew->failed) &&
             (bench_now_ms() - begin < until || r->lanes[d->first].begun < runs));
    return each_lane(d, bench_lane_drain);
}

static void *drive_lanes(void *arg)
{
    struct driver *d = arg;
    struct crew *crew = d->crew;
    const struct bench_options *o = &crew->run->settings->base;
    const size_t runs =
        ((size_t)o->iterations + crew->run->n_lanes - 1) / crew->run->n_lanes;
    const bool well = drive(d, (double)o->warmup * 1e-6, 1);
    meet(crew);
    if (!well || atomic_load(&crew->failed) || !each_lane(d, bench_lane_record))
        return NULL;
    drive(d, (double)o->duration * 1e-6, runs);
    d->end_ms = bench_now_ms() - crew->start_ms;
    return NULL;
}

static int report(const struct driver *drivers, int64_t n, struct bench_run *r,
                  strata_error *err)
{
    for (int64_t i = 0; i < n; i++) {
        if (drivers[i].status != STRATA_OK)
            return error_set(err, drivers[i].status, "%s", drivers[i].err.message);
        r->wall_ms = drivers[i].end_ms > r->wall_ms ? drivers[i].end_ms : r->wall_ms;
    }
    return STRATA_OK;
}

int bench_run(struct bench_run *r, strata_error *err)
{
    const int64_t n = r->settings->base.threads;
    struct crew crew = {.run = r};
    pthread_t *threads = zalloc((size_t)n, sizeof *threads, "threads", err);
    struct driver *drivers = zalloc((size_t)n, sizeof *drivers, "threads", err);
    int status = STRATA_ENOMEM;
    int64_t started = 1;
    if (!threads || !drivers)
        goto done;
    for (int64_t i = 0; i < n; i++)
        drivers[i] = (struct driver){.crew = &crew, .first = (size_t)i};
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.met, NULL);
    while (started < n &&
           pthread_create(&threads[started], NULL, drive_lanes, &drivers[started]) == 0)
        started++;
    if (started < n) {
        error_set(err, STRATA_ENOMEM, "cannot start thread %lld of %lld",
                  (long long)started + 1, (long long)n);
        call_off(&crew);
    } else {
        const struct busy_times before = busy_times();
        drive_lanes(&drivers[0]);
        r->waited = busy_share(before, busy_times());
        status = STRATA_OK;
    }
    for (int64_t i = 1; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_cond_destroy(&crew.met);
    pthread_mutex_destroy(&crew.lock);
    if (status == STRATA_OK)
        status = report(drivers, n, r, err);
done:
    free(threads);
    free(drivers);
    return status;
}
