/* SPDX-License-Identifier: Apache-2.0
 *
 * Along which axis of what a node makes the rows of its inputs lie.
 * Called by rows of counted.c and calls them: part of its mutual recursion.
 */
#include "network/import/counted/counted.h"

#include <string.h>

static int64_t before(const struct value *v, int axis)
{
    int64_t n = 1;
    for (int d = 0; d < axis; d++)
        n *= v->dims[d];
    return n;
}

static int64_t behind(const struct value *v, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < v->rank; d++)
        n *= v->dims[d];
    return n;
}

/* The axis of y behind which as many elements lie as behind that of x, where as many lie
 * before it, or a whole number of times so many; -1: there is none. */
static int reshaped_axis(const struct value *x, int axis, const struct value *y)
{
    int found = -1;
    for (int d = 0; d < y->rank; d++)
        if (before(y, d) == before(x, axis) && (found < 0 || y->dims[found] == 1))
            found = d;
    return found;
}

/* Where Squeeze and Unsqueeze leave an axis; -2: it goes. */
static int moved_axis(const struct import *im, const struct node *n, int axis,
                      const struct value *x, const struct value *y)
{
    const struct value *axes = upgrade_input(im, n, 1);
    const bool more = strcmp(n->op, "Unsqueeze") == 0;
    const int rank = more ? y->rank : x->rank;
    bool own[STRATA_MAX_RANK] = {false};
    int from = 0, to = 0;
    for (int64_t i = 0; axes && i < value_count(axes); i++) {
        const int64_t a = value_integer(axes, i);
        own[(a < 0 ? a + rank : a) & (STRATA_MAX_RANK - 1)] = true;
    }
    for (int d = 0; !axes && d < rank; d++)
        own[d] = x->dims[d] == 1;
    for (int d = 0; d < rank; d++) {
        if (!own[d] && from == axis)
            return to;
        if (!more && from == axis)
            return -2;
        from += !own[d] || !more;
        to += !own[d] || more;
    }
    return -2;
}

/* The axis of y that is as long as the rows are many, whatever room they have: the one
 * that the node leaves open, or copies; -1: all dims are numbers. */
static int open_axis(const struct import *im, const struct node *n, int axis,
                     const struct value *x, const struct value *y)
{
    const struct value *shape = upgrade_input(im, n, 1);
    int found = -1;
    if (strcmp(n->op, "Flatten") == 0) {
        const int64_t a = node_integer(n, "axis", 1);
        return axis < (a < 0 ? a + x->rank : a) ? 0 : 1;
    }
    if (strcmp(n->op, "Reshape") != 0)
        return moved_axis(im, n, axis, x, y);
    const bool copies = node_integer(n, "allowzero", 0) == 0;
    for (int64_t d = 0; shape && shape->constant && d < value_count(shape); d++) {
        const int64_t dim = value_integer(shape, d);
        if (copies && dim == 0 && d == axis && before(x, axis) == before(y, axis))
            return axis;
        found = dim == -1 ? (int)d : found;
    }
    return found;
}

static int gathered_axis(const struct import *im, const struct node *n, int i)
{
    const struct value *x = &im->g.values[n->in[0]], *index = &im->g.values[n->in[1]];
    const int64_t given = node_integer(n, "axis", 0);
    const int axis = (int)(given < 0 ? given + x->rank : given);
    const int at = counted_axis(im, n->in[i]);
    if (i == 1)
        return axis + at;
    return at == axis ? -1 : at < axis ? at : at - 1 + index->rank;
}

/* Data that are counted are read where indices say; rows of indices are rows. */
static int tuples_axis(const struct import *im, const struct node *n, int i)
{
    const struct value *index = &im->g.values[n->in[1]];
    const int at = counted_axis(im, n->in[i]), last = index->rank - 1;
    if (i == 1)
        return at < last ? at : -2;
    const int behind_tuple = (int)(index->dims[last] + node_integer(n, "batch_dims", 0));
    return at < behind_tuple ? -1 : last + at - behind_tuple;
}

static int permuted_axis(const struct node *n, int at, int rank)
{
    int64_t order[STRATA_MAX_RANK];
    const int64_t given = node_integers(n, "perm", order, STRATA_MAX_RANK);
    for (int d = 0; d < rank; d++)
        if ((given < 0 ? rank - 1 - d : order[d]) == at)
            return d;
    return -2;
}

