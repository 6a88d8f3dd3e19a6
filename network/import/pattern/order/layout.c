/* SPDX-License-Identifier: Apache-2.0
 *
 * See layout.h. Of a few layouts, those in which a Transpose at the border vanishes and
 * those that a value at the border has, the best is taken.
 */
#include "network/import/pattern/order/layout.h"

#include <string.h>

#include "core/checked.h"
#include "network/import/pattern/order/rowwise.h"

enum { LAYOUTS = 16 }; /* that are tried */

static struct layout dims_of(const struct value *v)
{
    struct layout l = {.rank = v->rank};
    memcpy(l.dims, v->dims, (size_t)(v->rank - 1) * sizeof *v->dims);
    return l;
}

static bool same_dims(const struct layout *a, const struct layout *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)(a->rank - 1) * sizeof *a->dims) == 0;
}

bool layout_has(const struct layout *l, const struct value *v)
{
    const struct layout dims = dims_of(v);
    return same_dims(l, &dims);
}

/* ---- the border ----------------------------------------------------------------------
 */

/* The order that node t brings rows into; false: it is no Transpose that does. */
static bool is_turn(const struct graph *g, const struct node *t, struct order *order)
{
    return t && !*t->domain && strcmp(t->op, "Transpose") == 0 && order_of(order, g, t) &&
           !order_is_same(order);
}

const struct node *border_turn(const struct graph *g, int value, struct order *order)
{
    const struct value *v = graph_value(g, value);
    return v && !v->constant && is_turn(g, v->node, order) ? v->node : NULL;
}

bool border_left(const struct border *b, int value, bool turns)
{
    const struct regions *r = b->r;
    struct order order;
    for (int i = r->readers_at[value]; i < r->readers_at[value + 1]; i++)
        if (!r->readers[i].inside &&
            (turns || !is_turn(b->g, r->readers[i].node, &order)))
            return true;
    return r->output[value];
}

static bool is_made_inside(const struct border *b, int value)
{
    const struct node *n = b->g->values[value].node;
    unsigned rows;
    return n && rowwise_find(b->g, n, &rows);
}

static void list_node(struct border *b, const struct node *n)
{
    bool *listed = b->r->listed;
    unsigned rows = 0;
    rowwise_find(b->g, n, &rows);
    for (int i = 0; i < n->n_in && i < 32; i++)
        if ((rows >> i & 1) && !listed[n->in[i]] && !is_made_inside(b, n->in[i])) {
            listed[n->in[i]] = true;
            b->in[b->n_in++] = n->in[i];
        }
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0 && border_left(b, n->out[i], true))
            b->out[b->n_out++] = n->out[i];
}

bool border_find(struct border *b, struct graph *g, const struct regions *r, int region)
{
    struct node *const *nodes = r->nodes + r->nodes_at[region];
    const int n = r->nodes_at[region + 1] - r->nodes_at[region];
    size_t n_in = 1, n_out = 1;
    *b = (struct border){.g = g, .r = r, .region = region};
    for (int i = 0; i < n; i++) {
        n_in += (size_t)nodes[i]->n_in;
        n_out += (size_t)nodes[i]->n_out;
    }
    b->in = arena_get(&g->arena, n_in, sizeof *b->in);
    b->out = arena_get(&g->arena, n_out, sizeof *b->out);
    if (!b->in || !b->out)
        return false;
    for (int i = 0; i < n; i++)
        list_node(b, nodes[i]);
    for (int i = 0; i < b->n_in; i++) {
        struct order order;
        const struct node *t = border_turn(g, b->in[i], &order);
        if (t && r->of[t->in[0]] == region)
            return false;
    }
    return true;
}

bool border_source(const struct border *b, int value, const struct layout *to, int *from,
                   struct order *order)
{
    struct order turn;
    const struct node *t = border_turn(b->g, value, &turn);
    const bool through = t && !order_is_same(&to->order);
    *from = through ? t->in[0] : value;
    *order = to->order;
    return !through || order_join(order, &to->order, &turn);
}

