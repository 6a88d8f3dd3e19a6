/* SPDX-License-Identifier: Apache-2.0
 *
 * INI values into params structs, by the plugin's attribute table.
 */
#include "network/attributes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"
#include "core/text.h"

#define LIST_MAX (CONFIG_MAX_LINE / 2 + 1) /* numbers a line can hold */

/* The block behind strings and lists of one layer; used grows by whole int64_t. */
struct block {
    char *bytes;
    size_t used, size;
    struct attribute_names *names; /* beside it: NULL if there may be none */
    strata_error *err;
    int status;
};

static bool limited(const strata_attr *a)
{
    return a->min != 0 || a->max != 0;
}

/* A limit as an integer; infinite and huge ones are those of the type. */
static int64_t integer_limit(double x, bool upper)
{
    if (x >= 0x1p63)
        return INT64_MAX;
    if (x < -0x1p63)
        return INT64_MIN;
    return (int64_t)(upper ? floor(x) : ceil(x));
}

static int64_t integer_min(const strata_attr *a)
{
    return limited(a) ? integer_limit(a->min, false) : INT64_MIN;
}

static int64_t integer_max(const strata_attr *a)
{
    return limited(a) ? integer_limit(a->max, true) : INT64_MAX;
}

/* Bytes that a value's text needs in the block at most. */
static size_t text_bytes(const strata_attr *a, const char *text)
{
    size_t n = text ? strlen(text) : 0;
    bool list = a->type == STRATA_INTS || a->type == STRATA_REALS;
    return list ? (n / 2 + 1) * sizeof(int64_t) : (n / 8 + 1) * 8;
}

static bool needs_memory(const strata_attr *a)
{
    return a->type == STRATA_STRING || a->type == STRATA_INTS || a->type == STRATA_REALS;
}

static void *block_copy(struct block *b, const void *from, size_t bytes)
{
    void *to = b->bytes + b->used;
    memcpy(to, from, bytes);
    b->used += (bytes + 7) / 8 * 8;
    return to;
}

static void write_string(char *at, const struct config_pair *p, struct block *b)
{
    strata_string value = {.length = strlen(p->value)};
    value.text = block_copy(b, p->value, value.length + 1);
    memcpy(at, &value, sizeof value);
}

static void note_names(const strata_attr *a, const struct config_part *parts, size_t n,
                       struct block *b)
{
    struct attribute_names *names = b->names;
    for (size_t i = 0; names && i < n && b->status == STRATA_OK; i++) {
        if (parts[i].symbol < 0)
            continue;
        b->status = grow(&names->v, &names->capacity, names->n, sizeof *names->v, b->err);
        if (b->status == STRATA_OK)
            names->v[names->n++] = (struct attribute_name){a, (int)i, parts[i]};
    }
}

static void write_ints(struct config *c, const strata_attr *a,
                       const struct config_pair *p, char *at, struct block *b)
{
    int64_t numbers[LIST_MAX];
    struct config_part parts[LIST_MAX];
    size_t n = 0;
    if (*p->value && !config_dims(c, p, integer_min(a), integer_max(a), numbers, LIST_MAX,
                                  &n, b->names ? parts : NULL))
        return;
    note_names(a, parts, n, b);
    strata_ints value = {.n = (int64_t)n};
    value.v = n ? block_copy(b, numbers, n * sizeof numbers[0]) : NULL;
    memcpy(at, &value, sizeof value);
}

static void write_reals(struct config *c, const strata_attr *a,
                        const struct config_pair *p, char *at, struct block *b)
{
    double numbers[LIST_MAX];
    size_t n = 0;
    if (*p->value && !config_reals(c, p, numbers, LIST_MAX, &n))
        return;
    for (size_t i = 0; limited(a) && i < n; i++)
        if (numbers[i] < a->min || numbers[i] > a->max) {
            config_error(c, p->value_place, "%g is out of range: %g to %g is allowed",
                         numbers[i], a->min, a->max);
            return;
        }
    strata_reals value = {.n = (int64_t)n};
    value.v = n ? block_copy(b, numbers, n * sizeof numbers[0]) : NULL;
    memcpy(at, &value, sizeof value);
}

