/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of the host device: a queue of work and one thread that runs it in order. The
 * thread starts with the first work, so an unused stream costs nothing. Runs of several
 * threads, from their begin to their end in the queue, go to a crew: its thread takes
 * from the queue meanwhile, and nobody else. A stream may also run work where it is
 * handed in, always or while a thread visits it that would only wait: nothing is in the
 * queue then.
 */
#include "core/host/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/crew.h"

struct work {
    device_work run;
    _Alignas(16) unsigned char payload[DEVICE_PAYLOAD];
};

struct host_stream {
    strata_stream base;
    pthread_mutex_t lock;        /* guards everything below */
    pthread_cond_t arrived;      /* work for the stream's thread */
    pthread_cond_t crew_arrived; /* work of the run that a crew computes */
    pthread_cond_t changed;      /* the queue ran empty */
    pthread_t thread;
    struct work *queue; /* ring */
    size_t capacity, head, length;
    bool started, busy, stop;
    bool open;   /* a run has begun and not ended; the ring has room for its end */
    bool crewed; /* the queue is a crew's, which is or will be on a run */
    strata_error failure; /* the first since the last synchronize */
    bool here;            /* set before the first work: it needs no thread */
    bool visited;         /* by one that does its own work; busy meanwhile */
    bool run_visit;       /* from run_begin to run_end */
    bool leads;           /* the visitor leads a team */
    pthread_t visitor;
    struct crew_job job; /* the run at the head, while crewed */
};

/* In the queue a run is between these two. */
struct begin_payload {
    int threads, wait;
};

static int begin_run(void *payload, void *native, strata_error *err)
{
    (void)payload;
    (void)native;
    (void)err;
    return STRATA_OK;
}

static int end_run(void *payload, void *native, strata_error *err)
{
    return begin_run(payload, native, err);
}

static struct host_stream *host_stream(strata_stream *s)
{
    return (struct host_stream *)s;
}

/* ---- taking work; the lock is held ------------------------------------------------ */

/* Copies the work out so that the ring may move while it runs. */
static void take_work(struct host_stream *s, struct work *out)
{
    *out = s->queue[s->head];
    s->head = (s->head + 1) % s->capacity;
    s->length--;
    s->busy = true;
}

static void work_done(struct host_stream *s)
{
    s->busy = false;
    if (s->length == 0)
        pthread_cond_broadcast(&s->changed);
}

static const struct begin_payload *run_at_head(const struct host_stream *s)
{
    const struct work *w = &s->queue[s->head];
    return s->length > 0 && w->run == begin_run ? (const void *)w->payload : NULL;
}

/* Claim the queue for a crew if there is a run for one at its head. */
static bool claim_run(struct host_stream *s)
{
    const struct begin_payload *run = run_at_head(s);
    if (s->busy || s->crewed || !run || !crew_wanted(run->threads))
        return false;
    s->crewed = true;
    s->job.threads = run->threads;
    s->job.wait = run->wait;
    return true;
}

static bool offer_run(struct host_stream *s)
{
    const bool claimed = claim_run(s);
    if (claimed)
        crew_offer(&s->job);
    return claimed;
}

/* For the stream's thread; false: it shall end. */
static bool next_work(struct host_stream *s, struct work *out)
{
    while (offer_run(s) || s->crewed || s->visited || (s->length == 0 && !s->stop))
        pthread_cond_wait(&s->arrived, &s->lock);
    const bool more = s->length > 0;
    if (more)
        take_work(s, out);
    return more;
}

/* For the crew; false: the run is over. */
static bool next_in_run(struct host_stream *s, struct work *out)
{
    while (s->length == 0)
        pthread_cond_wait(&s->crew_arrived, &s->lock);
    take_work(s, out);
    return out->run != end_run;
}

/* Whether the crew goes on with another run; if not, the queue is somebody else's. */
static bool leave_run(struct host_stream *s)
{
    s->crewed = false;
    work_done(s);
    const bool again = claim_run(s);
    if (!again && (s->length > 0 || s->stop))
        pthread_cond_signal(&s->arrived);
    return again;
}

/* ---- doing it -------------------------------------------------------------------- */

