/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of values. In those of integers names of [profile] may stand.
 */
#include "ini/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

#define NUMBER_PART                                                                      \
    (struct config_part)                                                                 \
    {                                                                                    \
        .symbol = -1, .times = 1, .over = 1, .plus = -1                                  \
    }

/* ---- lists ---- */

int config_symbol(const struct config *c, const char *name, size_t length)
{
    char key[CONFIG_MAX_KEY + 1];
    if (length > CONFIG_MAX_KEY)
        return -1;
    memcpy(key, name, length);
    key[length] = '\0';
    return names_get(&c->symbol_index, key);
}

/* "*2" or "/8" behind a name. */
static bool read_factor(struct config *c, const struct config_pair *p, struct span s,
                        const struct config_symbol *of, struct config_part *part)
{
    int64_t factor;
    if (!s.n)
        return true;
    if (!span_int(c, p, (struct span){s.text + 1, s.n - 1}, 1, INT32_MAX, &factor))
        return false;
    *(s.text[0] == '*' ? &part->times : &part->over) = factor;
    if (of->least % part->over == 0 &&
        (of->least == of->most || of->step % part->over == 0))
        return true;
    config_error(c, span_place(c, p, s),
                 "%s has sizes that %" PRId64
                 " does not divide; give its range steps, as "
                 "%" PRId64 "..%" PRId64 "/%" PRId64,
                 of->name, factor, factor, factor * 8, factor);
    return false;
}

/* "+T" or "+1" behind a name; *least and *most grow by its sizes. */
static bool read_summand(struct config *c, const struct config_pair *p, struct span s,
                         struct config_part *part, int64_t *least, int64_t *most)
{
    const struct span other = {s.text + 1, s.n - 1};
    int64_t number;
    if (!other.n || !is_letter(other.text[0])) {
        if (!span_int(c, p, other, 1, INT32_MAX, &number))
            return false;
        part->more = number;
        *least += number;
        *most += number;
        return true;
    }
    const int index = config_symbol(c, other.text, other.n);
    if (index < 0) {
        config_error(c, span_place(c, p, other),
                     "'%.*s' is neither an integer nor a name that [profile] defines",
                     (int)other.n, other.text);
        return false;
    }
    struct config_symbol *found = &c->symbols[index];
    found->used = true;
    if (found->most < 0) /* its error was recorded */
        return false;
    if (found->least == found->most)
        part->more = found->most;
    else
        part->plus = index;
    *least += found->least;
    *most += found->most;
    return true;
}

/* A symbol with one size and one with several: the latter stands first. */
static void order_part(struct config_part *part, const struct config_symbol *first)
{
    if (first->least != first->most || part->plus < 0)
        return;
    part->symbol = part->plus;
    part->plus = -1;
    part->more = first->most;
}

/* The number a symbol stands for; of several the largest, and *named is then the symbol.
 */
static bool read_symbol(struct config *c, const struct config_pair *p, struct span all,
                        int64_t min, int64_t max, int64_t *out, struct config_part *named)
{
    char range[RANGE_TEXT];
    size_t n = 0;
    while (n < all.n && !strchr("*/+", all.text[n]))
        n++;
    const struct span rest = {all.text + n, all.n - n};
    const bool sum = rest.n && rest.text[0] == '+';
    const struct span s = {all.text, n};
    struct config_part part = NUMBER_PART;
    const int index = config_symbol(c, s.text, s.n);
    if (index < 0) {
        config_error(c, span_place(c, p, s),
                     "'%.*s' is neither an integer nor a name that [profile] defines%s",
                     (int)s.n, s.text,
                     memchr(s.text, 'x', s.n) ? "; blanks around 'x' set names apart"
                                              : "");
        return false;
    }
    struct config_symbol *found = &c->symbols[index];
    found->used = true;
    if (found->most < 0) /* its error was recorded */
        return false;
    if (!sum && !read_factor(c, p, rest, found, &part))
        return false;
    int64_t least = found->least * part.times / part.over,
            most = found->most * part.times / part.over;
    if (sum && !read_summand(c, p, rest, &part, &least, &most))
        return false;
    if (least != most && !named) {
        config_error(
            c, span_place(c, p, s),
            "'%.*s' has several sizes in [profile]; it stands in shapes of inputs and in "
            "lists of layers' integers, here one number is needed",
            (int)s.n, s.text);
        return false;
    }
    if (least < min || most > max) {
        range_text(range, min, max);
        config_error(c, span_place(c, p, all), "%.*s = %" PRId64 " is out of range: %s",
                     (int)all.n, all.text, least < min ? least : most, range);
        return false;
    }
    if (named && least != most) {
        part.symbol = index;
        order_part(&part, found);
        *named = part;
    }
    *out = most;
    return true;
}