bool border_end(const struct border *b, const struct node *t, const struct layout *from,
                struct order *order)
{
    const struct order back = order_back(&from->order);
    struct order turn;
    return is_turn(b->g, t, &turn) && order_join(order, &turn, &back);
}

/* ---- what it costs -------------------------------------------------------------------
 */

struct effort {
    int64_t moved; /* elements, by Transposes */
    int turns, regroups;
};

static void add_turns(struct effort *e, const struct graph *g, int value, int n)
{
    if (!checked_mul_add(n, value_count(&g->values[value]), e->moved, &e->moved))
        e->moved = INT64_MAX;
    e->turns += n;
}

static bool is_op(const struct node *n, const char *op)
{
    return n && !*n->domain && strcmp(n->op, op) == 0;
}

/* Whether a Transpose is one Shuffle with another one, before it or behind it, and a
 * Reshape between them: then it moves nothing by itself. */
static bool is_joined(const struct border *b, const struct node *t)
{
    const struct regions *r = b->r;
    const struct value *x = graph_value(b->g, t->in[0]);
    if (x->readers == 1 && is_op(x->node, "Reshape"))
        x = graph_value(b->g, x->node->in[0]);
    if (x->readers == 1 && !x->constant && is_op(x->node, "Transpose"))
        return true;
    const struct node *n = t;
    for (int i = 0; i < 2; i++) {
        const int y = n->out[0], at = r->readers_at[y];
        if (r->readers_at[y + 1] != at + 1 || r->output[y])
            return false;
        n = r->readers[at].node;
        if (is_op(n, "Transpose"))
            return true;
        if (!is_op(n, "Reshape"))
            return false;
    }
    return false;
}

static struct effort effort_now(const struct border *b)
{
    const struct regions *r = b->r;
    struct effort e = {0};
    struct order order;
    unsigned rows;
    for (int i = r->nodes_at[b->region]; i < r->nodes_at[b->region + 1]; i++)
        e.regroups += rowwise_find(b->g, r->nodes[i], &rows) == ROWWISE_REGROUP;
    for (int i = 0; i < b->n_in; i++) {
        const struct node *t = border_turn(b->g, b->in[i], &order);
        add_turns(&e, b->g, b->in[i], t && !is_joined(b, t));
    }
    for (int i = 0; i < b->n_out; i++)
        for (int k = r->readers_at[b->out[i]]; k < r->readers_at[b->out[i] + 1]; k++) {
            const struct node *t = r->readers[k].node;
            add_turns(&e, b->g, b->out[i], is_turn(b->g, t, &order) && !is_joined(b, t));
        }
    return e;
}

/* Rows of a value brought in that order from some dims to others: a Transpose, and a
 * reshape before and behind it where those are not its own. */
static void add_change(struct effort *e, const struct border *b, const struct order *o,
                       int value, const struct layout *from, const struct layout *to)
{
    struct layout spread = {.rank = o->n + 1}, turned = spread;
    int64_t perm[STRATA_MAX_RANK];
    if (order_is_same(o)) {
        e->regroups += !same_dims(from, to);
        return;
    }
    order_spread(o, spread.dims, perm);
    for (int d = 0; d < o->n; d++)
        turned.dims[d] = spread.dims[perm[d]];
    add_turns(e, b->g, value, 1);
    e->regroups += !same_dims(from, &spread) + !same_dims(&turned, to);
}

static bool add_entry(struct effort *e, const struct border *b, int value,
                      const struct layout *to)
{
    struct order order, turn;
    const struct node *t = border_turn(b->g, value, &turn);
    int from;
    if (!border_source(b, value, to, &from, &order))
        return false;
    const struct layout dims = dims_of(&b->g->values[from]);
    add_change(e, b, &order, value, &dims, to);
    if (t && !is_joined(b, t) && (from == value || border_left(b, value, true)))
        add_turns(e, b->g, value, 1);
    return true;
}

