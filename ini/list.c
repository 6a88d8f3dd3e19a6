/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of values, and the symbols of [profile] that may stand in lists of integers.
 */
#include "ini/scan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

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

const char *config_batch_symbol(const struct config *c)
{
    return c->batch_symbol;
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
    char range[RANGE_TEXT];
    int64_t value;
    if (!config_symbol(c, s.text, s.n, &value)) {
        config_error(c, span_place(c, p, s),
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
        config_error(c, span_place(c, p, s), "%.*s = %" PRId64 " is out of range: %s",
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
    return span_trim((struct span){s.text + n, s.n - n});
}

/* Whether a symbol with several values stands where it may. */
static bool allow_symbol(struct config *c, const struct config_pair *p, struct span s,
                         bool first, bool *batched)
{
    if (!c->batch_symbol || !span_is(s, c->batch_symbol))
        return true;
    if (!first || !batched) {
        config_error(c, span_place(c, p, s),
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
    struct span rest = span_trim(span_whole(p));
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
