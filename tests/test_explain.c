/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations: on made-up problems against brute force, and of built networks.
 */
#include "core/explain.h"
#include "tests/engine_session.h"
#include "tests/plan_draw.h"

TestSuite(explain, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

/* ---- made-up problems ----------------------------------------------------------------
 */

/* Brute force over a copy of a drawn problem in which a tensor's conversions are gone. */
static int64_t optimum_without(const struct drawn *w, int tensor)
{
    static struct drawn copy;
    copy = *w;
    draw_relink(&copy);
    for (int i = 0; i < w->p.n_labels * w->p.n_labels; i++)
        if (copy.conversion[tensor][i] > 0)
            copy.conversion[tensor][i] = PLAN_INFINITE;
    return draw_optimum(&copy.p);
}

Test(explain, forbidding_costs_what_the_best_plan_without_costs_more)
{
    static struct drawn w;
    int asked = 0, impossible = 0;
    draw_seed(51);
    for (int round = 0; round < 400; round++) {
        struct draw_shape shape = {2 + draw(5), 2 + draw(3), 4, draw(60), 60, round & 1};
        struct plan *plan = NULL;
        struct explain *x = NULL;
        draw_network(&w, &shape);
        if (plan_solve(&plan, &w.p, NULL, NULL) != STRATA_OK)
            continue;
        cr_assert_eq(explain_plan(&x, &w.p, NULL, plan, NULL), STRATA_OK);
        cr_expect_eq(x->n_reformats, plan->n_reformats, "round %d", round);
        for (size_t i = 0; i < x->n_reformats; i++) {
            const struct explain_reformat *r = &x->reformats[i];
            const struct plan_ban ban = {PLAN_BAN_CONVERSION, r->step.tensor, -1, -1, -1};
            int64_t brute = optimum_without(&w, r->step.tensor), solver;
            cr_expect_eq(r->avoidable, brute < PLAN_INFINITE, "round %d", round);
            cr_expect(!r->avoidable || brute - plan->cost == r->penalty,
                      "round %d: %lld, brute force %lld", round, (long long)r->penalty,
                      (long long)(brute - plan->cost));
            cr_assert_eq(plan_cost_without(&solver, &w.p, NULL, &ban, NULL), STRATA_OK);
            cr_expect(!r->avoidable || solver - plan->cost == r->penalty);
            cr_expect(r->reason != PLAN_HARD || !r->avoidable, "HARD is unavoidable");
            asked++;
            impossible += !r->avoidable;
        }
        explain_free(x);
        plan_free(plan);
    }
    cr_expect_gt(asked, 200);
    cr_expect_gt(impossible, 10);
    cr_expect_gt(asked - impossible, 50);
}

/* The problem with the remedy built in by hand, from its description alone. */
static int64_t optimum_with(const struct drawn *w, const struct plan *plan,
                            const struct explain_reformat *r)
{
    static struct drawn copy;
    const struct explain_remedy *m = &r->remedy;
    const struct plan_tensor *t = &w->p.tensors[r->step.tensor];
    copy = *w;
    draw_relink(&copy);
    struct plan_choice c = w->choices[m->op][plan->choices[m->op]];
    c.cost = m->cost;
    for (int i = 0; i < PLAN_MAX_PORTS; i++) {
        bool wanted = false;
        for (size_t k = 0; k < t->n_readers; k++)
            wanted |= t->readers[k].op == m->op && t->readers[k].port == i &&
                      c.in[i] == r->step.to;
        if (m->all_ports || (!m->output && wanted))
            c.in[i] = (uint8_t)m->label;
        if (m->all_ports || (m->output && i == t->port))
            c.out[i] = (uint8_t)m->label;
    }
    copy.choices[m->op][copy.ops[m->op].n_choices++] = c;
    return draw_optimum(&copy.p);
}

Test(explain, a_remedy_gains_what_it_says)
{
    static struct drawn w;
    int checked = 0, readers = 0;
    draw_seed(52);
    for (int round = 0; round < 400; round++) {
        struct draw_shape shape = {2 + draw(5), 2 + draw(3), 3, draw(30), 60, false};
        struct plan *plan = NULL;
        struct explain *x = NULL;
        draw_network(&w, &shape);
        if (plan_solve(&plan, &w.p, NULL, NULL) != STRATA_OK)
            continue;
        cr_assert_eq(explain_plan(&x, &w.p, NULL, plan, NULL), STRATA_OK);
        for (size_t i = 0; i < x->n_reformats; i++) {
            const struct explain_remedy *m = &x->reformats[i].remedy;
            if (m->op < 0 || m->n_ops != 1)
                continue;
            cr_expect_gt(m->gain, 0);
            int64_t brute = plan->cost - optimum_with(&w, plan, &x->reformats[i]);
            cr_expect_eq(m->gain, brute, "round %d: %lld, brute force %lld", round,
                         (long long)m->gain, (long long)brute);
            checked++;
            readers += !m->output;
        }
        explain_free(x);
        plan_free(plan);
    }
    cr_expect_gt(checked, 100);
    cr_expect_gt(readers, 20);
}

/* Input, two operations and an output in a row; labels are formats but for the last,
 * which is label 0's format with other pads. */
enum { A, B, C, DIRTY, LABELS };
static const struct {
    const char *name;
    int written, read;   /* labels of the operations between */
    int also, also_cost; /* what the reader could read too, or -1 */
    int input, output;
    enum plan_reason reason;
    int tensor;
    bool avoidable;
    int64_t penalty, gain;
} rows[] = {
    {"hard", A, B, -1, 0, A, B, PLAN_HARD, 1, false, 0, 7},
    {"economic", A, B, A, 30, A, B, PLAN_ECONOMIC, 1, true, 23, 7},
    {"input", B, B, -1, 0, A, B, PLAN_FIXED_IO, 0, false, 0, 7},
    {"output", A, A, -1, 0, A, C, PLAN_FIXED_IO, 2, false, 0, 7},
    {"padding", DIRTY, A, -1, 0, A, A, PLAN_PADDING, 1, false, 0, 7},
};

static void row_problem(struct drawn *w, size_t i)
{
    const struct plan_choice fixed_in = {.impl = -1}, fixed_out = {.impl = -1};
    memset(w, 0, sizeof *w);
    w->p.n_labels = LABELS;
    w->p.n_ops = 4;
    w->p.n_tensors = 3;
    w->p.ops = w->ops;
    w->p.tensors = w->tensors;
    for (int l = 0; l < LABELS; l++)
        w->p.labels[l] = (struct plan_label){.format = l % DIRTY, l == DIRTY, 24};
    w->choices[0][0] = fixed_in;
    w->choices[3][0] = fixed_out;
    memset(w->choices[0][0].out, rows[i].input, PLAN_MAX_PORTS);
    memset(w->choices[3][0].in, rows[i].output, PLAN_MAX_PORTS);
    w->choices[1][0].cost = w->choices[2][0].cost = 10;
    memset(w->choices[1][0].in, rows[i].written == DIRTY ? A : rows[i].written,
           PLAN_MAX_PORTS);
    memset(w->choices[1][0].out, rows[i].written, PLAN_MAX_PORTS);
    for (int k = 0; k < 2; k++) {
        struct plan_choice *c = &w->choices[2][k];
        c->cost = 10 + k * rows[i].also_cost;
        memset(c->in, k ? rows[i].also : rows[i].read, PLAN_MAX_PORTS);
        memset(c->out, rows[i].read, PLAN_MAX_PORTS);
    }
    for (int op = 0; op < 4; op++) {
        w->in[op][0] = op - 1;
        w->out[op] = op;
        w->ops[op] = (struct plan_op){.name = rows[i].name,
                                      .n_in = op > 0,
                                      .n_out = op < 3,
                                      .in = w->in[op],
                                      .out = &w->out[op],
                                      .choices = w->choices[op],
                                      .n_choices = op == 2 && rows[i].also >= 0 ? 2 : 1};
    }
    for (int t = 0; t < 3; t++) {
        w->readers[t][0] = (struct plan_reader){t + 1, 0};
        w->tensors[t] = (struct plan_tensor){.name = "t",
                                             .producer = t,
                                             .readers = w->readers[t],
                                             .n_readers = 1,
                                             .conversion = w->conversion[t]};
        for (int c = 0; c < LABELS * LABELS; c++)
            w->conversion[t][c] = c / LABELS == c % LABELS ? 0 : 7;
    }
}

Test(explain, each_reason_is_told_with_its_price)
{
    static struct drawn w;
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
        struct plan *plan = NULL;
        struct explain *x = NULL;
        row_problem(&w, i);
        cr_assert_eq(plan_solve(&plan, &w.p, NULL, NULL), STRATA_OK, "%s", rows[i].name);
        cr_assert_eq(explain_plan(&x, &w.p, NULL, plan, NULL), STRATA_OK);
        cr_assert_eq(x->n_reformats, 1, "%s: %zu", rows[i].name, x->n_reformats);
        const struct explain_reformat *r = &x->reformats[0];
        cr_expect_eq(r->step.tensor, rows[i].tensor, "%s", rows[i].name);
        cr_expect_eq(r->reason, rows[i].reason, "%s: %s", rows[i].name,
                     explain_reason_name(r->reason));
        cr_expect_eq(r->avoidable, rows[i].avoidable, "%s", rows[i].name);
        cr_expect_eq(r->penalty, rows[i].penalty, "%s", rows[i].name);
        cr_expect_eq(r->remedy.gain, rows[i].gain, "%s: %lld", rows[i].name,
                     (long long)r->remedy.gain);
        cr_expect_eq(r->remedy.reformats, 1, "%s", rows[i].name);
        cr_expect_eq(explain_find(x, r->step.tensor, r->step.to), r);
        explain_free(x);
        plan_free(plan);
    }
}

