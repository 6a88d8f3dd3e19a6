/* SPDX-License-Identifier: Apache-2.0
 *
 * Rounds of a Loop that do not know of each other, all at once: where how many there are
 * only values tell, so that they cannot be put one after the other. The body is put in
 * place once, and each of its values that differs from round to round has a first dim
 * more, of as many rounds as there may be. A state is taken that each round appends to.
 *
 * Sizes that differ from round to round are no dims of a tensor. What an image becomes
 * that is resized to such a size, cut, and laid into another (a mask pasted to where its
 * box is) is described instead, until it has one size for all: then it is a product with
 * a matrix of each round's weights.
 */
#ifndef NETWORK_IMPORT_ROUNDS_H
#define NETWORK_IMPORT_ROUNDS_H

#include "network/import/inline.h"
#include "network/import/upgrade.h"

#define ROUNDS_MOST 65536 /* rounds, at most */
#define ROUNDS_ROOM 65536 /* of a dim whose size is computed, at most */
#define ROUNDS_KNOWN 8    /* elements of a list of which is known which are the same */

enum rounds_kernel { ROUNDS_LINEAR, ROUNDS_CUBIC };

/* A dim of a round whose size is computed. Element j of it is the resized dim's element
 * j + offset where low <= j < high, else 0. All but `of` are values: an INT64 a round. */
struct rounds_axis {
    int axis;   /* of a round's dims */
    int64_t of; /* elements before it is resized */
    int size, offset, low, high, length;
};

/* What a value is in a round; the value itself has the rounds as its first dim. */
struct rounds_lane {
    int64_t rounds;
    bool index;     /* it is the number of the round */
    int state;      /* from 1: all that rounds before left; the value is not there */
    int appended;   /* from 1: the value is what this round appends to that state */
    uint32_t known; /* bit i: element i of a list is element[i] in all rounds */
    int64_t element[ROUNDS_KNOWN];
    bool zeros;   /* a tensor of zeros, of which the value is the size */
    bool shifted; /* of PyTorch's half pixel: 0 where one element is left */
    enum rounds_kernel kernel;
    double cubic;
    struct rounds_axis axes[2];
    int n_axes;
    bool dense; /* its computed dims have room for all sizes, and hold their elements */
    int made;   /* the value that is this, dense; VALUE_NONE: none was made */
    int64_t
        flat; /* both axes are one dim, with room for rows of so many; 0: they are not */
};

/* The number of each round, as a scalar of the body. */
int rounds_index(struct import *im, int64_t rounds);
/* A state as a round finds it: of the initial value's type and dims. */
int rounds_state(struct import *im, int64_t rounds, int initial, int state);
const struct rounds_lane *rounds_lane(const struct import *im, int value);
/* Whether the node reads a value that differs from round to round. */
bool rounds_reads(const struct import *im, const struct node *n);
/* Make of such a node one of all rounds, before it is mapped, or refuse it. */
int rounds_before(struct import *im, struct node *n, strata_error *err);
/* A value of all rounds, in its own dims. */
int rounds_spread(struct import *im, const struct node *n, int value, int64_t rounds);

/* ---- for these files -----------------------------------------------------------------
 */

struct rounds_lane *rounds_tell(struct import *im, int value, int64_t rounds);
/* As `from` says. */
struct rounds_lane *rounds_tell_like(struct import *im, int value,
                                     const struct rounds_lane *from);
void rounds_refuse(struct import *im, struct node *n, const char *why);
int rounds_rank(const struct import *im, int value); /* of a round */
/* A node that is not of the body, folded by its caller's pass; values of INT64. */
int rounds_add(struct import *im, const struct node *n, const char *op, const int *in,
               int n_in);
int rounds_two(struct import *im, const struct node *n, const char *op, int a, int b);
int rounds_integer(struct import *im, int64_t v);
/* Element i of a list of each round, as an INT64 a round. */
int rounds_element(struct import *im, const struct node *n, int value, int64_t i);
/* The node does no more than hand that value on. */
void rounds_become(struct import *im, struct node *n, int value);
int64_t rounds_axis_of(const struct node *n, int rank, int64_t otherwise);

/* operators.c: rules' functions */
void rounds_elementwise(struct import *im, struct node *n);
void rounds_gather(struct import *im, struct node *n);
void rounds_change_rank(struct import *im, struct node *n);
void rounds_reduce(struct import *im, struct node *n);
void rounds_transpose(struct import *im, struct node *n);
void rounds_reshape(struct import *im, struct node *n);
void rounds_shape(struct import *im, struct node *n);
void rounds_fill(struct import *im, struct node *n);
void rounds_concat(struct import *im, struct node *n);

/* dense.c: false, and nothing is changed: it is not taken so */
bool rounds_flatten(struct import *im, struct node *n, const int64_t *dims,
                    int64_t count);
bool rounds_largest(struct import *im, struct node *n, int64_t axis);
bool rounds_pick(struct import *im, struct node *n, int64_t axis);

/* range.c: the most that an element of the value can be; INFINITY: it is not known */
double rounds_most(struct import *im, int value);

/* image.c: dims whose sizes are computed */
/* A number of each round, or one of all, before dims of 1. */
int rounds_column(struct import *im, const struct node *n, int value, int64_t rounds,
                  int rank);
void rounds_resize(struct import *im, struct node *n);
void rounds_slice(struct import *im, struct node *n);
bool rounds_join(struct import *im, struct node *n, int64_t axis);
/* The value with one size for all rounds along its computed dims. */
int rounds_settle(struct import *im, const struct node *n, int value,
                  const int64_t *dims);

#endif /* NETWORK_IMPORT_ROUNDS_H */
