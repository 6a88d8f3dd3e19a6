/* SPDX-License-Identifier: Apache-2.0
 *
 * A device with graphs, played by the host at once: whatever runs takes the same time.
 */
#ifndef TESTS_ENGINE_DEVICES_PLAYED_H
#define TESTS_ENGINE_DEVICES_PLAYED_H

#include <stdlib.h>
#include <string.h>

#include "tests/engine/engine_session.h"

enum { PLAYED_WORK = 128 };
#define PLAYED_US 10.0 /* that one piece of work takes */

struct played_work {
    device_work run;
    char payload[DEVICE_PAYLOAD];
};
struct played_graph {
    struct played_work work[PLAYED_WORK];
    int n;
};
struct played_event {
    strata_event event;
    double when;
};

static double played_us;
static struct played_graph *played_capture;
static int played_graphs;
static int played_last; /* pieces of work of the graph that ran last */
/* A graph of so many pieces of work takes so much more; 0: none. */
static int played_slow;
static double played_slow_us;

static int played_run(const struct played_work *w, strata_stream *s, strata_error *err)
{
    struct played_work own = *w; /* work may change its payload */
    played_us += PLAYED_US;
    return own.run(own.payload, s, err);
}

static int played_submit(strata_stream *s, device_work work, const void *payload,
                         size_t bytes, strata_error *err)
{
    struct played_work w = {.run = work};
    if (bytes > 0)
        memcpy(w.payload, payload, bytes);
    if (!played_capture)
        return played_run(&w, s, err);
    cr_assert_lt(played_capture->n, PLAYED_WORK);
    played_capture->work[played_capture->n++] = w;
    return STRATA_OK;
}

static int played_begin(strata_stream *s, strata_error *err)
{
    (void)s;
    cr_assert_null(played_capture);
    played_capture = zalloc(1, sizeof *played_capture, "a graph", err);
    played_graphs += played_capture != NULL;
    return played_capture ? STRATA_OK : STRATA_ENOMEM;
}

static int played_end(strata_stream *s, void **graph, strata_error *err)
{
    (void)s, (void)err;
    *graph = played_capture;
    played_capture = NULL;
    return STRATA_OK;
}

static int played_launch(strata_stream *s, void *graph, strata_error *err)
{
    const struct played_graph *g = graph;
    int status = STRATA_OK;
    played_last = g->n;
    if (played_slow && g->n == played_slow)
        played_us += played_slow_us;
    for (int i = 0; i < g->n && status == STRATA_OK; i++)
        status = played_run(&g->work[i], s, err);
    return status;
}

static void played_drop(struct device *d, void *graph)
{
    (void)d;
    played_graphs--;
    free(graph);
}

static int played_event_create(struct device *d, strata_event **out, strata_error *err)
{
    struct played_event *e = zalloc(1, sizeof *e, "an event", err);
    if (!e)
        return STRATA_ENOMEM;
    e->event.device = d;
    *out = &e->event;
    return STRATA_OK;
}

static void played_event_destroy(strata_event *e)
{
    free(e);
}

static int played_event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    ((struct played_event *)e)->when = played_us;
    return STRATA_OK;
}

static int played_event_elapsed(double *ms, strata_event *from, strata_event *to,
                                strata_error *err)
{
    (void)err;
    *ms = (((struct played_event *)to)->when - ((struct played_event *)from)->when) / 1e3;
    return STRATA_OK;
}

static int played_synchronize(strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    return STRATA_OK;
}

static int played_copy(strata_stream *s, void *to, const void *from, size_t bytes,
                       enum device_copy direction, strata_error *err)
{
    (void)s, (void)direction, (void)err;
    memcpy(to, from, bytes);
    return STRATA_OK;
}

static int played_fill(strata_stream *s, void *to, int byte, size_t bytes,
                       strata_error *err)
{
    (void)s, (void)err;
    memset(to, byte, bytes);
    return STRATA_OK;
}

struct played {
    struct device *host, device;
    struct device_ops ops;
    strata_stream *own, stream;
};

/* The handle's device and stream from now on, until played_close. */
static void played_open(struct played *p, strata_handle *handle)
{
    p->host = handle->device;
    p->own = handle->stream;
    p->ops = *p->host->ops;
    p->ops.submit = played_submit;
    p->ops.lead = NULL;
    p->ops.stream_run_here = NULL;
    p->ops.stream_visit = NULL;
    p->ops.run_begin = NULL;
    p->ops.run_end = NULL;
    p->ops.capture_begin = played_begin;
    p->ops.capture_end = played_end;
    p->ops.graph_launch = played_launch;
    p->ops.graph_destroy = played_drop;
    p->ops.event_create = played_event_create;
    p->ops.event_destroy = played_event_destroy;
    p->ops.event_record = played_event_record;
    p->ops.event_elapsed = played_event_elapsed;
    p->ops.stream_synchronize = played_synchronize;
    p->ops.copy = played_copy;
    p->ops.fill = played_fill;
    p->device.ops = &p->ops;
    p->stream.device = &p->device;
    handle->device = &p->device;
    handle->stream = &p->stream;
}

/* Nothing of the handle's may be left. */
static void played_close(const struct played *p, strata_handle *handle)
{
    handle->device = p->host;
    handle->stream = p->own;
    cr_expect_eq(played_graphs, 0);
}

#endif /* TESTS_ENGINE_DEVICES_PLAYED_H */
