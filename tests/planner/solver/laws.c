/* SPDX-License-Identifier: Apache-2.0
 *
 * What must hold between a problem's plan and the plan of a problem changed a little, and
 * the planner's answers to questions, by brute force.
 */
#include "tests/planner/solver/draw.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 400 };

static struct drawn a, b;

static struct draw_shape shape_of(int round)
{
    return (struct draw_shape){.n_ops = 2 + draw(6),
                               .n_labels = 2 + draw(4),
                               .max_choices = 4,
                               .missing = round % 3 * 20,
                               .max_cost = round % 4 == 0 ? 5 : 1000,
                               .precise = round % 9 == 0};
}

static int64_t least(const struct plan_problem *p, const struct plan_options *options)
{
    struct plan *plan = NULL;
    int64_t cost = PLAN_INFINITE;
    strata_error err = {0};
    int status = plan_solve(&plan, p, options, &err);
    cr_assert(status == STRATA_OK || status == STRATA_EPLAN, "%s", err.message);
    if (status == STRATA_OK) {
        cr_assert(plan->proved, "no limit was set");
        cost = plan->cost;
    }
    plan_free(plan);
    return cost;
}

/* A drawn problem in a and its copy in b, to be changed. */
static int64_t draw_pair(int round)
{
    struct draw_shape shape = shape_of(round);
    draw_network(&a, &shape);
    memcpy(&b, &a, sizeof a);
    draw_relink(&b);
    return least(&a.p, NULL);
}

/* ---- changes ----------------------------------------------------------------------- */

static void add_choice(void)
{
    struct plan_op *o = &b.ops[draw((int)b.p.n_ops)];
    struct plan_choice *c = &o->choices[o->n_choices++];
    memset(c->in, draw(b.p.n_labels), sizeof c->in);
    memset(c->out, draw(b.p.n_labels), sizeof c->out);
    c->cost = draw(100);
}

static void cheapen_conversion(void)
{
    int t = draw((int)b.p.n_tensors), e = draw(b.p.n_labels * b.p.n_labels);
    if (b.conversion[t][e] > 0)
        b.conversion[t][e] =
            draw((int)(b.conversion[t][e] < 10 ? b.conversion[t][e] : 10));
}

/* One more label, with conversions of its own and an operation that can write it. */
static void add_label(void)
{
    int n = b.p.n_labels++;
    b.p.labels[n] = (struct plan_label){.format = n, .precision = 24};
    for (size_t t = 0; t < b.p.n_tensors; t++)
        for (int u = n; u >= 0; u--)
            for (int v = n; v >= 0; v--)
                b.conversion[t][u * (n + 1) + v] = u == v ? 0
                                                   : u == n || v == n
                                                       ? draw(200)
                                                       : a.conversion[t][u * n + v];
    struct plan_op *o = &b.ops[draw((int)b.p.n_ops)];
    struct plan_choice *c = &o->choices[o->n_choices++];
    *c = o->choices[0];
    memset(c->out, n, sizeof c->out);
}

Test(plan_laws, more_choices_formats_and_conversions_never_cost_more, .timeout = 600)
{
    void (*const changes[])(void) = {add_choice, cheapen_conversion, add_label};
    draw_seed(1);
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < ARRAY_LENGTH(changes); i++) {
            int64_t before = draw_pair(round);
            changes[i]();
            int64_t after = least(&b.p, NULL);
            cr_assert_leq(after, before, "round %d, change %zu", round, i);
            cr_assert_eq(after, draw_optimum(&b.p), "round %d, change %zu", round, i);
        }
}

static void copy_op(int from, int to)
{
    b.ops[to] = b.ops[from];
    memcpy(b.in[to], b.in[from], sizeof b.in[to]);
    memcpy(b.choices[to], b.choices[from], sizeof b.choices[to]);
    memcpy(b.conversion[to], b.conversion[from], sizeof b.conversion[to]);
    snprintf(b.name[to], sizeof b.name[to], "op%d", to);
    b.out[to] = to;
}

/* A second reader that wants what one already wants, at one cost whatever it takes. */
Test(plan_laws, an_agreeing_reader_costs_itself_alone)
{
    draw_seed(2);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = draw_pair(round);
        if (before >= PLAN_INFINITE)
            continue;
        struct plan *plan = NULL;
        plan_solve(&plan, &a.p, NULL, NULL);
        int last = (int)b.p.n_ops, of = last - 1;
        copy_op(of, last); /* nothing reads it */
        b.p.n_ops = b.p.n_tensors = (size_t)last + 1;
        b.ops[last].n_choices = 1;
        b.choices[last][0] = b.choices[of][plan->choices[of]];
        b.choices[last][0].cost = 12345;
        draw_relink(&b);
        cr_assert_eq(least(&b.p, NULL), before + 12345, "round %d", round);
        plan_free(plan);
    }
}

