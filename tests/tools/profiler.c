/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching an engine: its steps, their times, its memory, copies put on a stream; on the
 * host or on the device that STRATA_TEST_DEVICE names.
 */
#include <strata/strata.h>

#include "tests/support/scratch.h"

static char path[300];

static const char net[] = "[network]\nformat = 1\noutputs = act, pool\n"
                          "[input x]\nshape = 2 x 3 x 9 x 7\n"
                          "[weights w]\nrandom = 1\n"
                          "[layer conv]\ntype = Convolution\nfilters = 5\n"
                          "kernel = 3x3\npad = 1\nweights = w:conv\n"
                          "[layer act]\ntype = Activation\nkind = relu\n"
                          "[layer pool]\ntype = Pooling\nkind = average\n"
                          "kernel = 2x2\nstride = 2\n"
                          "[build]\nprecision = fp16\ncosts = analytic\n";

static struct {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    strata_error err;
} s;

#define WELL(call) cr_assert_eq((call), STRATA_OK, "%s", s.err.message)

static const char *device_name(void)
{
    const char *name = getenv("STRATA_TEST_DEVICE");
    return name ? name : "host";
}

static void open_session(void)
{
    scratch_make();
    snprintf(path, sizeof path, "%s", spill_text("net.ini", net));
    WELL(strata_registry_create(&s.registry, NULL, &s.err));
    WELL(strata_create(&s.handle, device_name(), &s.err));
    WELL(strata_network_load(&s.network, path, s.registry, NULL, &s.err));
    WELL(strata_engine_build(&s.engine, s.handle, s.network, &s.err));
    WELL(strata_context_create(&s.context, s.engine, s.handle, &s.err));
}

static void close_session(void)
{
    strata_context_destroy(s.context);
    strata_engine_destroy(s.engine);
    strata_network_destroy(s.network);
    strata_destroy(s.handle);
    strata_registry_destroy(s.registry);
    scratch_remove();
}

TestSuite(profiler, .init = open_session, .fini = close_session, .timeout = 600);
TestSuite(steps, .init = open_session, .fini = close_session, .timeout = 600);
TestSuite(copies, .init = open_session, .fini = close_session, .timeout = 600);

/* ---- steps ------------------------------------------------------------------------ */

Test(steps, carry_the_users_names_and_the_work_of_all_layers)
{
    bool conv = false, reformat = false;
    double operations = 0;
    for (int i = 0; i < strata_engine_steps(s.engine); i++) {
        strata_step step = {.struct_size = sizeof step};
        WELL(strata_engine_step(s.engine, i, &step, &s.err));
        cr_expect_neq(step.name, NULL);
        cr_expect_geq(step.live_bytes, 0);
        cr_expect_leq((uint64_t)step.live_bytes, strata_engine_arena_bytes(s.engine));
        cr_expect_eq(step.kind == STRATA_STEP_RUN, step.impl != NULL, "%s", step.name);
        if (step.kind == STRATA_STEP_RELABEL)
            continue;
        cr_expect_gt(step.bytes, 0, "%s", step.name);
        cr_expect_gt(step.floor_us, 0, "%s", step.name);
        cr_expect_gt(step.predicted_us, 0, "%s", step.name);
        operations += step.operations;
        reformat |= step.kind == STRATA_STEP_REFORMAT;
        if (step.kind != STRATA_STEP_RUN || strncmp(step.name, "conv", 4) != 0)
            continue;
        conv = true;
        cr_expect_str_eq(step.layer, "core::Convolution@1");
        cr_expect_neq(strstr(step.module, ".so"), NULL, "%s", step.module);
        /* 2 x 5 x 9 x 7 sums of 27 products */
        cr_expect_eq(step.operations, 2.0 * 630 * 27, "%g", step.operations);
        /* x in, 5 x 3 x 3 x 3 weights and out at FP16, pads beside */
        cr_expect_geq(step.bytes, 2 * (378 + 135 + 630), "%g", step.bytes);
    }
    cr_expect(conv);
    cr_expect(reformat, "an FP16 network of FP32 inputs has one");
    cr_expect_geq(operations, 2.0 * 630 * 27);
}

Test(steps, are_refused_past_the_last)
{
    strata_step step = {.struct_size = sizeof step};
    const int n = strata_engine_steps(s.engine);
    cr_expect_eq(strata_engine_step(s.engine, n, &step, &s.err), STRATA_EINVAL);
    cr_expect_neq(strstr(s.err.message, "there are"), NULL, "%s", s.err.message);
    cr_expect_eq(strata_engine_step(s.engine, -1, &step, NULL), STRATA_EINVAL);
}

