/* SPDX-License-Identifier: Apache-2.0
 *
 * The host device: a stream is a queue of work and one thread that runs it in order. The
 * thread starts with the first work, so an unused stream costs nothing. Kernels use
 * OpenMP inside, on the stream's thread. A stream may also run work where it is handed
 * in.
 */
#include "core/host_device.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

struct work {
    device_work run;
    _Alignas(16) unsigned char payload[DEVICE_PAYLOAD];
};

struct host_stream {
    strata_stream base;
    pthread_mutex_t lock;   /* guards everything below */
    pthread_cond_t changed; /* work arrived, or the queue ran empty */
    pthread_t thread;
    struct work *queue; /* ring */
    size_t capacity, head, length;
    bool started, busy, stop;
    strata_error failure; /* the first since the last synchronize */
    bool here;            /* set before the first work: it needs no thread */
};

static struct host_stream *host_stream(strata_stream *s)
{
    return (struct host_stream *)s;
}

/* Copies the work out so that the ring may move while it runs. */
static bool next_work(struct host_stream *s, struct work *out)
{
    pthread_mutex_lock(&s->lock);
    s->busy = false;
    if (s->length == 0)
        pthread_cond_broadcast(&s->changed);
    while (s->length == 0 && !s->stop)
        pthread_cond_wait(&s->changed, &s->lock);
    bool more = s->length > 0;
    if (more) {
        *out = s->queue[s->head];
        s->head = (s->head + 1) % s->capacity;
        s->length--;
        s->busy = true;
    }
    pthread_mutex_unlock(&s->lock);
    return more;
}

static void keep_failure(struct host_stream *s, const strata_error *err)
{
    pthread_mutex_lock(&s->lock);
    if (s->failure.status == STRATA_OK)
        s->failure = *err;
    pthread_mutex_unlock(&s->lock);
}

static void run_work(struct host_stream *s, device_work run, void *payload)
{
    strata_error err;
    error_clear(&err);
    int status = run(payload, NULL, &err);
    if (status == STRATA_OK)
        return;
    error_set(&err, status, "%s", strata_status_text(status));
    keep_failure(s, &err);
}

static void *stream_thread(void *arg)
{
    struct host_stream *s = arg;
    struct work work;
    while (next_work(s, &work))
        run_work(s, work.run, work.payload);
    return NULL;
}

static int stream_create(struct device *d, strata_stream **out, strata_error *err)
{
    struct host_stream *s = zalloc(1, sizeof *s, "a stream", err);
    if (!s)
        return STRATA_ENOMEM;
    s->base.device = d;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    *out = &s->base;
    return STRATA_OK;
}

static void stream_destroy(strata_stream *base)
{
    struct host_stream *s = host_stream(base);
    pthread_mutex_lock(&s->lock);
    s->stop = true; /* what is queued still runs */
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->started)
        pthread_join(s->thread, NULL);
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

int host_submit(strata_stream *base, device_work run, const void *payload, size_t bytes,
                strata_error *err)
{
    struct host_stream *s = host_stream(base);
    int status = STRATA_OK;
    if (bytes > DEVICE_PAYLOAD)
        return error_set(err, STRATA_EINTERNAL, "payload of %zu bytes, at most %d fit",
                         bytes, DEVICE_PAYLOAD);
    if (s->here) {
        run_work(s, run, (void *)(uintptr_t)payload);
        return STRATA_OK;
    }
    pthread_mutex_lock(&s->lock);
    if (!s->started) {
        if (pthread_create(&s->thread, NULL, stream_thread, s) != 0) {
            status = error_set(err, STRATA_ENOMEM, "cannot start a stream's thread");
            goto done;
        }
        s->started = true;
    }
    if (s->length == s->capacity && (status = grow_queue(s, err)) != STRATA_OK)
        goto done;
    struct work *slot = &s->queue[(s->head + s->length) % s->capacity];
    slot->run = run;
    if (bytes > 0)
        memcpy(slot->payload, payload, bytes);
    s->length++;
    pthread_cond_broadcast(&s->changed);
done:
    pthread_mutex_unlock(&s->lock);
    return status;
}

