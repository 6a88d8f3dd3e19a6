/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies inside others, in words.
 */
#include "tools/explain/explain.h"

#include <stdio.h>
#include <string.h>

/* Where the first of several values that lies inside a larger tensor does. */
static size_t put_inside(char *text, size_t size, const strata_engine *e,
                         const int *values, int n, const char *what)
{
    const struct execution *x = e->execution;
    for (int i = 0; i < n; i++) {
        const struct execution_value *all = &x->values[x->values[values[i]].owner];
        if (!x->values[values[i]].pitched)
            continue;
        const int used =
            snprintf(text, size, "%s %.200s in place, at a pitch of %lld channels", what,
                     e->network->tensors[all->tensor].name, (long long)all->desc.dims[1]);
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
