/* SPDX-License-Identifier: Apache-2.0
 *
 * The exact planner against brute force.
 */
#include "tests/plan_draw.h"

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

Test(plan_exact, finds_the_optimum_of_4000_random_networks, .timeout = 120)
{
    int infeasible = 0, searched = 0;
    draw_seed(2024);
    for (int round = 0; round < 4000; round++) {
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
    cr_expect_gt(infeasible, 100);
}

Test(plan_exact, certificates_are_accepted_and_survive_text, .timeout = 120)
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
