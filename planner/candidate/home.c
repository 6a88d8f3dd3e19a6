/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors that may lie inside others: in the concatenation that reads them, or in what
 * they are a slice of.
 */
#include "planner/planner.h"

#include <string.h>

#include <strata/layers.h>

/* A tensor's home is the first concatenation that reads it, unless it does so twice. */
static void settle(struct planner_model *m, const struct planner_node *join, int node)
{
    for (int i = 0; i < join->n_in; i++) {
        int *home = &m->home[join->in[i]];
        bool twice = false;
        for (int j = 0; j < i; j++)
            twice |= join->in[j] == join->in[i];
        *home = twice ? -2 : *home == -1 ? node : *home;
    }
}

/* Sets of labels that readers want grow with readers and with labels: past these a tensor
 * is dense, so that plans are proved in time. Formats of several precisions are more
 * labels. */
enum { MOST_READERS = 3, MOST_READERS_ANY = 2 };

static bool is_read_by_few(const struct planner *planner, int tensor)
{
    const bool any = planner->network->build.precision == PRECISION_ANY;
    return planner->readers[tensor] <= (any ? MOST_READERS_ANY : MOST_READERS);
}

static void find_parts(const struct planner *planner, struct planner_model *m,
                       const struct planner_node *join, int node)
{
    for (int i = 0; i < join->n_in; i++)
        for (int f = 0; f < STRATA_FORMAT_COUNT && m->home[join->in[i]] == node; f++)
            if (is_read_by_few(planner, join->in[i]) &&
                planner_find_part(planner, join, i, f).pitched)
                m->pitched[join->in[i]] |= UINT64_C(1) << f;
}

void planner_find_homes(const struct planner *planner, struct planner_model *m)
{
    for (size_t i = 0; i < planner->n_nodes; i++)
        if (planner_joins(planner, (int)i))
            settle(m, &planner->nodes[i], (int)i);
    for (size_t i = 0; i < planner->n_nodes; i++) {
        const struct planner_node *n = &planner->nodes[i];
        if (planner_joins(planner, (int)i))
            find_parts(planner, m, n, (int)i);
        for (int k = 0; k < n->n_out; k++)
            for (int f = 0; f < STRATA_FORMAT_COUNT; f++)
                if (is_read_by_few(planner, n->out[k]) &&
                    planner_find_alias(planner, n->layer, k, f).pitched)
                    m->cut[n->out[k]] |= UINT64_C(1) << f;
    }
}

bool planner_joins(const struct planner *planner, int node)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    return strcmp(layer->type->full_name, "core::Concatenation@1") == 0 &&
           planner->network->build.fusion && !layer->impl;
}

bool planner_may_lie_apart(const struct planner_model *m, int tensor, int format)
{
    return (m->pitched[tensor] | m->cut[tensor]) >> format & 1;
}