/* ---- networks ------------------------------------------------------------------------
 */

struct explained {
    struct session s;
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
    int status = session_build(&p->s, spill_text("net.ini", ini), set, n_set);
    if (status != STRATA_OK)
        return status;
    const strata_engine *e = p->s.engine;
    status =
        explain_plan(&p->x, &e->model->problem, &e->plan_options, e->plan, &p->s.err);
    p->report = status == STRATA_OK ? explain_json(e, p->x) : NULL;
    return status;
}

static void close_plan(struct explained *p)
{
    json_decref(p->report);
    explain_free(p->x);
    release(&p->s);
}

static int64_t sum(const json_t *list)
{
    int64_t total = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        total += json_integer_value(json_object_get(json_array_get(list, i), "cost"));
    return total;
}

Test(explain, the_report_is_json_whose_parts_add_up)
{
    static const char *const keys[] = {"plan",      "network", "device",
                                       "totals",    "nodes",   "tensors",
                                       "reformats", "fusions", "costs"};
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
    cr_expect_eq(whole, p.s.engine->plan->cost);
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
    cr_assert_eq(session_build(&p.s, path, NULL, 0), STRATA_OK, "%s", p.s.err.message);
    const strata_engine *e = p.s.engine;
    cr_assert_eq(explain_plan(&p.x, &e->model->problem, NULL, e->plan, NULL), STRATA_OK);
    p.report = explain_json(e, p.x);
    snprintf(
        hash, 17, "%s",
        json_string_value(json_object_get(json_object_get(p.report, "network"), "hash")));
    close_plan(&p);
}

