/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of several rows of one tensor by the same constant, as those of the cells of a
 * recurrent layer that was written out step by step: they are rows of one product, which
 * reads the constant once.
 *
 *     x1 = Gather x 1; y1 = Gemm x1 W B   ->   p = MatrixMultiply x W B; y1 = Gather p 1
 *
 * A row is what x is at one place of its first dim, or of its second where the batch is
 * first.
 */
#include <string.h>

#include "core/alloc.h"
#include "network/import/pattern/attempt.h"
#include "network/import/pattern/pattern.h"
#include "network/import/pattern/scores.h"

/* A product of what x is at a place of a dim. */
struct step {
    const struct node *product;
    int x, axis;
    int64_t at;
    bool done;
};

static bool is_product(const struct graph *g, const struct node *n)
{
    const bool gemm = is_op(n, "Gemm");
    if (!gemm && !is_op(n, "MatMul"))
        return false;
    const struct value *y = graph_value(g, n->out[0]);
    const struct value *w = n->n_in > 1 ? graph_value(g, n->in[1]) : NULL;
    const struct value *b = n->n_in > 2 ? graph_value(g, n->in[2]) : NULL;
    const int64_t columns = y && y->rank == 2 ? y->dims[1] : 0;
    return n->n_in <= 3 && columns > 0 && w && w->constant && w->rank == 2 &&
           y->dtype == STRATA_FP32 &&
           (!b || (b->constant && b->rank > 0 && b->dims[b->rank - 1] == columns &&
                   value_count(b) == columns)) &&
           !node_integer(n, "transA", 0) && (!gemm || !b || node_real(n, "beta", 1) == 1);
}

/* Whether it is one integer, which the model says. */
static bool says(const struct graph *g, const struct node *n, int i, int rank, int64_t *v)
{
    const struct value *c = n->n_in > i ? graph_value(g, n->in[i]) : NULL;
    if (!c || !c->constant || c->rank != rank || value_count(c) != 1)
        return false;
    *v = value_integer(c, 0);
    return true;
}

/* Of a Gather of one number. */
static bool is_gathered(const struct graph *g, const struct node *n, struct step *s)
{
    if (!is_op(n, "Gather") || !says(g, n, 1, 0, &s->at))
        return false;
    s->x = n->in[0];
    s->axis = (int)node_integer(n, "axis", 0);
    return true;
}

/* Of a part of one of a Split, whose dim a Squeeze takes away. */
static bool is_split(const struct graph *g, const struct node *n, struct step *s)
{
    const struct node *split = is_op(n, "Squeeze") ? maker(g, n->in[0]) : NULL;
    const struct value *x = is_op(split, "Split") ? graph_value(g, split->in[0]) : NULL;
    int64_t axis;
    if (!x || !says(g, n, 1, 1, &axis))
        return false;
    s->x = split->in[0];
    s->axis = (int)node_integer(split, "axis", 0);
    const int dim = s->axis + (s->axis < 0 ? x->rank : 0);
    if (dim < 0 || dim >= x->rank || dim != axis + (axis < 0 ? x->rank : 0))
        return false;
    s->at = 0;
    for (const int *part = split->out; *part != n->in[0]; part++)
        s->at += *part >= 0 ? graph_value(g, *part)->dims[dim] : x->dims[dim];
    return graph_value(g, n->in[0])->dims[dim] == 1 && s->at < x->dims[dim];
}

/* A matrix of three dims, along the first or the second. */
static bool is_row(const struct graph *g, const struct node *n, struct step *s)
{
    if (!is_gathered(g, n, s) && !is_split(g, n, s))
        return false;
    const struct value *x = graph_value(g, s->x);
    s->axis += s->axis < 0 ? x->rank : 0;
    return !x->constant && !x->counted && x->rank == 3 && s->axis < 2;
}

static bool is_like(const struct step *a, const struct step *b)
{
    const struct node *p = a->product, *q = b->product;
    const int bias = p->n_in > 2 ? p->in[2] : VALUE_NONE;
    return a->x == b->x && a->axis == b->axis && p->in[1] == q->in[1] &&
           bias == (q->n_in > 2 ? q->in[2] : VALUE_NONE) &&
           node_integer(p, "transB", 0) == node_integer(q, "transB", 0) &&
           node_real(p, "alpha", 1) == node_real(q, "alpha", 1);
}

/* Those of nodes from `first` on that go with it, into `all`. */
static size_t collect(struct step *all, struct step *first, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (!first[i].done && is_like(first, &first[i])) {
            all[count++] = first[i];
            first[i].done = true;
        }
    return count;
}

