/* SPDX-License-Identifier: Apache-2.0
 *
 * Imports at several sizes: one, then one more for each symbol, whose size is another
 * there, and one where all are others, as proof that they vary on their own.
 */
#include "network/import/symbols/symbols.h"

#include <inttypes.h>

#include "core/alloc.h"

/* Sizes of a range, in shares of it: the first import has the first of them, each symbol
 * by itself the second, all together the third. They are far apart, as what a network
 * makes of neighbours may be the same. A size may mean something else by chance, as one
 * that another dim has; and what takes a part of a tensor takes all of it at the end,
 * perhaps, and is no layer there. So there are several. */
static const double shares[][3] = {{1, .67, .41}, {1, .79, .53}, {.97, .71, .47}};

/* ---- sizes ---- */

void search_fixed(const struct search *x, int64_t *sizes)
{
    for (int i = 0; i < x->start.n_symbols; i++)
        sizes[i] = symbol_fixed(&x->start.symbols[i]);
    symbols_add(&x->start, sizes);
}

int search_kept(const struct search *x, int *last)
{
    int n = 0;
    for (int i = 0; i < x->start.n_symbols; i++)
        if (symbol_varies(&x->start.symbols[i])) {
            *last = i;
            n++;
        }
    return n;
}

/* Three sizes, the first the largest. Not 1, as dims of 1 come of much else; where sizes
 * go by steps there are three (step.c). */
static int64_t size_of(const struct symbol *s, size_t attempt, int which)
{
    if (!symbol_has_range(s))
        return s->most + 3 - which;
    const double share = shares[attempt][which];
    const int64_t any = s->least + (int64_t)(share * (double)(s->most - s->least));
    const int64_t size = symbol_size(s, any - s->step + 1);
    const int64_t below = which ? size_of(s, attempt, 0) - which * s->step : size;
    const int64_t least =
        s->step > 1 ? symbol_size(s, 1) + (2 - which) * s->step : 4 - which;
    return size > below ? below : size < least ? least : size;
}

int64_t symbol_other(const struct symbol *s, int which)
{
    return size_of(s, 0, which);
}

static void make_sizes(const struct search *x, size_t attempt, int which, int64_t *sizes)
{
    search_fixed(x, sizes);
    for (int i = 0; i < x->start.n_symbols; i++)
        if (symbol_varies(&x->start.symbols[i]))
            sizes[i] = size_of(&x->start.symbols[i], attempt, which);
    symbols_add(&x->start, sizes);
}

void search_sizes(const struct search *x, int64_t *sizes)
{
    make_sizes(x, 0, 0, sizes);
}

/* ---- which symbol is in the way ---- */

/* An import, and where its refusal is why a symbol goes, that says so. */
static int import_other(struct import **out, const struct search *x, const int64_t *sizes,
                        int symbol, strata_error *why)
{
    const int status = import_at(out, &x->start, sizes, x->memo, why);
    if (status == STRATA_EUNSUPPORTED && symbol >= 0)
        error_prefix(why, "with %" PRId64 " of it", sizes[symbol]);
    return status;
}

/* The first symbol that by itself makes a model's import at these sizes be refused; the
 * last one that stays if none does. */
static int blame_refusal(const struct search *x, const int64_t *sizes, int *blamed,
                         strata_error *why)
{
    int64_t alone[IMPORT_SYMBOLS];
    search_kept(x, blamed);
    for (int i = 0; i < x->start.n_symbols; i++) {
        struct import *im = NULL;
        strata_error own = {0};
        search_fixed(x, alone);
        if (alone[i] == sizes[i] || x->start.symbols[i].is_sum)
            continue;
        alone[i] = sizes[i];
        const int status = import_other(&im, x, alone, i, &own);
        import_free(im);
        if (status == STRATA_OK)
            continue;
        *blamed = i;
        *why = own;
        return status;
    }
    return STRATA_EUNSUPPORTED;
}

/* The first symbol whose own import differs from the first one; the last one that stays
 * if none does. */
static int blame_difference(const struct search *x, const struct points *p, int *blamed,
                            strata_error *why)
{
    search_kept(x, blamed);
    for (int i = 1; i < p->n; i++) {
        struct points pair = *p;
        strata_error own = {0};
        pair.im[1] = p->im[i];
        pair.n = 2;
        const int status =
            p->changed[i] < 0 ? STRATA_OK : symbols_compare(&pair, false, &own);
        if (status == STRATA_OK)
            continue;
        *blamed = p->changed[i];
        *why = own;
        return status;
    }
    return STRATA_EUNSUPPORTED;
}

/* ---- the imports ---- */

static void points_free(struct points *p)
{
    for (int i = 0; i < p->n; i++)
        import_free(p->im[i]);
    for (int i = 0; i < p->n_wide; i++)
        import_free(p->wide[i].im);
    *p = (struct points){.n = 0};
}

