/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of a network's text.
 */
#include "network/text/lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "io/stream.h"
#include "ini/config.h"
#include "network/attributes.h"

long line_begin(struct lines *w, const char *key)
{
    long at = ftell(w->f);
    fprintf(w->f, "%s = ", key);
    return at;
}

void line_end(struct lines *w, const char *key, long at)
{
    if (ftell(w->f) - at > CONFIG_MAX_LINE && w->status == STRATA_OK)
        w->status = error_set(w->err, STRATA_EOVERFLOW,
                              "[%s] %s: %ld bytes; a line of a network has at most %d",
                              w->section, key, ftell(w->f) - at, CONFIG_MAX_LINE);
    fputc('\n', w->f);
}

/* Whether a value without quotes reads back as another. */
static bool needs_quotes(const char *text)
{
    return !*text || strpbrk(text, " \t#;'$\\") || strchr("[=:", *text);
}

void line_text(struct lines *w, const char *key, const char *text)
{
    const char *semicolon = strchr(text, ';');
    bool bad = strchr(text, '"') != NULL;
    for (; semicolon && !bad; semicolon = strchr(semicolon + 1, ';'))
        bad = semicolon > text && (semicolon[-1] == ' ' || semicolon[-1] == '\t');
    if (bad && w->status == STRATA_OK)
        w->status = error_set(w->err, STRATA_EUNSUPPORTED,
                              "[%s] %s: a value with a quote or ' ;' cannot be written",
                              w->section, key);
    const char *quote = w->quoted || needs_quotes(text) ? "\"" : "";
    long at = line_begin(w, key);
    fputs(quote, w->f);
    for (; *text; text++)
        fprintf(w->f, *text == '$' ? "$$" : "%c", *text);
    fputs(quote, w->f);
    line_end(w, key, at);
}

/* The shortest decimal that reads back as the same value. */
static void put_real(FILE *f, double x)
{
    char text[TEXT_REAL];
    int digits = 15;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    fputs(text_real(text, digits, x), f);
}

void line_reals(struct lines *w, const char *key, const double *v, int64_t n)
{
    long at = line_begin(w, key);
    for (int64_t i = 0; i < n; i++) {
        fputs(i ? w->gap : "", w->f);
        put_real(w->f, v[i]);
    }
    fputs(n ? "" : "\"\"", w->f);
    line_end(w, key, at);
}

void line_ints(struct lines *w, const char *key, const int64_t *v, int64_t n)
{
    long at = line_begin(w, key);
    for (int64_t i = 0; i < n; i++)
        fprintf(w->f, "%s%" PRId64, i ? w->gap : "", v[i]);
    fputs(n ? "" : "\"\"", w->f);
    line_end(w, key, at);
}

void line_dims(struct lines *w, const char *key, const int64_t *v, int n)
{
    struct lines dims = *w;
    dims.gap = "x";
    line_ints(&dims, key, v, n);
    w->status = dims.status;
}

void line_sizes(struct lines *w, const char *key, struct line_range r)
{
    if (r.least == r.most || (r.least == 1 && r.step == 1 && r.n > 1)) {
        line_ints(w, key, r.sizes, (int64_t)r.n);
        return;
    }
    long at = line_begin(w, key);
    fprintf(w->f, "%" PRId64 "..%" PRId64, r.least, r.most);
    if (r.step > 1)
        fprintf(w->f, "/%" PRId64, r.step);
    for (size_t i = 0; i < r.n; i++)
        fprintf(w->f, "%s%" PRId64,
                i                    ? w->gap
                : strlen(w->gap) > 1 ? ": "
                                     : ":",
                r.sizes[i]);
    line_end(w, key, at);
}

void line_int(struct lines *w, const char *key, int64_t value)
{
    line_ints(w, key, &value, 1);
}

void line_flag(struct lines *w, const char *key, bool value)
{
    fprintf(w->f, "%s = %s\n", key, value ? "yes" : "no");
}

