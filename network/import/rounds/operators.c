/* SPDX-License-Identifier: Apache-2.0
 *
 * What each operator makes of values that differ from round to round.
 * Rows of rounds.c, so part of its mutual recursion.
 */
#include "network/import/rounds/rounds.h"

#include <string.h>

#include "core/alloc.h"
#include "network/import/counted/counted.h"

/* An axis of a value of that rank, in a round. */
static int64_t within(int64_t axis, int64_t rank)
{
    return axis < 0 ? axis + rank : axis;
}

static bool has_axes(const struct import *im, int value)
{
    const struct rounds_lane *l = rounds_lane(im, value);
    return l && (l->n_axes || l->zeros || l->state || l->appended);
}

/* Axes in a round as places among its dims; false, and refused. */
static bool place_axes(struct import *im, struct node *n, int64_t *axes, int64_t count,
                       int64_t rank)
{
    bool good = rank < STRATA_MAX_RANK;
    for (int64_t i = 0; i < count && good; i++) {
        axes[i] = within(axes[i], rank);
        good = axes[i] >= 0 && axes[i] < rank;
    }
    if (!good)
        rounds_refuse(im, n, "its axes are none of its dims, or it has too many,");
    return good;
}

/* Constant input i of integers; false, and refused. */
static bool read_integers(struct import *im, struct node *n, int i, int64_t *out,
                          int64_t *count)
{
    const struct value *v = upgrade_input(im, n, i);
    if (v && v->constant && !v->lane && value_count(v) <= STRATA_MAX_RANK) {
        *count = value_count(v);
        for (int64_t k = 0; k < *count; k++)
            out[k] = value_integer(v, k);
        return true;
    }
    rounds_refuse(im, n, "its axes or dims are computed,");
    return false;
}

/* ---- operators -----------------------------------------------------------------------
 */

/* Operands as broadcasting wants them: the rounds first, then dims of 1; false, and
 * refused. */
static bool stretch(struct import *im, struct node *n)
{
    int64_t dims[STRATA_MAX_RANK];
    int most = 0;
    int64_t rounds = 0;
    for (int i = 0; i < n->n_in; i++) {
        const int rank = rounds_rank(im, n->in[i]);
        most = rank > most ? rank : most;
        rounds = rounds_lane(im, n->in[i]) ? rounds_lane(im, n->in[i])->rounds : rounds;
    }
    if (!place_axes(im, n, NULL, 0, most))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = graph_value(&im->g, n->in[i]);
        const int rank = rounds_rank(im, n->in[i]), more = most - rank;
        if (!v || !v->lane || more == 0)
            continue;
        dims[0] = rounds;
        for (int d = 1; d <= most; d++)
            dims[d] = d <= more ? 1 : v->dims[d - more];
        node_set_input(&im->g, n, i, counted_reshape(im, n, n->in[i], most + 1, dims));
    }
    return true;
}

/* Where the node hands on elements of its only input, what is known of them stays. */
static void hand_on(struct import *im, struct node *n)
{
    const struct rounds_lane from = *rounds_lane(im, n->in[0]);
    const struct value *v = graph_value(&im->g, n->in[0]);
    const bool cast = strcmp(n->op, "Cast") == 0;
    const int64_t to = node_integer(n, "to", 0);
    const bool same = !cast || onnx_type_core((enum onnx_type)to) == v->dtype;
    const bool integers = cast && !graph_is_real(v->dtype) &&
                          (to == ONNX_INT32 || to == ONNX_INT64 || to == ONNX_FLOAT);
    if (!same && has_axes(im, n->in[0])) {
        rounds_refuse(im, n, "it casts an image whose size is computed, or a state,");
        return;
    }
    if (same)
        rounds_become(im, n, n->in[0]);
    struct rounds_lane *l = rounds_tell_like(im, n->out[0], &from);
    if (l && !same && !integers)
        l->known = 0;
    if (l)
        l->index = same && from.index;
}

