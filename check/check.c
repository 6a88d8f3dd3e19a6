/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of tests, each held in a child process; what a child left behind becomes a
 * result, and what failed is tried again with smaller shapes.
 */
#include "check/check.h"

#include <strata/module.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/child.h"
#include "check/shrink.h"
#include "check/test/test.h"
#include "registry/module.h"

const struct check_test check_tests[] = {
    {"load", SCOPE_FILE, .run = check_load},
    {"attributes", SCOPE_LAYER, .run = check_attributes},
    {"shapes", SCOPE_LAYER, .run = check_shapes},
    {"round-trip", SCOPE_LAYER, .run = check_round_trip},
    {"values", SCOPE_IMPLS, .run = check_values},
    {"memory", SCOPE_IMPLS, .run = check_memory},
    {"streams", SCOPE_IMPLS, .cuda_only = true, .run = check_streams},
    {"determinism", SCOPE_IMPLS, .run = check_determinism},
    {"concurrency", SCOPE_IMPLS, .run = check_concurrency},
    {"leaks", SCOPE_IMPLS, .run = check_leaks},
    {"errors", SCOPE_IMPLS, .run = check_errors},
    {0},
};

const char *check_test_name(size_t i)
{
    return i < ARRAY_LENGTH(check_tests) ? check_tests[i].name : NULL;
}

/* ---- in the test's process
 * -------------------------------------------------------------- */

/* Impls of the file, wherever the registry found the same build first. */
static bool wants(const struct registry_impl *impl, void *user)
{
    struct check_child *c = user;
    const struct module_info info = module_info(impl->module);
    const size_t skip = c->o->module ? strlen(REGISTRY_GIVEN) : 0;
    struct module *m = NULL;
    if (!cases_want(c, impl) || strlen(info.path) < skip)
        return false;
    bool same = strcmp(info.path + skip, c->o->file) == 0;
    if (!same && !c->o->module && info.build_id[0] &&
        module_open(&m, c->o->file, 0, NULL) == STRATA_OK)
        same = strcmp(m->result.build_id, info.build_id) == 0;
    module_free(m);
    return same && (!c->o->impl || strcmp(c->o->impl, impl->impl.name) == 0);
}

static int open_registry(struct check_child *c, strata_error *err)
{
    const char *files[17] = {c->o->file};
    size_t n = c->o->module ? 0 : 1;
    for (size_t i = 0; i < c->o->n_others && n < ARRAY_LENGTH(files); i++)
        files[n++] = c->o->others[i];
    const strata_registry_options options = {.struct_size = sizeof options,
                                             .files = files,
                                             .n_files = n,
                                             .search_path = c->o->plugin_path,
                                             .allow_untrusted = c->o->allow_untrusted};
    snprintf(c->report->place.phase, HARNESS_PHASE, "loading");
    int status = strata_registry_create(&c->registry, &options, err);
    if (status == STRATA_OK && c->o->module)
        status = strata_registry_add(c->registry, c->o->file, c->o->module, err);
    if (status == STRATA_OK)
        status = registry_find(c->registry, c->layer_name, &c->layer, err);
    c->report->place.phase[0] = '\0';
    return status;
}

/* false: skip says why, or a finding. */
static bool open_child(struct check_child *c)
{
    strata_error err = {0};
    const int opened = open_registry(c, &err);
    if (opened != STRATA_OK) {
        check_found(c, "refused", "%s%s", err.message,
                    opened == STRATA_ENOTFOUND
                        ? "\nA layer that the file extends must be found, too: name its "
                          "file with --plugin, or its folder with --plugin-path"
                        : "");
        return false;
    }
    if (c->layer->n_weights > HARNESS_WEIGHTS ||
        c->layer->layer.min_in > HARNESS_INPUTS) {
        snprintf(c->report->skip, sizeof c->report->skip,
                 "the layer has more than %d inputs or weights", HARNESS_INPUTS);
        return false;
    }
    if (strncmp(c->device, "cuda", 4) == 0) {
        int status = strata_create(&c->handle, c->device, &err);
        if (status != STRATA_OK) {
            copy_text(c->report->skip, sizeof c->report->skip, err.message);
            return false;
        }
        if (mirror_open(&c->mirror, c->handle, false, &err) != STRATA_OK) {
            check_found(c, "untested", "no memory for tests: %s", err.message);
            return false;
        }
        c->target.mirror = &c->mirror;
        c->before.variables = 0; /* a device's own libraries may set some */
    }
    c->target.formats = c->o->formats;
    c->target.wants = wants;
    c->target.place = check_place_at;
    c->target.problem = check_problem;
    c->target.user = c;
    c->target.phase = c->report->place.phase;
    return cases_find(c);
}

