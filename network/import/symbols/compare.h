/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by what compares imports of a model.
 */
#ifndef NETWORK_IMPORT_SYMBOLS_COMPARE_H
#define NETWORK_IMPORT_SYMBOLS_COMPARE_H

#include "network/import/symbols/symbols.h"

/* Where a value comes from; all zero: from nowhere. */
struct origin {
    int section, port; /* from 1; of inputs, below 0 */
};

#define EDIT_SECTIONS (STRATA_MAX_RANK + 3)

/* What is to be changed in a section of the first import: the text of an attribute, or
 * the constant that it gives. */
struct edit {
    struct section *section;
    int attr; /* becomes text, whose value is NULL if it is to go; -1: the constant */
    struct section_attr text;
    int like;          /* a further input, whose dims say it; VALUE_NONE */
    int constant, out; /* what it gives, and the value that it then is */
    /* Which make of that what readers get; they stand before section `before`. */
    struct section *made[EDIT_SECTIONS];
    int n_made;
    size_t before;
};

struct comparison {
    struct points *points;
    struct import *const *im; /* of the points; [0] is rewritten */
    int n;
    size_t index; /* of the sections that are under way */
    const struct section *s[POINTS];
    struct origin *origins[POINTS];
    struct edit *edits;
    size_t n_edits, edits_capacity;
    strata_error *err;
};

/* Numbers that imports have in one place, in their order. (edit.c) */
bool compare_equal(const struct comparison *c, const int64_t *v);
/* The symbol whose sizes they are; -1: none. */
int compare_symbol(const struct comparison *c, const int64_t *v);

struct edit *compare_edit(struct comparison *c);
/* The layer under way holds a size in that attribute or weight. */
int compare_differs(struct comparison *c, const char *key);

/* A list of integers that differs as it can be said for any size: a reshape by 0 and -1,
 * a slice by its distance from the end, entries by symbols' names, sizes by those of
 * another tensor. False: it cannot. (list.c) */
bool compare_list(struct comparison *c, const strata_attr *a, struct edit *e);

/* A tensor that is made before section `before`, inputs first, and n dims of it that have
 * these numbers of elements; VALUE_NONE: there is none. (like.c) */
int compare_like(const struct comparison *c, size_t before, int64_t (*extents)[POINTS],
                 int n, int64_t *dims);
/* Whether output `port` of section i, or input i where `port` is below 0, has so many
 * along dim d. */
bool compare_has_extent(const struct comparison *c, size_t i, int port, int d,
                        const int64_t *extent);

/* A Constant whose elements differ: what is repeated once, with an Expand behind it; what
 * is a part of another as the largest, with a Slice. (constant.c) */
int compare_constant(struct comparison *c);

#endif /* NETWORK_IMPORT_SYMBOLS_COMPARE_H */
