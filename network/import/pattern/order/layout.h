/* SPDX-License-Identifier: Apache-2.0
 *
 * How the rows of a region are to come, and what that costs at its border.
 */
#ifndef NETWORK_IMPORT_PATTERN_ORDER_LAYOUT_H
#define NETWORK_IMPORT_PATTERN_ORDER_LAYOUT_H

#include "network/import/pattern/order/order.h"
#include "network/import/pattern/order/region.h"

struct layout {
    struct order order; /* of the rows as they are now */
    int rank;           /* the last dim is each value's own */
    int64_t dims[STRATA_MAX_RANK];
};

/* A region with what enters it and what leaves it. */
struct border {
    const struct graph *g;
    const struct regions *r;
    int region;
    int *in, *out; /* values */
    int n_in, n_out;
};

/* false: no memory, or rows of it come back to it in another order. */
bool border_find(struct border *b, struct graph *g, const struct regions *r, int region);
/* The layout that moves less at the border than what is there now, or moves as much and
 * has fewer reshapes; false: there is none, or none that some Transpose could make. */
bool border_choose(const struct border *b, struct layout *out);

/* The Transpose of rows that makes a value; NULL: none does. */
const struct node *border_turn(const struct graph *g, int value, struct order *order);
/* What is entered by in that layout, and the order of its rows there. */
bool border_source(const struct border *b, int value, const struct layout *to, int *from,
                   struct order *order);
/* The same of Transpose t that reads a value of the region. */
bool border_end(const struct border *b, const struct node *t, const struct layout *from,
                struct order *order);
/* Whether anybody outside of the region reads a value; Transposes of rows do not count,
 * where `turns` is false. */
bool border_left(const struct border *b, int value, bool turns);
/* Whether a value's dims are those of the layout. */
bool layout_has(const struct layout *l, const struct value *v);

#endif /* NETWORK_IMPORT_PATTERN_ORDER_LAYOUT_H */
