/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of a layer's declared attributes and weights: names, places in the params
 * struct, and defaults inside their own limits.
 */
#include "registry/descriptor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "core/text.h"
#include "registry/name.h"

#define refuse(err, ...) error_set(err, STRATA_EMODULE, __VA_ARGS__)

static const struct {
    const char *name;
    size_t size, align; /* bytes in params */
} types[] = {
    [STRATA_I64] = {"integer", sizeof(int64_t), _Alignof(int64_t)},
    [STRATA_F64] = {"real", sizeof(double), _Alignof(double)},
    [STRATA_BOOL] = {"boolean", sizeof(int32_t), _Alignof(int32_t)},
    [STRATA_ENUM] = {"choice", sizeof(int32_t), _Alignof(int32_t)},
    [STRATA_STRING] = {"string", sizeof(strata_string), _Alignof(strata_string)},
    [STRATA_INTS] = {"integers", sizeof(strata_ints), _Alignof(strata_ints)},
    [STRATA_REALS] = {"reals", sizeof(strata_reals), _Alignof(strata_reals)},
};

static int check_place(const strata_attr *attrs, size_t i, size_t params_size,
                       strata_error *err)
{
    const strata_attr *a = &attrs[i];
    size_t size = types[a->type].size, end;
    if (!checked_size_add(a->offset, size, &end) || end > params_size)
        return refuse(err, "attrs[%zu].offset %zu + %zu > params_size %zu", i, a->offset,
                      size, params_size);
    if (a->offset % types[a->type].align != 0)
        return refuse(err, "attrs[%zu].offset %zu is not a multiple of %zu", i, a->offset,
                      types[a->type].align);
    for (size_t j = 0; j < i; j++)
        if (a->offset < attrs[j].offset + types[attrs[j].type].size &&
            attrs[j].offset < end)
            return refuse(err, "attrs[%zu] '%s' overlaps attrs[%zu] '%s' in params", i,
                          a->name, j, attrs[j].name);
    return STRATA_OK;
}

static int check_choices(const strata_attr *a, size_t i, size_t *count, strata_error *err)
{
    const char *rest = a->choices, *item;
    size_t n, other;
    *count = 0;
    if (!rest)
        return refuse(err, "attrs[%zu].choices is NULL; '%s' is a choice", i, a->name);
    for (; (item = name_next(&rest, '|', &n)); ++*count) {
        if (!name_is_tag(item, n))
            return refuse(err, "attrs[%zu].choices \"%s\": item %zu is not a name", i,
                          a->choices, *count);
        for (const char *at, *again = rest; (at = name_next(&again, '|', &other));)
            if (other == n && !memcmp(at, item, n))
                return refuse(err, "attrs[%zu].choices has '%.*s' twice", i, (int)n,
                              item);
    }
    return STRATA_OK;
}

static bool limited(const strata_attr *a)
{
    return a->min != 0 || a->max != 0;
}

static int check_value(const strata_attr *a, size_t i, double value, bool integer,
                       strata_error *err)
{
    /* A double holds every integer up to 2^53. */
    if (integer && (value != floor(value) || fabs(value) > 9007199254740992.0))
        return refuse(err, "attrs[%zu] '%s': default %g is not an integer", i, a->name,
                      value);
    if (isnan(value) || (limited(a) && (value < a->min || value > a->max)))
        return refuse(err, "attrs[%zu] '%s': default %g is outside [%g, %g]", i, a->name,
                      value, a->min, a->max);
    return STRATA_OK;
}

/* The default of a list, as INI text: "3x3", "0.5, 0.25". */
static int check_list(const strata_attr *a, size_t i, bool integers, strata_error *err)
{
    const char *separators = integers ? "x," : ",", *at = a->def_text;
    if (!at || at[strspn(at, " ")] == '\0')
        return STRATA_OK;
    for (;;) {
        char *end;
        errno = 0;
        double value = integers ? (double)strtoll(at, &end, 10) : text_to_real(at, &end);
        size_t blanks = strspn(end, " ");
        if (end == at || errno == ERANGE ||
            (end[blanks] != '\0' && !strchr(separators, end[blanks])))
            return refuse(err, "attrs[%zu] '%s': default \"%s\" is not a list of %s", i,
                          a->name, a->def_text, types[a->type].name);
        if (check_value(a, i, value, false, err) != STRATA_OK)
            return STRATA_EMODULE;
        if (end[blanks] == '\0')
            return STRATA_OK;
        at = end + blanks + 1;
    }
}

