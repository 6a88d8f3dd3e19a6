/* SPDX-License-Identifier: Apache-2.0
 *
 * Times of a device with a lead and graphs, played by the host: launching a graph and the
 * lead take a second each of a clock that they push, which costs must not hold.
 */
#include <string.h>

#include "core/handle.h"
#include "planner/cost/progress.h"
#include "tests/broken/build.h"
#include "tests/planner/planning.h"

enum { LAUNCH_S = 1, LEAD_S = 1, MOST_WORK = 16 };

struct work {
    device_work run;
    char payload[DEVICE_PAYLOAD];
};
struct graph {
    struct work work[MOST_WORK];
    int n, leads;
};
struct event {
    strata_event event;
    double when;
};

static double pushed; /* s */
static struct graph *captured;
static int captures, launches;

static int put(strata_stream *s, device_work work, const void *payload, size_t bytes,
               strata_error *err)
{
    struct work w = {.run = work};
    memcpy(w.payload, payload, bytes);
    if (!captured)
        return w.run(w.payload, s, err);
    cr_assert_lt(captured->n, MOST_WORK);
    captured->work[captured->n++] = w;
    return STRATA_OK;
}

static int lead(strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    if (captured)
        captured->leads++;
    else
        pushed += LEAD_S;
    return STRATA_OK;
}

static int begin(strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    cr_assert_null(captured);
    captured = calloc(1, sizeof *captured);
    captures++;
    return STRATA_OK;
}

static int end(strata_stream *s, void **graph, strata_error *err)
{
    (void)s, (void)err;
    *graph = captured;
    captured = NULL;
    return STRATA_OK;
}

static int launch(strata_stream *s, void *graph, strata_error *err)
{
    struct graph *g = graph;
    int status = STRATA_OK;
    pushed += LAUNCH_S + g->leads * LEAD_S;
    launches++;
    for (int i = 0; i < g->n && status == STRATA_OK; i++)
        status = g->work[i].run(g->work[i].payload, s, err);
    return status;
}

static void drop(struct device *d, void *graph)
{
    (void)d;
    captures--;
    free(graph);
}

static int event_create(struct device *d, strata_event **out, strata_error *err)
{
    struct event *e = calloc(1, sizeof *e);
    (void)err;
    e->event.device = d;
    *out = &e->event;
    return STRATA_OK;
}

static void event_destroy(strata_event *e)
{
    free(e);
}

static int event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    ((struct event *)e)->when = progress_now() + pushed;
    return STRATA_OK;
}

static int event_elapsed(double *ms, strata_event *from, strata_event *to,
                         strata_error *err)
{
    (void)err;
    *ms = (((struct event *)to)->when - ((struct event *)from)->when) * 1e3;
    return STRATA_OK;
}

static int synchronize(strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    return STRATA_OK;
}

static int copy(strata_stream *s, void *to, const void *from, size_t bytes,
                enum device_copy direction, strata_error *err)
{
    (void)s, (void)direction, (void)err;
    memcpy(to, from, bytes);
    return STRATA_OK;
}

static int fill(strata_stream *s, void *to, int byte, size_t bytes, strata_error *err)
{
    (void)s, (void)err;
    memset(to, byte, bytes);
    return STRATA_OK;
}

static struct device_ops ops_of(const struct device *host)
{
    struct device_ops ops = *host->ops;
    ops.submit = put;
    ops.lead = lead;
    ops.capture_begin = begin;
    ops.capture_end = end;
    ops.graph_launch = launch;
    ops.graph_destroy = drop;
    ops.event_create = event_create;
    ops.event_destroy = event_destroy;
    ops.event_record = event_record;
    ops.event_elapsed = event_elapsed;
    ops.stream_synchronize = synchronize;
    ops.copy = copy;
    ops.fill = fill;
    return ops;
}

static void write_waits(void)
{
    char path[300];
    build("timed.so", "modules/timed_layers.c", SHARED);
    snprintf(path, sizeof path, "%s/net.ini", scratch);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = b\n[input x]\nshape = 1 x 2 x 4 x 4\n"
          "[layer a]\ntype = Wait\n[layer b]\ntype = Wait\n",
          f);
    fclose(f);
}

/* All costs of two layers that wait, on the device that is played. */
static void measure(struct cost_table *t, strata_handle *h, bool cold)
{
    char net[300];
    const char *files[] = {in_scratch("timed.so")};
    strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    const struct cost_options options = {.kind = COSTS_MEASURE, .everything = true};
    struct planning s;
    struct cost_device device;
    snprintf(net, sizeof net, "%s/net.ini", scratch);
    cr_assert_eq(planning_load(&s, net, &from, NULL, 0), STRATA_OK, "%s", s.err.message);
    s.device = (struct planner_device){h->properties, h->math};
    cr_assert_eq(planning_model(&s), STRATA_OK, "%s", s.err.message);
    s.planner->cold = cold;
    cost_table_init(t, "host");
    cost_device_init(&device, h);
    cr_assert_eq(cost_plan_from(s.planner, t, &device.source, &options, &s.err),
                 STRATA_OK, "%s", s.err.message);
    planning_close(&s);
}

static void expect_no_launches(bool cold)
{
    strata_handle *h;
    struct cost_table t;
    scratch_make();
    write_waits();
    cr_assert_eq(strata_create(&h, "host", NULL), STRATA_OK);
    struct device *host = h->device;
    strata_stream *stream = h->stream;
    const struct device_ops ops = ops_of(host);
    struct device played = {.ops = &ops};
    strata_stream played_stream = {.device = &played};
    h->device = &played;
    h->stream = &played_stream;
    h->properties.cache_bytes = 1 << 16;
    measure(&t, h, cold);
    h->device = host;
    h->stream = stream;
    cr_expect_gt(launches, 0);
    cr_expect_eq(captures, 0, "%d graphs are left", captures);
    for (size_t i = 0; i < t.n; i++) {
        const struct cost_entry *e = &t.entries[i];
        cr_expect(strstr(e->key, cold ? "cache=cold" : "cache=warm"), "%s", e->key);
        cr_expect_lt(e->cost.ns, 100000000, "%s", e->key);
        if (strstr(e->key, " fast "))
            cr_expect_geq(e->cost.ns, 100000, "%s: %lld", e->key, (long long)e->cost.ns);
    }
    cost_table_free(&t);
    strata_destroy(h);
    scratch_remove();
}

Test(cost_graph, a_cost_holds_no_launch_and_no_lead_where_all_fits_into_the_cache)
{
    expect_no_launches(false);
}

Test(cost_graph, a_cost_holds_no_launch_and_no_lead_where_the_cache_is_cold)
{
    expect_no_launches(true);
}
