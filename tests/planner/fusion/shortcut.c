/* SPDX-License-Identifier: Apache-2.0
 *
 * Two Convolutions and their sum as one layer: which are; that prices decide, beside the
 * Bottleneck whose last layer begins it; and that values are those without, whichever of
 * the ways is planned.
 */
#include "planner/record.h"
#include "tests/planner/fusion/prices.h"

#define SHORTCUT "core::ShortcutConvolution@1"
#define BOTTLENECK "core::Bottleneck@1"
#define POINTWISE "core::Pointwise@1"

TestSuite(fuse_shortcut, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD CHAIN_HEAD
#define REDUCE CONVOLUTION("reduce", 8, 1x1, "") ACT("reduce.relu", "relu")
#define WINDOWS CONVOLUTION("windows", 6, 3x3, "pad = 1\nstride = 2\n")
#define PROJECT CONVOLUTION("project", 12, 1x1, "")
#define SHORT(more) CONVOLUTION("short", 12, 1x1, "inputs = x\n" more)
#define SUM(of) "[layer sum]\ntype = ElementWise\nop = sum\ninputs = " of "\n"
#define ABS(name, of) "[layer " name "]\ntype = Unary\nop = abs\ninputs = " of "\n"
#define RELU ACT("relu", "relu")
#define PAIRED(kernel, more) CONVOLUTION("first", 12, kernel, "inputs = x\n" more)
/* What begins a stage of a ResNet; and where its first layer is no part of a block. */
#define STAGE_OF(outputs)                                                                \
    HEAD(outputs)                                                                        \
    REDUCE WINDOWS ACT("windows.relu", "relu") PROJECT SHORT("stride = 2\n")             \
        SUM("project, short") RELU
#define STAGE STAGE_OF("relu")
#define APART_BEFORE(output) STAGE_OF(output ", reduce.relu")
#define APART STAGE_OF("relu, reduce.relu")

static const struct chain_case chains[] = {
    {"a stage's beginning", APART, "project", 4, 0},
    {"of windows",
     HEAD("relu") PAIRED(3x3, "pad = 1\nstride = 2\n") SHORT("stride = 2\n")
         SUM("first, short") RELU,
     "first", 4, 0},
    {"no activation, the shortcut on the left",
     HEAD("sum") PAIRED(1x1, "") SHORT("") SUM("short, first"), "first", 3, 0},
    {"strides that differ by dim",
     HEAD("sum") PAIRED(3x1, "pad = 1, 0\nstride = 1x2\n") SHORT("stride = 1x2\n")
         SUM("first, short"),
     "first", 3, 0},
    {"no biases",
     HEAD("sum") "[layer first]\ntype = Convolution\nfilters = 5\nkernel = 1x1\n"
                 "weight = w\n"
                 "[layer short]\ntype = Convolution\nfilters = 5\nkernel = 1x1\n"
                 "weight = w\ninputs = x\n" SUM("first, short"),
     "first", 3, 0},
    {"another input that is there before",
     HEAD("sum") ABS("other", "x") PAIRED(1x1, "")
         CONVOLUTION("short", 12, 1x1, "inputs = other\n") SUM("first, short"),
     "first", 3, 0},
    {"what the shortcut reads comes later",
     HEAD("sum") PAIRED(1x1, "") ABS("late", "x")
         CONVOLUTION("short", 12, 1x1, "inputs = late\n") SUM("first, short"),
     "first", 0, 0},
    {"a shortcut of windows",
     HEAD("sum") PAIRED(1x1, "") CONVOLUTION("short", 12, 3x3, "inputs = x\npad = 1\n")
         SUM("first, short"),
     "first", 0, 0},
    {"a shortcut with pads",
     HEAD("sum") PAIRED(3x3, "pad = 2\n")
         CONVOLUTION("short", 12, 1x1, "inputs = x\npad = 1\n") SUM("first, short"),
     "first", 0, 0},
    {"a shortcut in groups",
     HEAD("sum") PAIRED(1x1, "") SHORT("groups = 2\n") SUM("first, short"), "first", 0,
     0},
    {"windows in groups",
     HEAD("sum") PAIRED(1x1, "groups = 2\n") SHORT("") SUM("first, short"), "first", 0,
     0},
    {"an activation between",
     HEAD("sum") PAIRED(1x1, "") ACT("first.relu", "relu") SHORT("")
         SUM("first.relu, short"),
     "first", 0, 0},
    {"a shortcut that stretches",
     HEAD("sum") PAIRED(
         3x3, "pad = 1\n") "[layer mean]\ntype = Pooling\n"
                           "kind = average\nglobal = yes\ninputs = x\n" CONVOLUTION(
                               "short", 12, 1x1, "") SUM("first, short"),
     "first", 0, 0},
    {"a product",
     HEAD("sum") PAIRED(1x1, "")
         SHORT("") "[layer sum]\ntype = ElementWise\nop = product\n"
                   "inputs = first, short\n",
     "first", 0, 0},
    {"twice the same", HEAD("sum") PAIRED(1x1, "") SUM("first, first"), "first", 0, 0},
    {"the shortcut is an output",
     HEAD("sum, short") PAIRED(1x1, "") SHORT("") SUM("first, short"), "first", 0, 0},
    {"the first is read twice",
     HEAD("sum, y") PAIRED(1x1, "") SHORT("") ABS("y", "first") SUM("first, short"),
     "first", 0, 0},
    {"an impl that is asked for",
     HEAD("sum") PAIRED(1x1, "") SHORT("impl = c\n") SUM("first, short"), "first", 0, 0},
    {"no fusion",
     HEAD("sum") PAIRED(1x1, "") SHORT("") SUM("first, short") "[build]\nfusion = no\n",
     "first", 0, 0},
};

Test(fuse_shortcut, sums_are_of_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain(&chains[i], SHORTCUT);
}

/* Which a block before may end with. */
Test(fuse_shortcut, begins_where_a_block_ends)
{
    static const struct chain_case block = {"", STAGE, "reduce", 5, 0},
                                   pair = {"", STAGE, "project", 4, 0};
    expect_chain(&block, BOTTLENECK);
    expect_chain(&pair, SHORTCUT);
    expect_chain_values(&pair);
}

/* Its last layers may begin what computes element by element, if it does not run. */
Test(fuse_shortcut, leaves_its_end_to_others)
{
    static const struct chain_case cases[] = {
        {"an activation", APART_BEFORE("y") ABS("y", "relu"), "relu", 2, 0},
        {"a sum", HEAD("y") PAIRED(1x1, "") SHORT("") SUM("first, short") ABS("y", "sum"),
         "sum", 2, 0},
        {"both", APART_BEFORE("y") ABS("y", "relu"), "sum", 3, 0},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        expect_chain(&cases[i], POINTWISE);
        expect_chain_values(&cases[i]);
    }
}

Test(fuse_shortcut, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain_values(&chains[i]);
}

/* ---- prices ----------------------------------------------------------------------- */

static const char *reason_of(const struct planning *s, const char *layer)
{
    return s->planner->fusions[chain_node(s, layer)].reason;
}

Test(fuse_shortcut, is_taken_where_it_is_cheaper)
{
    static const char *const members[] = {"short", "sum", "relu"};
    struct planning s;
    cr_expect_gt(plan_at_prices(&s, APART, SHORTCUT, 100, 1000).asked, 0);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "project"), CANDIDATE_GROUP);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
        cr_expect_eq(chosen_for(&s, members[i]), CANDIDATE_ABSORBED, "%s", members[i]);
        cr_expect_str_eq(reason_of(&s, members[i]),
                         "project: all in one ShortcutConvolution", "%s", members[i]);
    }
    planning_close(&s);
}

