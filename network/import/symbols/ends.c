/* SPDX-License-Identifier: Apache-2.0
 *
 * A network for any sizes, at both ends of their ranges: the model there may be another,
 * most of all at 1.
 */
#include "network/import/symbols/symbols.h"

/* Whether the network is the model's import at these sizes. */
static int check_at(const struct search *x, struct import *any, const int64_t *sizes,
                    strata_error *why)
{
    struct import *at = NULL;
    int status = import_at(&at, &x->start, sizes, x->memo, why);
    if (status == STRATA_OK)
        status = symbols_settle(any, sizes, why);
    if (status == STRATA_OK)
        status = symbols_check(any, at, why);
    import_free(at);
    return status;
}

/* The first symbol that by itself is in the way there; the last one that stays if none
 * is. */
static int blame(const struct search *x, struct import *any, const int64_t *sizes,
                 int *blamed, strata_error *why)
{
    int64_t alone[IMPORT_SYMBOLS];
    search_kept(x, blamed);
    for (int i = 0; i < x->start.n_symbols; i++) {
        strata_error own = {0};
        search_sizes(x, alone);
        if (alone[i] == sizes[i] || x->start.symbols[i].is_sum)
            continue;
        alone[i] = sizes[i];
        const int status = check_at(x, any, alone, &own);
        if (status == STRATA_OK)
            continue;
        *blamed = i;
        *why = own;
        return status;
    }
    return STRATA_EUNSUPPORTED;
}

/* ---- where ranges begin ---- */

/* False: no symbol has a range. */
static bool least_sizes(const struct search *x, int64_t *sizes)
{
    bool any = false;
    search_fixed(x, sizes);
    for (int i = 0; i < x->start.n_symbols; i++) {
        const struct symbol *s = &x->start.symbols[i];
        if (!symbol_varies(s) || !symbol_has_range(s))
            continue;
        sizes[i] = s->least;
        any = true;
    }
    return any;
}

/* Begin ranges there: that of a symbol, or, for -1, all that are assumed. */
static void set_least(struct search *x, int symbol, int64_t least)
{
    for (int i = 0; i < x->start.n_symbols; i++) {
        struct symbol *s = &x->start.symbols[i];
        if (symbol == i || (symbol < 0 && s->assumed))
            s->least = symbol_size(s, least);
    }
    symbols_settle_sums(x->start.symbols, x->start.n_symbols);
}

/* Others than this one, or than those that are assumed, have the sizes of a run. */
static bool is_settled(struct search *x, struct import *any, int symbol, int64_t least)
{
    int64_t sizes[IMPORT_SYMBOLS];
    strata_error why = {0};
    set_least(x, symbol, least);
    search_fixed(x, sizes);
    for (int i = 0; i < x->start.n_symbols; i++) {
        const struct symbol *s = &x->start.symbols[i];
        if (symbol_varies(s) && (symbol < 0 ? s->assumed : symbol == i))
            sizes[i] = s->least;
    }
    return symbols_settle(any, sizes, &why) == STRATA_OK;
}

/* As far below the end as the layers take it. */
static void find_least(struct search *x, struct import *any, int symbol)
{
    int64_t refused = 0, least = 0;
    for (int i = 0; i < x->start.n_symbols; i++) {
        const struct symbol *s = &x->start.symbols[i];
        if (symbol_varies(s) && (symbol < 0 ? s->assumed : symbol == i))
            least = s->most;
    }
    if (least && is_settled(x, any, symbol, 1))
        least = 1;
    while (least - refused > 1) {
        const int64_t middle = refused + (least - refused) / 2;
        if (is_settled(x, any, symbol, middle))
            least = middle;
        else
            refused = middle;
    }
    set_least(x, symbol, least);
}

/* Where no option tells where a range begins. */
static void find_all_least(struct search *x, struct import *any)
{
    find_least(x, any, -1);
    for (int i = 0; i < x->start.n_symbols; i++) {
        const struct symbol *s = &x->start.symbols[i];
        if (symbol_varies(s) && s->open && !s->assumed)
            find_least(x, any, i);
    }
}

/* A range of which no option tells the begin need not begin at 1, which means more than
 * other sizes. */
static int check_least(struct search *x, struct import *any, int *blamed,
                       strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS];
    find_all_least(x, any);
    if (!least_sizes(x, sizes))
        return STRATA_OK;
    int status = check_at(x, any, sizes, why);
    if (status != STRATA_EUNSUPPORTED)
        return status;
    status = blame(x, any, sizes, blamed, why);
    const struct symbol *s = &x->start.symbols[*blamed];
    if (status != STRATA_EUNSUPPORTED || !s->open || s->least > s->step)
        return status;
    strata_error second = {0};
    set_least(x, s->assumed ? -1 : *blamed, s->least + 1);
    least_sizes(x, sizes);
    return check_at(x, any, sizes, &second) == STRATA_OK ? STRATA_OK : status;
}

/* ---- where they end ---- */

/* An engine has to have the sizes beside the largest, too. */
static int check_beside(const struct search *x, struct import *any, int *blamed,
                        strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS];
    int status = STRATA_OK;
    for (int i = 0; i < x->start.n_symbols && status == STRATA_OK; i++) {
        const struct symbol *s = &x->start.symbols[i];
        if (!symbol_varies(s) || !symbol_has_range(s))
            continue;
        *blamed = i;
        search_fixed(x, sizes);
        sizes[i] = s->most - s->step > 1 ? s->most - s->step : s->most + s->step;
        status = symbols_settle(any, sizes, why);
    }
    return status;
}

static int check_plain(const struct search *x, struct import *any, int *blamed,
                       strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS];
    search_fixed(x, sizes);
    int status = symbols_settle(any, sizes, why);
    if (status == STRATA_OK)
        status = symbols_check(any, x->plain, why);
    return status == STRATA_EUNSUPPORTED ? blame(x, any, sizes, blamed, why) : status;
}

int search_check(struct search *x, struct import *any, int *blamed, strata_error *why)
{
    int status = check_least(x, any, blamed, why);
    if (status == STRATA_OK)
        status = check_beside(x, any, blamed, why);
    return status == STRATA_OK ? check_plain(x, any, blamed, why) : status;
}
