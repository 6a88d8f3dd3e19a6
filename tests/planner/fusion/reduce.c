/* SPDX-License-Identifier: Apache-2.0
 *
 * A Reduce with what stands next to it as one layer: the values are those without, what
 * must stay says why, and an engine with such layers comes back from its file.
 */
#include "tests/planner/fusion/fusing.h"

TestSuite(fuse_reduce, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

#define HEAD(out) "[network]\nformat = 1\noutputs = " out "\n"
#define INPUT HEAD("y") "[input x]\nshape = 2 x 24 x 17 x 19\n"
#define UNARY(name, op, more) "[layer " name "]\ntype = Unary\nop = " op "\n" more
#define REDUCE(name, op, more) "[layer " name "]\ntype = Reduce\nop = " op "\n" more
#define SHUFFLE(name, more) "[layer " name "]\ntype = Shuffle\n" more
#define SQUARE(name) "[layer " name "]\ntype = ElementWise\nop = product\ninputs = x, x\n"
#define LAST "axes = -1\n"
#define PLANE "axes = 2, 3\n"
/* x^c, where the file c.npy is 2 or 3 */
#define POWER(file)                                                                      \
    HEAD("y")                                                                            \
    "[weights w]\nfile = " file "\n[input x]\nshape = 2 x 24 x 17 x 19\n"                \
    "[layer c]\ntype = Constant\nvalue = w\n"                                            \
    "[layer a]\ntype = ElementWise\nop = pow\ninputs = x, c\n"

/* layer: the first of the chain; op: of the Reduce that it is, -1: a Pooling. */
static const struct {
    const char *name, *ini, *layer;
    int op, members;
} chains[] = {
    {"l1", INPUT UNARY("a", "abs", "") REDUCE("y", "sum", LAST), "a", STRATA_REDUCE_L1,
     2},
    {"sum of squares", INPUT SQUARE("a") REDUCE("y", "sum", "axes = 1\n"), "a",
     STRATA_REDUCE_SUM_SQUARE, 2},
    {"sum of second powers", POWER("two.npy") REDUCE("y", "sum", LAST), "a",
     STRATA_REDUCE_SUM_SQUARE, 2},
    {"sum of a Scale with power 2",
     INPUT "[layer a]\ntype = Scale\npower = 2\n" REDUCE("y", "sum", ""), "a",
     STRATA_REDUCE_SUM_SQUARE, 2},
    {"l2", INPUT REDUCE("a", "sum_square", LAST) UNARY("y", "sqrt", ""), "a",
     STRATA_REDUCE_L2, 2},
    {"l2 of squares", INPUT SQUARE("a") REDUCE("s", "sum", PLANE) UNARY("y", "sqrt", ""),
     "a", STRATA_REDUCE_L2, 3},
    {"log of a sum",
     INPUT UNARY("p", "cosh", "") REDUCE("a", "sum", LAST) UNARY("y", "log", ""), "a",
     STRATA_REDUCE_LOG_SUM, 2},
    {"log_sum_exp", INPUT UNARY("a", "exp", "") REDUCE("y", "log_sum", LAST), "a",
     STRATA_REDUCE_LOG_SUM_EXP, 2},
    {"log of a sum of exp",
     INPUT UNARY("a", "exp", "") REDUCE("s", "sum", LAST "keep_dims = no\n")
         UNARY("y", "log", ""),
     "a", STRATA_REDUCE_LOG_SUM_EXP, 3},
    {"permuted, dims gone",
     INPUT SHUFFLE("a", "first = 0, 2, 3, 1\n")
         REDUCE("y", "max", "axes = 1, -2\nkeep_dims = no\n"),
     "a", STRATA_REDUCE_MAX, 2},
    {"permuted twice over, dims kept",
     INPUT SHUFFLE("a", "first = 3, 1, 2, 0\nsecond = 3, 1, 0, 2\n")
         REDUCE("y", "prod", "axes = 2, 3\n"),
     "a", STRATA_REDUCE_PROD, 2},
    {"permuted, all dims",
     INPUT SHUFFLE("a", "first = 3, 1, 2, 0\n") REDUCE("y", "sum", ""), "a",
     STRATA_REDUCE_SUM, 2},
    {"permuted, of abs",
     INPUT SHUFFLE("a", "first = 0, 2, 3, 1\n") UNARY("m", "abs", "")
         REDUCE("y", "sum", "axes = 3\nkeep_dims = no\n"),
     "a", STRATA_REDUCE_L1, 3},
    {"abs permuted",
     INPUT UNARY("a", "abs", "") SHUFFLE("m", "first = 0, 2, 3, 1\n")
         REDUCE("y", "sum", "axes = 3\nkeep_dims = no\n"),
     "a", STRATA_REDUCE_L1, 3},
    {"pooling", INPUT REDUCE("y", "mean", PLANE), "y", -1, 1},
    {"pooling of one spatial dim",
     HEAD("y") "[input x]\nshape = 3 x 5 x 70\n" REDUCE("y", "mean", "axes = -1\n"), "y",
     -1, 1},
    {"pooling of a permuted plane",
     INPUT SHUFFLE("a", "first = 0, 1, 3, 2\n") REDUCE("y", "mean", PLANE), "a", -1, 2},
    {"of several batches",
     HEAD("y") "[profile]\nN = 1, 3\n[input x]\nshape = N x 24 x 17\n" UNARY(
         "a", "abs", "") REDUCE("y", "sum", LAST),
     "a", STRATA_REDUCE_L1, 2},
    {"pooling of several batches",
     HEAD("y") "[profile]\nN = 1, 3\n[input x]\nshape = N x 24 x 17 x 5\n" REDUCE(
         "y", "mean", PLANE),
     "y", -1, 1},
    {"a chain of element-wise layers ends where one begins",
     INPUT UNARY("p", "sin", "") UNARY("q", "neg", "") UNARY("a", "abs", "")
         REDUCE("y", "sum", LAST),
     "a", STRATA_REDUCE_L1, 2},
    {"abs and sum before a log",
     INPUT UNARY("a", "abs", "") REDUCE("s", "sum", LAST) UNARY("y", "log", ""), "a",
     STRATA_REDUCE_L1, 2},
};

static void spill_number(const char *name, float x)
{
    static const char dict[] =
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
    char bytes[132] = "\x93NUMPY\x01";
    bytes[8] = 118;
    memset(bytes + 10, ' ', 118);
    memcpy(bytes + 10, dict, sizeof dict - 1);
    bytes[127] = '\n';
    memcpy(bytes + 128, &x, sizeof x);
    spill(name, bytes, sizeof bytes);
}

static void spill_numbers(void)
{
    spill_number("two.npy", 2);
    spill_number("three.npy", 3);
}

static size_t node_of(const struct planning *s, const char *layer)
{
    size_t l = 0;
    while (strcmp(s->network->layers[l].name, layer) != 0)
        l++;
    return l;
}

Test(fuse_reduce, values_are_those_without_fusion)
{
    spill_numbers();
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP32, 1e-5);
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP16, 1e-2);
    }
}

