/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines and contexts, through the public interface: INI text in, values out.
 */
#include "engine/context/context.h"

#include <math.h>
#include <pthread.h>

#include "tests/engine/engine_session.h"

TestSuite(engine, .init = scratch_make, .fini = scratch_remove, .timeout = 600);
TestSuite(context, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

static int build(struct session *s, const char *ini, const char *const *set, size_t n_set)
{
    return session_build(s, spill_text("net.ini", ini), set, n_set);
}

static const char small[] = "[network]\nformat = 1\noutputs = act, pool\n"
                            "[input x]\nshape = 2 x 3 x 8 x 8\n"
                            "[weights w]\nrandom = 1\n"
                            "[layer conv]\ntype = Convolution\nfilters = 5\n"
                            "kernel = 3x3\npad = 1\nweights = w:conv\n"
                            "[layer act]\ntype = Activation\nkind = tanh\n"
                            "[layer pool]\ntype = Pooling\nkind = average\n"
                            "kernel = 2x2\nstride = 2\n";

static void fill_input(strata_context *c, const strata_engine *e, unsigned seed)
{
    strata_binding b = {.struct_size = sizeof b};
    strata_engine_binding(e, 0, &b, NULL);
    float *x = strata_context_data(c, 0);
    srand(seed);
    for (int64_t i = 0; i < b.bytes / 4; i++)
        x[i] = (float)(rand() % 256) / 128 - 1;
}

static double worst_difference(const float *a, const float *b, size_t n)
{
    double worst = 0, largest = 1e-30;
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)a[i]));
    }
    return worst / largest;
}

static void run_once(struct session *s, float *act, float *pool)
{
    strata_context *c = NULL;
    cr_assert_eq(strata_context_create(&c, s->engine, s->handle, &s->err), STRATA_OK,
                 "%s", s->err.message);
    fill_input(c, s->engine, 42);
    cr_assert_eq(strata_context_run(c, &s->err), STRATA_OK, "%s", s->err.message);
    memcpy(act, strata_context_data(c, strata_engine_find(s->engine, "act")),
           640 * sizeof *act);
    memcpy(pool, strata_context_data(c, strata_engine_find(s->engine, "pool")),
           160 * sizeof *pool);
    strata_context_destroy(c);
}

static const struct {
    const char *set[2];
    double tolerance;
} constraints[] = {
    {{"build.fusion=no", "build.precision=fp32"}, 1e-6},
    {{"build.formats=fp32:nchw", "build.precision=fp32"}, 1e-6},
    {{"build.formats=fp32:nhwc", "build.fusion=yes"}, 1e-6},
    {{"layer conv.impl=any", "layer pool.impl=c"}, 1e-6},
    {{"build.precision=fp16", "build.formats=fp16:nchw"}, 4e-3},
    {{"build.precision=fp16", "build.formats=fp16:nc/2hw2"}, 4e-3},
    {{"build.precision=fp16", "build.formats=fp16:nhwc8"}, 4e-3},
    {{"build.precision=any", "build.formats=fp32:nchw, fp16:nhwc8"}, 4e-3},
    {{"build.objective=memory", "build.memory_slack=100"}, 1e-6},
};

Test(engine, every_plan_of_a_network_gives_the_same_answer)
{
    struct session s;
    float act[640], pool[160], act2[640], pool2[160];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK, "%s", s.err.message);
    run_once(&s, act, pool);
    release(&s);
    for (size_t i = 0; i < ARRAY_LENGTH(constraints); i++) {
        cr_assert_eq(build(&s, small, constraints[i].set, 2), STRATA_OK, "%s: %s",
                     constraints[i].set[0], s.err.message);
        run_once(&s, act2, pool2);
        double a = worst_difference(act, act2, 640),
               p = worst_difference(pool, pool2, 160);
        cr_expect_leq(a, constraints[i].tolerance, "%s: %g", constraints[i].set[0], a);
        cr_expect_leq(p, constraints[i].tolerance, "%s: %g", constraints[i].set[0], p);
        release(&s);
    }
}

