/* SPDX-License-Identifier: Apache-2.0
 *
 * The sizes that an engine has plans for: every combination of those that its network
 * lists, the last symbol's fastest; and which of them is near.
 */
#include "engine/engine.h"

#include <string.h>

size_t engine_count_plans(const strata_network *net)
{
    size_t n = 1;
    for (size_t i = 0; i < net->n_symbols; i++)
        n *= net->symbols[i].n_sizes;
    return n;
}

void engine_plan_sizes(const strata_network *net, size_t plan, int64_t *sizes)
{
    for (size_t i = net->n_symbols; i-- > 0;) {
        const struct network_symbol *s = &net->symbols[i];
        sizes[i] = s->sizes[plan % s->n_sizes];
        plan /= s->n_sizes;
    }
}

const strata_engine *engine_plan(const strata_engine *e, size_t plan)
{
    return plan < e->n_smaller ? e->smaller[plan] : e;
}

/* Index of the smallest listed size of at least that, or of the largest of at most; the
 * nearest end where there is none. */
static size_t listed_index(const struct network_symbol *s, int64_t size, bool up)
{
    size_t i = 0;
    while (i + 1 < s->n_sizes && s->sizes[i] < size)
        i++;
    return !up && s->sizes[i] > size && i > 0 ? i - 1 : i;
}

size_t engine_nearest_plan(const strata_engine *e, const int64_t *sizes, bool up)
{
    const strata_network *net = e->network;
    size_t plan = 0;
    for (size_t i = 0; i < net->n_symbols; i++)
        plan = plan * net->symbols[i].n_sizes +
               listed_index(&net->symbols[i], sizes[i], up || (int)i == e->batch_symbol);
    return plan;
}

void engine_run_sizes(const strata_engine *e, const int64_t *wanted, int64_t *sizes)
{
    for (size_t i = 0; i < e->network->n_symbols; i++) {
        const struct network_symbol *s = &e->network->symbols[i];
        sizes[i] = (int)i == e->batch_symbol ? s->sizes[listed_index(s, wanted[i], true)]
                                             : wanted[i];
    }
}

bool engine_has_sizes(const strata_engine *e, const int64_t *sizes)
{
    return memcmp(e->sizes, sizes, e->network->n_symbols * sizeof *sizes) == 0;
}
