/* SPDX-License-Identifier: Apache-2.0
 *
 * Bottlenecks as one layer: which chains are one and how far; that prices decide, and
 * that values are those without, whichever of the ways is planned; and that none is timed
 * where only a plain loop runs it.
 */
#include "tests/planner/fusion/prices.h"

#define BOTTLENECK "core::Bottleneck@1"

TestSuite(fuse_bottleneck, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD CHAIN_HEAD
#define REDUCE CONVOLUTION("reduce", 8, 1x1, "") ACT("reduce.relu", "relu")
#define WINDOWS CONVOLUTION("windows", 6, 3x3, "pad = 1\n") ACT("windows.relu", "relu")
#define PROJECT CONVOLUTION("project", 12, 1x1, "")
#define SUM(of) "[layer sum]\ntype = ElementWise\nop = sum\ninputs = " of "\n"
#define ABS(name, of) "[layer " name "]\ntype = Unary\nop = abs\ninputs = " of "\n"
#define BLOCK REDUCE WINDOWS PROJECT
#define SHORT(more) CONVOLUTION("short", 12, 1x1, "inputs = x\n" more)
#define CROSSED BLOCK SHORT("") SUM("project, short")
#define RESIDUAL HEAD("relu") BLOCK SUM("project, x") ACT("relu", "relu")

static const struct chain_case chains[] = {
    {"a block", HEAD("project") BLOCK, "reduce", 5, 0},
    {"a block and its sum", HEAD("sum") BLOCK SUM("project, x"), "reduce", 5, 6},
    {"what is added on the left", HEAD("sum") BLOCK SUM("x, project"), "reduce", 5, 6},
    {"an activation behind the sum", RESIDUAL, "reduce", 5, 7},
    {"an activation behind all", HEAD("relu") BLOCK ACT("relu", "relu"), "reduce", 6, 0},
    {"a sum and something else", HEAD("abs") BLOCK SUM("project, x") ABS("abs", "sum"),
     "reduce", 5, 6},
    {"what is added is not what is read",
     HEAD("sum") ABS("other", "x") CONVOLUTION("reduce", 8, 1x1, "inputs = x\n")
         WINDOWS PROJECT SUM("project, other"),
     "reduce", 4, 5},
    {"what is added comes later", HEAD("sum") BLOCK ABS("late", "x") SUM("project, late"),
     "reduce", 5, 0},
    {"what is added has another shape",
     HEAD("sum") "[layer mean]\ntype = Pooling\nkind = average\nglobal = "
                 "yes\n" CONVOLUTION("reduce", 8, 1x1, "inputs = x\n")
                     WINDOWS PROJECT SUM("project, mean"),
     "reduce", 4, 0},
    {"a shortcut", HEAD("sum") CROSSED, "reduce", 5, 7},
    {"a shortcut on the left, an activation behind the sum",
     HEAD("relu") BLOCK SHORT("") SUM("short, project") ACT("relu", "relu"), "reduce", 5,
     8},
    {"a shortcut without bias",
     HEAD("sum") BLOCK "[layer short]\ntype = Convolution\nfilters = 12\nkernel = 1x1\n"
                       "weight = w\ninputs = x\n" SUM("project, short"),
     "reduce", 5, 7},
    {"a shortcut that comes first is what is added",
     HEAD("sum") SHORT("") CONVOLUTION("reduce", 8, 1x1, "inputs = x\n")
         WINDOWS PROJECT SUM("project, short"),
     "reduce", 4, 5},
    {"a shortcut that comes between",
     HEAD("sum") REDUCE SHORT("")
         CONVOLUTION("windows", 6, 3x3, "pad = 1\ninputs = reduce.relu\n")
             PROJECT SUM("project, short"),
     "reduce", 4, 0},
    {"a shortcut of something else",
     HEAD("sum") ABS("other", "x") CONVOLUTION("reduce", 8, 1x1, "inputs = x\n")
         WINDOWS PROJECT CONVOLUTION("short", 12, 1x1, "inputs = other\n")
             SUM("project, short"),
     "reduce", 4, 0},
    {"a shortcut that is read twice", HEAD("sum, y") CROSSED ABS("y", "short"), "reduce",
     5, 0},
    {"a shortcut that is an output", HEAD("sum, short") CROSSED, "reduce", 5, 0},
    {"a shortcut with an activation",
     HEAD("sum") BLOCK SHORT("") ACT("late", "relu") SUM("project, late"), "reduce", 5,
     0},
    {"a shortcut of windows",
     HEAD("sum") BLOCK CONVOLUTION("short", 12, 3x3, "pad = 1\ninputs = x\n")
         SUM("project, short"),
     "reduce", 5, 0},
    {"a shortcut with a stride",
     HEAD("sum") REDUCE CONVOLUTION("windows", 6, 3x3, "pad = 1\nstride = 2\n")
         PROJECT SHORT("stride = 2\n") SUM("project, short"),
     "reduce", 4, 0},
    {"a shortcut in groups",
     HEAD("sum") BLOCK SHORT("groups = 2\n") SUM("project, short"), "reduce", 5, 0},
    {"it is added to itself", HEAD("sum") BLOCK SUM("project, project"), "reduce", 5, 0},
    {"a product",
     HEAD("y") BLOCK "[layer y]\ntype = ElementWise\nop = product\n"
                     "inputs = project, x\n",
     "reduce", 5, 0},
    {"no activations",
     HEAD("project") CONVOLUTION("reduce", 8, 1x1, "") CONVOLUTION("windows", 6, 3x3, "")
         PROJECT,
     "reduce", 3, 0},
    {"other activations",
     HEAD("out") CONVOLUTION("reduce", 8, 1x1, "") ACT("a", "silu")
         CONVOLUTION("windows", 6, 3x3, "") ACT("b", "tanh") PROJECT ACT("out", "elu"),
     "reduce", 6, 0},
    {"a stride",
     HEAD("project") REDUCE CONVOLUTION("windows", 6, 3x3, "pad = 1\nstride = 2\n")
         PROJECT,
     "reduce", 4, 0},
    {"a window of 5, dilated",
     HEAD("project") REDUCE CONVOLUTION("windows", 6, 5x5,
                                        "pad_mode = same_upper\ndilation = 2\n") PROJECT,
     "reduce", 4, 0},
    {"a window of 1x3",
     HEAD("project") REDUCE CONVOLUTION("windows", 6, 1x3, "pad = 0, 1\n") PROJECT,
     "reduce", 4, 0},
    {"one channel",
     HEAD("project") CONVOLUTION("reduce", 1, 1x1, "")
         CONVOLUTION("windows", 1, 3x3, "pad = 1\n") CONVOLUTION("project", 1, 1x1, ""),
     "reduce", 3, 0},
    {"a block without bias",
     HEAD("project") "[layer reduce]\ntype = Convolution\nfilters = 8\nkernel = 1x1\n"
                     "weight = w\n" WINDOWS PROJECT,
     "reduce", 4, 0},
    {"what is reduced is read twice", HEAD("project, y") BLOCK ABS("y", "reduce.relu"),
     "reduce", 0, 0},
    {"what the windows make is read twice",
     HEAD("project, y") BLOCK ABS("y", "windows.relu"), "reduce", 0, 0},
    {"what is projected is read twice",
     HEAD("sum, y") BLOCK SUM("project, x") ABS("y", "project"), "reduce", 5, 0},
    {"an output between", HEAD("project, windows") BLOCK, "reduce", 0, 0},
    {"an output before the sum", HEAD("sum, project") BLOCK SUM("project, x"), "reduce",
     5, 0},
    {"windows in groups",
     HEAD("project") REDUCE CONVOLUTION("windows", 6, 3x3, "groups = 2\n") PROJECT,
     "reduce", 0, 0},
    {"depthwise windows",
     HEAD("project") REDUCE CONVOLUTION("windows", 8, 3x3, "groups = 8\n") PROJECT,
     "reduce", 0, 0},
    {"windows of a pixel",
     HEAD("project") REDUCE CONVOLUTION("windows", 6, 1x1, "") PROJECT, "reduce", 0, 0},
    {"windows that reduce",
     HEAD("project") CONVOLUTION("reduce", 8, 3x3, "") WINDOWS PROJECT, "reduce", 0, 0},
    {"strides that reduce",
     HEAD("project") CONVOLUTION("reduce", 8, 1x1, "stride = 2\n") WINDOWS PROJECT,
     "reduce", 0, 0},
    {"windows that project",
     HEAD("project") REDUCE WINDOWS CONVOLUTION("project", 12, 3x3, ""), "reduce", 0, 0},
    {"nothing is reduced", HEAD("project") WINDOWS PROJECT, "windows", 0, 0},
    {"nothing is projected", HEAD("windows.relu") REDUCE WINDOWS, "reduce", 0, 0},
    {"an impl that is asked for",
     HEAD("project") REDUCE CONVOLUTION("windows", 6, 3x3, "impl = c\n") PROJECT,
     "reduce", 0, 0},
    {"a format that is asked for",
     HEAD("project") CONVOLUTION("reduce", 8, 1x1, "format = fp32:nchw\n")
         WINDOWS PROJECT,
     "reduce", 0, 0},
    {"no fusion", HEAD("project") BLOCK "[build]\nfusion = no\n", "reduce", 0, 0},
};

Test(fuse_bottleneck, blocks_are_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain(&chains[i], BOTTLENECK);
}

Test(fuse_bottleneck, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++)
        expect_chain_values(&chains[i]);
}