void line_word(struct lines *w, const char *key, const char *word)
{
    fprintf(w->f, "%s = %s\n", key, word);
}

void line_choice(struct lines *w, const char *key, const char *choices, int index)
{
    for (; index > 0 && choices; index--)
        choices = strchr(choices, '|') ? strchr(choices, '|') + 1 : NULL;
    if (choices)
        fprintf(w->f, "%s = %.*s\n", key, (int)strcspn(choices, "|"), choices);
}

void line_formats(struct lines *w, const char *key, uint64_t mask)
{
    const char *gap = "";
    if (!mask)
        return;
    long at = line_begin(w, key);
    for (int i = 0; i < STRATA_FORMAT_COUNT; i++)
        if (mask >> i & 1) {
            fprintf(w->f, "%s%s", gap, format_mask_name(UINT64_C(1) << i, 4));
            gap = w->gap;
        }
    line_end(w, key, at);
}

void line_format(struct lines *w, struct format format, int rank)
{
    char name[FORMAT_NAME_SIZE];
    format_name(name, format, rank);
    fputs(name, w->f);
}

void line_attribute(struct lines *w, const strata_attr *a, const void *params)
{
    const void *at = (const char *)params + a->offset;
    const strata_string *string = at;
    switch (a->type) {
    case STRATA_I64:
        line_int(w, a->name, *(const int64_t *)at);
        break;
    case STRATA_F64:
        line_reals(w, a->name, at, 1);
        break;
    case STRATA_BOOL:
        line_flag(w, a->name, *(const int32_t *)at != 0);
        break;
    case STRATA_ENUM:
        line_choice(w, a->name, a->choices, *(const int32_t *)at);
        break;
    case STRATA_STRING:
        line_text(w, a->name, string->text ? string->text : "");
        break;
    case STRATA_INTS:
        line_ints(w, a->name, ((const strata_ints *)at)->v, ((const strata_ints *)at)->n);
        break;
    case STRATA_REALS:
        line_reals(w, a->name, ((const strata_reals *)at)->v,
                   ((const strata_reals *)at)->n);
        break;
    default: /* the registry refuses other types */
        break;
    }
}

void line_attributes(struct lines *w, const struct registry_layer *type,
                     const void *params,
                     const char *(*named)(const void *of, const char *key),
                     const void *of)
{
    for (size_t i = 0; i < type->n_attrs; i++) {
        const char *text = named ? named(of, type->attrs[i].name) : NULL;
        if (text)
            line_word(w, type->attrs[i].name, text);
        else if (!attribute_is_default(&type->attrs[i], params))
            line_attribute(w, &type->attrs[i], params);
    }
}

bool line_owns(const char *tensor, const char *layer, const char *weight)
{
    const size_t n = strlen(layer);
    return tensor && strncmp(tensor, layer, n) == 0 && tensor[n] == '.' &&
           strcmp(tensor + n + 1, weight) == 0;
}

void line_weights(struct lines *w, const char *layer, const struct registry_layer *type,
                  const char *(*tensor)(const void *of, size_t weight), const void *of)
{
    bool own = false;
    for (size_t i = 0; i < type->n_weights; i++)
        own |= line_owns(tensor(of, i), layer, type->weights[i].name);
    if (own)
        fprintf(w->f, "weights = w:%s\n", layer);
    for (size_t i = 0; i < type->n_weights; i++) {
        const char *name = tensor(of, i), *weight = type->weights[i].name;
        if (name && !line_owns(name, layer, weight))
            fprintf(w->f, "%s = w%s%s\n", weight, *name ? ":" : "", name);
    }
}

bool lines_finish(struct lines *w, char **text, size_t size)
{
    if (!text_finish(w->f, text) && w->status == STRATA_OK)
        w->status = error_no_memory(w->err, size, "a network's text");
    if (w->status != STRATA_OK) {
        free(*text);
        *text = NULL;
    }
    return w->status == STRATA_OK;
}
