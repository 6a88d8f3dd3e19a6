/* SPDX-License-Identifier: Apache-2.0
 *
 * Which symbols stay: one that is in the way is fixed to a size, and the others are tried
 * again.
 */
#include "network/import/symbols/symbols.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "network/import/symbols/memo.h"

/* Replace the plain import by one that says what the network is for any sizes; it stays
 * where there is none, which is EUNSUPPORTED. */
static int keep(struct search *x, int *blamed, strata_error *why)
{
    struct import *any;
    int status = search_any(&any, x, blamed, why);
    if (status == STRATA_OK)
        status = search_check(x, any, blamed, why);
    if (status == STRATA_OK) {
        import_free(x->plain);
        x->plain = any;
        any = NULL;
    }
    import_free(any);
    return status;
}

/* ---- symbols that go ---- */

static void tell_fixed(const struct search *x, const struct symbol *s)
{
    if (!s->assumed)
        log_line(STRATA_LOG_WARNING, "%s: %s was fixed to %" PRId64 ": %s",
                 x->start.model->path, *s->symbol ? s->symbol : "the first dim of inputs",
                 symbol_fixed(s), s->reason);
}

static void fix(struct search *x, int blamed, const strata_error *why)
{
    struct symbol *s = &x->start.symbols[blamed];
    snprintf(s->reason, sizeof s->reason, "%.*s", (int)strcspn(why->message, "\n"),
             why->message);
    tell_fixed(x, s);
    symbols_settle_sums(x->start.symbols, x->start.n_symbols);
}

/* The input of the model that has a symbol. */
static const char *input_of(const struct import *im, int symbol)
{
    for (size_t i = 0; i < im->g.n_inputs; i++) {
        const struct value *v = &im->g.values[im->g.inputs[i]];
        for (int d = 0; d < v->rank; d++)
            if (v->symbols[d] == symbol + 1)
                return v->name;
    }
    return "";
}

/* Nobody said what those are to be that cannot stay. */
static int refuse_assumed(struct search *x)
{
    struct import *im = x->plain;
    for (int i = 0; i < im->n_symbols; i++) {
        const struct symbol *s = &im->symbols[i];
        if (s->assumed && !symbol_is_kept(s))
            import_refuse(im, NULL,
                          "input '%s' has the free dim '%s': --dim %s=N; it cannot stay "
                          "free: %s",
                          input_of(im, i), s->symbol, s->symbol, s->reason);
    }
    return import_refused(im, x->err);
}

/* ---- all of them ---- */

static int keep_all(struct search *x)
{
    int status = STRATA_OK, last;
    bool done = false, paired = false, summed = false; /* are looked for once */
    for (int i = 0; i < x->start.n_symbols; i++)
        if (!symbol_is_kept(&x->start.symbols[i]) && !x->start.symbols[i].is_sum)
            tell_fixed(x, &x->start.symbols[i]);
    while (status == STRATA_OK && !done && search_kept(x, &last) > 0) {
        strata_error why = {0};
        int blamed = last;
        status = keep(x, &blamed, &why);
        done = status == STRATA_OK;
        if (status == STRATA_EUNSUPPORTED) {
            status = STRATA_OK;
            const bool same = !paired && search_same(x);
            if (same || (!summed && search_sum(x)))
                status = search_again(x);
            else if (!search_step(x, blamed))
                fix(x, blamed, &why);
            summed |= !same;
            paired = true;
        } else if (status != STRATA_OK)
            *x->err = why;
    }
    return status;
}

/* The import has what became of its symbols, at the sizes that they have if fixed. */
static void take_symbols(struct search *x)
{
    int64_t sizes[IMPORT_SYMBOLS];
    search_fixed(x, sizes);
    memcpy(x->plain->symbols, x->start.symbols, sizeof x->plain->symbols);
    for (int i = 0; i < x->start.n_symbols; i++)
        x->plain->symbols[i].value = sizes[i];
}

int import_with_symbols(struct import **out, const struct import *start,
                        strata_error *err)
{
    struct search x = {.start = *start, .memo = memo_make(err), .err = err};
    *out = NULL;
    if (!x.memo)
        return STRATA_ENOMEM;
    int status = search_first(&x);
    if (status == STRATA_OK)
        status = keep_all(&x);
    if (x.plain)
        take_symbols(&x);
    if (status == STRATA_OK)
        status = refuse_assumed(&x);
    if (x.plain)
        x.plain->memo = x.memo;
    else
        memo_free(x.memo);
    *out = x.plain;
    return status;
}
