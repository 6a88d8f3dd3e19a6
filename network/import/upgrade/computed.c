/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose layers hold their weights, with weights that are computed: norms whose
 * factors come behind them; convolutions as products of matrices, with a convolution
 * before or behind them that only moves elements.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "core/alloc.h"

static bool is_computed(const struct value *v)
{
    return v && !v->constant && v->rank >= 0 && v->dtype >= 0 && !v->lane;
}

/* ---- norms ---------------------------------------------------------------------------
 */

/* A vector of channels as what is stretched over the dims behind them. */
static int over_dims(struct import *im, const struct node *n, int value, int rank)
{
    int64_t dims[STRATA_MAX_RANK] = {graph_value(&im->g, value)->dims[0]};
    if (graph_value(&im->g, value)->rank != 1 || rank < 2)
        return value;
    for (int d = 1; d < rank - 1; d++)
        dims[d] = 1;
    return upgrade_reshape(im, n, value, rank - 1, dims);
}

/* As many ones as the value has elements. */
static int ones(struct import *im, int value)
{
    const struct value v = im->g.values[value];
    const int64_t count = value_count(&v);
    double *all = arena_get(&im->g.arena, (size_t)count, sizeof *all);
    for (int64_t i = 0; all && i < count; i++)
        all[i] = 1;
    const int made = all ? upgrade_reals(im, v.dtype, 1, all, count) : VALUE_NONE;
    struct value *as = graph_value(&im->g, made);
    if (as) {
        as->rank = v.rank;
        memcpy(as->dims, v.dims, sizeof as->dims);
    }
    return made;
}

static void norm(struct import *im, struct node *n)
{
    const bool channels = strcmp(n->op, "InstanceNormalization") == 0 ||
                          strcmp(n->op, "GroupNormalization") == 0;
    const struct value *x = upgrade_input(im, n, 0), *scale = upgrade_input(im, n, 1),
                       *bias = upgrade_input(im, n, 2);
    if (!x || x->rank < 1 || !scale || (!is_computed(scale) && !is_computed(bias)))
        return;
    const int rank = channels ? x->rank : 0;
    const int factor = is_computed(scale) ? n->in[1] : VALUE_NONE,
              addend = bias ? n->in[2] : VALUE_NONE;
    if (factor >= 0)
        node_set_input(&im->g, n, 1, ones(im, factor));
    n->n_in = 2;
    struct node *last = n;
    if (factor >= 0 && (last = upgrade_after(im, last, 0, "Mul")))
        node_set_input(&im->g, last, 1, over_dims(im, n, factor, rank));
    if (addend >= 0 && last && (last = upgrade_after(im, last, 0, "Add")))
        node_set_input(&im->g, last, 1, over_dims(im, n, addend, rank));
}

/* ---- convolutions --------------------------------------------------------------------
 */

struct windows {
    int64_t batch, in, out, group, taps; /* taps: of a window of one channel */
    int rank;
    const int64_t *kernel;
};

/* False: the shapes do not fit, and whoever maps the node says so. */
static bool read_windows(const struct import *im, const struct node *n, bool turned,
                         struct windows *w)
{
    const struct value *x = upgrade_input(im, n, 0), *weight = upgrade_input(im, n, 1);
    if (!is_computed(weight) || !x || x->rank < 3 || x->rank > 5 ||
        weight->rank != x->rank || graph_is_real(x->dtype) == false)
        return false;
    *w = (struct windows){.batch = x->dims[0],
                          .in = x->dims[1],
                          .group = node_integer(n, "group", 1),
                          .taps = 1,
                          .rank = x->rank,
                          .kernel = weight->dims + 2};
    for (int d = 2; d < x->rank; d++)
        w->taps *= weight->dims[d];
    w->out = turned ? weight->dims[1] * w->group : weight->dims[0];
    const int64_t joined = turned ? weight->dims[0] : weight->dims[1] * w->group;
    return w->group > 0 && w->taps > 0 && w->in > 0 && w->out > 0 && joined == w->in &&
           w->in % w->group == 0 && w->out % w->group == 0;
}

/* Filters of one element each: as many as a window has, for each of the channels. */
static int single_taps(struct import *im, const struct node *n, const struct windows *w,
                       int64_t channels, int dtype)
{
    int64_t dims[STRATA_MAX_RANK] = {channels * w->taps, 1}, count;
    if (__builtin_mul_overflow(channels * w->taps, w->taps, &count) || count > INT32_MAX)
        return VALUE_NONE;
    double *v = arena_get(&im->g.arena, (size_t)count, sizeof *v);
    for (int64_t i = 0; v && i < channels * w->taps; i++)
        v[i * w->taps + i % w->taps] = 1;
    memcpy(dims + 2, w->kernel, (size_t)(w->rank - 2) * sizeof *dims);
    const int made = v ? upgrade_reals(im, dtype, 1, v, count) : VALUE_NONE;
    struct value *as = graph_value(&im->g, made);
    if (as) {
        as->rank = w->rank;
        memcpy(as->dims, dims, sizeof dims);
    }
    (void)n;
    return made;
}