static int stream_synchronize(strata_stream *base, strata_error *err)
{
    struct host_stream *s = host_stream(base);
    pthread_mutex_lock(&s->lock);
    while (s->length > 0 || s->busy)
        pthread_cond_wait(&s->changed, &s->lock);
    const int status = s->failure.status;
    if (status != STRATA_OK)
        error_set(err, status, "%s", s->failure.message);
    error_clear(&s->failure);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void stream_run_here(strata_stream *s)
{
    host_stream(s)->here = true;
}

struct copy_payload {
    void *dst;
    const void *src;
    size_t bytes;
    int byte;
};

static int run_copy(void *payload, void *native, strata_error *err)
{
    const struct copy_payload *c = payload;
    (void)native;
    (void)err;
    memcpy(c->dst, c->src, c->bytes);
    return STRATA_OK;
}

static int run_fill(void *payload, void *native, strata_error *err)
{
    const struct copy_payload *c = payload;
    (void)native;
    (void)err;
    memset(c->dst, c->byte, c->bytes);
    return STRATA_OK;
}

static int copy(strata_stream *s, void *dst, const void *src, size_t bytes,
                enum device_copy direction, strata_error *err)
{
    struct copy_payload c = {.dst = dst, .src = src, .bytes = bytes};
    (void)direction; /* one memory */
    return bytes ? host_submit(s, run_copy, &c, sizeof c, err) : STRATA_OK;
}

static int fill(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err)
{
    struct copy_payload c = {.dst = dst, .bytes = bytes, .byte = byte};
    return bytes ? host_submit(s, run_fill, &c, sizeof c, err) : STRATA_OK;
}

/* Ceilings of one thread of a current server core; only their ratios matter to a plan. */
static void properties(struct device *d, struct device_properties *out)
{
    (void)d;
    memset(out, 0, sizeof *out);
    strcpy(out->name, "host");
    strcpy(out->build, "host");
    out->kind = STRATA_HOST;
#ifdef _OPENMP
    out->threads = omp_get_max_threads();
#else
    out->threads = 1;
#endif
    for (int dtype = 0; dtype < STRATA_DTYPE_COUNT; dtype++)
        out->flops[dtype] = 80e9 * out->threads;
    out->bandwidth = 8e9 * (out->threads > 4 ? 4 : out->threads);
    out->launch_ns = 1500;
    /* What a core has for itself: the rest is shared with whatever else runs. */
    const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
    out->cache_bytes = cache > 0 ? cache * out->threads : 0;
}

static strata_allocator memory(struct device *d)
{
    (void)d;
    return host_memory();
}

static void *stream_native(strata_stream *s)
{
    (void)s;
    return NULL;
}

static uint64_t free_bytes(struct device *d)
{
    (void)d;
    return 0;
}

static int check(struct device *d, strata_error *err)
{
    (void)d;
    (void)err;
    return STRATA_OK;
}

static void close_device(struct device *d)
{
    free(d);
}

static const struct device_ops host_ops = {
    .close = close_device,
    .properties = properties,
    .memory = memory,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_run_here = stream_run_here,
    .stream_wait = host_stream_wait,
    .submit = host_submit,
    .copy = copy,
    .fill = fill,
    .event_create = host_event_create,
    .event_destroy = host_event_destroy,
    .event_record = host_event_record,
    .event_synchronize = host_event_synchronize,
    .event_elapsed = host_event_elapsed,
    .stream_native = stream_native,
    .host_memory = memory,
    .free_bytes = free_bytes,
    .check = check,
};

int host_device_open(struct device **out, int index, strata_error *err)
{
    if (index != 0)
        return error_set(err, STRATA_ENOTFOUND, "device host:%d: there is one host",
                         index);
    struct device *d = zalloc(1, sizeof *d, "the host device", err);
    if (!d)
        return STRATA_ENOMEM;
    d->ops = &host_ops;
    *out = d;
    return STRATA_OK;
}
