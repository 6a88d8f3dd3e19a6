/* SPDX-License-Identifier: Apache-2.0
 *
 * A profile as a table, and what its sum is worth.
 */
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "tools/predicted.h"
#include "tools/profile/profile.h"

static const char *const kinds[] = {[STRATA_STEP_RUN] = "run",
                                    [STRATA_STEP_REFORMAT] = "reformat",
                                    [STRATA_STEP_RELABEL] = "re-label"};

static const char *const columns[] = {
    "layer",    "type",       "impl", "module", "reads", "writes",  "us",      "share %",
    "floor us", "of floor %", "MB",   "GB/s",   "MFLOP", "GFLOP/s", "bound by"};
enum { NUMBERS = 0x3fc0 }; /* columns "us" to "GFLOP/s" */

static double rate(double amount, double us)
{
    return us > 0 ? amount / us * 1e-3 : 0;
}

static void add_row(struct table *t, const struct profile *p, const struct profile_row *r)
{
    const strata_step *s = &r->step;
    const bool run = s->kind == STRATA_STEP_RUN;
    const char *type = run ? strstr(s->layer, "::") : NULL;
    table_cell(t, "%s", s->name);
    table_cell(t, "%.*s", type ? (int)strcspn(type + 2, "@") : 8,
               type ? type + 2 : kinds[s->kind]);
    table_cell(t, "%s", run ? s->impl : "");
    table_cell(t, "%s", profile_module(r));
    table_cell(t, "%s", s->from);
    table_cell(t, "%s", s->to);
    table_cell(t, "%.2f", r->median);
    table_cell(t, "%.1f", p->sum_us > 0 ? 100 * r->median / p->sum_us : 0);
    table_cell(t, "%.2f", s->floor_us);
    table_cell(t, "%.*f", profile_roofline(r) < 0.1, 100 * profile_roofline(r));
    table_cell(t, "%.3f", s->bytes * 1e-6);
    table_cell(t, "%.1f", rate(s->bytes, r->median));
    table_cell(t, "%.2f", s->operations * 1e-6);
    table_cell(t, "%.1f", rate(s->operations, r->median));
    table_cell(t, "%s", s->memory_bound ? "memory" : "arithmetic");
}

static void add_total(struct table *t, const struct profile *p)
{
    double floor = 0, bytes = 0, operations = 0;
    for (size_t i = 0; i < p->n; i++) {
        floor += p->rows[i].step.floor_us;
        bytes += p->rows[i].step.bytes;
        operations += p->rows[i].step.operations;
    }
    table_cell(t, "total");
    for (int i = 1; i < 6; i++)
        table_cell(t, "%s", "");
    table_cell(t, "%.2f", p->sum_us);
    table_cell(t, "100.0");
    table_cell(t, "%.2f", floor);
    table_cell(t, "%.0f", p->sum_us > 0 ? 100 * floor / p->sum_us : 0);
    table_cell(t, "%.3f", bytes * 1e-6);
    table_cell(t, "%.1f", rate(bytes, p->sum_us));
    table_cell(t, "%.2f", operations * 1e-6);
    table_cell(t, "%.1f", rate(operations, p->sum_us));
    table_cell(t, "%s", "");
}

static int slower(const void *a, const void *b)
{
    const double x = (*(const struct profile_row *const *)a)->median;
    const double y = (*(const struct profile_row *const *)b)->median;
    return (x < y) - (x > y);
}

static void print_rows(const struct profile *p, const struct profile_print *how)
{
    const struct profile_row **rows = zalloc(p->n, sizeof *rows, "a table", NULL);
    size_t n = 0;
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), NUMBERS);
    for (size_t i = 0; rows && i < p->n; i++)
        if (p->rows[i].step.kind != STRATA_STEP_RELABEL)
            rows[n++] = &p->rows[i];
    if (how->by_time && rows)
        qsort(rows, n, sizeof *rows, slower);
    for (size_t i = 0; i < n && (how->top == 0 || i < how->top); i++)
        add_row(&t, p, rows[i]);
    if (how->format == TABLE_TEXT || how->format == TABLE_MARKDOWN)
        add_total(&t, p);
    t.failed |= !rows;
    table_print(&t, how->format, stdout);
    table_close(&t);
    free(rows);
}

