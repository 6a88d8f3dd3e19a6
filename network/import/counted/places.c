/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that choose by values: which elements are not 0, which boxes stay, which are
 * the largest; and lists of counted rows, joined or written by their indices.
 * Rows of counted.c, so part of its mutual recursion.
 */
#include "network/import/counted/counted.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"

#define HINT                                                                             \
    "export the network up to there, as to boxes and scores, and do the rest behind it " \
    "(docs/onnx.md)"

/* ---- elements that are not 0 ---------------------------------------------------------
 */

/* The places of a list's true elements, in order, −1 behind the last; and how many. Each
 * one goes to where so many lie before it, and the others outside. */
static void places_of(struct import *im, const struct node *n, int flags, int64_t count,
                      int *places, int *rows)
{
    struct graph *g = &im->g;
    const int64_t first = 0;
    int64_t *all = arena_get(&g->arena, (size_t)count, sizeof *all);
    int64_t *none = arena_get(&g->arena, (size_t)count, sizeof *none);
    for (int64_t i = 0; all && none && i < count; i++) {
        all[i] = i;
        none[i] = -1;
    }
    const int axis = graph_add_integers(g, 0, &first, 1);
    const int axes = graph_add_integers(g, 1, &first, 1);
    const int ones = counted_cast(im, n, flags, ONNX_INT64);
    const int sums = counted_two(im, n, "CumSum", ones, axis);
    const int at = counted_two(im, n, "Sub", sums, counted_integer(im, 1));
    const int choice[] = {flags, at, counted_integer(im, count)};
    const int to = upgrade_value(counted_add(im, n, "Where", choice, 3));
    const int in[] = {graph_add_constant(g, "", STRATA_INT64, 1, &count, none), to,
                      graph_add_constant(g, "", STRATA_INT64, 1, &count, all)};
    *places = upgrade_value(counted_add(im, n, "ScatterElements", in, 3));
    struct node *sum = counted_add(im, n, "ReduceSum", (const int[]){ones, axes}, 2);
    node_set_integer(g, sum, "keepdims", 0);
    *rows = upgrade_value(sum);
    counted_bound_rows(im, *rows, count);
}

/* The same of a value's elements; once for each value. */
static bool find_places(struct import *im, const struct node *n, int value, int *places,
                        int *rows)
{
    struct graph *g = &im->g;
    const struct value x = g->values[value];
    const struct counted *c = counted_of(im, value);
    const int64_t count = value_count(&x);
    if (c && c->places >= 0) {
        *places = c->places;
        *rows = c->places_rows;
        return true;
    }
    int flags = x.dtype == STRATA_BOOL8 ? value : counted_cast(im, n, value, ONNX_BOOL);
    if (c && c->rows >= 0)
        flags =
            counted_two(im, n, "And", flags,
                        counted_live(im, n, c->rows, x.dims[c->axis], c->axis, x.rank));
    if (x.rank != 1)
        flags = counted_reshape(im, n, flags, 1, &count);
    places_of(im, n, flags, count, places, rows);
    counted_tell(im, value, c ? c->rows : VALUE_NONE, c ? c->axis : 0);
    struct counted *own = g->values[value].counted;
    if (own) {
        own->places = *places;
        own->places_rows = *rows;
    }
    return own != NULL;
}

void counted_places(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value *given = upgrade_input(im, n, 0);
    int parts[STRATA_MAX_RANK], places, rows;
    if (!given || (given->constant && !given->counted) || given->rank < 1 ||
        value_count(given) == 0)
        return;
    const struct value x = *given;
    if (!find_places(im, n, n->in[0], &places, &rows))
        return;
    const int64_t row[] = {1, value_count(&x)};
    int64_t stride = value_count(&x);
    for (int d = 0; d < x.rank; d++) {
        stride /= x.dims[d];
        int at = places;
        if (stride > 1)
            at = counted_two(im, n, "Div", at, counted_integer(im, stride));
        if (d > 0)
            at = counted_two(im, n, "Mod", at, counted_integer(im, x.dims[d]));
        parts[d] = counted_reshape(im, n, at, 2, row);
    }
    n->op = x.rank == 1 ? "Identity" : "Concat";
    for (int d = 0; d < x.rank; d++)
        node_set_input(g, n, d, parts[d]);
    node_set_integer(g, n, "axis", 0);
    counted_give(im, n, 0, rows, 1);
}