/* The last layer of one is the first of the other. */
Test(fuse_shortcut, gives_way_to_the_block_before)
{
    struct planning s;
    plan_at_prices(&s, STAGE, BOTTLENECK, 100, 1000);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_GROUP);
    cr_expect_eq(chosen_for(&s, "project"), CANDIDATE_ABSORBED);
    cr_expect_eq(chosen_for(&s, "short"), CANDIDATE_RUN);
    planning_close(&s);
}

Test(fuse_shortcut, is_not_taken_where_it_is_not_cheaper)
{
    struct planning s;
    plan_at_prices(&s, STAGE, SHORTCUT, 100000, 1000);
    cr_expect_neq(chosen_for(&s, "project"), CANDIDATE_GROUP);
    cr_expect_eq(chosen_for(&s, "short"), CANDIDATE_RUN);
    planning_close(&s);
}

/* ---- files ------------------------------------------------------------------------ */

/* What an epilogue computes is dear, so that a sum is none. */
static int price_epilogues(struct cost_source *source, const struct planner *planner,
                           const struct cost_query *const *queries, const int64_t *best,
                           size_t n, struct cost *out, strata_error *err)
{
    (void)source;
    (void)planner;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct planner_candidate *c = queries[i]->candidate;
        out[i] = (struct cost){.ns = c && c->fused ? 100000 : 1000, .runs = 3};
    }
    return STRATA_OK;
}

/* A plan of before there was such a layer, in which a Pointwise begins with its sum. */
Test(fuse_shortcut, plans_of_before_are_read)
{
    static const char *const set[] = {"build.costs=measure", FP32};
    struct cost_source prices = {.name = "prices", .measure = price_epilogues};
    struct planning s;
    struct record *record;
    struct planner *again = NULL;
    cr_assert_eq(planning_load(&s, spill_text("net.ini", APART), NULL, set, 2), STRATA_OK,
                 "%s", s.err.message);
    const struct registry_layer *type = s.network->shortcut_convolution;
    s.network->shortcut_convolution = NULL;
    cr_assert_eq(planning_make(&s, &prices), STRATA_OK, "%s", s.err.message);
    cr_expect_eq(chosen_for(&s, "sum"), CANDIDATE_GROUP);
    cr_assert_eq(record_decisions(&record, s.planner, &s.err), STRATA_OK);
    s.network->shortcut_convolution = type;
    cr_expect_eq(planner_make_recorded(&again, s.network, &s.device, record, &s.err),
                 STRATA_OK, "%s", s.err.message);
    planner_free(again);
    planning_close(&s);
}

Test(fuse_shortcut, values_of_one_that_is_taken)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_taken_values(&chains[i], SHORTCUT);
}
