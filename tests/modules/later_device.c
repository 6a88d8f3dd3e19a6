/* SPDX-License-Identifier: Apache-2.0
 *
 * strata-cuda.so without a GPU: its streams are threads of the host that do later, and
 * now and then much later, what they are given, in order. Copies are asynchronous from
 * and to memory that it pinned; from other memory they have read it on return, and to
 * other memory they are complete. Graphs are lists of work. So what the engine promises
 * itself of streams, events and copies is tried where ThreadSanitizer sees it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/device.h"
#include "tests/modules/later_memory.h"

enum kind { WORK, COPY, FILL, RECORD, WAIT };

struct event {
    strata_event base;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    unsigned long recorded, happened;
    int holders;
};

struct op {
    struct op *next;
    enum kind kind;
    device_work work;
    void *to, *taken; /* taken: a copy's own bytes, or NULL */
    const void *from;
    size_t bytes;
    int byte;
    struct event *event;
    unsigned long count;
    _Alignas(16) unsigned char payload[DEVICE_PAYLOAD];
};

struct stream {
    strata_stream base;
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t arrived, done;
    struct op *first, **end;
    size_t given, finished;
    bool stop;
    struct op *captured, **captured_end; /* captured_end is not NULL: it captures */
    strata_error failure;
};

struct later {
    struct device base;
    int index;
};

static struct stream *stream_of(strata_stream *s)
{
    return (struct stream *)s;
}

static int fail(strata_error *err, int status, const char *why)
{
    if (err) {
        err->status = status;
        snprintf(err->message, sizeof err->message, "%s", why);
    }
    return status;
}

/* ---- events ------------------------------------------------------------------------ */