/* ---- profiler --------------------------------------------------------------------- */

struct seen {
    int last, calls, runs;
    double end; /* of the step before */
    bool ordered;
};

static void see(void *user, const strata_engine *engine, int step, double begin,
                double took)
{
    struct seen *seen = user;
    seen->ordered &= engine == s.engine && took >= 0;
    if (step <= seen->last) { /* the next run */
        seen->runs++;
        seen->end = 0;
    }
    seen->ordered &= begin >= seen->end - 1e-3;
    seen->end = begin + took;
    seen->last = step;
    seen->calls++;
}

static int steps_that_do_something(void)
{
    int n = 0;
    strata_step step = {.struct_size = sizeof step};
    for (int i = 0; i < strata_engine_steps(s.engine); i++)
        n += strata_engine_step(s.engine, i, &step, NULL) == STRATA_OK &&
             step.kind != STRATA_STEP_RELABEL;
    return n;
}

Test(profiler, is_told_every_step_of_every_run_in_order)
{
    struct seen seen = {.last = 1 << 30, .ordered = true};
    const strata_profiler p = {.struct_size = sizeof p, .step = see, .user = &seen};
    WELL(strata_context_set_profiler(s.context, &p, &s.err));
    for (int i = 0; i < 3; i++) /* each is told when the next comes, the last on wait */
        WELL(strata_context_enqueue(s.context, NULL, &s.err));
    WELL(strata_context_wait(s.context, &s.err));
    cr_expect_eq(seen.runs, 3);
    cr_expect_eq(seen.calls, 3 * steps_that_do_something());
    cr_expect(seen.ordered);
    WELL(strata_context_wait(s.context, &s.err));
    cr_expect_eq(seen.runs, 3, "a run is told once");
    WELL(strata_context_set_profiler(s.context, NULL, &s.err));
    WELL(strata_context_run(s.context, &s.err));
    cr_expect_eq(seen.runs, 3, "and none after it was taken away");
}

Test(profiler, leaves_the_answers_alone)
{
    float before[630], after[630];
    const int act = strata_engine_find(s.engine, "act");
    const strata_profiler p = {.struct_size = sizeof p, .step = NULL};
    float x[378];
    for (int i = 0; i < 378; i++)
        x[i] = (float)(i % 17) / 8 - 1;
    WELL(strata_copy_in(s.context, 0, x, &s.err));
    WELL(strata_context_run(s.context, &s.err));
    WELL(strata_copy_out(s.context, act, before, &s.err));
    WELL(strata_context_set_profiler(s.context, &p, &s.err));
    WELL(strata_context_run(s.context, &s.err));
    WELL(strata_copy_out(s.context, act, after, &s.err));
    cr_expect_arr_eq(before, after, sizeof before);
}

Test(profiler, signals_that_the_inputs_were_read)
{
    strata_event *consumed = NULL;
    double ms = -1;
    const strata_profiler p = {.struct_size = sizeof p};
    WELL(strata_event_create(&consumed, s.handle, &s.err));
    WELL(strata_context_set_profiler(s.context, &p, &s.err));
    WELL(strata_context_enqueue(s.context, consumed, &s.err));
    WELL(strata_event_synchronize(consumed, &s.err));
    WELL(strata_event_elapsed(&ms, consumed, consumed, &s.err));
    cr_expect_eq(ms, 0);
    WELL(strata_context_wait(s.context, &s.err));
    strata_event_destroy(consumed);
}

Test(profiler, names_ranges_or_says_that_there_are_none)
{
    const strata_profiler p = {.struct_size = sizeof p, .ranges = 1};
    if (strcmp(device_name(), "host") != 0) {
        WELL(strata_context_set_profiler(s.context, &p, &s.err));
        WELL(strata_context_run(s.context, &s.err));
        return;
    }
    cr_expect_eq(strata_context_set_profiler(s.context, &p, &s.err), STRATA_EUNSUPPORTED);
    cr_expect_neq(strstr(s.err.message, "ranges"), NULL, "%s", s.err.message);
    WELL(strata_context_run(s.context, &s.err));
}

struct watched {
    const strata_engine *engine;
    int calls;
    bool known;
};

static void note_engine(void *user, const strata_engine *engine, int step, double begin,
                        double took)
{
    struct watched *w = user;
    strata_step description = {.struct_size = sizeof description};
    (void)begin;
    (void)took;
    w->engine = engine;
    w->known &= strata_engine_step(engine, step, &description, NULL) == STRATA_OK;
    w->calls++;
}

