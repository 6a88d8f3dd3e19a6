/* SPDX-License-Identifier: Apache-2.0
 *
 * Partitioned boolean quadratic programming: one label a node, minimum sum of the nodes'
 * and edges' costs. PLAN_INFINITE forbids. R0, RI, RII, and the heuristic RN.
 */
#ifndef BENCH_PLAN_EDGEWISE_H
#define BENCH_PLAN_EDGEWISE_H

#include "planner/solver/plan.h"

struct edgewise_node {
    int64_t *cost;
    size_t n;  /* labels */
    bool done; /* eliminated */
    size_t degree;
};

struct edgewise {
    struct edgewise_node *nodes;
    int64_t **edges; /* n x n, [a][b] for a < b; NULL: no edge */
    size_t n;
};

int edgewise_open(struct edgewise *q, size_t n_nodes, strata_error *err);
int edgewise_set_node(struct edgewise *q, size_t node, size_t n_labels,
                      strata_error *err);
/* Add costs, rows for a's labels and columns for b's, to the edge between two nodes. */
int edgewise_add_edge(struct edgewise *q, size_t a, size_t b, const int64_t *costs,
                      strata_error *err);
/* A label for each node; q is used up. Optimal if RN was not needed. */
int edgewise_solve(struct edgewise *q, size_t *labels, strata_error *err);
void edgewise_close(struct edgewise *q);

#endif /* BENCH_PLAN_EDGEWISE_H */
