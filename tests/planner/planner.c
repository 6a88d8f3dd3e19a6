/* SPDX-License-Identifier: Apache-2.0
 *
 * Planning by itself: from a network, a description of a device and costs to a plan that
 * is printed, saved, read back and proved, without an engine, a handle or a device.
 */
#include <jansson.h>

#include "planner/certificate/certificate.h"
#include "planner/explain/explain.h"
#include "planner/record.h"
#include "planner/threads.h"
#include "tests/broken/build.h"
#include "tests/planner/planning.h"

TestSuite(planner, .init = scratch_make, .fini = scratch_remove, .timeout = 120);

/* Fused tails, a composed Shuffle, a concatenation in place, readers of two formats. */
static const char near_net[] =
    "[network]\nformat = 1\nname = near\noutputs = y, t\n"
    "[build]\nprecision = any\n[weights w]\nrandom = 1\n"
    "[input x]\nshape = 1 x 16 x 8 x 8\n"
    "[layer a]\ntype = Convolution\nfilters = 16\nkernel = 3\npad = 1\nweights = w:a\n"
    "[layer s]\ntype = Scale\nscale = w:s.scale\nshift = w:s.shift\nmode = channel\n"
    "[layer r]\ntype = Activation\nkind = relu\n"
    "[layer b]\ntype = Convolution\nfilters = 16\nkernel = 1\ninputs = r\nweights = w:b\n"
    "[layer cat]\ntype = Concatenation\ninputs = r, b\n"
    "[layer y]\ntype = Pooling\nkind = max\nkernel = 2\nstride = 2\n"
    "[layer f]\ntype = Shuffle\ninputs = b\nfirst = 0, 3, 2, 1\n"
    "[layer t]\ntype = Shuffle\nfirst = 0, 3, 2, 1\nshape = 1, 4, 32, 8\n"
    "second = 0, 2, 1, 3\n";

static const char far_net[] =
    "[network]\nformat = 1\nname = far\noutputs = c\n"
    "[build]\nprecision = any\ncosts = analytic\n"
    "[input x]\nshape = 2 x 12 x 32 x 32\n"
    "[layer a]\ntype = Plain\n[layer b]\ntype = Dense\n[layer c]\ntype = Plain\n";

static void open_near(struct planning *p, const char *set)
{
    const char *path = spill_text("near.ini", near_net);
    cr_assert_eq(planning_open(p, path, &set, set != NULL), STRATA_OK, "%s",
                 p->err.message);
}

static void load_far(struct planning *p, int sm)
{
    const char *files[] = {build("far.so", "modules/far_layers.c", SHARED)};
    const strata_registry_options from = {
        .struct_size = sizeof from, .files = files, .n_files = 1};
    int status = planning_load(p, spill_text("far.ini", far_net), &from, NULL, 0);
    cr_assert_eq(status, STRATA_OK, "%s", p->err.message);
    p->device = planning_host();
    p->device.properties.kind = STRATA_CUDA;
    p->device.properties.sm = sm;
    p->device.properties.cache_bytes = 50 << 20;
    snprintf(p->device.properties.name, sizeof p->device.properties.name, "far away");
}

static void open_far(struct planning *p)
{
    load_far(p, 90);
    cr_assert_eq(planning_make(p, NULL), STRATA_OK, "%s", p->err.message);
}

/* ---- made and proved --------------------------------------------------------------- */

static void expect_proof(const struct planner *planner)
{
    strata_error err = {0};
    const struct plan_problem *problem = &planner->model->problem;
    struct plan_certificate *c = NULL, *read = NULL;
    char *text = NULL;
    cr_expect(planner->plan->proved);
    cr_assert_eq(plan_certify(&c, problem, &planner->plan_options, planner->plan, &err),
                 STRATA_OK, "%s", err.message);
    cr_assert_eq(plan_certificate_write(&text, c, &err), STRATA_OK);
    cr_assert_eq(plan_certificate_read(&read, text, &err), STRATA_OK);
    cr_expect_eq(plan_check(problem, &planner->plan_options, read, &err), STRATA_OK, "%s",
                 err.message);
    read->objective--;
    cr_expect_neq(plan_check(problem, &planner->plan_options, read, &err), STRATA_OK);
    free(text);
    plan_certificate_free(c);
    plan_certificate_free(read);
}

