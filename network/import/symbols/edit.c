/* SPDX-License-Identifier: Apache-2.0
 *
 * What those who compare ask of the numbers, and note of what is to be changed.
 */
#include "core/alloc.h"
#include "network/import/symbols/compare.h"

int compare_differs(struct comparison *c, const char *key)
{
    return error_set(c->err, STRATA_EUNSUPPORTED, "layer '%s' holds it in %s",
                     c->s[0]->name, key);
}

bool compare_equal(const struct comparison *c, const int64_t *v)
{
    for (int p = 1; p < c->n; p++)
        if (v[p] != v[0])
            return false;
    return true;
}

int compare_symbol(const struct comparison *c, const int64_t *v)
{
    for (int i = 0; i < c->im[0]->n_symbols; i++) {
        bool same = !*c->im[0]->symbols[i].reason;
        for (int p = 0; same && p < c->n; p++)
            same = c->im[p]->symbols[i].value == v[p];
        if (same)
            return i;
    }
    return -1;
}

struct edit *compare_edit(struct comparison *c)
{
    if (grow(&c->edits, &c->edits_capacity, c->n_edits, sizeof *c->edits, c->err) !=
        STRATA_OK)
        return NULL;
    c->edits[c->n_edits] = (struct edit){
        .section = c->im[0]->sections[c->index], .attr = -1, .like = VALUE_NONE};
    return &c->edits[c->n_edits++];
}
