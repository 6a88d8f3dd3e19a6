/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers are siblings; whether they are merged is a matter of prices; what was
 * decided comes back from a record, or is refused.
 */
#include "planner/merge/merge.h"

#include <criterion/criterion.h>

#include "io/weights/weights.h"
#include "tests/planner/planning.h"

TestSuite(merge, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

static size_t merged_of(const struct planner *planner)
{
    const struct planner_merges *m = planner->merges;
    size_t n = 0;
    for (size_t i = 0; m && i < m->groups.n; i++)
        n += m->verdicts[i].done;
    return n;
}

/* ---- which layers ------------------------------------------------------------------ */

#define CONV(name, more)                                                                 \
    "[layer " name "]\ntype = Convolution\ninputs = x\nweight = w\n" more
#define ONE "kernel = 1x1\nfilters = 8\n"

static const struct {
    const char *what, *layers;
    size_t groups, members;
} cases[] = {
    {"two that differ in filters",
     CONV("a", ONE) CONV("b", "kernel = 1x1\nfilters = 9\n"), 1, 2},
    {"another stride", CONV("a", ONE) CONV("b", ONE "stride = 2\n"), 0, 0},
    {"another kernel", CONV("a", ONE) CONV("b", "kernel = 3x3\nfilters = 8\n"), 0, 0},
    {"groups of channels", CONV("a", ONE "groups = 2\n") CONV("b", ONE "groups = 2\n"), 0,
     0},
    {"an impl that is asked for", CONV("a", ONE) CONV("b", ONE "impl = any\n"), 0, 0},
    {"a format that is asked for", CONV("a", ONE) CONV("b", ONE "format = fp32:nhwc\n"),
     0, 0},
    {"integers",
     "[layer q]\ntype = Quantize\ninputs = x\nscale = w\n"
     "[layer a]\ntype = MatrixMultiply\ninputs = q\nunits = 3\nb = w\n"
     "[layer b]\ntype = MatrixMultiply\ninputs = q\nunits = 3\nb = w\n",
     0, 0},
    {"chains that differ, so that the first layers alone are merged",
     CONV("a0", ONE) "[layer a]\ntype = Activation\nkind = relu\n" CONV(
         "b0", ONE) "[layer b]\ntype = Activation\nkind = tanh\n",
     1, 2},
    {"three of which one has a longer chain",
     CONV("a", ONE) CONV("b", ONE) CONV("c", ONE) "[layer c.r]\ntype = Activation\n"
                                                  "kind = relu\n",
     1, 2},
};

Test(merge, siblings_agree_in_all_but_the_number_of_results)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning p;
        struct network_groups groups;
        char text[4096];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = a, b%s\n[weights w]\nrandom = 1\n"
                 "[input x]\nshape = 1 x 8 x 6 x 6\n%s",
                 strstr(cases[i].layers, "c.r") ? ", c.r" : "", cases[i].layers);
        cr_assert_eq(planning_load(&p, spill_text("case.ini", text), NULL, NULL, 0),
                     STRATA_OK, "%s: %s", cases[i].what, p.err.message);
        cr_assert_eq(network_find_siblings(&groups, p.network, &p.err), STRATA_OK);
        cr_expect_eq(groups.n, cases[i].groups, "%s: %zu groups", cases[i].what,
                     groups.n);
        if (groups.n)
            cr_expect_eq((size_t)groups.list[0].n, cases[i].members, "%s", cases[i].what);
        network_free_groups(&groups);
        planning_close(&p);
    }
}

/* ---- what goes with them ------------------------------------------------------------
 */

#define PRODUCT(name, units)                                                             \
    "[layer " name "]\ntype = MatrixMultiply\ninputs = x\nb = w\nunits = " units "\n"
#define SILU(name)                                                                       \
    "[layer " name ".s]\ntype = Activation\nkind = silu\ninputs = " name "\n"
#define JOINED(op, inputs)                                                               \
    "[layer a]\ntype = ElementWise\nop = " op "\ninputs = " inputs "\n"
#define TURN(name, more)                                                                 \
    "[layer " name ".t]\ntype = RotaryEmbedding\ninputs = " name "\n" more
#define JOIN "[layer a]\ntype = Concatenation\naxis = 2\ninputs = q.t, k.t, v\n"

