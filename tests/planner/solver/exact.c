/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact planner against brute force.
 */
#include "planner/certificate/certificate.h"
#include "tests/planner/solver/draw.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct drawn w;

static struct draw_shape draw_shape(int round)
{
    return (struct draw_shape){.n_ops = 2 + draw(7),
                               .n_labels = 2 + draw(4),
                               .max_choices = 2 + draw(4),
                               .missing = round % 3 * 25,
                               .max_cost = round % 5 == 0 ? 4 : 100,
                               .precise = round % 7 == 0};
}

Test(plan_exact, finds_the_optimum_of_random_networks, .timeout = 600)
{
    const int rounds = getenv("STRATA_TEST_LONG") ? 4000 : 1000;
    int infeasible = 0, searched = 0;
    draw_seed(2024);
    for (int round = 0; round < rounds; round++) {
        struct draw_shape shape = draw_shape(round);
        struct plan *plan = NULL;
        strata_error err = {0};
        draw_network(&w, &shape);
        int64_t optimum = draw_optimum(&w.p);
        int status = plan_solve(&plan, &w.p, NULL, &err);
        cr_assert_eq(status, optimum < PLAN_INFINITE ? STRATA_OK : STRATA_EPLAN,
                     "round %d: %s", round, err.message);
        infeasible += !plan;
        if (!plan)
            continue;
        searched += plan->nodes > 1;
        cr_assert_eq(plan->cost, optimum, "round %d: %lld, optimum %lld", round,
                     (long long)plan->cost, (long long)optimum);
        cr_assert_eq(plan->cost, plan_cost(&w.p, plan->choices), "round %d", round);
        cr_assert(plan->proved && plan->bound == optimum, "round %d", round);
        plan_free(plan);
    }
    cr_log_info("%d infeasible, %d with a search", infeasible, searched);
    cr_expect_gt(infeasible, rounds / 40);
}

/* Labels 3 and 4 are 1 and 2 by another name, as a format in its concatenation's memory
 * is; every label becomes label 5 for nothing, which no operation writes. */
static void make_alike(void)
{
    enum { N = 6 };
    w.p.labels[3].precision = w.p.labels[1].precision;
    w.p.labels[4].precision = w.p.labels[2].precision;
    w.p.labels[5] = (struct plan_label){.stage = PLAN_NONE};
    for (size_t i = 0; i < w.p.n_ops; i++) {
        int64_t *m = w.conversion[i];
        for (int l = 1; l <= 2; l++)
            m[l * N + l + 2] = m[(l + 2) * N + l] = 0;
        for (int l = 0; l < 5; l++) {
            m[l * N + 5] = 0;
            m[5 * N + l] = PLAN_INFINITE;
        }
        for (size_t k = 0; k < w.ops[i].n_choices; k++)
            for (int port = 0; port < PLAN_MAX_PORTS; port++)
                w.choices[i][k].out[port] %= 5;
    }
}

Test(plan_exact, labels_that_are_alike_are_planned_and_proved_as_one, .timeout = 600)
{
    const int rounds = getenv("STRATA_TEST_LONG") ? 1000 : 250;
    draw_seed(77);
    for (int round = 0; round < rounds; round++) {
        struct draw_shape shape = draw_shape(round);
        struct plan *plan = NULL;
        struct plan_certificate *c = NULL;
        strata_error err = {0};
        shape.n_labels = 6;
        draw_network(&w, &shape);
        make_alike();
        int64_t optimum = draw_optimum(&w.p);
        if (plan_solve(&plan, &w.p, NULL, &err) != STRATA_OK) {
            cr_assert_geq(optimum, PLAN_INFINITE, "round %d: %s", round, err.message);
            continue;
        }
        cr_assert_eq(plan->cost, optimum, "round %d", round);
        cr_assert_eq(plan_certify(&c, &w.p, NULL, plan, &err), STRATA_OK, "round %d: %s",
                     round, err.message);
        cr_assert_eq(plan_check(&w.p, NULL, c, &err), STRATA_OK, "round %d: %s", round,
                     err.message);
        plan_certificate_free(c);
        plan_free(plan);
    }
}

/* One tensor that three operations read, in as many labels as there are. */
static void draw_fan(void)
{
    struct draw_shape shape = {4, DRAW_MANY, 5, 0, 100, false};
    draw_network(&w, &shape);
    for (size_t i = 0; i < w.p.n_ops; i++) {
        w.ops[i].n_in = i > 0;
        w.in[i][0] = 0;
        w.ops[i].n_choices = 5;
        for (int k = 0; k < 5; k++) {
            w.choices[i][k].cost = draw(100);
            memset(w.choices[i][k].in, i ? (int)(i - 1) * 5 + k : 0, PLAN_MAX_PORTS);
            memset(w.choices[i][k].out, draw(DRAW_MANY), PLAN_MAX_PORTS);
        }
    }
    draw_relink(&w);
}