static int add_point(struct points *p, const struct search *x, const int64_t *sizes,
                     int changed, int *blamed, strata_error *why)
{
    p->changed[p->n] = changed;
    const int status = import_other(&p->im[p->n], x, sizes, changed, why);
    p->n++;
    if (status == STRATA_EUNSUPPORTED && changed >= 0)
        *blamed = changed;
    else if (status == STRATA_EUNSUPPORTED)
        return blame_refusal(x, sizes, blamed, why);
    return status;
}

static int add_first(struct points *p, const struct search *x, size_t attempt,
                     int *blamed, strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS];
    int last;
    make_sizes(x, attempt, 0, sizes);
    return add_point(p, x, sizes, search_kept(x, &last) == 1 ? last : -1, blamed, why);
}

static int add_others(struct points *p, const struct search *x, size_t attempt,
                      int *blamed, strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS], others[IMPORT_SYMBOLS];
    int last, status = STRATA_OK;
    make_sizes(x, attempt, 1, others);
    for (int i = 0; i < x->start.n_symbols && status == STRATA_OK; i++) {
        if (!symbol_varies(&x->start.symbols[i]))
            continue;
        make_sizes(x, attempt, 0, sizes);
        sizes[i] = others[i];
        status = add_point(p, x, sizes, i, blamed, why);
    }
    if (status != STRATA_OK || search_kept(x, &last) == 1)
        return status;
    make_sizes(x, attempt, 2, sizes);
    return add_point(p, x, sizes, -1, blamed, why);
}

static bool is_ranged(const struct search *x, int i)
{
    const struct symbol *s = &x->start.symbols[i];
    return symbol_varies(s) && symbol_has_range(s);
}

/* One for each two symbols of which one may tell where constants begin along the other; a
 * model that is refused there has none. */
static int add_wides(struct points *p, const struct search *x, size_t attempt,
                     strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS];
    const int n = x->start.n_symbols;
    for (int i = 0; i < n * n && p->n_wide < WIDES; i++) {
        const int offset = i / n, along = i % n;
        struct wide *w = &p->wide[p->n_wide];
        strata_error own = {0};
        if (offset == along || !is_ranged(x, offset) || !is_ranged(x, along) ||
            x->start.symbols[offset].first || x->start.symbols[along].first)
            continue;
        make_sizes(x, attempt, 0, sizes);
        sizes[along] += sizes[offset] - x->start.symbols[offset].least;
        sizes[offset] = x->start.symbols[offset].least;
        const int status = import_at(&w->im, &x->start, sizes, x->memo, &own);
        w->offset = offset;
        p->n_wide++;
        if (status == STRATA_OK)
            continue;
        import_free(p->wide[--p->n_wide].im);
        if (status != STRATA_EUNSUPPORTED) {
            *why = own;
            return status;
        }
    }
    return STRATA_OK;
}

/* A batch alone: the model at its one size may do as the second import. */
static bool is_like_plain(const struct points *p, const struct search *x)
{
    struct points pair = {.im = {p->im[0], x->plain}, .n = 2};
    strata_error why = {0};
    int last;
    return search_kept(x, &last) == 1 && !is_ranged(x, last) &&
           symbols_compare(&pair, true, &why) == STRATA_OK;
}

/* *differ: that, and not a refusal, is why. */
static int compare_points(struct points *p, const struct search *x, size_t attempt,
                          bool *differ, int *blamed, strata_error *why)
{
    strata_error first = {0};
    *differ = false;
    int status = add_first(p, x, attempt, blamed, why);
    if (status != STRATA_OK || is_like_plain(p, x))
        return status;
    status = add_others(p, x, attempt, blamed, why);
    if (status != STRATA_OK)
        return status;
    status = symbols_compare(p, true, &first);
    if (status == STRATA_EUNSUPPORTED && p->lacks_wide) {
        status = add_wides(p, x, attempt, why);
        if (status == STRATA_OK)
            status = symbols_compare(p, true, &first);
    }
    *differ = status == STRATA_EUNSUPPORTED;
    if (status != STRATA_OK && first.status != STRATA_OK)
        *why = first;
    return *differ ? blame_difference(x, p, blamed, why) : status;
}

static bool has_ranges(const struct search *x)
{
    bool any = false;
    for (int i = 0; i < x->start.n_symbols; i++)
        any |= is_ranged(x, i);
    return any;
}

/* What the first attempt says is told if no other does better. */
int search_any(struct import **any, const struct search *x, int *blamed,
               strata_error *why)
{
    struct points p = {.n = 0};
    bool differ, again;
    *any = NULL;
    int status = compare_points(&p, x, 0, &differ, blamed, why);
    differ &= has_ranges(x);
    for (size_t attempt = 1; differ && attempt < ARRAY_LENGTH(shares); attempt++) {
        strata_error own = {0};
        int other;
        points_free(&p);
        differ = compare_points(&p, x, attempt, &again, &other, &own) != STRATA_OK;
        status = differ ? status : STRATA_OK;
    }
    if (status == STRATA_OK) {
        *any = p.im[0];
        p.im[0] = NULL;
    }
    points_free(&p);
    return status;
}
