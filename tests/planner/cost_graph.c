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
#include "tests/support/graphs.h"

enum { LAUNCH_S = 1, LEAD_S = 1 };

static double pushed; /* s */
static int launches;

static int lead(strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    if (captured)
        captured->leads++;
    else
        pushed += LEAD_S;
    return STRATA_OK;
}

static int launch(strata_stream *s, void *graph, strata_error *err)
{
    const struct graph *g = graph;
    pushed += LAUNCH_S + g->leads * LEAD_S;
    launches++;
    return graph_run(g, s, err);
}

static int event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    ((struct graph_event *)e)->when = progress_now() + pushed;
    return STRATA_OK;
}

static int event_elapsed(double *ms, strata_event *from, strata_event *to,
                         strata_error *err)
{
    (void)err;
    *ms = graph_elapsed(from, to) * 1e3;
    return STRATA_OK;
}

static struct device_ops ops_of(const struct device *host)
{
    struct device_ops ops = graph_ops(host);
    ops.lead = lead;
    ops.graph_launch = launch;
    ops.event_record = event_record;
    ops.event_elapsed = event_elapsed;
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
    cr_expect_eq(graphs, 0, "%d graphs are left", graphs);
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
