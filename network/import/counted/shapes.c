/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that take sizes, and those that would see rows that do not count.
 * Rows of counted.c, so part of its mutual recursion.
 */
#include "network/import/counted/counted.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"

#define HINT                                                                             \
    "export the network up to there, as to boxes and scores, and do the rest behind it " \
    "(docs/onnx.md)"

static void refuse_two(struct import *im, const struct node *n)
{
    import_refuse_node(im, n, NULL,
                       "two of its dims hang on how many rows values tell: " HINT);
}

/* ---- parts ---------------------------------------------------------------------------
 */

/* How many of `rows` lie in [begin, end); end: VALUE_NONE, or a scalar. */
static int rows_between(struct import *im, const struct node *n, int rows, int64_t room,
                        int64_t begin, int64_t end, int computed)
{
    if (computed >= 0)
        rows = rows < 0 ? computed : counted_two(im, n, "Min", rows, computed);
    else if (end < 0)
        rows = counted_two(im, n, "Add", rows, counted_integer(im, end));
    else if (end < room)
        rows = counted_two(im, n, "Min", rows, counted_integer(im, end));
    if (begin > 0)
        rows = counted_two(im, n, "Sub", rows, counted_integer(im, begin));
    if (begin > 0 || (computed < 0 && end < 0))
        rows = counted_two(im, n, "Max", rows, counted_integer(im, 0));
    return rows;
}

/* One of the dims that Slice cuts, if it is counted or its end is computed. */
static void cut(struct import *im, struct node *n, int64_t i, int axis)
{
    struct graph *g = &im->g;
    const struct value x = g->values[n->in[0]];
    const struct value *step = n->n_in > 4 ? graph_value(g, n->in[4]) : NULL;
    const struct value *starts = graph_value(g, n->in[1]);
    const bool own = counted_axis(im, n->in[0]) == axis;
    const bool computed = counted_least(im, n->in[2], i) != counted_most(im, n->in[2], i);
    const int64_t begin = value_integer(starts, i), end = counted_most(im, n->in[2], i);
    if (!own && !computed)
        return;
    if (!own && counted_axis(im, n->in[0]) >= 0) {
        refuse_two(im, n);
        return;
    }
    if (begin < 0 || (step && value_integer(step, i) != 1) ||
        (computed && counted_least(im, n->in[2], i) < 0)) {
        import_refuse_node(im, n, NULL,
                           "it takes the last of rows whose number values tell, or some "
                           "of them by steps; the first ones are taken: " HINT);
        return;
    }
    int rows = own ? counted_of(im, n->in[0])->rows : VALUE_NONE;
    const int last = computed ? counted_element(im, n, n->in[2], i) : VALUE_NONE;
    if (!own && computed && end > x.dims[axis])
        rows = counted_integer(im, x.dims[axis]);
    rows = rows_between(im, n, rows, x.dims[axis], begin, end, last);
    if (!counted_is_size(im, rows))
        counted_bound_rows(im, rows, x.dims[axis]);
    counted_give(im, n, 0, rows, axis);
}

void counted_slice(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value x = g->values[n->in[0]];
    const struct value *axes = n->n_in > 3 ? graph_value(g, n->in[3]) : NULL;
    const struct value *starts = upgrade_input(im, n, 1), *ends = upgrade_input(im, n, 2);
    if (counted_is_size(im, n->in[0]) || !starts || !ends || !starts->constant ||
        (axes && !axes->constant))
        return;
    const int64_t count = value_count(starts);
    for (int64_t i = 0; i < count && !node_is_refused(g, n); i++) {
        const int64_t a = axes ? value_integer(graph_value(g, n->in[3]), i) : i;
        cut(im, n, i, (int)(a < 0 ? a + x.rank : a));
    }
    counted_settle(im, n, 2);
}

/* ---- dims ----------------------------------------------------------------------------
 */

/* The one dim that is no number is what is left, whatever room there is. */
void counted_reshaped(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    int64_t dims[STRATA_MAX_RANK];
    if (n->n_in < 2 || !counted_is_size(im, n->in[1]) || counted_axis(im, n->in[0]) < 0)
        return;
    const int varying = counted_varying(im, n, n->in[1]);
    const int64_t count = value_count(&g->values[n->in[1]]);
    const struct value x = g->values[n->in[0]];
    int64_t others = 1;
    int open = -1;
    for (int64_t i = 0; i < count && i < STRATA_MAX_RANK; i++) {
        dims[i] = counted_most(im, n->in[1], i);
        if (dims[i] == 0 && i < x.rank && node_integer(n, "allowzero", 0) == 0)
            dims[i] = x.dims[i];
        if (dims[i] == -1)
            open = (int)i;
        else
            others *= dims[i];
    }
    if (varying >= 0 && varying < STRATA_MAX_RANK && (open < 0 || others > 0)) {
        if (open >= 0)
            dims[open] = value_count(&x) / others;
        dims[varying] = -1;
    }
    if (count <= STRATA_MAX_RANK)
        node_set_input(g, n, 1, graph_add_integers(g, 1, dims, count));
}