Test(plan_laws, scaling_scales)
{
    draw_seed(3);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = draw_pair(round);
        for (size_t i = 0; i < b.p.n_ops; i++) {
            for (size_t k = 0; k < b.ops[i].n_choices; k++)
                b.choices[i][k].cost *= 7;
            for (int e = 0; e < b.p.n_labels * b.p.n_labels; e++)
                if (b.conversion[i][e] < PLAN_INFINITE)
                    b.conversion[i][e] *= 7;
        }
        int64_t after = least(&b.p, NULL);
        cr_assert_eq(after, before >= PLAN_INFINITE ? before : 7 * before);
    }
}

/* The last operation reads through an identity that takes any label and keeps it. */
Test(plan_laws, a_free_identity_changes_nothing)
{
    draw_seed(4);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = draw_pair(round);
        int n = (int)b.p.n_ops, last = n - 1;
        copy_op(last, n); /* the reader moves up; the identity takes its place */
        struct plan_op *o = &b.ops[last];
        o->n_in = 1;
        o->n_choices = (size_t)b.p.n_labels;
        for (int l = 0; l < b.p.n_labels; l++) {
            memset(b.choices[last][l].in, l, PLAN_MAX_PORTS);
            memset(b.choices[last][l].out, l, PLAN_MAX_PORTS);
            b.choices[last][l].cost = 0;
        }
        for (int e = 0; e < DRAW_LABELS * DRAW_LABELS; e++)
            b.conversion[last][e] = PLAN_INFINITE;
        for (int l = 0; l < b.p.n_labels; l++)
            b.conversion[last][l * b.p.n_labels + l] = 0;
        b.in[n][0] = last;
        b.p.n_ops = b.p.n_tensors = (size_t)n + 1;
        draw_relink(&b);
        bool alone = true; /* the tensor's other port must not be the same tensor */
        for (int k = 1; k < b.ops[n].n_in; k++)
            alone &= b.in[n][k] != b.in[last][0];
        if (alone)
            cr_assert_eq(least(&b.p, NULL), before, "round %d", round);
    }
}

Test(plan_laws, a_disjoint_union_adds)
{
    draw_seed(5);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = draw_pair(round);
        int n = (int)b.p.n_ops;
        for (int i = 0; i < n; i++) {
            copy_op(i, n + i);
            for (int k = 0; k < b.ops[i].n_in; k++)
                b.in[n + i][k] += n;
        }
        b.p.n_ops = b.p.n_tensors = 2 * (size_t)n;
        draw_relink(&b);
        int64_t after = least(&b.p, NULL);
        cr_assert_eq(after, before >= PLAN_INFINITE ? before : 2 * before);
    }
}

/* A new label in the middle of each conversion from 0 to 1, at half the cost each. */
Test(plan_laws, splitting_a_conversion_changes_nothing)
{
    draw_seed(6);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t before = draw_pair(round);
        int n = b.p.n_labels++, m = n + 1;
        b.p.labels[n] = (struct plan_label){.format = n, .precision = 24};
        b.p.labels[n].precision = b.p.labels[0].precision > b.p.labels[1].precision
                                      ? b.p.labels[1].precision
                                      : b.p.labels[0].precision;
        for (size_t t = 0; t < b.p.n_tensors; t++)
            for (int u = 0; u < m; u++)
                for (int v = 0; v < m; v++) {
                    int64_t whole = a.conversion[t][1], *to = &b.conversion[t][u * m + v];
                    int64_t half = whole / 2;
                    if (u < n && v < n)
                        *to =
                            u == 0 && v == 1 ? PLAN_INFINITE : a.conversion[t][u * n + v];
                    else if (whole >= PLAN_INFINITE)
                        *to = u == v ? 0 : PLAN_INFINITE;
                    else
                        *to = u == v             ? 0
                              : u == 0           ? half
                              : u == n && v == 1 ? whole - half
                                                 : PLAN_INFINITE;
                }
        cr_assert_eq(least(&b.p, NULL), before, "round %d", round);
    }
}

/* ---- renumbering ------------------------------------------------------------------- */

static void shuffle(int *map, int n)
{
    for (int i = 0; i < n; i++)
        map[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = draw(i + 1), was = map[i];
        map[i] = map[j];
        map[j] = was;
    }
}

