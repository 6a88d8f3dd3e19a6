/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of convolutions that are possible and do not run: the plan is that of a network
 * whose modules have no such layer, what computes element by element at a block's end
 * included; and plans of before there was one are read.
 */
#include <stddef.h>

#include "planner/record.h"
#include "tests/planner/fusion/prices.h"

TestSuite(fuse_blocks, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD CHAIN_HEAD
#define SUM(of) "[layer sum]\ntype = ElementWise\nop = sum\ninputs = " of "\n"
#define ABS(name, of) "[layer " name "]\ntype = Unary\nop = abs\ninputs = " of "\n"
#define RELU ACT("relu", "relu")
#define BEHIND ABS("abs", "relu") ABS("y", "abs")
#define BLOCK_OF(windows)                                                                \
    CONVOLUTION("head", 12, 1x1, "")                                                     \
    ACT("head.relu", "relu")                                                             \
    windows ACT("windows.relu", "relu") CONVOLUTION("project", 12, 1x1, "")
#define DENSE BLOCK_OF(CONVOLUTION("windows", 6, 3x3, "pad = 1\n"))
#define DEPTHWISE BLOCK_OF(CONVOLUTION("windows", 12, 3x3, "pad = 1\ngroups = 12\n"))
#define SHORT CONVOLUTION("short", 12, 1x1, "inputs = x\n")

#define INVERTED "core::InvertedResidual@1", offsetof(strata_network, inverted_residual)
#define BOTTLENECK "core::Bottleneck@1", offsetof(strata_network, bottleneck)
#define SHORTCUT                                                                         \
    "core::ShortcutConvolution@1", offsetof(strata_network, shortcut_convolution)
#define POOLED "core::PooledConvolution@1", offsetof(strata_network, pooled_convolution)

/* members: of the Pointwise pass that begins at a layer. */
static const struct block_case {
    const char *name, *type;
    size_t field;
    const char *ini, *layer;
    int members;
} cases[] = {
    {"a sum", BOTTLENECK, HEAD("y") DENSE SUM("project, x") ABS("y", "sum"), "sum", 2},
    {"a sum and an activation", BOTTLENECK, HEAD("y") DENSE SUM("project, x") RELU BEHIND,
     "sum", 4},
    {"nothing behind them", BOTTLENECK, HEAD("relu") DENSE SUM("project, x") RELU, "sum",
     2},
    {"a shortcut, too", BOTTLENECK,
     HEAD("y") DENSE SHORT SUM("short, project") RELU BEHIND, "sum", 4},
    {"an activation", BOTTLENECK, HEAD("y") DENSE RELU BEHIND, "relu", 3},
    {"the pass is read again", BOTTLENECK,
     HEAD("z") DENSE SUM("project, x") RELU ABS("abs", "relu")
         ABS("y", "x") "[layer z]\ntype = ElementWise\nop = sum\ninputs = abs, y\n",
     "sum", 3},
    {"a sum behind depthwise windows", INVERTED,
     HEAD("y") DEPTHWISE SUM("project, x") RELU BEHIND, "sum", 4},
    {"an activation of the product", INVERTED, HEAD("y") DEPTHWISE RELU BEHIND, "relu",
     3},
    {"an activation of the windows", INVERTED,
     HEAD("y") CONVOLUTION("head", 12, 1x1, "")
         CONVOLUTION("windows", 12, 3x3, "groups = 12\n") RELU BEHIND,
     "relu", 3},
    {"a sum of two convolutions", SHORTCUT,
     HEAD("y") CONVOLUTION("head", 12, 1x1, "") SHORT SUM("head, short") RELU BEHIND,
     "sum", 4},
    {"maxima", POOLED,
     HEAD("y") CONVOLUTION("head", 12, 3x3, "")
         ACT("head.relu", "relu") "[layer relu]\n"
                                  "type = Pooling\nkernel = 2x2\nstride = 2\n" BEHIND,
     "abs", 2},
};

/* A block is dear, and so is what an epilogue computes. */
static int price_blocks(struct cost_source *source, const struct planner *planner,
                        const struct cost_query *const *queries, const int64_t *best,
                        size_t n, struct cost *out, strata_error *err)
{
    (void)source;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct planner_candidate *c = queries[i]->candidate;
        const struct planner_group *g =
            c ? planner_group_of(&planner->nodes[c->node], c->kind) : NULL;
        const bool dear = (c && c->fused) || (g && planner_is_block(g));
        out[i] = (struct cost){.ns = dear ? 100000 : 1000, .runs = 3};
    }
    return STRATA_OK;
}

