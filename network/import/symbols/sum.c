/* SPDX-License-Identifier: Apache-2.0
 *
 * Dims that are the sum of others: of a decoder's mask, which is as long as what its
 * cache holds and what a run adds. A model says so by the dim's name, "past + length", or
 * refuses all other sizes. Such a dim has no sizes of its own: [profile] has none, and
 * shapes and lists say "past+length".
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "network/import/symbols/symbols.h"

/* ---- sizes and names ---- */

static int64_t sum_of(const struct symbol *s, const int64_t *sizes)
{
    return (s->first_summand < 0 ? 0 : sizes[s->first_summand]) +
           (s->second_summand < 0 ? 0 : sizes[s->second_summand]) + s->more;
}

void symbols_add(const struct import *im, int64_t *sizes)
{
    for (int i = 0; i < im->n_symbols; i++)
        if (im->symbols[i].is_sum)
            sizes[i] = sum_of(&im->symbols[i], sizes);
}

/* A summand that is fixed is a number from now on. */
static void settle_summand(const struct symbol *all, int *summand, int64_t *more)
{
    if (*summand < 0 || symbol_is_kept(&all[*summand]))
        return;
    *more += symbol_fixed(&all[*summand]);
    *summand = -1;
}

static void settle_sum(const struct symbol *all, struct symbol *s)
{
    settle_summand(all, &s->first_summand, &s->more);
    settle_summand(all, &s->second_summand, &s->more);
    if (s->first_summand < 0) {
        s->first_summand = s->second_summand;
        s->second_summand = -1;
    }
    const struct symbol *a = s->first_summand < 0 ? NULL : &all[s->first_summand],
                        *b = s->second_summand < 0 ? NULL : &all[s->second_summand];
    s->least = s->more + (a ? a->least : 0) + (b ? b->least : 0);
    s->most = s->more + (a ? a->most : 0) + (b ? b->most : 0);
    s->sizes[0] = s->most;
    s->n = 1;
    s->step = 1;
    if (!a)
        snprintf(s->reason, sizeof s->reason, "what it is the sum of was fixed");
    else if (b)
        snprintf(s->name, sizeof s->name, "%.*s+%.*s", CONFIG_MAX_KEY, a->name,
                 CONFIG_MAX_KEY, b->name);
    else if (s->more)
        snprintf(s->name, sizeof s->name, "%.*s+%" PRId64, CONFIG_MAX_KEY, a->name,
                 s->more);
    else
        snprintf(s->name, sizeof s->name, "%.*s", CONFIG_MAX_KEY, a->name);
}

void symbols_settle_sums(struct symbol *all, int n)
{
    for (int i = 0; i < n; i++)
        if (all[i].is_sum && symbol_is_kept(&all[i]))
            settle_sum(all, &all[i]);
}

void symbol_make_sum(struct symbol *s, int first, int second, int64_t more)
{
    s->is_sum = true;
    s->assumed = s->open = false;
    s->first_summand = first;
    s->second_summand = second;
    s->more = more;
}

/* ---- by its name ---- */

/* What a part of a dim's name is: a symbol, or a number; false: neither. */
static bool read_part(const struct import *im, const char *text, size_t n, int *symbol,
                      int64_t *number)
{
    char *end;
    *symbol = -1;
    *number = 0;
    for (int i = 0; i < im->n_symbols; i++) {
        const struct symbol *s = &im->symbols[i];
        if (strlen(s->symbol) == n && n && memcmp(s->symbol, text, n) == 0)
            *symbol = i;
    }
    for (size_t i = 0; i < im->options.n_symbols && *symbol < 0; i++) {
        const struct import_symbol *o = &im->options.symbols[i];
        if (strlen(o->name) == n && memcmp(o->name, text, n) == 0 && o->n == 1) {
            *number = o->values[0];
            return true;
        }
    }
    if (*symbol >= 0)
        return !im->symbols[*symbol].is_sum && !im->symbols[*symbol].first;
    *number = strtoll(text, &end, 10);
    return n > 0 && end == text + n && *number > 0 && *number <= INT32_MAX;
}

static size_t trimmed(const char **text, size_t n)
{
    for (; n && **text == ' '; n--)
        ++*text;
    while (n && (*text)[n - 1] == ' ')
        n--;
    return n;
}

void symbols_find_sums(struct import *im)
{
    for (int i = 0; i < im->n_symbols; i++) {
        struct symbol *s = &im->symbols[i];
        const char *plus = strchr(s->symbol, '+'), *left = s->symbol,
                   *right = plus ? plus + 1 : NULL;
        int first, second;
        int64_t more, other;
        if (!plus || s->first)
            continue;
        const size_t n_left = trimmed(&left, (size_t)(plus - left)),
                     n_right = trimmed(&right, strlen(right));
        if (read_part(im, left, n_left, &first, &more) &&
            read_part(im, right, n_right, &second, &other) &&
            (first >= 0 || second >= 0) && first != second)
            symbol_make_sum(s, first, second, more + other);
    }
    symbols_settle_sums(im->symbols, im->n_symbols);
}