void counted_compress(struct import *im, struct node *n)
{
    const struct value *given = upgrade_input(im, n, 0),
                       *condition = upgrade_input(im, n, 1);
    int places, rows;
    if (!given || !condition || condition->rank != 1)
        return;
    const struct value x = *given;
    const int64_t all = value_count(&x);
    const int64_t axis = node_integer(n, "axis", 0);
    const bool flat = !node_attribute(n, "axis"),
               known = condition->constant && !condition->counted;
    const int at = counted_axis(im, n->in[0]);
    if (at >= 0 &&
        (flat ? x.rank > 1 : !known && at != (axis < 0 ? axis + x.rank : axis))) {
        import_refuse_node(im, n, NULL,
                           "two of its dims hang on how many rows values tell: " HINT);
        return;
    }
    /* What constants choose along the rows is there. */
    n->whole = known && at >= 0 && (flat || at == (axis < 0 ? axis + x.rank : axis));
    if (known)
        return;
    if (!find_places(im, n, n->in[1], &places, &rows))
        return;
    if (flat)
        node_set_input(&im->g, n, 0, counted_reshape(im, n, n->in[0], 1, &all));
    n->op = "Gather";
    node_set_input(&im->g, n, 1, places);
    counted_give(im, n, 0, rows, flat ? 0 : (int)(axis < 0 ? axis + x.rank : axis));
}

/* ---- boxes ---------------------------------------------------------------------------
 */

/* What NonMaxSuppression counts is its layer's second output. */
static int count_boxes(struct import *im, struct node *n, int64_t most)
{
    struct graph *g = &im->g;
    int *out = arena_get(&g->arena, 2, sizeof *out);
    const int count = graph_add_value(g, "");
    if (!out || count < 0)
        return VALUE_NONE;
    out[0] = n->out[0];
    out[1] = count;
    n->out = out;
    n->n_out = 2;
    g->values[count].node = n;
    const int wide = counted_cast(im, n, count, ONNX_INT64);
    const int rows = counted_reshape(im, n, wide, 0, NULL);
    counted_bound_rows(im, rows, most);
    return rows;
}

/* Boxes of which at most 0 are kept, as where the model does not say how many: there is
 * room for a row, and none counts. */
static void keep_none(struct import *im, struct node *n)
{
    const int64_t one = 1;
    node_set_input(&im->g, n, 2, graph_add_integers(&im->g, 1, &one, 1));
    counted_give(im, n, 0, counted_integer(im, 0), 0);
}

static bool keeps_number(const struct node *n)
{
    static const char *const ops[] = {"Cast", "Identity", "Reshape", "Squeeze",
                                      "Unsqueeze"};
    for (size_t i = 0; i < ARRAY_LENGTH(ops); i++)
        if (strcmp(n->op, ops[i]) == 0)
            return n->n_in > 0;
    return false;
}

/* The most that a number of a run may be: what a Min or a Clip says, or `all`. */
static int64_t number_most(const struct import *im, int value, int64_t all)
{
    const struct node *n = graph_value(&im->g, value)->node;
    while (n && keeps_number(n)) {
        const struct value *from = graph_value(&im->g, n->in[0]);
        n = from ? from->node : NULL;
    }
    const bool least = n && strcmp(n->op, "Min") == 0,
               clips = n && strcmp(n->op, "Clip") == 0;
    for (int k = clips ? 2 : 0; (least || clips) && k < n->n_in; k++) {
        const struct value *v = graph_value(&im->g, n->in[k]);
        if (v && v->constant && value_count(v) == 1 && value_integer(v, 0) < all)
            all = value_integer(v, 0);
    }
    return all;
}

/* A number of a run as one of rows: a scalar, not below 0. */
static int number_rows(struct import *im, const struct node *n, int value)
{
    const int scalar = counted_reshape(im, n, value, 0, NULL);
    const int wide = counted_cast(im, n, scalar, ONNX_INT64);
    return counted_two(im, n, "Max", wide, counted_integer(im, 0));
}