/* The node's windows on channels that are apart. */
static int move_elements(struct import *im, const struct node *n, int value, int taps,
                         int64_t channels)
{
    struct node *made = upgrade_add(im, n, n->op, (const int[]){value, taps}, 2);
    if (!made)
        return VALUE_NONE;
    made->attributes = n->attributes;
    made->n_attributes = n->n_attributes;
    node_set_integer(&im->g, made, "group", channels);
    return upgrade_value(made);
}

/* n makes the value, plus one number a channel. */
static void end_with(struct import *im, struct node *n, int value, int bias, int rank)
{
    n->attributes = NULL;
    n->n_attributes = 0;
    n->n_in = 0;
    n->op = bias >= 0 ? "Add" : "Identity";
    node_set_input(&im->g, n, 0, value);
    if (bias >= 0)
        node_set_input(&im->g, n, 1, over_dims(im, n, bias, rank));
}

/* Windows as columns, and weights times these. */
static void convolve(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    struct windows w;
    if (!read_windows(im, n, false, &w))
        return;
    const int taps = single_taps(im, n, &w, w.in, g->values[n->in[0]].dtype);
    const int bias = upgrade_input(im, n, 2) ? n->in[2] : VALUE_NONE;
    const int64_t deep = w.in / w.group * w.taps;
    const int64_t rows[] = {w.group, w.out / w.group, deep},
                  columns[] = {w.batch, w.group, deep, -1}, first[] = {w.batch, w.out};
    if (taps < 0)
        return;
    const int all = move_elements(im, n, n->in[0], taps, w.in);
    const int weight = upgrade_reshape(im, n, n->in[1], 3, rows);
    const int column = upgrade_reshape(im, n, all, 4, columns);
    struct node *space = upgrade_add(im, n, "Shape", &all, 1);
    node_set_integer(g, space, "start", 2);
    const int parts[] = {graph_add_integers(g, 1, first, 2), upgrade_value(space)};
    struct node *dims = upgrade_add(im, n, "Concat", parts, 2);
    node_set_integer(g, dims, "axis", 0);
    const int product = upgrade_two(im, n, "MatMul", weight, column);
    end_with(im, n, upgrade_two(im, n, "Reshape", product, upgrade_value(dims)), bias,
             w.rank);
}

/* Weights times each element, and what that gives added up where windows overlap. */
static void convolve_back(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    struct windows w;
    if (!read_windows(im, n, true, &w))
        return;
    const struct value x = g->values[n->in[0]];
    const int taps = single_taps(im, n, &w, w.out, x.dtype);
    const int bias = upgrade_input(im, n, 2) ? n->in[2] : VALUE_NONE;
    const int64_t each = w.in / w.group, wide = w.out / w.group * w.taps,
                  order[] = {0, 2, 1};
    const int64_t rows[] = {w.group, each, wide},
                  columns[] = {w.batch, w.group, each, -1};
    int64_t dims[STRATA_MAX_RANK];
    if (taps < 0)
        return;
    const int weight = upgrade_reshape(im, n, n->in[1], 3, rows);
    struct node *turned = upgrade_add(im, n, "Transpose", &weight, 1);
    node_set_integers(g, turned, "perm", order, 3);
    const int column = upgrade_reshape(im, n, n->in[0], 4, columns);
    const int product = upgrade_two(im, n, "MatMul", upgrade_value(turned), column);
    memcpy(dims, x.dims, sizeof dims);
    dims[1] = w.out * w.taps;
    const int all = upgrade_reshape(im, n, product, x.rank, dims);
    end_with(im, n, move_elements(im, n, all, taps, w.out), bias, w.rank);
}

static const struct {
    const char *op;
    void (*apply)(struct import *im, struct node *n);
} rows[] = {
    {"InstanceNormalization", norm},
    {"GroupNormalization", norm},
    {"LayerNormalization", norm},
    {"RMSNormalization", norm},
    {"Conv", convolve},
    {"ConvTranspose", convolve_back},
};

void upgrade_computed(struct import *im, struct node *n)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rows); i++)
        if (strcmp(rows[i].op, n->op) == 0) {
            rows[i].apply(im, n);
            return;
        }
}
