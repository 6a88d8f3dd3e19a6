/* SPDX-License-Identifier: Apache-2.0
 *
 * A value as part of another one in another order: what reshapes, transposes, slices and
 * the like make of a tensor, as distances between its elements.
 */
#ifndef NETWORK_IMPORT_PATTERN_VIEW_H
#define NETWORK_IMPORT_PATTERN_VIEW_H

#include "network/import/graph.h"

enum { VIEW_FACTORS = 24 };

/* A dim is a product of factors, outermost first: what was joined stays apart, so that it
 * may be split again. */
struct view {
    int source;     /* the value whose elements these are */
    int64_t offset; /* of the first one in it */
    int rank;
    int first[STRATA_MAX_RANK + 1]; /* factors of dim d: from first[d] to first[d + 1] */
    struct view_factor {
        int64_t n, step; /* elements of the source from one to the next; 0: repeated */
    } factor[VIEW_FACTORS];
};

/* The view that goes back furthest; of a value that is none, of itself. false: it has no
 * elements, or unknown dims. */
bool view_of(const struct graph *g, int value, struct view *out);

/* A dim whose elements are evenly apart, each `repeated` times in a row; false: it is
 * none. A dim of 1 is 0 apart. */
bool view_dim(const struct view *v, int d, int64_t *n, int64_t *step, int64_t *repeated);

#endif /* NETWORK_IMPORT_PATTERN_VIEW_H */
