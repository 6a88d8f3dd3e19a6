/* SPDX-License-Identifier: Apache-2.0
 *
 * Typed values. Numbers do not depend on the locale.
 */
#include "core/config_private.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* A part of a value. */
struct span {
    const char *text;
    size_t n;
};

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

static struct span trim(struct span s)
{
    while (s.n && is_blank(s.text[0]))
        s.text++, s.n--;
    while (s.n && is_blank(s.text[s.n - 1]))
        s.n--;
    return s;
}

static struct config_place place_of(const struct config *c, const struct config_pair *p,
                                    struct span s)
{
    return config_value_place(c, p, (size_t)(s.text - p->value), s.n);
}

/* Bytes of the integer at the start of s, 0 if there is none. *fits says whether it fits
 * into *out. */
static size_t scan_int(struct span s, int64_t *out, bool *fits)
{
    size_t i = s.n && (s.text[0] == '-' || s.text[0] == '+');
    bool negative = i && s.text[0] == '-';
    size_t first = i;
    int64_t value = 0;
    *fits = true;
    for (; i < s.n && is_digit(s.text[i]); i++) {
        int digit = s.text[i] - '0';
        *fits = *fits && !__builtin_mul_overflow(value, 10, &value) &&
                !__builtin_add_overflow(value, negative ? -digit : digit, &value);
    }
    *out = value;
    return i > first ? i : 0;
}

/* Bytes of the decimal number at the start of s ("1", "-0.5", "1e-5", ".5"), or 0. */
static size_t scan_decimal(struct span s)
{
    size_t i = s.n && (s.text[0] == '-' || s.text[0] == '+');
    size_t digits = 0;
    for (; i < s.n && is_digit(s.text[i]); i++)
        digits++;
    if (i < s.n && s.text[i] == '.')
        for (i++; i < s.n && is_digit(s.text[i]); i++)
            digits++;
    if (!digits)
        return 0;
    if (i < s.n && (s.text[i] == 'e' || s.text[i] == 'E')) {
        size_t e = i + 1;
        if (e < s.n && (s.text[e] == '-' || s.text[e] == '+'))
            e++;
        size_t first = e;
        while (e < s.n && is_digit(s.text[e]))
            e++;
        if (e > first)
            i = e;
    }
    return i;
}

/* strtod of a scanned number in the C locale. */
static double decimal_value(struct span s, bool *ok)
{
    char text[CONFIG_MAX_LINE + 1];
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *ok = plain != (locale_t)0 && s.n < sizeof text;
    if (!*ok)
        return 0;
    memcpy(text, s.text, s.n);
    text[s.n] = '\0';
    double value = strtod_l(text, NULL, plain);
    freelocale(plain);
    return value;
}

/* "at least 1", "1 to 64": what is allowed. */
static void range_text(char out[64], int64_t min, int64_t max)
{
    if (max == INT64_MAX && min == INT64_MIN)
        snprintf(out, 64, "64 bits are allowed");
    else if (max == INT64_MAX)
        snprintf(out, 64, "at least %" PRId64 " is needed", min);
    else
        snprintf(out, 64, "%" PRId64 " to %" PRId64 " is allowed", min, max);
}

/* An integer that is all of s; records why not. */
static bool read_int(struct config *c, const struct config_pair *p, struct span s,
                     int64_t min, int64_t max, int64_t *out)
{
    char range[64];
    int64_t value;
    bool fits;
    if (scan_int(s, &value, &fits) != s.n || !s.n) {
        config_error(c, place_of(c, p, s), "'%.*s' is not an integer", (int)s.n, s.text);
        return false;
    }
    if (!fits || value < min || value > max) {
        range_text(range, min, max);
        config_error(c, place_of(c, p, s), "%.*s is out of range: %s", (int)s.n, s.text,
                     range);
        return false;
    }
    *out = value;
    return true;
}

static bool is_word(struct span s, const char *word)
{
    return strlen(word) == s.n && memcmp(s.text, word, s.n) == 0;
}

static bool read_real(struct config *c, const struct config_pair *p, struct span s,
                      double min, double max, double *out)
{
    bool negative = is_word(s, "-inf"), infinite = negative || is_word(s, "inf");
    bool ok = true;
    double value = negative ? -INFINITY : INFINITY;
    if (!infinite) {
        if (!s.n || scan_decimal(s) != s.n) {
            config_error(c, place_of(c, p, s), "'%.*s' is not a number", (int)s.n,
                         s.text);
            return false;
        }
        value = decimal_value(s, &ok);
    }
    if (!ok || (isinf(value) && !infinite)) {
        config_error(c, place_of(c, p, s), "%.*s is too large for a number", (int)s.n,
                     s.text);
        return false;
    }
    if (value < min || value > max) {
        bool open = isinf(max) && max > 0;
        config_error(c, place_of(c, p, s),
                     open ? "%.*s is out of range: at least %g is needed"
                          : "%.*s is out of range: %g to %g is allowed",
                     (int)s.n, s.text, min, max);
        return false;
    }
    *out = value;
    return true;
}

