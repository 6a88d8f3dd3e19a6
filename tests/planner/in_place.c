/* SPDX-License-Identifier: Apache-2.0
 *
 * What the steps of a run cost in place, from times of its beginnings.
 */
#include <criterion/criterion.h>

#include "planner/cost/cost.h"
#include "planner/execution.h"

enum { NS = PLAN_UNIT_PER_NS, N = 5 };

/* Prices of 100, 200, none, 400 and 100 ns; the third moves nothing. */
static void make_steps(struct execution *x, struct execution_step steps[N])
{
    static const int64_t prices[N] = {100, 200, 0, 400, 100};
    for (int i = 0; i < N; i++)
        steps[i] = (struct execution_step){.kind = i == 2 ? STEP_RELABEL : STEP_RUN,
                                           .cost = prices[i] * NS};
    *x = (struct execution){.steps = steps, .n_steps = N, .cost = 800 * NS};
}

static const struct {
    const char *what;
    struct cost_prefix prefixes[N];
    size_t n;
    int64_t ns[N];
} cases[] = {
    {"each is what it adds",
     {{1, 90}, {2, 250}, {4, 700}, {5, 790}},
     4,
     {90, 160, 0, 450, 90}},
    {"two that seem to add too little share by their prices",
     {{1, 90}, {2, 700}, {4, 690}, {5, 790}},
     4,
     {90, 200, 0, 400, 100}},
    {"a first that takes nothing goes with the second",
     {{1, 0}, {2, 300}, {4, 700}, {5, 800}},
     4,
     {100, 200, 0, 400, 100}},
    {"a last that takes less than nothing goes with the one before",
     {{1, 100}, {2, 300}, {4, 900}, {5, 800}},
     4,
     {100, 200, 0, 400, 100}},
    {"beginnings of several steps share by their prices",
     {{2, 600}, {5, 1600}},
     2,
     {200, 400, 0, 800, 200}},
    {"the whole alone", {{5, 1600}}, 1, {200, 400, 0, 800, 200}},
    {"falling throughout",
     {{1, 900}, {2, 850}, {4, 820}, {5, 800}},
     4,
     {100, 200, 0, 400, 100}},
};

Test(in_place, steps_add_up_to_the_whole)
{
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct execution_step steps[N];
        struct cost_prefix prefixes[N];
        struct execution x;
        make_steps(&x, steps);
        for (size_t i = 0; i < cases[k].n; i++)
            prefixes[i] = cases[k].prefixes[i];
        const double whole = prefixes[cases[k].n - 1].ns;
        cost_in_place(&x, prefixes, cases[k].n);
        for (int i = 0; i < N; i++)
            cr_expect_eq(steps[i].in_place, cases[k].ns[i] * NS, "%s: step %d has %g ns",
                         cases[k].what, i, (double)steps[i].in_place / NS);
        cr_expect_eq(x.in_place, (int64_t)(whole * NS), "%s", cases[k].what);
        cr_expect_eq(execution_predicts(&x), x.in_place);
        cr_expect_eq(execution_step_predicts(&x, &steps[1]), steps[1].in_place);
    }
}

/* Whatever the times: none is negative, and no sixteenth is lost. */
Test(in_place, any_times_add_up)
{
    uint64_t state = 7;
    for (int round = 0; round < 1000; round++) {
        struct execution_step steps[N];
        struct cost_prefix prefixes[N] = {{.end = 1}, {.end = 2}, {.end = 4}, {.end = 5}};
        struct execution x;
        int64_t sum = 0;
        make_steps(&x, steps);
        for (int i = 0; i < 4; i++) {
            state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
            prefixes[i].ns = (double)(state >> 40) / 16384;
        }
        const double whole = prefixes[3].ns;
        cost_in_place(&x, prefixes, 4);
        for (int i = 0; i < N; i++) {
            cr_expect_geq(steps[i].in_place, 0);
            sum += steps[i].in_place;
        }
        cr_expect_eq(sum, x.in_place);
        cr_expect_float_eq((double)sum, whole * NS, 0.5);
    }
}

Test(in_place, without_times_the_price_stands)
{
    struct execution_step steps[N];
    struct cost_prefix nothing = {.end = N, .ns = 0};
    struct execution x;
    make_steps(&x, steps);
    cost_in_place(&x, NULL, 0);
    cost_in_place(&x, &nothing, 1);
    cr_expect_eq(x.in_place, 0);
    cr_expect_eq(execution_predicts(&x), x.cost);
    cr_expect_eq(execution_step_predicts(&x, &steps[3]), steps[3].cost);
}
