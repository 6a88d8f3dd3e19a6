/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests, with the batcher and without.
 */
#include "bench/batcher_load.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static sem_t answered; /* posted at each request's end */

void check(int status, const strata_error *err)
{
    if (status == STRATA_OK)
        return;
    fprintf(stderr, "batcher: %s\n", err->message);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleep_until(double when)
{
    const struct timespec t = {.tv_sec = (time_t)when,
                               .tv_nsec = (long)((when - floor(when)) * 1e9)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double quantile(double *times, size_t n, double q)
{
    qsort(times, n, sizeof *times, compare);
    return n ? times[(size_t)(q * (double)(n - 1))] : 0;
}

/* ---- without the batcher ----------------------------------------------------------- */

struct lone {
    strata_handle *handle;
    strata_context *context;
};

static struct lone open_lone(const struct bench *b)
{
    struct lone l;
    strata_error err;
    check(strata_create(&l.handle, b->a.device, &err), &err);
    check(strata_context_create(&l.context, b->engine, l.handle, &err), &err);
    check(strata_context_prepare(l.context, &err), &err);
    return l;
}

static void close_lone(struct lone *l)
{
    strata_context_destroy(l->context);
    strata_destroy(l->handle);
}

static void run_rows(const struct bench *b, strata_context *c, size_t slot)
{
    strata_error err;
    check(strata_enqueue_copy_in(c, 0, b->in + slot * b->in_bytes, &err), &err);
    check(strata_context_enqueue(c, NULL, &err), &err);
    check(strata_enqueue_copy_out(c, 1, b->out + slot * b->out_bytes, &err), &err);
    check(strata_context_wait(c, &err), &err);
}

struct server {
    const struct bench *b;
    atomic_size_t *next; /* batch */
    pthread_barrier_t *begin;
    double end;
    size_t rows;
};

static void *serve_batches(void *arg)
{
    struct server *s = arg;
    const struct bench *b = s->b;
    struct lone l = open_lone(b);
    pthread_barrier_wait(s->begin);
    const double end = now() + b->a.seconds;
    while ((s->end = now()) < end) {
        const size_t batch = atomic_fetch_add(s->next, 1);
        run_rows(b, l.context, batch % SLOTS * (size_t)b->batch);
        s->rows += (size_t)b->batch;
    }
    close_lone(&l);
    return NULL;
}

double static_throughput(const struct bench *b)
{
    pthread_t threads[MAX_CONTEXTS];
    struct server servers[MAX_CONTEXTS];
    pthread_barrier_t begin;
    atomic_size_t next = 0;
    size_t rows = 0;
    double end = 0;
    pthread_barrier_init(&begin, NULL, (unsigned)b->a.contexts + 1);
    for (int i = 0; i < b->a.contexts; i++) {
        servers[i] = (struct server){.b = b, .next = &next, .begin = &begin};
        if (pthread_create(&threads[i], NULL, serve_batches, &servers[i]) != 0)
            abort();
    }
    pthread_barrier_wait(&begin);
    const double start = now();
    for (int i = 0; i < b->a.contexts; i++) {
        pthread_join(threads[i], NULL);
        rows += servers[i].rows;
        end = servers[i].end > end ? servers[i].end : end;
    }
    pthread_barrier_destroy(&begin);
    return (double)rows / (end - start);
}

double static_time(const struct bench *b, int64_t rows)
{
    double times[1000];
    size_t n = 0;
    strata_error err;
    struct lone l = open_lone(b);
    check(strata_context_set_batch(l.context, rows, &err), &err);
    run_rows(b, l.context, 0);
    for (const double end = now() + b->a.seconds / 4; n < 1000 && (now() < end || n < 5);
         n++) {
        times[n] = now();
        run_rows(b, l.context, n % SLOTS * (size_t)b->batch);
        times[n] = now() - times[n];
    }
    close_lone(&l);
    return quantile(times, n, 0.5);
}

/* ---- arrivals ---------------------------------------------------------------------- */

static double exponential(double rate)
{
    return -log(1 - (double)random() / ((double)RAND_MAX + 1)) / rate;
}

strata_batcher *open_batcher(const struct bench *b)
{
    strata_error err;
    strata_batcher *batcher;
    const strata_batcher_options o = {.struct_size = sizeof o,
                                      .contexts = b->a.contexts,
                                      .max_delay_ns = (uint64_t)(b->a.delay_us * 1e3),
                                      .turns = b->a.turns};
    check(strata_batcher_create(&batcher, b->engine, &o, &err), &err);
    return batcher;
}

static void answer(void *user, const strata_error *err)
{
    struct request *r = user;
    check(err->status, err);
    r->done = now();
    sem_post(&answered);
}

static void submit(const struct bench *b, strata_batcher *batcher, struct request *r,
                   size_t slot)
{
    strata_error err;
    slot %= SLOTS * (size_t)b->batch;
    const void *in[] = {b->in + slot * b->in_bytes};
    void *out[] = {b->out + slot * b->out_bytes};
    const strata_request_options o = {.struct_size = sizeof o,
                                      .rows = 1,
                                      .inputs = in,
                                      .outputs = out,
                                      .done = answer,
                                      .user = r};
    check(strata_batcher_submit(batcher, NULL, &o, &err), &err);
}

static void wait_for(size_t n)
{
    while (n > 0)
        n -= sem_wait(&answered) == 0;
}

static int by_end(const void *a, const void *b)
{
    const struct request *x = a, *y = b;
    return (x->done > y->done) - (x->done < y->done);
}

/* Of requests, from the first batch done after a sixth of the time to the last in time.
 */
static double rate_between(struct request *requests, size_t n, double begin, double end)
{
    size_t first = 0, last = 0;
    qsort(requests, n, sizeof *requests, by_end);
    for (size_t i = 0; i < n && requests[i].done <= end; i++) {
        first = requests[i].done < begin + (end - begin) / 6 ? i : first;
        last = i;
    }
    return (double)(last - first) / (requests[last].done - requests[first].done);
}

double saturated(const struct bench *b, struct request *requests)
{
    const size_t ahead = (size_t)b->batch * (size_t)(b->a.contexts + 2);
    strata_batcher *batcher = open_batcher(b);
    const double begin = now(), end = begin + b->a.seconds;
    size_t n = 0;
    for (; now() < end && n < MAX_REQUESTS; n++) {
        if (n >= ahead)
            wait_for(1);
        submit(b, batcher, &requests[n], n);
    }
    wait_for(n < ahead ? n : ahead);
    strata_batcher_destroy(batcher);
    return rate_between(requests, n, begin, end);
}

/* When a request comes; the one of the lone context then runs. */
static void come(const struct bench *b, strata_batcher *batcher, const struct lone *l,
                 struct request *requests, size_t n)
{
    sleep_until(requests[n].due);
    if (batcher) {
        submit(b, batcher, &requests[n], n);
        return;
    }
    run_rows(b, l->context, n % (SLOTS * (size_t)b->batch));
    requests[n].done = now();
}

size_t arrive(const struct bench *b, strata_batcher *batcher, double rate, double seconds,
              struct request *requests, double *times)
{
    struct lone l = {0};
    strata_error err;
    size_t n = 0;
    if (!batcher) {
        l = open_lone(b);
        check(strata_context_set_batch(l.context, 1, &err), &err);
    }
    const double begin = now() + 0.01;
    for (double due = begin; due < begin + seconds && n < MAX_REQUESTS; n++) {
        due += exponential(rate);
        requests[n].due = due;
        come(b, batcher, &l, requests, n);
    }
    if (batcher)
        wait_for(n);
    close_lone(&l);
    for (size_t i = 0; i < n; i++)
        times[i] = requests[i].done - requests[i].due;
    return n;
}