Test(plan_exact, a_tensor_that_is_read_in_15_formats_is_planned_as_well, .timeout = 600)
{
    draw_seed(15);
    for (int round = 0; round < 50; round++) {
        struct plan *plan = NULL;
        struct plan_certificate *c = NULL;
        strata_error err = {0};
        int64_t least = PLAN_INFINITE;
        draw_fan();
        for (int all = 0; all < 5 * 5 * 5 * 5; all++) {
            const size_t choices[] = {(size_t)all % 5, (size_t)all / 5 % 5,
                                      (size_t)all / 25 % 5, (size_t)all / 125};
            const int64_t cost = plan_cost(&w.p, choices);
            least = cost < least ? cost : least;
        }
        cr_assert_eq(plan_solve(&plan, &w.p, NULL, &err), STRATA_OK, "%s", err.message);
        cr_assert(plan->cost == least && plan->proved, "round %d: %lld, least %lld",
                  round, (long long)plan->cost, (long long)least);
        cr_expect_eq(plan_certify(&c, &w.p, NULL, plan, &err), STRATA_EUNSUPPORTED);
        plan_free(plan);
    }
}

Test(plan_exact, certificates_are_accepted_and_survive_text, .timeout = 600)
{
    draw_seed(99);
    for (int round = 0; round < 1000; round++) {
        struct draw_shape shape = draw_shape(round);
        struct plan *plan = NULL;
        struct plan_certificate *c = NULL, *again = NULL;
        struct plan_options options = {.objective = round % 2 ? PLAN_FEWEST_REFORMATS
                                                              : PLAN_LEAST_TIME};
        strata_error err = {0};
        char *text = NULL, *copy = NULL;
        draw_network(&w, &shape);
        if (plan_solve(&plan, &w.p, &options, NULL) != STRATA_OK)
            continue;
        cr_assert_eq(plan_certify(&c, &w.p, &options, plan, &err), STRATA_OK, "%s",
                     err.message);
        cr_assert_eq(plan_check(&w.p, &options, c, &err), STRATA_OK, "round %d: %s",
                     round, err.message);
        cr_assert_eq(plan_certificate_write(&text, c, &err), STRATA_OK);
        cr_assert_eq(plan_certificate_read(&again, text, &err), STRATA_OK, "%s",
                     err.message);
        cr_assert_eq(plan_certificate_write(&copy, again, &err), STRATA_OK);
        cr_assert_str_eq(text, copy);
        free(text);
        free(copy);
        plan_certificate_free(c);
        plan_certificate_free(again);
        plan_free(plan);
    }
}

/* Twenty operations of up to four inputs: reductions alone do not finish these. */
static void draw_dense(void)
{
    struct draw_shape shape = {DRAW_OPS, 5, 5, 0, 1000, false};
    draw_network(&w, &shape);
    for (size_t i = 4; i < w.p.n_ops; i++) {
        w.ops[i].n_in = DRAW_PORTS;
        for (int k = 0; k < DRAW_PORTS; k++)
            w.in[i][k] = draw((int)i);
        for (size_t k = 0; k < w.ops[i].n_choices; k++)
            for (int port = 0; port < DRAW_PORTS; port++)
                w.choices[i][k].in[port] = (uint8_t)draw(w.p.n_labels);
    }
    draw_relink(&w);
}

/* The search is the same every time, so a limit of n nodes shows it after its nth. */
Test(plan_exact, at_every_node_the_bound_is_below_and_the_plan_above, .timeout = 600)
{
    int searched = 0, open = 0;
    draw_seed(5);
    for (int round = 0; round < 300; round++) {
        struct plan *best = NULL;
        int64_t cost = PLAN_INFINITE;
        draw_dense();
        cr_assert_eq(plan_solve(&best, &w.p, NULL, NULL), STRATA_OK);
        cr_assert(best->proved);
        searched += best->nodes > 1;
        for (uint64_t limit = 1; limit <= best->nodes && limit < 200; limit++) {
            struct plan_options options = {.max_nodes = limit};
            struct plan *cut = NULL, *again = NULL;
            cr_assert_eq(plan_solve(&cut, &w.p, &options, NULL), STRATA_OK);
            cr_assert_eq(plan_solve(&again, &w.p, &options, NULL), STRATA_OK);
            cr_assert_arr_eq(cut->choices, again->choices,
                             w.p.n_ops * sizeof *cut->choices);
            cr_assert_eq(cut->bound, again->bound);
            cr_assert_eq(cut->cost, plan_cost(&w.p, cut->choices));
            cr_assert_leq(cut->bound, best->cost, "round %d, %d nodes", round,
                          (int)limit);
            cr_assert_geq(cut->cost, best->cost);
            cr_assert_leq(cut->cost, cost, "round %d: the plan got worse", round);
            cost = cut->cost;
            cr_assert_eq(cut->proved, cut->bound == cut->cost);
            cr_assert_leq((double)cut->cost,
                          (1 + plan_gap(cut)) * (double)best->cost * (1 + 1e-12));
            open += !cut->proved;
            plan_free(cut);
            plan_free(again);
        }
        cr_assert_eq(cost, best->cost, "round %d", round);
        plan_free(best);
    }
    cr_expect_gt(searched, 10, "%d", searched);
    cr_expect_gt(open, 10, "%d", open);
}

