/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows whose number only values tell: what NonZero, Compress and NonMaxSuppression make,
 * and what is computed of it. Such a value has as many rows as there may be, along one
 * axis, and a scalar beside it that says how many of them, the first ones, count. What
 * the others hold has no meaning, so where an operator would see them (a sum, the largest
 * ones, a list that is joined with another) they are hidden first. Sizes that hang on
 * such a number are tensors of a run; what has to be constant takes the most that they
 * may be.
 */
#ifndef NETWORK_IMPORT_COUNTED_H
#define NETWORK_IMPORT_COUNTED_H

#include "network/import/upgrade.h"

enum bound { LEAST, MOST, LABEL, BOUNDS };

/* What hangs on such numbers of a value; all of it VALUE_NONE: nothing. */
struct counted {
    int rows; /* INT64 scalar: how many elements along `axis` count, from the first on */
    int axis;
    /* Of sizes: constants of the least and the most that each may be, and what each is,
     * as counted_label; a number is its own. */
    int bounds[BOUNDS];
    bool told;               /* sizes are computed of its rows */
    int places, places_rows; /* of its elements that are not 0: flat, and how many */
};

/* Before a node is mapped, and after: it may be another then, and what it makes is told
 * how many of its rows count; or it is refused. */
int counted_before(struct import *im, struct node *n, strata_error *err);
int counted_after(struct import *im, struct node *n, strata_error *err);
/* Rows of the network's outputs that do not count are -1, of BOOL no. */
int counted_outputs(struct import *im, strata_error *err);
/* Whether the operator works element by element, operands stretched. */
bool counted_is_elementwise(const struct node *n);
/* Whether a condition can choose between them, of which one may have no rows. */
bool counted_fit(const struct import *im, int a, int b);
/* Output i of a node whose condition chooses between a and b; false: they do not fit. */
bool counted_choose(struct import *im, struct node *n, int i, int a, int b);

/* ---- for these files -----------------------------------------------------------------
 */

/* NULL: nothing hangs on such numbers. */
const struct counted *counted_of(const struct import *im, int value);
/* The axis that is counted; -1: none. */
int counted_axis(const struct import *im, int value);
bool counted_is_size(const struct import *im, int value);
/* `value` has `rows` of what it has along the axis. */
void counted_tell(struct import *im, int value, int rows, int axis);
/* The same of output i of a node, whose other outputs are as they are. */
void counted_give(struct import *im, struct node *n, int i, int rows, int axis);

/* A node of all rows, whether they count or not, named after n. */
struct node *counted_add(struct import *im, const struct node *n, const char *op,
                         const int *in, int n_in);
int counted_two(struct import *im, const struct node *n, const char *op, int a, int b);
int counted_cast(struct import *im, const struct node *n, int value, enum onnx_type to);
int counted_reshape(struct import *im, const struct node *n, int value, int rank,
                    const int64_t *dims);
int counted_integer(struct import *im, int64_t v); /* a scalar */
/* A constant of one element of a dtype; the lowest and the highest of it. */
int counted_number(struct import *im, int dtype, double v);
int counted_end(struct import *im, int dtype, bool highest);
/* BOOL8, true for the first `rows` of `most`, along an axis of so many dims. */
int counted_live(struct import *im, const struct node *n, int rows, int64_t most,
                 int axis, int rank);
/* Input i of the node with `fill` where rows do not count. */
void counted_hide(struct import *im, struct node *n, int i, int fill);

/* axes.c */
/* Where the counted rows of what is made lie. */
enum counted_way {
    SAME,      /* at the axis of the input */
    STRETCHED, /* where broadcasting puts it */
    FIRST,     /* as SAME, of the first dim alone: batches */
    RESHAPED,  /* where as many elements lie behind it */
    PERMUTED,
    GATHERED,
    TUPLES,  /* of GatherND */
    INDICES, /* of GatherElements, where its indices have it */
    REDUCED,
    PRODUCT, /* of matrices */
    NOWHERE, /* what is made has all of its rows, or `before` told */
};
/* Where the rows of input i lie in what is made; -1: nowhere, it has all; -2: it is not
 * taken. */
int counted_axis_made(const struct import *im, const struct node *n, enum counted_way way,
                      int i);
/* Rows of x as rows of a reshaped y, which are longer or shorter by a whole number. */
void counted_reshape_rows(struct import *im, struct node *n);

/* limit.c: let no layer make boxes that nobody reads. */
void counted_limit(struct import *im);

/* sizes.c */
void counted_bound(struct import *im, int value, int rank, int64_t n,
                   const int64_t *const bounds[BOUNDS]);
/* A scalar that is from 0 to `most`. */
void counted_bound_rows(struct import *im, int value, int64_t most);
int64_t counted_most(const struct import *im, int value, int64_t i);
int64_t counted_least(const struct import *im, int value, int64_t i);
/* Which elements of a size are no numbers: at most one, or the node is refused; -1. */
int counted_varying(struct import *im, struct node *n, int value);
/* Element i of a size as a scalar. */
int counted_element(struct import *im, const struct node *n, int value, int64_t i);
/* Make input i of the node the constant of the most that it may be. */
void counted_settle(struct import *im, struct node *n, int i);
/* Whether element i of a size and `rows` have one sum, however many rows there are. */
bool counted_completes(const struct import *im, int value, int64_t i, int rows);
void counted_shape(struct import *im, struct node *n);
void counted_elements(struct import *im, struct node *n);
int counted_compute(struct import *im, struct node *n, strata_error *err);

/* places.c: rules' functions */
void counted_places(struct import *im, struct node *n);
void counted_compress(struct import *im, struct node *n);
void counted_suppress(struct import *im, struct node *n);
void counted_largest(struct import *im, struct node *n);
void counted_join(struct import *im, struct node *n);
void counted_scatter(struct import *im, struct node *n);
void counted_gather(struct import *im, struct node *n);
void counted_elements_of(struct import *im, struct node *n);

/* shapes.c: the same */
void counted_slice(struct import *im, struct node *n);
void counted_reshaped(struct import *im, struct node *n);
void counted_expand(struct import *im, struct node *n);
void counted_filled(struct import *im, struct node *n);
void counted_range(struct import *im, struct node *n);
void counted_pad(struct import *im, struct node *n);
void counted_reduce(struct import *im, struct node *n);
void counted_sums(struct import *im, struct node *n);
void counted_split(struct import *im, struct node *n);

#endif /* NETWORK_IMPORT_COUNTED_H */