/* first: of the chains, once they are in order. */
static const struct {
    const char *what, *layers, *first;
    enum network_behind behind;
    int n;
} behinds[] = {
    {"a gate",
     PRODUCT("g", "12") SILU("g") PRODUCT("u", "12") JOINED("product", "g.s, u"), "g",
     BEHIND_GATED, 2},
    {"a gate that comes later",
     PRODUCT("u", "12") PRODUCT("g", "12") SILU("g") JOINED("product", "u, g.s"), "g",
     BEHIND_GATED, 2},
    {"a sum", PRODUCT("g", "12") SILU("g") PRODUCT("u", "12") JOINED("sum", "g.s, u"),
     "g", BEHIND_NOTHING, 0},
    {"a square of the gate",
     PRODUCT("g", "12") SILU("g") PRODUCT("u", "12") JOINED("product", "g.s, u, u"), "g",
     BEHIND_NOTHING, 0},
    {"one row of units for all",
     PRODUCT("g", "12") SILU("g") PRODUCT("u", "1") JOINED("product", "g.s, u"), "g",
     BEHIND_NOTHING, 0},
    {"turns",
     PRODUCT("q", "24") PRODUCT("k", "8") PRODUCT("v", "8") TURN("q", "heads = 6\n")
         TURN("k", "heads = 2\n") JOIN,
     "q", BEHIND_TURNED, 2},
    {"turns of the last ones",
     PRODUCT("v", "8") PRODUCT("k", "8") PRODUCT("q", "24") TURN("q", "heads = 6\n")
         TURN("k", "heads = 2\n") JOIN,
     "k", BEHIND_TURNED, 2},
    {"turns of heads that differ",
     PRODUCT("q", "24") PRODUCT("k", "8") PRODUCT("v", "8") TURN("q", "heads = 6\n")
         TURN("k", "heads = 1\n") JOIN,
     "q", BEHIND_NOTHING, 0},
    {"turns of two bases",
     PRODUCT("q", "24") PRODUCT("k", "8") PRODUCT("v", "8") TURN("q", "heads = 6\n")
         TURN("k", "heads = 2\nbase = 500\n") JOIN,
     "q", BEHIND_NOTHING, 0},
    {"what is no whole head",
     PRODUCT("q", "24") PRODUCT("k", "8") PRODUCT("v", "6") TURN("q", "heads = 6\n")
         TURN("k", "heads = 2\n") JOIN,
     "q", BEHIND_NOTHING, 0},
};

Test(merge, what_reads_siblings_goes_with_them)
{
    for (size_t i = 0; i < ARRAY_LENGTH(behinds); i++) {
        struct planning p;
        struct network_groups groups;
        char text[4096];
        snprintf(text, sizeof text,
                 "[network]\nformat = 1\noutputs = a\n[weights w]\nrandom = 1\n"
                 "[input x]\nshape = 1 x 3 x 16\n%s",
                 behinds[i].layers);
        cr_assert_eq(planning_load(&p, spill_text("case.ini", text), NULL, NULL, 0),
                     STRATA_OK, "%s: %s", behinds[i].what, p.err.message);
        cr_assert_eq(network_find_siblings(&groups, p.network, &p.err), STRATA_OK);
        cr_assert_eq(groups.n, 1, "%s: %zu groups", behinds[i].what, groups.n);
        const struct network_siblings *g = &groups.list[0];
        cr_expect_eq(g->behind, behinds[i].behind, "%s: %d", behinds[i].what, g->behind);
        cr_expect_eq(g->n_behind, behinds[i].n, "%s", behinds[i].what);
        cr_expect_str_eq(p.network->layers[network_sibling(g, 0, 0)].name,
                         behinds[i].first, "%s", behinds[i].what);
        network_free_groups(&groups);
        planning_close(&p);
    }
}

/* ---- prices ------------------------------------------------------------------------ */

/* Runs take as long as these numbers say, by the channels of their output. */
struct clock {
    struct cost_source source;
    int64_t launch, channel, squared; /* ns */
};

static int tell_time(struct cost_source *source, const struct planner *planner,
                     const struct cost_query *const *queries, const int64_t *best,
                     size_t n, struct cost *costs, strata_error *err)
{
    const struct clock *c = (const struct clock *)source;
    (void)planner;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const strata_tensor *y = queries[i]->candidate ? &queries[i]->out[0] : NULL;
        const int64_t k = y && y->rank > 1 ? y->dims[1] : 1;
        costs[i] = (struct cost){c->launch + k * c->channel + k * k * c->squared, 0, 3};
    }
    return STRATA_OK;
}

