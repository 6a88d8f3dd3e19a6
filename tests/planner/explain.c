/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations of made-up problems, against brute force.
 */
#include "planner/explain/explain.h"
#include "tests/planner/solver/draw.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(explain, .timeout = 600);

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
