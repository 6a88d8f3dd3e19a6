/* SPDX-License-Identifier: Apache-2.0
 *
 * What the user forbids, and the order things stand in, against brute force: a constraint
 * never lowers the cost and the best within it is still found; no order changes the plan.
 */
#include "tests/planner/solver/draw.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400, MAX_BANS = 200 };

static struct drawn a, b;
static struct plan_ban bans[MAX_BANS];
static struct plan_options options = {.bans = bans};

static void draw_problem(int round)
{
    struct draw_shape shape = {.n_ops = 2 + draw(6),
                               .n_labels = 2 + draw(4),
                               .max_choices = 4,
                               .missing = round % 3 * 20,
                               .max_cost = round % 4 == 0 ? 5 : 1000,
                               .precise = round % 9 == 0};
    draw_network(&a, &shape);
    options.n_bans = 0;
}

static int64_t least(const struct plan_problem *p, const struct plan_options *o)
{
    struct plan *plan = NULL;
    int64_t cost = PLAN_INFINITE;
    strata_error err = {0};
    int status = plan_solve(&plan, p, o, &err);
    cr_assert(status == STRATA_OK || status == STRATA_EPLAN, "%s", err.message);
    if (status == STRATA_OK) {
        cr_assert(plan->proved, "no limit was set");
        cr_assert_leq(plan_cost(p, plan->choices), plan->cost);
        cost = plan->cost;
    }
    plan_free(plan);
    return cost;
}

/* ---- the same, by changing the problem --------------------------------------------- */

static void forbid_label(int tensor, int label)
{
    int n = b.p.n_labels;
    for (size_t i = 0; i < b.p.n_ops; i++)
        for (size_t k = 0; k < b.ops[i].n_choices; k++) {
            bool hit = b.out[i] == tensor && b.choices[i][k].out[0] == label;
            for (int port = 0; port < b.ops[i].n_in; port++)
                hit |= b.in[i][port] == tensor && b.choices[i][k].in[port] == label;
            if (hit)
                b.choices[i][k].cost = PLAN_INFINITE;
        }
    for (int l = 0; l < n; l++)
        if (l != label)
            b.conversion[tensor][l * n + label] = b.conversion[tensor][label * n + l] =
                PLAN_INFINITE;
}

static void forbid(const struct plan_ban *ban)
{
    int n = b.p.n_labels, first = ban->tensor < 0 ? 0 : ban->tensor;
    int last = ban->tensor < 0 ? (int)b.p.n_tensors : first + 1;
    if (ban->kind == PLAN_BAN_CHOICE) {
        b.choices[ban->op][ban->to].cost = PLAN_INFINITE;
        return;
    }
    for (int t = first; t < last; t++) {
        if (ban->kind == PLAN_BAN_LABEL)
            forbid_label(t, ban->to);
        for (int e = 0; e < n * n && ban->kind == PLAN_BAN_CONVERSION; e++)
            if (b.conversion[t][e] > 0)
                b.conversion[t][e] = PLAN_INFINITE;
    }
}

static int64_t optimum_within(void)
{
    memcpy(&b, &a, sizeof a);
    for (size_t i = 0; i < options.n_bans; i++)
        forbid(&bans[i]);
    draw_relink(&b);
    return draw_optimum(&b.p);
}

/* ---- constraints ------------------------------------------------------------------- */

static void add(struct plan_ban ban)
{
    cr_assert_lt(options.n_bans, MAX_BANS);
    bans[options.n_bans++] = ban;
}

static void ban_label(void)
{
    add((struct plan_ban){.kind = PLAN_BAN_LABEL,
                          .tensor = draw((int)a.p.n_tensors),
                          .to = draw(a.p.n_labels)});
}

static void ban_label_everywhere(void)
{
    add((struct plan_ban){
        .kind = PLAN_BAN_LABEL, .tensor = -1, .to = draw(a.p.n_labels)});
}

static void ban_choice(void)
{
    int op = draw((int)a.p.n_ops);
    add((struct plan_ban){
        .kind = PLAN_BAN_CHOICE, .op = op, .to = draw((int)a.ops[op].n_choices)});
}

/* All choices of an operation but one. */
static void pin_choice(void)
{
    int op = draw((int)a.p.n_ops), pin = draw((int)a.ops[op].n_choices);
    for (int k = 0; k < (int)a.ops[op].n_choices; k++)
        if (k != pin)
            add((struct plan_ban){.kind = PLAN_BAN_CHOICE, .op = op, .to = k});
}

/* Only some labels, of one tensor or of all. */
static void mask_labels(void)
{
    int tensor = draw((int)a.p.n_tensors + 1) - 1;
    unsigned mask = 1u << draw(a.p.n_labels) | 1u << draw(a.p.n_labels);
    for (int l = 0; l < a.p.n_labels; l++)
        if (!(mask >> l & 1))
            add((struct plan_ban){.kind = PLAN_BAN_LABEL, .tensor = tensor, .to = l});
}

