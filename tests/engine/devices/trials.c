/* SPDX-License-Identifier: Apache-2.0
 *
 * Trials in the network on a device with graphs, played by the host: runs take what their
 * impls push a clock by, which depends on who ran before.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "planner/cost/progress.h"
#include "planner/planner.h"
#include "tests/broken/build.h"
#include "tests/support/fault.h"
#include "tests/support/graphs.h"

TestSuite(trials, .fini = scratch_remove, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

enum { LAYERS = 4, UNINTERRUPTED = -1 };

static double *clock_us, *stall_us;
static int *states;
static int whole_runs, interrupt_at = UNINTERRUPTED;

static int launch(strata_stream *s, void *graph, strata_error *err)
{
    const struct graph *g = graph;
    const int status = graph_run(g, s, err);
    if (g->n == LAYERS && whole_runs++ == interrupt_at)
        progress_interrupt();
    return status;
}

static int event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    (void)s, (void)err;
    ((struct graph_event *)e)->when = *clock_us;
    return STRATA_OK;
}

static int event_elapsed(double *ms, strata_event *from, strata_event *to,
                         strata_error *err)
{
    (void)err;
    *ms = graph_elapsed(from, to) / 1e3;
    return STRATA_OK;
}

/* A handle on the played device, and the network on it. */
struct play {
    strata_handle *handle;
    struct device *host, device;
    struct device_ops ops;
    strata_stream *own, stream;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
};

static void play_device(struct play *p)
{
    p->host = p->handle->device;
    p->own = p->handle->stream;
    p->ops = graph_ops(p->host);
    p->ops.lead = NULL;
    p->ops.stream_run_here = NULL;
    p->ops.stream_visit = NULL;
    p->ops.run_begin = NULL;
    p->ops.run_end = NULL;
    p->ops.graph_launch = launch;
    p->ops.event_record = event_record;
    p->ops.event_elapsed = event_elapsed;
    p->device.ops = &p->ops;
    p->stream.device = &p->device;
    p->handle->device = &p->device;
    p->handle->stream = &p->stream;
}

static void open_play(struct play *p)
{
    static const char text[] =
        "[network]\nformat = 1\noutputs = d\n[input x]\nshape = 1 x 2 x 4 x 4\n"
        "[layer a]\ntype = First\n[layer b]\ntype = Second\n"
        "[layer c]\ntype = First\n[layer d]\ntype = Second\n";
    strata_error err = {0};
    scratch_make();
    const char *files[] = {build("near.so", "modules/neighbour_layers.c", SHARED)};
    strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    FILE *f = fopen(in_scratch("net.ini"), "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
    *p = (struct play){.handle = NULL};
    OK(strata_create(&p->handle, "host", &err));
    OK(strata_registry_create(&p->registry, &from, &err));
    OK(strata_network_load(&p->network, in_scratch("net.ini"), p->registry, NULL, &err));
    p->network->build.costs.kind = COSTS_MEASURE;
    p->network->build.trials = UINT64_C(60000000000);
    void *module = dlopen(in_scratch("near.so"), RTLD_NOW | RTLD_NOLOAD);
    cr_assert_not_null(module, "%s", dlerror());
    clock_us = dlsym(module, "neighbour_us");
    stall_us = dlsym(module, "neighbour_stall_us");
    states = dlsym(module, "neighbour_states");
    cr_assert(clock_us && stall_us && states);
    dlclose(module);
    play_device(p);
}

static void close_play(struct play *p)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_engine_destroy(p->engine);
    strata_get_memory_stats(p->handle, &stats, NULL);
    cr_expect_eq(stats.current_bytes, 0);
    cr_expect_eq(*states, 0, "%d states are left", *states);
    cr_expect_eq(graphs, 0, "%d graphs are left", graphs);
    strata_network_destroy(p->network);
    strata_registry_destroy(p->registry);
    p->handle->device = p->host;
    p->handle->stream = p->own;
    strata_destroy(p->handle);
}

static void expect_impls(const strata_engine *e, const char *a, const char *b)
{
    const struct execution *x = e->execution;
    cr_assert_eq(x->n_nodes, LAYERS);
    for (int i = 0; i < LAYERS; i++)
        cr_expect_str_eq(x->nodes[i].impl->impl.name, i % 2 ? b : a, "layer %d", i);
}

