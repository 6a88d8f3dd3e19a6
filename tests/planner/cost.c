/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans from measured and recorded costs, on real modules and on one of known times.
 */
#include "tests/broken/build.h"
#include "tests/planner/costing.h"

TestSuite(cost, .init = open_folder, .fini = close_folder, .timeout = 600);

/* ---- measuring ----------------------------------------------------------------------
 */

static void write_waits(void)
{
    build("timed.so", "modules/timed_layers.c", SHARED);
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = b\n[input x]\nshape = 1 x 2 x 4 x 4\n"
          "[layer a]\ntype = Wait\n[layer b]\ntype = Wait\n",
          f);
    fclose(f);
}

Test(cost, measured_times_are_those_of_the_impls_and_the_faster_wins)
{
    const char *files[] = {in_scratch("timed.so")};
    strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    struct planning s;
    struct cost_table t;
    write_waits();
    open(&s, &from);
    const struct planner_candidate *slow = NULL, *fast = NULL;
    for (size_t i = 0; i < s.planner->model->n_candidates; i++) {
        const struct planner_candidate *c = &s.planner->model->candidates[i];
        if (c->reason || !c->impl)
            continue;
        *(strcmp(c->impl->impl.name, "slow") ? &fast : &slow) = c;
    }
    cr_assert(slow && fast && slow->cost <= fast->cost, "as the slow one claims");
    record(&s, &t);
    for (size_t i = 0; i < t.n; i++) {
        const struct cost_entry *e = &t.entries[i];
        cr_assert_gt(e->cost.ns, 0);
        cr_assert_gt(e->cost.runs, 0);
        if (strstr(e->key, " slow "))
            cr_assert_geq(e->cost.ns, 9000000, "%s", e->key);
        if (strstr(e->key, " fast "))
            cr_assert_geq(e->cost.ns, 150000, "%s", e->key);
    }
    for (size_t i = 0; i < s.planner->n_nodes; i++) {
        const struct plan_choice *c =
            plan_chosen(&s.planner->model->problem, s.planner->plan->choices, 1 + (int)i);
        cr_assert_str_eq(s.planner->model->candidates[c->impl].impl->impl.name, "fast");
    }
    cost_table_free(&t);
    planning_close(&s);
}

static uint64_t state = 5;

static int64_t draw(int64_t n)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

Test(cost, on_demand_asks_for_less_and_plans_as_well_as_everything)
{
    struct planning s;
    struct cost_table base, empty;
    struct cost_report all, some;
    size_t asked = 0, exist = 0;
    write_fire("n");
    open(&s, NULL);
    record(&s, &base);
    for (int round = 0; round < 40; round++) {
        for (size_t i = 0; i < base.n; i++)
            base.entries[i].cost.ns += draw(8) * draw(200000);
        struct cost_options o = {.kind = COSTS_MEASURE, .everything = true};
        struct replay full = replay_of(&base), part = replay_of(&base);
        cost_table_init(&empty, "host");
        cr_assert_eq(plan(&s, &empty, &full.source, o, &all), STRATA_OK);
        int64_t best = s.planner->plan->cost;
        cost_table_free(&empty);
        cost_table_init(&empty, "host");
        o.everything = false;
        cr_assert_eq(plan(&s, &empty, &part.source, o, &some), STRATA_OK);
        cr_assert(some.complete);
        cr_assert_eq(s.planner->plan->cost, best, "round %d: %lld, %lld", round,
                     (long long)s.planner->plan->cost, (long long)best);
        cr_assert_leq(part.asked, full.asked);
        cr_assert_eq(some.measured, part.asked);
        asked += part.asked;
        exist += full.asked;
        cost_table_free(&empty);
        for (size_t i = 0; i < base.n; i++) /* not ever slower */
            base.entries[i].cost.ns = base.entries[i].cost.ns > 2000000
                                          ? base.entries[i].cost.ns / 16 + 1000
                                          : base.entries[i].cost.ns;
    }
    cr_assert_lt(asked, exist);
    cost_table_free(&base);
    planning_close(&s);
}

static int refuse_to_run(const strata_run *r)
{
    return STRATA_FAIL(r, STRATA_EDEVICE, "no such kernel");
}

static void count_warnings(void *user, int level, const char *text)
{
    if (level == STRATA_LOG_WARNING && strstr(text, "no such kernel"))
        ++*(int *)user;
}

