/* SPDX-License-Identifier: Apache-2.0
 *
 * Siblings whose product a Concatenation takes whole: which, what network that makes, and
 * plans that have it or have not.
 */
#include "planner/merge/merge.h"

#include <criterion/criterion.h>

#include <strata/layers.h>

#include "tests/planner/planning.h"

TestSuite(merge_joined, .init = scratch_make, .fini = scratch_remove, .timeout = 300);

#define HEAD                                                                             \
    "[network]\nformat = 1\nname = module\noutputs = out\n[weights w]\nrandom = 1\n"     \
    "[input x]\nshape = 3 x 8 x 6 x 6\n"
#define CONV(name, filters, size, from, more)                                            \
    "[layer " name "]\ntype = Convolution\ninputs = " from                               \
    "\nweight = w\nkernel = " size "\nfilters = " filters "\n" more
#define RELU(name) "[layer " name ".r]\ntype = Activation\nkind = relu\n"
#define SIBLING(name, filters) CONV(name, filters, "1x1", "x", "") RELU(name)
#define JOIN(inputs, more)                                                               \
    "[layer j]\ntype = Concatenation\naxis = 1\ninputs = " inputs "\n" more
#define OUT "[layer out]\ntype = Pooling\nkernel = 2x2\ninputs = j\n"
#define POOL "[layer p]\ntype = Pooling\nkernel = 3x3\npad = 1\ninputs = x\n"

/* a and b are siblings, c reads b's; p is there besides. */
#define MODULE                                                                           \
    SIBLING("a", "16")                                                                   \
    SIBLING("b", "24") CONV("c", "8", "3x3", "b.r", "pad = 1\n") POOL

static const struct {
    const char *what, *layers;
    const char *first; /* of the chains, once they are in order; NULL: as they were */
    int n;             /* chains that are joined; 0: none is */
    bool begins;
} cases[] = {
    {"the first input", MODULE JOIN("a.r, c, p", "") OUT, "b", 1, true},
    {"the last input", MODULE JOIN("c, p, a.r", "") OUT, "a", 1, false},
    {"both, side by side", MODULE JOIN("b.r, a.r, c", "") OUT, "b", 2, true},
    {"both, at the end", MODULE JOIN("c, b.r, a.r", "") OUT, "b", 2, false},
    {"one in the middle", MODULE JOIN("c, a.r, p", "") OUT, NULL, 0, false},
    {"one at each end", MODULE JOIN("a.r, c, b.r", "") OUT, NULL, 0, false},
    {"one twice", MODULE JOIN("a.r, a.r, c", "") OUT, NULL, 0, false},
    {"nothing besides", MODULE JOIN("a.r, b.r", "") OUT, NULL, 0, false},
    {"a format that is asked for", MODULE JOIN("a.r, c, p", "format = fp32:nhwc\n") OUT,
     NULL, 0, false},
    {"an impl that is asked for", MODULE JOIN("a.r, c, p", "impl = c\n") OUT, NULL, 0,
     false},
    {"rows, not channels",
     SIBLING("a", "16") SIBLING("b", "16") CONV(
         "c", "16", "3x3", "b.r",
         "pad = 1\n") "[layer j]\ntype = Concatenation\naxis = 2\ninputs = a.r, c\n" OUT,
     NULL, 0, false},
    {"axes from the end",
     SIBLING("a", "16") SIBLING("b", "24") CONV(
         "c", "8", "3x3", "b.r",
         "pad = 1\n") "[layer j]\ntype = Concatenation\naxis = -3\ninputs = a.r, c\n" OUT,
     "b", 1, true},
};

