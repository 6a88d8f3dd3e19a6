/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by a constant with the normalisation before and the gate behind them as one
 * Projection: which are one, that their values are those without, alone and of siblings
 * that were merged, and that an engine with them comes back from its file.
 */
#include "tests/planner/fusion/fusing.h"

TestSuite(fuse_project, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD(out)                                                                        \
    "[network]\nformat = 1\noutputs = " out "\n[weights w]\nrandom = 3\n"                \
    "[build]\nprecision = fp16\n[input x]\nshape = 1 x 2 x 40\n"
#define NORM(more)                                                                       \
    "[layer norm]\ntype = Normalization\nkind = rms\ninputs = x\nscale = w\n" more
#define PRODUCT(more)                                                                    \
    "[layer product]\ntype = MatrixMultiply\nunits = 18\nb = w\nbias = w\n" more
#define GATED(more) "[layer gated]\ntype = Gated\n" more
#define TURN(more) "[layer turned]\ntype = RotaryEmbedding\nheads = 3\n" more
#define TURNED "transpose_b = yes\n"

/* layer: where the group begins; members: of it, and of the longer one. */
static const struct {
    const char *name, *ini, *layer;
    int members, longer;
} chains[] = {
    {"norm and product", HEAD("product") NORM("") PRODUCT(""), "norm", 2, 0},
    {"without a scale",
     HEAD("product") "[layer norm]\ntype = Normalization\nkind = rms\n" PRODUCT(TURNED),
     "norm", 2, 0},
    {"product and gate", HEAD("gated") PRODUCT("inputs = x\n") GATED("kind = gelu\n"),
     "product", 2, 0},
    {"all three", HEAD("gated") NORM("epsilon = 0.25\n") PRODUCT(TURNED) GATED(""),
     "norm", 2, 3},
    {"all three, from the product on", HEAD("gated") NORM("") PRODUCT("") GATED(""),
     "product", 2, 0},
    {"product and turned heads", HEAD("turned") PRODUCT("inputs = x\n") TURN(""),
     "product", 2, 0},
    {"all three, with turned heads",
     HEAD("turned") NORM("") PRODUCT(TURNED) TURN("interleaved = yes\nbase = 50\n"),
     "norm", 2, 3},
    {"heads that turn in part",
     HEAD("turned") NORM("") PRODUCT(TURNED) TURN("dims = 4\n"), "norm", 2, 0},
    {"another axis gated", HEAD("gated") NORM("") PRODUCT(TURNED) GATED("axis = 1\n"),
     "norm", 2, 0},
    {"layer normalisation",
     HEAD("product") "[layer norm]\ntype = Normalization\nscale = w\n" PRODUCT(""),
     "norm", 0, 0},
    {"a bias of the normalisation", HEAD("product") NORM("bias = w\n") PRODUCT(""),
     "norm", 0, 0},
    {"two axes normalised",
     HEAD("product") "[layer norm]\ntype = Normalization\nkind = rms\naxis = 1\n" PRODUCT(
         ""),
     "norm", 0, 0},
    {"another reader",
     HEAD("product, other") NORM("") PRODUCT("") "[layer other]\ntype = Unary\n"
                                                 "op = abs\ninputs = norm\n",
     "norm", 0, 0},
    {"an output between", HEAD("norm, product") NORM("") PRODUCT(""), "norm", 0, 0},
    {"alpha", HEAD("product") NORM("") PRODUCT("alpha = 2\n"), "norm", 0, 0},
    {"an impl that is asked for", HEAD("product") NORM("impl = c\n") PRODUCT(""), "norm",
     0, 0},
    {"a format that is asked for",
     HEAD("product") NORM("format = fp16:bmn\n") PRODUCT(""), "norm", 0, 0},
};

static const struct planner_node *node_of(const struct planning *s, const char *layer)
{
    size_t l = 0;
    while (strcmp(s->network->layers[l].name, layer) != 0)
        l++;
    return &s->planner->nodes[l];
}

Test(fuse_project, chains_are_one_layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct planning s;
        cr_assert_eq(plan(&s, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, s.err.message);
        const struct planner_node *n = node_of(&s, chains[i].layer);
        const bool projects =
            n->group && n->group->node.layer->type == s.network->projection;
        cr_expect_eq(projects ? n->group->members : 0, chains[i].members, "%s",
                     chains[i].name);
        cr_expect_eq(n->longer ? n->longer->members : 0, chains[i].longer, "%s",
                     chains[i].name);
        planning_close(&s);
    }
}

/* In FP16 the host's products go through copies; a Projection reads its weight once. */
Test(fuse_project, they_run_and_values_are_those_without_fusion)
{
    for (size_t i = 0; i < ARRAY_LENGTH(chains); i++) {
        struct planning s;
        size_t made = 0;
        cr_assert_eq(plan(&s, chains[i].ini, NULL, 0), STRATA_OK, "%s: %s",
                     chains[i].name, s.err.message);
        for (size_t k = 0; k < s.execution->n_nodes; k++)
            made += s.execution->nodes[k].layer->type == s.network->projection;
        cr_expect_eq(made, chains[i].members > 0, "%s", chains[i].name);
        planning_close(&s);
        if (chains[i].members == 0)
            continue;
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP16, 1e-2);
        expect_same_values(chains[i].name, chains[i].ini, FP32, FP32, 1e-5);
    }
}