/* The plan is then made of others. */
Test(cost, an_impl_that_fails_while_it_is_measured_is_avoided_and_told_of)
{
    struct planning s;
    struct cost_table t;
    struct cost_report report;
    struct cost_device device;
    struct cost_options o = {.kind = COSTS_MEASURE, .everything = true};
    int warnings = 0;
    write_fire("n");
    open(&s, NULL);
    const struct planner_model *m = s.planner->model;
    struct registry_impl *broken = NULL;
    for (size_t i = 0; i < m->n_candidates && !broken; i++)
        if (m->candidates[i].impl && !m->candidates[i].reason &&
            s.planner->nodes[m->candidates[i].node].layer->type->n_impls > 1)
            broken = (struct registry_impl *)m->candidates[i].impl;
    cr_assert_not_null(broken);
    broken->impl.run = refuse_to_run;
    cost_table_init(&t, "host");
    cost_device_init(&device, handle);
    strata_set_logger(count_warnings, &warnings, STRATA_LOG_WARNING);
    int status = plan(&s, &t, &device.source, o, &report);
    strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
    cr_assert_eq(status, STRATA_OK, "%s", s.err.message);
    cr_expect_gt(warnings, 0);
    for (size_t op = 0; op < m->problem.n_ops; op++) {
        const struct plan_choice *c =
            &m->problem.ops[op].choices[s.planner->plan->choices[op]];
        cr_expect(c->impl < 0 || m->candidates[c->impl].impl != broken, "operation %zu",
                  op);
    }
    cost_table_free(&t);
    planning_close(&s);
}

Test(cost, what_was_measured_before_an_interruption_is_kept_and_gone_on_from)
{
    struct planning s;
    struct cost_table base, kept;
    struct cost_report report;
    struct cost_options o = {.kind = COSTS_MEASURE};
    write_fire("n");
    open(&s, NULL);
    record(&s, &base);
    struct replay r = replay_of(&base);
    cost_table_init(&kept, "host");
    cr_assert_eq(plan(&s, &kept, &r.source, o, &report), STRATA_OK);
    size_t needed = r.asked;
    int64_t best = s.planner->plan->cost;
    cost_table_free(&kept);
    cr_assert_gt(needed, 3);
    for (size_t stop = 1; stop < needed; stop++) {
        r = replay_of(&base);
        r.stop_after = stop;
        cost_table_init(&kept, "host");
        cr_assert_eq(plan(&s, &kept, &r.source, o, &report), STRATA_EBUSY);
        cr_assert_eq(kept.n, stop);
        progress_enable(false);
        r.stop_after = 0;
        cr_assert_eq(plan(&s, &kept, &r.source, o, &report), STRATA_OK);
        cr_assert_eq(kept.n, r.asked, "nothing is asked for twice");
        cr_assert_eq(s.planner->plan->cost, best);
        cost_table_free(&kept);
    }
    cost_table_free(&base);
    planning_close(&s);
}

Test(cost, a_budget_ends_measuring_with_a_plan_that_says_so)
{
    struct planning s;
    struct cost_table t;
    struct cost_report report;
    struct cost_device device;
    write_fire("n");
    open(&s, NULL);
    cost_table_init(&t, "host");
    cost_device_init(&device, handle);
    cr_assert_eq(plan(&s, &t, &device.source,
                      (struct cost_options){.kind = COSTS_MEASURE, .budget = 1}, &report),
                 STRATA_OK);
    cr_assert_not(report.complete);
    cr_assert_not_null(s.planner->plan);
    cr_assert_eq(report.measured, 0);
    /* The next plan of the same engine has none of its own, however long it may be. */
    const uint64_t hour = UINT64_C(3600000000000);
    cr_assert_eq(plan(&s, &t, &device.source,
                      (struct cost_options){.kind = COSTS_MEASURE, .budget = hour},
                      &report),
                 STRATA_OK);
    cr_assert_not(report.complete);
    cr_assert_eq(report.measured, 0);
    cost_table_free(&t);
    planning_close(&s);
}

/* ---- a busy machine -------------------------------------------------------------------
 */

/* A table as a machine tells it that takes so many times as long. */
static void slow_down(struct cost_table *to, const struct cost_table *from, int times,
                      bool loaded)
{
    cost_table_init(to, from->device);
    for (size_t i = 0; i < from->n; i++) {
        struct cost c = from->entries[i].cost;
        c.ns *= times;
        c.loaded = loaded;
        cr_assert_eq(cost_table_put(to, from->entries[i].key, c, NULL), STRATA_OK);
    }
}

