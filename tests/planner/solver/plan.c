/* SPDX-License-Identifier: Apache-2.0
 *
 * The planner's model and solver on made-up problems.
 */
#include "core/alloc.h"
#include "planner/solver/plan.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS = 4, MAX_OPS = 8, MAX_CHOICES = 4 };

/* A random network of single-output operations; every tensor's readers come later. */
struct network {
    struct plan_problem p;
    struct plan_op ops[MAX_OPS];
    struct plan_tensor tensors[MAX_OPS];
    struct plan_choice choices[MAX_OPS][MAX_CHOICES];
    struct plan_reader readers[MAX_OPS][2 * MAX_OPS];
    int in[MAX_OPS][2], out[MAX_OPS];
    int64_t conversion[MAX_OPS][LABELS * LABELS];
};

static uint64_t random_state;

static int draw(int n)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int)((random_state >> 33) % (uint64_t)n);
}

static void make_network(struct network *w, int n_ops, int missing_percent)
{
    memset(w, 0, sizeof *w);
    w->p.n_labels = LABELS;
    w->p.ops = w->ops;
    w->p.tensors = w->tensors;
    w->p.n_ops = w->p.n_tensors = (size_t)n_ops;
    for (int l = 0; l < LABELS; l++)
        w->p.labels[l] = (struct plan_label){.format = l, .precision = 24};
    for (int i = 0; i < n_ops; i++) {
        struct plan_op *o = &w->ops[i];
        o->name = "op";
        o->n_in = i == 0 ? 0 : i == 1 ? 1 : 1 + draw(2);
        for (int k = 0; k < o->n_in; k++)
            w->in[i][k] = draw(i);
        w->out[i] = i;
        o->in = w->in[i];
        o->n_out = 1;
        o->out = &w->out[i];
        o->choices = w->choices[i];
        o->n_choices = (size_t)(1 + draw(MAX_CHOICES));
        for (size_t k = 0; k < o->n_choices; k++) {
            struct plan_choice *c = &o->choices[k];
            memset(c->in, draw(LABELS), sizeof c->in);
            c->in[0] = (uint8_t)draw(LABELS);
            memset(c->out, draw(LABELS), sizeof c->out);
            c->cost = 1 + draw(100);
        }
        struct plan_tensor *t = &w->tensors[i];
        t->name = "tensor";
        t->producer = i;
        t->readers = w->readers[i];
        t->conversion = w->conversion[i];
        for (int e = 0; e < LABELS * LABELS; e++)
            w->conversion[i][e] = e / LABELS == e % LABELS      ? 0
                                  : draw(100) < missing_percent ? PLAN_INFINITE
                                                                : 1 + draw(60);
        for (int k = 0; k < o->n_in; k++) {
            struct plan_tensor *input = &w->tensors[w->in[i][k]];
            input->readers[input->n_readers++] = (struct plan_reader){i, k};
        }
    }
}

/* Cheapest set of conversions from root that reaches every wanted label, by trying every
 * parent of every label: with n labels, n^n parent arrays. */
static int64_t brute_tree(const int64_t *conversion, int root, uint64_t wanted)
{
    int64_t best = (wanted & ~(UINT64_C(1) << root)) ? PLAN_INFINITE : 0;
    for (int code = 0; code < 625; code++) { /* 5^4: a parent or none */
        int parent[LABELS], rest = code;
        int64_t cost = 0;
        bool fine = true;
        for (int l = 0; l < LABELS; l++, rest /= 5) {
            parent[l] = rest % 5 - 1;
            fine &= l != root || parent[l] < 0;
            if (parent[l] >= 0)
                cost += conversion[parent[l] * LABELS + l];
        }
        for (int l = 0; l < LABELS && fine; l++) {
            int at = l, steps = 0;
            while (at != root && at >= 0 && parent[at] >= 0 && steps++ < LABELS)
                at = parent[at];
            if ((wanted & UINT64_C(1) << l || parent[l] >= 0) && at != root)
                fine = false;
        }
        if (fine && cost < best)
            best = cost;
    }
    return best;
}