/* Places of the proof's words: where steps begin, and potentials. */
static size_t next_step(const struct plan_certificate *c, size_t at)
{
    static const size_t words[PLAN_PROOF_KINDS] = {2, 3, 4, 3, 5, 3, 2};
    const int64_t *step = c->proof + at;
    return at + words[step[0]] +
           (step[0] == PLAN_PROOF_SHIFT ? (size_t)(step[3] + step[4]) : 0);
}

static void rejected(const struct plan_certificate *c, const char *what, int round)
{
    cr_assert_eq(plan_check(&w.p, NULL, c, NULL), STRATA_EMISMATCH, "round %d: %s", round,
                 what);
}

static int mutate_proof(struct plan_certificate *c, int round)
{
    int mutants = 0;
    for (size_t at = 0, next; at < c->n_proof; at = next) {
        next = next_step(c, at);
        if (c->proof[at] == PLAN_PROOF_SHIFT)
            for (size_t i = at + 5; i < next; i += 3, mutants += 2) {
                c->proof[i]++;
                rejected(c, "a potential raised", round);
                c->proof[i] -= 2;
                rejected(c, "a potential lowered", round);
                c->proof[i]++;
            }
        if (c->proof[at] != PLAN_PROOF_LEAF)
            continue;
        c->proof[at + 1]++;
        rejected(c, "a leaf's bound", round);
        c->proof[at + 1]--;
        struct plan_certificate cut = *c; /* without this leaf */
        int64_t *proof = malloc(c->n_proof * sizeof *proof);
        memcpy(proof, c->proof, at * sizeof *proof);
        memcpy(proof + at, c->proof + next, (c->n_proof - next) * sizeof *proof);
        cut.proof = proof;
        cut.n_proof = c->n_proof - (next - at);
        rejected(&cut, "a leaf dropped", round);
        free(proof);
        mutants += 2;
    }
    return mutants;
}

static int mutate_plan(struct plan_certificate *c, int round)
{
    int mutants = 0;
    for (size_t op = 0; op < c->n_choices; op++) {
        size_t was = c->choices[op];
        for (size_t k = 0; k < w.ops[op].n_choices; k++) {
            c->choices[op] = k;
            if (k != was && plan_cost(&w.p, c->choices) != c->objective) {
                rejected(c, "a choice", round);
                mutants++;
            }
        }
        c->choices[op] = was;
        w.choices[op][was].cost++;
        rejected(c, "a choice's cost raised", round);
        w.choices[op][was].cost--;
    }
    for (size_t i = 0; i < c->n_steps; i++, mutants += 3) {
        struct plan_step was = c->steps[i];
        c->steps[i].cost++;
        rejected(c, "a step's cost", round);
        c->steps[i] = was;
        c->steps[i].to = (was.to + 1) % w.p.n_labels;
        rejected(c, "a step's label", round);
        c->steps[i] = was;
        int64_t *cost = &w.conversion[was.tensor][was.from * w.p.n_labels + was.to];
        ++*cost;
        rejected(c, "a conversion's cost raised", round);
        --*cost;
    }
    c->objective++;
    rejected(c, "the objective raised", round);
    c->objective -= 2;
    rejected(c, "the objective lowered", round);
    c->objective++;
    return mutants + 2;
}

Test(plan_exact, mutated_certificates_are_rejected, .timeout = 600)
{
    int mutants = 0, shifts = 0;
    draw_seed(21);
    for (int round = 0; round < 30; round++) {
        struct plan *plan = NULL;
        struct plan_certificate *c = NULL;
        strata_error err = {0};
        draw_dense();
        cr_assert_eq(plan_solve(&plan, &w.p, NULL, &err), STRATA_OK, "%s", err.message);
        cr_assert_eq(plan_certify(&c, &w.p, NULL, plan, &err), STRATA_OK, "%s",
                     err.message);
        cr_assert_eq(plan_check(&w.p, NULL, c, &err), STRATA_OK, "%s", err.message);
        for (size_t at = 0; at < c->n_proof; at = next_step(c, at))
            shifts += c->proof[at] == PLAN_PROOF_SHIFT;
        if (c->n_proof < 6000)
            mutants += mutate_proof(c, round);
        mutants += mutate_plan(c, round);
        plan_certificate_free(c);
        plan_free(plan);
    }
    cr_expect_gt(mutants, 1000, "%d mutants", mutants);
    cr_expect_gt(shifts, 100, "%d shifts", shifts);
}