Test(merge_joined, a_concatenation_takes_chains_that_it_reads_at_one_end)
{
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning p;
        struct network_groups groups;
        char text[4096];
        snprintf(text, sizeof text, HEAD "%s", cases[i].layers);
        cr_assert_eq(planning_load(&p, spill_text("case.ini", text), NULL, NULL, 0),
                     STRATA_OK, "%s: %s", cases[i].what, p.err.message);
        cr_assert_eq(network_find_siblings(&groups, p.network, &p.err), STRATA_OK);
        cr_assert_eq(groups.n, 1, "%s: %zu groups", cases[i].what, groups.n);
        const struct network_siblings *g = &groups.list[0];
        cr_expect_eq(g->behind, cases[i].n ? BEHIND_JOINED : BEHIND_NOTHING, "%s",
                     cases[i].what);
        if (g->behind == BEHIND_JOINED) {
            const struct network_joined j = network_joined_of(p.network, g);
            cr_expect(j.n == cases[i].n && j.first == cases[i].begins, "%s: %d",
                      cases[i].what, j.n);
            cr_expect_str_eq(p.network->layers[network_sibling(g, 0, 0)].name,
                             cases[i].first, "%s", cases[i].what);
        }
        network_free_groups(&groups);
        planning_close(&p);
    }
}

/* ---- networks ---------------------------------------------------------------------- */

static const struct network_layer *layer_named(const strata_network *net,
                                               const char *name)
{
    for (size_t i = 0; i < net->n_layers; i++)
        if (strcmp(net->layers[i].name, name) == 0)
            return &net->layers[i];
    cr_assert_fail("no layer '%s'", name);
    return NULL;
}

static const char *input_name(const strata_network *net, const struct network_layer *l,
                              int i)
{
    cr_assert_lt(i, l->n_inputs);
    return net->tensors[l->inputs[i]].name;
}

static void expect_range(const strata_network *net, int64_t begin, int64_t end)
{
    const struct network_layer *l = layer_named(net, "j");
    const strata_slice *s = l->params;
    cr_assert_str_eq(l->type->full_name, "core::Slice@1");
    cr_expect_str_eq(input_name(net, l, 0), "j whole");
    cr_expect(s->axes.n == 1 && s->axes.v[0] == 1 && s->begin.n == 1 && s->end.n == 1);
    cr_expect(s->begin.v[0] == begin && s->end.v[0] == end, "%lld to %lld",
              (long long)s->begin.v[0], (long long)s->end.v[0]);
    cr_expect_eq(net->tensors[l->outputs[0]].dims[1], end - begin);
    cr_expect_str_eq(net->tensors[l->outputs[0]].name, "j");
}

static void merge_text(struct planning *p, const char *layers)
{
    struct network_groups groups;
    strata_network *merged;
    char text[4096];
    snprintf(text, sizeof text, HEAD "%s", layers);
    cr_assert_eq(planning_load(p, spill_text("module.ini", text), NULL, NULL, 0),
                 STRATA_OK, "%s", p->err.message);
    cr_assert_eq(network_find_siblings(&groups, p->network, &p->err), STRATA_OK);
    cr_assert_eq(network_merge(&merged, p->network, &groups, &p->err), STRATA_OK, "%s",
                 p->err.message);
    network_free_groups(&groups);
    strata_network_destroy(p->network);
    p->network = merged;
}

Test(merge_joined, the_larger_one_begins_with_the_whole_chain_or_ends_with_it)
{
    struct planning p;
    merge_text(&p, MODULE JOIN("a.r, c, p", "") OUT); /* 16, 8 and 8 channels */
    const struct network_layer *l = layer_named(p.network, "j whole");
    cr_expect_eq(l->n_inputs, 3);
    cr_expect_str_eq(input_name(p.network, l, 0), "{b,a}.r");
    cr_expect_str_eq(input_name(p.network, l, 1), "c");
    cr_expect_str_eq(input_name(p.network, l, 2), "p");
    cr_expect_eq(p.network->tensors[l->outputs[0]].dims[1], 24 + 16 + 8 + 8);
    expect_range(p.network, 24, 24 + 32);
    planning_close(&p);

    merge_text(&p, MODULE JOIN("c, p, a.r", "") OUT);
    l = layer_named(p.network, "j whole");
    cr_expect_str_eq(input_name(p.network, l, 1), "p");
    cr_expect_str_eq(input_name(p.network, l, 2), "{a,b}.r");
    expect_range(p.network, 0, 32);
    planning_close(&p);

    merge_text(&p, MODULE JOIN("c, b.r, a.r", "") OUT);
    l = layer_named(p.network, "j whole");
    cr_expect_eq(l->n_inputs, 2);
    expect_range(p.network, 0, 48);
    planning_close(&p);
}