static const char priced[] =
    "[network]\nformat = 1\nname = priced\noutputs = a, b\n[weights w]\nrandom = 1\n"
    "[build]\nformats = fp32:nchw\n[input x]\nshape = 3 x 8 x 6 x 6\n" CONV("a", ONE)
        CONV("b", ONE);

static void plan_by(struct planning *p, int64_t launch, int64_t channel, int64_t squared)
{
    const char *set[] = {"build.costs=measure"};
    struct clock c = {{.name = "clock", .measure = tell_time}, launch, channel, squared};
    cr_assert_eq(planning_load(p, spill_text("priced.ini", priced), NULL, set, 1),
                 STRATA_OK, "%s", p->err.message);
    cr_assert_eq(
        planner_make_merged(&p->planner, p->network, &p->device, &c.source, &p->err),
        STRATA_OK, "%s", p->err.message);
    cr_assert_eq(p->planner->merges->groups.n, 1);
}

/* Apart: two launches. Merged: one, and a Slice, whose outputs have 8 channels. */
Test(merge, the_cheaper_way_is_taken_and_both_prices_are_told)
{
    struct planning p;
    plan_by(&p, 1000, 0, 100);
    const struct planner_verdict *v = p.planner->merges->verdicts;
    cr_expect_not(v->done, "a product of 16 channels takes longer than two of 8");
    cr_expect_eq(v->apart, PLAN_UNIT_PER_NS * (2 * 1000 + 2 * 6400));
    cr_expect_eq(v->merged, PLAN_UNIT_PER_NS * (2 * 1000 + 25600 + 6400));
    cr_expect_eq(p.planner->network, p.network);
    planning_close(&p);
    plan_by(&p, 1000, 100, -5); /* wider ones take less a channel */
    v = p.planner->merges->verdicts;
    cr_expect_eq(v->apart, PLAN_UNIT_PER_NS * 2 * (1000 + 800 - 320));
    cr_expect_eq(v->merged,
                 PLAN_UNIT_PER_NS * ((1000 + 1600 - 1280) + (1000 + 800 - 320)));
    cr_expect(v->done);
    cr_expect_eq(p.planner->plan->cost, v->merged);
    planning_close(&p);
}

Test(merge, a_cost_file_without_merged_costs_plans_apart)
{
    struct planning p;
    plan_by(&p, 1000, 0, 100); /* `known` has all costs, those of the layers apart too */
    struct cost_table some;
    cost_table_init(&some, p.planner->known.device);
    for (size_t i = 0; i < p.planner->known.n; i++) { /* without those of 16 channels */
        const struct cost_entry *e = &p.planner->known.entries[i];
        if (e->cost.ns < 1000 + 25600)
            cr_assert_eq(cost_table_put(&some, e->key, e->cost, NULL), STRATA_OK);
    }
    cr_assert_lt(some.n, p.planner->known.n);
    cr_assert_eq(cost_table_write(&some, in_scratch("some.costs"), NULL), STRATA_OK);
    cost_table_free(&some);
    planning_close(&p);
    const char *set[] = {"build.costs=some.costs"};
    cr_assert_eq(planning_load(&p, spill_text("priced.ini", priced), NULL, set, 1),
                 STRATA_OK, "%s", p.err.message);
    cr_assert_eq(planner_make_merged(&p.planner, p.network, &p.device, NULL, &p.err),
                 STRATA_OK, "%s", p.err.message);
    const struct planner_verdict *v = p.planner->merges->verdicts;
    cr_expect_not(v->done);
    cr_assert_not_null(v->why);
    cr_expect(strstr(v->why, "cost"), "%s", v->why);
    planning_close(&p);
}

/* ---- nets -------------------------------------------------------------------------- */

static void load_net(struct planning *p, const char *name, const char *precision)
{
    char path[2048];
    const char *set[] = {"build.costs=analytic", precision};
    snprintf(path, sizeof path, "%s/bench/nets/%s.ini", env_or("srcdir", "."), name);
    cr_assert_eq(planning_load(p, path, NULL, set, 2), STRATA_OK, "%s", p->err.message);
}

static const struct {
    const char *name;
    size_t groups;
} nets[] = {{"googlenet", 9}, {"inception_v3", 10}};