static void close_child(struct check_child *c)
{
    if (c->target.mirror)
        mirror_close(&c->mirror);
    strata_destroy(c->handle);
    strata_registry_destroy(c->registry);
}

struct job {
    const struct check_test *test;
    struct check_child child;
};

static void hold(void *user)
{
    struct job *j = user;
    struct check_child *c = &j->child;
    environment_take(&c->before);
    if (j->test->scope == SCOPE_FILE || open_child(c))
        j->test->run(c);
    if (j->test->scope != SCOPE_FILE)
        check_environment(c, false);
    c->report->finished = true;
    close_child(c);
}

/* ---- what became of it
 * ------------------------------------------------------------------ */

/* The last line that a child wrote, for the reason of an abort. */
static const char *last_line(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}

/* A child that did not come to its end broke a rule. */
static void judge_end(struct check_child *c, struct child_end *end, int limit_ms)
{
    struct check_report *r = c->report;
    const char *phase = r->place.phase[0] ? r->place.phase : "a test";
    const char *fatal = r->fatal[0] ? r->fatal : "crash";
    if (r->finished && !end->timed_out && end->signal == 0)
        return;
    if (r->finished) /* every callback has returned: what runs is of a destructor */
        phase = "the end of the process";
    if (end->timed_out)
        check_found(c, "hang", "%s did not return in %g s", phase, limit_ms * 1e-3);
    else if (strstr(end->errors, "terminate called"))
        check_found(c, "exception", "%s: %s", phase, last_line(end->errors));
    else if (end->signal)
        check_found(c, fatal, "%s was killed by SIG%s%s%.300s", phase,
                    sigabbrev_np(end->signal) ? sigabbrev_np(end->signal) : "?",
                    end->errors[0] ? ": " : "", last_line(end->errors));
    else
        check_found(c, "exit", "%s called exit(%d)", phase, end->code);
}

static void judge_output(struct check_child *c, const struct child_end *end)
{
    const struct check_place anywhere = {0};
    if (!end->out[0])
        return;
    c->report->place = anywhere; /* which run it was is not known */
    check_found(c, "prints", "it wrote \"%.*s\"", (int)strcspn(end->out, "\n"), end->out);
}

static int hold_apart(struct job *j, struct child_end *end, strata_error *err)
{
    struct check_child *c = &j->child;
    if (c->o->in_process) {
        *end = (struct child_end){0};
        const double start = child_now();
        hold(j);
        end->seconds = child_now() - start;
        return STRATA_OK;
    }
    int status = child_run(hold, j, c->o->fork, c->o->limit_ms, end, err);
    if (status == STRATA_OK)
        judge_end(c, end, c->o->limit_ms);
    if (status == STRATA_OK)
        judge_output(c, end);
    return status;
}

/* ---- the runner
 * ------------------------------------------------------------------------- */

struct runner {
    const struct check_options *o;
    struct check_report *report; /* of the test that is held */
    struct check_report *trial;  /* of a smaller one */
    check_listener listener;
    void *user;
    struct check_summary *summary;
    const char *why_not; /* the layer's other tests are not held; NULL: they are */
};

struct again {
    const struct check_test *test;
    const struct check_child *child;
    struct runner *runner;
};