Test(engine, the_user_s_formats_are_kept)
{
    struct session s;
    const char *set[] = {"build.precision=fp16", "build.formats=fp16:nc/2hw2"};
    cr_assert_eq(build(&s, small, set, 2), STRATA_OK, "%s", s.err.message);
    for (size_t i = 0; i < s.engine->execution->n_nodes; i++)
        for (int k = 0; k < s.engine->execution->nodes[i].n_out; k++) {
            int value = s.engine->execution->nodes[i].out_values[k];
            cr_expect_eq(s.engine->execution->values[value].format,
                         __builtin_ctzll(STRATA_F16_NC2HW2));
        }
    release(&s);
}

Test(engine, a_fused_activation_keeps_the_user_s_names)
{
    struct session s;
    const char *off[] = {"build.fusion=no"};
    const char ini[] = "[network]\nformat = 1\noutputs = act\n"
                       "[input x]\nshape = 1 x 3 x 8 x 8\n[weights w]\nrandom = 1\n"
                       "[layer conv]\ntype = Convolution\nfilters = 4\nkernel = 1x1\n"
                       "weights = w:conv\n[layer act]\ntype = Activation\nkind = relu\n";
    cr_assert_eq(build(&s, ini, NULL, 0), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(s.engine->execution->n_nodes, 1);
    cr_expect_str_eq(s.engine->execution->nodes[0].name, "conv + act");
    release(&s);
    cr_assert_eq(build(&s, ini, off, 1), STRATA_OK);
    cr_expect_eq(s.engine->execution->n_nodes, 2);
    release(&s);
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    cr_expect_eq(strcmp(s.engine->execution->nodes[0].name, "conv + act"), 0,
                 "an output that another layer reads may still be fused into its maker");
    release(&s);
}

Test(engine, one_conversion_serves_two_readers)
{
    struct session s;
    const char ini[] = "[network]\nformat = 1\noutputs = sum\n"
                       "[input x]\nshape = 1 x 16 x 8 x 8\n[weights w]\nrandom = 1\n"
                       "[layer a]\ntype = Activation\ninputs = x\nkind = tanh\n"
                       "format = fp32:nhwc\n"
                       "[layer b]\ntype = Activation\ninputs = x\nkind = sigmoid\n"
                       "format = fp32:nhwc\n"
                       "[layer sum]\ntype = ElementWise\ninputs = a, b\nop = sum\n";
    cr_assert_eq(build(&s, ini, NULL, 0), STRATA_OK, "%s", s.err.message);
    size_t of_input = 0, reformats = 0;
    for (size_t i = 0; i < s.engine->execution->n_steps; i++) {
        const struct execution_step *step = &s.engine->execution->steps[i];
        if (step->kind != STEP_REFORMAT) /* re-labels are free */
            continue;
        reformats++;
        of_input +=
            strcmp(
                "x",
                s.network->tensors[s.engine->execution->values[step->to].tensor].name) ==
            0;
    }
    cr_expect_eq(of_input, 1);
    cr_expect_eq(reformats, 2, "and one for the output");
    release(&s);
}

Test(engine, no_reformat_is_inserted_where_formats_match)
{
    struct session s;
    const char *set[] = {"build.formats=fp32:nchw", "build.no_reformat=yes"};
    cr_assert_eq(build(&s, small, set, 2), STRATA_OK, "%s", s.err.message);
    for (size_t i = 0; i < s.engine->execution->n_steps; i++)
        cr_expect_eq(s.engine->execution->steps[i].kind, STEP_RUN);
    release(&s);
}

static const struct {
    const char *set[2];
    const char *text;
} infeasible[] = {
    {{"build.formats=int8:nc/4hw4", "build.fusion=no"}, "no impl of core::Convolution@1"},
    {{"layer conv.format=fp32:chwn", "build.fusion=no"},
     "no impl of core::Convolution@1"},
    {{"build.precision=fp16", "build.no_reformat=yes"}, "no_reformat"},
};

Test(engine, constraints_that_cannot_be_met_name_the_layer_and_the_reasons)
{
    for (size_t i = 0; i < ARRAY_LENGTH(infeasible); i++) {
        struct session s;
        cr_expect_eq(build(&s, small, infeasible[i].set, 2), STRATA_EPLAN, "%s",
                     infeasible[i].set[0]);
        cr_expect_neq(strstr(s.err.message, infeasible[i].text), NULL, "%s: %s",
                      infeasible[i].set[0], s.err.message);
        cr_expect_neq(strstr(s.err.message, "net.ini"), NULL);
        release(&s);
    }
}

Test(engine, plans_are_deterministic)
{
    struct session a, b;
    cr_assert_eq(build(&a, small, NULL, 0), STRATA_OK);
    for (int round = 0; round < 5; round++) {
        cr_assert_eq(build(&b, small, NULL, 0), STRATA_OK);
        cr_assert_eq(a.engine->execution->n_steps, b.engine->execution->n_steps);
        cr_expect_eq(a.engine->execution->cost, b.engine->execution->cost);
        for (size_t i = 0; i < a.engine->execution->n_nodes; i++) {
            cr_expect_str_eq(a.engine->execution->nodes[i].impl->impl.name,
                             b.engine->execution->nodes[i].impl->impl.name);
            cr_expect_eq(a.engine->execution->nodes[i].row,
                         b.engine->execution->nodes[i].row);
        }
        release(&b);
    }
    release(&a);
}

Test(engine, impls_over_the_workspace_limit_or_not_deterministic_are_refused)
{
    static const char *const limited[] = {"build.workspace=1", "layer conv.impl=any"};
    static const char *const sure[] = {"build.deterministic=yes"};
    struct session s;
    cr_expect_eq(build(&s, small, limited, 2), STRATA_EPLAN);
    cr_expect_neq(strstr(s.err.message, "is over [build] workspace = 1"), NULL, "%s",
                  s.err.message);
    release(&s);
    cr_assert_eq(build(&s, small, sure, 1), STRATA_OK);
    const struct registry_layer *conv = s.network->layers[0].type;
    for (size_t i = 0; i < conv->n_impls; i++)
        ((struct registry_impl *)conv->impls)[i].impl.flags |= STRATA_NONDETERMINISTIC;
    strata_engine_destroy(s.engine);
    cr_expect_eq(strata_engine_build(&s.engine, s.handle, s.network, &s.err),
                 STRATA_EPLAN);
    cr_expect_neq(strstr(s.err.message, "deterministic = yes"), NULL, "%s",
                  s.err.message);
    release(&s);
}

Test(engine, memory_all_comes_back)
{
    struct session s;
    float act[640], pool[160];
    strata_memory_stats stats = {.struct_size = sizeof stats};
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    run_once(&s, act, pool);
    strata_engine_destroy(s.engine);
    s.engine = NULL;
    strata_get_memory_stats(s.handle, &stats, NULL);
    cr_expect_eq(stats.current_bytes, 0);
    cr_expect_eq(stats.current_blocks, 0);
    cr_expect_gt(stats.peak_bytes, 0);
    release(&s);
}

Test(engine, outlives_its_network)
{
    struct session s;
    float act[640], pool[160];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    strata_network_destroy(s.network);
    s.network = NULL;
    run_once(&s, act, pool);
    release(&s);
}

Test(context, bound_memory_is_read_and_written_in_place)
{
    struct session s;
    strata_context *c = NULL;
    float act[640], pool[160];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    run_once(&s, act, pool);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, NULL), STRATA_OK);
    float *x = aligned_alloc(256, 2048), *y = aligned_alloc(256, 2560);
    fill_input(c, s.engine, 42);
    memcpy(x, strata_context_data(c, 0), 384 * sizeof *x);
    cr_expect_eq(strata_context_bind(c, 0, x, NULL), STRATA_OK);
    cr_expect_eq(strata_context_bind(c, strata_engine_find(s.engine, "act"), y, NULL),
                 STRATA_OK);
    cr_expect_eq(strata_context_run(c, NULL), STRATA_OK);
    cr_expect_arr_eq(y, act, sizeof act);
    cr_expect_eq(strata_context_bind(c, 0, (char *)x + 4, &s.err), STRATA_EINVAL);
    cr_expect_neq(strstr(s.err.message, "256"), NULL);
    cr_expect_eq(strata_context_bind(c, 9, x, &s.err), STRATA_EINVAL);
    strata_context_destroy(c);
    free(x);
    free(y);
    release(&s);
}

