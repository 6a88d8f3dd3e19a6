/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables: -D options win over [vars]; a variable may use those defined before it, so
 * there are no cycles and every value is expanded once. $$ stands for $.
 */
#include "ini/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* What starts at a '$'. */
struct reference {
    size_t size;       /* bytes of it; 0: malformed */
    const char *value; /* NULL: undefined */
    size_t length;
    int variable; /* -1: "$$" or undefined */
    char name[CONFIG_MAX_KEY + 1];
};

static struct reference reference_at(const struct config *c, const char *text, size_t n)
{
    struct reference r = {.variable = -1};
    if (n >= 2 && text[1] == '$') {
        r.size = 2;
        r.value = "$";
        r.length = 1;
        return r;
    }
    const char *close = n >= 2 && text[1] == '{' ? memchr(text, '}', n) : NULL;
    size_t length = close ? (size_t)(close - text) - 2 : 0;
    if (!length || length > CONFIG_MAX_KEY)
        return r;
    memcpy(r.name, text + 2, length);
    r.name[length] = '\0';
    r.size = length + 3;
    r.variable = names_get(&c->variable_index, r.name);
    if (r.variable >= 0) {
        r.value = c->variables[r.variable].value;
        r.length = strlen(r.value);
    }
    return r;
}

/* Read the line of a pair again; false if it does not come from text. */
static bool reread(const struct config *c, const struct config_pair *p,
                   struct config_cursor *at)
{
    const struct config_source *s =
        config_source(c, p->key_place.file, p->key_place.line);
    if (!s || p->line_offset == UINT32_MAX)
        return false;
    at->file = p->key_place.file;
    at->line_number = p->key_place.line;
    at->line_offset = p->line_offset;
    config_line_read(s, p->line_offset, &at->line);
    return true;
}

/* Place of bytes of the value as written. */
static struct config_place raw_place(const struct config *c, const struct config_pair *p,
                                     size_t offset, size_t length)
{
    struct config_cursor at;
    if (config_full(c) || !reread(c, p, &at))
        return p->value_place;
    size_t from = p->value_start + offset, to = from + length;
    if (from > at.line.length)
        from = at.line.length;
    return config_cursor_place(c, &at, from, to < at.line.length ? to : at.line.length);
}

struct config_place config_value_place(const struct config *c,
                                       const struct config_pair *p, size_t offset,
                                       size_t length)
{
    struct config_cursor at;
    size_t written = 0, end = offset + length, from = SIZE_MAX;
    if (config_full(c) || !reread(c, p, &at))
        return p->value_place;
    size_t raw = p->value_start;
    while (raw < at.line.length && (from == SIZE_MAX || written < end)) {
        size_t size = 1, produced = 1;
        if (at.line.text[raw] == '$') {
            struct reference r =
                reference_at(c, at.line.text + raw, at.line.length - raw);
            size = r.size ? r.size : 1;
            produced = r.value ? r.length : size;
        }
        if (from == SIZE_MAX && (written + produced > offset || written == offset))
            from = raw;
        raw += size;
        written += produced;
    }
    return config_cursor_place(c, &at, from == SIZE_MAX ? raw : from, raw);
}

static void undefined(struct config *c, const struct config_pair *p, size_t at,
                      const struct reference *r)
{
    struct config_place place = raw_place(c, p, at, r->size);
    const char **names =
        config_full(c) ? NULL : calloc(c->n_variables + 1, sizeof *names);
    const char *near = NULL;
    for (size_t i = 0; names && i < c->n_variables; i++)
        names[i] = c->variables[i].name;
    if (names)
        near = config_nearest(c, r->name, names, c->n_variables);
    config_error(c, place,
                 "undefined variable '%s'%s%s%s; define it in [vars] or with -D %s=...",
                 r->name, near ? ", did you mean '" : "", near ? near : "",
                 near ? "'?" : "", r->name);
    free(names);
}