Test(planner, plans_for_this_kind_of_device_are_proved)
{
    struct planning p;
    open_near(&p, NULL);
    expect_proof(p.planner);
    cr_expect_eq(p.execution->device, STRATA_HOST);
    cr_expect_eq(p.execution->cost, p.planner->plan->cost);
    planning_close(&p);
}

Test(planner, plans_for_a_device_that_is_not_here_are_made_of_its_impls)
{
    static const char *const impls[] = {"plain", "hopper", "plain"};
    struct planning p;
    size_t reformats = 0;
    open_far(&p);
    const struct execution *x = p.execution;
    cr_assert_eq(x->n_nodes, 3);
    for (size_t i = 0; i < 3; i++)
        cr_expect_str_eq(x->nodes[i].impl->impl.name, impls[i]);
    for (size_t i = 0; i < x->n_steps; i++)
        reformats += x->steps[i].kind == STEP_REFORMAT;
    cr_expect_eq(reformats, 2, "to the format of layer b and back");
    cr_expect_eq(x->sm, 90);
    cr_expect_eq(x->threads, 0, "those are of hosts");
    expect_proof(p.planner);
    planning_close(&p);
}

Test(planner, a_device_of_another_generation_has_another_plan_or_none)
{
    struct planning p;
    load_far(&p, 75);
    cr_assert_eq(planning_make(&p, NULL), STRATA_OK, "%s", p.err.message);
    cr_expect_str_eq(p.execution->nodes[1].impl->impl.name, "volta");
    cr_expect_eq(p.planner->plan->n_reformats, 0);
    planning_close(&p);
    load_far(&p, 80);
    cr_expect_eq(planning_make(&p, NULL), STRATA_EPLAN);
    cr_expect(strstr(p.err.message, "other compute capabilities"), "%s", p.err.message);
    cr_expect_null(p.planner);
    planning_close(&p);
}

/* ---- printed -------------------------------------------------------------------------
 */

Test(planner, a_report_is_printed_without_running_anything)
{
    struct planning p;
    struct explain *answers = NULL;
    open_far(&p);
    const struct planner *planner = p.planner;
    cr_assert_eq(explain_plan(&answers, &planner->model->problem, &planner->plan_options,
                              planner->plan, &p.err),
                 STRATA_OK, "%s", p.err.message);
    json_t *report = explain_json(planner, p.execution, answers, 0);
    json_t *device = json_object_get(report, "device");
    cr_expect_str_eq(json_string_value(json_object_get(device, "kind")), "cuda");
    cr_expect_str_eq(json_string_value(json_object_get(device, "name")), "far away");
    cr_assert_eq(answers->n_reformats, 2);
    char *why = explain_why(planner, &answers->reformats[0]);
    cr_expect_str_eq(why, "a writes {fp32:nchw}; b reads {fp16:nhwc8}: no common format");
    free(why);
    json_decref(report);
    explain_free(answers);
    planning_close(&p);
}

/* ---- on record -----------------------------------------------------------------------
 */

static int number_of(const void *registry, const struct module *m)
{
    for (size_t i = 0; i < registry_modules(registry); i++)
        if (registry_module_at(registry, i) == m)
            return (int)i;
    return -1;
}

static const struct module *module_at(const void *registry, int64_t number)
{
    return number >= 0 && (uint64_t)number < registry_modules(registry)
               ? registry_module_at(registry, (size_t)number)
               : NULL;
}

static struct record_modules modules_of(const struct planning *p)
{
    return (struct record_modules){p->registry, number_of, module_at};
}

/* The plan as text, the caller's to free. */
static char *record_text(const struct planning *p, const struct planner *planner)
{
    const struct record_modules modules = modules_of(p);
    struct execution *x = NULL;
    cr_assert_eq(execution_make(&x, planner, planner->plan, NULL), STRATA_OK);
    json_t *json = record_json(planner, x, &modules);
    execution_free(x);
    char *text = json_dumps(json, JSON_INDENT(1) | JSON_SORT_KEYS);
    json_decref(json);
    cr_assert_not_null(text);
    return text;
}

