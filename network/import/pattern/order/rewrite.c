/* SPDX-License-Identifier: Apache-2.0
 *
 * The pass: a region is made anew, with its rows in another order or in other dims, where
 * that leaves less to be moved. Values that leave it are then as they were.
 */
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/attempt.h"
#include "network/import/pattern/order/layout.h"
#include "network/import/pattern/order/rowwise.h"
#include "network/import/pattern/pattern.h"

enum { NAMES = 16, INPUTS = 32 };

/* A value that is read outside, and what makes it now. */
struct end {
    int value;
    struct node *last;
};

struct rewriting {
    struct graph *g;
    const struct border *b;
    const struct layout *to;
    int *made; /* of each value: what it is in the layout; VALUE_NONE */
    struct end *ends;
    size_t n_ends, ends_capacity;
    const char *name; /* of nodes that change the order */
    bool derived;
};

/* ---- rows in order -------------------------------------------------------------------
 */

/* A node whose output has these dims: others ask for them before its layer tells them. */
static struct node *add(struct rewriting *w, const char *op, int in, int rank,
                        const int64_t *dims)
{
    const int out = graph_add_value(w->g, "");
    struct node *n = graph_add_node(w->g, op, &in, 1, &out, 1);
    if (!n || out < 0)
        return NULL;
    w->g->values[out].rank = rank;
    memcpy(w->g->values[out].dims, dims, (size_t)rank * sizeof *dims);
    n->name = w->name;
    n->derived = w->derived;
    return n;
}

static int reshape(struct rewriting *w, int from, int rank, const int64_t *dims)
{
    int64_t to[STRATA_MAX_RANK];
    const struct value *v = graph_value(w->g, from);
    const bool keeps = v && v->rank > 0 && v->dims[0] == dims[0];
    if (v && v->rank == rank && memcmp(v->dims, dims, (size_t)rank * sizeof *dims) == 0)
        return from;
    memcpy(to, dims, (size_t)rank * sizeof *dims);
    if (keeps) /* any batch will do */
        to[0] = 0;
    const int shape = graph_add_integers(w->g, 1, to, rank);
    struct node *n = add(w, "Reshape", from, rank, dims);
    node_set_input(w->g, n, 1, shape);
    return n ? n->out[0] : VALUE_NONE;
}

/* The value with its rows in that order, and in these dims. */
static int arrange(struct rewriting *w, int from, const struct order *o, int rank,
                   const int64_t *dims)
{
    int64_t parts[STRATA_MAX_RANK], perm[STRATA_MAX_RANK], turned[STRATA_MAX_RANK];
    const struct value *v = graph_value(w->g, from);
    if (!v || order_is_same(o))
        return v ? reshape(w, from, rank, dims) : VALUE_NONE;
    parts[o->n] = v->dims[v->rank - 1];
    perm[o->n] = o->n;
    order_spread(o, parts, perm);
    for (int d = 0; d <= o->n; d++)
        turned[d] = parts[perm[d]];
    const int spread_out = reshape(w, from, o->n + 1, parts);
    struct node *n = add(w, "Transpose", spread_out, o->n + 1, turned);
    node_set_integers(w->g, n, "perm", perm, (size_t)o->n + 1);
    return n ? reshape(w, n->out[0], rank, dims) : VALUE_NONE;
}

/* The layout's dims with the value's own last one. */
static int full_dims(const struct rewriting *w, int value, int64_t *dims)
{
    const struct value *v = graph_value(w->g, value);
    memcpy(dims, w->to->dims, sizeof w->to->dims);
    dims[w->to->rank - 1] = v->dims[v->rank - 1];
    return w->to->rank;
}

/* ---- names ---------------------------------------------------------------------------
 */

struct names_of {
    const struct node *node[NAMES];
    int n;
};

static void note(struct names_of *to, const struct node *n)
{
    for (int i = 0; i < to->n; i++)
        if (to->node[i] == n)
            return;
    if (to->n < NAMES - 1)
        to->node[to->n++] = n;
}

static bool is_regroup(const struct rewriting *w, const struct node *n)
{
    unsigned rows;
    return n && rowwise_find(w->g, n, &rows) == ROWWISE_REGROUP;
}

