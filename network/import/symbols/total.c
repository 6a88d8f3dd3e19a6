/* SPDX-License-Identifier: Apache-2.0
 *
 * Which dim is the sum of others, or another, where no name says so: the model takes that
 * at sizes that are far apart, and is refused with more or less of it.
 */
#include "network/import/symbols/symbols.h"

#include <string.h>

static bool is_accepted(const struct search *x, const int64_t *sizes)
{
    struct import *im = NULL;
    strata_error why = {0};
    const int status = import_at(&im, &x->start, sizes, x->memo, &why);
    import_free(im);
    return status == STRATA_OK;
}

/* Whether the model takes all sums at sizes that are far apart, of the summands of `lone`
 * as well; *sizes: the last of them. */
static bool is_taken(const struct search *x, const struct symbol *lone, int64_t *sizes)
{
    bool taken = true;
    for (int which = 0; which < 3 && taken; which++) {
        search_fixed(x, sizes);
        for (int i = 0; i < x->start.n_symbols; i++)
            if (symbol_varies(&x->start.symbols[i]))
                sizes[i] = symbol_other(
                    &x->start.symbols[i],
                    which == 2 && lone && i == lone->first_summand ? 1 : which);
        taken = is_accepted(x, sizes);
    }
    return taken;
}

/* Whether the model is refused with more or less of it. */
static bool is_exact(struct search *x, int sum, const int64_t *sizes)
{
    struct symbol *s = &x->start.symbols[sum];
    s->more--;
    const bool less = is_accepted(x, sizes);
    s->more += 2;
    const bool more = less && is_accepted(x, sizes);
    s->more--;
    return !(less && more);
}

static void tell_sum(const struct search *x, const struct symbol *s)
{
    log_line(STRATA_LOG_INFO, "%s: %s is %s", x->start.model->path, s->symbol, s->name);
}

static bool try_sum(struct search *x, int sum, int first, int second, int64_t more)
{
    struct symbol *s = &x->start.symbols[sum];
    const struct symbol before = *s;
    symbol_make_sum(s, first, second, more);
    symbols_settle_sums(x->start.symbols, x->start.n_symbols);
    int64_t sizes[IMPORT_SYMBOLS];
    if (is_taken(x, s, sizes) && is_exact(x, sum, sizes)) {
        tell_sum(x, s);
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

/* ---- dims that are one ---- */

/* The symbol that a dim of the model's input is; -1: none that has sizes of its own. */
static int varying(const struct search *x, const struct onnx_value *in, int d)
{
    const int symbol = d < in->rank && in->dims[d].value < 0
                           ? import_find_symbol(&x->start, &in->dims[d], d == 0)
                           : -1;
    return symbol >= 0 && symbol_varies(&x->start.symbols[symbol]) ? symbol : -1;
}

/* The batch has rows of any input; else what an earlier input has at that place. */
static int find_twin(const struct search *x, size_t input, int d)
{
    const struct onnx_value *in = x->start.model->graph.inputs;
    int twin = d == 0 && x->start.symbols[0].first ? 0 : -1;
    for (size_t i = 0; i < input && twin < 0; i++)
        twin = varying(x, &in[i], d);
    return twin;
}

static bool is_summand(const struct search *x, int symbol)
{
    bool found = false;
    for (int i = 0; i < x->start.n_symbols && !found; i++) {
        const struct symbol *s = &x->start.symbols[i];
        found = s->is_sum && (s->first_summand == symbol || s->second_summand == symbol);
    }
    return found;
}

/* Each symbol is what another input has at its place, of rows alone or of all dims; how
 * many are so. What others are is none of these: sums are not of sums. */
static int pair_up(struct search *x, bool rows)
{
    const struct onnx_graph *g = &x->start.model->graph;
    int n = 0;
    for (size_t i = 0; i < g->n_inputs; i++)
        for (int d = 0; d < g->inputs[i].rank && (d == 0 || !rows); d++) {
            const int own = varying(x, &g->inputs[i], d),
                      twin = own < 0 ? -1 : find_twin(x, i, d);
            if (twin < 0 || twin == own || x->start.symbols[own].first ||
                is_summand(x, own))
                continue;
            symbol_make_sum(&x->start.symbols[own], twin, -1, 0);
            n++;
        }
    symbols_settle_sums(x->start.symbols, x->start.n_symbols);
    return n;
}

/* Those that may as well be apart are what they were `before`, and as long as in `sizes`,
 * at which the others are looked at; how many are left. */
static int drop_needless(struct search *x, const struct symbol *before, int64_t *sizes)
{
    int left = 0;
    for (int i = 0; i < x->start.n_symbols; i++) {
        struct symbol *s = &x->start.symbols[i];
        if (!s->is_sum || before[i].is_sum)
            continue;
        if (is_exact(x, i, sizes)) {
            tell_sum(x, s);
            left++;
        } else {
            sizes[i] = sizes[s->first_summand];
            *s = before[i];
        }
    }
    return left;
}

bool search_same(struct search *x)
{
    struct symbol before[IMPORT_SYMBOLS];
    int64_t sizes[IMPORT_SYMBOLS];
    memcpy(before, x->start.symbols, sizeof before);
    for (int rows = 0; rows < 2; rows++) {
        if (pair_up(x, rows) && is_taken(x, NULL, sizes) &&
            drop_needless(x, before, sizes))
            return true;
        memcpy(x->start.symbols, before, sizeof before);
    }
    return false;
}