/* b = a with tensors, labels and choices renumbered; choice[i][k]: where it went. */
static void renumber(int choice[DRAW_OPS][DRAW_CHOICES], int *tensor, int *label)
{
    int n = a.p.n_labels;
    memcpy(&b, &a, sizeof a);
    shuffle(tensor, (int)a.p.n_tensors);
    shuffle(label, n);
    for (int l = 0; l < n; l++)
        b.p.labels[label[l]] = a.p.labels[l];
    for (size_t i = 0; i < a.p.n_ops; i++) {
        shuffle(choice[i], (int)a.ops[i].n_choices);
        for (size_t k = 0; k < a.ops[i].n_choices; k++) {
            struct plan_choice *c = &b.choices[i][choice[i][k]];
            *c = a.choices[i][k];
            for (int port = 0; port < PLAN_MAX_PORTS; port++) {
                c->in[port] = (uint8_t)label[c->in[port]];
                c->out[port] = (uint8_t)label[c->out[port]];
            }
        }
        for (int k = 0; k < a.ops[i].n_in; k++)
            b.in[i][k] = tensor[a.in[i][k]];
        b.out[i] = tensor[a.out[i]];
        for (int u = 0; u < n; u++)
            for (int v = 0; v < n; v++)
                b.conversion[tensor[i]][label[u] * n + label[v]] =
                    a.conversion[i][u * n + v];
    }
    draw_relink(&b);
}

static bool has_step(const struct plan *plan, int tensor, int from, int to)
{
    for (size_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].tensor == tensor && plan->steps[i].from == from &&
            plan->steps[i].to == to)
            return true;
    return false;
}

Test(plan_laws, the_plan_does_not_depend_on_numbering, .timeout = 600)
{
    static int choice[DRAW_OPS][DRAW_CHOICES];
    int tensor[DRAW_OPS], label[DRAW_LABELS], compared = 0;
    draw_seed(7);
    for (int round = 0; round < 40; round++) {
        struct draw_shape shape = {8, 5, 5, round % 2 ? 20 : 0, 1000, false};
        struct plan *plan = NULL;
        draw_network(&a, &shape);
        if (plan_solve(&plan, &a.p, NULL, NULL) != STRATA_OK)
            continue;
        for (int again = 0; again < 100; again++, compared++) {
            struct plan *other = NULL;
            renumber(choice, tensor, label);
            cr_assert_eq(plan_solve(&other, &b.p, NULL, NULL), STRATA_OK);
            cr_assert_eq(other->cost, plan->cost);
            for (size_t i = 0; i < a.p.n_ops; i++)
                cr_assert_eq(other->choices[i], (size_t)choice[i][plan->choices[i]],
                             "round %d.%d, operation %zu", round, again, i);
            cr_assert_eq(other->n_steps, plan->n_steps);
            for (size_t i = 0; i < plan->n_steps; i++)
                cr_assert(has_step(other, tensor[plan->steps[i].tensor],
                                   label[plan->steps[i].from], label[plan->steps[i].to]));
            plan_free(other);
        }
        plan_free(plan);
    }
    cr_expect_geq(compared, 2000);
}

/* ---- questions --------------------------------------------------------------------- */

/* Brute force with a ban, through the problem itself. */
static int64_t optimum_without(const struct plan_ban *ban)
{
    int n = b.p.n_labels;
    memcpy(&b, &a, sizeof a);
    draw_relink(&b);
    if (ban->kind == PLAN_BAN_CONVERSION)
        b.conversion[ban->tensor][ban->from * n + ban->to] = PLAN_INFINITE;
    else
        b.choices[ban->op][ban->to].cost = PLAN_INFINITE;
    return draw_optimum(&b.p);
}

Test(plan_laws, min_marginals_match_brute_force, .timeout = 600)
{
    int asked = 0;
    draw_seed(8);
    for (int round = 0; round < ROUNDS; round++) {
        struct plan *plan = NULL;
        draw_pair(round);
        if (plan_solve(&plan, &a.p, NULL, NULL) != STRATA_OK)
            continue;
        for (size_t i = 0; i < plan->n_steps; i++, asked++) {
            const struct plan_step *s = &plan->steps[i];
            struct plan_ban ban = {PLAN_BAN_CONVERSION, s->tensor, 0, s->from, s->to};
            int64_t cost;
            cr_assert_eq(plan_cost_without(&cost, &a.p, NULL, &ban, NULL), STRATA_OK);
            cr_assert_eq(cost, optimum_without(&ban), "round %d", round);
            cr_assert_geq(cost, plan->cost);
        }
        int op = draw((int)a.p.n_ops);
        struct plan_ban ban = {PLAN_BAN_CHOICE, 0, op, 0, (int)plan->choices[op]};
        int64_t cost;
        cr_assert_eq(plan_cost_without(&cost, &a.p, NULL, &ban, NULL), STRATA_OK);
        cr_assert_eq(cost, optimum_without(&ban), "round %d", round);
        plan_free(plan);
    }
    cr_expect_gt(asked, 100);
}