static int check_default(const strata_attr *a, size_t i, strata_error *err)
{
    size_t choices;
    if (isnan(a->min) || isnan(a->max) || a->min > a->max)
        return refuse(err, "attrs[%zu] '%s': min %g > max %g", i, a->name, a->min,
                      a->max);
    if (a->type == STRATA_ENUM) {
        if (check_choices(a, i, &choices, err) != STRATA_OK)
            return STRATA_EMODULE;
        if (a->def != floor(a->def) || !(a->def >= 0) || a->def >= (double)choices)
            return refuse(err, "attrs[%zu] '%s': default %g is not one of %zu choices", i,
                          a->name, a->def, choices);
        return STRATA_OK;
    }
    if (a->flags & STRATA_REQUIRED)
        return STRATA_OK;
    switch (a->type) {
    case STRATA_BOOL:
        if (a->def != 0 && a->def != 1)
            return refuse(err, "attrs[%zu] '%s': default %g is not 0 or 1", i, a->name,
                          a->def);
        return STRATA_OK;
    case STRATA_I64:
        return check_value(a, i, a->def, true, err);
    case STRATA_F64:
        return check_value(a, i, a->def, false, err);
    case STRATA_INTS:
    case STRATA_REALS:
        return check_list(a, i, a->type == STRATA_INTS, err);
    default:
        return STRATA_OK;
    }
}

/* Of a network's layers, whatever their type (network/layers.c): what is named so could
 * not be given. */
static bool is_taken(const char *name)
{
    static const char *const keys[] = {"type", "inputs", "weights", "format", "impl"};
    bool taken = false;
    for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
        taken |= strcmp(keys[i], name) == 0;
    return taken;
}

int attribute_check(const strata_attr *attrs, size_t i, size_t params_size,
                    strata_error *err)
{
    const strata_attr *a = &attrs[i];
    if (!a->name)
        return refuse(err, "attrs[%zu].name is NULL", i);
    if (!name_is_key(a->name, strlen(a->name)))
        return refuse(err, "attrs[%zu].name '%s' is not [a-z][a-z0-9_]*", i, a->name);
    if (is_taken(a->name))
        return refuse(err, "attrs[%zu].name '%s' is a key of every layer", i, a->name);
    for (size_t j = 0; j < i; j++)
        if (!strcmp(attrs[j].name, a->name))
            return refuse(err, "attrs[%zu] and attrs[%zu] are both named '%s'", j, i,
                          a->name);
    if (a->type < 0 || (size_t)a->type >= ARRAY_LENGTH(types))
        return refuse(err, "attrs[%zu] '%s': type %d is unknown", i, a->name, a->type);
    if (a->flags & ~STRATA_REQUIRED)
        return refuse(err, "attrs[%zu] '%s': flags 0x%x has unknown bits", i, a->name,
                      (unsigned)a->flags);
    int status = check_place(attrs, i, params_size, err);
    return status == STRATA_OK ? check_default(a, i, err) : status;
}

int weight_check(const strata_weight *weights, size_t i, strata_error *err)
{
    const strata_weight *w = &weights[i];
    if (!w->name)
        return refuse(err, "weights[%zu].name is NULL", i);
    if (!name_is_key(w->name, strlen(w->name)))
        return refuse(err, "weights[%zu].name '%s' is not [a-z][a-z0-9_]*", i, w->name);
    if (is_taken(w->name))
        return refuse(err, "weights[%zu].name '%s' is a key of every layer", i, w->name);
    for (size_t j = 0; j < i; j++)
        if (!strcmp(weights[j].name, w->name))
            return refuse(err, "weights[%zu] and weights[%zu] are both named '%s'", j, i,
                          w->name);
    if (w->flags & ~(STRATA_REQUIRED | STRATA_FACTORS))
        return refuse(err, "weights[%zu] '%s': flags 0x%x has unknown bits", i, w->name,
                      (unsigned)w->flags);
    if (w->flags & STRATA_FACTORS && (i == 0 || w->flags & STRATA_REQUIRED))
        return refuse(err,
                      "weights[%zu] '%s': factors are an optional weight behind the one "
                      "they are of, weights[0]",
                      i, w->name);
    if (w->rank != -1 && (w->rank < 1 || w->rank > STRATA_MAX_RANK))
        return refuse(err, "weights[%zu] '%s': rank %d, need -1 or 1 to %d", i, w->name,
                      w->rank, STRATA_MAX_RANK);
    if (w->dtypes >> STRATA_DTYPE_COUNT)
        return refuse(err, "weights[%zu] '%s': dtypes 0x%llx has unknown bits", i,
                      w->name, (unsigned long long)w->dtypes);
    return STRATA_OK;
}