/* ---- prices ----------------------------------------------------------------------- */

static struct prices plan_at(struct planning *s, const char *ini, int64_t made,
                             int64_t other)
{
    return plan_at_prices(s, ini, BOTTLENECK, made, other);
}

static const struct planner_fusion *fusion_of(const struct planning *s, const char *layer)
{
    return &s->planner->fusions[chain_node(s, layer)];
}

Test(fuse_bottleneck, is_taken_where_it_is_cheaper)
{
    static const char *const members[] = {"reduce.relu", "windows", "windows.relu",
                                          "project",     "sum",     "relu"};
    struct planning s;
    cr_expect_gt(plan_at(&s, RESIDUAL, 100, 1000).asked, 0);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_LONGER);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
        const struct planner_fusion *f = fusion_of(&s, members[i]);
        cr_expect_eq(chosen_for(&s, members[i]), CANDIDATE_ABSORBED, "%s", members[i]);
        cr_expect(f->done, "%s", members[i]);
        cr_expect_eq(f->into, (int)chain_node(&s, "reduce"), "%s", members[i]);
    }
    cr_expect_str_eq(fusion_of(&s, "windows")->reason, "reduce: all in one Bottleneck");
    planning_close(&s);
}

Test(fuse_bottleneck, without_the_sum_is_taken_too)
{
    struct planning s;
    plan_at(&s,
            HEAD("late") BLOCK ABS("abs", "x") SUM("project, abs") ACT("late", "relu"),
            100, 1000);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_GROUP);
    cr_expect_eq(chosen_for(&s, "project"), CANDIDATE_ABSORBED);
    cr_expect(!fusion_of(&s, "sum")->done || fusion_of(&s, "sum")->into >= 0);
    planning_close(&s);
}

