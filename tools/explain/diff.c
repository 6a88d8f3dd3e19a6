/* SPDX-License-Identifier: Apache-2.0
 *
 * Two plans side by side.
 */
#include "tools/explain/explain.h"

enum { ENTRIES_SHOWN = 10 };

static void print_decisions(const struct explain_moves *m, int format)
{
    static const char *const columns[] = {"what", "first", "second", "because"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 0);
    for (size_t i = 0; i < m->n; i++) {
        table_cell(&t, "%s", m->list[i].what);
        table_cell(&t, "%s", m->list[i].before);
        table_cell(&t, "%s", m->list[i].after);
        table_cell(&t, "%s", m->list[i].because);
    }
    table_print(&t, format, stdout);
    table_close(&t);
}

static void print_entries(const struct explain_moves *m, int format)
{
    static const char *const columns[] = {"cost entry", "first us", "second us"};
    struct table t;
    table_open(&t, columns, ARRAY_LENGTH(columns), 1 << 1 | 1 << 2);
    for (size_t i = 0; i < m->n && i < ENTRIES_SHOWN; i++) {
        table_cell(&t, "%s", m->list[i].what);
        table_cell(&t, "%s", m->list[i].before);
        table_cell(&t, "%s", m->list[i].after);
    }
    table_print(&t, format, stdout);
    table_close(&t);
    if (m->n > ENTRIES_SHOWN)
        tool_print("and %zu smaller changes\n", m->n - ENTRIES_SHOWN);
}

static int print_diff(const json_t *a, const json_t *b, int format, strata_error *err)
{
    struct explain_diff *d = NULL;
    bool text = format == TABLE_TEXT || format == TABLE_MARKDOWN;
    if (explain_compare(&d, a, b, err) != STRATA_OK)
        return tool_fail(err);
    int code = d->decisions.n ? EXIT_MISMATCH : EXIT_OK;
    if (d->decisions.n || !text)
        print_decisions(&d->decisions, format);
    else
        tool_print("The plans make the same decisions.\n");
    if (text && d->entries.n) {
        tool_print("\n%zu cost entries differ:\n", d->entries.n);
        print_entries(&d->entries, format);
    }
    if (text)
        tool_print("\npredicted %.1f us, then %.1f us\n", explain_microseconds(d->before),
                   explain_microseconds(d->after));
    explain_diff_free(d);
    return code;
}

int explain_diff_files(char *const paths[2], const struct tool_options *o)
{
    json_t *a = NULL, *b = NULL;
    strata_error err;
    error_clear(&err);
    int status = report_open(&a, o, paths[0], &err);
    if (status == STRATA_OK)
        status = report_open(&b, o, paths[1], &err);
    int code = status == STRATA_OK ? print_diff(a, b, o->format, &err) : tool_fail(&err);
    json_decref(a);
    json_decref(b);
    return code;
}