/* Two groups of one Concatenation: one of them has it. */
Test(merge_joined, a_concatenation_takes_one_group)
{
    static const char layers[] =
        MODULE "[layer y]\ntype = Activation\nkind = tanh\ninputs = x\n" CONV(
            "d", "8", "1x1", "y", "") CONV("e", "8", "1x1", "y", "")
            CONV("f", "8", "3x3", "e", "pad = 1\n") JOIN("a.r, c, f, d", "") OUT;
    struct planning p;
    struct network_groups groups;
    char text[4096];
    snprintf(text, sizeof text, HEAD "%s", layers);
    cr_assert_eq(planning_load(&p, spill_text("two.ini", text), NULL, NULL, 0), STRATA_OK,
                 "%s", p.err.message);
    cr_assert_eq(network_find_siblings(&groups, p.network, &p.err), STRATA_OK);
    cr_assert_eq(groups.n, 2);
    cr_expect_eq(groups.list[0].behind, BEHIND_JOINED);
    cr_expect_eq(groups.list[1].behind, BEHIND_NOTHING);
    network_free_groups(&groups);
    planning_close(&p);
}

/* ---- plans ------------------------------------------------------------------------- */

/* Every launch takes a microsecond. */
static int tell_time(struct cost_source *source, const struct planner *planner,
                     const struct cost_query *const *queries, const int64_t *best,
                     size_t n, struct cost *costs, strata_error *err)
{
    (void)source;
    (void)planner;
    (void)queries;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++)
        costs[i] = (struct cost){1000, 0, 3};
    return STRATA_OK;
}

static void plan_by_launches(struct planning *p, const char *text)
{
    const char *set[] = {"build.costs=measure", "build.formats=fp32:nchw"};
    struct cost_source clock = {.measure = tell_time};
    cr_assert_eq(planning_load(p, spill_text("module.ini", text), NULL, set, 2),
                 STRATA_OK, "%s", p->err.message);
    cr_assert_eq(
        planner_make_merged(&p->planner, p->network, &p->device, &clock, &p->err),
        STRATA_OK, "%s", p->err.message);
    cr_assert_eq(p->planner->merges->groups.n, 1);
    cr_assert_eq(execution_make(&p->execution, p->planner, p->planner->plan, &p->err),
                 STRATA_OK, "%s", p->err.message);
}

/* Planes of 16 x 16 are multiples of 256 bytes: at batch 1 every range of channels is one
 * piece, so that the product, two convolutions, the pool and what reads them all are all
 * that runs. */
Test(merge_joined, it_is_taken_where_all_lies_in_place)
{
    static const char text[] =
        "[network]\nformat = 1\nname = module\noutputs = out\n[weights w]\nrandom = 1\n"
        "[input x]\nshape = 1 x 8 x 16 x 16\n" MODULE CONV(
            "d", "8", "5x5", "b.r", "pad = 2\n") JOIN("a.r, c, d, p", "") OUT;
    struct planning p;
    plan_by_launches(&p, text);
    const struct planner_verdict *v = p.planner->merges->verdicts;
    cr_expect(v->done);
    cr_expect_eq(p.planner->merges->groups.list[0].behind, BEHIND_JOINED);
    cr_expect_eq(p.execution->n_nodes, 5, "%zu", p.execution->n_nodes);
    cr_expect_eq(p.planner->plan->n_reformats, 0);
    cr_expect_eq(p.planner->plan->cost, PLAN_UNIT_PER_NS * 5 * 1000);
    cr_expect_eq(v->apart - v->merged, PLAN_UNIT_PER_NS * 1000);
    planning_close(&p);
}

/* Planes of 100 bytes, ranges that begin at odd ones of them: nothing lies in place.
 * Apart three products, merged one and a Slice; the larger one and its range would be one
 * launch more. */
