/* SPDX-License-Identifier: Apache-2.0
 *
 * A network that says what it is for any size, at some of them.
 */
#include "network/import/symbols/symbols.h"

#include <inttypes.h>
#include <string.h>

/* "with batch = 3, T = 7": those of symbols that stay. */
static void append_sizes(const struct import *im, const int64_t *sizes, strata_error *err)
{
    const char *gap = "";
    for (int i = 0; i < im->n_symbols; i++)
        if (symbol_varies(&im->symbols[i])) {
            error_append(err, "%s%s = %" PRId64, gap, im->symbols[i].name, sizes[i]);
            gap = ", ";
        }
}

int symbols_settle(struct import *im, const int64_t *sizes, strata_error *err)
{
    struct graph *g = &im->g;
    int status = STRATA_OK;
    int64_t all[IMPORT_SYMBOLS];
    for (int i = 0; i < im->n_symbols; i++)
        all[i] = sizes[i];
    symbols_add(im, all);
    for (int i = 0; i < im->n_symbols; i++)
        im->symbols[i].value = all[i];
    for (size_t i = 0; i < g->n_inputs; i++) {
        struct value *v = &g->values[g->inputs[i]];
        for (int d = 0; d < v->rank; d++)
            if (v->symbols[d])
                v->dims[d] = all[v->symbols[d] - 1];
    }
    import_name_sizes(im);
    for (size_t i = 0; i < im->n_sections && status == STRATA_OK; i++) {
        strata_error why = {0};
        section_free(im->sections[i]);
        status = section_infer(g, im->sections[i], im->registry, &why);
        if (status == STRATA_ENOMEM)
            return error_no_memory(err, 0, "a model");
        if (status == STRATA_OK)
            continue;
        error_set(err, status = STRATA_EUNSUPPORTED, "layer '%s' cannot have ",
                  im->sections[i]->name);
        append_sizes(im, sizes, err);
        error_append(err, ": %s", why.message);
    }
    return status;
}

int symbols_check(const struct import *im, const struct import *at, strata_error *err)
{
    bool same = im->branches == at->branches && im->g.n_outputs == at->g.n_outputs;
    for (size_t i = 0; same && i < im->g.n_outputs; i++) {
        const struct value *a = &im->g.values[im->g.outputs[i]];
        const struct value *b = &at->g.values[at->g.outputs[i]];
        same = a->rank == b->rank && a->dtype == b->dtype;
        for (int d = 0; same && d < a->rank; d++)
            same = a->dims[d] == b->dims[d];
    }
    if (same)
        return STRATA_OK;
    int64_t sizes[IMPORT_SYMBOLS];
    for (int i = 0; i < at->n_symbols; i++)
        sizes[i] = at->symbols[i].value;
    error_set(err, STRATA_EUNSUPPORTED, "with ");
    append_sizes(at, sizes, err);
    error_append(err, " the network is another");
    return STRATA_EUNSUPPORTED;
}
