/* SPDX-License-Identifier: Apache-2.0
 *
 * The number of threads of an engine's runs: as the handle says, whatever number it was
 * planned for, and contexts beside each other with several each.
 */
#include <math.h>
#include <pthread.h>

#include "tests/engine/batch_net.h"

TestSuite(teams, .init = scratch_make, .fini = scratch_remove);

/* Convolutions by direct and blocked kernels, depthwise, Pooling and FullyConnected: what
 * divides work, and workspace, by threads. */
static const char layers[] =
    "[layer c1]\ntype = Convolution\nfilters = 32\nkernel = 3x3\npad = 1\nweights = w:1\n"
    "[layer a1]\ntype = Activation\nkind = relu\n"
    "[layer c2]\ntype = Convolution\nfilters = 32\nkernel = 3x3\npad = 1\ngroups = 32\n"
    "weights = w:2\n"
    "[layer c3]\ntype = Convolution\nfilters = 67\nkernel = 1x1\nweights = w:3\n"
    "[layer c4]\ntype = Convolution\nfilters = 2\nkernel = 5x5\npad = 2\nweights = w:4\n"
    "[layer p]\ntype = Pooling\nkind = max\nkernel = 2x2\nstride = 2\n"
    "[layer fc]\ntype = FullyConnected\nunits = 40\nweights = w:5\n";

enum { PIXELS = 3 * 96 * 96, UNITS = 40, RUNS = 60 };

static void open_layers(struct net *n, const char *runtime, strata_error *err)
{
    char text[sizeof layers + 64];
    snprintf(text, sizeof text, "%s[runtime]\n%s", layers, runtime);
    cr_assert_eq(open_net(n, "", "1 x 3 x 96 x 96", "fc", text, err), STRATA_OK, "%s",
                 err->message);
}

static void run(const strata_engine *e, strata_handle *h, float *y, int runs)
{
    strata_error err;
    strata_context *c;
    float *x = malloc(PIXELS * sizeof *x);
    for (int i = 0; i < PIXELS; i++)
        x[i] = (float)(i * 37 % 101) / 101;
    OK(strata_context_create(&c, e, h, &err));
    OK(strata_copy_in(c, 0, x, &err));
    for (int i = 0; i < runs; i++)
        OK(strata_context_run(c, &err));
    OK(strata_copy_out(c, 1, y, &err));
    strata_context_destroy(c);
    free(x);
}

Test(teams, a_number_of_threads_is_checked)
{
    strata_error err;
    strata_handle *h;
    OK(strata_create(&h, "host", &err));
    cr_expect_eq(strata_get_threads(h), 0);
    OK(strata_set_threads(h, 3, &err));
    cr_expect_eq(strata_set_threads(h, -1, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_threads(h, 4097, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_threads(NULL, 1, &err), STRATA_EINVAL);
    cr_expect_eq(strata_get_threads(h), 3, "what is refused changes nothing");
    cr_expect_eq(strata_get_threads(NULL), 0);
    strata_destroy(h);
}

Test(teams, a_way_to_wait_is_checked)
{
    strata_error err;
    strata_handle *h;
    OK(strata_create(&h, "host", &err));
    cr_expect_eq(strata_get_wait(h), STRATA_WAIT_NETWORK);
    OK(strata_set_wait(h, STRATA_WAIT_SLEEP, &err));
    cr_expect_eq(strata_set_wait(h, STRATA_WAIT_SLEEP + 1, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_wait(h, -1, &err), STRATA_EINVAL);
    cr_expect_eq(strata_set_wait(NULL, STRATA_WAIT_SPIN, &err), STRATA_EINVAL);
    cr_expect_eq(strata_get_wait(h), STRATA_WAIT_SLEEP);
    strata_destroy(h);
}

Test(teams, the_handle_wins_over_the_network)
{
    strata_error err;
    struct net n;
    open_layers(&n, "threads = 2\nwait = spin\n", &err);
    cr_expect_eq(n.engine->execution->threads, 2);
    cr_expect_eq(n.engine->wait, STRATA_WAIT_SPIN);
    strata_engine_destroy(n.engine);
    OK(strata_set_threads(n.handle, 5, &err));
    OK(strata_set_wait(n.handle, STRATA_WAIT_SLEEP, &err));
    OK(strata_engine_build(&n.engine, n.handle, n.network, &err));
    cr_expect_eq(n.engine->execution->threads, 5);
    cr_expect_eq(n.engine->wait, STRATA_WAIT_SLEEP);
    close_net(&n);
}

static void expect_close(const float *y, const float *expected, int threads)
{
    float most = 0, off = 0;
    for (int i = 0; i < UNITS; i++) {
        most = fmaxf(most, fabsf(expected[i]));
        off = fmaxf(off, fabsf(y[i] - expected[i]));
    }
    cr_expect(most > 0 && off <= 1e-5f * most, "%d threads: off by %g of %g", threads,
              (double)off, (double)most);
}

/* A file keeps impls and formats; workspaces are those of the threads that run. */
Test(teams, an_engine_file_runs_with_any_number_of_threads)
{
    static const int counts[] = {1, 2, 3, 8};
    float expected[UNITS], y[UNITS];
    strata_error err;
    struct net n;
    open_layers(&n, "threads = 2\nwait = sleep\n", &err);
    run(n.engine, n.handle, expected, 1);
    OK(strata_engine_save(n.engine, in_scratch("n.engine"), &err));
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        strata_engine *e;
        OK(strata_set_threads(n.handle, counts[i], &err));
        OK(strata_engine_load(&e, n.handle, n.registry, in_scratch("n.engine"), &err));
        cr_expect_eq(e->execution->threads, counts[i]);
        cr_expect_eq(e->wait, STRATA_WAIT_SLEEP, "the file keeps it");
        run(e, n.handle, y, 2);
        expect_close(y, expected, counts[i]);
        strata_engine_destroy(e);
    }
    close_net(&n);
}

struct beside {
    const struct net *net;
    float y[UNITS];
};

static void *run_beside(void *arg)
{
    struct beside *b = arg;
    strata_handle *h = NULL;
    cr_assert_eq(strata_create(&h, "host", NULL), STRATA_OK);
    run(b->net->engine, h, b->y, RUNS);
    strata_destroy(h);
    return NULL;
}

Test(teams, contexts_beside_each_other_give_the_answers_of_one)
{
    enum { CONTEXTS = 4 };
    static struct beside b[CONTEXTS];
    pthread_t threads[CONTEXTS];
    float expected[UNITS];
    strata_error err;
    struct net n;
    open_layers(&n, "threads = 2\n", &err);
    run(n.engine, n.handle, expected, 1);
    for (int i = 0; i < CONTEXTS; i++) {
        b[i].net = &n;
        cr_assert_eq(pthread_create(&threads[i], NULL, run_beside, &b[i]), 0);
    }
    for (int i = 0; i < CONTEXTS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(memcmp(b[i].y, expected, sizeof expected), 0, "context %d", i);
    }
    close_net(&n);
}
