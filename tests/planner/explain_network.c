/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations of networks: the report, differences between two, why there is no plan.
 */
#include "planner/explain/explain.h"
#include "tests/planner/planning.h"

TestSuite(explain_network, .init = scratch_make, .fini = scratch_remove, .timeout = 600);

struct explained {
    struct planning s;
    struct explain *x;
    json_t *report;
};

static const char ini[] = "[network]\nformat = 1\nname = <a & b>\noutputs = act, pool\n"
                          "[input x]\nshape = 2 x 3 x 8 x 8\n"
                          "[weights w]\nrandom = 1\n"
                          "[layer conv]\ntype = Convolution\nfilters = 5\n"
                          "kernel = 3x3\npad = 1\nweights = w:conv\n"
                          "[layer act]\ntype = Activation\nkind = tanh\n"
                          "[layer pool]\ntype = Pooling\nkind = average\n"
                          "kernel = 2x2\nstride = 2\n";

static int open_plan(struct explained *p, const char *const *set, size_t n_set)
{
    *p = (struct explained){0};
    int status = planning_open(&p->s, spill_text("net.ini", ini), set, n_set);
    if (status != STRATA_OK)
        return status;
    const struct planner *planner = p->s.planner;
    status = explain_plan(&p->x, &planner->model->problem, &planner->plan_options,
                          planner->plan, &p->s.err);
    p->report =
        status == STRATA_OK ? explain_json(planner, p->s.execution, p->x, 0) : NULL;
    return status;
}

static void close_plan(struct explained *p)
{
    json_decref(p->report);
    explain_free(p->x);
    planning_close(&p->s);
}

static int64_t sum(const json_t *list)
{
    int64_t total = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        total += json_integer_value(json_object_get(json_array_get(list, i), "cost"));
    return total;
}

Test(explain_network, the_report_is_json_whose_parts_add_up)
{
    static const char *const keys[] = {
        "plan",    "network", "device", "totals",   "nodes", "tensors",  "reformats",
        "fusions", "merges",  "left",   "in_place", "costs", "quantised"};
    const char *set[] = {"build.precision=fp16"};
    struct explained p;
    cr_assert_eq(open_plan(&p, set, 1), STRATA_OK, "%s", p.s.err.message);
    char *text = json_dumps(p.report, 0);
    json_t *r = json_loads(text, 0, NULL);
    cr_assert_neq(r, NULL);
    cr_expect_eq(json_object_size(r), ARRAY_LENGTH(keys));
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        cr_expect_neq(json_object_get(r, keys[i]), NULL, "%s", keys[i]);
    const json_t *reformats = json_object_get(r, "reformats");
    const json_t *totals = json_object_get(r, "totals");
    int64_t whole = json_integer_value(json_object_get(totals, "cost"));
    cr_expect_eq(sum(json_object_get(r, "nodes")) + sum(reformats), whole);
    cr_expect_eq(whole, p.s.planner->plan->cost);
    cr_expect_geq(json_array_size(reformats), 2, "one in, one out");
    for (size_t i = 0; i < json_array_size(reformats); i++) {
        const json_t *one = json_array_get(reformats, i);
        if (json_integer_value(json_object_get(one, "cost")) == 0)
            continue;
        cr_expect_str_eq(json_string_value(json_object_get(one, "reason")), "FIXED-IO");
        cr_expect(json_is_false(
            json_object_get(json_object_get(one, "forbidding"), "possible")));
        cr_expect_gt(json_string_length(json_object_get(one, "why")), 20);
    }
    const json_t *tensors = json_object_get(r, "tensors");
    for (size_t i = 0; i < json_array_size(tensors); i++) {
        const json_t *t = json_array_get(tensors, i);
        const char *produced = json_string_value(json_object_get(t, "produced"));
        cr_expect(json_array_size(json_object_get(t, "materialised")) >= 1 ||
                      strstr(produced, "(fused)"),
                  "only what stays inside a node is no value");
        cr_expect_geq(json_array_size(json_object_get(t, "wanted")), 1);
    }
    json_decref(r);
    free(text);
    close_plan(&p);
}

/* Of a network that includes a file of this text. */
static void hash_of(const char *included, char hash[17])
{
    struct explained p = {0};
    spill_text("part.ini", included);
    const char *path = spill_text("net.ini", "[network]\nformat = 1\noutputs = y\n"
                                             "[input x]\nshape = 1 x 2\n"
                                             "[include]\nfile = part.ini\n");
    cr_assert_eq(planning_open(&p.s, path, NULL, 0), STRATA_OK, "%s", p.s.err.message);
    const struct planner *planner = p.s.planner;
    cr_assert_eq(explain_plan(&p.x, &planner->model->problem, NULL, planner->plan, NULL),
                 STRATA_OK);
    p.report = explain_json(planner, p.s.execution, p.x, 0);
    snprintf(
        hash, 17, "%s",
        json_string_value(json_object_get(json_object_get(p.report, "network"), "hash")));
    close_plan(&p);
}