static int restore(struct planner **out, struct planning *p, const json_t *json)
{
    const struct record_modules modules = modules_of(p);
    struct record *record = NULL;
    error_clear(&p->err);
    *out = NULL;
    int status = record_read(&record, (json_t *)json, p->network, &modules, &p->err);
    return status == STRATA_OK
               ? planner_make_recorded(out, p->network, &p->device, record, &p->err)
               : status;
}

static void expect_same_values(const struct execution *a, const struct execution *b)
{
    cr_assert_eq(a->n_values, b->n_values);
    for (size_t i = 0; i < a->n_values; i++) {
        const struct execution_value *v = &a->values[i], *w = &b->values[i];
        cr_expect(v->tensor == w->tensor && v->format == w->format && v->pad == w->pad &&
                      v->binding == w->binding && v->alias == w->alias &&
                      v->begin == w->begin && v->offset == w->offset,
                  "value %zu", i);
    }
}

static void expect_same(const struct execution *a, const struct execution *b)
{
    cr_assert_eq(a->n_nodes, b->n_nodes);
    cr_assert_eq(a->n_steps, b->n_steps);
    for (size_t i = 0; i < a->n_nodes; i++) {
        const struct execution_node *n = &a->nodes[i], *o = &b->nodes[i];
        cr_expect_str_eq(n->name, o->name);
        cr_expect_str_eq(n->impl->impl.name, o->impl->impl.name);
        cr_expect(n->row == o->row && n->n_scales == o->n_scales &&
                      n->workspace == o->workspace &&
                      n->workspace_offset == o->workspace_offset,
                  "node %s", n->name);
    }
    for (size_t i = 0; i < a->n_steps; i++) {
        const struct execution_step *s = &a->steps[i], *t = &b->steps[i];
        cr_expect(s->kind == t->kind && s->node == t->node && s->from == t->from &&
                      s->to == t->to && s->cost == t->cost && s->reason == t->reason,
                  "step %zu", i);
    }
    expect_same_values(a, b);
    cr_expect_eq(a->cost, b->cost);
    cr_expect_eq(a->arena_bytes, b->arena_bytes);
}

/* Through text, as a file would hold it. */
static void expect_comes_back(struct planning *p)
{
    struct planner *again;
    struct execution *x;
    char *text = record_text(p, p->planner);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_eq(restore(&again, p, json), STRATA_OK, "%s", p->err.message);
    json_decref(json); /* the record has its own reference */
    cr_assert_eq(execution_make(&x, again, again->plan, &p->err), STRATA_OK, "%s",
                 p->err.message);
    expect_same(p->execution, x);
    char *second = record_text(p, again);
    json_t *a = json_loads(text, 0, NULL), *b = json_loads(second, 0, NULL);
    cr_expect(
        json_equal(json_object_get(a, "decisions"), json_object_get(b, "decisions")),
        "%s\n%s", text, second);
    json_decref(a);
    json_decref(b);
    free(text);
    free(second);
    execution_free(x);
    planner_free(again);
}

Test(planner, a_plan_comes_back_from_its_record)
{
    static const char *const sets[] = {NULL, "build.precision=fp32",
                                       "build.objective=reformats",
                                       "build.objective=memory", "build.fusion=no"};
    struct planning p;
    for (size_t i = 0; i < ARRAY_LENGTH(sets); i++) {
        open_near(&p, sets[i]);
        expect_comes_back(&p);
        planning_close(&p);
    }
    open_far(&p);
    expect_comes_back(&p);
    planning_close(&p);
}

