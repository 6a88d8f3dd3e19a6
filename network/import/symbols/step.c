/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes by steps: what halves an image again and again, and joins what it doubles with
 * what it halved, takes multiples of 8, 16 or 32 alone.
 */
#include <inttypes.h>

#include "network/import/symbols/symbols.h"

#define MOST_STEP 128

/* The model at the sizes that it is compared at, and next to the end, as those may be
 * even by chance. */
static int import_others(const struct search *x, int symbol, strata_error *why)
{
    int64_t sizes[IMPORT_SYMBOLS];
    int status = STRATA_OK;
    search_fixed(x, sizes);
    for (int which = 0; which <= 2 && status == STRATA_OK; which++) {
        const struct symbol *s = &x->start.symbols[symbol];
        struct import *im = NULL;
        sizes[symbol] = which ? symbol_other(s, which) : s->most - s->step;
        status = import_at(&im, &x->start, sizes, x->memo, why);
        import_free(im);
    }
    return status;
}

/* Three sizes are compared, and those that are listed have to be some. */
static bool has_sizes(const struct symbol *s)
{
    bool all = (s->most - 1) / s->step >= 2;
    for (size_t i = 0; i < s->n; i++)
        all &= (s->most - s->sizes[i]) % s->step == 0;
    return all;
}

bool search_step(struct search *x, int symbol)
{
    struct symbol *s = &x->start.symbols[symbol];
    const int64_t before = s->step;
    strata_error why = {0}, own;
    if (!s->open || s->first || import_others(x, symbol, &why) != STRATA_EUNSUPPORTED)
        return false;
    for (s->step *= 2; s->step <= MOST_STEP && has_sizes(s); s->step *= 2) {
        own = (strata_error){0};
        if (import_others(x, symbol, &own) == STRATA_OK) {
            log_line(STRATA_LOG_INFO, "%s: %s has sizes by steps of %" PRId64 ": %s",
                     x->start.model->path, s->name, s->step, why.message);
            return true;
        }
    }
    s->step = before;
    return false;
}
