/* SPDX-License-Identifier: Apache-2.0
 *
 * A device with graphs, played by the host at once: whatever runs takes the same time.
 */
#ifndef TESTS_ENGINE_DEVICES_PLAYED_H
#define TESTS_ENGINE_DEVICES_PLAYED_H

#include "tests/engine/engine_session.h"
#include "tests/support/graphs.h"

#define PLAYED_US 10.0 /* that one piece of work takes */

static int played_last; /* pieces of work of the graph that ran last */
/* A graph of so many pieces of work takes so much more; 0: none. */
static int played_slow;
static double played_slow_us;

static int played_launch(strata_stream *s, void *graph, strata_error *err)
{
    const struct graph *g = graph;
    played_last = g->n;
    if (played_slow && g->n == played_slow)
        graph_clock += played_slow_us;
    return graph_run(g, s, err);
}

static int played_event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    ((struct graph_event *)e)->when = graph_clock;
    return STRATA_OK;
}

static int played_event_elapsed(double *ms, strata_event *from, strata_event *to,
                                strata_error *err)
{
    (void)err;
    *ms = graph_elapsed(from, to) / 1e3;
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
    p->ops = graph_ops(p->host);
    p->ops.lead = NULL;
    p->ops.stream_run_here = NULL;
    p->ops.stream_visit = NULL;
    p->ops.run_begin = NULL;
    p->ops.run_end = NULL;
    p->ops.graph_launch = played_launch;
    p->ops.event_record = played_event_record;
    p->ops.event_elapsed = played_event_elapsed;
    graph_work_takes = PLAYED_US;
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
    cr_expect_eq(graphs, 0);
}

#endif /* TESTS_ENGINE_DEVICES_PLAYED_H */
