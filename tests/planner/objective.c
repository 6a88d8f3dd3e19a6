/* SPDX-License-Identifier: Apache-2.0
 *
 * [build] objective: fewest reformats, least memory within a slack of the least time, and
 * what explain says that they give up.
 */
#include <jansson.h>

#include "planner/explain/explain.h"
#include "tests/planner/planning.h"

static char net[300];

static void write_net(void)
{
    scratch_make();
    snprintf(net, sizeof net, "%s/net.ini", scratch);
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = y, b\n[runtime]\nthreads = 1\n"
          "[build]\nprecision = any\n[input x]\nshape = 16 x 3 x 20 x 20\n"
          "[weights w]\nrandom = 1\n"
          "[layer a]\ntype = Convolution\nfilters = 40\nkernel = 3\nweights = w:a\n"
          "[layer p]\ntype = Pooling\nkind = max\nkernel = 2\nstride = 2\n"
          "[layer b]\ntype = Convolution\nfilters = 24\nkernel = 3\npad = 1\n"
          "weights = w:b\n"
          "[layer c]\ntype = Convolution\nfilters = 24\nkernel = 1\ninputs = p\n"
          "weights = w:c\n"
          "[layer s]\ntype = ElementWise\nop = sum\ninputs = b, c\n"
          "[layer y]\ntype = Softmax\n",
          f);
    fclose(f);
}

TestSuite(objective, .init = write_net, .fini = scratch_remove, .timeout = 600);

static int open(struct planning *s, const char *const *set, size_t n)
{
    return planning_open(s, net, set, n);
}

static void check_open(struct planning *s, const char *const *set, size_t n)
{
    cr_assert_eq(open(s, set, n), STRATA_OK, "%s", s->err.message);
}

/* ---- reformats -----------------------------------------------------------------------
 */

Test(objective, reformats_takes_the_fewest_and_tells_the_least_time)
{
    static const char *const cases[][2] = {
        {"build.formats=fp32:nchw,fp16:nhwc8,fp32:nhwc", "build.objective=reformats"},
        {"build.precision=fp16", "build.objective=reformats"},
        {"build.precision=any", "build.objective=reformats"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning fast, few;
        struct plan *best = NULL;
        struct plan_options fewest = {.objective = PLAN_FEWEST_REFORMATS};
        check_open(&fast, cases[i], 1);
        check_open(&few, cases[i], 2);
        const struct plan *plan = few.planner->plan;
        cr_assert_eq(plan_solve(&best, &fast.planner->model->problem, &fewest, NULL),
                     STRATA_OK);
        cr_expect_leq(plan->n_reformats, fast.planner->plan->n_reformats, "case %zu", i);
        cr_expect_geq(plan->cost, fast.planner->plan->cost, "case %zu", i);
        cr_expect_eq(plan->n_reformats, best->n_reformats, "case %zu", i);
        cr_expect_eq(plan->cost, best->cost, "case %zu", i);
        cr_expect_eq(few.planner->trade.cost, fast.planner->plan->cost, "case %zu", i);
        cr_expect_eq(few.planner->trade.reformats, fast.planner->plan->n_reformats);
        cr_expect_eq(few.planner->trade.arena_bytes, fast.execution->arena_bytes);
        cr_expect_not(few.planner->trade.at_least);
        plan_free(best);
        planning_close(&fast);
        planning_close(&few);
    }
}

/* ---- memory --------------------------------------------------------------------------
 */

/* Takes the plan. */
static int64_t arena_of(const struct planning *s, struct plan *plan)
{
    struct execution *x = NULL;
    cr_assert_eq(execution_make(&x, s->planner, plan, NULL), STRATA_OK);
    int64_t bytes = x->arena_bytes;
    execution_free(x);
    plan_free(plan);
    return bytes;
}

Test(objective, memory_takes_the_smallest_arena_within_the_slack)
{
    static const struct {
        const char *slack, *plans;
        double percent;
        size_t capacity;
    } cases[] = {
        {"build.memory_slack=0", "build.memory_plans=8", 0, 8},
        {"build.memory_slack=5", "build.memory_plans=1", 5, 1},
        {"build.memory_slack=10", "build.memory_plans=30", 10, 30},
        {"build.memory_slack=100", "build.memory_plans=60", 100, 60},
    };
    int smaller = 0;
    struct planning fast;
    check_open(&fast, NULL, 0);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        const char *const set[] = {"build.objective=memory", cases[i].slack,
                                   cases[i].plans};
        struct planning s;
        struct plan *plans[64];
        int64_t least = INT64_MAX;
        size_t n;
        check_open(&s, set, 3);
        const struct planner_trade *t = &s.planner->trade;
        cr_assert_eq(plan_solve_best(plans, cases[i].capacity, &n, cases[i].percent,
                                     &s.planner->model->problem, NULL, NULL),
                     STRATA_OK);
        for (size_t k = 0; k < n; k++) {
            int64_t bytes = arena_of(&s, plans[k]);
            least = bytes < least ? bytes : least;
        }
        cr_expect_leq(s.execution->arena_bytes, least, "case %zu", i);
        cr_expect_geq(t->weighed, n, "case %zu", i);
        cr_expect_eq(t->cut, n == cases[i].capacity, "case %zu", i);
        cr_expect_eq(t->cost, fast.planner->plan->cost, "case %zu", i);
        cr_expect_eq(t->arena_bytes, fast.execution->arena_bytes, "case %zu", i);
        cr_expect_eq(plan_cost(&s.planner->model->problem, s.planner->plan->choices),
                     s.planner->plan->cost, "case %zu", i);
        cr_expect_leq((double)s.planner->plan->cost,
                      (double)t->cost * (1 + cases[i].percent / 100) + 1);
        cr_expect_eq(s.planner->plan->bound, t->cost, "the bound is the least time's");
        smaller += s.execution->arena_bytes < fast.execution->arena_bytes;
        planning_close(&s);
    }
    cr_expect_gt(smaller, 0, "some slack saves memory");
    planning_close(&fast);
}

