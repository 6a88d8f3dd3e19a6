/* SPDX-License-Identifier: Apache-2.0
 *
 * A node as a layer's and an impl's callbacks see it: while it is planned and timed, and
 * as it runs.
 */
#ifndef PLANNER_VIEW_H
#define PLANNER_VIEW_H

#include "planner/pack.h"
#include "planner/planner.h"

/* The caller gives in, out and weight (n_ports, n_out and n_weights long), and the
 * residual if the epilogue adds one. */
struct node_view {
    strata_node node; /* the first member: callbacks get its address */
    strata_tensor *in, *out;
    const strata_tensor *weight;
    strata_epilogue epilogue;
    strata_tensor residual;
    struct pack_memory *packs; /* NULL outside setup */
};

/* With the first `fused` layers of its tail. */
void planner_view(struct node_view *v, const struct planner *planner,
                  const struct planner_node *n, size_t fused, int row, strata_error *err);
void execution_view(struct node_view *v, const struct execution *x,
                    const struct execution_node *n, strata_error *err);

#endif /* PLANNER_VIEW_H */
