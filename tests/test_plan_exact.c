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