static const struct registry_layer **type_of(const struct planning *s,
                                             const struct block_case *c)
{
    return (const struct registry_layer **)((char *)s->network + c->field);
}

static void load(struct planning *s, const struct block_case *c)
{
    static const char *const set[] = {"build.costs=measure", FP32};
    cr_assert_eq(planning_load(s, spill_text("net.ini", c->ini), NULL, set, 2), STRATA_OK,
                 "%s: %s", c->name, s->err.message);
    cr_assert_not_null(*type_of(s, c));
}

static void make(struct planning *s, const struct block_case *c)
{
    struct cost_source prices = {.name = "prices", .measure = price_blocks};
    cr_assert_eq(planning_make(s, &prices), STRATA_OK, "%s: %s", c->name, s->err.message);
}

/* As if no module had the block's layer. */
static void make_without(struct planning *s, const struct block_case *c)
{
    *type_of(s, c) = NULL;
    make(s, c);
}

static bool may_run(const struct planning *s, const char *type)
{
    bool found = false;
    for (size_t i = 0; i < s->planner->n_nodes; i++) {
        const struct planner_node *n = &s->planner->nodes[i];
        found |= chain_members(n->group, type) || chain_members(n->longer, type);
    }
    return found;
}

static void expect_same_plans(const char *name, const struct planning *a,
                              const struct planning *b)
{
    cr_expect_eq(a->planner->plan->cost, b->planner->plan->cost, "%s", name);
    for (size_t i = 0; i < a->planner->n_nodes; i++) {
        const char *layer = a->network->layers[i].name;
        const struct planner_candidate *x = planner_chosen(a->planner, a->planner->plan,
                                                           i),
                                       *y = planner_chosen(b->planner, b->planner->plan,
                                                           i);
        cr_expect_eq(x->kind, y->kind, "%s, %s: %d, %d", name, layer, x->kind, y->kind);
        cr_expect_eq(x->fused, y->fused, "%s, %s", name, layer);
        cr_expect(!x->impl == !y->impl &&
                      (!x->impl || !strcmp(x->impl->impl.name, y->impl->impl.name)),
                  "%s, %s", name, layer);
        cr_expect_eq(x->in_formats[0], y->in_formats[0], "%s, %s", name, layer);
        cr_expect_eq(x->out_formats[0], y->out_formats[0], "%s, %s", name, layer);
    }
}

Test(fuse_blocks, those_that_do_not_run_change_nothing)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const struct block_case *c = &cases[i];
        struct planning with, without;
        load(&with, c);
        make(&with, c);
        load(&without, c);
        make_without(&without, c);
        cr_expect(may_run(&with, c->type), "%s", c->name);
        cr_expect(!may_run(&without, c->type), "%s", c->name);
        expect_same_plans(c->name, &with, &without);
        const struct planner_node *n = &with.planner->nodes[chain_node(&with, c->layer)];
        cr_expect_eq(chosen_for(&with, c->layer), CANDIDATE_GROUP, "%s", c->name);
        cr_expect_eq(chain_members(n->group, "core::Pointwise@1"), c->members, "%s: %d",
                     c->name, chain_members(n->group, "core::Pointwise@1"));
        planning_close(&with);
        planning_close(&without);
    }
}

/* Of a member of a pass, not of the block that it could have been in. */
Test(fuse_blocks, reasons_tell_of_the_pass_that_runs)
{
    struct planning s;
    load(&s, &cases[1]);
    make(&s, &cases[1]);
    const struct planner_fusion *f = &s.planner->fusions[chain_node(&s, "relu")];
    cr_expect(f->done);
    cr_expect_str_eq(f->reason, "sum: both in one pass");
    planning_close(&s);
}

/* A plan in which a Pointwise begins where a block now could end. */
Test(fuse_blocks, plans_of_before_are_read)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        struct record *record;
        struct planner *again = NULL;
        load(&s, &cases[i]);
        const struct registry_layer *type = *type_of(&s, &cases[i]);
        make_without(&s, &cases[i]);
        cr_assert_eq(record_decisions(&record, s.planner, &s.err), STRATA_OK);
        const int64_t cost = s.planner->plan->cost;
        *type_of(&s, &cases[i]) = type;
        cr_expect_eq(planner_make_recorded(&again, s.network, &s.device, record, &s.err),
                     STRATA_OK, "%s: %s", cases[i].name, s.err.message);
        cr_expect(again && again->plan->cost == cost, "%s", cases[i].name);
        planner_free(again);
        planning_close(&s);
    }
}

/* Computed by the engine, by whichever way costs least by the model. */
Test(fuse_blocks, values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
        expect_same_values(cases[i].name, cases[i].ini, FP32, FP32, 1e-5);
}