/* Of each step, through text; a list of another length is none. */
Test(planner, costs_in_place_come_back)
{
    struct planning p;
    struct planner *again;
    struct execution *x;
    open_near(&p, NULL);
    const struct record_modules modules = modules_of(&p);
    for (size_t i = 0; i < p.execution->n_steps; i++)
        p.execution->in_place += p.execution->steps[i].in_place = (int64_t)i + 1;
    json_t *json = record_json(p.planner, p.execution, &modules);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(restore(&again, &p, json), STRATA_OK, "%s", p.err.message);
        cr_assert_eq(execution_make(&x, again, again->plan, &p.err), STRATA_OK);
        cr_expect_eq(x->in_place, round ? 0 : p.execution->in_place);
        for (size_t i = 0; i < x->n_steps; i++)
            cr_expect_eq(x->steps[i].in_place, round ? 0 : (int64_t)i + 1);
        execution_free(x);
        planner_free(again);
        json_array_append_new(json_object_get(json, "in_place"), json_integer(1));
    }
    json_array_set_new(json_object_get(json, "in_place"), 0, json_integer(-1));
    cr_expect_eq(restore(&again, &p, json), STRATA_EPARSE);
    cr_expect(strstr(p.err.message, "cost in place 0: out of range"), "%s",
              p.err.message);
    json_decref(json);
    planning_close(&p);
}

/* What is changed of the record of near_net, and what is said to it. */
static const struct {
    const char *key, *entry; /* of the first decision or conversion; NULL: all of them */
    json_int_t value;
    const char *says;
} damages[] = {
    {"decisions", "row", 900, "cannot run here"},
    {"decisions", "plugin", 9000, "plugin 9000: out of range"},
    {"decisions", "cost", -1, "out of range"},
    {"decisions", "fused", 1, "no module here brings that impl, row or fusion"},
    {"conversions", "cost", 0, "is not free"},
    {"conversions", NULL, 0, "no conversion makes what its readers want"},
    {"decisions", NULL, 0, "0 decisions for 8 layers"},
};

Test(planner, a_record_that_does_not_fit_is_refused)
{
    struct planning p;
    struct planner *again;
    open_near(&p, "build.formats=fp32:nhwc"); /* the input is not: it is converted */
    char *text = record_text(&p, p.planner);
    for (size_t i = 0; i < ARRAY_LENGTH(damages); i++) {
        json_t *json = json_loads(text, 0, NULL);
        json_t *list = json_object_get(json, damages[i].key);
        cr_assert_gt(json_array_size(list), 0, "%s", damages[i].key);
        if (damages[i].entry)
            json_object_set_new(json_array_get(list, 0), damages[i].entry,
                                json_integer(damages[i].value));
        else
            json_array_clear(list);
        cr_expect_neq(restore(&again, &p, json), STRATA_OK, "damage %zu", i);
        cr_expect_null(again);
        cr_expect(strstr(p.err.message, damages[i].says), "damage %zu: %s", i,
                  p.err.message);
        json_decref(json);
    }
    free(text);
    planning_close(&p);
}

/* ---- costs ---------------------------------------------------------------------------
 */

/* A device that takes the less time the later its key is in the alphabet. */
static int invent(struct cost_source *source, const struct planner *planner,
                  const struct cost_query *const *queries, const int64_t *best, size_t n,
                  struct cost *out, strata_error *err)
{
    (void)source, (void)planner, (void)best, (void)err;
    for (size_t i = 0; i < n; i++)
        out[i] = (struct cost){.ns = 30000 - 100 * queries[i]->key[4], .runs = 5};
    return STRATA_OK;
}

Test(planner, costs_of_a_file_make_the_plan_that_measuring_made)
{
    static const char *const measure[] = {"build.costs=measure", "build.save_costs=no"};
    static const char *const replay[] = {"build.costs=near.costs"};
    struct cost_source source = {.name = "invented", .measure = invent};
    struct planning measured, replayed;
    const char *path = spill_text("near.ini", near_net);
    cr_assert_eq(planning_load(&measured, path, NULL, measure, 1), STRATA_OK, "%s",
                 measured.err.message);
    cr_assert_eq(planning_make(&measured, &source), STRATA_OK, "%s",
                 measured.err.message);
    cr_expect(measured.planner->costs.complete);
    cr_expect_gt(measured.planner->costs.measured, 0);
    cr_assert_eq(cost_table_write(&measured.planner->known, in_scratch("near.costs"),
                                  &measured.err),
                 STRATA_OK);
    cr_assert_eq(planning_open(&replayed, path, replay, 1), STRATA_OK, "%s",
                 replayed.err.message);
    cr_expect_eq(replayed.planner->costs.measured, 0);
    expect_same(measured.execution, replayed.execution);
    planning_close(&replayed);
    planning_close(&measured);
}