static void release(struct event *e)
{
    pthread_mutex_lock(&e->lock);
    const int left = --e->holders;
    pthread_mutex_unlock(&e->lock);
    if (left > 0)
        return;
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

static void await(struct event *e, unsigned long count)
{
    pthread_mutex_lock(&e->lock);
    while (e->happened < count)
        pthread_cond_wait(&e->changed, &e->lock);
    pthread_mutex_unlock(&e->lock);
}

static void happen(struct event *e, unsigned long count)
{
    pthread_mutex_lock(&e->lock);
    e->happened = e->happened < count ? count : e->happened;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

static int event_create(struct device *d, strata_event **out, strata_error *err)
{
    struct event *e = calloc(1, sizeof *e);
    if (!e)
        return fail(err, STRATA_ENOMEM, "no memory");
    e->base.device = d;
    e->holders = 1;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    *out = &e->base;
    return STRATA_OK;
}

static void event_destroy(strata_event *e)
{
    release((struct event *)e);
}

static int event_synchronize(strata_event *base, strata_error *err)
{
    struct event *e = (struct event *)base;
    (void)err;
    pthread_mutex_lock(&e->lock);
    const unsigned long count = e->recorded;
    pthread_mutex_unlock(&e->lock);
    await(e, count);
    return STRATA_OK;
}

static int event_elapsed(double *ms, strata_event *from, strata_event *to,
                         strata_error *err)
{
    (void)from, (void)to, (void)err;
    *ms = 0.01;
    return STRATA_OK;
}

/* ---- what a stream does -------------------------------------------------------------
 */

static void dawdle(unsigned *seed)
{
    const unsigned lot = (unsigned)rand_r(seed) % 64;
    const struct timespec t = {.tv_nsec = lot == 0 ? 400000 : 1000L * lot};
    if (lot < 16)
        nanosleep(&t, NULL);
}

static void copy_now(const struct op *op, unsigned *seed)
{
    const char *from = op->taken ? op->taken : op->from;
    const size_t half = op->bytes / 2;
    memcpy(op->to, from, half);
    dawdle(seed);
    memcpy((char *)op->to + half, from + half, op->bytes - half);
}

static void run_op(struct stream *s, struct op *op, unsigned *seed)
{
    strata_error err = {0};
    if (op->kind == COPY)
        copy_now(op, seed);
    else if (op->kind == FILL)
        memset(op->to, op->byte, op->bytes);
    else if (op->kind == RECORD)
        happen(op->event, op->count);
    else if (op->kind == WAIT)
        await(op->event, op->count);
    else if (op->work(op->payload, s, &err) != STRATA_OK) {
        pthread_mutex_lock(&s->lock);
        s->failure = s->failure.status == STRATA_OK ? err : s->failure;
        pthread_mutex_unlock(&s->lock);
    }
}

static void free_op(struct op *op)
{
    if (op->event)
        release(op->event);
    free(op->taken);
    free(op);
}

static void *go_on(void *arg)
{
    struct stream *s = arg;
    unsigned seed = (unsigned)(uintptr_t)s;
    pthread_mutex_lock(&s->lock);
    while (s->first || !s->stop) {
        struct op *op = s->first;
        if (!op) {
            pthread_cond_wait(&s->arrived, &s->lock);
            continue;
        }
        s->first = op->next;
        if (!s->first)
            s->end = &s->first;
        pthread_mutex_unlock(&s->lock);
        dawdle(&seed);
        run_op(s, op, &seed);
        free_op(op);
        pthread_mutex_lock(&s->lock);
        s->finished++;
        pthread_cond_broadcast(&s->done);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Takes the op, also where it fails. */
static int give(strata_stream *base, struct op *op, strata_error *err)
{
    struct stream *s = stream_of(base);
    if (!op)
        return fail(err, STRATA_ENOMEM, "no memory");
    pthread_mutex_lock(&s->lock);
    if (s->captured_end) {
        *s->captured_end = op;
        s->captured_end = &op->next;
    } else {
        *s->end = op;
        s->end = &op->next;
        s->given++;
        pthread_cond_signal(&s->arrived);
    }
    pthread_mutex_unlock(&s->lock);
    return STRATA_OK;
}

static struct op *op_of(struct op from)
{
    struct op *op = malloc(sizeof *op);
    if (op)
        *op = from;
    return op;
}

static int stream_synchronize(strata_stream *base, strata_error *err)
{
    struct stream *s = stream_of(base);
    pthread_mutex_lock(&s->lock);
    for (const size_t given = s->given; s->finished < given;)
        pthread_cond_wait(&s->done, &s->lock);
    const strata_error failure = s->failure;
    s->failure = (strata_error){0};
    pthread_mutex_unlock(&s->lock);
    return failure.status ? fail(err, failure.status, failure.message) : STRATA_OK;
}

static int stream_create(struct device *d, strata_stream **out, strata_error *err)
{
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return fail(err, STRATA_ENOMEM, "no memory");
    s->base.device = d;
    s->end = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->arrived, NULL);
    pthread_cond_init(&s->done, NULL);
    if (pthread_create(&s->thread, NULL, go_on, s) != 0) {
        free(s);
        return fail(err, STRATA_ENOMEM, "no thread");
    }
    *out = &s->base;
    return STRATA_OK;
}

static void stream_destroy(strata_stream *base)
{
    struct stream *s = stream_of(base);
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_signal(&s->arrived);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->arrived);
    pthread_cond_destroy(&s->done);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int submit(strata_stream *s, device_work work, const void *payload, size_t bytes,
                  strata_error *err)
{
    struct op op = {.kind = WORK, .work = work};
    memcpy(op.payload, payload, bytes);
    return give(s, op_of(op), err);
}

static int copy(strata_stream *s, void *dst, const void *src, size_t bytes,
                enum device_copy direction, strata_error *err)
{
    struct op op = {.kind = COPY, .to = dst, .from = src, .bytes = bytes};
    const bool reads = direction == COPY_TO_DEVICE && !later_is_pinned(NULL, src);
    const bool writes = direction == COPY_FROM_DEVICE && !later_is_pinned(NULL, dst);
    if (reads && (op.taken = malloc(bytes + 1)))
        memcpy(op.taken, src, bytes);
    if (reads && !op.taken)
        return fail(err, STRATA_ENOMEM, "no memory");
    const int status = give(s, op_of(op), err);
    return status == STRATA_OK && writes ? stream_synchronize(s, err) : status;
}

static int fill(strata_stream *s, void *dst, int byte, size_t bytes, strata_error *err)
{
    return give(s,
                op_of((struct op){.kind = FILL, .to = dst, .byte = byte, .bytes = bytes}),
                err);
}

static int give_event(strata_stream *s, strata_event *base, enum kind kind,
                      strata_error *err)
{
    struct event *e = (struct event *)base;
    pthread_mutex_lock(&e->lock);
    e->holders++;
    e->recorded += kind == RECORD;
    const struct op op = {.kind = kind, .event = e, .count = e->recorded};
    pthread_mutex_unlock(&e->lock);
    return give(s, op_of(op), err);
}

static int event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    return give_event(s, e, RECORD, err);
}

static int stream_wait(strata_stream *s, strata_event *e, strata_error *err)
{
    return give_event(s, e, WAIT, err);
}

static void *stream_native(strata_stream *s)
{
    return s;
}

/* ---- graphs -------------------------------------------------------------------------
 */

static int capture_begin(strata_stream *base, strata_error *err)
{
    struct stream *s = stream_of(base);
    (void)err;
    pthread_mutex_lock(&s->lock);
    s->captured = NULL;
    s->captured_end = &s->captured;
    pthread_mutex_unlock(&s->lock);
    return STRATA_OK;
}

static int capture_end(strata_stream *base, void **graph, strata_error *err)
{
    struct stream *s = stream_of(base);
    (void)err;
    pthread_mutex_lock(&s->lock);
    *graph = s->captured;
    s->captured_end = NULL;
    pthread_mutex_unlock(&s->lock);
    return STRATA_OK;
}

static int graph_launch(strata_stream *s, void *graph, strata_error *err)
{
    int status = STRATA_OK;
    for (const struct op *op = graph; op && status == STRATA_OK; op = op->next) {
        struct op again = *op;
        again.next = NULL;
        status = give(s, op_of(again), err);
    }
    return status;
}

static void graph_destroy(struct device *d, void *graph)
{
    (void)d;
    for (struct op *op = graph, *next; op; op = next) {
        next = op->next;
        free_op(op);
    }
}

/* ---- the device ---------------------------------------------------------------------
 */

static void close_device(struct device *d)
{
    free(d);
}

static void properties(struct device *d, struct device_properties *out)
{
    *out = (struct device_properties){.name = "later",
                                      .build = "later",
                                      .kind = STRATA_CUDA,
                                      .index = ((struct later *)d)->index,
                                      .sm = 90,
                                      .threads = 1,
                                      .bandwidth = 1e9,
                                      .launch_ns = 1000};
    for (int i = 0; i < STRATA_DTYPE_COUNT; i++)
        out->flops[i] = 1e9;
}

static uint64_t free_bytes(struct device *d)
{
    (void)d;
    return 0;
}

static int check(struct device *d, strata_error *err)
{
    (void)d, (void)err;
    return STRATA_OK;
}

static const struct device_ops ops = {
    .close = close_device,
    .properties = properties,
    .memory = later_memory,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_synchronize = stream_synchronize,
    .stream_wait = stream_wait,
    .submit = submit,
    .copy = copy,
    .fill = fill,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .stream_native = stream_native,
    .host_memory = later_host_memory,
    .is_pinned = later_is_pinned,
    .free_bytes = free_bytes,
    .check = check,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
};

__attribute__((visibility("default"))) device_entry strata_device_open_v1;
int strata_device_open_v1(const struct device_abi *abi, struct device **out, int index,
                          strata_error *err)
{
    const struct device_abi here = DEVICE_ABI_HERE;
    if (memcmp(abi, &here, sizeof here) != 0)
        return fail(err, STRATA_EMODULE, "another build");
    struct later *d = calloc(1, sizeof *d);
    if (!d)
        return fail(err, STRATA_ENOMEM, "no memory");
    d->base.ops = &ops;
    d->index = index;
    *out = &d->base;
    return STRATA_OK;
}
