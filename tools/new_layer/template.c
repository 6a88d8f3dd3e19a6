/* SPDX-License-Identifier: Apache-2.0
 *
 * Expansion walks the lines once, following directives by recursion: a block is expanded,
 * skipped, or expanded once an item.
 */
#include "tools/new_layer/template.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "io/stream.h"

enum { NAME_SIZE = 128, MAX_DEPTH = 16 };

struct loop {
    const char *name;
    size_t length;
    long index;
    const struct loop *outer;
};

struct expansion {
    const struct template_values *values;
    const char *template;
    const char *at; /* the next line */
    int line, depth;
    FILE *out;
    strata_error *err;
};

const char *template_text(const char *name)
{
    for (const struct template_file *f = template_files; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f->text;
    return NULL;
}

/* ---- values ------------------------------------------------------------------------ */

int template_set(struct template_values *v, strata_error *err, const char *name,
                 const char *format, ...)
{
    char *text = NULL, *copy = duplicate(name, err);
    va_list args;
    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        text = NULL; /* undefined after a failure */
    if (!copy || !text ||
        grow(&v->pairs, &v->capacity, v->n + 1, sizeof *v->pairs, err)) {
        free(copy);
        free(text);
        return error_set(err, STRATA_ENOMEM, "out of memory for a template");
    }
    v->pairs[v->n++] = copy;
    v->pairs[v->n++] = text;
    return STRATA_OK;
}

static const char *find(const struct template_values *v, const char *name)
{
    for (size_t i = v->n; i > 0; i -= 2)
        if (strcmp(v->pairs[i - 2], name) == 0)
            return v->pairs[i - 1];
    return NULL;
}

const char *template_get(const struct template_values *v, const char *name)
{
    const char *value = find(v, name);
    return value ? value : "";
}

void template_free(struct template_values *v)
{
    for (size_t i = 0; i < v->n; i++)
        free(v->pairs[i]);
    free(v->pairs);
    *v = (struct template_values){0};
}

/* ---- expansion --------------------------------------------------------------------- */

static int wrong(const struct expansion *x, const char *what, const char *text,
                 size_t length)
{
    return error_set(x->err, STRATA_EINTERNAL, "template %s:%d: %s '%.*s'", x->template,
                     x->line, what, (int)length, text);
}

/* NULL where it is not set; "attr.name" inside `@for attr` is "attr.3.name". */
static const char *value_of(const struct expansion *x, const struct loop *loops,
                            const char *name, size_t length)
{
    char full[NAME_SIZE];
    int n = snprintf(full, sizeof full, "%.*s", (int)length, name);
    for (const struct loop *l = loops; l; l = l->outer)
        if (length > l->length && name[l->length] == '.' &&
            memcmp(name, l->name, l->length) == 0)
            n = snprintf(full, sizeof full, "%.*s.%ld%.*s", (int)l->length, l->name,
                         l->index, (int)(length - l->length), name + l->length);
    return n > 0 && (size_t)n < sizeof full ? find(x->values, full) : NULL;
}

static bool is_true(const struct expansion *x, const struct loop *loops, const char *name,
                    size_t length)
{
    const bool inverted = length > 0 && name[0] == '!';
    const char *value = value_of(x, loops, name + inverted, length - inverted);
    return (value && value[0] && strcmp(value, "0") != 0) != inverted;
}

/* Where the line is `word` alone or with an argument, its argument. */
static bool is_directive(const char *line, const char *word, const char **argument,
                         size_t *length)
{
    const size_t n = strlen(word), end = strcspn(line, "\n");
    if (end < n || memcmp(line, word, n) != 0 || (end > n && line[n] != ' '))
        return false;
    *argument = line + n + (end > n);
    *length = end - n - (end > n);
    return true;
}

static int put_line(const struct expansion *x, const struct loop *loops, const char *line)
{
    size_t left = strcspn(line, "\n");
    while (left > 0) {
        const char *mark = memchr(line, '@', left);
        const size_t before = mark ? (size_t)(mark - line) : left;
        fwrite(line, 1, before, x->out);
        if (!mark)
            break;
        const size_t length = strcspn(mark + 1, "@\n");
        if (before + length + 1 >= left)
            return wrong(x, "no second @ after", mark, length + 1);
        const char *value = value_of(x, loops, mark + 1, length);
        if (!value)
            return wrong(x, "unknown variable", mark + 1, length);
        fputs(value, x->out);
        line = mark + length + 2;
        left -= before + length + 2;
    }
    fputc('\n', x->out);
    return STRATA_OK;
}

static int expand_file(struct expansion *x, const struct loop *loops, const char *name,
                       size_t length);
static int expand_block(struct expansion *x, const struct loop *loops, bool write,
                        bool *has_else);

static int expand_if(struct expansion *x, const struct loop *loops, bool write,
                     bool condition)
{
    bool has_else = false;
    int status = expand_block(x, loops, write && condition, &has_else);
    if (status == STRATA_OK && has_else)
        status = expand_block(x, loops, write && !condition, &has_else);
    return status;
}

/* The block is passed once at least, to find its end. */
static int expand_for(struct expansion *x, const struct loop *loops, bool write,
                      const char *name, size_t length)
{
    const char *count = value_of(x, loops, name, length);
    const char *begin = x->at;
    const int line = x->line;
    struct loop l = {name, length, 0, loops};
    const long n = count ? strtol(count, NULL, 10) : 0;
    int status;
    do {
        bool has_else = false;
        x->at = begin;
        x->line = line;
        status = expand_block(x, &l, write && l.index < n, &has_else);
    } while (status == STRATA_OK && ++l.index < n);
    return status;
}

/* Lines up to the @end or @else that belongs to the block, or to the end of the file. */
static int expand_block(struct expansion *x, const struct loop *loops, bool write,
                        bool *has_else)
{
    int status = STRATA_OK;
    const char *name;
    size_t length;
    *has_else = false;
    while (status == STRATA_OK && *x->at) {
        const char *line = x->at;
        x->at += strcspn(line, "\n");
        x->at += *x->at == '\n';
        x->line++;
        if (is_directive(line, "@end", &name, &length) ||
            (*has_else = is_directive(line, "@else", &name, &length)))
            return STRATA_OK;
        if (is_directive(line, "@if", &name, &length))
            status = expand_if(x, loops, write, write && is_true(x, loops, name, length));
        else if (is_directive(line, "@for", &name, &length))
            status = expand_for(x, loops, write, name, length);
        else if (write && is_directive(line, "@include", &name, &length))
            status = expand_file(x, loops, name, length);
        else if (write)
            status = put_line(x, loops, line);
    }
    return status;
}

static int expand_file(struct expansion *x, const struct loop *loops, const char *name,
                       size_t length)
{
    char file[NAME_SIZE];
    bool has_else;
    snprintf(file, sizeof file, "%.*s", (int)length, name);
    struct expansion inner = *x;
    inner.template = file;
    inner.at = template_text(file);
    inner.line = 0;
    if (!inner.at || ++inner.depth > MAX_DEPTH)
        return wrong(x, "cannot include", name, length);
    return expand_block(&inner, loops, true, &has_else);
}

int template_expand(char **out, const char *name, const struct template_values *v,
                    strata_error *err)
{
    size_t size;
    *out = NULL;
    struct expansion x = {.values = v, .template = name, .err = err};
    x.out = text_stream(out, &size);
    if (!x.out)
        return error_set(err, STRATA_ENOMEM, "out of memory for %s", name);
    int status = expand_file(&x, NULL, name, strlen(name));
    if (!text_finish(x.out, out) && status == STRATA_OK)
        status = error_set(err, STRATA_ENOMEM, "out of memory for %s", name);
    if (status != STRATA_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}