/* Merging is no choice of the solver's, but never a loss. */
static void expect_gain(struct planning *p, const char *name, size_t groups)
{
    struct planner *apart;
    cr_assert_eq(planner_make_merged(&p->planner, p->network, &p->device, NULL, &p->err),
                 STRATA_OK, "%s", p->err.message);
    const size_t done = merged_of(p->planner);
    cr_log_info("%s, %s: %zu of %zu groups merge", name, p->device.properties.name, done,
                p->planner->merges->groups.n);
    cr_expect_eq(p->planner->merges->groups.n, groups, "%s", name);
    cr_expect_gt(done, 0, "%s", name);
    cr_assert_eq(planner_make(&apart, p->network, &p->device, NULL, &p->err), STRATA_OK);
    cr_expect_lt(p->planner->plan->cost, apart->plan->cost, "%s", name);
    planner_free(apart);
}

Test(merge, modules_of_inception_merge_on_the_host)
{
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        struct planning p;
        load_net(&p, nets[i].name, "build.precision=fp32");
        expect_gain(&p, nets[i].name, nets[i].groups);
        planning_close(&p);
    }
}

static const char decoder[] =
    "[network]\nformat = 1\noutputs = out\n[weights w]\nrandom = 5\n"
    "[input x]\nshape = 1 x 1 x 512\n[input places]\nshape = 1\ndtype = i32\n"
    "[layer norm]\ntype = Normalization\nkind = rms\nscale = w\ninputs = x\n"
    "[layer query]\ntype = MatrixMultiply\nunits = 512\nb = w\ninputs = norm\n"
    "[layer key]\ntype = MatrixMultiply\nunits = 128\nb = w\ninputs = norm\n"
    "[layer value]\ntype = MatrixMultiply\nunits = 128\nb = w\ninputs = norm\n"
    "[layer turned_query]\ntype = RotaryEmbedding\nheads = 8\ninputs = query, places\n"
    "[layer turned_key]\ntype = RotaryEmbedding\nheads = 2\ninputs = key, places\n"
    "[layer attention]\ntype = Attention\nheads = 8\nkv_heads = 2\n"
    "inputs = turned_query, turned_key, value\n"
    "[layer output]\ntype = MatrixMultiply\nunits = 512\nb = w\n"
    "[layer attended]\ntype = ElementWise\nop = sum\ninputs = output, x\n"
    "[layer ffn_norm]\ntype = Normalization\nkind = rms\nscale = w\n"
    "[layer gate]\ntype = MatrixMultiply\nunits = 1024\nb = w\ninputs = ffn_norm\n"
    "[layer silu]\ntype = Activation\nkind = silu\n"
    "[layer up]\ntype = MatrixMultiply\nunits = 1024\nb = w\ninputs = ffn_norm\n"
    "[layer gated]\ntype = ElementWise\nop = product\ninputs = silu, up\n"
    "[layer down]\ntype = MatrixMultiply\nunits = 512\nb = w\n"
    "[layer out]\ntype = ElementWise\nop = sum\ninputs = down, attended\n";

Test(merge, modules_of_inception_merge_on_cuda)
{
    for (size_t i = 0; i < ARRAY_LENGTH(nets); i++) {
        struct planning p;
        load_net(&p, nets[i].name, "build.precision=fp16");
        p.device = planning_cuda();
        const bool runs = planning_has_cuda(&p);
        if (runs)
            expect_gain(&p, nets[i].name, nets[i].groups);
        planning_close(&p);
        if (!runs)
            cr_skip_test("the plugins were built without CUDA");
    }
}

/* The plan of a text for that device; skips where there are no impls for it. */
static struct execution *plan_on_cuda(struct planning *p, const char *text)
{
    const char *set[] = {"build.costs=analytic", "build.precision=fp16"};
    struct execution *x = NULL;
    cr_assert_eq(planning_load(p, spill_text("net.ini", text), NULL, set, 2), STRATA_OK,
                 "%s", p->err.message);
    p->device = planning_cuda();
    if (!planning_has_cuda(p)) {
        planning_close(p);
        cr_skip_test("the plugins were built without CUDA");
    }
    cr_assert_eq(planner_make_merged(&p->planner, p->network, &p->device, NULL, &p->err),
                 STRATA_OK, "%s", p->err.message);
    cr_assert_eq(execution_make(&x, p->planner, p->planner->plan, &p->err), STRATA_OK,
                 "%s", p->err.message);
    return x;
}

