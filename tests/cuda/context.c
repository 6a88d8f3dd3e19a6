/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts on CUDA: graphs, bindings, events, layers that no graph can hold, threads,
 * memory, a lost device.
 */
#include "tests/cuda/chain.h"
#include "tests/cuda/device.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

TestSuite(cuda_context, .fini = remove_files, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

static const char *const kernels[] = {"kernel", "kernel", "kernel", "kernel", "kernel"};

Test(cuda_context, runs_are_the_host_s_with_a_graph_and_without)
{
    strata_handle *h = need_cuda();
    strata_error err = {0};
    struct net n;
    write_chain(kernels, 5, true);
    open_net(&n, host_handle());
    run_chain(&n, 5, "host");
    cr_expect_eq(n.context->graphs[0].n, 0);
    close_net(&n);
    write_chain(kernels, 5, false);
    open_net(&n, h);
    run_chain(&n, 5, "first run");
    cr_expect_eq(n.context->graphs[0].n, 0, "the first run loads the kernels");
    for (int i = 0; i < 3; i++)
        run_chain(&n, 5, "graph");
    cr_assert_eq(n.context->graphs[0].n, 1);
    cr_expect_not_null(n.context->graphs[0].segments[0].graph);
    OK(strata_context_use_graph(n.context, 0, &err));
    for (int i = 0; i < 3; i++)
        run_chain(&n, 5, "no graph");
    cr_expect_eq(n.context->graphs[0].n, 0);
    OK(strata_context_use_graph(n.context, 1, &err));
    OK(strata_context_prepare(n.context, &err));
    cr_expect_eq(n.context->graphs[0].n, 1);
    run_chain(&n, 5, "prepared");
    close_net(&n);
}

/* Layers that no graph can hold, by their flags or found out and warned of. */
static const struct parted {
    const char *impls[5];
    int warnings;
} parted[] = {
    {{"kernel", "kernel", "apart", "kernel", "kernel"}, 0},
    {{"apart", "apart", "kernel", "kernel", "apart"}, 0},
    {{"kernel", "waiting", "kernel", "kernel", "kernel"}, 1},
    {{"kernel", "refusing", "kernel", "refusing", "kernel"}, 2},
    {{"apart", "apart", "apart", "apart", "apart"}, 0},
    {{"waiting", "waiting", "waiting", "waiting", "waiting"}, 5},
};

struct lines {
    char text[4096];
    int warnings;
};

static void keep_line(void *user, int level, const char *text)
{
    struct lines *l = user;
    const size_t used = strlen(l->text);
    l->warnings += level == STRATA_LOG_WARNING;
    snprintf(l->text + used, sizeof l->text - used, "%s\n", text);
}

/* Reformats are always captured. */
static size_t expected_segments(const struct net *n)
{
    const strata_engine *e = n->engine;
    size_t segments = 0;
    int before = -1;
    for (size_t s = 0; s < e->execution->n_steps; s++) {
        const struct execution_step *step = &e->execution->steps[s];
        const bool alone =
            step->kind == STEP_RUN &&
            strcmp(e->execution->nodes[step->node].impl->impl.name, "kernel") != 0;
        segments += before != (int)alone;
        before = alone;
    }
    return segments;
}

Test(cuda_context, layers_that_cannot_be_captured_part_the_graph)
{
    for (size_t i = 0; i < ARRAY_LENGTH(parted); i++) {
        struct net n;
        struct lines lines = {0};
        strata_handle *h = need_cuda();
        write_chain(parted[i].impls, 5, false);
        open_net(&n, h);
        run_chain(&n, 5, "first run");
        strata_set_logger(keep_line, &lines, STRATA_LOG_WARNING);
        for (int k = 0; k < 3; k++)
            run_chain(&n, 5, "parted");
        strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
        cr_expect_eq(n.context->graphs[0].n, expected_segments(&n),
                     "case %zu: %zu of %zu", i, n.context->graphs[0].n,
                     expected_segments(&n));
        cr_expect_eq(lines.warnings, parted[i].warnings, "case %zu: %s", i, lines.text);
        for (int k = 0; k < 5; k++)
            if (strcmp(parted[i].impls[k], "waiting") == 0) {
                char name[16];
                snprintf(name, sizeof name, "'t%d'", k);
                cr_expect_not_null(strstr(lines.text, name), "%s in: %s", name,
                                   lines.text);
            }
        close_net(&n);
    }
}

Test(cuda_context, bound_memory_is_read_and_written_by_the_runs_that_follow)
{
    strata_handle *h = need_cuda();
    strata_error err = {0};
    static float x[CHAIN_COUNT], y[CHAIN_COUNT], want[CHAIN_COUNT];
    struct net n;
    void *in[3], *out[3];
    write_chain(kernels, 4, false);
    open_net(&n, h);
    const struct device_ops *ops = h->device->ops;
    for (int k = 0; k < 3; k++) {
        in[k] = allocator_get(&h->allocator, sizeof x, "x", &err);
        out[k] = allocator_get(&h->allocator, sizeof y, "y", &err);
        cr_assert(in[k] && out[k], "%s", err.message);
    }
    for (int round = 0; round < 12; round++) {
        const int k = round < 6 ? round / 2 : round % 3; /* held, then changed each run */
        draw(x, CHAIN_COUNT);
        chain_of(want, x, 4);
        OK(strata_context_bind(n.context, 0, in[k], &err));
        OK(strata_context_bind(n.context, 1, out[k], &err));
        OK(ops->copy(h->stream, in[k], x, sizeof x, COPY_TO_DEVICE, &err));
        OK(ops->fill(h->stream, out[k], 0xff, sizeof y, &err));
        OK(strata_context_enqueue(n.context, NULL, &err));
        OK(strata_context_wait(n.context, &err));
        OK(ops->copy(h->stream, y, out[k], sizeof y, COPY_FROM_DEVICE, &err));
        OK(strata_stream_synchronize(h->stream, &err));
        expect_equal(y, want, round < 6 ? "held" : "changed");
    }
    OK(strata_context_bind(n.context, 0, NULL, &err));
    OK(strata_context_bind(n.context, 1, NULL, &err));
    for (int k = 0; k < 3; k++) {
        allocator_put(&h->allocator, in[k], sizeof x);
        allocator_put(&h->allocator, out[k], sizeof y);
    }
    run_chain(&n, 4, "own memory again");
    close_net(&n);
}

/* t0 reads the input, then the slow layer keeps the stream busy for 50 ms. */
Test(cuda_context, enqueue_is_asynchronous_and_consumed_inputs_may_be_overwritten)
{
    static const char *const impls[] = {"kernel", "slow", "kernel"};
    static float x[CHAIN_COUNT], y[CHAIN_COUNT], want[CHAIN_COUNT];
    strata_handle *h = need_cuda();
    strata_error err = {0};
    strata_event *consumed = NULL, *end = NULL;
    strata_stream *other = NULL;
    struct net n;
    double ms = 0;
    write_chain(impls, 3, false);
    open_net(&n, h);
    OK(strata_event_create(&consumed, h, &err));
    OK(strata_event_create(&end, h, &err));
    OK(strata_stream_create(&other, h, &err));
    OK(strata_context_prepare(n.context, &err));
    for (int round = 0; round < 6; round++) {
        OK(strata_context_use_graph(n.context, round < 3, &err));
        draw(x, CHAIN_COUNT);
        chain_of(want, x, 3);
        OK(strata_copy_in(n.context, 0, x, &err));
        OK(strata_context_enqueue(n.context, consumed, &err));
        OK(strata_event_record(end, h->stream, &err));
        cr_expect_eq(strata_event_elapsed(&ms, consumed, end, &err), STRATA_EBUSY,
                     "round %d: enqueue waited for the run", round);
        OK(strata_stream_wait(other, consumed, &err));
        OK(h->device->ops->fill(other, strata_context_data(n.context, 0), 0xff, sizeof x,
                                &err));
        OK(strata_context_wait(n.context, &err));
        OK(strata_stream_synchronize(other, &err));
        OK(strata_event_elapsed(&ms, consumed, end, &err));
        cr_expect_gt(ms, 40, "round %d: the event came %g ms before the end", round, ms);
        OK(strata_copy_out(n.context, 1, y, &err));
        expect_equal(y, want, round < 3 ? "graph" : "no graph");
    }
    strata_event_destroy(consumed);
    strata_event_destroy(end);
    strata_stream_destroy(other);
    close_net(&n);
}

struct worker {
    const strata_engine *engine;
    unsigned seed;
    int wrong; /* runs; negative: a call failed */
    strata_error err;
};

/* Contexts come, are captured while the others allocate and run, and go. */
static void *use_engine(void *arg)
{
    struct worker *w = arg;
    strata_handle *h = NULL;
    float *x = malloc(3 * CHAIN_COUNT * sizeof *x), *y = x + CHAIN_COUNT,
          *want = y + CHAIN_COUNT;
    int status = x ? strata_create(&h, "cuda:0", &w->err) : STRATA_ENOMEM;
    for (int round = 0; round < 60 && status == STRATA_OK; round++) {
        strata_context *c = NULL;
        status = strata_context_create(&c, w->engine, h, &w->err);
        for (int run = 0; run < 3 && status == STRATA_OK; run++) {
            draw_from(x, CHAIN_COUNT, w->seed++);
            chain_of(want, x, 5);
            if ((status = strata_copy_in(c, 0, x, &w->err)) == STRATA_OK &&
                (status = strata_context_run(c, &w->err)) == STRATA_OK)
                status = strata_copy_out(c, 1, y, &w->err);
            w->wrong +=
                status == STRATA_OK && memcmp(y, want, CHAIN_COUNT * sizeof *y) != 0;
        }
        strata_context_destroy(c);
    }
    strata_destroy(h);
    free(x);
    w->wrong = status == STRATA_OK ? w->wrong : -status;
    return NULL;
}

Test(cuda_context, threads_share_an_engine_with_contexts_of_their_own)
{
    enum { THREADS = 4 };
    static struct worker workers[THREADS];
    pthread_t threads[THREADS];
    strata_handle *h = need_cuda();
    struct net n;
    write_chain(kernels, 5, false);
    open_net(&n, h);
    for (int k = 0; k < THREADS; k++) {
        workers[k] = (struct worker){.engine = n.engine,
                                     .seed = fresh_seed() + 1000u * (unsigned)k};
        cr_assert_eq(pthread_create(&threads[k], NULL, use_engine, &workers[k]), 0);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
        cr_expect_eq(workers[k].wrong, 0, "thread %d: %d wrong, %s", k, workers[k].wrong,
                     workers[k].err.message);
    }
    close_net(&n);
}

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void use_contexts(const struct net *n, strata_handle *h, int count)
{
    strata_error err = {0};
    for (int i = 0; i < count; i++) {
        strata_context *c = NULL;
        OK(strata_context_create(&c, n->engine, h, &err));
        OK(strata_context_prepare(c, &err));
        OK(strata_context_run(c, &err));
        strata_context_destroy(c);
    }
}

/* The device's count is of all programs', which come and go: contexts leave nothing
 * behind where it is once the same after a thousand of them. Where it never is, but is
 * while none are made, for as long, they do; where neither, it cannot be told here. */
static void expect_no_loss(const struct net *n, strata_handle *h)
{
    enum { FIRST = 1000, LATER = 200, ROUNDS = 20, QUIET = 5 };
    const struct device_ops *ops = h->device->ops;
    const double end = milliseconds() + 30e3;
    int quiet = 0;
    uint64_t before = 0, after = 0;
    for (int i = 0; i < ROUNDS && quiet < QUIET && (i < 2 || milliseconds() < end); i++) {
        const double begin = milliseconds();
        before = ops->free_bytes(h->device);
        use_contexts(n, h, i == 0 ? FIRST : LATER);
        after = ops->free_bytes(h->device);
        if (after == before)
            return;
        usleep((useconds_t)((milliseconds() - begin) * 1e3));
        quiet += ops->free_bytes(h->device) == after;
    }
    cr_expect_lt(quiet, QUIET, "device: %lld bytes more in use after %d contexts",
                 (long long)before - (long long)after, LATER);
    if (quiet < QUIET)
        fprintf(stderr, "# other programs' memory changed all the time: the device's "
                        "count tells nothing of contexts\n");
}

Test(cuda_context, a_thousand_contexts_leave_no_memory_behind)
{
    strata_handle *h = need_cuda();
    strata_memory_stats before = {.struct_size = sizeof before},
                        after = {.struct_size = sizeof after};
    struct net n;
    write_chain(kernels, 5, false);
    open_net(&n, h);
    strata_get_memory_stats(h, &before, NULL);
    use_contexts(&n, h, 20); /* the driver's own pools grow */
    expect_no_loss(&n, h);
    strata_get_memory_stats(h, &after, NULL);
    cr_expect_eq(after.current_bytes, before.current_bytes);
    cr_expect_eq(after.current_blocks, before.current_blocks);
    close_net(&n);
}

/* The longest of some calls that must all say that the device is lost. */
static double slowest_call(struct net *n, int *lost)
{
    strata_error err;
    double worst = 0;
    *lost = 0;
    for (int i = 0; i < 5; i++) {
        float x[1] = {0};
        const double begin = milliseconds();
        int status = i == 0   ? strata_context_enqueue(n->context, NULL, &err)
                     : i == 1 ? strata_context_wait(n->context, &err)
                     : i == 2 ? strata_context_run(n->context, &err)
                     : i == 3 ? strata_copy_in(n->context, 0, x, &err)
                              : strata_context_prepare(n->context, &err);
        const double took = milliseconds() - begin;
        *lost += status == STRATA_EDEVICELOST;
        worst = took > worst ? took : worst;
    }
    return worst;
}

Test(cuda_context, a_layer_s_fault_loses_the_device_and_the_host_runs_on)
{
    static const char *const impls[] = {"kernel", "faulting", "kernel"};
    strata_handle *h = need_cuda();
    strata_error err = {0};
    struct net n, on_host;
    int lost = 0;
    write_chain(impls, 3, true);
    open_net(&on_host, host_handle());
    write_chain(impls, 3, false);
    open_net(&n, h);
    cr_expect_eq(strata_context_run(n.context, &err), STRATA_EDEVICELOST, "%s",
                 err.message);
    cr_expect_not_null(strstr(err.message, "is lost since"), "%s", err.message);
    const double worst = slowest_call(&n, &lost);
    cr_expect_eq(lost, 5, "%d of 5", lost);
    fprintf(stderr, "# of 5 calls to a lost device the slowest took %g ms\n", worst);
    run_chain(&on_host, 3, "host");
    close_net(&n);
    close_net(&on_host);
}
