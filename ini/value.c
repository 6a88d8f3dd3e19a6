/* SPDX-License-Identifier: Apache-2.0
 *
 * Single values: numbers, words of a set, sizes and times.
 */
#include "ini/scan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    double factor;
};

static const struct unit size_units[] = {
    {"", 1},      {"B", 1},        {"kB", 1e3},        {"MB", 1e6},     {"GB", 1e9},
    {"TB", 1e12}, {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 0x1p30}, {"TiB", 0x1p40},
};

static const struct unit time_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9},
};

bool config_int(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                int64_t *out)
{
    return !p->invalid && span_int(c, p, span_whole(p), min, max, out);
}

bool config_real(struct config *c, const struct config_pair *p, double min, double max,
                 double *out)
{
    return !p->invalid && span_real(c, p, span_whole(p), min, max, out);
}

bool config_bool(struct config *c, const struct config_pair *p, bool *out)
{
    static const char *const words[] = {"no", "yes", "off", "on", "false", "true"};
    if (p->invalid)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(words); i++)
        if (strcmp(p->value, words[i]) == 0) {
            *out = i % 2;
            return true;
        }
    config_error(c, p->value_place,
                 "'%s' is neither yes nor no (also on, off, true, false)", p->value);
    return false;
}

static void unknown_choice(struct config *c, const struct config_pair *p,
                           const char *choices)
{
    const char *names[64], *near = NULL;
    size_t n = 0;
    char *copy = strdup(choices), *rest = copy;
    for (char *name; copy && n < ARRAY_LENGTH(names) && (name = strsep(&rest, "|"));)
        names[n++] = name;
    near = config_nearest(c, p->value, names, n);
    config_error(c, p->value_place, "'%s' is not one of %s%s%s%s", p->value, choices,
                 near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    free(copy);
}

bool config_choice(struct config *c, const struct config_pair *p, const char *choices,
                   int *out)
{
    size_t length = strlen(p->value);
    int index = 0;
    if (p->invalid)
        return false;
    for (const char *at = choices; length; index++) {
        size_t n = strcspn(at, "|");
        if (n == length && memcmp(at, p->value, n) == 0) {
            *out = index;
            return true;
        }
        if (!at[n])
            break;
        at += n + 1;
    }
    unknown_choice(c, p, choices);
    return false;
}

/* A number with a unit; the product must be a whole number below 2^63. */
static bool read_scaled(struct config *c, const struct config_pair *p,
                        const struct unit *units, size_t n, const char *what,
                        const char *example, uint64_t *out)
{
    struct span all = span_whole(p);
    size_t digits = scan_decimal(all);
    struct span name = span_trim((struct span){all.text + digits, all.n - digits});
    const struct unit *unit = NULL;
    bool ok = digits > 0, whole_number;
    int64_t integer;
    if (p->invalid)
        return false;
    for (size_t i = 0; i < n; i++)
        if (span_is(name, units[i].name))
            unit = &units[i];
    if (!ok || !unit) {
        config_error(c, p->value_place, "'%s' is not a %s; write it as %s", p->value,
                     what, example);
        return false;
    }
    size_t plain = scan_int(all, &integer, &whole_number);
    double value = decimal_value((struct span){all.text, digits}, &ok);
    ok = ok && value >= 0 && value * unit->factor < 0x1p63;
    if (!ok) {
        config_error(c, p->value_place, "%s is out of range for a %s", p->value, what);
        return false;
    }
    *out = plain == digits ? (uint64_t)integer * (uint64_t)unit->factor
                           : (uint64_t)llround(value * unit->factor);
    return true;
}

bool config_size(struct config *c, const struct config_pair *p, uint64_t *out)
{
    return read_scaled(c, p, size_units, ARRAY_LENGTH(size_units), "size",
                       "64MiB, 1 GB or 4096", out);
}

bool config_time(struct config *c, const struct config_pair *p, uint64_t *out)
{
    return read_scaled(c, p, time_units, ARRAY_LENGTH(time_units), "time",
                       "500us, 2 ms or 1.5s", out);
}