Test(profiler, watches_the_batches_of_an_engine)
{
    struct watched w = {.known = true};
    const strata_profiler p = {.struct_size = sizeof p, .step = note_engine, .user = &w};
    const strata_network_options options = {
        .struct_size = sizeof options,
        .set = (const char *const[]){"input x.shape=N x 3 x 9 x 7", "profile.N=2, 5"},
        .n_set = 2};
    strata_network *network = NULL;
    strata_engine *engine = NULL;
    strata_context *c = NULL;
    WELL(strata_network_load(&network, path, s.registry, &options, &s.err));
    WELL(strata_engine_build(&engine, s.handle, network, &s.err));
    WELL(strata_context_create(&c, engine, s.handle, &s.err));
    WELL(strata_context_set_profiler(c, &p, &s.err));
    WELL(strata_context_run(c, &s.err));
    cr_expect_eq(w.engine, engine);
    const int calls = w.calls;
    cr_expect_gt(calls, 0);
    WELL(strata_context_set_batch(c, 1, &s.err));
    WELL(strata_context_run(c, &s.err));
    cr_expect_gt(w.calls, calls, "runs of the smaller one are watched");
    cr_expect_neq(w.engine, engine);
    cr_expect(w.known);
    WELL(strata_context_set_profiler(c, NULL, &s.err));
    const int told = w.calls;
    WELL(strata_context_run(c, &s.err));
    cr_expect_eq(w.calls, told);
    strata_context_destroy(c);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
}

/* ---- copies ----------------------------------------------------------------------- */

Test(copies, on_the_stream_come_in_order_with_runs)
{
    const int act = strata_engine_find(s.engine, "act");
    float waited[630], *out[2], *in[2];
    for (int k = 0; k < 2; k++) {
        in[k] = strata_host_alloc(s.handle, 378 * 4, &s.err);
        out[k] = strata_host_alloc(s.handle, 630 * 4, &s.err);
        cr_assert(in[k] && out[k]);
        for (int i = 0; i < 378; i++)
            in[k][i] = (float)((i * (k + 3)) % 19) / 8 - 1;
    }
    for (int k = 0; k < 2; k++) {
        WELL(strata_enqueue_copy_in(s.context, 0, in[k], &s.err));
        WELL(strata_context_enqueue(s.context, NULL, &s.err));
        WELL(strata_enqueue_copy_out(s.context, act, out[k], &s.err));
    }
    WELL(strata_context_wait(s.context, &s.err));
    cr_expect_neq(memcmp(out[0], out[1], 630 * 4), 0);
    for (int k = 0; k < 2; k++) {
        WELL(strata_copy_in(s.context, 0, in[k], &s.err));
        WELL(strata_context_run(s.context, &s.err));
        WELL(strata_copy_out(s.context, act, waited, &s.err));
        cr_expect_arr_eq(waited, out[k], sizeof waited);
        strata_host_free(s.handle, in[k], 378 * 4);
        strata_host_free(s.handle, out[k], 630 * 4);
    }
    cr_expect_eq(strata_enqueue_copy_out(s.context, 99, waited, &s.err), STRATA_EINVAL);
}

/* ---- memory ------------------------------------------------------------------------ */

struct account {
    uint64_t bytes, events;
    bool right, arena;
};

static void book(void *user, const strata_memory_event *e)
{
    struct account *a = user;
    a->bytes += e->what ? e->bytes : -e->bytes;
    a->right &= a->bytes == e->current_bytes && e->ptr;
    a->arena |= e->what && strstr(e->what, "arena");
    a->events++;
}

Test(profiler, of_memory_sees_every_block_come_and_go)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_context *c = NULL;
    strata_get_memory_stats(s.handle, &stats, NULL);
    struct account a = {.bytes = stats.current_bytes, .right = true};
    const uint64_t before = a.bytes;
    strata_set_memory_observer(s.handle, book, &a);
    WELL(strata_context_create(&c, s.engine, s.handle, &s.err));
    WELL(strata_context_run(c, &s.err));
    cr_expect_gt(a.bytes, before);
    strata_context_destroy(c);
    cr_expect(a.right);
    cr_expect(a.arena);
    cr_expect_eq(a.bytes, before);
    const uint64_t events = a.events;
    strata_set_memory_observer(s.handle, NULL, NULL);
    WELL(strata_context_create(&c, s.engine, s.handle, &s.err));
    strata_context_destroy(c);
    cr_expect_eq(a.events, events);
}
