/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of computed sizes as tensors with room for the largest: where the largest
 * element is, and elements of rows and columns that a round computes.
 * Rows of rounds.c, so part of its mutual recursion.
 */
#include "network/import/rounds/rounds.h"

#include <math.h>
#include <string.h>

#include "network/import/counted/counted.h"

/* The room of the computed dims, by axis; false: how large they may be is not known. */
static bool find_room(struct import *im, const struct rounds_lane *l,
                      int64_t dims[STRATA_MAX_RANK])
{
    for (int i = 0; i < l->n_axes; i++) {
        const double most = rounds_most(im, l->axes[i].size);
        if (!(most >= 1 && most <= ROUNDS_ROOM))
            return false;
        dims[l->axes[i].axis] = (int64_t)ceil(most);
    }
    return true;
}

/* The image with that room; VALUE_NONE, and refused. Once for each image. */
static int make_dense(struct import *im, struct node *n, int value)
{
    struct rounds_lane *l = im->g.values[value].lane;
    int64_t dims[STRATA_MAX_RANK] = {0};
    if (l->dense)
        return value;
    if (l->made >= 0)
        return l->made;
    if (!find_room(im, l, dims)) {
        rounds_refuse(im, n,
                      "how large the image may be that it reads is not known: it has to "
                      "be bounded, as by a Clip to another image's size,");
        return VALUE_NONE;
    }
    const struct value from = im->g.values[value];
    l->made = rounds_settle(im, n, value, dims);
    struct value *made = graph_value(&im->g, l->made);
    if (!made)
        return VALUE_NONE;
    made->rank = from.rank; /* as the products will have it */
    made->dtype = from.dtype;
    memcpy(made->dims, from.dims, sizeof made->dims);
    for (int i = 0; i < l->n_axes; i++)
        made->dims[l->axes[i].axis + 1] = dims[l->axes[i].axis];
    return l->made;
}

/* ---- the largest ---------------------------------------------------------------------
 */

/* One dim of the last two, which are computed, behind those that the image has. */
bool rounds_flatten(struct import *im, struct node *n, const int64_t *dims, int64_t count)
{
    struct rounds_lane *l = im->g.values[n->in[0]].lane;
    const int rank = rounds_rank(im, n->in[0]);
    int64_t own[STRATA_MAX_RANK];
    bool good = l->n_axes == 2 && count == rank - 1 && dims[count - 1] == -1 && !l->zeros;
    for (int d = 0; d < rank - 2 && good; d++)
        good = dims[d] == im->g.values[n->in[0]].dims[d + 1];
    if (!good)
        return false;
    const int dense = make_dense(im, n, n->in[0]);
    if (dense < 0)
        return true;
    const struct value v = im->g.values[dense];
    const struct rounds_axis *y = &l->axes[l->axes[0].axis == rank - 1],
                             *x = &l->axes[l->axes[0].axis != rank - 1];
    int live[2];
    for (int i = 0; i < 2; i++) {
        const struct rounds_axis *a = i ? x : y;
        const int64_t room = v.dims[a->axis + 1];
        for (int d = 0; d < v.rank; d++)
            own[d] = 1;
        const int length = rounds_column(im, n, a->length, l->rounds, v.rank);
        int64_t *j = arena_get(&im->g.arena, (size_t)room, sizeof *j);
        for (int64_t k = 0; j && k < room; k++)
            j[k] = k;
        own[a->axis + 1] = room;
        const int at = graph_add_constant(&im->g, "", STRATA_INT64, v.rank, own, j);
        live[i] = rounds_two(im, n, "Less", at, length);
    }
    const int in[] = {rounds_add(im, n, "And", live, 2), dense,
                      counted_end(im, v.dtype, false)};
    const int hidden = rounds_add(im, n, "Where", in, 3);
    memcpy(own, v.dims, sizeof own);
    own[rank - 1] = v.dims[rank - 1] * v.dims[rank];
    struct rounds_lane made = *l;
    made.flat = v.dims[rank];
    made.axes[0] = *y;
    made.axes[1] = *x;
    rounds_become(im, n, counted_reshape(im, n, hidden, rank, own));
    rounds_tell_like(im, n->out[0], &made);
    return true;
}

/* The place of the largest, as if there were no room. */
bool rounds_largest(struct import *im, struct node *n, int64_t axis)
{
    const struct rounds_lane l = *rounds_lane(im, n->in[0]);
    const int rank = rounds_rank(im, n->in[0]);
    if (!l.flat || axis != rank - 1 || strcmp(n->op, "ArgMax") != 0 ||
        node_integer(n, "select_last_index", 0))
        return false;
    const int kept = node_integer(n, "keepdims", 1) != 0;
    struct node *found = counted_add(im, n, "ArgMax", &n->in[0], 1);
    node_set_integer(&im->g, found, "axis", axis + 1);
    node_set_integer(&im->g, found, "keepdims", kept);
    const int p = upgrade_value(found), room = counted_integer(im, l.flat);
    const int y = rounds_two(im, n, "Div", p, room);
    const int x = rounds_two(im, n, "Sub", p, rounds_two(im, n, "Mul", y, room));
    const int own = rounds_column(im, n, l.axes[1].length, l.rounds, rank + kept);
    rounds_become(im, n, rounds_two(im, n, "Add", rounds_two(im, n, "Mul", y, own), x));
    rounds_tell(im, n->out[0], l.rounds);
    return true;
}

/* ---- rows and columns ----------------------------------------------------------------
 */

/* Elements along a dim of each round's, by a list of each round. */
bool rounds_pick(struct import *im, struct node *n, int64_t axis)
{
    const struct rounds_lane l = *rounds_lane(im, n->in[0]);
    const struct value index = im->g.values[n->in[1]];
    int64_t dims[STRATA_MAX_RANK];
    if (!index.lane || index.rank != 2 || l.flat || l.zeros || l.state || l.appended)
        return false;
    const int dense = l.n_axes ? make_dense(im, n, n->in[0]) : n->in[0];
    if (dense < 0)
        return true;
    const struct value v = im->g.values[dense];
    for (int d = 0; d < v.rank; d++)
        dims[d] = d == 0 ? l.rounds : d == axis + 1 ? index.dims[1] : 1;
    const int each = counted_reshape(im, n, n->in[1], v.rank, dims);
    memcpy(dims, v.dims, sizeof dims);
    dims[axis + 1] = index.dims[1];
    const int spread =
        rounds_two(im, n, "Expand", each, graph_add_integers(&im->g, 1, dims, v.rank));
    struct rounds_lane made = {.rounds = l.rounds, .made = VALUE_NONE};
    for (int i = 0; i < l.n_axes; i++)
        if (l.axes[i].axis != axis)
            made.axes[made.n_axes++] = l.axes[i];
    made.dense = made.n_axes > 0;
    n->op = "GatherElements";
    node_set_integer(&im->g, n, "axis", axis + 1);
    node_set_input(&im->g, n, 0, dense);
    node_set_input(&im->g, n, 1, spread);
    rounds_tell_like(im, n->out[0], &made);
    return true;
}