/* As many as a computed size says, along its dim; `from` dims lie before those told. */
static void fill(struct import *im, struct node *n, int i, int from)
{
    const int varying = counted_varying(im, n, n->in[i]);
    if (varying < 0 || node_is_refused(&im->g, n))
        return;
    const int rows = counted_element(im, n, n->in[i], varying);
    counted_settle(im, n, i);
    counted_give(im, n, 0, rows, varying + from);
}

void counted_expand(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    int64_t dims[STRATA_MAX_RANK];
    if (n->n_in < 2 || !counted_is_size(im, n->in[1]))
        return;
    const struct value x = g->values[n->in[0]];
    const int64_t count = value_count(&g->values[n->in[1]]);
    const int more = x.rank > count ? x.rank - (int)count : 0;
    const int axis = counted_axis(im, n->in[0]);
    const int64_t at = axis + count - x.rank;
    if (axis >= 0 && at < 0) {
        refuse_two(im, n);
        return;
    }
    if (axis < 0 || count > STRATA_MAX_RANK) {
        fill(im, n, 1, more);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        dims[i] = counted_most(im, n->in[1], i);
    const int varying = counted_varying(im, n, n->in[1]);
    if (varying >= 0 && varying != at)
        refuse_two(im, n);
    dims[at] = x.dims[axis];
    node_set_input(g, n, 1, graph_add_integers(g, 1, dims, count));
}

void counted_filled(struct import *im, struct node *n)
{
    fill(im, n, 0, 0);
}

void counted_range(struct import *im, struct node *n)
{
    const struct value *first = upgrade_input(im, n, 0), *step = upgrade_input(im, n, 2);
    if (n->n_in < 3 || !counted_is_size(im, n->in[1]) || !first || !step ||
        !first->constant || !step->constant || value_real(step, 0) != 1 ||
        graph_is_real(first->dtype))
        return;
    const int64_t begin = value_integer(first, 0), most = counted_most(im, n->in[1], 0);
    int rows = counted_element(im, n, n->in[1], 0);
    if (begin)
        rows = counted_two(im, n, "Sub", rows, counted_integer(im, begin));
    if (begin || counted_least(im, n->in[1], 0) < 0)
        rows = counted_two(im, n, "Max", rows, counted_integer(im, 0));
    if (!counted_is_size(im, rows))
        counted_bound_rows(im, rows, most > begin ? most - begin : 0);
    counted_settle(im, n, 1);
    counted_give(im, n, 0, rows, 0);
}

/* ---- rows behind the last ------------------------------------------------------------
 */

/* Up to a size that is the same however many rows there are. */
static void fill_up(struct import *im, struct node *n, int axis, int64_t total)
{
    struct graph *g = &im->g;
    const struct value x = g->values[n->in[0]];
    const int rows = counted_of(im, n->in[0])->rows;
    const int given = n->n_in > 2 ? n->in[2] : VALUE_NONE;
    int64_t pads[2 * STRATA_MAX_RANK] = {0};
    int from = n->in[0];
    pads[x.rank + axis] = total - x.dims[axis];
    if (total > x.dims[axis]) {
        const int in[] = {from, graph_add_integers(g, 1, pads, 2 * (int64_t)x.rank)};
        from = upgrade_value(counted_add(im, n, "Pad", in, 2));
    }
    const int live = counted_live(im, n, rows, total, axis, x.rank);
    n->op = "Where";
    n->n_in = 0;
    n->attributes = NULL;
    n->n_attributes = 0;
    node_set_input(g, n, 0, live);
    node_set_input(g, n, 1, from);
    node_set_input(g, n, 2, given >= 0 ? given : counted_number(im, x.dtype, 0));
    n->whole = true;
}

/* So many rows of what the Pad fills with, a constant; VALUE_NONE: none. */
static int filled_rows(struct import *im, const struct node *n, int axis, int64_t rows)
{
    struct graph *g = &im->g;
    struct value like = g->values[n->in[0]];
    const struct value *fill = upgrade_input(im, n, 2);
    const size_t size = weight_dtype_size(weight_dtype_of(like.dtype));
    if (rows <= 0)
        return VALUE_NONE;
    like.dims[axis] = rows;
    const int64_t count = value_count(&like);
    char *data = arena_get(&g->arena, (size_t)count, size);
    for (int64_t i = 0; data && fill && i < count; i++)
        memcpy(data + (size_t)i * size, fill->data, size);
    return graph_add_constant(g, "", like.dtype, like.rank, like.dims, data);
}

/* Rows before the first and behind the last are joined with them. */
static void pad_by_rows(struct import *im, struct node *n, int axis, int64_t before,
                        int64_t behind)
{
    const int parts[] = {filled_rows(im, n, axis, before), n->in[0],
                         filled_rows(im, n, axis, behind)};
    n->op = "Concat";
    n->n_in = 0;
    n->attributes = NULL;
    n->n_attributes = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(parts); i++)
        if (parts[i] >= 0)
            node_set_input(&im->g, n, n->n_in, parts[i]);
    node_set_integer(&im->g, n, "axis", axis);
    counted_join(im, n);
}