Test(merge_joined, it_is_not_taken_where_it_would_copy)
{
    static const char text[] =
        "[network]\nformat = 1\nname = module\noutputs = out\n[weights w]\nrandom = 1\n"
        "[input x]\nshape = 1 x 8 x 5 x 5\n" SIBLING("a", "7") SIBLING("b", "9")
            SIBLING("e", "5") CONV("c", "3", "3x3", "b.r", "pad = 1\n")
                CONV("d", "5", "3x3", "e.r", "pad = 1\n") JOIN("a.r, c, d", "") OUT;
    struct planning p;
    plan_by_launches(&p, text);
    const struct planner_verdict *v = p.planner->merges->verdicts;
    cr_expect(v->done);
    cr_expect_eq(p.planner->merges->groups.list[0].behind, BEHIND_NOTHING);
    cr_expect_eq(p.execution->n_nodes, 6, "%zu", p.execution->n_nodes);
    cr_expect_eq(v->apart - v->merged, PLAN_UNIT_PER_NS * 1000);
    planning_close(&p);
}

static bool load_on_cuda(struct planning *p, const char *name)
{
    char path[2048];
    const char *set[] = {"build.costs=analytic", "build.precision=fp16",
                         "build.math=tensor_op"};
    snprintf(path, sizeof path, "%s/bench/nets/%s.ini", env_or("srcdir", "."), name);
    cr_assert_eq(planning_load(p, path, NULL, set, 3), STRATA_OK, "%s", p->err.message);
    p->device = planning_cuda();
    p->device.math = STRATA_MATH_TENSOR_OP;
    return planning_has_cuda(p);
}

/* All modules of a network that a Concatenation may take, and nothing is copied but at
 * its ends: the image, and the probabilities. One of Inception's is read by three. */
Test(merge_joined, modules_are_joined_on_cuda)
{
    static const char *const nets[] = {"googlenet", "inception_v3"};
    bool runs = true;
    for (size_t k = 0; k < ARRAY_LENGTH(nets) && runs; k++) {
        struct planning p;
        if ((runs = load_on_cuda(&p, nets[k]))) {
            cr_assert_eq(
                planner_make_merged(&p.planner, p.network, &p.device, NULL, &p.err),
                STRATA_OK, "%s", p.err.message);
            const struct planner_merges *m = p.planner->merges;
            const size_t copies = p.planner->plan->n_reformats;
            size_t joined = 0;
            for (size_t i = 0; i < m->groups.n; i++)
                joined +=
                    m->verdicts[i].done && m->groups.list[i].behind == BEHIND_JOINED;
            cr_expect_eq(joined, 9, "%s: %zu of %zu", nets[k], joined, m->groups.n);
            cr_expect_leq(copies, 2, "%s: %zu", nets[k], copies);
        }
        planning_close(&p);
    }
    if (!runs)
        cr_skip_test("the plugins were built without CUDA");
}

/* ---- on record --------------------------------------------------------------------- */

Test(merge_joined, what_no_concatenation_takes_is_refused_on_record)
{
    struct planning p;
    strata_network *net = NULL;
    char text[4096];
    snprintf(text, sizeof text, HEAD "%s", MODULE JOIN("c, a.r, p", "") OUT);
    cr_assert_eq(planning_load(&p, spill_text("record.ini", text), NULL, NULL, 0),
                 STRATA_OK, "%s", p.err.message);
    json_t *list = json_loads("[{\"layers\": [\"a\", \"b\"], \"length\": 2, \"done\": "
                              "true, \"apart\": 2, \"merged\": 1, \"behind\": "
                              "\"joined\"}]",
                              0, NULL);
    cr_assert_not_null(list);
    cr_expect_eq(planner_merge_recorded(&net, list, p.network, &p.err), STRATA_EPARSE);
    cr_expect(strstr(p.err.message, "what is behind them is something else"), "%s",
              p.err.message);
    cr_expect_null(net);
    json_decref(list);
    planning_close(&p);
}