/* Boxes that do not count get the lowest score, above which a kept one has to be. */
void counted_suppress(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value *boxes = upgrade_input(im, n, 0),
                       *scores = upgrade_input(im, n, 1), *most = upgrade_input(im, n, 2);
    if (boxes && scores && !most && n->n_out == 1) {
        keep_none(im, n);
        return;
    }
    if (!boxes || !scores || !most || boxes->rank != 3 || scores->rank != 3 ||
        n->n_out > 1)
        return;
    const int64_t classes = scores->dims[0] * scores->dims[1], all = boxes->dims[1];
    const bool bounded = most->constant || counted_is_size(im, n->in[2]);
    if (!bounded && classes != 1)
        return;
    if (most->constant && value_count(most) == 1 && value_integer(most, 0) <= 0) {
        keep_none(im, n);
        return;
    }
    if (counted_axis(im, n->in[0]) >= 0 && counted_axis(im, n->in[0]) != 1) {
        import_refuse_node(im, n, NULL, "how many images it has hangs on values: " HINT);
        return;
    }
    const int wanted = most->constant ? VALUE_NONE
                       : bounded      ? counted_element(im, n, n->in[2], 0)
                                      : number_rows(im, n, n->in[2]);
    const int64_t limit =
        bounded ? counted_most(im, n->in[2], 0) : number_most(im, n->in[2], all);
    const int64_t kept = limit < 1 ? 1 : limit < all ? limit : all;
    if (counted_axis(im, n->in[0]) >= 0 && counted_axis(im, n->in[1]) < 0)
        counted_tell(im, n->in[1], counted_of(im, n->in[0])->rows, 2);
    if (counted_axis(im, n->in[1]) == 2)
        counted_hide(im, n, 1, counted_end(im, g->values[n->in[1]].dtype, false));
    else if (counted_axis(im, n->in[1]) >= 0 || (wanted >= 0 && classes > 1)) {
        import_refuse_node(im, n, NULL,
                           "how many boxes, images or classes it has hangs on values in "
                           "a way that is not taken: " HINT);
        return;
    }
    node_set_input(g, n, 2, graph_add_integers(g, 1, &kept, 1));
    int rows = count_boxes(im, n, classes * kept);
    if (wanted >= 0) {
        rows = counted_two(im, n, "Min", rows, wanted);
        counted_bound_rows(im, rows, kept);
    }
    counted_give(im, n, 0, rows, 0);
}

/* ---- the largest ---------------------------------------------------------------------
 */

void counted_largest(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value x = g->values[n->in[0]];
    const int64_t given = node_integer(n, "axis", -1);
    const int axis = (int)(given < 0 ? given + x.rank : given);
    const bool largest = node_integer(n, "largest", 1) != 0;
    const bool size = n->n_in > 1 && counted_is_size(im, n->in[1]);
    if (counted_axis(im, n->in[0]) >= 0 && counted_axis(im, n->in[0]) != axis) {
        if (size)
            import_refuse_node(
                im, n, NULL, "two of its dims hang on how many rows values tell: " HINT);
        return;
    }
    counted_hide(im, n, 0, counted_end(im, x.dtype, !largest));
    n->whole = true;
    if (!size)
        return;
    const int rows = counted_element(im, n, n->in[1], 0);
    const int64_t most = counted_most(im, n->in[1], 0), room = x.dims[axis];
    const int64_t k = most < room ? most : room;
    node_set_input(g, n, 1, graph_add_integers(g, 1, &k, 1));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            counted_give(im, n, i, rows, axis);
}

/* ---- lists that are joined -----------------------------------------------------------
 */

static int rows_along(struct import *im, int value, int axis)
{
    return counted_axis(im, value) == axis
               ? counted_of(im, value)->rows
               : counted_integer(im, im->g.values[value].dims[axis]);
}

/* How many rows all parts have. */
static int sum_rows(struct import *im, const struct node *n, int axis, int64_t most)
{
    int64_t fixed = 0;
    int rows = VALUE_NONE;
    for (int i = 0; i < n->n_in; i++) {
        if (counted_axis(im, n->in[i]) != axis) {
            fixed += im->g.values[n->in[i]].dims[axis];
            continue;
        }
        const int own = rows_along(im, n->in[i], axis);
        rows = rows < 0 ? own : counted_two(im, n, "Add", rows, own);
    }
    if (fixed)
        rows = counted_two(im, n, "Add", rows, counted_integer(im, fixed));
    if (rows >= 0 && !counted_is_size(im, rows))
        counted_bound_rows(im, rows, most);
    return rows;
}

/* The joined parts' places of rows that count; those of parts with the same rows are
 * found once. */
static int places_joined(struct import *im, struct node *n, int axis, int64_t room,
                         int *rows)
{
    struct counted_joins *const *all = &im->joins;
    struct counted_joins *j = *all;
    for (; j; j = j->next) {
        bool same = j->n == n->n_in && j->room == room;
        for (int i = 0; same && i < n->n_in; i++)
            same = counted_axis(im, n->in[i]) == axis
                       ? j->rows[i] == counted_of(im, n->in[i])->rows
                       : j->rows[i] == VALUE_NONE - im->g.values[n->in[i]].dims[axis];
        if (same) {
            *rows = j->sum;
            return j->places;
        }
    }
    struct arena *a = &im->g.arena;
    int *parts = arena_get(a, (size_t)n->n_in, sizeof *parts);
    j = arena_get(a, 1, sizeof *j);
    if (!parts || !j || !(j->rows = arena_get(a, (size_t)n->n_in, sizeof *j->rows)))
        return VALUE_NONE;
    for (int i = 0; i < n->n_in; i++) {
        const int64_t most = im->g.values[n->in[i]].dims[axis];
        const bool counts = counted_axis(im, n->in[i]) == axis;
        j->rows[i] = counts ? counted_of(im, n->in[i])->rows : VALUE_NONE - most;
        parts[i] = counted_live(im, n, rows_along(im, n->in[i], axis), most, 0, 1);
    }
    struct node *joined = counted_add(im, n, "Concat", parts, n->n_in);
    node_set_integer(&im->g, joined, "axis", 0);
    places_of(im, n, upgrade_value(joined), room, &j->places, &j->sum);
    j->n = n->n_in;
    j->room = room;
    j->next = im->joins;
    im->joins = j;
    *rows = j->sum;
    return j->places;
}