Test(fuse_reduce, chains_are_one_layer)
{
    spill_numbers();
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, s.err.message);
        const struct planner_group *g =
            s.planner->nodes[node_of(&s, chains[i].layer)].group;
        cr_assert_neq(g, NULL, "%s", chains[i].name);
        cr_expect_eq(g->members, chains[i].members, "%s: %d", chains[i].name, g->members);
        cr_expect_str_eq(g->node.layer->type->layer.name,
                         chains[i].op < 0 ? "Pooling" : "Reduce", "%s", chains[i].name);
        cr_expect(chains[i].op < 0 || g->made.params.reduce.op == chains[i].op, "%s: %d",
                  chains[i].name, g->made.params.reduce.op);
        planning_close(&s);
    }
}

/* Two layers or more in one pass cost less than apart, so they are what runs. */
Test(fuse_reduce, nodes_are_what_runs)
{
    spill_numbers();
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct planning s;
        bool runs = false;
        cr_assert_eq(plan(&s, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, s.err.message);
        for (size_t k = 0; k < s.execution->n_nodes; k++)
            runs |= (int)s.execution->nodes[k].n_fused == chains[i].members - 1 &&
                    s.execution->nodes[k].made != NULL;
        cr_expect(runs || chains[i].members == 1, "%s", chains[i].name);
        planning_close(&s);
    }
}