/* Their product of all rows of x. */
static struct node *multiply(struct graph *g, const struct step *s)
{
    const struct node *p = s->product;
    const int in[] = {s->x, p->in[1], p->n_in > 2 ? p->in[2] : VALUE_NONE};
    const int out = graph_add_value(g, "");
    struct node *all =
        graph_add_node(g, "MatrixMultiply", in, in[2] >= 0 ? 3 : 2, &out, 1);
    if (!all)
        return NULL;
    all->domain = PATTERN_DOMAIN;
    all->derived = true;
    all->name = *p->name ? arena_print(&g->arena, "%s/steps", p->name) : "";
    if (node_integer(p, "transB", 0))
        node_set_integer(g, all, "transpose_b", 1);
    if (node_real(p, "alpha", 1) != 1)
        node_set_real(g, all, "alpha", node_real(p, "alpha", 1));
    return all;
}

static struct node *take(struct graph *g, const struct step *s, int from)
{
    const int in[] = {from, graph_add_integers(g, 0, &s->at, 1)};
    const int out = graph_add_value(g, "");
    struct node *n = graph_add_node(g, "Gather", in, 2, &out, 1);
    if (!n)
        return NULL;
    node_set_integer(g, n, "axis", s->axis);
    n->name = s->product->name;
    n->from = s->product->from;
    n->derived = s->product->derived;
    return n;
}

static int join(struct import *im, const struct step *s, size_t n, bool *changed,
                strata_error *err)
{
    struct graph *g = &im->g;
    const struct attempt attempt = attempt_begin(im);
    struct node **took = arena_get(&g->arena, n, sizeof *took);
    const struct node *all = multiply(g, s);
    bool refused = false;
    for (size_t i = 0; all && took && i < n; i++)
        took[i] = take(g, &s[i], all->out[0]);
    const int status = attempt_infer(im, &attempt, &refused, err);
    for (size_t i = 0; status == STRATA_OK && i < n; i++)
        refused |= !attempt_fits(g, s[i].product->out[0], took[i]->out[0]);
    if (status != STRATA_OK || refused) {
        attempt_undo(im, &attempt);
        return status;
    }
    for (size_t i = 0; i < n; i++)
        attempt_replace(g, s[i].product->out[0], took[i]);
    *changed = true;
    return arena_status(&g->arena, "a model", err);
}

/* The input of n that has the dim, whose axis there it leaves in *axis: that before a
 * Transpose, or the first that has as much there. */
static int dim_of(const struct graph *g, const struct node *n, int64_t size, int *axis)
{
    int64_t perm[STRATA_MAX_RANK];
    if (is_op(n, "Transpose") && node_integers(n, "perm", perm, STRATA_MAX_RANK) > *axis)
        *axis = (int)perm[*axis];
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = graph_value(g, n->in[i]);
        if (v && !v->constant && *axis >= 0 && *axis < v->rank && v->dims[*axis] == size)
            return n->in[i];
    }
    return VALUE_NONE;
}

/* How many rows x has at most; 0: any number, as the dim is one that nobody gave a size.
 * The same at all sizes that the model is imported at. */
static int64_t most_rows(const struct import *im, const struct step *s)
{
    const struct graph *g = &im->g;
    const int64_t size = graph_value(g, s->x)->dims[s->axis];
    int x = s->x, axis = s->axis;
    for (const struct node *n; x >= 0 && (n = maker(g, x));)
        x = dim_of(g, n, size, &axis);
    const int at = x >= 0 ? graph_value(g, x)->symbols[axis] - 1 : -1;
    const struct symbol *free_dim = at >= 0 ? &im->symbols[at] : NULL;
    return !free_dim ? size : free_dim->assumed || free_dim->is_sum ? 0 : free_dim->most;
}

/* Worth it where half of the rows are asked for. */
static bool pays(const struct import *im, const struct step *s, size_t n)
{
    const int64_t most = most_rows(im, s);
    int64_t rows = 0;
    for (size_t i = 0; most > 0 && i < n; i++) {
        size_t k = 0;
        while (k < i && (s[k].at - s[i].at) % most != 0) /* one may be from the end */
            k++;
        rows += k == i;
    }
    return rows > 1 && 2 * rows >= most;
}

static int sweep(struct import *im, bool *changed, strata_error *err)
{
    struct graph *g = &im->g;
    struct step *steps = arena_get(&g->arena, g->n_nodes + 1, 2 * sizeof *steps);
    struct step *like = steps ? steps + g->n_nodes + 1 : NULL;
    int status = arena_status(&g->arena, "a model", err);
    size_t count = 0;
    *changed = false;
    for (size_t i = 0; status == STRATA_OK && i < g->n_nodes; i++) {
        struct step s = {.product = g->nodes[i]};
        if (is_product(g, s.product) && is_row(g, maker(g, s.product->in[0]), &s))
            steps[count++] = s;
    }
    for (size_t i = 0; status == STRATA_OK && i < count; i++) {
        const size_t n = steps[i].done ? 0 : collect(like, steps + i, count - i);
        if (n && pays(im, like, n))
            status = join(im, like, n, changed, err);
    }
    return status == STRATA_OK && *changed ? import_drop(im, err) : status;
}

const struct pattern_table pattern_steps = {.sweep = sweep};
