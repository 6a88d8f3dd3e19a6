/* SPDX-License-Identifier: Apache-2.0
 *
 * One GPU of a process is lost: engines of another one give right answers, or say at once
 * that theirs is, too, and why, as drivers have it that end the work of all GPUs. Skipped
 * where there are not two.
 */
#include <math.h>
#include <stdio.h>

#include <strata/parts.h>

#include "engine/context/context.h"
#include "tests/cuda/device.h"
#include "tests/engine/batch_net.h"

TestSuite(cuda_lost, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

enum { ROWS = 4, ROW = 3 * 6 * 6, UNITS = 7, RUNS = 8 };

static const char profile[] = "[profile]\nN = 1, 4\n[build]\ncosts = analytic\n";

struct side {
    struct net net;
    strata_context *context;
    float x[ROWS * ROW], y[ROWS * UNITS], first[ROWS * UNITS];
};

static int copy_and_run(struct side *s, strata_error *err)
{
    int status = strata_copy_in(s->context, 0, s->x, err);
    if (status == STRATA_OK)
        status = strata_context_run(s->context, err);
    return status == STRATA_OK ? strata_copy_out(s->context, 1, s->y, err) : status;
}

static int run_parts(struct side *s, strata_error *err)
{
    strata_memory in = {s->x, sizeof s->x, STRATA_MEMORY_HOST, 0};
    strata_memory out = {s->y, sizeof s->y, STRATA_MEMORY_HOST, 0};
    strata_part part = {
        .struct_size = sizeof part, .rows = ROWS, .inputs = &in, .outputs = &out};
    return strata_context_run_parts(s->context, &part, 1, err);
}

static void open_side(struct side *s, const char *device)
{
    strata_error err;
    for (int i = 0; i < ROWS * ROW; i++)
        s->x[i] = (float)(i * 37 % 64) / 64;
    OK(open_net_on(&s->net, device, profile, "N x 3 x 6 x 6", "prob", conv_net, &err));
    OK(strata_context_create(&s->context, s->net.engine, s->net.handle, &err));
}

static void close_side(struct side *s)
{
    strata_context_destroy(s->context);
    close_net(&s->net);
}

static void expect_same(struct side *s, const char *what, int run)
{
    for (int i = 0; i < ROWS * UNITS; i++)
        cr_assert_float_eq(s->y[i], s->first[i], 1e-5, "%s, run %d", what, run);
}

/* A run after the other GPU was lost. */
static void expect_right_or_lost(struct side *s, int run)
{
    strata_error err;
    const bool lost = strata_device_ok(s->net.handle, NULL) != STRATA_OK;
    memset(s->y, 0, sizeof s->y);
    const int status = run % 2 ? run_parts(s, &err) : copy_and_run(s, &err);
    cr_expect_eq(status, lost ? STRATA_EDEVICELOST : STRATA_OK, "run %d: %s", run,
                 err.message);
    if (status == STRATA_OK)
        expect_same(s, "afterwards", run);
    else
        cr_expect(strstr(err.message, "cuda:1 is lost since cuda:0 was"), "run %d: %s",
                  run, err.message);
}

/* A layer writes to an address that is nobody's. */
static void lose_first(void)
{
    char module[1024], ini[256];
    const char *files[] = {module};
    const char *folder = getenv("STRATA_TEST_MODULES");
    strata_handle *h;
    strata_registry *registry;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    strata_error err;
    float x[64] = {NAN};
    snprintf(module, sizeof module, "%s/cuda_faulty.so", folder ? folder : ".");
    snprintf(ini, sizeof ini, "%s", in_scratch("poisoned.ini"));
    FILE *f = fopen(ini, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 64\n"
          "[layer y]\ntype = org.faulty::Poisoned\n[build]\ncosts = analytic\n",
          f);
    cr_assert_eq(fclose(f), 0);
    const strata_registry_options options = {
        .struct_size = sizeof options, .files = files, .n_files = 1};
    OK(strata_create(&h, "cuda:0", &err));
    OK(strata_registry_create(&registry, &options, &err));
    OK(strata_network_load(&network, ini, registry, NULL, &err));
    OK(strata_engine_build(&engine, h, network, &err));
    OK(strata_context_create(&context, engine, h, &err));
    OK(strata_copy_in(context, 0, x, &err));
    cr_expect_eq(strata_context_run(context, &err), STRATA_EDEVICELOST, "%s",
                 err.message);
    cr_expect_eq(strata_device_ok(h, &err), STRATA_EDEVICELOST);
    strata_context_destroy(context);
    strata_engine_destroy(engine);
    strata_network_destroy(network);
    strata_registry_destroy(registry);
    strata_destroy(h);
}

Test(cuda_lost, another_gpu_is_right_or_says_that_it_is_lost_with_it)
{
    static struct side near;
    strata_handle *second = NULL;
    strata_error err;
    strata_destroy(need_cuda());
    if (strata_create(&second, "cuda:1", &err) != STRATA_OK)
        cr_skip_test("there is one GPU");
    strata_destroy(second);
    open_side(&near, "cuda:1");
    for (int run = 0; run < 3; run++)
        OK(copy_and_run(&near, &err));
    memcpy(near.first, near.y, sizeof near.y);
    OK(run_parts(&near, &err));
    expect_same(&near, "before", 0);
    lose_first();
    for (int run = 0; run < RUNS; run++)
        expect_right_or_lost(&near, run);
    fprintf(stderr, "# the other GPU is %s\n",
            strata_device_ok(near.net.handle, NULL) == STRATA_OK ? "well" : "lost, too");
    close_side(&near);
}