/* Whether a smaller case still breaks the rule; then *f is the smaller finding. */
static bool still_breaks(const char *shapes, struct check_finding *f, void *user)
{
    const struct again *a = user;
    struct check_options o = *a->child->o;
    const char *attrs[] = {f->place.attrs};
    struct child_end end;
    o.shapes = &shapes;
    o.attrs = attrs;
    o.n_shapes = o.n_attrs = 1;
    o.impl = f->place.impl[0] ? f->place.impl : NULL;
    o.formats = f->place.formats[0] && strcmp(f->place.formats, "->") != 0
                    ? f->place.formats
                    : NULL;
    struct job j = {a->test,
                    {.o = &o,
                     .report = a->runner->trial,
                     .layer_name = a->child->layer_name,
                     .device = a->child->device}};
    memset(a->runner->trial, 0, sizeof *a->runner->trial);
    if (hold_apart(&j, &end, NULL) != STRATA_OK)
        return false;
    for (size_t i = 0; i < a->runner->trial->n_findings; i++)
        if (strcmp(a->runner->trial->findings[i].rule, f->rule) == 0) {
            *f = a->runner->trial->findings[i];
            return true;
        }
    return false;
}

/* What takes long to see, or shows at one time and not at another. */
static bool is_chance(const char *rule)
{
    static const char *const rules[] = {"hang", "concurrency", "nondeterministic"};
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(rule, rules[i]) == 0)
            return true;
    return false;
}

static void shrink(struct runner *r, const struct check_test *test,
                   const struct check_child *c)
{
    struct again again = {test, c, r};
    const bool cuda = strncmp(c->device, "cuda", 4) == 0;
    if (r->o->n_shapes || r->o->in_process || test->scope == SCOPE_FILE)
        return;
    for (size_t i = 0; i < r->report->n_findings; i++)
        if (!is_chance(r->report->findings[i].rule))
            shrink_finding(&r->report->findings[i], cuda ? 4 : 40, still_breaks, &again);
}

static void tell(struct runner *r, const struct check_test *test,
                 const struct check_child *c, double seconds)
{
    struct check_report *report = r->report;
    struct check_result result = {.test = test->name,
                                  .layer = c->layer_name,
                                  .device = c->device,
                                  .findings = report->findings,
                                  .n_findings = report->n_findings,
                                  .runs = report->runs,
                                  .note = report->note,
                                  .seconds = seconds,
                                  .verdict = CHECK_PASSED};
    for (size_t i = 0; i < report->n_findings; i++)
        check_write_command(&report->findings[i], c, test);
    if (report->n_findings > 0) {
        result.verdict = CHECK_FAILED;
    } else if (report->skip[0] || report->runs == 0) {
        result.verdict = CHECK_SKIPPED;
        result.note =
            report->skip[0] ? report->skip : "0 runs: nothing here can be tried";
    }
    r->summary->passed += result.verdict == CHECK_PASSED;
    r->summary->failed += result.verdict == CHECK_FAILED;
    r->summary->skipped += result.verdict == CHECK_SKIPPED;
    r->listener(&result, r->user);
}

static int hold_test(struct runner *r, const struct check_test *test, const char *layer,
                     const char *device, strata_error *err)
{
    struct job j = {
        test, {.o = r->o, .report = r->report, .layer_name = layer, .device = device}};
    struct child_end end = {0};
    memset(r->report, 0, sizeof *r->report);
    if (r->why_not) {
        snprintf(r->report->skip, sizeof r->report->skip, "%s", r->why_not);
        tell(r, test, &j.child, 0);
        return STRATA_OK;
    }
    int status = hold_apart(&j, &end, err);
    if (status != STRATA_OK)
        return status;
    if (end.timed_out)
        r->why_not = "an earlier test hung";
    else if (r->report->no_case)
        r->why_not = "no case was found";
    shrink(r, test, &j.child);
    tell(r, test, &j.child, end.seconds);
    return STRATA_OK;
}

static bool is_chosen(const struct runner *r, const struct check_test *test)
{
    return !r->o->test || strcmp(r->o->test, test->name) == 0;
}

static int hold_on(struct runner *r, const struct check_test *test,
                   const struct report_layer *l, strata_error *err)
{
    const char *only = r->o->device, *cuda = only ? only : "cuda:0";
    int status = STRATA_OK;
    if (l->host && !test->cuda_only && (!only || strcmp(only, "host") == 0))
        status = hold_test(r, test, l->name, "host", err);
    if (l->cuda && !test->host_only && strncmp(cuda, "cuda", 4) == 0 &&
        status == STRATA_OK)
        status = hold_test(r, test, l->name, cuda, err);
    return status;
}