/* A token of a decoder's block: what stands around its products goes into their kernels.
 */
Test(merge, a_decoder_has_five_launches_a_block_on_cuda)
{
    struct planning p;
    struct execution *x = plan_on_cuda(&p, decoder);
    cr_expect_eq(x->n_nodes, 5, "%zu", x->n_nodes);
    execution_free(x);
    planning_close(&p);
}

static const char stem[] =
    "[network]\nformat = 1\noutputs = out\n[weights w]\nrandom = 5\n"
    "[weights steps]\nfile = steps.safetensors\n[input x]\nshape = 8 x 3 x 64 x 64\n"
    "[layer conv]\ntype = Convolution\nfilters = 64\nkernel = 7\nstride = 2\npad = 3\n"
    "weight = w\nbias = w\n[layer pool]\ntype = Pooling\nkernel = 3\nstride = 2\n"
    "[layer quantize]\ntype = Quantize\ndtype = int8\nscale = steps:a\n"
    "[layer out]\ntype = Dequantize\nscale = steps:a\n";

/* Maxima of floats are rounded to bytes in one pass. */
Test(merge, maxima_and_their_rounding_are_one_launch_on_cuda)
{
    struct planning p;
    float step = 0.03125F;
    const struct weight_view view = {"a", WEIGHT_F32, 1, {1}, &step, sizeof step};
    cr_assert_eq(weights_save(in_scratch("steps.safetensors"), &view, 1, NULL),
                 STRATA_OK);
    struct execution *x = plan_on_cuda(&p, stem);
    cr_assert_eq(x->n_nodes, 3, "%zu", x->n_nodes);
    cr_expect_str_eq(x->nodes[1].name, "pool + quantize");
    execution_free(x);
    planning_close(&p);
}

/* ---- on record ----------------------------------------------------------------------
 */

static const struct {
    const char *list, *says;
} damages[] = {
    {"[{\"layers\": [\"a\", \"z\"], \"length\": 1}]", "there is no layer 'z'"},
    {"[{\"layers\": [\"a\"], \"length\": 1}]", "1 chains"},
    {"[{\"layers\": [\"a\", \"a\"], \"length\": 1}]", "it stands twice"},
    {"[{\"layers\": [\"a\", \"b\"], \"length\": 2}]", "its chain is shorter"},
    {"[{\"layers\": [\"a\", \"b\"], \"length\": 99}]", "99 layers"},
    {"[{\"layers\": [\"a\", 7], \"length\": 1}]", "there is no layer ''"},
    {"[{\"length\": 1}]", "layers"},
    {"[{\"layers\": [\"a\", \"b\"], \"length\": 1}, {\"layers\": [\"a\", \"b\"], "
     "\"length\": 1}]",
     "one with others already"},
    {"[{\"layers\": [\"a\", \"b\"], \"length\": 1, \"apart\": -1}]", "out of range"},
    {"[{\"layers\": [\"a\", \"b\"], \"length\": 1, \"behind\": \"gated\"}]",
     "what is behind them is something else"},
    {"[{\"layers\": [\"a\", \"b\"], \"length\": 1, \"behind\": \"before\"}]",
     "'before' behind layers is not known"},
};

Test(merge, a_list_that_does_not_fit_the_network_is_refused)
{
    struct planning p;
    cr_assert_eq(planning_load(&p, spill_text("priced.ini", priced), NULL, NULL, 0),
                 STRATA_OK, "%s", p.err.message);
    for (size_t i = 0; i < ARRAY_LENGTH(damages); i++) {
        strata_network *net = NULL;
        json_t *list = json_loads(damages[i].list, 0, NULL);
        cr_assert_not_null(list, "%s", damages[i].list);
        for (size_t k = 0; k < json_array_size(list); k++) {
            json_t *j = json_array_get(list, k);
            json_object_set_new(j, "done", json_true());
            json_object_set_new(j, "merged", json_integer(1));
            if (!json_object_get(j, "apart"))
                json_object_set_new(j, "apart", json_integer(2));
        }
        error_clear(&p.err);
        cr_expect_eq(planner_merge_recorded(&net, list, p.network, &p.err), STRATA_EPARSE,
                     "%s", damages[i].list);
        cr_expect(strstr(p.err.message, damages[i].says), "%s: %s", damages[i].list,
                  p.err.message);
        cr_expect_null(net);
        json_decref(list);
    }
    planning_close(&p);
}