void config_expand(struct config *c, struct config_pair *p)
{
    char out[CONFIG_MAX_LINE + 1];
    size_t written = 0, n = strlen(p->value);
    if (!memchr(p->value, '$', n))
        return;
    if (c->bytes_replaced > CONFIG_MAX_BYTES) { /* told already */
        p->invalid = true;
        return;
    }
    for (size_t i = 0; i < n;) {
        struct reference r = {
            .size = 1, .value = p->value + i, .length = 1, .variable = -1};
        if (p->value[i] == '$')
            r = reference_at(c, p->value + i, n - i);
        p->invalid = !r.size || !r.value || r.length > CONFIG_MAX_LINE - written;
        if (!r.size)
            config_error(c, raw_place(c, p, i, 1),
                         "'$' starts '${name}'; write '$$' for the character");
        else if (!r.value)
            undefined(c, p, i, &r);
        else if (p->invalid)
            config_error(c, raw_place(c, p, i, r.size),
                         "the value is longer than %d bytes once variables are replaced",
                         CONFIG_MAX_LINE);
        if (p->invalid)
            return;
        if (r.variable >= 0)
            c->variables[r.variable].used = true;
        memcpy(out + written, r.value, r.length);
        written += r.length;
        i += r.size;
    }
    c->bytes_replaced += written;
    p->invalid = c->bytes_replaced > CONFIG_MAX_BYTES;
    if (p->invalid) {
        config_error(c, p->value_place,
                     "the values have more than %d bytes together once variables are "
                     "replaced",
                     CONFIG_MAX_BYTES);
        return;
    }
    char *copy = config_text(c, out, written);
    if (copy)
        p->value = copy;
}

static void define(struct config *c, const struct config_pair *p, bool by_option)
{
    char where[256];
    int known = names_get(&c->variable_index, p->key);
    struct config_variable *v = known >= 0 ? &c->variables[known] : NULL;
    if (v && v->defined_by_option && !by_option && !v->declared) {
        v->declared = true;
        return;
    }
    if (v) {
        config_describe(c, v->place, where, sizeof where);
        config_error(c, p->key_place, "variable '%s' is defined twice; first at %s",
                     p->key, where);
        return;
    }
    if (grow(&c->variables, &c->variables_capacity, c->n_variables, sizeof *c->variables,
             NULL) != STRATA_OK ||
        names_put(&c->variable_index, p->key, (int)c->n_variables, NULL) != STRATA_OK) {
        c->no_memory = true;
        return;
    }
    c->variables[c->n_variables++] =
        (struct config_variable){.name = p->key,
                                 .value = p->value,
                                 .defined_by_option = by_option,
                                 .declared = !by_option,
                                 .place = p->key_place};
}

void config_define_section(struct config *c, struct config_section *s)
{
    for (size_t i = 0; i < s->n_pairs; i++) {
        s->pairs[i].used = true;
        config_expand(c, &s->pairs[i]);
        define(c, &s->pairs[i], false);
    }
}

void config_define_options(struct config *c, const strata_network_options *options)
{
    for (size_t i = 0; options && i < options->n_define; i++) {
        struct config_cursor at;
        struct config_pair p = {0};
        if (!config_option_read(c, (int)(options->n_set + i) + 1, &at))
            continue;
        const char *equals = strchr(at.line.text, '=');
        if (!equals) {
            config_error(c, config_cursor_place(c, &at, 0, at.line.length),
                         "a definition is 'name=value'");
            continue;
        }
        size_t split = (size_t)(equals - at.line.text);
        if (!config_take_key(c, &p, &at, 0, split) ||
            !config_take_value(c, &p, &at, split))
            continue;
        config_expand(c, &p);
        define(c, &p, true);
    }
}

void config_expand_all(struct config *c)
{
    for (size_t i = 0; i < c->n_sections; i++) {
        struct config_section *s = &c->sections[i];
        bool done = strcmp(s->kind, "vars") == 0 || strcmp(s->kind, "include") == 0;
        for (size_t k = 0; !done && k < s->n_pairs; k++)
            config_expand(c, &s->pairs[k]);
    }
}

void config_check_options(struct config *c)
{
    for (size_t i = 0; i < c->n_variables; i++) {
        const struct config_variable *v = &c->variables[i];
        if (v->defined_by_option && !v->declared && !v->used)
            config_error(c, v->place, "no file uses or declares a variable '%s'",
                         v->name);
    }
}
