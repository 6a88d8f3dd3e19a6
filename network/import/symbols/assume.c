/* SPDX-License-Identifier: Apache-2.0
 *
 * The model at the sizes that its symbols have where they are fixed. The end of a range
 * that no option tells is the usual one, or the largest that the model takes.
 */
#include "network/import/symbols/symbols.h"

#include <inttypes.h>

#include "core/alloc.h"

#define LIKELY_SIZE 16 /* that a model takes which takes any */

int search_again(struct search *x)
{
    int64_t sizes[IMPORT_SYMBOLS];
    import_free(x->plain);
    search_fixed(x, sizes);
    return import_at(&x->plain, &x->start, sizes, x->memo, x->err);
}

/* The end of ranges that are assumed; 0: there are none. */
static int64_t assumed_end(const struct search *x)
{
    for (int i = 0; i < x->start.n_symbols; i++)
        if (x->start.symbols[i].assumed && symbol_is_kept(&x->start.symbols[i]))
            return x->start.symbols[i].most;
    return 0;
}

static int import_assumed(struct search *x, int64_t most)
{
    for (int i = 0; i < x->start.n_symbols; i++)
        if (x->start.symbols[i].assumed)
            x->start.symbols[i].most = x->start.symbols[i].sizes[0] = most;
    symbols_settle_sums(x->start.symbols, x->start.n_symbols);
    error_clear(x->err);
    return search_again(x);
}

/* Operators that no layer does are refused whatever the sizes are. */
static bool lacks_operators(const struct import *im)
{
    for (size_t i = 0; i < im->n_refusals; i++)
        if (im->refusals[i].op)
            return true;
    return false;
}

static int find_most(struct search *x)
{
    const int64_t usual = assumed_end(x);
    int64_t most = LIKELY_SIZE, refused = usual;
    int status = import_assumed(x, most);
    if (status == STRATA_EUNSUPPORTED)
        return import_assumed(x, usual); /* that is what is told */
    while (status == STRATA_OK && refused - most > 1) {
        const int64_t middle = most + (refused - most) / 2;
        status = import_assumed(x, middle);
        if (status == STRATA_OK)
            most = middle;
        else if (status == STRATA_EUNSUPPORTED) {
            refused = middle;
            status = STRATA_OK;
        }
    }
    return status == STRATA_OK ? import_assumed(x, most) : status;
}

static void tell_assumed(struct search *x)
{
    for (int i = 0; i < x->start.n_symbols; i++) {
        const struct symbol *s = &x->start.symbols[i];
        if (s->assumed)
            import_refuse(x->plain, NULL,
                          "'%s' was taken as %" PRId64 ", as no option says it: --dim "
                          "%s=N",
                          s->symbol, s->most, s->symbol);
    }
}

int search_first(struct search *x)
{
    static bool (*const searches[])(struct search *) = {search_same, search_sum};
    int status = search_again(x);
    for (size_t i = 0; i < ARRAY_LENGTH(searches); i++)
        if (status == STRATA_EUNSUPPORTED && !lacks_operators(x->plain) &&
            searches[i](x)) {
            error_clear(x->err);
            status = search_again(x);
        }
    if (status != STRATA_EUNSUPPORTED || !assumed_end(x))
        return status;
    if (!lacks_operators(x->plain))
        status = find_most(x);
    if (status != STRATA_EUNSUPPORTED)
        return status;
    tell_assumed(x);
    error_clear(x->err);
    return import_refused(x->plain, x->err);
}