static void no_reformat(void)
{
    add((struct plan_ban){PLAN_BAN_CONVERSION, draw((int)a.p.n_tensors + 1) - 1, -1, -1,
                          -1});
}

Test(plan_constraints, a_banned_label_is_avoided_at_the_least_cost, .timeout = 600)
{
    int dearer = 0, impossible = 0;
    draw_seed(31);
    for (int round = 0; round < 3 * ROUNDS; round++) {
        draw_problem(round);
        int64_t before = least(&a.p, NULL);
        ban_label();
        int64_t after = least(&a.p, &options);
        cr_assert_eq(after, optimum_within(), "round %d", round);
        cr_assert_geq(after, before, "round %d", round);
        dearer += after > before && after < PLAN_INFINITE;
        impossible += after >= PLAN_INFINITE && before < PLAN_INFINITE;
    }
    cr_expect_gt(dearer, 50, "%d", dearer);
    cr_expect_gt(impossible, 20, "%d", impossible);
}

Test(plan_constraints, one_more_never_lowers_the_cost, .timeout = 600)
{
    void (*const kinds[])(void) = {ban_label,  ban_label_everywhere, ban_choice,
                                   pin_choice, mask_labels,          no_reformat};
    int dearer[ARRAY_LENGTH(kinds)] = {0};
    draw_seed(32);
    for (int round = 0; round < 3 * ROUNDS; round++) {
        draw_problem(round);
        int64_t before = least(&a.p, NULL);
        for (int more = 0; more < 4 && before < PLAN_INFINITE; more++) {
            size_t kind = (size_t)draw(ARRAY_LENGTH(kinds));
            kinds[kind]();
            int64_t after = least(&a.p, &options);
            cr_assert_geq(after, before, "round %d, kind %zu", round, kind);
            cr_assert_eq(after, optimum_within(), "round %d, kind %zu", round, kind);
            dearer[kind] += after > before;
            before = after;
        }
    }
    for (size_t kind = 0; kind < ARRAY_LENGTH(kinds); kind++)
        cr_expect_gt(dearer[kind], 20, "kind %zu binds: %d", kind, dearer[kind]);
}

/* ---- order --------------------------------------------------------------------------
 */

/* An order drawn among those that put producers first; place[i]: where i went. */
static void draw_order(int *place)
{
    bool placed[DRAW_OPS] = {false};
    for (int next = 0; next < (int)a.p.n_ops; next++) {
        int ready[DRAW_OPS], n = 0;
        for (int i = 0; i < (int)a.p.n_ops; i++) {
            bool fine = !placed[i];
            for (int k = 0; k < a.ops[i].n_in; k++)
                fine &= placed[a.in[i][k]]; /* tensor i is what operation i makes */
            if (fine)
                ready[n++] = i;
        }
        int i = ready[draw(n)];
        placed[i] = true;
        place[i] = next;
    }
}

/* b = a with its operations, and their outputs, in another order. */
static void reorder(const int *place)
{
    memcpy(&b, &a, sizeof a);
    for (size_t i = 0; i < a.p.n_ops; i++) {
        int to = place[i];
        b.ops[to] = a.ops[i];
        memcpy(b.choices[to], a.choices[i], sizeof a.choices[i]);
        memcpy(b.conversion[to], a.conversion[i], sizeof a.conversion[i]);
        memcpy(b.name[to], a.name[i], sizeof a.name[i]);
        b.out[to] = to;
        for (int k = 0; k < a.ops[i].n_in; k++)
            b.in[to][k] = place[a.in[i][k]];
    }
    draw_relink(&b);
}

Test(plan_constraints, the_order_of_operations_does_not_change_the_plan, .timeout = 600)
{
    int moved = 0, place[DRAW_OPS];
    draw_seed(33);
    for (int round = 0; round < ROUNDS; round++) {
        struct plan *plan = NULL;
        draw_problem(round);
        if (plan_solve(&plan, &a.p, NULL, NULL) != STRATA_OK)
            continue;
        for (int again = 0; again < 10; again++) {
            struct plan *other = NULL;
            draw_order(place);
            reorder(place);
            cr_assert_eq(plan_solve(&other, &b.p, NULL, NULL), STRATA_OK);
            cr_assert_eq(other->cost, plan->cost, "round %d.%d", round, again);
            for (size_t i = 0; i < a.p.n_ops; i++) {
                cr_assert_eq(other->choices[place[i]], plan->choices[i],
                             "round %d.%d, operation %zu", round, again, i);
                moved += place[i] != (int)i;
            }
            plan_free(other);
        }
        plan_free(plan);
    }
    cr_expect_gt(moved, 1000, "%d", moved);
}
