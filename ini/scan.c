/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers in parts of a value; they do not depend on the locale.
 */
#include "ini/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"

struct span span_whole(const struct config_pair *p)
{
    return (struct span){p->value, strlen(p->value)};
}

struct span span_trim(struct span s)
{
    while (s.n && is_blank(s.text[0]))
        s.text++, s.n--;
    while (s.n && is_blank(s.text[s.n - 1]))
        s.n--;
    return s;
}

struct config_place span_place(const struct config *c, const struct config_pair *p,
                               struct span s)
{
    return config_value_place(c, p, (size_t)(s.text - p->value), s.n);
}

bool span_is(struct span s, const char *word)
{
    return strlen(word) == s.n && memcmp(s.text, word, s.n) == 0;
}

size_t scan_int(struct span s, int64_t *out, bool *fits)
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

size_t scan_decimal(struct span s)
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

double decimal_value(struct span s, bool *ok)
{
    char text[CONFIG_MAX_LINE + 1], *end;
    *ok = s.n < sizeof text;
    if (!*ok)
        return 0;
    memcpy(text, s.text, s.n);
    text[s.n] = '\0';
    const double value = text_to_real(text, &end);
    *ok = end > text;
    return value;
}

void range_text(char out[RANGE_TEXT], int64_t min, int64_t max)
{
    if (max == INT64_MAX && min == INT64_MIN)
        snprintf(out, RANGE_TEXT, "64 bits are allowed");
    else if (max == INT64_MAX)
        snprintf(out, RANGE_TEXT, "at least %" PRId64 " is needed", min);
    else
        snprintf(out, RANGE_TEXT, "%" PRId64 " to %" PRId64 " is allowed", min, max);
}

bool span_int(struct config *c, const struct config_pair *p, struct span s, int64_t min,
              int64_t max, int64_t *out)
{
    char range[RANGE_TEXT];
    int64_t value;
    bool fits;
    if (scan_int(s, &value, &fits) != s.n || !s.n) {
        config_error(c, span_place(c, p, s), "'%.*s' is not an integer", (int)s.n,
                     s.text);
        return false;
    }
    if (!fits || value < min || value > max) {
        const bool huge = !fits && max == INT64_MAX && s.text[0] != '-';
        range_text(range, huge ? INT64_MIN : min, max); /* the least would say nothing */
        config_error(c, span_place(c, p, s), "%.*s is out of range: %s", (int)s.n, s.text,
                     range);
        return false;
    }
    *out = value;
    return true;
}

bool span_real(struct config *c, const struct config_pair *p, struct span s, double min,
               double max, double *out)
{
    bool negative = span_is(s, "-inf"), infinite = negative || span_is(s, "inf");
    bool ok = true;
    double value = negative ? -INFINITY : INFINITY;
    if (!infinite) {
        if (!s.n || scan_decimal(s) != s.n) {
            config_error(c, span_place(c, p, s), "'%.*s' is not a number", (int)s.n,
                         s.text);
            return false;
        }
        value = decimal_value(s, &ok);
    }
    if (!ok || (isinf(value) && !infinite)) {
        config_error(c, span_place(c, p, s), "%.*s is too large for a number", (int)s.n,
                     s.text);
        return false;
    }
    if (value < min || value > max) {
        bool open = isinf(max) && max > 0;
        config_error(c, span_place(c, p, s),
                     open ? "%.*s is out of range: at least %g is needed"
                          : "%.*s is out of range: %g to %g is allowed",
                     (int)s.n, s.text, min, max);
        return false;
    }
    *out = value;
    return true;
}