/* Where oneDNN pools vectors of channels faster than Reduce adds them. */
Test(fuse_reduce, a_mean_runs_as_a_pooling_where_that_costs_less)
{
    struct planning s;
    bool fast = false;
    const char *ini = HEAD("y") "[input x]\nshape = 1 x 64 x 56 x 56\n"
                                "format = fp32:nc/8hw8\n" REDUCE("y", "mean", PLANE);
    cr_assert_eq(plan(&s, ini, NULL, 0), STRATA_OK, "%s", s.err.message);
    const struct registry_layer *pooling = s.network->pooling;
    for (size_t i = 0; i < pooling->n_impls; i++)
        fast |= strcmp(pooling->impls[i].impl.name, "onednn_blocked") == 0;
    if (!fast) {
        planning_close(&s);
        cr_skip_test("this build has no oneDNN");
    }
    cr_expect_eq(s.execution->n_nodes, 1);
    cr_expect_eq(s.execution->nodes[0].layer->type, pooling);
    const struct planner_fusion *f = &s.planner->fusions[0];
    cr_expect(f->done && f->into == 0);
    cr_expect_str_eq(f->reason, "the mean over its plane is a global Pooling");
    planning_close(&s);
    expect_same_values("pooling of vectors", ini, FP32, FP32, 1e-5);
}

/* The reason of a layer that stays, or of one that is fused. */
static const struct {
    const char *ini, *layer, *reason;
    bool done;
} reasons[] = {
    {INPUT UNARY("a", "abs", "") REDUCE("y", "sum", LAST), "y",
     "a: both in one Reduce, l1", true},
    {INPUT SQUARE("a") REDUCE("s", "sum", LAST) UNARY("y", "sqrt", ""), "y",
     "s: all in one Reduce, l2", true},
    {INPUT SHUFFLE("a", "first = 0, 1, 3, 2\n") REDUCE("y", "min", PLANE), "y",
     "a: both in one Reduce", true},
    {HEAD("a, y") "[input x]\nshape = 2 x 24\n" UNARY("a", "abs", "")
         REDUCE("y", "sum", LAST),
     "y", "a: its output is a network output", false},
    {HEAD("b, y") "[input x]\nshape = 2 x 24\n" UNARY("a", "abs", "")
         UNARY("b", "neg", "") REDUCE("y", "sum", "inputs = a\n"),
     "y", "a: its output has other readers", false},
    {INPUT UNARY("a", "abs", "format = fp32:nchw\n") REDUCE("y", "sum", LAST), "y",
     "a: the network gives its output a format", false},
    {INPUT UNARY("a", "abs", "impl = c\n") REDUCE("y", "sum", LAST), "y",
     "a: the network asks for an impl of it", false},
    {INPUT UNARY("a", "abs", "") REDUCE("y", "sum", LAST "impl = c\n"), "y",
     "a: the network asks for an impl of this layer", false},
    {INPUT UNARY("a", "exp", "") REDUCE("y", "sum", LAST), "y",
     "a: no Reduce computes all of it", false},
    {POWER("three.npy") REDUCE("y", "sum", LAST), "y", NULL, false},
    {INPUT UNARY("a", "abs", "") REDUCE("s", "sum", LAST) UNARY("y", "log", ""), "y",
     "s: no Reduce computes all of it", false},
    {HEAD("s, y") "[input x]\nshape = 2 x 24\n" UNARY("a", "exp", "")
         REDUCE("s", "sum", LAST) UNARY("y", "log", ""),
     "y", "s: its output is a network output", false},
    {INPUT SHUFFLE("a", "shape = 0, 17, 24, 19\n") REDUCE("y", "max", LAST), "y",
     "a: the Shuffle reshapes", false},
    {INPUT SHUFFLE("a", "first = 0, 2, 1, 3\n")
         REDUCE("y", "max", "axes = 3\nkeep_dims = no\n"),
     "y", "a: the dims that stay change places", false},
    {INPUT SHUFFLE("a", "first = 0, 2, 3, 1\n") REDUCE("y", "max", "axes = 1, 2\n"), "y",
     "a: the dims that stay change places", false},
    {INPUT REDUCE("y", "mean", PLANE "keep_dims = no\n"), "y",
     "a global Pooling keeps dims", false},
    {INPUT REDUCE("y", "mean", "axes = 1\n"), "y",
     "a global Pooling is a mean over all spatial dims", false},
    {INPUT REDUCE("y", "mean", PLANE "impl = c\n"), "y",
     "the network asks for an impl of this layer", false},
    {HEAD("y") "[input x]\nshape = 2 x 24 x 5\ndtype = i32\n" REDUCE("y", "mean", LAST),
     "y", "Pooling does not take its dtype", false},
    {INPUT REDUCE("y", "max", PLANE), "y", NULL, false},
};