static void print_sum(const struct profile *p)
{
    const struct device_properties *d = &p->handle->properties;
    const double over = p->stepped_us > 0 ? p->watched_us / p->stepped_us - 1 : 0;
    bool cached = false;
    for (size_t i = 0; i < p->n; i++)
        cached |= profile_roofline(&p->rows[i]) > 1;
    tool_print("\nwhole runs: %.1f us", p->whole_us);
    if (p->graph)
        tool_print(" as one graph, %.1f us kernel by kernel", p->stepped_us);
    tool_print("; %.1f us watched (%+.1f %%), as an event stands behind each layer\n",
           p->watched_us, 100 * over);
    tool_print("sum of the layers' medians: %.1f us%s; predicted by the plan's costs: %.1f us\n",
           p->sum_us,
           p->watched_us > 1.1 * p->sum_us ? ", less than a run: noisy, or too few runs"
                                           : "",
           tool_predicted_us(p->engine));
    char *doubt = tool_doubt_costs(p->engine, p->whole_us);
    if (doubt)
        tool_print("note: %s\n", doubt);
    free(doubt);
    tool_print(
        "floors: %.0f GB/s, %.0f GFLOP/s in FP32, %.0f in FP16, as the planner's model "
        "has them for %s\n",
        d->bandwidth * 1e-9, d->flops[STRATA_FP32] * 1e-9, d->flops[STRATA_FP16] * 1e-9,
        d->name);
    if (cached)
        puts("above 100 % of its floor: what the layer read lay in a cache");
}

/* ---- JSON ---------------------------------------------------------------------------
 */

static json_t *row_json(const struct profile *p, const struct profile_row *r)
{
    const strata_step *s = &r->step;
    json_t *j = json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:s, s:s}", "name", s->name,
                          "kind", kinds[s->kind], "layer", s->layer, "impl", s->impl,
                          "module", s->module, "reads", s->from, "writes", s->to);
    json_t *numbers = json_pack(
        "{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I}", "us", r->median, "low_us",
        r->low, "high_us", r->high, "share", p->sum_us > 0 ? r->median / p->sum_us : 0.0,
        "floor_us", s->floor_us, "predicted_us", s->predicted_us, "bytes", s->bytes,
        "operations", s->operations, "live_bytes", (json_int_t)s->live_bytes);
    json_object_update(j, numbers);
    json_decref(numbers);
    json_object_set_new(j, "bound_by",
                        json_string(s->memory_bound ? "memory" : "arithmetic"));
    return j;
}

/* Everything, whatever rows were asked for. */
static void print_json(const struct profile *p)
{
    const strata_network *net = p->engine->network;
    json_t *steps = json_array();
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].step.kind != STRATA_STEP_RELABEL)
            json_array_append_new(steps, row_json(p, &p->rows[i]));
    json_t *j =
        json_pack("{s:s, s:s, s:I, s:b, s:f, s:f, s:f, s:f, s:f, s:o}", "network",
                  net->name ? net->name : net->path, "device",
                  strata_device_name(p->handle), "runs", (json_int_t)p->runs, "graph",
                  p->graph, "whole_us", p->whole_us, "stepped_us", p->stepped_us,
                  "watched_us", p->watched_us, "sum_us", p->sum_us, "predicted_us",
                  tool_predicted_us(p->engine), "steps", steps);
    tool_print_json(j, JSON_REAL_PRECISION(7) | JSON_INDENT(1));
    fputc('\n', stdout);
    json_decref(j);
}

void profile_print(const struct profile *p, const struct profile_print *how)
{
    if (how->format == TABLE_JSON) {
        print_json(p);
        return;
    }
    print_rows(p, how);
    if (how->format == TABLE_TEXT || how->format == TABLE_MARKDOWN)
        print_sum(p);
}

static json_t *step_json(const struct profile *p, const struct profile_row *r)
{
    double total = 0;
    for (size_t i = 0; i < p->runs; i++)
        total += r->us[i];
    return json_pack("{s:s, s:f, s:f, s:f, s:f}", "name", r->step.name, "timeMs",
                     total * 1e-3, "averageMs", total * 1e-3 / (double)p->runs,
                     "medianMs", r->median * 1e-3, "percentage",
                     p->sum_us > 0 ? 100 * r->median / p->sum_us : 0.0);
}

int profile_write(const struct profile *p, const char *path, strata_error *err)
{
    json_t *list = json_array();
    json_array_append_new(list, json_pack("{s:I}", "count", (json_int_t)p->runs));
    for (size_t i = 0; i < p->n; i++)
        if (p->rows[i].step.kind != STRATA_STEP_RELABEL)
            json_array_append_new(list, step_json(p, &p->rows[i]));
    char *text = json_dumps(list, JSON_REAL_PRECISION(7) | JSON_INDENT(1));
    int status = text ? file_write(path, text, strlen(text), err)
                      : error_no_memory(err, 0, "a profile");
    free(text);
    json_decref(list);
    return status;
}
