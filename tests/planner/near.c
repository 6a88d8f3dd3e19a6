/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans near the best one: what they leave they do not run, none without it is cheaper,
 * and prices stay as they are.
 */
#include "planner/cost/near.h"

#include <stdlib.h>

#include "planner/certificate/certificate.h"
#include "tests/planner/costing.h"

TestSuite(near, .init = open_folder, .fini = close_folder, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", s.err.message)

/* Times of no machine, below what the model allows: what is timed first is soon proved,
 * and another way is one that nobody has timed. */
static void price_low(struct cost_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        t->entries[i].cost.ns = 10 + (int64_t)i % 7;
}

/* A plan by all costs, or by as few as prove it. */
static void open_planned(struct planning *s, struct cost_table *base, bool everything)
{
    struct cost_table table;
    struct cost_report report;
    write_fire("n");
    open(s, NULL);
    record(s, base);
    price_low(base);
    struct replay r = replay_of(base);
    cost_table_free(&s->planner->known);
    cost_table_init(&s->planner->known, "host");
    cost_table_init(&table, "host");
    cr_assert_eq(
        plan(s, &table, &r.source,
             (struct cost_options){.kind = COSTS_MEASURE, .everything = everything},
             &report),
        STRATA_OK, "%s", s->err.message);
    cost_table_free(&table);
}

static void close_planned(struct planning *s, struct cost_table *base)
{
    cost_table_free(base);
    planning_close(s);
}

/* ns of what a plan runs and converts. */
static int64_t sum_of(const struct planner *planner, const struct plan *plan,
                      const struct near_use *uses, size_t n)
{
    const struct plan_problem *p = &planner->model->problem;
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += uses[i].cost;
    for (size_t i = 0; i < plan->n_steps; i++)
        sum += p->tensors[plan->steps[i].tensor]
                   .conversion[plan->steps[i].from * p->n_labels + plan->steps[i].to];
    return sum;
}

static size_t uses_of(const struct near_use *uses, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(uses[i].key, key) == 0)
            return uses[i].uses;
    return 0;
}

Test(near, a_plan_without_a_way_costs_no_less_and_runs_something_else)
{
    struct planning s;
    struct cost_table base;
    struct near *near;
    struct near_use *uses, *others;
    size_t n, n_others, found = 0;
    open_planned(&s, &base, true);
    struct replay r = replay_of(&base);
    OK(near_open(&near, s.planner, &r.source, &s.err));
    OK(near_uses(&uses, &n, near, s.planner->plan, &s.err));
    cr_assert_gt(n, 0);
    cr_expect_eq(sum_of(s.planner, s.planner->plan, uses, n), s.planner->plan->cost);
    for (size_t i = 0; i < n; i++) {
        struct near_left left = {0};
        struct plan *other;
        cr_assert(i == 0 || uses[i].cost <= uses[i - 1].cost);
        OK(near_leave(&left, near, s.planner->plan, uses[i].key, &s.err));
        cr_assert_geq(left.n, uses[i].uses);
        const int status = near_plan(&other, near, &left, &s.err);
        cr_assert(status == STRATA_OK || status == STRATA_EPLAN, "%s", s.err.message);
        if (status == STRATA_OK) {
            found++;
            cr_expect(other->proved);
            cr_expect_geq(other->cost, s.planner->plan->cost);
            OK(near_uses(&others, &n_others, near, other, &s.err));
            cr_expect_eq(sum_of(s.planner, other, others, n_others), other->cost);
            cr_expect_eq(uses_of(others, n_others, uses[i].key), 0, "%s", uses[i].key);
            free(others);
        }
        plan_free(other);
        near_free_left(&left);
    }
    cr_expect_gt(found, 0);
    cr_expect_eq(r.asked, 0);
    free(uses);
    OK(near_close(near, &s.err));
    close_planned(&s, &base);
}

/* One way behind the other of one thing, each dearer than the last, until none is left.
 */