Test(cost, what_a_busy_machine_told_is_asked_again_by_the_next_build)
{
    struct planning s;
    struct cost_table base, busy, t;
    struct cost_report report;
    const struct cost_options o = {.kind = COSTS_MEASURE};
    write_fire("n");
    open(&s, NULL);
    record(&s, &base);
    slow_down(&busy, &base, 10, true);
    cost_table_init(&t, "host");
    struct replay loaded = replay_of(&busy), quiet = replay_of(&base);
    loaded.source.confirms = quiet.source.confirms = true;
    cr_assert_eq(plan(&s, &t, &loaded.source, o, &report), STRATA_OK);
    const size_t known = cost_table_loaded(&t);
    cr_assert_eq(known, t.n);
    cr_expect_eq(report.mended, 0);
    /* What is known is not measured, but for what the plan uses, once: still no quiet
     * moment; then one. */
    loaded.asked = 0;
    cr_assert_eq(plan(&s, &t, &loaded.source, o, &report), STRATA_OK);
    cr_expect(report.complete);
    cr_expect_eq(report.measured, 0);
    cr_expect_lt(loaded.asked, known);
    cr_expect_eq(cost_table_loaded(&t), known);
    cr_assert_eq(plan(&s, &t, &quiet.source, o, &report), STRATA_OK);
    cr_expect_gt(report.mended, 0);
    cr_expect_eq(cost_table_loaded(&t) + report.mended, known);
    /* And nothing is asked where all is known of quiet moments. */
    cost_table_free(&t);
    slow_down(&t, &base, 1, false);
    quiet.asked = 0;
    cr_assert_eq(plan(&s, &t, &quiet.source, o, &report), STRATA_OK);
    cr_expect_eq(quiet.asked, 0);
    cost_table_free(&t);
    cost_table_free(&busy);
    cost_table_free(&base);
    planning_close(&s);
}

Test(cost, a_quiet_time_stays_whatever_a_busy_one_says)
{
    const struct cost quiet = {.ns = 90, .runs = 1};
    const struct cost busy = {.ns = 10, .runs = 9, .loaded = true};
    cr_expect(cost_is_better(&quiet, &busy));
    cr_expect_not(cost_is_better(&busy, &quiet));
}

/* Where time is over the model fills in, as slow as the machine is. */
Test(cost, what_was_measured_does_not_lose_to_a_model_of_a_faster_machine)
{
    struct planning s;
    struct cost_table base, slow, part;
    struct cost_report report;
    write_fire("n");
    open(&s, NULL);
    record(&s, &base);
    slow_down(&slow, &base, 1000, false);
    struct replay replay = replay_of(&slow);
    cost_table_init(&part, "host");
    cr_assert_eq(plan(&s, &slow, &replay.source,
                      (struct cost_options){.kind = COSTS_MEASURE}, &report),
                 STRATA_OK);
    const int64_t best = s.planner->plan->cost;
    for (size_t i = 0; i < slow.n; i += 2)
        cr_assert_eq(
            cost_table_put(&part, slow.entries[i].key, slow.entries[i].cost, NULL),
            STRATA_OK);
    cr_assert_eq(plan(&s, &part, &replay.source,
                      (struct cost_options){.kind = COSTS_MEASURE, .budget = 1}, &report),
                 STRATA_OK);
    cr_expect_not(report.complete);
    cr_expect_gt(s.planner->plan->cost, best / 10, "%lld, %lld",
                 (long long)s.planner->plan->cost, (long long)best);
    cost_table_free(&part);
    cost_table_free(&slow);
    cost_table_free(&base);
    planning_close(&s);
}

/* Ten layers of other shapes each. */
static void write_many_waits(void)
{
    build("timed.so", "modules/timed_layers.c", SHARED);
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = l0", f);
    for (int i = 1; i < 10; i++)
        fprintf(f, ", l%d", i);
    for (int i = 0; i < 10; i++)
        fprintf(f,
                "\n[input x%d]\nshape = 1 x 2 x 400 x %d\n[layer l%d]\ntype = Wait\n"
                "inputs = x%d\n",
                i, 400 + i, i, i);
    fclose(f);
}

/* What the impls of waits take, and what a source says that has no time left. */
static int tell_waits(struct cost_source *source, const struct planner *planner,
                      const struct cost_query *const *queries, const int64_t *best,
                      size_t n, struct cost *out, strata_error *err)
{
    (void)source;
    (void)planner;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct cost){.ns = strstr(queries[i]->key, " slow ") ? 9000000 : 150000,
                               .runs = 1};
    return STRATA_OK;
}

