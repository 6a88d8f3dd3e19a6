/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs in place on CUDA: each step of a measured plan has one, they add up, an engine
 * file keeps them, and nothing of the timing stays.
 */
#include "tests/cuda/chain.h"
#include "tests/cuda/device.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "planner/planner.h"

TestSuite(cuda_in_place, .fini = remove_files, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)

static const char residual[] =
    "[network]\nformat = 1\noutputs = prob\n"
    "[build]\nprecision = fp16\nmath = tensor_op\n"
    "[input x]\nshape = 8 x 64 x 56 x 56\n[weights w]\nrandom = 1\n"
    "[layer a]\ntype = Convolution\nfilters = 64\nkernel = 3x3\npad = 1\nweight = w\n"
    "bias = w\n"
    "[layer r]\ntype = Activation\nkind = relu\n"
    "[layer b]\ntype = Convolution\nfilters = 64\nkernel = 3x3\npad = 1\nweight = w\n"
    "[layer s]\ntype = ElementWise\ninputs = r, b\nop = sum\n"
    "[layer c]\ntype = Convolution\nfilters = 128\nkernel = 3x3\npad = 1\nstride = 2\n"
    "weight = w\n"
    "[layer p]\ntype = Pooling\nkind = average\nglobal = yes\n"
    "[layer prob]\ntype = Softmax\naxis = 1\n";

/* A sum of all runs, and their number, which has room for three. */
static const char counting[] =
    "[network]\nformat = 1\noutputs = y\n[build]\nprecision = fp32\n"
    "[input x]\nshape = 2 x 3\n"
    "[state total]\nshape = 2 x 3\nnext = sum\nvalue = 1.5\n"
    "[state steps]\nshape = 2\ndtype = i32\nnext = more\nroom = 3\n"
    "[layer same]\ntype = Compare\nop = equal\ninputs = steps, steps\n"
    "[layer one]\ntype = Cast\nto = i32\ninputs = same\n"
    "[layer more]\ntype = ElementWise\nop = sum\ninputs = steps, one\n"
    "[layer sum]\ntype = ElementWise\nop = sum\ninputs = total, x\n"
    "[layer y]\ntype = Activation\nkind = relu\ninputs = sum\n";

static void open_measured(struct net *n, enum cost_kind kind)
{
    strata_error err = {0};
    OK(strata_registry_create(&n->registry, NULL, &err));
    OK(strata_network_load(&n->network, net_path, n->registry, NULL, &err));
    n->network->build.costs.kind = kind;
    OK(strata_engine_build(&n->engine, n->handle, n->network, &err));
}

static void expect_all_in_place(const struct execution *x)
{
    int64_t sum = 0;
    for (size_t i = 0; i < x->n_steps; i++) {
        const struct execution_step *s = &x->steps[i];
        sum += s->in_place;
        if (s->kind == STEP_RELABEL)
            cr_expect_eq(s->in_place, 0, "step %zu", i);
        else
            cr_expect_gt(s->in_place, 0, "step %zu", i);
    }
    cr_expect_gt(x->in_place, 0);
    cr_expect_eq(x->in_place, sum);
    cr_expect_eq(execution_predicts(x), sum);
}

/* How near they are to what a run takes is told by bench/net_time. */
Test(cuda_in_place, each_step_has_one_and_nothing_of_the_timing_stays)
{
    struct net n = {.handle = need_cuda()};
    strata_memory_stats before = {.struct_size = sizeof before};
    write_text(residual);
    open_measured(&n, COSTS_MEASURE);
    expect_all_in_place(n.engine->execution);
    strata_get_memory_stats(n.handle, &before, NULL);
    cr_expect_eq(before.current_bytes, strata_engine_weight_bytes(n.engine),
                 "%llu bytes stay", (unsigned long long)before.current_bytes);
    close_net(&n);
}

/* The plan is the one that the same costs give without, which others are not asked for.
 */
Test(cuda_in_place, only_measured_costs_are_timed_in_place)
{
    struct net n = {.handle = need_cuda()};
    write_text(residual);
    open_measured(&n, COSTS_ANALYTIC);
    cr_expect_eq(n.engine->execution->in_place, 0);
    cr_expect_eq(execution_predicts(n.engine->execution), n.engine->execution->cost);
    close_net(&n);
}

Test(cuda_in_place, an_engine_file_keeps_them)
{
    struct net n = {.handle = need_cuda()};
    strata_engine *loaded = NULL;
    strata_error err = {0};
    char path[80];
    write_text(residual);
    snprintf(path, sizeof path, "%s.engine", net_path);
    open_measured(&n, COSTS_MEASURE);
    OK(strata_engine_save(n.engine, path, &err));
    OK(strata_engine_load(&loaded, n.handle, n.registry, path, &err));
    const struct execution *a = n.engine->execution, *b = loaded->execution;
    cr_assert_eq(a->n_steps, b->n_steps);
    cr_expect_gt(a->in_place, 0);
    cr_expect_eq(a->in_place, b->in_place);
    for (size_t i = 0; i < a->n_steps; i++)
        cr_expect_eq(a->steps[i].in_place, b->steps[i].in_place, "step %zu", i);
    strata_engine_destroy(loaded);
    unlink(path);
    close_net(&n);
}

/* What a context of the application's begins with is not what the timing left: three runs
 * have their room, and the sum is of those. */
Test(cuda_in_place, states_begin_as_ever)
{
    enum { COUNT = 2 * 3, RUNS = 3 };
    struct net n = {.handle = need_cuda()};
    strata_error err = {0};
    float x[COUNT], y[COUNT];
    draw(x, COUNT);
    write_text(counting);
    open_measured(&n, COSTS_MEASURE);
    expect_all_in_place(n.engine->execution);
    OK(strata_context_create(&n.context, n.engine, n.handle, &err));
    OK(strata_copy_in(n.context, 0, x, &err));
    for (int run = 0; run < RUNS; run++)
        OK(strata_context_run(n.context, &err));
    OK(strata_copy_out(n.context, strata_engine_find(n.engine, "y"), y, &err));
    for (int k = 0; k < COUNT; k++)
        cr_expect_float_eq(y[k], fmaxf(0, 1.5f + RUNS * x[k]), 1e-4, "%d: %g of %g", k,
                           (double)y[k], (double)x[k]);
    close_net(&n);
}