Test(near, ways_are_left_one_behind_the_other)
{
    struct planning s;
    struct cost_table base;
    struct near *near;
    struct near_use *uses, use;
    struct near_left left = {0};
    struct plan *other = NULL;
    size_t n, steps = 0;
    open_planned(&s, &base, true);
    int64_t cost = s.planner->plan->cost;
    struct replay r = replay_of(&base);
    OK(near_open(&near, s.planner, &r.source, &s.err));
    OK(near_uses(&uses, &n, near, s.planner->plan, &s.err));
    OK(near_leave(&left, near, s.planner->plan, uses[0].key, &s.err));
    while (near_plan(&other, near, &left, &s.err) == STRATA_OK) {
        const size_t before = left.n;
        cr_assert_geq(other->cost, cost);
        cost = other->cost;
        near_instead(&use, near, other, &left);
        OK(near_leave_more(&left, near, other, &s.err));
        cr_assert_gt(left.n, before);
        cr_assert_gt(use.uses, 0);
        plan_free(other);
        steps++;
    }
    cr_expect_null(other);
    cr_expect_gt(steps, 1);
    near_free_left(&left);
    free(uses);
    OK(near_close(near, &s.err));
    close_planned(&s, &base);
}

Test(near, what_a_plan_needs_is_measured_and_known_afterwards)
{
    struct planning s;
    struct cost_table base;
    struct near *near;
    struct near_use *uses;
    size_t n;
    open_planned(&s, &base, false);
    const struct cost_report report = s.planner->costs;
    const size_t known = s.planner->known.n;
    struct replay r = replay_of(&base);
    r.source.confirms = true;
    cr_assert_lt(known, base.n);
    OK(near_open(&near, s.planner, &r.source, &s.err));
    OK(near_uses(&uses, &n, near, s.planner->plan, &s.err));
    for (size_t i = 0; i < n; i++) {
        struct near_left left = {0};
        struct plan *other;
        OK(near_leave(&left, near, s.planner->plan, uses[i].key, &s.err));
        near_plan(&other, near, &left, &s.err);
        plan_free(other);
        near_free_left(&left);
    }
    cr_assert_gt(r.asked, 0);
    cr_expect_eq(s.planner->known.n, known);
    free(uses);
    OK(near_close(near, &s.err));
    cr_expect_gt(s.planner->known.n, known);
    for (size_t i = 0; i < s.planner->known.n; i++) {
        const struct cost_entry *e = &s.planner->known.entries[i];
        cr_expect_eq(e->cost.ns, cost_table_find(&base, e->key)->ns, "%s", e->key);
    }
    cr_expect_eq(s.planner->costs.measured, report.measured);
    cr_expect_eq(s.planner->costs.solved, report.solved);
    close_planned(&s, &base);
}

Test(near, a_plan_that_is_settled_is_proved_without_what_it_leaves)
{
    struct planning s;
    struct cost_table base;
    struct near *near;
    struct near_use *uses;
    struct near_left left = {0};
    struct plan *other;
    struct plan_certificate *certificate;
    size_t n;
    open_planned(&s, &base, true);
    struct replay r = replay_of(&base);
    OK(planner_note_fusions(s.planner, &s.err));
    OK(near_open(&near, s.planner, &r.source, &s.err));
    OK(near_uses(&uses, &n, near, s.planner->plan, &s.err));
    OK(near_leave(&left, near, s.planner->plan, uses[0].key, &s.err));
    OK(near_plan(&other, near, &left, &s.err));
    const int64_t cost = other->cost;
    OK(near_settle(near, other, &left, &s.err));
    cr_expect_eq(s.planner->plan, other);
    cr_expect_eq(s.planner->plan_options.n_bans, left.n);
    const struct plan_problem *p = &s.planner->model->problem;
    OK(plan_certify(&certificate, p, &s.planner->plan_options, other, &s.err));
    OK(plan_check(p, &s.planner->plan_options, certificate, &s.err));
    plan_certificate_free(certificate);
    OK(near_plan(&other, near, &(struct near_left){0}, &s.err));
    cr_expect_eq(other->cost, cost, "the ways are left for good");
    plan_free(other);
    near_free_left(&left);
    free(uses);
    OK(near_close(near, &s.err));
    close_planned(&s, &base);
}