void rounds_elementwise(struct import *im, struct node *n)
{
    const bool hands = strcmp(n->op, "Identity") == 0 || strcmp(n->op, "Cast") == 0;
    int64_t rounds = 0;
    if (hands) {
        hand_on(im, n);
        return;
    }
    for (int i = 0; i < n->n_in; i++) {
        if (has_axes(im, n->in[i])) {
            rounds_refuse(im, n, "it reads an image whose size is computed, or a state,");
            return;
        }
        rounds = rounds_lane(im, n->in[i]) ? rounds_lane(im, n->in[i])->rounds : rounds;
    }
    if (stretch(im, n))
        rounds_tell(im, n->out[0], rounds);
}

/* Rows of what does not differ, by the round's number or by numbers that differ. */
static void gather_rows(struct import *im, struct node *n)
{
    const struct value x = im->g.values[n->in[0]];
    const struct rounds_lane *l = rounds_lane(im, n->in[1]);
    const int64_t rounds = l->rounds, axis = rounds_axis_of(n, x.rank, 0), none = 0;
    if (axis != 0 || x.rank == 0) {
        rounds_refuse(im, n, "it takes rows of another dim than the first,");
        return;
    }
    int all = rounds_add(im, n, "Identity", &n->in[0], 1);
    if (l->index && x.dims[0] < rounds && x.dims[0] > 0) /* the others do not count */
        node_set_input(
            &im->g, n, 1,
            rounds_two(im, n, "Min", n->in[1], rounds_integer(im, x.dims[0] - 1)));
    if (l->index && x.dims[0] > rounds) {
        const int in[] = {all, rounds_integer(im, 0), rounds_integer(im, rounds),
                          graph_add_integers(&im->g, 1, &none, 1)};
        all = rounds_add(im, n, "Slice", in, 4);
    }
    if (l->index && x.dims[0] >= rounds)
        rounds_become(im, n, all);
    else
        node_set_input(&im->g, n, 0, all);
    rounds_tell(im, n->out[0], rounds);
}

/* A computed axis where dims before it go or come. */
static bool move_axes(struct rounds_lane *l, int64_t at, int by)
{
    for (int i = 0; i < l->n_axes; i++) {
        if (l->axes[i].axis == at && by < 0)
            return false;
        l->axes[i].axis += l->axes[i].axis >= at ? by : 0;
    }
    return true;
}

void rounds_gather(struct import *im, struct node *n)
{
    const struct rounds_lane *x = rounds_lane(im, n->in[0]);
    const struct value *index = upgrade_input(im, n, 1);
    if (!x) {
        gather_rows(im, n);
        return;
    }
    const int rank = rounds_rank(im, n->in[0]);
    const int64_t axis = rounds_axis_of(n, rank, 0);
    struct rounds_lane l = *x;
    if (index && index->lane && axis >= 0 && axis < rank && rounds_pick(im, n, axis))
        return;
    if (!index || index->lane || x->dense || x->flat || axis < 0 || axis >= rank ||
        x->zeros || x->state || x->appended || (x->n_axes && index->rank > 0) ||
        !move_axes(&l, axis, index->rank > 0 ? 0 : -1)) {
        rounds_refuse(im, n, "its indices are computed, or lie along a computed size,");
        return;
    }
    l.known = 0;
    for (int64_t i = 0; index->constant && x->known && i < value_count(index); i++) {
        const int64_t from =
            within(value_integer(index, i), graph_value(&im->g, n->in[0])->dims[1]);
        if (i < ROUNDS_KNOWN && from >= 0 && from < ROUNDS_KNOWN &&
            (x->known >> from & 1)) {
            l.known |= 1u << i;
            l.element[i] = x->element[from];
        }
    }
    node_set_integer(&im->g, n, "axis", axis + 1);
    rounds_tell_like(im, n->out[0], &l);
}