/* The integer or symbol, and its factor, at the start of rest. */
static struct span next_int(struct span rest)
{
    size_t n = 0;
    int64_t ignored;
    bool fits;
    if (rest.n && is_letter(rest.text[0]))
        while (n < rest.n &&
               (is_letter(rest.text[n]) || is_digit(rest.text[n]) ||
                rest.text[n] == '*' || rest.text[n] == '/' || rest.text[n] == '+'))
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
    return span_trim((struct span){s.text + n, s.n - n});
}

bool config_ints(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                 int64_t *out, size_t max_n, size_t *n)
{
    return config_dims(c, p, min, max, out, max_n, n, NULL);
}

bool config_dims(struct config *c, const struct config_pair *p, int64_t min, int64_t max,
                 int64_t *out, size_t max_n, size_t *n, struct config_part *parts)
{
    return !p->invalid && span_ints(c, p, span_whole(p), min, max, out, max_n, n, parts);
}

bool span_ints(struct config *c, const struct config_pair *p, struct span s, int64_t min,
               int64_t max, int64_t *out, size_t max_n, size_t *n,
               struct config_part *parts)
{
    struct span rest = span_trim(s);
    size_t count = 0;
    char separator = 0;
    for (size_t i = 0; parts && i < max_n; i++)
        parts[i] = NUMBER_PART;
    for (;;) {
        struct span item = next_int(rest);
        int64_t value;
        bool symbol = item.n && is_letter(item.text[0]);
        struct config_part *which = parts && count < max_n ? &parts[count] : NULL;
        if (symbol ? !read_symbol(c, p, item, min, max, &value, which)
                   : !span_int(c, p, item, min, max, &value))
            return false;
        if (count == max_n) {
            config_error(c, span_place(c, p, item), "more than %zu number%s", max_n,
                         max_n == 1 ? "" : "s");
            return false;
        }
        out[count++] = value;
        rest = skip(rest, item.n);
        if (!rest.n)
            break;
        if ((rest.text[0] != 'x' && rest.text[0] != ',') ||
            (separator && rest.text[0] != separator)) {
            config_error(c, span_place(c, p, (struct span){rest.text, 1}),
                         "integers are written \"3x3\" or \"3, 3\"");
            return false;
        }
        separator = rest.text[0];
        rest = skip(rest, 1);
    }
    *n = count;
    return true;
}

/* What stands before the first comma of *rest; *rest is then what follows it. */
static struct span cut_item(struct span *rest, bool *more)
{
    const char *comma = memchr(rest->text, ',', rest->n);
    size_t size = comma ? (size_t)(comma - rest->text) : rest->n;
    struct span item = span_trim((struct span){rest->text, size});
    *more = comma != NULL;
    *rest = (struct span){rest->text + size + *more, rest->n - size - *more};
    return item;
}

bool config_reals(struct config *c, const struct config_pair *p, double *out,
                  size_t max_n, size_t *n)
{
    struct span rest = span_whole(p);
    size_t count = 0;
    if (p->invalid)
        return false;
    for (bool more = true; more; count++) {
        struct span item = cut_item(&rest, &more);
        double value;
        if (!span_real(c, p, item, -INFINITY, INFINITY, &value))
            return false;
        if (count == max_n) {
            config_error(c, span_place(c, p, item), "more than %zu number%s", max_n,
                         max_n == 1 ? "" : "s");
            return false;
        }
        out[count] = value;
    }
    *n = count;
    return true;
}

bool config_list(struct config *c, const struct config_pair *p, struct config_item **out,
                 size_t *n)
{
    struct config_item *items = NULL;
    size_t count = 0, capacity = 0;
    struct span rest = span_whole(p);
    *out = NULL;
    *n = 0;
    if (p->invalid)
        return false;
    for (bool more = true; more; count++) {
        struct span item = cut_item(&rest, &more);
        if (!item.n) {
            config_error(c, span_place(c, p, item), "an empty item in the list");
            break;
        }
        if (grow(&items, &capacity, count, sizeof *items, NULL) != STRATA_OK)
            c->no_memory = true;
        if (c->no_memory || !(items[count].text = strndup(item.text, item.n))) {
            c->no_memory = true;
            break;
        }
        items[count].offset = (size_t)(item.text - p->value);
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