Test(explain, the_hash_covers_included_files)
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

Test(explain, a_changed_pin_is_found_and_nothing_else_is_blamed)
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
    cr_expect_eq(d->before, a.s.engine->plan->cost);
    cr_expect_eq(d->after, b.s.engine->plan->cost);
    explain_diff_free(d);
    close_plan(&a);
    close_plan(&b);
}

/* The pool's first two choices: the report says one, the changed report the other. */
Test(explain, a_changed_cost_is_named_as_the_cause)
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

Test(explain, what_is_no_plan_is_refused)
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
Test(explain, a_report_with_parts_missing_is_compared_without_harm)
{
    struct explained p;
    cr_assert_eq(open_plan(&p, NULL, 0), STRATA_OK, "%s", p.s.err.message);
    static const char *const lists[] = {"nodes", "tensors", "reformats"};
    for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
        json_t *other = json_deep_copy(p.report);
        json_t *list = json_object_get(other, lists[i]);
        for (size_t k = 0; k < json_array_size(list); k++)
            json_array_set_new(list, k, k % 2 ? json_object() : json_integer(7));
        struct explain_diff *d = NULL;
        cr_expect_eq(explain_compare(&d, p.report, other, NULL), STRATA_OK);
        explain_diff_free(d);
        d = NULL;
        cr_expect_eq(explain_compare(&d, other, p.report, NULL), STRATA_OK);
        explain_diff_free(d);
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
     {"layer 'conv' (", ":9): no impl of core::Convolution@1",
      "precision = fp32; format of the layer = int8:nchw",
      "impl c, row 0: it writes 'conv' as {fp32:nchw}, none of which is allowed here"},
     "device:"},
    {{"layer conv.impl=c", "build.precision=fp16"},
     {"layer 'conv' (", "precision = fp16; impl = c",
      "impl c, row 0: it reads 'x' as {fp32:nchw}", "or not asked for"},
     "impl any"},
    {{"build.formats=int8:nchw"},
     {"layer 'conv' (", "precision = fp32; formats = int8:nchw", "remedy: "},
     "'pool'"},
    {{"input x.dtype=int8"},
     {"layer 'conv' (", "input x is int8", "impl any, row 0: it reads 'x'"},
     "'pool'"},
    {{"layer conv.impl=any", "build.workspace=1"},
     {"layer 'conv' (", "impl = any; workspace = 1", "impl any, row 0: its workspace of ",
      "is over [build] workspace = 1"},
     "impl c,"},
};

Test(explain, a_network_without_a_plan_names_the_constraints)
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
Test(explain, no_reformat_takes_the_best_plan_without)
{
    struct explained p;
    const char *set[] = {"build.no_reformat=yes"};
    cr_assert_eq(open_plan(&p, set, 1), STRATA_OK, "%s", p.s.err.message);
    cr_expect_eq(p.s.engine->plan->n_reformats, 0);
    close_plan(&p);
}