void rounds_change_rank(struct import *im, struct node *n)
{
    const bool more = strcmp(n->op, "Unsqueeze") == 0;
    struct rounds_lane l = *rounds_lane(im, n->in[0]);
    int64_t axes[STRATA_MAX_RANK], count = 0;
    const int rank = rounds_rank(im, n->in[0]);
    if (l.zeros || l.state || l.appended || l.flat || l.dense ||
        !read_integers(im, n, 1, axes, &count)) {
        if (!node_is_refused(&im->g, n))
            rounds_refuse(im, n, "it reads a state,");
        return;
    }
    if (!place_axes(im, n, axes, count, more ? rank + count : rank))
        return;
    for (int64_t i = 0; i < count; i++)
        if (l.n_axes && (count > 1 || !move_axes(&l, axes[i], more ? 1 : -1))) {
            rounds_refuse(im, n, "it moves computed sizes,");
            return;
        }
    for (int64_t i = 0; i < count; i++)
        axes[i]++;
    l.known = (more ? rank == 0 : rank == 1) ? l.known : 0;
    l.index = false;
    node_set_input(&im->g, n, 1, graph_add_integers(&im->g, 1, axes, count));
    rounds_tell_like(im, n->out[0], &l);
}

/* Of one number: itself, but where its size or its square is gathered. */
static void reduce_number(struct import *im, struct node *n)
{
    const int x = n->in[0];
    if (strcmp(n->op, "ReduceL1") == 0 || strcmp(n->op, "ReduceL2") == 0)
        rounds_become(im, n, rounds_add(im, n, "Abs", &x, 1));
    else if (strcmp(n->op, "ReduceSumSquare") == 0)
        rounds_become(im, n, rounds_two(im, n, "Mul", x, x));
    else
        rounds_become(im, n, x);
}

void rounds_reduce(struct import *im, struct node *n)
{
    const bool one = strncmp(n->op, "Arg", 3) == 0 || strstr(n->op, "Softmax");
    const int rank = rounds_rank(im, n->in[0]);
    const struct rounds_lane l = *rounds_lane(im, n->in[0]);
    int64_t axes[STRATA_MAX_RANK], count = 0;
    axes[0] = node_integer(n, "axis", 0);
    if (l.flat && one && place_axes(im, n, axes, 1, rank) &&
        rounds_largest(im, n, axes[0]))
        return;
    if (has_axes(im, n->in[0])) {
        rounds_refuse(im, n, "it reads an image whose size is computed, or a state,");
        return;
    }
    if (one) {
        axes[0] = node_integer(n, "axis", strstr(n->op, "Softmax") ? -1 : 0);
        if (!place_axes(im, n, axes, 1, rank))
            return;
        node_set_integer(&im->g, n, "axis", axes[0] + 1);
    } else if ((upgrade_input(im, n, 1) && !read_integers(im, n, 1, axes, &count)) ||
               !place_axes(im, n, axes, count, rank))
        return;
    if (!one && count == 0 && node_integer(n, "noop_with_empty_axes", 0))
        return rounds_become(im, n, n->in[0]), (void)rounds_tell(im, n->out[0], l.rounds);
    if (!one) {
        const bool all = count == 0;
        count = all ? rank : count;
        for (int64_t i = 0; i < count; i++)
            axes[i] = all ? i + 1 : axes[i] + 1;
        if (count == 0)
            reduce_number(im, n);
        else
            node_set_input(&im->g, n, 1, graph_add_integers(&im->g, 1, axes, count));
    }
    rounds_tell(im, n->out[0], l.rounds);
}

void rounds_transpose(struct import *im, struct node *n)
{
    const struct rounds_lane l = *rounds_lane(im, n->in[0]);
    const int rank = rounds_rank(im, n->in[0]);
    int64_t given[STRATA_MAX_RANK], order[STRATA_MAX_RANK] = {0};
    const int64_t count = node_integers(n, "perm", given, STRATA_MAX_RANK);
    if (has_axes(im, n->in[0]) || (count >= 0 && count != rank)) {
        rounds_refuse(im, n, "it turns an image whose size is computed,");
        return;
    }
    for (int d = 0; d < rank; d++)
        order[d + 1] = 1 + (count < 0 ? rank - 1 - d : given[d]);
    node_set_integers(&im->g, n, "perm", order, (size_t)rank + 1);
    rounds_tell(im, n->out[0], l.rounds);
}