Test(trials, what_is_dearer_alone_and_faster_behind_its_neighbour_is_taken)
{
    struct play p;
    strata_error err = {0};
    open_play(&p);
    *stall_us = 30;
    OK(strata_engine_build(&p.engine, p.handle, p.network, &err));
    expect_impls(p.engine, "first", "steady");
    const struct planner *planner = p.engine->planner;
    cr_assert_eq(planner->n_left, 1);
    cr_expect_str_eq(planner->left[0].impl, "stalled");
    cr_expect_str_eq(planner->left[0].layer, "b");
    cr_expect_eq(planner->left[0].uses, 2);
    cr_expect_eq(planner->left[0].with_ns, 460000);
    cr_expect_eq(planner->left[0].without_ns, 402000);
    cr_expect(planner->plan->proved);
    cr_expect_eq(planner->plan->cost, INT64_C(402000) * PLAN_UNIT_PER_NS);
    cr_expect_eq(p.engine->execution->cost, planner->plan->cost);
    cr_expect_eq(*states, LAYERS);
    for (int i = 0; i < LAYERS; i++)
        cr_expect_eq(p.engine->parts[i]->holders, 1, "part %d", i);
    cr_expect_neq(p.engine->parts[0]->execution, p.engine->parts[1]->execution,
                  "what did not change was made again");
    close_play(&p);
}

Test(trials, prices_are_as_they_were_and_files_tell_what_was_left)
{
    struct play p;
    strata_engine *loaded = NULL;
    strata_error err = {0};
    open_play(&p);
    *stall_us = 30;
    OK(strata_engine_build(&p.engine, p.handle, p.network, &err));
    const struct cost_table *known = &p.engine->planner->known;
    size_t cheap = 0;
    for (size_t i = 0; i < known->n; i++) {
        cheap += known->entries[i].cost.ns == 100000;
        cr_expect_leq(known->entries[i].cost.ns, 101000, "%s", known->entries[i].key);
    }
    cr_expect_eq(cheap, 2);
    OK(strata_engine_save(p.engine, in_scratch("net.engine"), &err));
    OK(strata_engine_load(&loaded, p.handle, p.registry, in_scratch("net.engine"), &err));
    cr_assert_eq(loaded->planner->n_left, 1);
    const struct planner_left *left = &loaded->planner->left[0];
    cr_expect_str_eq(left->impl, "stalled");
    char *text = planner_left_text(left);
    cr_expect_str_eq(text, "without stalled for 'b' and 1 more like it a run takes "
                           "0.4020 ms, 0.4600 with it: left");
    free(text);
    strata_engine_destroy(loaded);
    close_play(&p);
}

Test(trials, what_is_dearer_and_slower_loses)
{
    struct play p;
    strata_error err = {0};
    open_play(&p);
    OK(strata_engine_build(&p.engine, p.handle, p.network, &err));
    expect_impls(p.engine, "first", "stalled");
    cr_expect_eq(p.engine->planner->n_left, 0);
    cr_expect_gt(whole_runs, 0);
    close_play(&p);
}

Test(trials, an_interrupt_ends_the_build_and_leaves_nothing)
{
    struct play p;
    strata_error err = {0};
    open_play(&p);
    *stall_us = 30;
    interrupt_at = 20;
    cr_expect_eq(strata_engine_build(&p.engine, p.handle, p.network, &err), STRATA_EBUSY,
                 "%s", err.message);
    cr_expect_null(p.engine);
    close_play(&p);
}

/* Each allocation of a build fails in turn, or all from one on: it has an engine, or says
 * why not, and nothing of it stays. */
Test(trials, builds_that_run_out_of_memory_leave_nothing)
{
    enum { TRIED = 150 };
    struct play p;
    strata_error err = {0};
    open_play(&p);
    *stall_us = 30;
    fault_json(true);
    fault_arm(FAULT_MEMORY, 0, false);
    OK(strata_engine_build(&p.engine, p.handle, p.network, &err));
    const long calls = fault_disarm();
    strata_engine_destroy(p.engine);
    int errors = 0, coped = 0;
    const long before = fault_blocks();
    for (int k = 0; k < 2 * TRIED; k++) {
        const long at = 1 + calls * (k / 2) / TRIED;
        fault_arm(FAULT_MEMORY, at, k % 2);
        const int status = strata_engine_build(&p.engine, p.handle, p.network, &err);
        fault_disarm();
        cr_assert(status == STRATA_OK || status == STRATA_ENOMEM, "at %ld: %s", at,
                  err.message);
        cr_assert_eq(p.engine == NULL, status != STRATA_OK, "at %ld", at);
        *(status == STRATA_OK ? &coped : &errors) += 1;
        strata_engine_destroy(p.engine);
        p.engine = NULL;
        cr_assert_eq(*states, 0, "at %ld: %d states", at, *states);
        cr_assert_eq(graphs, 0, "at %ld: %d graphs", at, graphs);
        cr_assert_eq(fault_blocks(), before, "at %ld: %ld blocks", at,
                     fault_blocks() - before);
    }
    fault_json(false);
    cr_expect(errors > 0 && coped > 0, "%d errors, %d did without", errors, coped);
    close_play(&p);
}

Test(trials, none_are_made_where_there_is_no_time_for_them)
{
    struct play p;
    strata_error err = {0};
    open_play(&p);
    *stall_us = 30;
    p.network->build.trials = 0;
    OK(strata_engine_build(&p.engine, p.handle, p.network, &err));
    expect_impls(p.engine, "first", "stalled");
    close_play(&p);
}