Test(fuse_bottleneck, is_not_taken_where_it_is_not_cheaper)
{
    struct planning s;
    plan_at(&s, RESIDUAL, 100000, 1000);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "windows"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "project"), CANDIDATE_RUN);
    cr_expect(!fusion_of(&s, "windows")->done);
    cr_expect_str_eq(fusion_of(&s, "windows")->reason,
                     "reduce: running it by itself costs less");
    planning_close(&s);
}

/* All of it: a shortcut's product and the sum are free only where the block makes both.
 */
Test(fuse_bottleneck, a_shortcut_is_taken_with_its_block_or_not_at_all)
{
    static const char *const members[] = {"project", "short", "sum"};
    struct planning s;
    plan_at(&s, HEAD("sum") CROSSED, 100, 1000);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_LONGER);
    for (size_t i = 0; i < ARRAY_LENGTH(members); i++) {
        cr_expect_eq(chosen_for(&s, members[i]), CANDIDATE_ABSORBED, "%s", members[i]);
        cr_expect_str_eq(fusion_of(&s, members[i])->reason,
                         "reduce: all in one Bottleneck", "%s", members[i]);
    }
    planning_close(&s);
    plan_at(&s, HEAD("sum") CROSSED, 100000, 1000);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "short"), CANDIDATE_RUN);
    cr_expect_eq(chosen_for(&s, "project"), CANDIDATE_RUN);
    planning_close(&s);
}

static uint64_t half_formats(void)
{
    uint64_t mask = 0;
    for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
        mask |= (uint64_t)(format_at(f)->dtype == STRATA_FP16) << f;
    return mask;
}

/* The same node where the only impl of its layer is of FP16. */
static uint64_t formats_by_half_impl(const struct planning *s,
                                     const struct planner_node *node, bool made)
{
    const struct registry_row row = {.in = {half_formats()}, .out = {STRATA_SAME}};
    struct registry_impl impl = node->layer->type->impls[0];
    struct registry_layer type = *node->layer->type;
    struct network_layer layer = *node->layer;
    struct planner_node n = *node;
    impl.rows = &row;
    impl.impl.rows.n = 1;
    type.impls = &impl;
    type.n_impls = 1;
    layer.type = &type;
    n.layer = &layer;
    return planner_precision(s->planner, &n, made);
}

/* Layers as the network has them run in another one where there is no other way. */
Test(fuse_bottleneck, has_no_precision_that_its_layers_were_not_asked_for)
{
    struct planning s;
    plan_at(&s, RESIDUAL "[build]\nprecision = fp32\n", 100, 1000);
    const struct planner_node *n = &s.planner->nodes[chain_node(&s, "reduce")];
    cr_expect(!(formats_by_half_impl(&s, &n->longer->node, true) & half_formats()));
    cr_expect(formats_by_half_impl(&s, n, false) & half_formats());
    planning_close(&s);
}

