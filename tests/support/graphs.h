/* SPDX-License-Identifier: Apache-2.0
 *
 * What a device with graphs and events has that the host plays: works are kept while a
 * graph is captured, and copies are done at once. A test says when an event is, and what
 * launching takes.
 */
#ifndef TESTS_SUPPORT_GRAPHS_H
#define TESTS_SUPPORT_GRAPHS_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "core/handle.h"

enum { GRAPH_WORK = 128 };

struct graph_work {
    device_work run;
    char payload[DEVICE_PAYLOAD];
};

struct graph {
    struct graph_work work[GRAPH_WORK];
    int n, leads;
};

struct graph_event {
    strata_event event;
    double when; /* the test's */
};

static struct graph *captured;
static int graphs;                           /* that there are */
static double graph_clock, graph_work_takes; /* pushes the clock, in the test's unit */

static int graph_work_run(const struct graph_work *w, strata_stream *s, strata_error *err)
{
    struct graph_work own = *w; /* work may change its payload */
    graph_clock += graph_work_takes;
    return own.run(own.payload, s, err);
}

static int graph_put(strata_stream *s, device_work work, const void *payload,
                     size_t bytes, strata_error *err)
{
    struct graph_work w = {.run = work};
    if (bytes > 0)
        memcpy(w.payload, payload, bytes);
    if (!captured)
        return graph_work_run(&w, s, err);
    cr_assert_lt(captured->n, GRAPH_WORK);
    captured->work[captured->n++] = w;
    return STRATA_OK;
}

static int graph_begin(strata_stream *s, strata_error *err)
{
    (void)s;
    cr_assert_null(captured);
    captured = zalloc(1, sizeof *captured, "a graph", err);
    graphs += captured != NULL;
    return captured ? STRATA_OK : STRATA_ENOMEM;
}

static int graph_end(strata_stream *s, void **graph, strata_error *err)
{
    (void)s, (void)err;
    *graph = captured;
    captured = NULL;
    return STRATA_OK;
}

static int graph_run(const struct graph *g, strata_stream *s, strata_error *err)
{
    int status = STRATA_OK;
    for (int i = 0; i < g->n && status == STRATA_OK; i++)
        status = graph_work_run(&g->work[i], s, err);
    return status;
}

static void graph_drop(struct device *d, void *graph)
{
    (void)d;
    graphs--;
    free(graph);
}

static int graph_event_create(struct device *d, strata_event **out, strata_error *err)
{
    struct graph_event *e = zalloc(1, sizeof *e, "an event", err);
    if (!e)
        return STRATA_ENOMEM;
    e->event.device = d;
    *out = &e->event;
    return STRATA_OK;
}

static void graph_event_destroy(strata_event *e)
{
    free(e);
}

/* From one to another, in the test's unit. */
static double graph_elapsed(const strata_event *from, const strata_event *to)
{
    return ((const struct graph_event *)to)->when -
           ((const struct graph_event *)from)->when;
}

static int graph_synchronize(strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    return STRATA_OK;
}

static int graph_copy(strata_stream *s, void *to, const void *from, size_t bytes,
                      enum device_copy direction, strata_error *err)
{
    (void)s, (void)direction, (void)err;
    memcpy(to, from, bytes);
    return STRATA_OK;
}

static int graph_fill(strata_stream *s, void *to, int byte, size_t bytes,
                      strata_error *err)
{
    (void)s, (void)err;
    memset(to, byte, bytes);
    return STRATA_OK;
}

/* The host's, but for these; what a test has of its own it sets behind. */
static inline struct device_ops graph_ops(const struct device *host)
{
    struct device_ops ops = *host->ops;
    ops.submit = graph_put;
    ops.capture_begin = graph_begin;
    ops.capture_end = graph_end;
    ops.graph_destroy = graph_drop;
    ops.event_create = graph_event_create;
    ops.event_destroy = graph_event_destroy;
    ops.stream_synchronize = graph_synchronize;
    ops.copy = graph_copy;
    ops.fill = graph_fill;
    return ops;
}

#endif /* TESTS_SUPPORT_GRAPHS_H */