Test(plan, conversion_trees_match_brute_force)
{
    struct network w;
    random_state = 7;
    for (int round = 0; round < 400; round++) {
        make_network(&w, 1, 30);
        for (int root = 0; root < LABELS; root++)
            for (uint64_t wanted = 0; wanted < 1 << LABELS; wanted++) {
                struct plan_step steps[LABELS];
                size_t n;
                int64_t expected = brute_tree(w.conversion[0], root, wanted);
                int64_t found = plan_tree(&w.p, 0, root, wanted, steps, &n);
                cr_assert_eq(found, expected, "round %d root %d wanted %llx: %lld, %lld",
                             round, root, (unsigned long long)wanted, (long long)found,
                             (long long)expected);
                uint64_t made = UINT64_C(1) << root;
                int64_t sum = 0;
                for (size_t i = 0; found < PLAN_INFINITE && i < n; i++) {
                    cr_assert(made & UINT64_C(1) << steps[i].from,
                              "a step starts from what exists");
                    made |= UINT64_C(1) << steps[i].to;
                    sum += steps[i].cost;
                }
                if (found < PLAN_INFINITE) {
                    cr_assert_eq(wanted & ~made, 0);
                    cr_assert_eq(sum, found);
                }
            }
    }
}

static int64_t brute_force(const struct plan_problem *p)
{
    size_t choices[MAX_OPS] = {0};
    int64_t best = PLAN_INFINITE;
    for (;;) {
        int64_t cost = plan_cost(p, choices);
        best = cost < best ? cost : best;
        size_t op = 0;
        while (op < p->n_ops && ++choices[op] == p->ops[op].n_choices)
            choices[op++] = 0;
        if (op == p->n_ops)
            return best;
    }
}

Test(plan, costs_what_it_says_and_is_near_the_best)
{
    struct network w;
    int64_t ours = 0, best = 0;
    int missed = 0;
    random_state = 11;
    for (int round = 0; round < 500; round++) {
        struct plan *plan = NULL;
        make_network(&w, 2 + draw(6), 0);
        int64_t optimum = brute_force(&w.p);
        cr_assert_eq(plan_solve(&plan, &w.p, NULL, NULL), STRATA_OK);
        cr_expect_eq(plan->cost, plan_cost(&w.p, plan->choices));
        cr_expect_geq(plan->cost, optimum);
        cr_expect(!plan->proved || plan->cost == optimum, "round %d: a proved plan",
                  round);
        missed += plan->cost != optimum;
        ours += plan->cost;
        best += optimum;
        plan_free(plan);
    }
    cr_expect_leq(ours, best + best / 100, "%lld against %lld, %d of 500 missed",
                  (long long)ours, (long long)best, missed);
}

Test(plan, finds_a_plan_whenever_one_exists)
{
    struct network w;
    int infeasible = 0;
    random_state = 13;
    for (int round = 0; round < 500; round++) {
        struct plan *plan = NULL;
        strata_error err = {0};
        make_network(&w, 2 + draw(6), 60);
        bool feasible = brute_force(&w.p) < PLAN_INFINITE;
        int status = plan_solve(&plan, &w.p, NULL, &err);
        infeasible += !feasible;
        if (!feasible) {
            cr_expect_eq(status, STRATA_EPLAN);
            cr_expect_neq(strstr(err.message, "'tensor'"), NULL);
        }
        if (status == STRATA_OK)
            cr_expect_lt(plan->cost, PLAN_INFINITE);
        cr_expect(status == STRATA_OK || !feasible, "round %d: missed a plan", round);
        plan_free(plan);
    }
    cr_expect_gt(infeasible, 20, "the draw holds infeasible networks");
}

