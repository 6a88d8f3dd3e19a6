/* SPDX-License-Identifier: Apache-2.0
 *
 * Twice the layers take twice the steps to plan and to prove, however they hang together.
 * More blocks of memory than are placed by a search: that one takes what it may.
 */
#include <stdlib.h>

#include "planner/arena.h"
#include "planner/certificate/certificate.h"
#include "tests/network/steps.h"
#include "tests/planner/planning.h"

/* Of the shorter network, whose blocks are more than are searched: 5,000 in this build of
 * the planner, and 10,000 in a long test. */
#define LAYERS (ARENA_SEARCHED * 5000 / 2048)
#define LONG_FACTOR 2

uint64_t counted_steps;
static bool counts; /* this build does */

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    counts = true;
    counted_steps++;
}

TestSuite(planner_linear, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

/* ---- networks ---------------------------------------------------------------------- */

#define POOL "type = Pooling\nkind = max\nkernel = 3\npad = 1\n"

/* Layer i of a network of n. */
static void put_chain(FILE *f, int i)
{
    fprintf(f, "[layer l%d]\ntype = Activation\nkind = %s\n", i,
            i % 2 ? "relu" : "sigmoid");
}

static void put_pools(FILE *f, int i)
{
    if (i % 2)
        fprintf(f, "[layer l%d]\n" POOL, i);
    else
        put_chain(f, i);
}

static void put_sums(FILE *f, int i)
{
    char before[16] = "x";
    if (i > 1)
        snprintf(before, sizeof before, "l%d", i - 1 - i % 2);
    if (i % 2)
        fprintf(f, "[layer l%d]\ntype = ElementWise\nop = sum\ninputs = l%d, %s\n", i,
                i - 1, before);
    else
        fprintf(f, "[layer l%d]\n" POOL "inputs = %s\n", i, before);
}

static void put_views(FILE *f, int i)
{
    fprintf(f, "[layer l%d]\ntype = Shuffle\nfirst = 0, 1, 3, 2\n", i);
}

/* All of a chain may be folded into the convolution that it follows, one, two, three, ...
 * at a time: candidates grow as the square of its length. */
#define FOLDED 25

static void put_scales(FILE *f, int i)
{
    if (i % FOLDED)
        fprintf(f, "[layer l%d]\ntype = Scale\nscale = w:s%d\nmode = channel\n", i, i);
    else
        fprintf(f,
                "[layer l%d]\ntype = Convolution\nfilters = 8\nkernel = 1\n"
                "weights = w:c%d\n",
                i, i);
}

/* One tensor read by all, joined by sixty. */
static void put_wide(FILE *f, int i)
{
    if (i % 61 != 60) {
        fprintf(f, "[layer l%d]\ntype = Activation\nkind = relu\ninputs = x\n", i);
        return;
    }
    fprintf(f, "[layer l%d]\ntype = Concatenation\naxis = 1\ninputs = ", i);
    for (int k = 60; k > 0; k--)
        fprintf(f, "l%d%s", i - k, k > 1 ? "," : "\n");
}

static const char *write_network(void (*put)(FILE *, int), int n)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    fprintf(f,
            "[network]\nformat = 1\noutputs = l%d\n[weights w]\nrandom = 1\n"
            "[input x]\nshape = 1 x 8 x 4 x 4\n",
            n - 1);
    for (int i = 0; i < n; i++)
        put(f, i);
    cr_assert_eq(fclose(f), 0);
    const char *path = spill_text("net.ini", text);
    free(text);
    return path;
}

/* ---- steps ------------------------------------------------------------------------- */

static void prove(const struct planner *planner)
{
    const struct plan_problem *problem = &planner->model->problem;
    struct plan_certificate *c = NULL;
    cr_assert_eq(plan_certify(&c, problem, &planner->plan_options, planner->plan, NULL),
                 STRATA_OK);
    cr_assert_eq(plan_check(problem, &planner->plan_options, c, NULL), STRATA_OK);
    plan_certificate_free(c);
}

static uint64_t steps_of(void (*put)(FILE *, int), int n)
{
    struct planning p;
    static const char *const set[] = {"build.costs=analytic"};
    const char *path = write_network(put, n);
    cr_assert_eq(planning_load(&p, path, NULL, set, 1), STRATA_OK, "%s", p.err.message);
    counted_steps = 0;
    cr_assert_eq(planning_make(&p, NULL), STRATA_OK, "%s", p.err.message);
    prove(p.planner);
    const uint64_t taken = counted_steps;
    cr_expect(p.planner->plan->proved);
    cr_expect_geq(p.execution->arena_bytes, p.execution->arena_bound);
    cr_expect_leq(p.execution->arena_bytes, 2 * p.execution->arena_bound);
    planning_close(&p);
    return taken;
}

/* A table that doubles has doubled once more, hence the tenth. */
static void expect_linear_from(void (*put)(FILE *, int), int layers)
{
    layers *= getenv("STRATA_TEST_LONG") ? LONG_FACTOR : 1;
    const uint64_t once = steps_of(put, layers), twice = steps_of(put, 2 * layers);
    if (!counts)
        cr_skip_test("this build does not count steps");
    cr_log_info("%.0f steps a layer, %.2f times for twice", (double)once / layers,
                (double)twice / (double)once);
    cr_expect_leq(twice, 2 * once + once / 10, "%llu steps, and %llu for twice",
                  (unsigned long long)once, (unsigned long long)twice);
}

static void expect_linear(void (*put)(FILE *, int))
{
    expect_linear_from(put, LAYERS);
}

Test(planner_linear, chains)
{
    expect_linear(put_chain);
}

Test(planner_linear, chains_that_change_formats)
{
    expect_linear(put_pools);
}

Test(planner_linear, residual_sums)
{
    expect_linear(put_sums);
}

Test(planner_linear, chains_that_may_be_composed)
{
    expect_linear(put_views);
}

Test(planner_linear, chains_that_may_be_folded)
{
    expect_linear_from(put_scales, LAYERS / 8); /* each has many candidates */
}

Test(planner_linear, one_tensor_read_by_all)
{
    expect_linear(put_wide);
}
