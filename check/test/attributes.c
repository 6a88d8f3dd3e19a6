/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes: defaults that read, bounds that hold, and values that survive being
 * written as text and read back.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/test/test.h"

/* ---- bounds
 * ------------------------------------------------------------------------------ */

/* Whether the core takes "name = value" beside the plainest case. */
static bool takes(struct check_child *c, const strata_attr *a, const char *value)
{
    struct harness_node n = {.phase = c->report->place.phase,
                             .in_dtype = c->cases.in_dtype};
    const struct check_cases *k = &c->cases;
    struct harness_shape in[HARNESS_INPUTS];
    char text[CASES_TEXT + 200];
    const int n_in = cases_plain(c, in);
    const char *at = strstr(k->attrs[0], a->name);
    bool set = at && (at == k->attrs[0] || at[-1] == ' ') && at[strlen(a->name)] == ' ';
    if (set) /* in place of the value there */
        snprintf(text, sizeof text, "%.*s%s = %s%s", (int)(at - k->attrs[0]), k->attrs[0],
                 a->name, value, at + strcspn(at, ";"));
    else
        snprintf(text, sizeof text, "%s%s%s = %s", k->attrs[0], *k->attrs[0] ? "; " : "",
                 a->name, value);
    copy_text(c->report->place.attrs, sizeof c->report->place.attrs, text);
    harness_enter(&n, "");
    harness_open(&n, c->layer, text, in, n_in, NULL, 0);
    /* A refusal by the layer is its right; by the core, the text names the line. */
    bool by_core = n.err.status == STRATA_EPARSE;
    harness_close(&n);
    c->report->runs++;
    return !by_core;
}

static void number(char *text, size_t size, const strata_attr *a, double x)
{
    if (a->type == STRATA_I64 || a->type == STRATA_INTS)
        snprintf(text, size, "%.0f", x);
    else
        snprintf(text, size, "%.17g", x);
}

static void check_bounds(struct check_child *c, const strata_attr *a)
{
    const bool whole = a->type == STRATA_I64 || a->type == STRATA_INTS;
    const bool real = a->type == STRATA_F64 || a->type == STRATA_REALS;
    char text[64];
    if ((!whole && !real) || (a->min == 0 && a->max == 0))
        return;
    for (int upper = 0; upper < 2; upper++) {
        const double bound = upper ? a->max : a->min;
        const double outside = whole ? bound + (upper ? 1 : -1)
                                     : nextafter(bound, upper ? INFINITY : -INFINITY);
        if (!isfinite(bound) || fabs(bound) >= 0x1p53)
            continue;
        number(text, sizeof text, a, bound);
        if (!takes(c, a, text))
            check_found(c, "attribute-bounds", "%s = %s, a bound itself, is refused",
                        a->name, text);
        number(text, sizeof text, a, outside);
        if (isfinite(outside) && takes(c, a, text))
            check_found(c, "attribute-bounds", "%s = %s is taken, outside %g to %g",
                        a->name, text, a->min, a->max);
    }
}

static void check_wrong_type(struct check_child *c, const strata_attr *a)
{
    if (a->type != STRATA_STRING && takes(c, a, "%nonsense%"))
        check_found(c, "attribute-bounds", "%s = %%nonsense%% is taken", a->name);
}

void check_attributes(struct check_child *c)
{
    if (c->layer->n_attrs == 0)
        snprintf(c->report->skip, sizeof c->report->skip, "the layer has none");
    for (size_t i = 0; i < c->layer->n_attrs; i++) {
        check_bounds(c, &c->layer->attrs[i]);
        check_wrong_type(c, &c->layer->attrs[i]);
    }
}

/* ---- text and back
 * ------------------------------------------------------------------------- */

static size_t append(char *text, size_t size, size_t used, const char *format, ...)
    PRINTF_LIKE(4, 5);
static size_t append(char *text, size_t size, size_t used, const char *format, ...)
{
    va_list args;
    if (used >= size)
        return used;
    va_start(args, format);
    used += (size_t)vsnprintf(text + used, size - used, format, args);
    va_end(args);
    return used;
}