static int tell_nothing(struct cost_source *source, const struct planner *planner,
                        const struct cost_query *const *queries, const int64_t *best,
                        size_t n, struct cost *out, strata_error *err)
{
    (void)source;
    (void)planner;
    (void)queries;
    (void)best;
    (void)n;
    (void)out;
    (void)err;
    return STRATA_OK;
}

Test(cost, an_impl_is_modelled_as_fast_as_it_was_measured_elsewhere)
{
    struct planning s;
    struct cost_table all, part;
    struct cost_report report;
    struct cost_source told = {.measure = tell_waits}, silent = {.measure = tell_nothing};
    write_many_waits();
    const char *files[] = {in_scratch("timed.so")};
    strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    open(&s, &from);
    cost_table_init(&all, "host");
    cost_table_init(&part, "host");
    cr_assert_eq(plan(&s, &all, &told,
                      (struct cost_options){.kind = COSTS_MEASURE, .everything = true},
                      &report),
                 STRATA_OK);
    for (size_t i = 0; i < all.n; i++) {
        const struct cost_entry *e = &all.entries[i];
        if (!strstr(e->key, " fast ") || !strstr(e->key, "1x2x400x405"))
            cr_assert_eq(cost_table_put(&part, e->key, e->cost, NULL), STRATA_OK);
    }
    cr_assert_lt(part.n, all.n);
    cr_assert_eq(plan(&s, &part, &silent,
                      (struct cost_options){.kind = COSTS_MEASURE, .budget = 1}, &report),
                 STRATA_OK);
    for (size_t i = 0; i < s.planner->n_nodes; i++) {
        const struct plan_choice *c = plan_chosen(&s.planner->model->problem,
                                                  s.planner->plan->choices, 10 + (int)i);
        cr_expect_str_eq(s.planner->model->candidates[c->impl].impl->impl.name, "fast");
    }
    cost_table_free(&part);
    cost_table_free(&all);
    planning_close(&s);
}

/* ---- files ----------------------------------------------------------------------------
 */

static void save(const struct cost_table *t)
{
    strata_error err = {0};
    cr_assert_eq(cost_table_write(t, costs, &err), STRATA_OK, "%s", err.message);
}

Test(cost, a_missing_cost_is_an_error_with_key_and_remedy_or_is_filled_in)
{
    static const struct {
        const char *set[2];
        int status;
    } cases[] = {
        {{"build.costs=net.costs", "build.costs_miss=error"}, STRATA_ENOTFOUND},
        {{"build.costs=net.costs", "build.costs_miss=analytic"}, STRATA_OK},
        {{"build.costs=net.costs", "build.costs_miss=measure"}, STRATA_OK},
        {{"build.costs=net.costs", "build.costs=net.costs"}, STRATA_ENOTFOUND},
    };
    struct cost_table t;
    write_fire("n");
    cost_table_init(&t, "host");
    save(&t);
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        struct cost_device device;
        cost_device_init(&device, handle);
        int status = load(&s, NULL, cases[i].set, 2);
        if (status == STRATA_OK)
            status = planning_make(&s, &device.source);
        cr_assert_eq(status, cases[i].status, "case %zu: %s", i, s.err.message);
        if (status != STRATA_OK) {
            cr_expect(strstr(s.err.message, "run core::"), "%s", s.err.message);
            cr_expect(strstr(s.err.message, " threads=1"), "%s", s.err.message);
            cr_expect(strstr(s.err.message, "--save-costs"), "%s", s.err.message);
        } else {
            cr_expect_eq(s.planner->costs.measured > 0, i == 2);
        }
        planning_close(&s);
    }
}

Test(cost, bad_options_are_refused_with_their_line)
{
    static const struct {
        const char *set, *says;
    } cases[] = {
        {"build.costs=missing.costs", "missing.costs"},
        {"build.costs=/etc/passwd", "/etc/passwd"},
        {"build.costs=../x.costs", "x.costs"},
        {"build.costs_miss=perhaps", "error"},
        {"build.costs_budget=soon", "soon"},
        {"build.trials=often", "often"},
    };
    write_fire("n");
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        cr_expect_neq(load(&s, NULL, &cases[i].set, 1), STRATA_OK, "%s", cases[i].set);
        cr_expect(strstr(s.err.message, cases[i].says), "%s", s.err.message);
        planning_close(&s);
    }
}