Test(explain_network, the_hash_covers_included_files)
{
    char first[17], again[17], other[17];
    hash_of("[layer y]\ntype = Activation\nkind = relu\n", first);
    hash_of("[layer y]\ntype = Activation\nkind = relu\n", again);
    hash_of("[layer y]\ntype = Activation\nkind = tanh\n", other);
    cr_expect_str_eq(first, again);
    cr_expect_str_neq(first, other);
}

static const struct explain_move *find_move(const struct explain_moves *m,
                                            const char *what)
{
    for (size_t i = 0; i < m->n; i++)
        if (strstr(m->list[i].what, what))
            return &m->list[i];
    return NULL;
}

Test(explain_network, a_changed_pin_is_found_and_nothing_else_is_blamed)
{
    const char *pin[] = {"layer pool.format=fp32:nhwc",
                         "build.formats=fp32:nchw,fp32:nhwc"};
    struct explained a, b;
    struct explain_diff *d = NULL;
    strata_error err = {0};
    cr_assert_eq(open_plan(&a, pin + 1, 1), STRATA_OK, "%s", a.s.err.message);
    cr_assert_eq(open_plan(&b, pin, 2), STRATA_OK, "%s", b.s.err.message);
    cr_assert_eq(explain_compare(&d, a.report, a.report, &err), STRATA_OK);
    cr_expect(d->decisions.n == 0 && d->entries.n == 0);
    explain_diff_free(d);
    cr_assert_eq(explain_compare(&d, a.report, b.report, &err), STRATA_OK);
    const struct explain_move *m = find_move(&d->decisions, "pool");
    cr_assert_neq(m, NULL);
    cr_expect_neq(strstr(m->before, "fp32:nchw"), NULL, "%s", m->before);
    cr_expect_neq(strstr(m->after, "fp32:nhwc"), NULL, "%s", m->after);
    cr_expect_neq(strstr(m->because, "no longer offered"), NULL, "%s", m->because);
    cr_expect_eq(d->entries.n, 0, "costs are the same");
    cr_expect_eq(d->before, a.s.planner->plan->cost);
    cr_expect_eq(d->after, b.s.planner->plan->cost);
    explain_diff_free(d);
    close_plan(&a);
    close_plan(&b);
}

/* The pool's first two choices: the report says one, the changed report the other. */
Test(explain_network, a_changed_cost_is_named_as_the_cause)
{
    struct explained p;
    struct explain_diff *d = NULL;
    size_t changed = 0;
    cr_assert_eq(open_plan(&p, NULL, 0), STRATA_OK, "%s", p.s.err.message);
    json_t *other = json_deep_copy(p.report);
    json_t *nodes = json_object_get(other, "nodes");
    json_t *choices = json_object_get(json_object_get(other, "costs"), "choices");
    json_t *node = json_array_get(nodes, json_array_size(nodes) - 1);
    for (size_t i = 0; i < json_array_size(choices); i++) {
        json_t *c = json_array_get(choices, i);
        if (!json_equal(json_object_get(c, "name"), json_object_get(node, "name")))
            continue;
        bool same =
            json_equal(json_object_get(c, "impl"), json_object_get(node, "impl")) &&
            json_equal(json_object_get(c, "reads"), json_object_get(node, "reads"));
        if (same || changed)
            continue;
        json_object_set_new(c, "cost", json_integer(16000)); /* 1 us */
        json_object_update_existing(node, c);
        changed++;
    }
    cr_assert_eq(changed, 1);
    cr_assert_eq(explain_compare(&d, p.report, other, NULL), STRATA_OK);
    cr_assert_eq(d->decisions.n, 1);
    cr_expect_neq(strstr(d->decisions.list[0].because, "to 1.0 us"), NULL, "%s",
                  d->decisions.list[0].because);
    cr_expect_eq(d->entries.n, 1);
    explain_diff_free(d);
    json_decref(other);
    close_plan(&p);
}

Test(explain_network, what_is_no_plan_is_refused)
{
    static const char *const bad[] = {"{}", "{\"plan\": 1}",
                                      "{\"plan\": 2, \"nodes\": []}",
                                      "{\"plan\": \"1\", \"nodes\": {}}"};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct explain_diff *d = NULL;
        strata_error err = {0};
        json_t *a = json_loads(bad[i], 0, NULL);
        cr_expect_eq(explain_compare(&d, a, a, &err), STRATA_EPARSE, "%s", bad[i]);
        cr_expect_neq(strstr(err.message, "--save-plan"), NULL);
        json_decref(a);
    }
}

/* Reports that others wrote may lack anything; none of it is followed blindly. */
Test(explain_network, a_report_with_parts_missing_is_refused_by_its_part)
{
    struct explained p;
    cr_assert_eq(open_plan(&p, NULL, 0), STRATA_OK, "%s", p.s.err.message);
    static const char *const lists[] = {"nodes", "tensors"};
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        json_t *other = json_deep_copy(p.report);
        json_t *list = json_object_get(other, lists[i]);
        for (size_t k = 0; k < json_array_size(list); k++)
            json_array_set_new(list, k, k % 2 ? json_object() : json_integer(7));
        struct explain_diff *d = NULL;
        strata_error err = {0};
        cr_assert_gt(json_array_size(list), 0, "%s", lists[i]);
        cr_expect_eq(explain_compare(&d, p.report, other, &err), STRATA_EPARSE);
        cr_expect(strstr(err.message, "the second plan: "), "%s", err.message);
        cr_expect(strstr(err.message, lists[i]), "%s", err.message);
        cr_expect_eq(explain_compare(&d, other, p.report, NULL), STRATA_EPARSE);
        json_decref(other);
    }
    close_plan(&p);
}

