/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables as aligned text, Markdown, CSV, JSON and JSON lines.
 */
#include "tools/tool.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const format_names[] = {
    [TABLE_TEXT] = "table", [TABLE_MARKDOWN] = "md", [TABLE_CSV] = "csv",
    [TABLE_JSON] = "json",  [TABLE_JSONL] = "jsonl",
};

int table_format_parse(const char *name)
{
    for (size_t i = 0; i < ARRAY_LENGTH(format_names); i++)
        if (strcmp(name, format_names[i]) == 0)
            return (int)i;
    return -1;
}

void table_open(struct table *t, const char *const *columns, size_t n, uint64_t numeric)
{
    *t = (struct table){.columns = columns, .n_columns = n, .numeric = numeric};
}

void table_cell(struct table *t, const char *format, ...)
{
    va_list args;
    char *text = NULL;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0 || grow(&t->cells, &t->capacity, t->n_cells, sizeof *t->cells, NULL)) {
        t->failed = true;
        if (n >= 0)
            free(text);
        return;
    }
    t->cells[t->n_cells++] = text;
}

void table_close(struct table *t)
{
    for (size_t i = 0; i < t->n_cells; i++)
        free(t->cells[i]);
    free(t->cells);
    *t = (struct table){0};
}

static const char *cell(const struct table *t, size_t row, size_t column)
{
    return t->cells[row * t->n_columns + column];
}

static bool is_numeric(const struct table *t, size_t column)
{
    return t->numeric & UINT64_C(1) << column;
}

/* Names in cells come from files and plugins; JSON has escapes for what is not shown. */
static void clean_cells(const struct table *t, bool lines)
{
    for (size_t i = 0; i < t->n_cells; i++)
        text_clean(t->cells[i], strlen(t->cells[i]), lines);
}

/* Columns on screen; UTF-8 continuation bytes take none. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void pad(FILE *out, size_t n, char c)
{
    while (n-- > 0)
        fputc(c, out);
}

static void print_aligned(FILE *out, const char *text, size_t width, bool right)
{
    size_t room = width - width_of(text);
    pad(out, right ? room : 0, ' ');
    fputs(text, out);
    pad(out, right ? 0 : room, ' ');
}

static void column_widths(const struct table *t, size_t *widths)
{
    for (size_t c = 0; c < t->n_columns; c++) {
        widths[c] = width_of(t->columns[c]);
        for (size_t r = 0; r < t->n_cells / t->n_columns; r++)
            if (widths[c] < width_of(cell(t, r, c)))
                widths[c] = width_of(cell(t, r, c));
    }
}

static void print_text(const struct table *t, bool markdown, FILE *out)
{
    size_t widths[64];
    const char *gap = markdown ? " | " : "  ";
    column_widths(t, widths);
    for (size_t r = 0; r <= t->n_cells / t->n_columns; r++) {
        fputs(markdown ? "| " : "", out);
        for (size_t c = 0; c < t->n_columns; c++) {
            const char *text = r ? cell(t, r - 1, c) : t->columns[c];
            bool last = c + 1 == t->n_columns;
            size_t width =
                last && !markdown && !is_numeric(t, c) ? width_of(text) : widths[c];
            print_aligned(out, text, width, is_numeric(t, c));
            fputs(last ? (markdown ? " |\n" : "\n") : gap, out);
        }
        for (size_t c = 0; c < t->n_columns && r == 0 && markdown; c++) {
            fputs(c ? "|" : "|", out);
            pad(out, widths[c] + 1, '-');
            fputs(is_numeric(t, c) ? ":" : "-", out);
        }
        fputs(r == 0 && markdown ? "|\n" : "", out);
    }
}

static void print_csv_cell(const char *text, FILE *out)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', out);
}

static void print_csv(const struct table *t, FILE *out)
{
    for (size_t r = 0; r <= t->n_cells / t->n_columns; r++)
        for (size_t c = 0; c < t->n_columns; c++) {
            print_csv_cell(r ? cell(t, r - 1, c) : t->columns[c], out);
            fputc(c + 1 == t->n_columns ? '\n' : ',', out);
        }
}

/* What is no UTF-8, as a label may be, becomes U+FFFD. */
static void print_json_string(const char *text, FILE *out)
{
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', out);
    for (size_t left = strlen(text), size; left > 0; left -= size, p += size) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        size = tool_put_json_character(p, left, out);
    }
    fputc('"', out);
}

/* JSON has no word for NaN and infinity, and no sign '+'. */
static void print_json_cell(const char *text, bool numeric, FILE *out)
{
    if (!numeric || !*text)
        print_json_string(text, out);
    else if (strpbrk(text, "nN"))
        fputs("null", out);
    else
        fputs(text + (*text == '+'), out);
}

static void print_json(const struct table *t, bool lines, FILE *out)
{
    size_t rows = t->n_cells / t->n_columns;
    fputs(lines ? "" : "[\n", out);
    for (size_t r = 0; r < rows; r++) {
        fputs(lines ? "{" : "  {", out);
        for (size_t c = 0; c < t->n_columns; c++) {
            fputs(c ? ", " : "", out);
            print_json_string(t->columns[c], out);
            fputs(": ", out);
            print_json_cell(cell(t, r, c), is_numeric(t, c), out);
        }
        fputs(lines || r + 1 == rows ? "}\n" : "},\n", out);
    }
    fputs(lines ? "" : "]\n", out);
}

void table_print(const struct table *t, int format, FILE *out)
{
    if (t->failed) {
        tool_lose_output();
        return;
    }
    if (format != TABLE_JSON && format != TABLE_JSONL)
        clean_cells(t, format == TABLE_CSV);
    switch (format) {
    case TABLE_MARKDOWN:
        print_text(t, true, out);
        break;
    case TABLE_CSV:
        print_csv(t, out);
        break;
    case TABLE_JSON:
    case TABLE_JSONL:
        print_json(t, format == TABLE_JSONL, out);
        break;
    default:
        print_text(t, false, out);
    }
}