static int hold_layer(struct runner *r, const struct report_layer *l, strata_error *err)
{
    int status = STRATA_OK;
    r->why_not = NULL;
    for (const struct check_test *t = check_tests; t->name && status == STRATA_OK; t++) {
        if (!is_chosen(r, t) || t->scope == SCOPE_FILE)
            continue;
        if (t->scope == SCOPE_IMPLS)
            status = hold_on(r, t, l, err);
        else if (l->own)
            status = hold_test(r, t, l->name, "", err);
    }
    return status;
}

/* "LeakyReLU", "org.example::LeakyReLU", "org.example::LeakyReLU@1" */
static bool is_named(const char *full, const char *name)
{
    const char *bare = strstr(full, "::");
    const size_t n = strlen(name);
    if (!name[0] || strcmp(full, name) == 0)
        return true;
    if (strncmp(full, name, n) == 0 && full[n] == '@')
        return true;
    bare = bare ? bare + 2 : full;
    return strncmp(bare, name, n) == 0 && (bare[n] == '@' || bare[n] == '\0');
}

/* None of the n layers has the impl asked for. */
static int refuse_impl(const struct runner *r, const struct report_layer *layers,
                       size_t n, strata_error *err)
{
    error_set(err, STRATA_EINVAL, "%s has no impl '%s'; it has", r->o->file, r->o->impl);
    for (size_t i = 0; i < n; i++)
        error_append(err, "%s %s of %s", i ? ";" : "",
                     layers[i].impls[0] ? layers[i].impls : "none", layers[i].name);
    return STRATA_EINVAL;
}

/* Move the layers asked for to the front; how many there are. */
static size_t choose_layers(const struct runner *r, struct report_layer *layers)
{
    size_t n = 0;
    for (size_t i = 0; i < r->report->n_layers; i++)
        if (!r->o->layer || is_named(r->report->layers[i].name, r->o->layer))
            layers[n++] = r->report->layers[i];
    return n;
}

static int hold_layers(struct runner *r, strata_error *err)
{
    struct report_layer layers[REPORT_LAYERS];
    const struct report_layer *first = r->report->layers;
    const size_t all = r->report->n_layers, n = choose_layers(r, layers);
    bool found = !r->o->impl;
    int status = STRATA_OK;
    for (size_t i = 0; i < n; i++)
        found |= layers[i].host || layers[i].cuda;
    if (n == 0 && all > 0)
        return error_set(err, STRATA_EINVAL, "%s has no layer '%s'; it has %s%s",
                         r->o->file, r->o->layer, first->name,
                         all > 1 ? " and others: see `strata list --modules`" : "");
    if (n > 0 && !found)
        return refuse_impl(r, layers, n, err);
    for (size_t i = 0; i < n && status == STRATA_OK; i++)
        status = hold_layer(r, &layers[i], err);
    return status;
}

int check_module(const struct check_options *o, check_listener listener, void *user,
                 struct check_summary *summary, strata_error *err)
{
    struct runner r = {.o = o, .listener = listener, .user = user, .summary = summary};
    const struct check_test *load = &check_tests[0];
    struct check_summary ignored = {0};
    *summary = ignored;
    r.report = child_memory(sizeof *r.report);
    r.trial = child_memory(sizeof *r.trial);
    int status = r.report && r.trial ? STRATA_OK
                                     : error_no_memory(err, sizeof *r.report, "a report");
    if (status == STRATA_OK && is_chosen(&r, load)) {
        status = hold_test(&r, load, "", "", err);
    } else if (status ==
               STRATA_OK) { /* its list of layers is needed; its verdict is not */
        struct job j = {load,
                        {.o = o, .report = r.report, .layer_name = "", .device = ""}};
        struct child_end end;
        status = hold_apart(&j, &end, err);
    }
    if (status == STRATA_OK)
        status = hold_layers(&r, err);
    child_memory_free(r.report, sizeof *r.report);
    child_memory_free(r.trial, sizeof *r.trial);
    return status;
}