/* Rows of a part that another follows would lie between those that count: all are joined,
 * and then chosen from. */
void counted_join(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const int64_t given = node_integer(n, "axis", 0);
    const int rank = g->values[n->in[0]].rank;
    const int axis = (int)(given < 0 ? given + rank : given);
    int64_t room = 0;
    int counted = 0;
    for (int i = 0; i < n->n_in; i++) {
        const int at = counted_axis(im, n->in[i]);
        counted += at == axis;
        room += rank ? g->values[n->in[i]].dims[axis] : 1;
        if (at >= 0 && at != axis)
            return;
    }
    if (counted == 0)
        return;
    if (counted == 1 && counted_axis(im, n->in[n->n_in - 1]) == axis) {
        counted_give(im, n, 0, sum_rows(im, n, axis, room), axis);
        return;
    }
    int rows = VALUE_NONE;
    const int places = places_joined(im, n, axis, room, &rows);
    const int all = upgrade_value(counted_add(im, n, "Concat", n->in, n->n_in));
    if (all < 0)
        return;
    node_set_integer(g, g->values[all].node, "axis", axis);
    n->op = "Gather";
    n->n_in = 0;
    node_set_input(g, n, 0, all);
    node_set_input(g, n, 1, places);
    node_set_integer(g, n, "axis", axis);
    counted_give(im, n, 0, rows, axis);
}

/* ---- rows that are read by their places, or written ----------------------------------
 */

static bool has_negative(const struct value *index)
{
    bool is = false;
    for (int64_t i = 0; index && index->constant && !is && i < value_count(index); i++)
        is = value_integer(index, i) < 0;
    return is;
}

/* Places from the end are those from the end of the rows that count. */
void counted_gather(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0), *index = upgrade_input(im, n, 1);
    const int64_t given = node_integer(n, "axis", 0);
    const int at = counted_axis(im, n->in[0]);
    if (at < 0 || at != (given < 0 ? given + x->rank : given) || !has_negative(index))
        return;
    const int own = counted_cast(im, n, n->in[1], ONNX_INT64);
    const int in[] = {counted_two(im, n, "Less", own, counted_integer(im, 0)),
                      counted_two(im, n, "Add", own, counted_of(im, n->in[0])->rows),
                      own};
    node_set_input(&im->g, n, 1, upgrade_value(counted_add(im, n, "Where", in, 3)));
}

void counted_elements_of(struct import *im, struct node *n)
{
    if (counted_axis(im, n->in[0]) >= 0 && has_negative(upgrade_input(im, n, 1)))
        import_refuse_node(im, n, NULL,
                           "its indices are from the end of rows whose number values "
                           "tell; those from the first on are taken: " HINT);
}

/* Rows that do not count go outside. */
void counted_scatter(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const int at = counted_axis(im, n->in[1]);
    const bool tuples = strcmp(n->op, "ScatterND") == 0;
    const int last = g->values[n->in[1]].rank - 1;
    counted_elements_of(im, n);
    if (at < 0 && n->n_in > 2 && counted_axis(im, n->in[2]) >= 0) {
        import_refuse_node(im, n, NULL,
                           "its updates have rows whose number values tell, and its "
                           "indices do not: " HINT);
        return;
    }
    if (at < 0)
        return;
    if (tuples && at == last) {
        import_refuse_node(im, n, NULL, "the length of its indices hangs on values");
        return;
    }
    const int64_t room = g->values[n->in[1]].dims[at], from = 0, axis = at;
    counted_hide(im, n, 1, counted_number(im, g->values[n->in[1]].dtype, INT32_MAX));
    if (n->n_in > 2 && g->values[n->in[2]].dims[at] > room) {
        const int in[] = {n->in[2], graph_add_integers(g, 1, &from, 1),
                          graph_add_integers(g, 1, &room, 1),
                          graph_add_integers(g, 1, &axis, 1)};
        node_set_input(g, n, 2, upgrade_value(counted_add(im, n, "Slice", in, 4)));
    }
}
