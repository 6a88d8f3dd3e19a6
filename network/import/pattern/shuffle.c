/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes of dims and of their order, one after another. A Shuffle is a transpose, a
 * reshape and a transpose, so what is more than that stays two.
 */
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/pattern.h"

#define RESHAPE "Reshape|Flatten|Squeeze|Unsqueeze"

/* The order that a Transpose says. */
static bool read_order(const struct match *m, const char *name, int64_t *order)
{
    const struct node *t = match_node(m, name);
    const struct value *y = match_tensor(m, name);
    const int64_t n = node_integers(t, "perm", order, STRATA_MAX_RANK);
    for (int d = 0; n < 0 && d < y->rank; d++)
        order[d] = y->rank - 1 - d;
    return n < 0 || n == y->rank;
}

static void set_order(struct match *m, struct node *n, const char *key, const char *name)
{
    int64_t order[STRATA_MAX_RANK];
    if (n && read_order(m, name, order))
        node_set_integers(match_graph(m), n, key, order,
                          (size_t)match_tensor(m, name)->rank);
}

/* The first dim is that of what is reshaped, where it is the same: any batch will do. */
static int shape_of(const struct match *m, const char *from, const char *to,
                    int64_t *dims)
{
    const struct value *x = match_tensor(m, from), *y = match_tensor(m, to);
    memcpy(dims, y->dims, sizeof y->dims);
    if (x->rank > 0 && x->dims[0] == dims[0])
        dims[0] = 0;
    return y->rank;
}

static void set_shape(struct match *m, struct node *n, const char *from, const char *to)
{
    int64_t dims[STRATA_MAX_RANK];
    const int rank = shape_of(m, from, to, dims);
    node_set_integers(match_graph(m), n, "shape", dims, (size_t)rank);
}

/* Nothing empty, whose dim of 0 would be taken for a copy, and no scalar. */
static bool has_elements(const struct match *m)
{
    const struct value *y = match_tensor(m, "y");
    return y->rank > 0 && value_count(y) > 0;
}

static struct node *shuffle(struct match *m)
{
    const int x = match_value(m, "x");
    return match_own(m, "Shuffle", &x, 1);
}

/* Two reshapes: the last one. */
static struct node *emit_reshape(struct match *m)
{
    int64_t dims[STRATA_MAX_RANK];
    const int n = shape_of(m, "x", "y", dims);
    const int in[2] = {match_value(m, "x"),
                       graph_add_integers(match_graph(m), 1, dims, n)};
    return match_add(m, "Reshape", in, 2);
}

/* Two transposes: one, or nothing. */
static struct node *emit_order(struct match *m)
{
    int64_t a[STRATA_MAX_RANK], y[STRATA_MAX_RANK], order[STRATA_MAX_RANK];
    const int rank = match_tensor(m, "x")->rank, x = match_value(m, "x");
    bool same = true;
    if (!read_order(m, "a", a) || !read_order(m, "y", y))
        return NULL;
    for (int d = 0; d < rank; d++) {
        order[d] = a[y[d]];
        same &= order[d] == d;
    }
    struct node *n = match_add(m, same ? "Identity" : "Transpose", &x, 1);
    if (!same)
        node_set_integers(match_graph(m), n, "perm", order, (size_t)rank);
    return n;
}

static struct node *emit_turned_after(struct match *m)
{
    struct node *n = shuffle(m);
    set_shape(m, n, "x", "b");
    set_order(m, n, "second", "y");
    return n;
}

static struct node *emit_turned_before(struct match *m)
{
    struct node *n = shuffle(m);
    set_order(m, n, "first", "a");
    set_shape(m, n, "a", "y");
    return n;
}

static struct node *emit_turned_twice(struct match *m)
{
    struct node *n = shuffle(m);
    set_order(m, n, "first", "a");
    set_shape(m, n, "a", "b");
    set_order(m, n, "second", "y");
    return n;
}

/* ---- what is a reshape in part --------------------------------------------------------
 */

static bool pads_nothing(const struct match *m)
{
    const struct value *pads = match_tensor(m, "P");
    for (int64_t i = 0; i < value_count(pads); i++)
        if (value_integer(pads, i) != 0)
            return false;
    return true;
}

static struct node *emit_same(struct match *m)
{
    const int x = match_value(m, "x");
    return match_add(m, "Identity", &x, 1);
}

/* One index is a piece of one element, whose dim then goes: it may join a reshape. */
static bool is_one_index(const struct match *m)
{
    const struct value *x = match_tensor(m, "x"), *i = match_tensor(m, "I");
    const int64_t axis = node_integer(match_node(m, "y"), "axis", 0);
    return i->rank == 0 && x->rank > 1 && axis >= -x->rank && axis < x->rank &&
           has_elements(m);
}

static struct node *emit_piece(struct match *m)
{
    struct graph *g = match_graph(m);
    const struct value x = *match_tensor(m, "x"), y = *match_tensor(m, "y");
    int64_t axis = node_integer(match_node(m, "y"), "axis", 0);
    int64_t at = value_integer(match_tensor(m, "I"), 0), dims[STRATA_MAX_RANK];
    axis += axis < 0 ? x.rank : 0;
    at += at < 0 ? x.dims[axis] : 0;
    const int64_t end = at + 1;
    const int in[4] = {match_value(m, "x"), graph_add_integers(g, 1, &at, 1),
                       graph_add_integers(g, 1, &end, 1),
                       graph_add_integers(g, 1, &axis, 1)};
    const struct node *piece = match_add(m, "Slice", in, 4);
    memcpy(dims, y.dims, sizeof dims);
    if ((axis ? x.dims[0] : 1) == dims[0])
        dims[0] = 0;
    const int reshape[2] = {piece ? piece->out[0] : VALUE_NONE,
                            graph_add_integers(g, 1, dims, y.rank)};
    return match_add(m, "Reshape", reshape, 2);
}

/* An operand that stretches anyway need not be stretched before. */
static struct node *emit_stretched(struct match *m)
{
    struct node *y = match_again(m, "y");
    const int expanded = match_value(m, "e");
    for (int i = 0; y && i < y->n_in; i++)
        if (y->in[i] == expanded)
            node_set_input(match_graph(m), y, i, match_value(m, "c"));
    return y;
}

#define ROW(text_, emit_)                                                                \
    {                                                                                    \
        .text = text_, .check = has_elements, .emit = emit_                              \
    }

static const struct pattern plain[] = {
    {.text = "y = Pad x P ...", .check = pads_nothing, .emit = emit_same},
    {.text = "y = Gather x I", .check = is_one_index, .emit = emit_piece},
    ROW("a = " RESHAPE " x ...; y = " RESHAPE " a ...", emit_reshape),
    ROW("a = Transpose x; y = Transpose a", emit_order),
    ROW("e = Expand c ...; y = Add|Sub|Mul|Div x e", emit_stretched),
    ROW("e = Expand c ...; y = Sub|Div e x", emit_stretched),
};
const struct pattern_table pattern_orders = {plain, ARRAY_LENGTH(plain)};

static const struct pattern joined[] = {
    ROW("a = Transpose x; b = " RESHAPE " a ...; y = Transpose b", emit_turned_twice),
    ROW("b = " RESHAPE " x ...; y = Transpose b", emit_turned_after),
    ROW("a = Transpose x; y = " RESHAPE " a ...", emit_turned_before),
};
const struct pattern_table pattern_shuffles = {joined, ARRAY_LENGTH(joined)};