/* The plan that takes it, run. */
Test(fuse_bottleneck, values_of_a_block_that_is_taken)
{
    static const char *const inis[] = {
        RESIDUAL,
        HEAD("sum") BLOCK SUM("x, project"),
        HEAD("project") BLOCK,
        HEAD("sum") CROSSED,
        HEAD("relu") BLOCK SHORT("") SUM("short, project") ACT("relu", "relu"),
        HEAD("project") REDUCE CONVOLUTION("windows", 6, 5x5, "stride = 2\n") PROJECT};
    for (size_t i = 0; i < ARRAY_LENGTH(inis); i++) {
        struct planning s;
        struct session plain, fused;
        char costs[300];
        const char *no[] = {"build.fusion=no", FP32};
        const char *set[] = {"build.costs=block.costs", "build.costs_miss=analytic",
                             FP32};
        int64_t n, m;
        snprintf(costs, sizeof costs, "%s/block.costs", scratch);
        plan_at(&s, inis[i], 10, 100000);
        cr_assert_eq(cost_table_write(&s.planner->known, costs, &s.err), STRATA_OK, "%s",
                     s.err.message);
        planning_close(&s);
        cr_assert_eq(build(&plain, inis[i], no, 2), STRATA_OK, "%s", plain.err.message);
        float *a = output(&plain, &n);
        release(&plain);
        cr_assert_eq(build(&fused, inis[i], set, 3), STRATA_OK, "%s", fused.err.message);
        cr_expect_str_eq(fused.engine->execution->nodes[1].layer->type->full_name,
                         BOTTLENECK, "%zu", i);
        float *b = output(&fused, &m);
        release(&fused);
        cr_assert_eq(n, m);
        cr_expect_leq(worst_difference(a, b, n), 1e-5, "%zu", i);
        free(a);
        free(b);
    }
}

/* A host's plain loop against its convolutions, in a block that computes. */
Test(fuse_bottleneck, is_not_timed_where_its_claims_are_hopeless)
{
    static const char ini[] =
        "[network]\nformat = 1\noutputs = relu\n[weights w]\nrandom = 3\n"
        "[input x]\nshape = 1 x 256 x 56 x 56\n" CONVOLUTION("reduce", 64, 1x1, "")
            ACT("reduce.relu", "relu") CONVOLUTION("windows", 64, 3x3, "pad = 1\n")
                CONVOLUTION("project", 256, 1x1, "") SUM("project, x")
                    ACT("relu", "relu");
    struct planning s;
    struct prices p = plan_at(&s, ini, 1, 1000);
    const struct planner_node *n = &s.planner->nodes[chain_node(&s, "reduce")];
    cr_expect_eq(p.asked, 0);
    cr_expect_eq(chain_members(n->longer, BOTTLENECK), 6);
    cr_expect_eq(chosen_for(&s, "reduce"), CANDIDATE_RUN);
    cr_expect(strstr(fusion_of(&s, "windows")->reason, "by its claims"), "%s",
              fusion_of(&s, "windows")->reason);
    planning_close(&s);
}

/* A shortcut where none may be. */
Test(fuse_bottleneck, a_shortcut_that_cannot_be_is_refused)
{
    static const char head[] = "{\"s\":{\"dtype\":\"F32\",\"shape\":[12,40],"
                               "\"data_offsets\":[0,1920]},"
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[12],"
                               "\"data_offsets\":[1920,1968]}}";
    static const struct {
        const char *more, *error;
    } cases[] = {
        {"inputs = x\nshortcut_bias = file:b\n", "a bias of the shortcut"},
        {"inputs = x, z\nshortcut = file:s\n", "and so is a second input"},
        {"inputs = x\nstride = 2\nshortcut = file:s\n",
         "takes every pixel, of 6 x 6, and the results are 3 x 3"},
    };
    char bytes[8 + sizeof head - 1 + 1968] = {0};
    bytes[0] = (char)(sizeof head - 1);
    memcpy(bytes + 8, head, sizeof head - 1);
    spill("shortcut.safetensors", bytes, sizeof bytes);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct session s;
        char text[512];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = y\n[weights w]\nrandom = 3\n"
                 "[weights file]\nfile = shortcut.safetensors\n"
                 "[input x]\nshape = 1 x 40 x 6 x 6\n[input z]\nshape = 1 x 12 x 6 x 6\n"
                 "[layer y]\ntype = Bottleneck\nkernel = 3\npad = 1\nreduced = 8\n"
                 "projected = 12\nreduce = w\nwindows = w\nproject = w\n%s",
                 cases[i].more);
        cr_expect_eq(session_load(&s, spill_text("net.ini", text), NULL, NULL, 0),
                     STRATA_EINVAL);
        cr_expect(strstr(s.err.message, cases[i].error), "%s", s.err.message);
        release(&s);
    }
}
