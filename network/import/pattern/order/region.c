/* SPDX-License-Identifier: Apache-2.0
 *
 * See region.h.
 */
#include "network/import/pattern/order/region.h"

#include "network/import/pattern/order/rowwise.h"

/* ---- values that are one region: sets, each told by one of them ----------------------
 */

static int find_set(int *set, int value)
{
    while (set[value] != value)
        value = set[value] = set[set[value]];
    return value;
}

static void join(int *set, int to, int value)
{
    if (value >= 0)
        set[find_set(set, value)] = find_set(set, to);
}

/* `rows` has the bits of rowwise_find for each node; 0: it works otherwise. */
static void join_all(int *set, const struct graph *g, const unsigned *rows)
{
    for (size_t i = 0; i < g->n_nodes; i++) {
        const struct node *n = g->nodes[i];
        for (int k = 0; rows[i] && k < n->n_in; k++)
            if (rows[i] >> k & 1)
                join(set, n->out[0], n->in[k]);
        for (int k = 1; rows[i] && k < n->n_out; k++)
            join(set, n->out[0], n->out[k]);
    }
}

/* A number for each set that a node is of, in the order of nodes. */
static void number(struct regions *r, const struct graph *g, const unsigned *rows,
                   int *set)
{
    for (size_t i = 0; i < g->n_values; i++)
        r->of[i] = -1;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const int at = rows[i] ? find_set(set, g->nodes[i]->out[0]) : -1;
        if (at >= 0 && r->of[at] < 0)
            r->of[at] = (int)r->n++;
    }
    for (size_t i = 0; i < g->n_values; i++)
        r->of[i] = r->of[find_set(set, (int)i)];
}

/* ---- lists ---------------------------------------------------------------------------
 */

/* at[i + 1] is how long list i is, and becomes where it ends. A copy to fill them by. */
static int *begin_lists(struct graph *g, int *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        at[i + 1] += at[i];
    return arena_copy(&g->arena, at, (n + 1) * sizeof *at);
}

static bool list_nodes(struct regions *r, struct graph *g, const unsigned *rows)
{
    r->nodes_at = arena_get(&g->arena, r->n + 1, sizeof *r->nodes_at);
    r->nodes = arena_get(&g->arena, g->n_nodes + 1, sizeof(struct node *));
    for (size_t i = 0; r->nodes_at && i < g->n_nodes; i++)
        if (rows[i])
            r->nodes_at[r->of[g->nodes[i]->out[0]] + 1]++;
    int *at = r->nodes_at ? begin_lists(g, r->nodes_at, r->n) : NULL;
    for (size_t i = 0; at && r->nodes && i < g->n_nodes; i++)
        if (rows[i])
            r->nodes[at[r->of[g->nodes[i]->out[0]]]++] = g->nodes[i];
    return at && r->nodes;
}

static bool list_readers(struct regions *r, struct graph *g, const unsigned *rows)
{
    size_t n = 0;
    r->readers_at = arena_get(&g->arena, g->n_values + 1, sizeof *r->readers_at);
    for (size_t i = 0; r->readers_at && i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++, n++)
            if (g->nodes[i]->in[k] >= 0)
                r->readers_at[g->nodes[i]->in[k] + 1]++;
    r->readers = arena_get(&g->arena, n + 1, sizeof *r->readers);
    int *at = r->readers_at ? begin_lists(g, r->readers_at, g->n_values) : NULL;
    for (size_t i = 0; at && r->readers && i < g->n_nodes; i++)
        for (int k = 0; k < g->nodes[i]->n_in; k++)
            if (g->nodes[i]->in[k] >= 0)
                r->readers[at[g->nodes[i]->in[k]]++] = (struct reader){
                    .node = g->nodes[i], .inside = k < 32 && (rows[i] >> k & 1)};
    return at && r->readers;
}

bool regions_find(struct regions *r, struct graph *g)
{
    unsigned *rows = arena_get(&g->arena, g->n_nodes + 1, sizeof *rows);
    int *set = arena_get(&g->arena, g->n_values + 1, sizeof *set);
    *r = (struct regions){.n_values = g->n_values};
    r->of = arena_get(&g->arena, g->n_values + 1, sizeof *r->of);
    r->output = arena_get(&g->arena, g->n_values + 1, sizeof *r->output);
    r->listed = arena_get(&g->arena, g->n_values + 1, sizeof *r->listed);
    if (!rows || !set || !r->of || !r->output || !r->listed)
        return false;
    for (size_t i = 0; i < g->n_values; i++)
        set[i] = (int)i;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!rowwise_find(g, g->nodes[i], &rows[i]))
            rows[i] = 0;
    for (size_t i = 0; i < g->n_outputs; i++)
        r->output[g->outputs[i]] = true;
    join_all(set, g, rows);
    number(r, g, rows, set);
    return list_nodes(r, g, rows) && list_readers(r, g, rows);
}