/* Reshape and Expand to dims that are the same in all rounds. */
void rounds_reshape(struct import *im, struct node *n)
{
    const bool expands = strcmp(n->op, "Expand") == 0;
    const struct rounds_lane *l = rounds_lane(im, n->in[0]);
    int64_t dims[STRATA_MAX_RANK] = {0}, count = 0;
    if (l && l->n_axes && !l->dense && !l->flat && !expands) {
        if (read_integers(im, n, 1, dims, &count) && !rounds_flatten(im, n, dims, count))
            rounds_refuse(im, n, "it gives other dims to an image of computed size,");
        return;
    }
    if (!l || has_axes(im, n->in[0])) {
        rounds_refuse(im, n, "its dims are computed,");
        return;
    }
    if (!read_integers(im, n, 1, dims + 1, &count))
        return;
    const struct value v = im->g.values[n->in[0]];
    const int64_t rounds = l->rounds;
    for (int64_t d = 1; d <= count && !expands; d++)
        if (dims[d] == 0 && d < v.rank && node_integer(n, "allowzero", 0) == 0)
            dims[d] = v.dims[d];
    if (count == STRATA_MAX_RANK || (expands && count < v.rank - 1)) {
        rounds_refuse(im, n, "it has too many dims,");
        return;
    }
    dims[0] = rounds;
    node_set_input(&im->g, n, 1, graph_add_integers(&im->g, 1, dims, count + 1));
    if (expands && count > v.rank - 1) {
        int64_t own[STRATA_MAX_RANK];
        const int64_t more = count - (v.rank - 1);
        own[0] = rounds;
        for (int64_t d = 1; d <= count; d++)
            own[d] = d <= more ? 1 : v.dims[d - more];
        node_set_input(&im->g, n, 0,
                       counted_reshape(im, n, n->in[0], (int)count + 1, own));
    }
    rounds_tell(im, n->out[0], rounds);
}

/* ---- sizes ---------------------------------------------------------------------------
 */

/* A round's dims: one constant of all, or a list each. */
void rounds_shape(struct import *im, struct node *n)
{
    const struct rounds_lane l = *rounds_lane(im, n->in[0]);
    const struct value v = im->g.values[n->in[0]];
    const int rank = rounds_rank(im, n->in[0]);
    int64_t dims[STRATA_MAX_RANK], begin = node_integer(n, "start", 0),
                                   end = node_integer(n, "end", rank);
    int parts[STRATA_MAX_RANK];
    if (l.zeros || l.state || l.appended || l.flat) {
        rounds_refuse(im, n, "it reads a state,");
        return;
    }
    begin = within(begin, rank) < 0 ? 0 : within(begin, rank);
    end = within(end, rank) > rank ? rank : within(end, rank);
    const int64_t count = end > begin ? end - begin : 0;
    struct rounds_lane made = {.rounds = l.rounds};
    for (int64_t d = begin; d < end; d++) {
        const int64_t k = d - begin;
        int own = VALUE_NONE;
        for (int i = 0; i < l.n_axes; i++)
            own = l.axes[i].axis == d ? l.axes[i].length : own;
        const struct value *size = graph_value(&im->g, own);
        const bool same = size && size->constant && value_count(size) == 1;
        dims[k] = made.element[k] = same ? value_integer(size, 0) : v.dims[d + 1];
        own = same ? VALUE_NONE : own;
        made.known |= own < 0 ? 1u << k : 0;
        const int64_t column[] = {l.rounds, 1};
        const int each =
            own >= 0 ? own : rounds_spread(im, n, counted_integer(im, dims[k]), l.rounds);
        parts[k] = counted_reshape(im, n, each, 2, column);
    }
    if (made.known == (1u << count) - 1) {
        rounds_become(im, n, graph_add_integers(&im->g, 1, dims, count));
        return;
    }
    n->op = "Concat";
    n->attributes = NULL;
    n->n_attributes = 0;
    node_set_integer(&im->g, n, "axis", 1);
    n->n_in = 0;
    for (int64_t k = 0; k < count; k++)
        node_set_input(&im->g, n, (int)k, parts[k]);
    rounds_tell_like(im, n->out[0], &made);
}

