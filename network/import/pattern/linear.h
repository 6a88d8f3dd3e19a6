/* SPDX-License-Identifier: Apache-2.0
 *
 * Products with constants, as one of several or as part of one.
 */
#ifndef NETWORK_IMPORT_PATTERN_LINEAR_H
#define NETWORK_IMPORT_PATTERN_LINEAR_H

#include "network/import/pattern/pattern.h"

/* x*W + B; B VALUE_NONE: nothing is added. */
struct linear {
    int x, w, b;
};

/* Whether a value is that, and what lies between is read by nobody else. */
bool linear_find(const struct graph *g, int value, struct linear *l);
/* A product that has the columns of all n, one after another: their x is one, and
 * all have a B, or none. */
int linear_join(struct match *m, const struct linear *l, int n);
/* A product of columns from `begin` on alone. */
int linear_part(struct match *m, const struct linear *l, int64_t begin, int64_t columns);

#endif /* NETWORK_IMPORT_PATTERN_LINEAR_H */