Test(context, binding_what_is_bound_already_changes_nothing)
{
    struct session s;
    strata_context *c = NULL;
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, NULL), STRATA_OK);
    float *x = aligned_alloc(256, 2048);
    memset(x, 0, 2048);
    for (int k = 0; k < 3; k++) {
        cr_expect_eq(strata_context_bind(c, 0, k < 2 ? x : NULL, NULL), STRATA_OK);
        cr_expect_eq(c->stale, k != 1, "round %d", k);
        cr_expect_eq(strata_context_run(c, NULL), STRATA_OK);
    }
    strata_context_destroy(c);
    free(x);
    release(&s);
}

/* Runs that are under way keep the memory they were enqueued with. */
Test(context, memory_bound_between_runs_holds_from_the_next_run_on)
{
    struct session s;
    strata_context *c = NULL;
    float act[640], pool[160];
    float *x[2], *y[2];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    run_once(&s, act, pool);
    int at = strata_engine_find(s.engine, "act");
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, NULL), STRATA_OK);
    fill_input(c, s.engine, 42);
    for (int k = 0; k < 2; k++) {
        x[k] = aligned_alloc(256, 2048);
        y[k] = aligned_alloc(256, 2560);
        memset(x[k], 0, 2048);
    }
    memcpy(x[0], strata_context_data(c, 0), 384 * sizeof **x);
    for (int round = 0; round < 200; round++) {
        memset(y[0], 0xFF, 2560);
        for (int k = 0; k < 2; k++) {
            cr_assert_eq(strata_context_bind(c, 0, x[k], NULL), STRATA_OK);
            cr_assert_eq(strata_context_bind(c, at, y[k], NULL), STRATA_OK);
            cr_assert_eq(strata_context_enqueue(c, NULL, NULL), STRATA_OK);
        }
        cr_assert_eq(strata_context_wait(c, NULL), STRATA_OK);
        cr_assert_arr_eq(y[0], act, sizeof act, "round %d", round);
        cr_assert_neq(memcmp(y[0], y[1], sizeof act), 0, "round %d", round);
    }
    strata_context_destroy(c);
    for (int k = 0; k < 2; k++) {
        free(x[k]);
        free(y[k]);
    }
    release(&s);
}

