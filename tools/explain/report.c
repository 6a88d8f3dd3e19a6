/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports as they are kept: in saved plans and in engine files.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/file/stored.h"
#include "io/file.h"
#include "tools/explain/explain.h"

enum { PLAN_FILE_MAX = 256 << 20 }; /* bytes */

/* ---- opening ------------------------------------------------------------------------
 */

static int plan_network(json_t **out, const struct tool_options *o, const char *path,
                        strata_error *err)
{
    struct tool_session s = {0};
    struct explain *x = NULL;
    int status = tool_open_engine(&s, o, path, err);
    const strata_engine *e = s.engine;
    const struct planner *p = status == STRATA_OK ? e->planner : NULL;
    if (p)
        status = explain_plan(&x, &p->model->problem, &p->plan_options, p->plan, err);
    if (status == STRATA_OK &&
        !(*out = explain_json(p, e->execution, x, e->weight_bytes)))
        status = error_no_memory(err, 0, "the report");
    explain_free(x);
    tool_close(&s);
    return status;
}

static int read_engine(json_t **out, const char *path, strata_error *err)
{
    struct engine_file file;
    int status = tool_file_status(engine_file_open(&file, path, err), err);
    if (status != STRATA_OK)
        return status;
    status = engine_section_json(out, &file, SECTION_REPORT, err);
    if (status != STRATA_OK)
        error_prefix(err, "%s", path);
    else
        status = explain_check(*out, path, err);
    engine_file_close(&file);
    return status;
}

/* JSON starts with a brace; what does not is a network. */
int report_open(json_t **out, const struct tool_options *o, const char *path,
                strata_error *err)
{
    struct file_bytes file = {0};
    json_error_t wrong;
    if (engine_file_at(path))
        return read_engine(out, path, err);
    int status = file_read(&file, path, PLAN_FILE_MAX, err);
    if (status != STRATA_OK)
        return status;
    const char *text = (const char *)file.data;
    size_t blank = strspn(text, " \t\r\n");
    if (blank == file.size || text[blank] != '{') {
        file_free(&file);
        return plan_network(out, o, path, err);
    }
    *out = json_loadb(text, file.size, 0, &wrong);
    file_free(&file);
    if (*out)
        return explain_check(*out, path, err);
    return error_set(err, STRATA_EPARSE, "%s:%d:%d: error: %s", path, wrong.line,
                     wrong.column, wrong.text);
}

/* ---- tables ------------------------------------------------------------------------
 */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static double us_of(const json_t *object)
{
    return explain_microseconds(json_integer_value(json_object_get(object, "cost")));
}

/* "fp32:nchw fp32:nhwc"; one where all are the same. */
static void put_formats(char *text, size_t size, const json_t *list)
{
    size_t n = json_array_size(list), used = 0;
    bool same = true;
    text[0] = '\0';
    for (size_t i = 1; i < n; i++)
        same &= json_equal(json_array_get(list, i), json_array_get(list, 0)) == 1;
    for (size_t i = 0; i < (same && n ? 1 : n) && used < size; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " " : "",
                                 name ? name : "?");
    }
}

static void put_shape(char *text, size_t size, const json_t *dims)
{
    int64_t d[STRATA_MAX_RANK];
    int rank = 0;
    for (; rank < STRATA_MAX_RANK && (size_t)rank < json_array_size(dims); rank++)
        d[rank] = json_integer_value(json_array_get(dims, (size_t)rank));
    tool_dims(text, size, d, rank);
}

static void finish(struct table *t, int format)
{
    table_print(t, format, stdout);
    table_close(t);
}

void report_print_nodes(const json_t *report, int format)
{
    static const char *const columns[] = {"node",   "layer", "impl", "reads",
                                          "writes", "shape", "us"};
    const json_t *list = json_object_get(report, "nodes");
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 6);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *n = json_array_get(list, i);
        char reads[512], writes[512], shape[128];
        put_formats(reads, sizeof reads, json_object_get(n, "reads"));
        put_formats(writes, sizeof writes, json_object_get(n, "writes"));
        put_shape(shape, sizeof shape, json_object_get(n, "shape"));
        table_cell(&t, "%s", text_of(n, "computes"));
        table_cell(&t, "%s", text_of(n, "layer"));
        table_cell(&t, "%s", text_of(n, "impl"));
        table_cell(&t, "%s", reads);
        table_cell(&t, "%s", writes);
        table_cell(&t, "%s", shape);
        table_cell(&t, "%.1f", us_of(n));
    }
    finish(&t, format);
}

void report_print_reformats(const json_t *report, int format)
{
    static const char *const columns[] = {
        "tensor", "from", "to",         "us",
        "reason", "why",  "without it", "what would remove it"};
    const json_t *list = json_object_get(report, "reformats");
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 3);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *r = json_array_get(list, i);
        if (strcmp(text_of(r, "kind"), "reformat") != 0)
            continue;
        table_cell(&t, "%s", text_of(r, "tensor"));
        table_cell(&t, "%s", text_of(r, "from"));
        table_cell(&t, "%s", text_of(r, "to"));
        table_cell(&t, "%.1f", us_of(r));
        table_cell(&t, "%s", text_of(r, "reason"));
        table_cell(&t, "%s", text_of(r, "why"));
        table_cell(&t, "%s", text_of(r, "text"));
        table_cell(&t, "%s", text_of(r, "hint"));
    }
    finish(&t, format);
}

void report_print_fusions(const json_t *report, int format)
{
    static const char *const columns[] = {"layer", "fused", "into", "why"};
    const json_t *list = json_object_get(report, "fusions");
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *f = json_array_get(list, i);
        bool done = json_is_true(json_object_get(f, "done"));
        const char *into = text_of(f, "into");
        table_cell(&t, "%s", text_of(f, "name"));
        table_cell(&t, "%s", done ? *into ? "yes" : "erased" : "no");
        table_cell(&t, "%s", done ? into : "");
        table_cell(&t, "%s", done && *into ? "" : text_of(f, "reason"));
    }
    finish(&t, format);
}

void report_print_lines(const json_t *report)
{
    const char *section;
    json_t *value;
    json_object_foreach((json_t *)report, section, value)
    {
        size_t n = json_is_array(value) ? json_array_size(value) : 1;
        if (!json_is_array(value) && !json_is_object(value))
            continue;
        for (size_t i = 0; i < n; i++) {
            json_t *line =
                json_copy(json_is_array(value) ? json_array_get(value, i) : value);
            json_object_set_new(line, "kind", json_string(section));
            tool_print_json(line, JSON_COMPACT);
            fputc('\n', stdout);
            json_decref(line);
        }
    }
}
