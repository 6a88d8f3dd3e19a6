/* SPDX-License-Identifier: Apache-2.0
 *
 * A pair: key and value taken from a line, and put into a section.
 */
#include "ini/private.h"

#include <string.h>

#include "core/alloc.h"

static void bad_key(struct config *c, const char *key, size_t n,
                    struct config_place place)
{
    if (!n)
        config_error(c, place, "no key before '='");
    else if (n > CONFIG_MAX_KEY)
        config_error(c, place, "key of %zu bytes; at most %d are allowed", n,
                     CONFIG_MAX_KEY);
    else if (memchr(key, '\t', n))
        config_error(c, place, "a tab inside the key");
    else if (memchr(key, ':', n))
        config_error(c, place, "a ':' inside the key; a pair is 'key = value'");
    else
        config_error(c, place,
                     "'%.*s' is not a key: a letter or '_' first, then letters, digits "
                     "and '_'",
                     (int)n, key);
}

bool config_take_key(struct config *c, struct config_pair *p,
                     const struct config_cursor *at, size_t key, size_t equals)
{
    const char *text = at->line.text;
    size_t end = equals;
    while (key < end && is_blank(text[key]))
        key++;
    while (end > key && is_blank(text[end - 1]))
        end--;
    size_t n = end - key;
    bool good = n && n <= CONFIG_MAX_KEY && is_letter(text[key]);
    for (size_t i = key; good && i < end; i++)
        good = is_letter(text[i]) || is_digit(text[i]);
    p->key_place = config_cursor_place(c, at, key, end);
    if (!good) {
        bad_key(c, text + key, n, p->key_place);
        return false;
    }
    p->key = config_text(c, text + key, n);
    return p->key != NULL;
}

/* Why a value with quotes does not read, or NULL. */
static const char *quote_problem(const char *value, size_t n)
{
    const char *last = memchr(value + 1, '"', n - 1);
    if (value[0] != '"')
        return "a quote inside the value; quote the whole value or nothing of it";
    if (!last)
        return "the quote is not closed";
    return last != value + n - 1 ? "text after the closing quote" : NULL;
}

static bool check_value(struct config *c, const struct config_pair *p,
                        const struct config_cursor *at, size_t from, size_t to)
{
    const char *text = at->line.text;
    struct config_place place = config_cursor_place(c, at, from, to);
    if (from == to) {
        config_error(c, place, "'%s' has no value; write \"\" for an empty text", p->key);
        return false;
    }
    if (memchr(text + from, '"', to - from)) {
        const char *problem = quote_problem(text + from, to - from);
        if (problem)
            config_error(c, place, "%s", problem);
        return !problem;
    }
    for (size_t i = from; i < to; i++)
        if (text[i] == '#' && is_blank(text[i - 1])) {
            config_error(c, config_cursor_place(c, at, i, to),
                         "' #' starts no comment after a value; write ' ;', or quote "
                         "the value");
            return false;
        }
    return true;
}

bool config_take_value(struct config *c, struct config_pair *p,
                       const struct config_cursor *at, size_t equals)
{
    const char *text = at->line.text;
    size_t from = equals + 1, to = at->line.length;
    while (from < to && is_blank(text[from]))
        from++;
    if (!check_value(c, p, at, from, to))
        return false;
    p->quoted = text[from] == '"';
    p->value_place = config_cursor_place(c, at, from, to);
    if (p->quoted)
        from++, to--;
    p->value = config_text(c, text + from, to - from);
    p->line_offset = (uint32_t)at->line_offset;
    p->value_start = (uint16_t)from;
    return p->value != NULL;
}

int config_pair_add(struct config_section *s, const struct config_pair *p,
                    strata_error *err)
{
    int status = grow(&s->pairs, &s->pairs_capacity, s->n_pairs, sizeof *s->pairs, err);
    if (status == STRATA_OK)
        s->pairs[s->n_pairs++] = *p;
    return status;
}