Test(fuse_reduce, every_layer_that_is_or_might_be_fused_has_a_reason)
{
    spill_numbers();
    for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, reasons[i].ini, NULL, 0), STRATA_OK, "%zu: %s", i,
                     s.err.message);
        const struct planner_fusion *f =
            &s.planner->fusions[node_of(&s, reasons[i].layer)];
        cr_expect_eq(f->done, reasons[i].done, "%zu", i);
        if (!reasons[i].reason)
            cr_expect_eq(f->reason, NULL, "%zu: %s", i, f->reason);
        else
            cr_expect(f->reason && !strcmp(f->reason, reasons[i].reason), "%zu: %s", i,
                      f->reason ? f->reason : "none");
        planning_close(&s);
    }
}

/* Its impl was asked for, so it is what runs. */
Test(fuse_reduce, a_pinned_layer_begins_no_pass)
{
    struct planning s;
    cr_assert_eq(plan(&s,
                      INPUT UNARY("a", "abs", "impl = c\n") UNARY("b", "exp", "")
                          UNARY("y", "neg", ""),
                      NULL, 0),
                 STRATA_OK, "%s", s.err.message);
    cr_expect_str_eq(s.execution->nodes[0].name, "a");
    cr_expect_str_eq(s.execution->nodes[0].layer->type->layer.name, "Unary");
    cr_expect_str_eq(s.planner->fusions[1].reason,
                     "a: the network asks for an impl of it");
    planning_close(&s);
}

/* Written and read again: the same values. */
Test(fuse_reduce, engines_come_back_from_their_files)
{
    char file[300];
    snprintf(file, sizeof file, "%s/net.engine", scratch);
    spill_numbers();
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct session built, loaded;
        int64_t n, m;
        cr_assert_eq(build(&built, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, built.err.message);
        cr_assert_eq(strata_engine_save(built.engine, file, &built.err), STRATA_OK, "%s",
                     built.err.message);
        cr_assert_eq(session_open(&loaded, NULL, NULL), STRATA_OK, "%s",
                     loaded.err.message);
        cr_assert_eq(strata_engine_load(&loaded.engine, loaded.handle, loaded.registry,
                                        file, &loaded.err),
                     STRATA_OK, "%s: %s", chains[i].name, loaded.err.message);
        float *a = output(&built, &n), *b = output(&loaded, &m);
        cr_expect(n == m && memcmp(a, b, (size_t)n * sizeof *a) == 0, "%s",
                  chains[i].name);
        free(a);
        free(b);
        release(&built);
        release(&loaded);
    }
}