/* Write the value of a pair; what does not read is recorded in c. */
static void write_value(struct config *c, const strata_attr *a,
                        const struct config_pair *p, char *at, struct block *b)
{
    double lowest = limited(a) ? a->min : -INFINITY;
    double highest = limited(a) ? a->max : INFINITY;
    double real;
    bool flag;
    int index;
    int64_t integer;
    if (p->invalid)
        return;
    switch (a->type) {
    case STRATA_I64:
        if (config_int(c, p, integer_min(a), integer_max(a), &integer))
            memcpy(at, &integer, sizeof integer);
        break;
    case STRATA_F64:
        if (config_real(c, p, lowest, highest, &real))
            memcpy(at, &real, sizeof real);
        break;
    case STRATA_BOOL:
        if (config_bool(c, p, &flag))
            memcpy(at, &(int32_t){flag}, sizeof(int32_t));
        break;
    case STRATA_ENUM:
        if (config_choice(c, p, a->choices, &index))
            memcpy(at, &(int32_t){index}, sizeof(int32_t));
        break;
    case STRATA_STRING:
        write_string(at, p, b);
        break;
    case STRATA_INTS:
        write_ints(c, a, p, at, b);
        break;
    case STRATA_REALS:
        write_reals(c, a, p, at, b);
        break;
    default: /* the registry refuses other types */
        break;
    }
}

/* Write the plugin's default; EMODULE if its text does not read. */
static int write_default(struct config *c, const struct registry_layer *type,
                         const strata_attr *a, struct config_place place, char *at,
                         struct block *b, strata_error *err)
{
    size_t before = config_errors(c);
    int64_t integer = integer_limit(a->def, true);
    int32_t small =
        a->type == STRATA_BOOL || a->type == STRATA_ENUM ? (int32_t)a->def : 0;
    struct config_pair text = {
        .key_place = place, .value_place = place, .line_offset = UINT32_MAX};
    if (a->type == STRATA_I64)
        memcpy(at, &integer, sizeof integer);
    else if (a->type == STRATA_F64)
        memcpy(at, &a->def, sizeof a->def);
    else if (!needs_memory(a))
        memcpy(at, &small, sizeof small);
    if (!needs_memory(a) || (!a->def_text && a->type != STRATA_STRING))
        return STRATA_OK;
    text.value = config_text(c, a->def_text ? a->def_text : "",
                             a->def_text ? strlen(a->def_text) : 0);
    if (!text.value)
        return error_no_memory(err, 0, "a default");
    write_value(c, a, &text, at, b);
    if (config_errors(c) == before)
        return STRATA_OK;
    return error_set(err, STRATA_EMODULE,
                     "%s: the plugin's default '%s' of attribute '%s' does not read",
                     type->full_name, a->def_text, a->name);
}

/* "stride: step of the window; 1 to 64, default 1" for the notes of errors. */
static void describe(const strata_attr *a, char *out, size_t size)
{
    char range[96] = "";
    if (limited(a) && isinf(a->max))
        snprintf(range, sizeof range, " (at least %g)", a->min);
    else if (limited(a))
        snprintf(range, sizeof range, " (%g to %g)", a->min, a->max);
    else if (a->type == STRATA_ENUM && a->choices)
        snprintf(range, sizeof range, " (%.80s)", a->choices);
    snprintf(out, size, "%s: %s%s", a->name, a->doc ? a->doc : "", range);
}

/* Whether a value says where a weight comes from. */
static bool names_weight(const struct config *c, const char *value)
{
    return strchr(value, ':') || !strcmp(value, "zeros") || !strcmp(value, "none") ||
           config_has(c, "weights", value);
}