static void refuse_pad(struct import *im, struct node *n)
{
    import_refuse_node(im, n, NULL,
                       "it pads rows whose number values tell, or by such a number, and "
                       "not up to one size that holds them all: " HINT);
}

void counted_pad(struct import *im, struct node *n)
{
    const struct value x = im->g.values[n->in[0]];
    const int axis = counted_axis(im, n->in[0]);
    const bool size = n->n_in > 1 && counted_is_size(im, n->in[1]);
    const bool constant = strcmp(node_text(n, "mode", "constant"), "constant") == 0;
    if (n->n_in < 2 || (axis < 0 && !size))
        return;
    const bool all = n->n_in < 4 || n->in[3] < 0;
    const int64_t before = counted_most(im, n->in[1], axis),
                  most = counted_most(im, n->in[1], axis + x.rank),
                  least = counted_least(im, n->in[1], axis + x.rank);
    bool others = false;
    for (int64_t i = 0; i < 2 * (int64_t)x.rank; i++)
        others |= i != axis && i != axis + x.rank && counted_most(im, n->in[1], i) != 0;
    if (!size && all && before == 0 && most == 0)
        return;
    const struct value *fill = upgrade_input(im, n, 2);
    if (!size && all && constant && !others && (!fill || fill->constant) && before >= 0 &&
        most >= 0) {
        pad_by_rows(im, n, axis, before, most);
        return;
    }
    if (axis < 0 || !size || !constant || !all || others || before != 0 ||
        most != least + x.dims[axis] ||
        !counted_completes(im, n->in[1], axis + x.rank, counted_of(im, n->in[0])->rows)) {
        refuse_pad(im, n);
        return;
    }
    fill_up(im, n, axis, most);
}

/* ---- along the rows ------------------------------------------------------------------
 */

static bool is_reduced(const struct import *im, const struct node *n, int axis, int rank)
{
    const bool one = n->n_in < 2 || n->in[1] < 0;
    const struct value *axes = one ? NULL : graph_value(&im->g, n->in[1]);
    if (strncmp(n->op, "Arg", 3) == 0 || strstr(n->op, "Softmax")) {
        const int64_t a = node_integer(n, "axis", strstr(n->op, "Softmax") ? -1 : 0);
        return (a < 0 ? a + rank : a) == axis;
    }
    if (!axes || value_count(axes) == 0)
        return node_integer(n, "noop_with_empty_axes", 0) == 0;
    for (int64_t i = 0; i < value_count(axes); i++) {
        const int64_t a = value_integer(axes, i);
        if ((a < 0 ? a + rank : a) == axis)
            return true;
    }
    return false;
}

/* Rows that do not count are what changes nothing. */
void counted_reduce(struct import *im, struct node *n)
{
    const struct value x = im->g.values[n->in[0]];
    const int axis = counted_axis(im, n->in[0]);
    if (axis < 0 || !is_reduced(im, n, axis, x.rank))
        return;
    const int rows = counted_of(im, n->in[0])->rows;
    const bool least = strcmp(n->op, "ReduceMin") == 0 || strcmp(n->op, "ArgMin") == 0;
    const bool most = strcmp(n->op, "ReduceMax") == 0 || strcmp(n->op, "ArgMax") == 0;
    const bool soft = strstr(n->op, "Softmax") != NULL;
    if (strcmp(n->op, "ReduceMean") == 0) {
        import_refuse_node(im, n, NULL,
                           "it is the mean along rows whose number values tell: " HINT);
        return;
    }
    if (least || most || soft)
        counted_hide(im, n, 0, counted_end(im, x.dtype, least));
    else
        counted_hide(im, n, 0,
                     counted_number(im, x.dtype, strcmp(n->op, "ReduceProd") == 0));
    if (soft)
        counted_give(im, n, 0, rows, axis);
}

/* Sums from the last row on begin with the last that counts. */
void counted_sums(struct import *im, struct node *n)
{
    const int axis = counted_axis(im, n->in[0]);
    if (axis < 0 || node_integer(n, "reverse", 0) == 0)
        return;
    const int rows = counted_of(im, n->in[0])->rows;
    counted_hide(im, n, 0, counted_number(im, im->g.values[n->in[0]].dtype, 0));
    counted_give(im, n, 0, rows, axis);
}

void counted_split(struct import *im, struct node *n)
{
    const int64_t axis = node_integer(n, "axis", 0);
    const int rank = im->g.values[n->in[0]].rank, at = counted_axis(im, n->in[0]);
    if (at >= 0 && at == (axis < 0 ? axis + rank : axis))
        import_refuse_node(im, n, NULL,
                           "it divides rows whose number values tell: " HINT);
}
