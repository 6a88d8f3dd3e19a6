/* SPDX-License-Identifier: Apache-2.0
 *
 * A slice that lies in what it is cut from, in one format, and goes to its place in a
 * concatenation, which is of another: in one step, with the values it has.
 */
#include "tests/planner/fusion/prices.h"

TestSuite(fuse_slices, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* What is cut is cheap in one format, all else in another; moving costs less than running
 * what moves. */
static const char net[] =
    "[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 8 x 8 x 8\n"
    "[layer a]\ntype = Activation\nkind = tanh\n"
    "[layer s]\ntype = Slice\naxis = 1\nsplit = 4, 4\n"
    "[layer b]\ntype = Activation\nkind = sigmoid\ninputs = x\n"
    "[layer j]\ntype = Concatenation\naxis = 1\ninputs = s:1, b\n"
    "[layer y]\ntype = Unary\nop = abs\n";

enum { CHEAP = 1000, DEAR = 1000000 };

static bool is_cheap(const struct planner *planner, const struct planner_candidate *c)
{
    const struct network_layer *l = planner_run_node(planner, c)->layer;
    const char *cheap = strcmp(l->name, "a") == 0 ? "fp32:nhwc" : "fp32:nchw";
    return strcmp(l->type->full_name, "core::Slice@1") != 0 &&
           strcmp(l->type->full_name, "core::Concatenation@1") != 0 &&
           strcmp(format_mask_name(UINT64_C(1) << c->out_formats[0], 4), cheap) == 0;
}

static int price_formats(struct cost_source *source, const struct planner *planner,
                         const struct cost_query *const *queries, const int64_t *best,
                         size_t n, struct cost *out, strata_error *err)
{
    (void)source;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct planner_candidate *c = queries[i]->candidate;
        out[i] =
            (struct cost){.ns = !c || is_cheap(planner, c) ? CHEAP : DEAR, .runs = 3};
    }
    return STRATA_OK;
}

/* Steps from inside one tensor to inside another, to another format. */
static int count_moves(const struct planner *planner)
{
    const struct plan_label *labels = planner->model->problem.labels;
    int moves = 0;
    for (size_t i = 0; i < planner->plan->n_steps; i++) {
        const struct plan_label from = labels[planner->plan->steps[i].from];
        const struct plan_label to = labels[planner->plan->steps[i].to];
        moves +=
            from.stage == PLAN_CUT && to.stage == PLAN_HOME && from.format != to.format;
    }
    return moves;
}

static void write_costs(const char *path)
{
    static const char *const measure[] = {"build.costs=measure"};
    struct cost_source source = {.name = "prices", .measure = price_formats};
    struct planning s;
    strata_handle *handle;
    cr_assert_eq(planning_load(&s, spill_text("net.ini", net), NULL, measure, 1),
                 STRATA_OK, "%s", s.err.message);
    cr_assert_eq(strata_create(&handle, "host", NULL), STRATA_OK);
    s.device = (struct planner_device){handle->properties, handle->math};
    cr_assert_eq(planning_make(&s, &source), STRATA_OK, "%s", s.err.message);
    strata_destroy(handle);
    cr_expect_eq(count_moves(s.planner), 1);
    cr_assert_eq(cost_table_write(&s.planner->known, path, &s.err), STRATA_OK, "%s",
                 s.err.message);
    planning_close(&s);
}

Test(fuse_slices, one_goes_to_a_concatenation_of_another_format)
{
    const char *no[] = {"build.fusion=no", FP32};
    const char *set[] = {"build.costs=slices.costs", "build.costs_miss=analytic", FP32};
    struct session plain, fused;
    char path[300];
    int64_t n, m;
    snprintf(path, sizeof path, "%s/slices.costs", scratch);
    write_costs(path);
    cr_assert_eq(build(&plain, net, no, 2), STRATA_OK, "%s", plain.err.message);
    float *a = output(&plain, &n);
    release(&plain);
    cr_assert_eq(build(&fused, net, set, 3), STRATA_OK, "%s", fused.err.message);
    float *b = output(&fused, &m);
    release(&fused);
    cr_assert_eq(n, m);
    cr_expect_leq(worst_difference(a, b, n), 1e-6);
    free(a);
    free(b);
}
