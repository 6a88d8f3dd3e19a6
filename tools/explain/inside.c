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
    size_t used =
        put_inside(text, EXPLAIN_INSIDE / 2, e, n->out_values, n->n_out, "made inside");
    text[used] = '\0';
    if (put_inside(text + used + 2 * (used > 0), EXPLAIN_INSIDE / 2 - 2, e, n->in_values,
                   n->n_in, "reads") &&
        used)
        memcpy(text + used, "; ", 2);
}