static void run_work(struct host_stream *s, device_work run, void *payload)
{
    strata_error err;
    error_clear(&err);
    int status = run(payload, NULL, &err);
    if (status == STRATA_OK)
        return;
    error_set(&err, status, "%s", strata_status_text(status));
    pthread_mutex_lock(&s->lock);
    if (s->failure.status == STRATA_OK)
        s->failure = err;
    pthread_mutex_unlock(&s->lock);
}

static void *stream_thread(void *arg)
{
    struct host_stream *s = arg;
    struct work work;
    pthread_mutex_lock(&s->lock);
    while (next_work(s, &work)) {
        pthread_mutex_unlock(&s->lock);
        run_work(s, work.run, work.payload);
        pthread_mutex_lock(&s->lock);
        work_done(s);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static bool run_in_crew(struct crew_job *job, struct wait_watch *watch)
{
    struct host_stream *s =
        (struct host_stream *)(void *)((char *)job - offsetof(struct host_stream, job));
    struct work work;
    pthread_mutex_lock(&s->lock);
    while (next_in_run(s, &work)) {
        pthread_mutex_unlock(&s->lock);
        run_work(s, work.run, work.payload);
        wait_look(watch);
        pthread_mutex_lock(&s->lock);
        work_done(s);
    }
    const bool again = leave_run(s);
    pthread_mutex_unlock(&s->lock);
    return again;
}

int host_stream_create(struct device *d, strata_stream **out, strata_error *err)
{
    struct host_stream *s = zalloc(1, sizeof *s, "a stream", err);
    if (!s)
        return STRATA_ENOMEM;
    s->base.device = d;
    s->job.run = run_in_crew;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->arrived, NULL);
    pthread_cond_init(&s->crew_arrived, NULL);
    pthread_cond_init(&s->changed, NULL);
    crew_open();
    *out = &s->base;
    return STRATA_OK;
}

void host_stream_destroy(strata_stream *base)
{
    struct host_stream *s = host_stream(base);
    pthread_mutex_lock(&s->lock);
    s->stop = true; /* what is queued still runs */
    while (s->length > 0 || s->busy)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_cond_signal(&s->arrived);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->thread, NULL);
    crew_close();
    pthread_cond_destroy(&s->arrived);
    pthread_cond_destroy(&s->crew_arrived);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s->queue);
    free(s);
}

/* Doubles the ring, unrolled to start at 0. Called with the lock held. */
static int grow_queue(struct host_stream *s, strata_error *err)
{
    size_t capacity = s->capacity ? 2 * s->capacity : 64;
    struct work *queue = zalloc(capacity, sizeof *queue, "a stream's queue", err);
    if (!queue)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < s->length; i++)
        queue[i] = s->queue[(s->head + i) % s->capacity];
    free(s->queue);
    s->queue = queue;
    s->capacity = capacity;
    s->head = 0;
    return STRATA_OK;
}

/* Room for one more, and for the end of the run that is open. */
static int make_room(struct host_stream *s, strata_error *err)
{
    return s->length + 2 > s->capacity ? grow_queue(s, err) : STRATA_OK;
}

static void append(struct host_stream *s, device_work run, const void *payload,
                   size_t bytes)
{
    struct work *slot = &s->queue[(s->head + s->length) % s->capacity];
    slot->run = run;
    if (bytes > 0)
        memcpy(slot->payload, payload, bytes);
    s->length++;
    if (!offer_run(s))
        pthread_cond_signal(s->crewed ? &s->crew_arrived : &s->arrived);
}

static int start_thread(struct host_stream *s, strata_error *err)
{
    if (s->started || s->here)
        return STRATA_OK;
    if (pthread_create(&s->thread, NULL, stream_thread, s) != 0)
        return error_set(err, STRATA_ENOMEM, "cannot start a stream's thread");
    s->started = true;
    return STRATA_OK;
}

static int enqueue(struct host_stream *s, device_work run, const void *payload,
                   size_t bytes, strata_error *err)
{
    int status = start_thread(s, err);
    if (status == STRATA_OK)
        status = make_room(s, err);
    if (status == STRATA_OK)
        append(s, run, payload, bytes);
    return status;
}

/* Whether the calling thread does its own work: it has none in the queue. */
static bool is_visitor(const struct host_stream *s)
{
    return s->visited && pthread_equal(s->visitor, pthread_self());
}

