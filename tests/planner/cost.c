/* SPDX-License-Identifier: Apache-2.0
 *
 * Plans from measured and recorded costs, on real modules and on one of known times.
 */
#include "core/handle.h"
#include "planner/cost/progress.h"
#include "tests/broken/build.h"
#include "tests/planner/planning.h"

static char net[300], costs[300];
static strata_handle *handle; /* what measures */

static void open_folder(void)
{
    scratch_make();
    cr_assert_eq(strata_create(&handle, "host", NULL), STRATA_OK);
    snprintf(net, sizeof net, "%s/net.ini", scratch);
    snprintf(costs, sizeof costs, "%s/net.costs", scratch);
}

static void close_folder(void)
{
    progress_enable(false);
    strata_destroy(handle);
    scratch_remove();
}

TestSuite(cost, .init = open_folder, .fini = close_folder, .timeout = 600);

/* One fire module of SqueezeNet, under names that start with `name`. */
static void write_fire(const char *name)
{
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fprintf(f,
            "[network]\nformat = 1\noutputs = %1$s_pool\n[runtime]\nthreads = 1\n"
            "[input %1$s_x]\nshape = 1 x 3 x 30 x 30\n[weights w]\nrandom = 1\n"
            "[layer %1$s_a]\ntype = Convolution\nfilters = 16\nkernel = 3x3\n"
            "weights = w:a\n"
            "[layer %1$s_b]\ntype = Convolution\nfilters = 24\nkernel = 1x1\n"
            "inputs = %1$s_a\nweights = w:b\n"
            "[layer %1$s_c]\ntype = Convolution\nfilters = 24\nkernel = 3x3\npad = 1\n"
            "inputs = %1$s_a\nweights = w:c\n"
            "[layer %1$s_cat]\ntype = Concatenation\ninputs = %1$s_b, %1$s_c\n"
            "[layer %1$s_d]\ntype = Convolution\nfilters = 24\nkernel = 1x1\n"
            "inputs = %1$s_a\nweights = w:b\n"
            "[layer %1$s_sum]\ntype = Concatenation\ninputs = %1$s_d, %1$s_cat\n"
            "[layer %1$s_pool]\ntype = Pooling\nkind = max\nkernel = 2x2\nstride = 2\n",
            name);
    fclose(f);
}

static int load(struct planning *s, const strata_registry_options *from,
                const char *const *set, size_t n_set)
{
    int status = planning_load(s, net, from, set, n_set);
    s->device = (struct planner_device){handle->properties, handle->math};
    return status;
}

/* A problem that is ready to be solved. */
static void open(struct planning *s, const strata_registry_options *from)
{
    int status = load(s, from, NULL, 0);
    if (status == STRATA_OK)
        status = planning_model(s);
    cr_assert_eq(status, STRATA_OK, "%s", s->err.message);
}

static int plan(struct planning *s, struct cost_table *t, struct cost_source *source,
                struct cost_options o, struct cost_report *report)
{
    error_clear(&s->err);
    int status = cost_plan_from(s->planner, t, source, &o, &s->err);
    *report = s->planner->costs;
    return status;
}

/* Everything that the device can say about a problem. */
static void record(struct planning *s, struct cost_table *t)
{
    struct cost_report report;
    struct cost_device device;
    cost_table_init(t, "host");
    cost_device_init(&device, handle);
    cr_assert_eq(plan(s, t, &device.source,
                      (struct cost_options){.kind = COSTS_MEASURE, .everything = true},
                      &report),
                 STRATA_OK, "%s", s->err.message);
    cr_assert(report.complete);
    cr_assert_eq(report.measured, report.queries);
    cr_assert_eq(t->n, report.queries);
}

/* A sum of a tensor with itself, and one of that with another. */
static void write_sums(void)
{
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = other\n[runtime]\nthreads = 1\n"
          "[build]\nfusion = no\n[input x]\nshape = 1 x 3 x 8 x 8\n"
          "[layer a]\ntype = Activation\nkind = tanh\n"
          "[layer twice]\ntype = ElementWise\nop = sum\ninputs = a, a\n"
          "[layer other]\ntype = ElementWise\nop = product\ninputs = a, twice\n",
          f);
    fclose(f);
}

/* ---- keys ------------------------------------------------------------------------- */

/* What was measured in one mode says nothing of another. */
Test(cost, keys_hold_the_math_mode)
{
    static const char *const modes[] = {" math=default ", " math=tensor_op ",
                                        " math=tf32 "};
    struct planning s;
    struct cost_query q;
    size_t i = 0;
    write_fire("quagga");
    open(&s, NULL);
    const struct planner_model *model = s.planner->model;
    while (model->candidates[i].reason || !model->candidates[i].impl)
        i++;
    for (int m = 0; m < (int)ARRAY_LENGTH(modes); m++) {
        s.planner->math = m;
        cr_assert_eq(cost_query_run(&q, s.planner, &model->candidates[i], &s.err),
                     STRATA_OK);
        cr_expect(strstr(q.key, modes[m]), "%s", q.key);
        free(q.key);
    }
    planning_close(&s);
}

