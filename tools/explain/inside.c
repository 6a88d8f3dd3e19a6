/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies inside others, in words.
 */
#include "tools/explain/explain.h"

#include <stdio.h>
#include <string.h>

/* The last dim of which a value has less than the one that it lies in. */
static int shortened(const strata_desc *part, const strata_desc *all)
{
    int dim = 1;
    for (int d = 2; d < all->rank; d++)
        dim = part->dims[d] < all->dims[d] ? d : dim;
    return dim;
}

/* Where the first of several values that lies inside a larger tensor does. */
static size_t put_inside(char *text, size_t size, const strata_engine *e,
                         const int *values, int n, const char *what)
{
    const struct execution *x = e->execution;
    for (int i = 0; i < n; i++) {
        if (values[i] < 0) /* absent */
            continue;
        const struct execution_value *part = &x->values[values[i]];
        if (!part->pitched)
            continue;
        const struct execution_value *all = &x->values[part->owner];
        const int dim = shortened(&part->desc, &all->desc);
        const int used =
            snprintf(text, size, "%s %.200s in place, at a pitch of %lld %s", what,
                     e->network->tensors[all->tensor].name,
                     (long long)all->desc.dims[dim], dim == 1 ? "channels" : "elements");
        return used < 0 ? 0 : (size_t)used < size ? (size_t)used : size - 1;
    }
    return 0;
}

void explain_inside(char text[EXPLAIN_INSIDE], const strata_engine *e,
                    const struct execution_node *n)
{
    const struct {
        const int *values;
        int n;
        const char *what;
    } ends[] = {{n->out_values, n->n_out, "made inside"},
                {n->in_values, n->n_in, "reads"},
                {&n->residual_value, 1, "adds"}};
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ARRAY_LENGTH(ends); i++) {
        const size_t lead = used ? 2 : 0;
        const size_t more =
            put_inside(text + used + lead, EXPLAIN_INSIDE / ARRAY_LENGTH(ends) - lead, e,
                       ends[i].values, ends[i].n, ends[i].what);
        if (more && lead)
            memcpy(text + used, "; ", 2);
        used += more ? lead + more : 0;
    }
}