/* On the caller's thread, once the crew is through with the run before. */
static void run_here(struct host_stream *s, device_work run, const void *payload)
{
    while (s->crewed)
        pthread_cond_wait(&s->changed, &s->lock);
    const bool leads = s->leads;
    pthread_mutex_unlock(&s->lock);
    run_work(s, run, (void *)(uintptr_t)payload);
    if (leads)
        crew_look();
    pthread_mutex_lock(&s->lock);
}

static bool is_idle(const struct host_stream *s)
{
    return s->length == 0 && !s->busy && !s->crewed && !s->open;
}

/* A run's threads, if it has several, are the caller's to lead too. */
static bool begin_visit(struct host_stream *s, int threads, int wait)
{
    if (!is_idle(s) || (crew_wanted(threads) && !crew_lead(threads, wait)))
        return false;
    s->leads = crew_wanted(threads);
    s->visited = s->busy = true;
    s->visitor = pthread_self();
    return true;
}

static void end_visit(struct host_stream *s)
{
    if (s->leads)
        crew_leave();
    s->visited = s->leads = false;
    if (leave_run(s))
        crew_offer(&s->job);
}

int host_submit(strata_stream *base, device_work run, const void *payload, size_t bytes,
                strata_error *err)
{
    struct host_stream *s = host_stream(base);
    int status = STRATA_OK;
    if (bytes > DEVICE_PAYLOAD)
        return error_set(err, STRATA_EINTERNAL, "payload of %zu bytes, at most %d fit",
                         bytes, DEVICE_PAYLOAD);
    pthread_mutex_lock(&s->lock);
    if ((s->here && !s->open) || is_visitor(s))
        run_here(s, run, payload);
    else
        status = enqueue(s, run, payload, bytes, err);
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* For a crew. */
static int queue_begin(struct host_stream *s, int threads, int wait, strata_error *err)
{
    const struct begin_payload p = {threads, wait};
    int status = crew_ready(err);
    if (status == STRATA_OK)
        status = enqueue(s, begin_run, &p, sizeof p, err);
    s->open = status == STRATA_OK;
    return status;
}

int host_run_begin(strata_stream *base, int threads, int wait, strata_error *err)
{
    struct host_stream *s = host_stream(base);
    int status = STRATA_OK;
    if (!crew_wanted(threads))
        return STRATA_OK;
    pthread_mutex_lock(&s->lock);
    if (!is_visitor(s)) {
        s->run_visit = s->here && begin_visit(s, threads, wait);
        status = s->run_visit ? STRATA_OK : queue_begin(s, threads, wait, err);
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void host_run_end(strata_stream *base)
{
    struct host_stream *s = host_stream(base);
    pthread_mutex_lock(&s->lock);
    if (s->open)
        append(s, end_run, NULL, 0);
    s->open = false;
    if (s->run_visit)
        end_visit(s);
    s->run_visit = false;
    while (s->here && s->crewed)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

int host_stream_synchronize(strata_stream *base, strata_error *err)
{
    struct host_stream *s = host_stream(base);
    pthread_mutex_lock(&s->lock);
    while ((s->length > 0 || s->busy) && !is_visitor(s))
        pthread_cond_wait(&s->changed, &s->lock);
    const int status = s->failure.status;
    if (status != STRATA_OK)
        error_set(err, status, "%s", s->failure.message);
    error_clear(&s->failure);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void host_stream_run_here(strata_stream *s)
{
    host_stream(s)->here = true;
}

bool host_stream_visit(strata_stream *base, int threads, int wait)
{
    struct host_stream *s = host_stream(base);
    bool visits = false;
    pthread_mutex_lock(&s->lock);
    if (threads == 0)
        end_visit(s);
    else if (!s->here) /* else it does already */
        visits = begin_visit(s, threads, wait);
    pthread_mutex_unlock(&s->lock);
    return visits;
}

bool host_stream_idle_run(strata_stream *base, device_work run, void *payload)
{
    struct host_stream *s = host_stream(base);
    pthread_mutex_lock(&s->lock);
    const bool idle = is_idle(s);
    if (idle)
        run(payload, NULL, NULL);
    pthread_mutex_unlock(&s->lock);
    return idle;
}
