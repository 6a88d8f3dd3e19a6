/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that work row by row, a row being what the last dim holds: how many dims come
 * before it, and in which order the rows come, is all the same to them.
 */
#ifndef NETWORK_IMPORT_PATTERN_ORDER_ROWWISE_H
#define NETWORK_IMPORT_PATTERN_ORDER_ROWWISE_H

#include "network/import/graph.h"

enum rowwise_kind {
    ROWWISE_NO,
    ROWWISE_PRODUCT, /* with a matrix that all rows share */
    ROWWISE_GEMM,
    ROWWISE_LAST,    /* along the last dim */
    ROWWISE_EACH,    /* element by element */
    ROWWISE_REGROUP, /* other dims before the last one, and the rows in their order */
};

/* `rows` has a bit for each input whose rows these are; the others are the same for all
 * of them. */
enum rowwise_kind rowwise_find(const struct graph *g, const struct node *n,
                               unsigned *rows);

/* The node on rows that stand in `rank` dims, the last one among them. `in` has what it
 * now reads instead; those of the other inputs may be replaced. */
struct node *rowwise_again(struct graph *g, const struct node *n, int *in, int rank);

#endif /* NETWORK_IMPORT_PATTERN_ORDER_ROWWISE_H */
