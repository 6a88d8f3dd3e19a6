/* SPDX-License-Identifier: Apache-2.0
 *
 * Every call of CUDA's runtime fails once while an engine is built and run, by graph and
 * without: an error each time, or the right answer where the library can do without; all
 * memory comes back, and the device is usable. About 150 of a stage's calls, from a
 * random first one; all of them with STRATA_TEST_LONG.
 */
#include <math.h>
#include <time.h>

#include "engine/context/context.h"
#include "tests/engine/batch_net.h"
#include "tests/cuda/device.h"
#include "tests/cuda/fault.h"

TestSuite(cuda_faults, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

enum { COUNT = 3 * 6 * 6, UNITS = 7, RUNS = 3 };

struct work {
    struct net net;
    strata_context *context;
    float y[RUNS][UNITS];
    strata_error err;
};

static strata_registry *registry;
static strata_network *network; /* read once: no call of CUDA is made for it */

static int do_build(struct work *w)
{
    int status = strata_create(&w->net.handle, "cuda:0", &w->err);
    return status != STRATA_OK
               ? status
               : strata_engine_build(&w->net.engine, w->net.handle, network, &w->err);
}

static int do_run(struct work *w)
{
    float x[COUNT];
    int status =
        strata_context_create(&w->context, w->net.engine, w->net.handle, &w->err);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i * 37 % 64) / 64;
    for (int i = 0; i < RUNS && status == STRATA_OK; i++) { /* the second captures */
        status = strata_copy_in(w->context, 0, x, &w->err);
        if (status == STRATA_OK)
            status = strata_context_run(w->context, &w->err);
        if (status == STRATA_OK)
            status = strata_copy_out(w->context, 1, w->y[i], &w->err);
    }
    return status;
}

static const struct stage {
    const char *name;
    int (*run)(struct work *w);
} stages[] = {{"build", do_build}, {"run", do_run}};
enum { STAGES = ARRAY_LENGTH(stages) };

static void close_work(struct work *w, const char *what, long at)
{
    strata_memory_stats stats = {.struct_size = sizeof stats};
    strata_context_destroy(w->context);
    strata_engine_destroy(w->net.engine);
    if (w->net.handle) {
        strata_get_memory_stats(w->net.handle, &stats, NULL);
        cr_expect_eq(strata_device_ok(w->net.handle, NULL), STRATA_OK,
                     "%s, call %ld: the device is lost", what, at);
    }
    cr_expect_eq(stats.current_bytes, 0, "%s, call %ld: %llu bytes are left", what, at,
                 (unsigned long long)stats.current_bytes);
    strata_destroy(w->net.handle);
}

static void expect_right(const struct work *w, const struct work *right, const char *what,
                         long at)
{
    for (int i = 0; i < RUNS; i++)
        for (int k = 0; k < UNITS; k++)
            cr_assert_float_eq(w->y[i][k], right->y[i][k], 1e-5,
                               "%s, call %ld (%s): run %d gives %g, not %g", what, at,
                               cuda_fault_name(), i, (double)w->y[i][k],
                               (double)right->y[i][k]);
}

/* All stages, with a fault in one; the calls of that one. */
static long try_fault(struct work *w, int stage, long at, int *failed)
{
    long n = 0;
    *failed = STRATA_OK;
    memset(w, 0, sizeof *w);
    for (int i = 0; i < STAGES && *failed == STRATA_OK; i++) {
        if (i == stage)
            cuda_fault_arm(at);
        *failed = stages[i].run(w);
        if (i == stage)
            n = cuda_fault_disarm();
        cr_assert(*failed == STRATA_OK || i == stage, "%s, call %ld (%s): then %s",
                  stages[stage].name, at, cuda_fault_name(), w->err.message);
    }
    return n;
}

static void fail_stage(int stage)
{
    static struct work right, w;
    const char *name = stages[stage].name;
    int status;
    try_fault(&right, stage, 0, &status); /* loads kernels, which later ones find there */
    close_work(&right, name, 0);
    const long n = try_fault(&right, stage, 0, &status);
    close_work(&right, name, 0);
    cr_assert_eq(status, STRATA_OK, "%s", right.err.message);
    cr_assert_gt(n, 0, "calls are caught");
    const long step = getenv("STRATA_TEST_LONG") || n < 300 ? 1 : n / 150;
    long tried = 0, errors = 0;
    for (long k = 1 + rand() % step; k <= n; k += step) {
        try_fault(&w, stage, k, &status);
        tried++;
        errors += status != STRATA_OK;
        if (status == STRATA_OK)
            expect_right(&w, &right, name, k);
        else
            cr_expect(w.err.message[0], "%s, call %ld (%s): status %d, no message", name,
                      k, cuda_fault_name(), status);
        close_work(&w, name, k);
    }
    fprintf(stderr, "# %s: %ld calls, %ld tried, %ld errors, %ld did without\n", name, n,
            tried, errors, tried - errors);
    cr_expect_gt(errors, 0);
    try_fault(&w, stage, 0, &status);
    cr_expect_eq(status, STRATA_OK, "afterwards: %s", w.err.message);
    expect_right(&w, &right, name, 0);
    close_work(&w, name, 0);
}

static void load_network(void)
{
    struct net n;
    strata_error err;
    const unsigned seed = (unsigned)time(NULL);
    srand(seed);
    fprintf(stderr, "# seed %u\n", seed);
    strata_set_logger(NULL, NULL, -1); /* runs without a graph are told */
    OK(open_net(&n, "[build]\ncosts = analytic\n", "1 x 3 x 6 x 6", "prob", conv_net,
                &err));
    registry = n.registry;
    network = n.network;
    strata_engine_destroy(n.engine);
    strata_destroy(n.handle);
}

Test(cuda_faults, a_call_that_fails_is_an_error_and_everything_comes_back)
{
    strata_destroy(need_cuda());
    load_network();
    for (int stage = 0; stage < STAGES; stage++)
        fail_stage(stage);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
}
