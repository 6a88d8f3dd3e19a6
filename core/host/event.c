/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of the host device: work on a stream that notes the time, or waits for that.
 */
#include "core/host/device.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

struct host_event {
    strata_event base;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t happened;
    uint64_t recorded, completed; /* number of records made, and reached */
    uint64_t waiting;             /* streams' waits that have not ended */
    struct timespec when;         /* of the last one reached */
};

static struct host_event *host_event(strata_event *e)
{
    return (struct host_event *)e;
}

struct wait_payload {
    struct host_event *event;
    uint64_t record;
};

static int wait_for_record(const struct wait_payload *w)
{
    pthread_mutex_lock(&w->event->lock);
    while (w->event->completed < w->record)
        pthread_cond_wait(&w->event->happened, &w->event->lock);
    pthread_mutex_unlock(&w->event->lock);
    return STRATA_OK;
}

static void end_wait(struct host_event *e)
{
    pthread_mutex_lock(&e->lock);
    e->waiting--;
    pthread_cond_broadcast(&e->happened);
    pthread_mutex_unlock(&e->lock);
}

static int wait_in_stream(void *payload, void *native, strata_error *err)
{
    const struct wait_payload *w = payload;
    (void)native;
    (void)err;
    int status = wait_for_record(w);
    end_wait(w->event);
    return status;
}

int host_stream_wait(strata_stream *s, strata_event *base, strata_error *err)
{
    struct wait_payload w = {.event = host_event(base)};
    pthread_mutex_lock(&w.event->lock);
    w.record = w.event->recorded;
    w.event->waiting++;
    pthread_mutex_unlock(&w.event->lock);
    int status = host_submit(s, wait_in_stream, &w, sizeof w, err);
    if (status != STRATA_OK)
        end_wait(w.event);
    return status;
}

static int reach_record(void *payload, void *native, strata_error *err)
{
    const struct wait_payload *w = payload;
    (void)native;
    (void)err;
    pthread_mutex_lock(&w->event->lock);
    clock_gettime(CLOCK_MONOTONIC, &w->event->when);
    if (w->event->completed < w->record)
        w->event->completed = w->record;
    pthread_cond_broadcast(&w->event->happened);
    pthread_mutex_unlock(&w->event->lock);
    return STRATA_OK;
}

int host_event_record(strata_event *base, strata_stream *s, strata_error *err)
{
    struct wait_payload w = {.event = host_event(base)};
    pthread_mutex_lock(&w.event->lock);
    w.record = ++w.event->recorded;
    pthread_mutex_unlock(&w.event->lock);
    if (host_stream_idle_run(s, reach_record, &w))
        return STRATA_OK;
    int status = host_submit(s, reach_record, &w, sizeof w, err);
    if (status != STRATA_OK) {
        pthread_mutex_lock(&w.event->lock);
        w.event->recorded--;
        pthread_mutex_unlock(&w.event->lock);
    }
    return status;
}

int host_event_create(struct device *d, strata_event **out, strata_error *err)
{
    struct host_event *e = zalloc(1, sizeof *e, "an event", err);
    if (!e)
        return STRATA_ENOMEM;
    e->base.device = d;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->happened, NULL);
    *out = &e->base;
    return STRATA_OK;
}

int host_event_synchronize(strata_event *base, strata_error *err)
{
    struct host_event *e = host_event(base);
    (void)err;
    pthread_mutex_lock(&e->lock);
    struct wait_payload w = {e, e->recorded};
    pthread_mutex_unlock(&e->lock);
    return wait_for_record(&w);
}

void host_event_destroy(strata_event *base)
{
    struct host_event *e = host_event(base);
    /* Records and waits that are still queued point here. */
    pthread_mutex_lock(&e->lock);
    while (e->completed < e->recorded || e->waiting > 0)
        pthread_cond_wait(&e->happened, &e->lock);
    pthread_mutex_unlock(&e->lock);
    pthread_cond_destroy(&e->happened);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static int event_time(struct timespec *out, struct host_event *e, strata_error *err)
{
    int status = STRATA_OK;
    pthread_mutex_lock(&e->lock);
    if (e->recorded == 0)
        status = error_set(err, STRATA_EINVAL, "event was never recorded");
    else if (e->completed < e->recorded)
        status = error_set(err, STRATA_EBUSY,
                           "event has not happened yet; synchronize with it first");
    *out = e->when;
    pthread_mutex_unlock(&e->lock);
    return status;
}

int host_event_elapsed(double *ms, strata_event *from, strata_event *to,
                       strata_error *err)
{
    struct timespec a, b;
    int status = event_time(&a, host_event(from), err);
    if (status == STRATA_OK)
        status = event_time(&b, host_event(to), err);
    if (status == STRATA_OK)
        *ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    return status;
}