static struct span whole(const struct config_pair *p)
{
    return (struct span){p->value, strlen(p->value)};
}

bool config_int(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                int64_t *out)
{
    return !p->invalid && read_int(c, p, whole(p), min, max, out);
}

bool config_real(struct config *c, const struct config_pair *p, double min, double max,
                 double *out)
{
    return !p->invalid && read_real(c, p, whole(p), min, max, out);
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
    struct span all = whole(p);
    size_t digits = scan_decimal(all);
    struct span name = trim((struct span){all.text + digits, all.n - digits});
    const struct unit *unit = NULL;
    bool ok = digits > 0, whole_number;
    int64_t integer;
    if (p->invalid)
        return false;
    for (size_t i = 0; i < n; i++)
        if (is_word(name, units[i].name))
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

/* ---- symbols ---- */

static int compare_int64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A symbol with several values; *largest is one of them. */
static void read_batches(struct config *c, const struct config_pair *p, int64_t *largest)
{
    size_t n;
    if (c->batch_symbol) {
        config_error(c, p->key_place, "'%s' and '%s' both have several values; one may",
                     c->batch_symbol, p->key);
        return;
    }
    if (!config_ints(c, p, 1, INT32_MAX, c->batches, CONFIG_MAX_BATCHES, &n))
        return;
    qsort(c->batches, n, sizeof *c->batches, compare_int64);
    for (size_t i = 1; i < n; i++)
        if (c->batches[i] == c->batches[i - 1]) {
            config_error(c, p->value_place, "%" PRId64 " stands twice", c->batches[i]);
            return;
        }
    c->batch_symbol = p->key;
    c->n_batches = n;
    *largest = c->batches[n - 1];
}

size_t config_batches(const struct config *c, const int64_t **out)
{
    *out = c->batches;
    return c->n_batches;
}

void config_profile(struct config *c)
{
    struct config_section *s = config_find(c, "profile");
    if (!s || c->symbols)
        return;
    c->symbols = zalloc(s->n_pairs, sizeof *c->symbols, "symbols", NULL);
    for (size_t i = 0; c->symbols && i < s->n_pairs; i++) {
        struct config_pair *p = &s->pairs[i];
        p->used = true;
        c->symbols[i] = -1;
        if (!p->invalid && strchr(p->value, ','))
            read_batches(c, p, &c->symbols[i]);
        else
            config_int(c, p, 1, INT32_MAX, &c->symbols[i]);
        if (names_put(&c->symbol_index, p->key, (int)i, NULL) != STRATA_OK)
            c->no_memory = true;
    }
    if (!c->symbols)
        c->no_memory = true;
}

bool config_symbol(const struct config *c, const char *name, size_t length, int64_t *out)
{
    char key[CONFIG_MAX_KEY + 1];
    if (length > CONFIG_MAX_KEY)
        return false;
    memcpy(key, name, length);
    key[length] = '\0';
    int i = names_get(&c->symbol_index, key);
    if (i >= 0)
        *out = c->symbols[i];
    return i >= 0;
}

/* ---- lists ---- */

static bool read_symbol(struct config *c, const struct config_pair *p, struct span s,
                        int64_t min, int64_t max, int64_t *out)
{
    char range[64];
    int64_t value;
    if (!config_symbol(c, s.text, s.n, &value)) {
        config_error(c, place_of(c, p, s),
                     "'%.*s' is neither an integer nor a name that [profile] defines%s",
                     (int)s.n, s.text,
                     memchr(s.text, 'x', s.n) ? "; blanks around 'x' set names apart"
                                              : "");
        return false;
    }
    if (value < 0) /* its error was recorded */
        return false;
    if (value < min || value > max) {
        range_text(range, min, max);
        config_error(c, place_of(c, p, s), "%.*s = %" PRId64 " is out of range: %s",
                     (int)s.n, s.text, value, range);
        return false;
    }
    *out = value;
    return true;
}

/* The integer or symbol at the start of rest. */
static struct span next_int(struct span rest)
{
    size_t n = 0;
    int64_t ignored;
    bool fits;
    if (rest.n && is_letter(rest.text[0]))
        while (n < rest.n && (is_letter(rest.text[n]) || is_digit(rest.text[n])))
            n++;
    else
        n = scan_int(rest, &ignored, &fits);
    if (!n) /* what stands there instead, for the message */
        while (n < rest.n && !is_blank(rest.text[n]) && rest.text[n] != ',')
            n++;
    return (struct span){rest.text, n};
}

static struct span skip(struct span s, size_t n)
{
    return trim((struct span){s.text + n, s.n - n});
}

/* Whether a symbol with several values stands where it may. */
static bool allow_symbol(struct config *c, const struct config_pair *p, struct span s,
                         bool first, bool *batched)
{
    if (!c->batch_symbol || !is_word(s, c->batch_symbol))
        return true;
    if (!first || !batched) {
        config_error(c, place_of(c, p, s),
                     "'%s' has several values in [profile], so it can only be the first "
                     "dim of an input's shape; where a layer's shape copies that dim, "
                     "write 0 or -1",
                     c->batch_symbol);
        return false;
    }
    return *batched = true;
}

bool config_ints(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                 int64_t *out, size_t max_n, size_t *n)
{
    return config_dims(c, p, min, max, out, max_n, n, NULL);
}

bool config_dims(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                 int64_t *out, size_t max_n, size_t *n, bool *batched)
{
    struct span rest = trim(whole(p));
    size_t count = 0;
    char separator = 0;
    if (p->invalid)
        return false;
    for (;;) {
        struct span item = next_int(rest);
        int64_t value;
        bool symbol = item.n && is_letter(item.text[0]);
        if (symbol && !allow_symbol(c, p, item, count == 0, batched))
            return false;
        if (symbol ? !read_symbol(c, p, item, min, max, &value)
                   : !read_int(c, p, item, min, max, &value))
            return false;
        if (count == max_n) {
            config_error(c, place_of(c, p, item), "more than %zu number%s", max_n,
                         max_n == 1 ? "" : "s");
            return false;
        }
        out[count++] = value;
        rest = skip(rest, item.n);
        if (!rest.n)
            break;
        if ((rest.text[0] != 'x' && rest.text[0] != ',') ||
            (separator && rest.text[0] != separator)) {
            config_error(c, place_of(c, p, (struct span){rest.text, 1}),
                         "integers are written \"3x3\" or \"3, 3\"");
            return false;
        }
        separator = rest.text[0];
        rest = skip(rest, 1);
    }
    *n = count;
    return true;
}

bool config_reals(struct config *c, const struct config_pair *p, double *out,
                  size_t max_n, size_t *n)
{
    struct span rest = whole(p);
    size_t count = 0;
    if (p->invalid)
        return false;
    for (bool more = true; more; count++) {
        const char *comma = memchr(rest.text, ',', rest.n);
        size_t size = comma ? (size_t)(comma - rest.text) : rest.n;
        struct span item = trim((struct span){rest.text, size});
        double value;
        if (!read_real(c, p, item, -INFINITY, INFINITY, &value))
            return false;
        if (count == max_n) {
            config_error(c, place_of(c, p, item), "more than %zu number%s", max_n,
                         max_n == 1 ? "" : "s");
            return false;
        }
        out[count] = value;
        more = comma != NULL;
        rest = (struct span){rest.text + size + more, rest.n - size - more};
    }
    *n = count;
    return true;
}

bool config_list(struct config *c, const struct config_pair *p, struct config_item **out,
                 size_t *n)
{
    struct config_item *items = NULL;
    size_t count = 0, capacity = 0;
    struct span rest = whole(p);
    *out = NULL;
    *n = 0;
    if (p->invalid)
        return false;
    for (bool more = true; more; count++) {
        const char *comma = memchr(rest.text, ',', rest.n);
        size_t size = comma ? (size_t)(comma - rest.text) : rest.n;
        struct span item = trim((struct span){rest.text, size});
        if (!item.n) {
            config_error(c, place_of(c, p, item), "an empty item in the list");
            break;
        }
        if (grow(&items, &capacity, count, sizeof *items, NULL) != STRATA_OK)
            c->no_memory = true;
        if (c->no_memory || !(items[count].text = strndup(item.text, item.n))) {
            c->no_memory = true;
            break;
        }
        items[count].offset = (size_t)(item.text - p->value);
        more = comma != NULL;
        rest = (struct span){rest.text + size + more, rest.n - size - more};
        if (!more) {
            *out = items;
            *n = count + 1;
            return true;
        }
    }
    config_list_free(items, count);
    return false;
}

void config_list_free(struct config_item *items, size_t n)
{
    for (size_t i = 0; items && i < n; i++)
        free(items[i].text);
    free(items);
}
