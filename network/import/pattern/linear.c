/* SPDX-License-Identifier: Apache-2.0
 *
 * See linear.h.
 */
#include "network/import/pattern/linear.h"

#include "network/import/pattern/scores.h"

enum { JOINED = 8 }; /* at most */

static bool is_constant(const struct graph *g, int value, int rank)
{
    const struct value *v = graph_value(g, value);
    return v && v->constant && v->rank == rank;
}

bool linear_find(const struct graph *g, int value, struct linear *l)
{
    const struct node *n = maker(g, value);
    const struct value *y = graph_value(g, value);
    if (!y || y->rank < 1)
        return false;
    const int64_t columns = y->dims[y->rank - 1];
    l->b = VALUE_NONE;
    if (is_op(n, "Add")) {
        const int b = is_constant(g, n->in[0], 1) ? 0 : 1;
        if (!is_constant(g, n->in[b], 1) ||
            graph_value(g, n->in[b])->dims[0] != columns ||
            graph_value(g, n->in[1 - b])->readers != 1)
            return false;
        l->b = n->in[b];
        n = maker(g, n->in[1 - b]);
    }
    if (!is_op(n, "MatMul") || !is_constant(g, n->in[1], 2))
        return false;
    l->x = n->in[0];
    l->w = n->in[1];
    return true;
}

static int multiply(struct match *m, int x, int w, int b)
{
    const int in[] = {x, w};
    const struct node *product = match_add(m, "MatMul", in, 2);
    const int y = product ? product->out[0] : VALUE_NONE;
    if (b < 0)
        return y;
    const int sum[] = {y, b};
    const struct node *biased = match_add(m, "Add", sum, 2);
    return biased ? biased->out[0] : VALUE_NONE;
}

static int concatenate(struct match *m, const int *in, int count, int axis)
{
    struct node *n = match_add(m, "Concat", in, count);
    node_set_integer(match_graph(m), n, "axis", axis);
    return n ? n->out[0] : VALUE_NONE;
}

int linear_join(struct match *m, const struct linear *l, int n)
{
    int w[JOINED], b[JOINED];
    for (int i = 0; i < n && i < JOINED; i++) {
        if (l[i].x != l[0].x || (l[i].b < 0) != (l[0].b < 0))
            return VALUE_NONE;
        w[i] = l[i].w;
        b[i] = l[i].b;
    }
    if (n > JOINED)
        return VALUE_NONE;
    const int all_w = concatenate(m, w, n, 1);
    return multiply(m, l[0].x, all_w, b[0] < 0 ? VALUE_NONE : concatenate(m, b, n, 0));
}

int linear_part(struct match *m, const struct linear *l, int64_t begin, int64_t columns)
{
    struct graph *g = match_graph(m);
    const int64_t w_axis = 1, b_axis = 0, end = begin + columns;
    const int from = graph_add_integers(g, 1, &begin, 1);
    const int to = graph_add_integers(g, 1, &end, 1);
    const int w[] = {l->w, from, to, graph_add_integers(g, 1, &w_axis, 1)};
    const int b[] = {l->b, from, to, graph_add_integers(g, 1, &b_axis, 1)};
    const struct node *cut = match_add(m, "Slice", w, 4);
    const struct node *bias = l->b >= 0 ? match_add(m, "Slice", b, 4) : NULL;
    return cut ? multiply(m, l->x, cut->out[0], bias ? bias->out[0] : VALUE_NONE)
               : VALUE_NONE;
}
