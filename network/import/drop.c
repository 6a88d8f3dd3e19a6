/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes that do nothing vanish: what fold.c saw become an Identity, as Dropout does and a
 * Reshape to the dims that there are. And inputs that only told a type.
 */
#include "network/import/carry/carry.h"

#include <string.h>

static int source_of(const struct graph *g, int value)
{
    while (value >= 0 && g->values[value].same >= 0 && !g->values[value].constant)
        value = g->values[value].same;
    return value;
}

static bool is_output(const struct graph *g, int value)
{
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == value)
            return true;
    return false;
}

/* An output is what a further node makes, under its own name; but an input, a constant or
 * another output stays what it is, and the Identity too. */
static void drop_output(struct graph *g, size_t i)
{
    const int from = g->outputs[i], to = source_of(g, from);
    if (to == from || !g->values[to].node || g->values[to].constant || is_output(g, to))
        return;
    g->values[to].name = g->values[from].name;
    g->outputs[i] = to;
}

static void drop_type_input(struct graph *g, struct node *n)
{
    const struct value *like = n->n_in == 2 ? graph_value(g, n->in[1]) : NULL;
    if (*n->domain || strcmp(n->op, "CastLike") != 0 || !like)
        return;
    n->op = "Cast";
    n->n_in = 1;
    node_set_integer(g, n, "to", carry_type(like));
}

int import_drop(struct import *im, strata_error *err)
{
    struct graph *g = &im->g;
    for (size_t i = 0; i < g->n_outputs; i++)
        drop_output(g, i);
    for (size_t i = 0; i < g->n_nodes; i++) {
        struct node *n = g->nodes[i];
        for (int k = 0; k < n->n_in; k++)
            n->in[k] = source_of(g, n->in[k]);
        drop_type_input(g, n);
    }
    return graph_sort(g, err);
}