/* What was between a value and what it is now. */
static void note_before(const struct rewriting *w, struct names_of *to, int value)
{
    const struct node *n = graph_value(w->g, value)->node;
    struct order order;
    int from;
    for (; is_regroup(w, n); n = graph_value(w->g, value)->node) {
        note(to, n);
        value = n->in[0];
    }
    if ((n = border_turn(w->g, value, &order)) &&
        border_source(w->b, value, w->to, &from, &order) && from != value &&
        order_is_same(&order))
        note(to, n);
}

/* Transposes behind a value that are gone, and what was between. */
static void note_behind(const struct rewriting *w, struct names_of *to, int value)
{
    const struct regions *r = w->b->r;
    struct order order;
    for (int i = r->readers_at[value]; i < r->readers_at[value + 1]; i++) {
        const struct node *n = r->readers[i].node;
        if (r->readers[i].inside && is_regroup(w, n) &&
            border_left(w->b, n->out[0], true)) {
            note(to, n);
            note_behind(w, to, n->out[0]);
        } else if (!r->readers[i].inside && border_end(w->b, n, w->to, &order) &&
                   order_is_same(&order) &&
                   layout_has(w->to, graph_value(w->g, n->out[0])))
            note(to, n);
    }
}

static void name_node(const struct rewriting *w, struct node *y, const struct node *n,
                      unsigned rows)
{
    struct names_of all = {.n = 0};
    for (int i = 0; i < n->n_in; i++)
        if (rows >> i & 1)
            note_before(w, &all, n->in[i]);
    note(&all, n);
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] >= 0)
            note_behind(w, &all, n->out[i]);
    y->from = attempt_names(w->g, n, all.node, all.n);
}

/* ---- the region ----------------------------------------------------------------------
 */

/* What changes the order next is called as node n is, or below it. */
static void call(struct rewriting *w, const struct node *n, bool below,
                 const struct order *order)
{
    const char *name = n ? n->name : "";
    w->derived = below;
    w->name = below && *name ? arena_print(&w->g->arena, "%s/%s", name,
                                           order_is_same(order) ? "Reshape" : "Transpose")
                             : name;
}

/* A value in the layout; one that enters is brought there. */
static int in_layout(struct rewriting *w, int value)
{
    const struct node *n = graph_value(w->g, value)->node;
    int64_t dims[STRATA_MAX_RANK];
    struct order order;
    int from;
    if (w->made[value] >= 0)
        return w->made[value];
    if (!border_source(w->b, value, w->to, &from, &order))
        return VALUE_NONE;
    const int rank = full_dims(w, value, dims);
    call(w, n, from == value, &order);
    return w->made[value] = arrange(w, from, &order, rank, dims);
}

static void make_again(struct rewriting *w, const struct node *n)
{
    int in[INPUTS];
    unsigned rows;
    if (rowwise_find(w->g, n, &rows) == ROWWISE_REGROUP) {
        w->made[n->out[0]] = in_layout(w, n->in[0]);
        return;
    }
    for (int i = 0; i < n->n_in && i < INPUTS; i++)
        in[i] = rows >> i & 1 ? in_layout(w, n->in[i]) : n->in[i];
    struct node *y = rowwise_again(w->g, n, in, w->to->rank);
    for (int i = 0; y && i < n->n_out; i++)
        if (y->out[i] >= 0) {
            struct value *v = graph_value(w->g, y->out[i]);
            v->rank = full_dims(w, n->out[i], v->dims);
            w->made[n->out[i]] = y->out[i];
        }
    if (y)
        name_node(w, y, n, rows);
}

/* What has rows of a value of the region in that order takes the place of another. */
static void end_by(struct rewriting *w, int from, const struct order *order, int value)
{
    const struct value v = *graph_value(w->g, value);
    struct end *all =
        arena_grow(&w->g->arena, w->ends, &w->ends_capacity, w->n_ends, sizeof *all);
    const int made = arrange(w, w->made[from], order, v.rank, v.dims);
    struct node *last = made == w->made[from] ? add(w, "Identity", made, v.rank, v.dims)
                                              : w->g->nodes[w->g->n_nodes - 1];
    if (!all || !last)
        return;
    w->ends = all;
    all[w->n_ends++] = (struct end){value, last};
}

