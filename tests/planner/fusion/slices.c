/* SPDX-License-Identifier: Apache-2.0
 *
 * Slices that lie in what they are cut from: one that goes to its place in a
 * concatenation of another format, in one step, with the values it has; and ranges of
 * rows' elements, which those read there that take any strides.
 */
#include "tests/planner/fusion/prices.h"

TestSuite(fuse_slices, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

/* What is cut is cheap in one format, all else in another; moving costs less than running
 * what moves. Or it is cut where that is no alias, and then moved. */
static const char net[] =
    "[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 16 x 8 x 8\n"
    "[layer a]\ntype = Activation\nkind = tanh\n"
    "[layer s]\ntype = Slice\naxis = 1\nsplit = 12, 4\n"
    "[layer b]\ntype = Activation\nkind = sigmoid\ninputs = x\n"
    "[layer j]\ntype = Concatenation\naxis = 1\ninputs = s:1, b\n"
    "[layer y]\ntype = Unary\nop = abs\n";

enum { CHEAP = 1000, DEAR = 1000000 };

struct format_prices {
    struct cost_source source;
    const char *format; /* of what is cut */
    bool cuts;          /* a Slice is cheap, and dear what moves its input */
};

static bool is_cheap(const struct format_prices *p, const struct planner *planner,
                     const struct planner_candidate *c)
{
    const struct network_layer *l = planner_run_node(planner, c)->layer;
    const bool cut = strcmp(l->type->full_name, "core::Slice@1") == 0;
    const char *cheap = cut || strcmp(l->name, "a") == 0 ? p->format : "fp32:nchw";
    return (p->cuts || !cut) &&
           strcmp(l->type->full_name, "core::Concatenation@1") != 0 &&
           strcmp(format_mask_name(UINT64_C(1) << c->out_formats[0], 4), cheap) == 0;
}

static int price_formats(struct cost_source *source, const struct planner *planner,
                         const struct cost_query *const *queries, const int64_t *best,
                         size_t n, struct cost *out, strata_error *err)
{
    const struct format_prices *p = (const struct format_prices *)source;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct planner_candidate *c = queries[i]->candidate;
        const strata_desc *from = &queries[i]->from;
        const bool cheap = c ? is_cheap(p, planner, c)
                             : !p->cuts || from->vector == 1 || from->dims[1] < 16;
        out[i] = (struct cost){.ns = cheap ? CHEAP : DEAR, .runs = 3};
    }
    return STRATA_OK;
}

/* Steps from one stage to another. */
static int count_moves(const struct planner *planner, int from, int to)
{
    const struct plan_label *labels = planner->model->problem.labels;
    int moves = 0;
    for (size_t i = 0; i < planner->plan->n_steps; i++) {
        const struct plan_step *s = &planner->plan->steps[i];
        moves +=
            labels[s->from].stage == from && labels[s->to].stage == to && s->cost > 0;
    }
    return moves;
}

/* from: the stage that the slice comes from, to its place. */
static void write_costs(struct format_prices p, int from)
{
    static const char *const measure[] = {"build.costs=measure"};
    struct planning s;
    strata_handle *handle;
    char path[300];
    p.source = (struct cost_source){.name = "prices", .measure = price_formats};
    cr_assert_eq(planning_load(&s, spill_text("net.ini", net), NULL, measure, 1),
                 STRATA_OK, "%s", s.err.message);
    cr_assert_eq(strata_create(&handle, "host", NULL), STRATA_OK);
    s.device = (struct planner_device){handle->properties, handle->math};
    cr_assert_eq(planning_make(&s, &p.source), STRATA_OK, "%s", s.err.message);
    strata_destroy(handle);
    cr_expect_eq(count_moves(s.planner, from, PLAN_HOME), 1);
    snprintf(path, sizeof path, "%s/slices.costs", scratch);
    cr_assert_eq(cost_table_write(&s.planner->known, path, &s.err), STRATA_OK, "%s",
                 s.err.message);
    planning_close(&s);
}

static const char *const set[] = {"build.costs=slices.costs", "build.costs_miss=analytic",
                                  FP32};

