/* SPDX-License-Identifier: Apache-2.0
 *
 * Which dim is the sum of others, where no name says so: the model takes the sum at sizes
 * that are far apart, and is refused with more or less of it.
 */
#include "network/import/symbols/symbols.h"

static bool is_accepted(const struct search *x, const int64_t *sizes)
{
    struct import *im = NULL;
    strata_error why = {0};
    const int status = import_at(&im, &x->start, sizes, x->memo, &why);
    import_free(im);
    return status == STRATA_OK;
}

/* Whether the model takes the sum at sizes that are far apart, of its summands as well,
 * and neither more nor less of it. */
static bool is_needed(struct search *x, int sum)
{
    int64_t sizes[IMPORT_SYMBOLS];
    struct symbol *s = &x->start.symbols[sum];
    bool taken = true;
    for (int which = 0; which < 3 && taken; which++) {
        search_fixed(x, sizes);
        for (int i = 0; i < x->start.n_symbols; i++)
            if (symbol_varies(&x->start.symbols[i]))
                sizes[i] = symbol_other(&x->start.symbols[i],
                                        which == 2 && i == s->first_summand ? 1 : which);
        taken = is_accepted(x, sizes);
    }
    s->more--;
    const bool less = taken && is_accepted(x, sizes);
    s->more += 2;
    const bool more = taken && less && is_accepted(x, sizes);
    s->more--;
    return taken && !(less && more);
}

static bool try_sum(struct search *x, int sum, int first, int second, int64_t more)
{
    struct symbol *s = &x->start.symbols[sum];
    const struct symbol before = *s;
    symbol_make_sum(s, first, second, more);
    symbols_settle_sums(x->start.symbols, x->start.n_symbols);
    if (is_needed(x, sum)) {
        log_line(STRATA_LOG_INFO, "%s: %s is %s", x->start.model->path, s->symbol,
                 s->name);
        return true;
    }
    *s = before;
    return false;
}

static bool may_be_part(const struct search *x, int symbol)
{
    const struct symbol *s = &x->start.symbols[symbol];
    return symbol_varies(s) && symbol_has_range(s) && !s->first;
}

/* Those that may be parts of a sum: where the model is taken as it is, not those that may
 * be more and less alone. So few sums are tried of a large model. */
static void find_parts(const struct search *x, bool parts[IMPORT_SYMBOLS])
{
    int64_t sizes[IMPORT_SYMBOLS];
    search_fixed(x, sizes);
    const bool taken = is_accepted(x, sizes);
    for (int i = 0; i < x->start.n_symbols; i++) {
        parts[i] = may_be_part(x, i);
        if (!taken || !parts[i])
            continue;
        search_fixed(x, sizes);
        sizes[i]++;
        const bool more = is_accepted(x, sizes);
        sizes[i] = symbol_other(&x->start.symbols[i], 1);
        parts[i] = !more || !is_accepted(x, sizes);
    }
}

/* With what is so long in all runs: one token, or a size that an option gives. */
static bool try_numbers(struct search *x, int sum, int first)
{
    const struct import_options *o = &x->start.options;
    if (try_sum(x, sum, first, -1, 1))
        return true;
    for (size_t i = 0; i < o->n_symbols; i++)
        if (o->symbols[i].n == 1 && !o->symbols[i].range && o->symbols[i].values[0] > 1 &&
            try_sum(x, sum, first, -1, o->symbols[i].values[0]))
            return true;
    return false;
}

bool search_sum(struct search *x)
{
    const int n = x->start.n_symbols;
    bool parts[IMPORT_SYMBOLS];
    find_parts(x, parts);
    for (int i = 0; i < n * n * n; i++) {
        const int sum = i / (n * n), a = i / n % n, b = i % n;
        if (a < b && sum != a && sum != b && parts[sum] && parts[a] && parts[b] &&
            try_sum(x, sum, a, b, 0))
            return true;
    }
    for (int i = 0; i < n * n; i++)
        if (i / n != i % n && parts[i / n] && parts[i % n] &&
            try_numbers(x, i / n, i % n))
            return true;
    return false;
}