Test(planner, without_anybody_who_measures_a_cost_that_is_missing_is_an_error)
{
    static const char *const set[] = {"build.costs=measure"};
    struct planning p;
    int status = planning_open(&p, spill_text("near.ini", near_net), set, 1);
    cr_expect_eq(status, STRATA_ENOTFOUND);
    cr_expect(strstr(p.err.message, "run core::"), "%s", p.err.message);
    planning_close(&p);
}

/* ---- what leaves ---------------------------------------------------------------------
 */

Test(planner, a_plan_of_another_planner_is_taken_as_it_is)
{
    struct planning p;
    struct planner *again;
    struct execution *x;
    open_near(&p, NULL);
    cr_assert_eq(planner_make_as(&again, p.network, &p.device, p.planner->plan, &p.err),
                 STRATA_OK, "%s", p.err.message);
    cr_assert_eq(execution_make(&x, again, again->plan, &p.err), STRATA_OK);
    expect_same(p.execution, x);
    execution_free(x);
    planner_free(again);
    planning_close(&p);
}

Test(planner, an_execution_outlives_its_planner)
{
    struct planning p;
    size_t fused = 0, composed = 0, scales = 0;
    open_near(&p, NULL);
    planner_free(p.planner);
    p.planner = NULL;
    const struct execution *x = p.execution;
    for (size_t i = 0; i < x->n_nodes; i++) {
        const struct execution_node *n = &x->nodes[i];
        fused += n->n_fused;
        scales += n->n_scales;
        composed += n->composed != NULL && n->params == n->composed &&
                    n->composed->shape.v[0] == 1;
        cr_expect_eq(strncmp(n->name, n->layer->name, strlen(n->layer->name)), 0);
    }
    cr_expect_eq(scales, 1);
    cr_expect_eq(composed, 1);
    cr_expect_geq(fused, 3, "a scale, an activation, a Shuffle");
    planning_close(&p);
}

/* ---- threads ----------------------------------------------------------------------- */

/* Of a ReLU of so many rows of 512, on a host of 4 processors. */
static int threads_of(int rows, const char *set)
{
    struct planning p;
    char text[256];
    snprintf(text, sizeof text,
             "[network]\nformat = 1\noutputs = y\n[input x]\nshape = %d x 512\n"
             "[layer y]\ntype = Activation\nkind = relu\n",
             rows);
    cr_assert_eq(planning_load(&p, spill_text("relu.ini", text), NULL, &set, set != NULL),
                 STRATA_OK, "%s", p.err.message);
    const int threads = threads_for(p.network, 4);
    planning_close(&p);
    return threads;
}

static void wait_by(const char *count, const char *policy)
{
    unsetenv("GOMP_SPINCOUNT");
    unsetenv("OMP_WAIT_POLICY");
    if (count)
        setenv("GOMP_SPINCOUNT", count, 1);
    if (policy)
        setenv("OMP_WAIT_POLICY", policy, 1);
}

Test(planner, a_team_that_sleeps_needs_more_work_for_a_thread)
{
    static const struct {
        const char *count, *policy, *set;
        bool sleeps;
    } cases[] = {
        {NULL, NULL, NULL, false},
        {NULL, NULL, "runtime.wait=spin", false},
        {NULL, NULL, "runtime.wait=sleep", true},
        {NULL, "passive", NULL, true},
        {NULL, "PASSIVE", "runtime.wait=spin", true},
        {NULL, "active", "runtime.wait=sleep", false},
        {"0", "active", NULL, true},
        {"300000", "passive", "runtime.wait=sleep", false},
        {"INFINITY", NULL, "runtime.wait=sleep", false},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
        wait_by(cases[i].count, cases[i].policy);
        cr_expect_eq(threads_of(1, cases[i].set), 1, "case %zu", i);
        cr_expect_eq(threads_of(512, cases[i].set) == 1, cases[i].sleeps, "case %zu", i);
        cr_expect_eq(threads_of(8192, cases[i].set), 4, "case %zu", i);
    }
    wait_by("0", NULL);
    cr_expect_eq(threads_of(512, "runtime.threads=3"), 3, "who asks gets them");
}