Test(engine, calls_without_their_objects_are_refused)
{
    struct session s;
    strata_engine *engine = (void *)&s;
    strata_context *context = (void *)&s;
    strata_handle *handle = (void *)&s;
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    cr_expect_eq(strata_engine_build(&engine, NULL, s.network, &s.err), STRATA_EINVAL);
    cr_expect_eq(strata_engine_build(&engine, s.handle, NULL, &s.err), STRATA_EINVAL);
    cr_expect_eq(strata_context_create(&context, NULL, s.handle, &s.err), STRATA_EINVAL);
    cr_expect_eq(strata_context_create(&context, s.engine, NULL, &s.err), STRATA_EINVAL);
    cr_expect_neq(strata_create(&handle, "toaster", &s.err), STRATA_OK);
    cr_expect_eq(handle, NULL, "a failed call leaves NULL to destroy");
    cr_expect_eq(strata_engine_find(s.engine, NULL), -1);
    cr_expect_eq(strata_engine_find(s.engine, "nosuch"), -1);
    release(&s);
}

Test(context, copies_without_memory_are_refused)
{
    struct session s;
    strata_context *c = NULL;
    float x[384] = {0};
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, &s.err), STRATA_OK);
    cr_expect_eq(strata_copy_in(c, 0, NULL, &s.err), STRATA_EINVAL);
    cr_expect_neq(strstr(s.err.message, "data is NULL"), NULL);
    cr_expect_eq(strata_copy_out(c, 1, NULL, &s.err), STRATA_EINVAL);
    cr_expect_eq(strata_enqueue_copy_in(c, 0, NULL, &s.err), STRATA_EINVAL);
    cr_expect_eq(strata_enqueue_copy_out(c, 1, NULL, &s.err), STRATA_EINVAL);
    cr_expect_eq(strata_copy_in(c, 0, x, &s.err), STRATA_OK, "the context is as it was");
    cr_expect_eq(strata_context_run(c, &s.err), STRATA_OK);
    strata_context_destroy(c);
    release(&s);
}

