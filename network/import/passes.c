/* SPDX-License-Identifier: Apache-2.0
 *
 * The passes in their order, and what they refuse.
 */
#include "network/import/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "network/import/symbols/memo.h"

/* Where plugins were looked for is told once, behind the last of what it lets down. */
static void append_refusal(strata_error *err, const char *text, bool last)
{
    const char *searched = last ? NULL : strstr(text, "\n  searched:");
    error_append(err, "%s%.*s", err && *err->message ? "\n" : "",
                 (int)(searched ? (size_t)(searched - text) : strlen(text)), text);
}

/* All reasons as one message. */
int import_refused(const struct import *im, strata_error *err)
{
    const size_t n =
        im->n_refusals < IMPORT_MAX_REFUSALS ? im->n_refusals : IMPORT_MAX_REFUSALS;
    if (im->all_refusals == 0)
        return STRATA_OK;
    error_set(err, STRATA_EUNSUPPORTED, "%s", "");
    for (size_t i = 0; i < n; i++)
        append_refusal(err, im->refusals[i].text, i + 1 == n);
    if (im->all_refusals > n)
        error_append(err, "\nand %zu more", im->all_refusals - n);
    return STRATA_EUNSUPPORTED;
}

static int run_passes(struct import *im, strata_error *err)
{
    static int (*const passes[])(struct import *, strata_error *) = {
        import_load,          import_fold, import_drop,
        import_find_patterns, import_map,  import_name};
    int status = STRATA_OK;
    for (size_t i = 0; status == STRATA_OK && i < ARRAY_LENGTH(passes); i++) {
        status = passes[i](im, err);
        if (status == STRATA_OK)
            status = arena_status(&im->g.arena, "a model", err);
        if (status == STRATA_OK && im->all_refusals)
            return import_refused(im, err);
    }
    return status;
}

int import_at(struct import **out, const struct import *start, const int64_t *sizes,
              struct memo *memo, strata_error *err)
{
    struct import *im = *out = zalloc(1, sizeof *im, "an import", err);
    if (!im)
        return STRATA_ENOMEM;
    im->model = start->model;
    im->registry = start->registry;
    im->options = start->options;
    im->n_symbols = start->n_symbols;
    memcpy(im->symbols, start->symbols, sizeof im->symbols);
    int64_t all[IMPORT_SYMBOLS];
    for (int i = 0; i < im->n_symbols; i++)
        all[i] = sizes[i];
    symbols_add(im, all);
    for (int i = 0; i < im->n_symbols; i++)
        im->symbols[i].value = all[i];
    im->g.memo = memo;
    im->places = im->taken_of = VALUE_NONE;
    return run_passes(im, err);
}

void import_free(struct import *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_sections; i++)
        section_free(im->sections[i]);
    names_free(&im->refused);
    names_free(&im->functions);
    arena_free(&im->g.arena);
    memo_free(im->memo);
    free(im);
}