/* Which dims go, where they are not kept. */
static int reduced_axis(const struct import *im, const struct node *n, int at, int rank)
{
    const bool one = strncmp(n->op, "Arg", 3) == 0;
    const struct value *axes = one || n->n_in < 2 ? NULL : graph_value(&im->g, n->in[1]);
    const int64_t count = one ? 1 : axes ? value_count(axes) : 0;
    bool gone[STRATA_MAX_RANK] = {false};
    int to = at;
    for (int64_t i = 0; i < count; i++) {
        const int64_t a = one ? node_integer(n, "axis", 0) : value_integer(axes, i);
        gone[(a < 0 ? a + rank : a) & (STRATA_MAX_RANK - 1)] = true;
    }
    if (count == 0)
        return node_integer(n, "noop_with_empty_axes", 0) ? at : -1;
    if (gone[at])
        return -1;
    for (int d = 0; d < at && node_integer(n, "keepdims", 1) == 0; d++)
        to -= gone[d];
    return to;
}

/* Rows of one matrix; a sum along them is not taken. */
static int product_axis(const struct import *im, const struct node *n, int i)
{
    const struct value *x = &im->g.values[n->in[i]], *y = &im->g.values[n->out[0]];
    const int at = counted_axis(im, n->in[i]),
              summed = i == 0 || x->rank == 1 ? x->rank - 1 : x->rank - 2;
    if (at == summed)
        return -2;
    if (im->g.values[n->in[1 - i]].rank == 1)
        return at - (at > summed);
    return at + y->rank - x->rank;
}

/* Batches, each of which is computed alone. */
static int batch_axis(const struct import *im, const struct node *n, int i)
{
    const struct value *x = &im->g.values[n->in[i]], *y = &im->g.values[n->out[0]];
    const int64_t normed =
        strcmp(n->op, "LayerNormalization") == 0 ? node_integer(n, "axis", -1) : x->rank;
    const bool turned = strcmp(n->op, "Gemm") == 0 &&
                        (i == 1 || (i == 0 && node_integer(n, "transA", 0)));
    const bool alone = counted_axis(im, n->in[i]) == 0 && x->dims[0] == y->dims[0] &&
                       normed != 0 && normed != -x->rank && !turned;
    return alone ? 0 : -2;
}

void counted_reshape_rows(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    const int from = counted_axis(im, n->in[0]), open = open_axis(im, n, from, x, y);
    int to = open == -1 ? reshaped_axis(x, from, y) : open;
    if (to == -2) /* one row, or the model is refused by others, too */
        return;
    if (to >= 0 && before(x, from) != before(y, to))
        to = -1;
    int rows = counted_of(im, n->in[0])->rows;
    const int64_t a = behind(x, from), b = to < 0 ? 1 : behind(y, to);
    if (to < 0 || (a % b && b % a) || x->dims[from] * a != y->dims[to] * b) {
        import_refuse_node(im, n, NULL,
                           "its dims divide rows whose number values tell (of a NonZero "
                           "or a NonMaxSuppression); what is taken joins whole rows or "
                           "divides each: export the network up to there");
        return;
    }
    const int64_t most = y->dims[to];
    if (a != b) {
        rows = counted_two(im, n, a > b ? "Mul" : "Div", rows,
                           counted_integer(im, a > b ? a / b : b / a));
        counted_bound_rows(im, rows, most);
    }
    counted_tell(im, n->out[0], rows, to);
}

int counted_axis_made(const struct import *im, const struct node *n, enum counted_way way,
                      int i)
{
    const struct value *x = &im->g.values[n->in[i]], *y = &im->g.values[n->out[0]];
    const int at = counted_axis(im, n->in[i]);
    int axis;
    switch (way) {
    case SAME:
        return i == 0 || strcmp(n->op, "Concat") == 0 ? at : -1;
    case STRETCHED:
        axis = at + y->rank - x->rank;
        return x->dims[at] == 1 && y->dims[axis] != 1 ? -1 : axis;
    case FIRST:
        return batch_axis(im, n, i);
    case PERMUTED:
        return permuted_axis(n, at, x->rank);
    case GATHERED:
        return gathered_axis(im, n, i);
    case TUPLES:
        return tuples_axis(im, n, i);
    case INDICES:
        return i == 1 ? at : -1;
    case REDUCED:
        return reduced_axis(im, n, at, x->rank);
    case PRODUCT:
        return product_axis(im, n, i);
    default:
        return -1;
    }
}