void rounds_fill(struct import *im, struct node *n)
{
    const struct onnx_attribute *a = node_attribute(n, "value");
    const struct rounds_lane *l = rounds_lane(im, n->in[0]);
    const int64_t no = 0;
    const int value = graph_add_integers(&im->g, 0, &no, 1);
    if (a && a->tensors && value >= 0)
        inline_constant(im, value, a->tensors);
    const struct value *v = graph_value(&im->g, value);
    if (!v || has_axes(im, n->in[0]) || v->carried != ONNX_UNDEFINED ||
        (a && value_real(v, 0) + (double)value_integer(v, 0) != 0)) {
        rounds_refuse(im, n, "it fills a size that is computed with other than 0,");
        return;
    }
    struct rounds_lane made = *l;
    made.zeros = true;
    rounds_become(im, n, n->in[0]);
    rounds_tell_like(im, n->out[0], &made);
}

/* ---- what is joined ------------------------------------------------------------------
 */

/* A state, and what this round appends to it. */
static bool append(struct import *im, struct node *n, int64_t axis)
{
    const struct rounds_lane *state = rounds_lane(im, n->in[0]);
    if (!state || !state->state || n->n_in != 2 || axis != 0)
        return false;
    const struct value to = im->g.values[n->in[0]];
    const struct rounds_lane *own = rounds_lane(im, n->in[1]);
    if ((own && (own->state || own->appended || own->zeros || own->dense)) ||
        to.rank < 1 || rounds_rank(im, n->in[1]) != to.rank || to.rank >= STRATA_MAX_RANK)
        return false;
    for (int i = 0; own && i < own->n_axes; i++)
        if (own->axes[i].axis == 0 || to.dims[own->axes[i].axis] > ROUNDS_ROOM)
            return false;
    const int which = state->state;
    const int64_t rounds = state->rounds;
    rounds_become(im, n,
                  own ? rounds_settle(im, n, n->in[1], to.dims)
                      : rounds_spread(im, n, n->in[1], rounds));
    struct rounds_lane *l = rounds_tell(im, n->out[0], rounds);
    if (l)
        l->appended = which;
    return true;
}

static void join_known(struct import *im, const struct node *n, struct rounds_lane *l)
{
    int64_t at = 0;
    for (int i = 0; i < n->n_in; i++) {
        const struct rounds_lane *own = rounds_lane(im, n->in[i]);
        const struct value *v = graph_value(&im->g, n->in[i]);
        const int64_t count = own ? v->dims[1] : v->dims[0];
        for (int64_t k = 0; k < count && at + k < ROUNDS_KNOWN; k++) {
            const bool known = own ? k < ROUNDS_KNOWN && (own->known >> k & 1)
                                   : v->constant && !graph_is_real(v->dtype);
            l->known |= known ? 1u << (at + k) : 0;
            l->element[at + k] =
                own ? own->element[k < ROUNDS_KNOWN ? k : 0] : value_integer(v, k);
        }
        at += count;
    }
}

void rounds_concat(struct import *im, struct node *n)
{
    int rank = 0;
    bool sized = false;
    struct rounds_lane l = {0};
    for (int i = 0; i < n->n_in; i++) {
        const struct rounds_lane *own = rounds_lane(im, n->in[i]);
        rank = own && own->state ? graph_value(&im->g, n->in[i])->rank
                                 : rounds_rank(im, n->in[i]);
        l.rounds = own ? own->rounds : l.rounds;
        sized |= has_axes(im, n->in[i]);
    }
    const int64_t axis = rounds_axis_of(n, rank, 0);
    if (append(im, n, axis) || (sized && rounds_join(im, n, axis)))
        return;
    if (sized || axis < 0 || axis >= rank) {
        rounds_refuse(im, n, "it joins what has computed sizes, or a state,");
        return;
    }
    if (rank == 1)
        join_known(im, n, &l);
    for (int i = 0; i < n->n_in; i++)
        node_set_input(&im->g, n, i, rounds_spread(im, n, n->in[i], l.rounds));
    node_set_integer(&im->g, n, "axis", axis + 1);
    rounds_tell_like(im, n->out[0], &l);
}