Test(context, enqueue_returns_before_the_work_and_signals_consumed_inputs)
{
    struct session s;
    strata_context *c = NULL;
    strata_event *consumed = NULL;
    float act[640], pool[160];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    run_once(&s, act, pool);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, NULL), STRATA_OK);
    cr_assert_eq(strata_event_create(&consumed, s.handle, NULL), STRATA_OK);
    float *y = strata_context_data(c, strata_engine_find(s.engine, "act"));
    for (int round = 0; round < 50; round++) {
        fill_input(c, s.engine, 42);
        cr_assert_eq(strata_context_enqueue(c, consumed, NULL), STRATA_OK);
        cr_assert_eq(strata_event_synchronize(consumed, NULL), STRATA_OK);
        memset(strata_context_data(c, 0), 0xFF, 384 * sizeof(float)); /* NaN */
        cr_assert_eq(strata_context_wait(c, NULL), STRATA_OK);
        cr_assert_arr_eq(y, act, sizeof act);
    }
    strata_event_destroy(consumed);
    strata_context_destroy(c);
    release(&s);
}

/* The host has no graphs: the calls are there and change nothing. */
Test(context, preparing_runs_once_and_graphs_may_be_asked_for_anywhere)
{
    struct session s;
    strata_context *c = NULL;
    float act[640], pool[160];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    run_once(&s, act, pool);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, NULL), STRATA_OK);
    const float *y = strata_context_data(c, strata_engine_find(s.engine, "act"));
    fill_input(c, s.engine, 42);
    cr_assert_eq(strata_context_prepare(c, &s.err), STRATA_OK, "%s", s.err.message);
    cr_expect_arr_eq(y, act, sizeof act);
    for (int use = 0; use < 2; use++) {
        fill_input(c, s.engine, 7);
        cr_assert_eq(strata_context_run(c, NULL), STRATA_OK);
        cr_assert_eq(strata_context_use_graph(c, use, &s.err), STRATA_OK);
        fill_input(c, s.engine, 42);
        cr_assert_eq(strata_context_run(c, NULL), STRATA_OK);
        cr_expect_arr_eq(y, act, sizeof act);
    }
    strata_context_destroy(c);
    release(&s);
}

struct worker {
    struct session *s;
    const float *act;
    int wrong;
};

static float shared_input[384]; /* rand() is not for several threads */

static void *work(void *arg)
{
    struct worker *w = arg;
    strata_handle *h = NULL;
    strata_context *c = NULL;
    strata_error err;
    if (strata_create(&h, "host", &err) != STRATA_OK ||
        strata_context_create(&c, w->s->engine, h, &err) != STRATA_OK) {
        w->wrong = -1;
        return NULL;
    }
    int act = strata_engine_find(w->s->engine, "act");
    for (int i = 0; i < 100; i++) {
        memcpy(strata_context_data(c, 0), shared_input, sizeof shared_input);
        w->wrong += strata_context_run(c, &err) != STRATA_OK ||
                    memcmp(strata_context_data(c, act), w->act, 640 * sizeof(float)) != 0;
    }
    strata_context_destroy(c);
    strata_destroy(h);
    return NULL;
}

Test(context, threads_share_an_engine)
{
    enum { THREADS = 8 };
    struct session s;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    strata_context *c = NULL;
    float act[640], pool[160];
    cr_assert_eq(build(&s, small, NULL, 0), STRATA_OK);
    run_once(&s, act, pool);
    cr_assert_eq(strata_context_create(&c, s.engine, s.handle, NULL), STRATA_OK);
    fill_input(c, s.engine, 42);
    memcpy(shared_input, strata_context_data(c, 0), sizeof shared_input);
    strata_context_destroy(c);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){&s, act, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(workers[i].wrong, 0, "thread %d", i);
    }
    release(&s);
}