Test(fuse_slices, one_goes_to_a_concatenation_of_another_format)
{
    const char *no[] = {"build.fusion=no", FP32};
    struct session plain, fused;
    int64_t n, m;
    write_costs((struct format_prices){.format = "fp32:nhwc"}, PLAN_CUT);
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

/* A plan that copies a slice to its place although it runs is read back. */
Test(fuse_slices, one_that_runs_is_copied_in_a_saved_engine_too)
{
    struct session s;
    strata_engine *again = NULL;
    char path[300];
    write_costs((struct format_prices){.format = "fp32:nc/8hw8", .cuts = true},
                PLAN_PLAIN);
    cr_assert_eq(build(&s, net, set, 3), STRATA_OK, "%s", s.err.message);
    snprintf(path, sizeof path, "%s/slices.engine", scratch);
    cr_assert_eq(strata_engine_save(s.engine, path, &s.err), STRATA_OK, "%s",
                 s.err.message);
    cr_expect_eq(strata_engine_load(&again, s.handle, s.registry, path, &s.err),
                 STRATA_OK, "%s", s.err.message);
    strata_engine_destroy(again);
    release(&s);
}

/* ---- along rows ----------------------------------------------------------------------
 */

#define ROWS(batch)                                                                      \
    "[network]\nformat = 1\noutputs = y\n[weights w]\nrandom = 3\n[input x]\n"           \
    "shape = " #batch " x 9 x 32\n[layer all]\ntype = MatrixMultiply\nunits = 96\n"      \
    "b = w\nbias = w\n"
#define READ(inputs) "[layer y]\ntype = Attention\nheads = 2\ninputs = " inputs "\n"

static const struct row_case {
    const char *name, *ini;
    size_t run; /* layers that run, of `ini` with fusion */
} row_cases[] = {
    {"three at one batch",
     ROWS(1) "[layer s]\ntype = Slice\naxis = 2\nparts = 3\n" READ("s, s:1, s:2"), 2},
    {"of several matrices",
     ROWS(3) "[layer s]\ntype = Slice\naxis = -1\nparts = 3\n" READ("s:2, s, s:1"), 2},
    {"one of them, twice",
     ROWS(2) "[layer s]\ntype = Slice\naxes = 2\nbegin = 64\nend = 96\n" READ("s, s, s"),
     2},
    {"for a layer that takes ranges of channels alone",
     ROWS(2) "[layer s]\ntype = Slice\naxis = 2\nparts = 3\n"
             "[layer y]\ntype = ElementWise\nop = product\ninputs = s, s:2\n",
     3},
    {"that begin within 16 bytes",
     ROWS(2) "[layer s]\ntype = Slice\naxes = 2\nbegin = 2\nend = 34\n" READ("s, s, s"),
     3},
};

/* The values are those without fusion, of an engine that was saved and read, too. */
static void expect_row_case(const struct row_case *c)
{
    struct session s;
    strata_engine *again = NULL;
    char path[300];
    const char *single = FP32;
    expect_same_values(c->name, c->ini, FP32, FP32, 1e-6);
    cr_assert_eq(build(&s, c->ini, &single, 1), STRATA_OK, "%s: %s", c->name,
                 s.err.message);
    cr_expect_eq(s.engine->execution->n_nodes, c->run, "%s: %zu run", c->name,
                 s.engine->execution->n_nodes);
    snprintf(path, sizeof path, "%s/rows.engine", scratch);
    cr_assert_eq(strata_engine_save(s.engine, path, &s.err), STRATA_OK, "%s",
                 s.err.message);
    cr_assert_eq(strata_engine_load(&again, s.handle, s.registry, path, &s.err),
                 STRATA_OK, "%s: %s", c->name, s.err.message);
    cr_expect_eq(again->execution->n_nodes, c->run, "%s", c->name);
    strata_engine_destroy(again);
    release(&s);
}

Test(fuse_slices, ranges_of_rows_are_read_in_place)
{
    for (size_t i = 0; i < sizeof row_cases / sizeof *row_cases; i++)
        expect_row_case(&row_cases[i]);
}