/* ---- a block of a decoder -----------------------------------------------------------
 */

static const char block[] =
    "[network]\nformat = 1\noutputs = out\n[weights w]\nrandom = 5\n"
    "[profile]\nT = 1..9: 1, 4\n"
    "[input x]\nshape = 1 x T x 48\n"
    "[layer norm]\ntype = Normalization\nkind = rms\nscale = w\n"
    "[layer value]\ntype = MatrixMultiply\nunits = 16\nb = w\ninputs = norm\n"
    "[layer query]\ntype = MatrixMultiply\nunits = 48\nb = w\ninputs = norm\n"
    "[layer key]\ntype = MatrixMultiply\nunits = 16\nb = w\nbias = w\ninputs = norm\n"
    "[layer turned_query]\ntype = RotaryEmbedding\nheads = 6\ninputs = query\n"
    "[layer turned_key]\ntype = RotaryEmbedding\nheads = 2\ninputs = key\n"
    "[layer attention]\ntype = Attention\nheads = 6\nkv_heads = 2\ncausal = yes\n"
    "inputs = turned_query, turned_key, value\n"
    "[layer attended]\ntype = ElementWise\nop = sum\ninputs = attention, x\n"
    "[layer ffn_norm]\ntype = Normalization\nkind = rms\nscale = w\n"
    "[layer up]\ntype = MatrixMultiply\nunits = 70\nb = w\ninputs = ffn_norm\n"
    "[layer gate]\ntype = MatrixMultiply\nunits = 70\nb = w\ninputs = ffn_norm\n"
    "[layer silu]\ntype = Activation\nkind = silu\n"
    "[layer gated]\ntype = ElementWise\nop = product\ninputs = up, silu\n"
    "[layer down]\ntype = MatrixMultiply\nunits = 48\nb = w\n"
    "[layer out]\ntype = ElementWise\nop = sum\ninputs = down, attended\n";

static const char *const sizes[] = {"profile.T=1", "profile.T=4", "profile.T=7"};

/* Of a run of the block at a size, with or without fusion. */
static float *run_block(const char *size, const char *precision, const char *fusion,
                        int64_t *n, size_t *nodes)
{
    struct session s;
    const char *set[] = {size, precision, fusion};
    cr_assert_eq(build(&s, block, set, 3), STRATA_OK, "%s: %s", size, s.err.message);
    *nodes = s.engine->execution->n_nodes;
    float *values = output(&s, n);
    release(&s);
    return values;
}

Test(fuse_project, a_block_of_a_decoder_has_the_values_without)
{
    for (size_t i = 0; i < ARRAY_LENGTH(sizes); i++)
        for (int half = 0; half < 2; half++) {
            int64_t n, m;
            size_t apart, fused;
            float *a = run_block(sizes[i], FP32, "build.fusion=no", &n, &apart);
            float *b =
                run_block(sizes[i], half ? FP16 : FP32, "build.fusion=yes", &m, &fused);
            cr_assert_eq(n, m);
            cr_expect_lt(fused, apart, "%s: %zu and %zu nodes", sizes[i], fused, apart);
            const double worst = worst_difference(a, b, n);
            cr_expect_leq(worst, half ? 2e-2 : 1e-5, "%s: %g", sizes[i], worst);
            free(a);
            free(b);
        }
}

/* Norm, query, key and value; their rotation; attention; norm, gate and up: at one token
 * these are a launch each, if the Slice costs none. */
Test(fuse_project, an_engine_file_has_the_block_as_it_was_fused)
{
    struct session a, b = {0};
    const char *set[] = {"profile.T=1", FP16};
    int64_t n, m;
    cr_assert_eq(build(&a, block, set, 2), STRATA_OK, "%s", a.err.message);
    cr_assert_eq(strata_engine_save(a.engine, in_scratch("a.engine"), &a.err), STRATA_OK,
                 "%s", a.err.message);
    cr_assert_eq(session_open(&b, "host", NULL), STRATA_OK);
    cr_assert_eq(strata_engine_load(&b.engine, b.handle, b.registry,
                                    in_scratch("a.engine"), &b.err),
                 STRATA_OK, "%s", b.err.message);
    cr_expect_eq(a.engine->execution->n_nodes, b.engine->execution->n_nodes);
    size_t made = 0;
    for (size_t k = 0; k < b.engine->execution->n_nodes; k++)
        made += strcmp(b.engine->execution->nodes[k].layer->type->layer.name,
                       "Projection") == 0;
    cr_expect_eq(made, 2);
    float *x = output(&a, &n), *y = output(&b, &m);
    cr_assert(n == m && n > 0);
    cr_expect_eq(memcmp(x, y, (size_t)n * 4), 0);
    free(x);
    free(y);
    release(&a);
    release(&b);
}