Test(explain_network, costs_that_cannot_be_subtracted_are_refused)
{
    struct explained p;
    cr_assert_eq(open_plan(&p, NULL, 0), STRATA_OK, "%s", p.s.err.message);
    static const json_int_t bad[] = {-1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < ARRAY_LENGTH(bad); i++) {
        struct explain_diff *d = NULL;
        json_t *other = json_deep_copy(p.report);
        json_t *choices = json_object_get(json_object_get(other, "costs"), "choices");
        json_object_set_new(json_array_get(choices, 0), "cost", json_integer(bad[i]));
        cr_expect_eq(explain_compare(&d, p.report, other, NULL), STRATA_EPARSE);
        json_decref(other);
    }
    close_plan(&p);
}

/* What cannot hold, in the user's words: what the message names, and what it must not. */
static const struct {
    const char *set[3];
    const char *texts[4];
    const char *innocent;
} conflicts[] = {
    {{"build.precision=fp16", "build.no_reformat=yes", "build.fusion=no"},
     {"layer 'pool' (", ":18): writes pool {fp16:nchw",
      "output 'pool': reads pool {fp32:nchw}", "no_reformat = yes"},
     "'conv'"},
    {{"build.formats=fp32:nhwc", "build.no_reformat=yes", "network.outputs=pool"},
     {"no plan", "{fp32:nhwc}", "{fp32:nchw}", "no_reformat = yes"},
     "'act'"},
    {{"input x.format=u8:nhwc", "build.no_reformat=yes"},
     {"input 'x': writes x {u8:nhwc}", "layer 'conv' (", ":9): reads x {fp32:nchw",
      "no_reformat = yes"},
     "'pool'"},
    {{"network.output_formats=fp32:nchw, int8:nchw"},
     {"layer 'pool' (", "output 'pool': reads pool {int8:nchw}"},
     "no_reformat"},
    {{"layer pool.format=fp32:nhwc", "build.no_reformat=yes", "build.fusion=no"},
     {"layer 'pool' (", "format pinned): writes pool {fp32:nhwc}",
      "output 'pool': reads pool {fp32:nchw}", "no_reformat = yes"},
     "'conv'"},
    {{"layer conv.format=int8:nchw"},
     {":9: error: layer 'conv': no", "impl of core::Convolution@1",
      "precision = fp32; format of the layer = int8:nchw",
      "impl c, row 0: it writes 'conv' as {fp32:nchw}, none of which is allowed here"},
     "device:"},
    {{"layer conv.impl=c", "build.precision=fp16"},
     {"layer 'conv': no impl", "precision = fp16; impl = c",
      "impl c, row 0: it writes 'conv' as {fp32:nchw}", "or not asked for"},
     "impl any"},
    {{"build.formats=int8:nchw"},
     {"layer 'conv': no impl", "precision = fp32; formats = int8:nchw", "remedy: "},
     "'pool'"},
    {{"input x.dtype=int8"},
     {"layer 'conv': no impl", "input x is int8", "impl any, row 0: it reads 'x'"},
     "'pool'"},
    {{"layer conv.impl=any", "build.workspace=1"},
     {"layer 'conv': no impl", "impl = any; workspace = 1",
      "impl any, row 0: its workspace of ", "is over [build] workspace = 1"},
     "impl c,"},
};

Test(explain_network, a_network_without_a_plan_names_the_constraints)
{
    for (size_t i = 0; i < ARRAY_LENGTH(conflicts); i++) {
        struct explained p;
        size_t n = 0;
        while (n < ARRAY_LENGTH(conflicts[i].set) && conflicts[i].set[n])
            n++;
        cr_expect_eq(open_plan(&p, conflicts[i].set, n), STRATA_EPLAN, "case %zu: %s", i,
                     p.s.err.message);
        for (size_t k = 0; k < ARRAY_LENGTH(conflicts[i].texts); k++)
            cr_expect(!conflicts[i].texts[k] ||
                          strstr(p.s.err.message, conflicts[i].texts[k]),
                      "case %zu, text %zu: %s", i, k, p.s.err.message);
        cr_expect_eq(strstr(p.s.err.message, conflicts[i].innocent), NULL, "case %zu: %s",
                     i, p.s.err.message);
        close_plan(&p);
    }
}

/* A slower plan may do without; no_reformat takes it rather than give up. */
Test(explain_network, no_reformat_takes_the_best_plan_without)
{
    struct explained p;
    const char *set[] = {"build.no_reformat=yes"};
    cr_assert_eq(open_plan(&p, set, 1), STRATA_OK, "%s", p.s.err.message);
    cr_expect_eq(p.s.planner->plan->n_reformats, 0);
    close_plan(&p);
}