Test(plan_laws, fewest_reformats_comes_before_cost, .timeout = 600)
{
    draw_seed(9);
    for (int round = 0; round < ROUNDS; round++) {
        struct plan_options options = {.objective = PLAN_FEWEST_REFORMATS};
        struct plan *plan = NULL;
        draw_pair(round);
        int64_t weight = 1 << 20, optimum;
        for (size_t i = 0; i < b.p.n_ops; i++)
            for (int e = 0; e < b.p.n_labels * b.p.n_labels; e++)
                if (b.conversion[i][e] > 0 && b.conversion[i][e] < PLAN_INFINITE)
                    b.conversion[i][e] += weight;
        optimum = draw_optimum(&b.p);
        if (plan_solve(&plan, &a.p, &options, NULL) != STRATA_OK) {
            cr_assert_eq(optimum, PLAN_INFINITE);
            continue;
        }
        cr_assert_eq((int64_t)plan->n_reformats, optimum / weight, "round %d", round);
        cr_assert_eq(plan->cost, optimum % weight, "round %d", round);
        struct plan_ban none = {PLAN_BAN_CONVERSION, -1, 0, -1, -1};
        options = (struct plan_options){.bans = &none, .n_bans = 1};
        cr_assert_eq(least(&a.p, &options) < PLAN_INFINITE, plan->n_reformats == 0);
        plan_free(plan);
    }
}

Test(plan_laws, the_best_plans_are_the_best_in_order, .timeout = 600)
{
    draw_seed(10);
    for (int round = 0; round < 200; round++) {
        struct plan *plans[8];
        int64_t costs[8];
        size_t n, all;
        draw_pair(round);
        all = draw_brute_force(&a.p, costs, 8);
        if (all == 0)
            continue;
        cr_assert_eq(plan_solve_best(plans, 8, &n, 1e6, &a.p, NULL, NULL), STRATA_OK);
        cr_assert_eq(n, costs[0] == 0 ? n : all, "round %d: %zu of %zu", round, n, all);
        for (size_t i = 0; i < n; i++)
            cr_assert_eq(plans[i]->cost, costs[i], "round %d, plan %zu", round, i);
        for (size_t i = 0; i < n; i++)
            plan_free(plans[i]);
        cr_assert_eq(plan_solve_best(plans, 8, &n, 5, &a.p, NULL, NULL), STRATA_OK);
        for (size_t i = 0; i < all; i++)
            cr_assert_eq(i < n, costs[i] * 100 <= costs[0] * 105, "round %d", round);
        for (size_t i = 0; i < n; i++)
            plan_free(plans[i]);
    }
}

/* Members only: a tensor counts if its producer and the reader do. */
static bool feasible_among(const bool *member)
{
    memcpy(&b, &a, sizeof a);
    draw_relink(&b);
    for (size_t i = 0; i < b.p.n_ops; i++) {
        for (size_t k = 0; k < b.ops[i].n_choices; k++)
            b.choices[i][k].cost = 0;
        for (int e = 0; e < b.p.n_labels * b.p.n_labels && !member[i]; e++)
            b.conversion[i][e] = 0;
        struct plan_tensor *t = &b.tensors[i];
        size_t kept = 0;
        for (size_t r = 0; r < t->n_readers; r++)
            if (member[t->readers[r].op])
                t->readers[kept++] = t->readers[r];
        t->n_readers = kept;
    }
    return draw_optimum(&b.p) < PLAN_INFINITE;
}

Test(plan_laws, conflicts_are_conflicts_and_minimal, .timeout = 600)
{
    int seen = 0;
    draw_seed(11);
    for (int round = 0; round < 4 * ROUNDS; round++) {
        struct draw_shape shape = {3 + draw(5), 4, 2, 70, 10, false};
        struct plan_conflict c;
        bool member[DRAW_OPS] = {false};
        draw_network(&a, &shape);
        if (draw_optimum(&a.p) < PLAN_INFINITE) {
            cr_assert_eq(plan_find_conflict(&c, &a.p, NULL, NULL), STRATA_EINVAL);
            continue;
        }
        seen++;
        cr_assert_eq(plan_find_conflict(&c, &a.p, NULL, NULL), STRATA_OK);
        for (size_t i = 0; i < c.n_ops; i++)
            member[c.ops[i]] = true;
        cr_assert_not(feasible_among(member), "round %d: not a conflict", round);
        for (size_t i = 0; i < c.n_ops; i++) {
            member[c.ops[i]] = false;
            cr_assert(feasible_among(member), "round %d: not minimal", round);
            member[c.ops[i]] = true;
        }
        plan_conflict_free(&c);
    }
    cr_expect_gt(seen, 100);
}