/* ---- what is said --------------------------------------------------------------------
 */

static json_t *report(struct planning *s)
{
    struct explain *x = NULL;
    cr_assert_eq(explain_plan(&x, &s->planner->model->problem, &s->planner->plan_options,
                              s->planner->plan, &s->err),
                 STRATA_OK, "%s", s->err.message);
    json_t *j = explain_json(s->planner, s->execution, x, 0);
    cr_assert_not_null(j);
    cr_expect(x->exact, "answers are about the least time, which is proved");
    for (size_t i = 0; i < x->n_reformats; i++)
        cr_expect(!x->reformats[i].avoidable ||
                      x->reformats[i].penalty + s->planner->trade.cost >=
                          s->planner->trade.cost,
                  "no answer is below the least time");
    explain_free(x);
    return j;
}

Test(objective, the_report_names_it_and_the_plan_of_least_time)
{
    static const char *const sets[] = {
        "build.objective=time", "build.objective=reformats", "build.objective=memory"};
    static const char *const names[] = {"time", "reformats", "memory"};
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++) {
        struct planning s;
        check_open(&s, &sets[i], 1);
        json_t *j = report(&s), *totals = json_object_get(j, "totals");
        json_t *least = json_object_get(totals, "least_time");
        cr_expect_str_eq(json_string_value(json_object_get(totals, "objective")),
                         names[i]);
        cr_expect_eq(json_is_null(least), i == 0);
        if (i > 0) {
            cr_expect_eq(json_integer_value(json_object_get(least, "cost")),
                         s.planner->trade.cost);
            cr_expect_leq(json_integer_value(json_object_get(least, "cost")),
                          s.planner->plan->cost);
        }
        json_decref(j);
        planning_close(&s);
    }
}

Test(objective, a_search_is_limited_unless_the_network_lifts_it)
{
    static const struct {
        const char *set;
        uint64_t nodes;
    } cases[] = {{"build.plan_nodes=0", 0},
                 {"build.plan_nodes=7", 7},
                 {"build.objective=time", 10000}};
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        check_open(&s, &cases[i].set, 1);
        cr_expect_eq(s.planner->plan_options.max_nodes, cases[i].nodes, "%s",
                     cases[i].set);
        cr_expect_eq(plan_gap(s.planner->plan), 0);
        planning_close(&s);
    }
}

Test(objective, bad_values_are_refused_with_their_line)
{
    static const struct {
        const char *set, *says;
    } cases[] = {
        {"build.objective=speed", "time"},
        {"build.memory_slack=-1", "memory_slack"},
        {"build.memory_slack=1001", "memory_slack"},
        {"build.memory_plans=0", "memory_plans"},
        {"build.memory_plans=2.5", "memory_plans"},
        {"build.plan_nodes=-1", "plan_nodes"},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        cr_expect_eq(open(&s, &cases[i].set, 1), STRATA_EPARSE, "%s", cases[i].set);
        cr_expect(strstr(s.err.message, cases[i].says), "%s", s.err.message);
        planning_close(&s);
    }
}