Test(cost, keys_hold_no_names_and_equal_layers_share_them)
{
    struct planning s;
    char *first[1000];
    size_t n = 0;
    for (int round = 0; round < 2; round++) {
        write_fire(round ? "zebra" : "quagga");
        open(&s, NULL);
        const struct planner_model *m = s.planner->model;
        size_t usable = 0, shared = 0;
        for (size_t i = 0; i < m->n_candidates; i++) {
            struct cost_query q;
            if (m->candidates[i].reason || !m->candidates[i].impl)
                continue;
            cr_assert_eq(cost_query_run(&q, s.planner, &m->candidates[i], &s.err),
                         STRATA_OK);
            cr_assert_null(strstr(q.key, "zebra"), "%s", q.key);
            cr_assert_null(strstr(q.key, "quagga"), "%s", q.key);
            cr_assert_lt(usable, ARRAY_LENGTH(first));
            if (round == 0)
                first[usable] = duplicate(q.key, NULL);
            else
                cr_assert_str_eq(q.key, first[usable]);
            for (size_t k = 0; k < usable && round == 0; k++)
                shared += strcmp(first[k], first[usable]) == 0;
            usable++;
            cost_query_free(&q);
        }
        cr_assert(round == 1 || shared > 0, "layers b and d are equal");
        n = usable;
        planning_close(&s);
    }
    while (n > 0)
        free(first[--n]);
}

/* Which an impl reads but once from memory; both ports are timed with one. */
Test(cost, keys_say_which_ports_read_one_tensor)
{
    struct planning s;
    struct cost_table t;
    size_t sums = 0;
    write_sums();
    open(&s, NULL);
    record(&s, &t);
    for (size_t i = 0; i < t.n; i++) {
        const char *key = t.entries[i].key;
        const bool one = strstr(key, " in1=in0 ") != NULL;
        cr_expect(!one || strstr(key, "op:sum"), "%s", key);
        cr_expect(!strstr(key, "op:product") || !one, "%s", key);
        sums += one;
    }
    cr_expect_gt(sums, 0);
    cost_table_free(&t);
    planning_close(&s);
}

static bool lie_alike(const struct planning *s, int tensor, int a, int b)
{
    strata_desc x, y;
    return planner_desc(&x, s->network, tensor, a, NULL) == STRATA_OK &&
           planner_desc(&y, s->network, tensor, b, NULL) == STRATA_OK &&
           strata_desc_equal(&x, &y);
}

/* Of one impl and row. */
static void compare_keys(struct planning *s, const struct planner_candidate *a,
                         const struct planner_candidate *b, size_t *alike)
{
    const struct planner_node *n = &s->planner->nodes[a->node];
    struct cost_query x, y;
    if (a->impl != b->impl || a->row != b->row || a->fused != b->fused ||
        a->homed != b->homed)
        return;
    const bool same = lie_alike(s, n->in[0], a->in_formats[0], b->in_formats[0]) &&
                      lie_alike(s, n->out[0], a->out_formats[0], b->out_formats[0]);
    cr_assert_eq(cost_query_run(&x, s->planner, a, &s->err), STRATA_OK);
    cr_assert_eq(cost_query_run(&y, s->planner, b, &s->err), STRATA_OK);
    cr_expect_eq(strcmp(x.key, y.key) == 0, same, "%s\n%s", x.key, y.key);
    *alike += same;
    cost_query_free(&x);
    cost_query_free(&y);
}

/* Channels last with channels that need no pads is one memory by two names. */
Test(cost, keys_tell_formats_apart_where_memory_differs)
{
    static const char *const fp16[] = {"build.precision=fp16"};
    struct planning s;
    size_t alike = 0;
    FILE *f = fopen(net, "w");
    cr_assert_not_null(f);
    fputs("[network]\nformat = 1\noutputs = y\n[input x]\nshape = 1 x 16 x 5 x 6\n"
          "[layer y]\ntype = Activation\nkind = relu\n",
          f);
    fclose(f);
    cr_assert_eq(load(&s, NULL, fp16, 1), STRATA_OK, "%s", s.err.message);
    cr_assert_eq(planning_model(&s), STRATA_OK, "%s", s.err.message);
    const struct planner_model *m = s.planner->model;
    for (size_t i = 0; i < m->n_candidates; i++)
        for (size_t k = 0; k < i; k++)
            if (m->candidates[i].impl && !m->candidates[i].reason &&
                m->candidates[k].impl && !m->candidates[k].reason)
                compare_keys(&s, &m->candidates[i], &m->candidates[k], &alike);
    cr_expect_gt(alike, 0);
    planning_close(&s);
}

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

/* A recording that plays the device. */
struct replay {
    struct cost_source source;
    const struct cost_table *table;
    size_t asked;
    size_t stop_after; /* then interrupt; 0: never */
};

static int replay_measure(struct cost_source *source, const struct planner *planner,
                          const struct cost_query *const *queries, const int64_t *best,
                          size_t n, struct cost *out, strata_error *err)
{
    struct replay *r = (struct replay *)source;
    (void)planner;
    (void)best;
    (void)err;
    for (size_t i = 0; i < n && !progress_interrupted(); i++) {
        const struct cost *c = cost_table_find(r->table, queries[i]->key);
        cr_assert_not_null(c, "%s", queries[i]->key);
        out[i] = *c;
        if (++r->asked == r->stop_after)
            progress_interrupt();
    }
    return STRATA_OK;
}

static struct replay replay_of(const struct cost_table *t)
{
    return (struct replay){.source = {.name = "replay", .measure = replay_measure},
                           .table = t};
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
    cost_table_free(&t);
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
    };
    write_fire("n");
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        struct planning s;
        cr_expect_neq(load(&s, NULL, &cases[i].set, 1), STRATA_OK, "%s", cases[i].set);
        cr_expect(strstr(s.err.message, cases[i].says), "%s", s.err.message);
        planning_close(&s);
    }
}
