/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a graph that work row by row: what they hold may all have its rows in another
 * order, if what enters and what leaves is put in order.
 */
#ifndef NETWORK_IMPORT_PATTERN_ORDER_REGION_H
#define NETWORK_IMPORT_PATTERN_ORDER_REGION_H

#include "network/import/graph.h"

struct reader {
    struct node *node;
    bool inside; /* it reads rows, and is of the value's region */
};

/* The graph as it was sorted last. Regions are numbered in the order of its nodes. */
struct regions {
    size_t n, n_values;
    int *of;             /* a value's region; -1: none */
    int *nodes_at;       /* of region i: nodes[nodes_at[i]] to nodes[nodes_at[i + 1]] */
    struct node **nodes; /* producers first */
    int *readers_at;     /* as nodes_at, of a value */
    struct reader *readers;
    bool *output; /* of the network */
    bool *listed; /* at a border: each value is of one region, which is looked at once */
};

/* false: no memory. */
bool regions_find(struct regions *r, struct graph *g);

#endif /* NETWORK_IMPORT_PATTERN_ORDER_REGION_H */