static bool add_exit(struct effort *e, const struct border *b, int value,
                     const struct layout *from)
{
    const struct regions *r = b->r;
    const struct order back = order_back(&from->order);
    struct order order, turn;
    for (int i = r->readers_at[value]; i < r->readers_at[value + 1]; i++) {
        const struct node *t = r->readers[i].node;
        if (r->readers[i].inside || !is_turn(b->g, t, &turn))
            continue;
        if (!border_end(b, t, from, &order))
            return false;
        const struct layout to = dims_of(graph_value(b->g, t->out[0]));
        const bool stays = order_is_same(&from->order) && is_joined(b, t);
        const struct effort before = *e;
        add_change(e, b, &order, value, from, &to);
        if (stays)
            *e = (struct effort){before.moved, before.turns, e->regroups};
    }
    const struct layout now = dims_of(&b->g->values[value]);
    if (border_left(b, value, false))
        add_change(e, b, &back, value, from, &now);
    return true;
}

/* false: it cannot be. */
static bool effort_of(struct effort *e, const struct border *b, const struct layout *l)
{
    bool can = l->rank <= STRATA_MAX_RANK;
    *e = (struct effort){0};
    for (int i = 0; can && i < b->n_in; i++)
        can = add_entry(e, b, b->in[i], l);
    for (int i = 0; can && i < b->n_out; i++)
        can = add_exit(e, b, b->out[i], l);
    return can;
}

static bool is_less(const struct effort *a, const struct effort *b)
{
    if (a->moved != b->moved)
        return a->moved < b->moved;
    return a->turns != b->turns ? a->turns < b->turns : a->regroups < b->regroups;
}

/* ---- the choice ----------------------------------------------------------------------
 */

struct choice {
    const struct border *b;
    struct layout tried[LAYOUTS];
    int n, best; /* -1: none */
    struct effort now, least;
};

/* Dims are those of a value that has rows in that order. */
static void try_layout(struct choice *c, const struct order *order, int value)
{
    struct layout l = dims_of(graph_value(c->b->g, value));
    struct effort e;
    l.order = *order;
    for (int i = 0; i < c->n; i++)
        if (same_dims(&c->tried[i], &l) && order_equal(&c->tried[i].order, order))
            return;
    if (c->n == LAYOUTS)
        return;
    c->tried[c->n] = l;
    if (effort_of(&e, c->b, &l) && e.turns <= c->now.turns && is_less(&e, &c->least)) {
        c->least = e;
        c->best = c->n;
    }
    c->n++;
}

static void try_turns(struct choice *c)
{
    const struct border *b = c->b;
    struct order order;
    for (int i = 0; i < b->n_in; i++) {
        const struct node *t = border_turn(b->g, b->in[i], &order);
        if (!t)
            continue;
        order = order_back(&order);
        try_layout(c, &order, t->in[0]);
    }
    for (int i = 0; i < b->n_out; i++)
        for (int k = b->r->readers_at[b->out[i]]; k < b->r->readers_at[b->out[i] + 1];
             k++)
            if (is_turn(b->g, b->r->readers[k].node, &order))
                try_layout(c, &order, b->r->readers[k].node->out[0]);
}

bool border_choose(const struct border *b, struct layout *out)
{
    struct choice c = {.b = b, .best = -1, .now = effort_now(b)};
    if (b->n_in + b->n_out == 0 || c.now.turns + c.now.regroups == 0)
        return false;
    c.least = c.now;
    const int any = b->n_in ? b->in[0] : b->out[0];
    const struct order same = order_same(order_rows(&b->g->values[any]));
    try_turns(&c);
    for (int i = 0; i < b->n_in; i++)
        try_layout(&c, &same, b->in[i]);
    for (int i = 0; i < b->n_out; i++)
        try_layout(&c, &same, b->out[i]);
    if (c.best >= 0)
        *out = c.tried[c.best];
    return c.best >= 0;
}