static void end_value(struct rewriting *w, int value)
{
    const struct regions *r = w->b->r;
    const struct order back = order_back(&w->to->order);
    struct order order;
    for (int i = r->readers_at[value]; i < r->readers_at[value + 1]; i++) {
        const struct node *n = r->readers[i].node;
        if (!r->readers[i].inside && border_end(w->b, n, w->to, &order)) {
            call(w, n, n->derived, &order);
            end_by(w, value, &order, n->out[0]);
        }
    }
    if (border_left(w->b, value, false)) {
        call(w, graph_value(w->g, value)->node, true, &back);
        end_by(w, value, &back, value);
    }
}

static int rewrite(struct import *im, struct rewriting *w, bool *changed,
                   strata_error *err)
{
    const struct regions *r = w->b->r;
    const struct attempt attempt = attempt_begin(im);
    bool refused;
    for (int i = r->nodes_at[w->b->region]; i < r->nodes_at[w->b->region + 1]; i++)
        make_again(w, r->nodes[i]);
    for (int i = 0; i < w->b->n_out; i++)
        end_value(w, w->b->out[i]);
    const int status = attempt_infer(im, &attempt, &refused, err);
    for (size_t i = 0; i < w->n_ends; i++)
        refused |= !attempt_fits(w->g, w->ends[i].value, w->ends[i].last->out[0]);
    if (status != STRATA_OK || refused) {
        attempt_undo(im, &attempt);
        return status;
    }
    for (size_t i = 0; i < w->n_ends; i++)
        attempt_replace(w->g, w->ends[i].value, w->ends[i].last);
    *changed = true;
    return arena_status(&w->g->arena, "a model", err);
}

/* ---- the pass ------------------------------------------------------------------------
 */

/* Regions that share a Transpose with one that was changed wait for the next sweep. */
static void mark_neighbours(const struct border *b, bool *waits)
{
    const struct regions *r = b->r;
    struct order order;
    for (int i = 0; i < b->n_in; i++) {
        const struct node *t = border_turn(b->g, b->in[i], &order);
        if (t && r->of[t->in[0]] >= 0)
            waits[r->of[t->in[0]]] = true;
    }
    for (int i = 0; i < b->n_out; i++)
        for (int k = r->readers_at[b->out[i]]; k < r->readers_at[b->out[i] + 1]; k++) {
            const struct node *n = r->readers[k].node;
            const int to = n->n_out && n->out[0] >= 0 ? r->of[n->out[0]] : -1;
            if (to >= 0)
                waits[to] = true;
        }
}

static int sweep_region(struct import *im, const struct regions *r, int *made, int region,
                        bool *waits, bool *changed, strata_error *err)
{
    struct border border;
    struct layout to;
    if (!border_find(&border, &im->g, r, region) || !border_choose(&border, &to))
        return arena_status(&im->g.arena, "a model", err);
    struct rewriting w = {.g = &im->g, .b = &border, .to = &to, .made = made};
    mark_neighbours(&border, waits);
    return rewrite(im, &w, changed, err);
}

static int sweep(struct import *im, bool *changed, strata_error *err)
{
    struct graph *g = &im->g;
    struct regions r;
    int status = STRATA_OK;
    *changed = false;
    if (!regions_find(&r, g))
        return arena_status(&g->arena, "a model", err);
    bool *waits = arena_get(&g->arena, r.n + 1, sizeof *waits);
    int *made = arena_get(&g->arena, r.n_values + 1, sizeof *made);
    if (!waits || !made)
        return arena_status(&g->arena, "a model", err);
    for (size_t i = 0; i < r.n_values; i++)
        made[i] = VALUE_NONE;
    for (size_t i = 0; i < r.n && status == STRATA_OK; i++)
        if (!waits[i])
            status = sweep_region(im, &r, made, (int)i, waits, changed, err);
    return status == STRATA_OK && *changed ? import_drop(im, err) : status;
}

const struct pattern_table pattern_regions = {.sweep = sweep};
