/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders of a tensor's rows: what its last dim holds is a row, and the dims before count
 * them. An order tells where row i of a tensor stands in another one, by digits of i.
 */
#ifndef NETWORK_IMPORT_PATTERN_ORDER_ORDER_H
#define NETWORK_IMPORT_PATTERN_ORDER_ORDER_H

#include "network/import/graph.h"

enum { ORDER_PARTS = STRATA_MAX_RANK - 1 }; /* so that a Transpose can make it */

/* Row (i, k, ...) of n, m, ... is row i*step + k*step' + ... of the other tensor. None of
 * the parts is of one row, and none could be joined with the next. */
struct order {
    int n;
    struct order_part {
        int64_t n, step;
    } part[ORDER_PARTS]; /* outermost first */
};

int64_t order_rows(const struct value *v); /* 0: it has none */
/* The order that changes nothing. */
struct order order_same(int64_t rows);
bool order_is_same(const struct order *o);
bool order_equal(const struct order *a, const struct order *b);
/* The rows of Transpose t among those of its input; false: it moves the last dim. */
bool order_of(struct order *out, const struct graph *g, const struct node *t);
/* Rows as `a` has them, of rows as `b` has them; false: it has too many parts. */
bool order_join(struct order *out, const struct order *a, const struct order *b);
/* The order that leads back. */
struct order order_back(const struct order *o);
/* An order's parts as dims of the other tensor's rows, and where a Transpose finds each.
 */
void order_spread(const struct order *o, int64_t *dims, int64_t *perm);

#endif /* NETWORK_IMPORT_PATTERN_ORDER_ORDER_H */