Test(plan, no_conversion_where_formats_match_and_one_where_two_readers_agree)
{
    struct network w;
    struct plan *plan = NULL;
    random_state = 1;
    make_network(&w, 4, 0);
    for (int i = 0; i < 4; i++) {
        w.ops[i].n_choices = 1;
        memset(w.choices[i][0].in, i == 0 ? 0 : 1, PLAN_MAX_PORTS);
        memset(w.choices[i][0].out, 1, PLAN_MAX_PORTS);
        w.ops[i].n_in = i ? 1 : 0;
        w.in[i][0] = 0;
        w.tensors[i].n_readers = 0;
    }
    for (int i = 1; i < 4; i++)
        w.readers[0][w.tensors[0].n_readers++] = (struct plan_reader){i, 0};
    cr_assert_eq(plan_solve(&plan, &w.p, NULL, NULL), STRATA_OK);
    cr_expect_eq(plan->n_steps, 0);
    plan_free(plan);
    memset(w.choices[0][0].out, 2, PLAN_MAX_PORTS); /* all three readers want label 1 */
    for (int e = 0; e < LABELS * LABELS; e++)
        w.conversion[0][e] = e / LABELS == e % LABELS ? 0 : 50;
    cr_assert_eq(plan_solve(&plan, &w.p, NULL, NULL), STRATA_OK);
    cr_expect_eq(plan->n_steps, 1);
    cr_expect_eq(plan->conversion_cost, 50);
    plan_free(plan);
}

/* All conversions are free and all choices cost the same. */
Test(plan, of_equals_neighbours_take_one_format)
{
    struct network w;
    struct plan *plan = NULL;
    random_state = 5;
    make_network(&w, 6, 0);
    for (int i = 0; i < 6; i++) {
        memset(w.conversion[i], 0, sizeof w.conversion[i]);
        w.ops[i].n_choices = LABELS;
        for (int k = 0; k < LABELS; k++) {
            struct plan_choice *c = &w.choices[i][k];
            memset(c->in, (k + i) % LABELS, sizeof c->in);
            memset(c->out, (k + i) % LABELS, sizeof c->out);
            c->cost = 7;
        }
    }
    cr_assert_eq(plan_solve(&plan, &w.p, NULL, NULL), STRATA_OK);
    cr_expect_eq(plan->n_steps, 0);
    plan_free(plan);
}

Test(plan, content_never_passes_through_less_precision)
{
    struct network w;
    struct plan_step steps[LABELS];
    size_t n;
    random_state = 3;
    make_network(&w, 1, 100); /* no conversions */
    w.p.labels[1].precision = 11;
    w.conversion[0][0 * LABELS + 1] = 1; /* fp32 -> fp16 -> fp32 would be cheap */
    w.conversion[0][1 * LABELS + 2] = 1;
    cr_expect_eq(plan_tree(&w.p, 0, 0, 1 << 2, steps, &n), PLAN_INFINITE);
    w.conversion[0][0 * LABELS + 2] = 500;
    cr_expect_eq(plan_tree(&w.p, 0, 0, 1 << 2, steps, &n), 500);
    cr_expect_eq(plan_tree(&w.p, 0, 0, 1 << 2 | 1 << 1, steps, &n), 501);
}

Test(plan, is_the_same_every_time)
{
    struct network w;
    struct plan *first = NULL;
    random_state = 17;
    make_network(&w, 8, 10);
    if (plan_solve(&first, &w.p, NULL, NULL) != STRATA_OK)
        cr_assert_fail("the network is feasible");
    for (int i = 0; i < 20; i++) {
        struct plan *again = NULL;
        cr_assert_eq(plan_solve(&again, &w.p, NULL, NULL), STRATA_OK);
        cr_expect_eq(again->cost, first->cost);
        cr_expect_arr_eq(again->choices, first->choices,
                         w.p.n_ops * sizeof *first->choices);
        cr_assert_eq(again->n_steps, first->n_steps);
        for (size_t k = 0; k < first->n_steps; k++)
            cr_expect(again->steps[k].tensor == first->steps[k].tensor &&
                      again->steps[k].from == first->steps[k].from &&
                      again->steps[k].to == first->steps[k].to);
        plan_free(again);
    }
    plan_free(first);
}
