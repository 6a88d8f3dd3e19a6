/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by what compares two imports of a model.
 */
#ifndef NETWORK_IMPORT_BATCH_COMPARE_H
#define NETWORK_IMPORT_BATCH_COMPARE_H

#include "network/import/private.h"

enum { FIRST, SECOND };

/* Where a value comes from; all zero: from nowhere. */
struct origin {
    int section, port; /* from 1; of inputs, below 0 */
};

/* What is to be changed in a section of the first: an attribute, or the constant that it
 * gives. */
struct edit {
    struct section *section;
    int attr; /* gets text; -1: the constant */
    struct section_attr text;
    int constant, once;     /* the one repeated, and the value that it gives */
    struct section *expand; /* what repeats it behind the section; NULL: nothing has to */
};

struct comparison {
    struct import *im[2]; /* what is compared; sections of the first are rewritten */
    struct section *s[2]; /* that are under way */
    int64_t batch[2];
    struct origin *origins[2];
    struct edit *edits; /* in the order of sections */
    size_t n_edits, edits_capacity;
    bool named; /* the symbol may stand in lists: it has one value */
    strata_error *err;
};

/* The text of a list of integers that differs, as it can be said for any batch: a reshape
 * by 0 and -1, other entries by the symbol's name. False: it cannot. (list.c) */
bool compare_list(struct comparison *c, const strata_attr *a, struct section_attr *out);

#endif /* NETWORK_IMPORT_BATCH_COMPARE_H */