struct config_pair *attributes_pair(struct config *c, struct config_section *s,
                                    const struct registry_layer *type, const char *name,
                                    bool weight)
{
    bool attribute = false, declared = false;
    struct config_pair *p = config_get(s, name);
    for (size_t i = 0; i < type->n_attrs; i++)
        attribute |= !strcmp(type->attrs[i].name, name);
    for (size_t i = 0; i < type->n_weights; i++)
        declared |= !strcmp(type->weights[i].name, name);
    if (!p || !attribute || !declared)
        return p;
    return names_weight(c, p->value) == weight ? p : NULL;
}

static int read_one(struct config *c, struct config_section *s,
                    const struct registry_layer *type, const strata_attr *a, char *params,
                    struct block *b, strata_error *err)
{
    char note[256];
    int status = STRATA_OK;
    const struct config_pair *p = attributes_pair(c, s, type, a->name, false);
    describe(a, note, sizeof note);
    config_note(c, note);
    if (p)
        write_value(c, a, p, params + a->offset, b);
    else if (a->flags & STRATA_REQUIRED)
        config_require(c, s, a->name);
    else
        status = write_default(c, type, a, s->place, params + a->offset, b, err);
    config_note(c, NULL);
    return status;
}

int attributes_read(struct config *c, struct config_section *s,
                    const struct registry_layer *type, void *params, void **memory,
                    struct attribute_names *names, strata_error *err)
{
    struct block b = {.names = names, .err = err};
    int status = STRATA_OK;
    for (size_t i = 0; i < type->n_attrs; i++) {
        const strata_attr *a = &type->attrs[i];
        const struct config_pair *p =
            needs_memory(a) ? attributes_pair(c, s, type, a->name, false) : NULL;
        if (needs_memory(a) &&
            !checked_size_add(b.size, text_bytes(a, p ? p->value : a->def_text), &b.size))
            return error_no_memory(err, SIZE_MAX, "attributes");
    }
    *memory = b.bytes = zalloc(b.size, 1, "attributes", err);
    if (!b.bytes)
        return STRATA_ENOMEM;
    for (size_t i = 0; status == STRATA_OK && i < type->n_attrs; i++)
        status = read_one(c, s, type, &type->attrs[i], params, &b, err);
    return status == STRATA_OK ? b.status : status;
}

/* ---- defaults ---- */

/* Whether a number or a list is the default's, whose text is `def_text`. */
static bool list_is_default(const strata_attr *a, const char *at)
{
    const strata_ints *ints = (const void *)at;
    const strata_reals *reals = (const void *)at;
    const strata_string *string = (const void *)at;
    const char *text = a->def_text ? a->def_text : "";
    char *end = (char *)text;
    if (a->type == STRATA_STRING)
        return strcmp(string->text ? string->text : "", text) == 0;
    const int64_t n = a->type == STRATA_INTS ? ints->n : reals->n;
    double v = 0;
    for (int64_t i = 0; i < n; i++) {
        if (*text) /* the last one stands for those that follow */
            v = text_to_real(text, &end);
        if (end == text && *text)
            return false;
        if (v != (a->type == STRATA_INTS ? (double)ints->v[i] : reals->v[i]))
            return false;
        text = end + strspn(end, ", x");
    }
    return *text == '\0' && (n > 0) == (*(a->def_text ? a->def_text : "") != '\0');
}

bool attribute_is_default(const strata_attr *a, const void *params)
{
    const char *at = (const char *)params + a->offset;
    int64_t integer;
    int32_t small;
    double real;
    if (a->flags & STRATA_REQUIRED)
        return false;
    memcpy(&small, at, sizeof small);
    if (a->type == STRATA_BOOL || a->type == STRATA_ENUM)
        return small == (int32_t)a->def;
    if (a->type != STRATA_I64 && a->type != STRATA_F64)
        return list_is_default(a, at);
    memcpy(&integer, at, sizeof integer);
    memcpy(&real, at, sizeof real);
    return a->type == STRATA_I64 ? (double)integer == a->def : real == a->def;
}