static size_t write_choice(char *text, size_t size, size_t used, const char *choices,
                           int32_t index)
{
    while (index-- > 0 && strchr(choices, '|'))
        choices = strchr(choices, '|') + 1;
    return append(text, size, used, "%.*s", (int)strcspn(choices, "|"), choices);
}

/* The value in params as INI text; empty where text has no way to say it. */
static void write_value(char *text, size_t size, const strata_attr *a, const char *params)
{
    const char *at = params + a->offset;
    int64_t i64 = 0;
    double f64 = 0;
    int32_t i32 = 0;
    strata_ints ints = {0};
    strata_reals reals = {0};
    strata_string string = {0};
    size_t used = 0;
    text[0] = '\0';
    switch (a->type) {
    case STRATA_I64:
        memcpy(&i64, at, sizeof i64);
        append(text, size, 0, "%" PRId64, i64);
        break;
    case STRATA_F64:
        memcpy(&f64, at, sizeof f64);
        if (isfinite(f64))
            append(text, size, 0, "%.17g", f64);
        break;
    case STRATA_BOOL:
        memcpy(&i32, at, sizeof i32);
        append(text, size, 0, "%s", i32 ? "yes" : "no");
        break;
    case STRATA_ENUM:
        memcpy(&i32, at, sizeof i32);
        write_choice(text, size, 0, a->choices, i32);
        break;
    case STRATA_STRING:
        memcpy(&string, at, sizeof string);
        append(text, size, 0, "%.*s", (int)string.length, string.text ? string.text : "");
        break;
    case STRATA_INTS:
        memcpy(&ints, at, sizeof ints);
        for (int64_t i = 0; i < ints.n; i++)
            used = append(text, size, used, "%s%" PRId64, i ? ", " : "", ints.v[i]);
        break;
    default:
        memcpy(&reals, at, sizeof reals);
        for (int64_t i = 0; i < reals.n; i++)
            used = append(text, size, used, "%s%.17g", i ? ", " : "", reals.v[i]);
    }
}

static void write_all(char *text, size_t size, const struct registry_layer *l,
                      const void *params)
{
    char value[512];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < l->n_attrs; i++) {
        write_value(value, sizeof value, &l->attrs[i], params);
        if (value[0])
            used = append(text, size, used, "%s%s = %s", used ? "; " : "",
                          l->attrs[i].name, value);
    }
}

/* Attributes to params to text, and once more: both texts, and what a shape callback
 * makes of them, must be equal. */
static void round_trip(struct check_child *c, const char *attrs)
{
    struct harness_node first = {.phase = c->report->place.phase,
                                 .in_dtype = c->cases.in_dtype},
                        second = first;
    struct harness_shape in[HARNESS_INPUTS];
    char once[4096], twice[4096];
    copy_text(c->report->place.attrs, sizeof c->report->place.attrs, attrs);
    const int n_in = cases_plain(c, in);
    if (harness_open(&first, c->layer, attrs, in, n_in, NULL, 0) == STRATA_OK) {
        write_all(once, sizeof once, c->layer, first.params);
        int status = harness_open(&second, c->layer, once, in, n_in, NULL, 0);
        if (status != STRATA_OK)
            check_found(c, "round-trip",
                        "'%.600s', written from the values, is refused: "
                        "%.300s",
                        once, second.err.message);
        else
            write_all(twice, sizeof twice, c->layer, second.params);
        if (status == STRATA_OK && strcmp(once, twice) != 0)
            check_found(c, "round-trip", "'%.450s' reads back as '%.450s'", once, twice);
        if (status == STRATA_OK && memcmp(first.out, second.out, sizeof first.out) != 0)
            check_found(c, "round-trip",
                        "the same attributes, read back, give other "
                        "output shapes");
        harness_close(&second);
        c->report->runs++;
    }
    harness_close(&first);
}

void check_round_trip(struct check_child *c)
{
    for (size_t i = 0; i < c->cases.n; i++)
        round_trip(c, c->cases.attrs[i]);
}
