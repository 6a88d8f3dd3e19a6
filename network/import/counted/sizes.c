/* SPDX-License-Identifier: Apache-2.0
 *
 * Sizes that hang on how many rows there are: dims of counted values, and what is
 * computed of them. The operators that compute them run with the network; here they are
 * folded beside it for no rows and for as many as there may be, which bounds each size,
 * and for marks in place of the sizes, which tells where operators only move them.
 * Bounds are folded as they are made: part of the mutual recursion of counted.c.
 */
#include "network/import/counted/counted.h"

#include <string.h>

#include "core/alloc.h"
#include "network/import/map.h"

#define SIZES 64                  /* elements of a tensor of sizes, at most */
#define LABELS (INT64_C(1) << 28) /* the first mark */

/* ---- what a size is ------------------------------------------------------------------
 */

static int64_t label(int value, int64_t i)
{
    return LABELS + (int64_t)value * SIZES + i;
}

void counted_bound(struct import *im, int value, int rank, int64_t n,
                   const int64_t *const bounds[BOUNDS])
{
    const struct counted *c = graph_value(&im->g, value)->counted;
    counted_tell(im, value, c ? c->rows : VALUE_NONE, c ? c->axis : 0);
    for (int k = 0; k < BOUNDS; k++) {
        const int made = graph_add_integers(&im->g, rank, bounds[k], n);
        if (graph_value(&im->g, value)->counted)
            im->g.values[value].counted->bounds[k] = made;
    }
}

void counted_bound_rows(struct import *im, int value, int64_t most)
{
    const int64_t least = 0, own = value < 0 ? 0 : label(value, 0);
    if (value >= 0)
        counted_bound(im, value, 0, 1,
                      (const int64_t *const[BOUNDS]){&least, &most, &own});
}

/* Element i of a bound of a size, or of a constant. */
static int64_t bound_of(const struct import *im, int value, int64_t i, enum bound k)
{
    const struct value *v = graph_value(&im->g, value);
    const struct counted *c = counted_of(im, value);
    if (v && !v->constant)
        v = c ? graph_value(&im->g, c->bounds[k]) : NULL;
    return v && i < value_count(v) ? value_integer(v, i) : 0;
}

int64_t counted_most(const struct import *im, int value, int64_t i)
{
    return bound_of(im, value, i, MOST);
}

int64_t counted_least(const struct import *im, int value, int64_t i)
{
    return bound_of(im, value, i, LEAST);
}

int counted_varying(struct import *im, struct node *n, int value)
{
    const struct counted *c = counted_of(im, value);
    const struct value *most = c ? graph_value(&im->g, c->bounds[MOST]) : NULL;
    int found = -1;
    for (int64_t i = 0; most && i < value_count(most); i++) {
        if (counted_most(im, value, i) == counted_least(im, value, i))
            continue;
        if (found >= 0) {
            import_refuse_node(im, n, NULL,
                               "two dims of a size hang on how many rows values tell (of "
                               "a NonZero or a NonMaxSuppression); one is taken: export "
                               "the network up to there");
            return -1;
        }
        found = (int)i;
    }
    return found;
}

int counted_element(struct import *im, const struct node *n, int value, int64_t i)
{
    struct graph *g = &im->g;
    const int64_t mark = bound_of(im, value, i, LABEL);
    const int64_t least = counted_least(im, value, i), most = counted_most(im, value, i);
    int64_t at = i;
    if (least == most)
        return counted_integer(im, least);
    if (mark >= LABELS && (mark - LABELS) / SIZES < (int64_t)g->n_values) {
        value = (int)((mark - LABELS) / SIZES);
        at = (mark - LABELS) % SIZES;
    }
    const struct value v = g->values[value];
    if (v.rank == 0 && v.dtype == STRATA_INT64)
        return value;
    int flat = value;
    if (v.rank != 1) {
        const int64_t count = value_count(&v);
        flat = counted_reshape(im, n, value, 1, &count);
    }
    int one = counted_two(im, n, "Gather", flat, counted_integer(im, at));
    if (v.dtype != STRATA_INT64)
        one = counted_cast(im, n, one, ONNX_INT64);
    const int64_t own = label(one, 0);
    if (one >= 0)
        counted_bound(im, one, 0, 1, (const int64_t *const[BOUNDS]){&least, &most, &own});
    return one;
}

void counted_settle(struct import *im, struct node *n, int i)
{
    if (i < n->n_in && counted_is_size(im, n->in[i]))
        node_set_input(&im->g, n, i, counted_of(im, n->in[i])->bounds[MOST]);
}

/* ---- sums ----------------------------------------------------------------------------
 */

/* Count how often `rows` is in element i of a size, beside a number; false: there is
 * more in it. A size is what it is moved from, and then what that is computed of. */
static bool count_rows(const struct import *im, int value, int64_t i, int rows, int depth,
                       int64_t *times)
{
    const int64_t mark = bound_of(im, value, i, LABEL);
    int64_t a, b;
    *times = 0;
    if (counted_least(im, value, i) == counted_most(im, value, i))
        return true;
    if (mark >= LABELS && (mark - LABELS) / SIZES < (int64_t)im->g.n_values) {
        value = (int)((mark - LABELS) / SIZES);
        i = (mark - LABELS) % SIZES;
    }
    const struct node *n = im->g.values[value].node;
    if (value == rows) {
        *times = 1;
        return true;
    }
    if (!n || n->n_in != 2 || depth == 0)
        return false;
    const int64_t at_a = value_count(&im->g.values[n->in[0]]) == 1 ? 0 : i,
                  at_b = value_count(&im->g.values[n->in[1]]) == 1 ? 0 : i;
    if (!count_rows(im, n->in[0], at_a, rows, depth - 1, &a) ||
        !count_rows(im, n->in[1], at_b, rows, depth - 1, &b))
        return false;
    if (strcmp(n->op, "Max") == 0) { /* of which one is always the largest */
        const bool first =
            counted_least(im, n->in[0], at_a) >= counted_most(im, n->in[1], at_b);
        *times = first ? a : b;
        return first ||
               counted_least(im, n->in[1], at_b) >= counted_most(im, n->in[0], at_a);
    }
    if (strcmp(n->op, "Mul") == 0 && (a == 0 || b == 0))
        *times =
            a * counted_most(im, n->in[1], at_b) + b * counted_most(im, n->in[0], at_a);
    else
        *times = strcmp(n->op, "Sub") == 0 ? a - b : a + b;
    return strcmp(n->op, "Add") == 0 || strcmp(n->op, "Sub") == 0 ||
           (strcmp(n->op, "Mul") == 0 && (a == 0 || b == 0));
}

bool counted_completes(const struct import *im, int value, int64_t i, int rows)
{
    enum { DEPTH = 8 };
    const struct node *n = graph_value(&im->g, rows)->node;
    int64_t times, own = 1;
    int of = rows;
    if (n && n->n_in == 2 && strcmp(n->op, "Mul") == 0 &&
        im->g.values[n->in[1]].constant) {
        of = n->in[0];
        own = value_integer(&im->g.values[n->in[1]], 0);
    }
    return (count_rows(im, value, i, rows, DEPTH, &times) && times == -1) ||
           (count_rows(im, value, i, of, DEPTH, &times) && times == -own);
}

/* ---- dims ----------------------------------------------------------------------------
 */

/* The dims that Shape tells: [*begin, *end). */
static void told_dims(const struct node *n, int rank, int *begin, int *end)
{
    int64_t b = node_integer(n, "start", 0), e = node_integer(n, "end", rank);
    b += b < 0 ? rank : 0;
    e += e < 0 ? rank : 0;
    *begin = b < 0 ? 0 : b > rank ? rank : (int)b;
    *end = e < *begin ? *begin : e > rank ? rank : (int)e;
}

void counted_shape(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value x = g->values[n->in[0]];
    const int axis = counted_axis(im, n->in[0]);
    int64_t least[STRATA_MAX_RANK], most[STRATA_MAX_RANK], marks[STRATA_MAX_RANK];
    int parts[STRATA_MAX_RANK], begin, end;
    told_dims(n, x.rank, &begin, &end);
    if (axis < begin || axis >= end)
        return;
    g->values[n->in[0]].counted->told = true;
    const int rows = counted_of(im, n->in[0])->rows, count = end - begin;
    for (int d = begin; d < end; d++) {
        const int k = d - begin;
        least[k] = most[k] = marks[k] = x.dims[d];
        parts[k] = graph_add_integers(g, 1, &x.dims[d], 1);
    }
    least[axis - begin] = counted_least(im, rows, 0);
    marks[axis - begin] = bound_of(im, rows, 0, LABEL);
    const int64_t one = 1;
    parts[axis - begin] = counted_reshape(im, n, rows, 1, &one);
    node_remove(n, "start");
    node_remove(n, "end");
    n->n_in = 0;
    n->op = count == 1 ? "Identity" : "Concat";
    for (int k = 0; k < count; k++)
        node_set_input(g, n, k, parts[k]);
    node_set_integer(g, n, "axis", 0);
    n->whole = true;
    counted_bound(im, n->out[0], 1, count,
                  (const int64_t *const[BOUNDS]){least, most, marks});
}

void counted_elements(struct import *im, struct node *n)
{
    const struct value x = im->g.values[n->in[0]];
    const int axis = counted_axis(im, n->in[0]);
    if (axis < 0)
        return;
    im->g.values[n->in[0]].counted->told = true;
    const int64_t most = value_count(&x);
    const int rows = counted_of(im, n->in[0])->rows;
    const int64_t each = x.dims[axis] ? most / x.dims[axis] : 0;
    n->op = "Mul";
    node_set_input(&im->g, n, 0, rows);
    node_set_input(&im->g, n, 1, counted_integer(im, each));
    n->whole = true;
    counted_bound_rows(im, n->out[0], most);
}

/* ---- what is computed ----------------------------------------------------------------
 */

enum monotony {
    NEITHER,
    MOVES, /* elements of its first input, or of all of a Concat */
    RISES, /* with each input */
    FALLS, /* with the second */
    CHOOSES,
    COMPARES,
};

static enum monotony monotony_of(const struct node *n)
{
    static const struct {
        const char *op;
        enum monotony way;
    } all[] = {{"Gather", MOVES},     {"Slice", MOVES},
               {"Concat", MOVES},     {"Unsqueeze", MOVES},
               {"Squeeze", MOVES},    {"Reshape", MOVES},
               {"Transpose", MOVES},  {"Identity", MOVES},
               {"Cast", MOVES},       {"Expand", MOVES},
               {"Flatten", MOVES},    {"Add", RISES},
               {"Mul", RISES},        {"Max", RISES},
               {"Min", RISES},        {"Sum", RISES},
               {"ReduceMax", RISES},  {"ReduceMin", RISES},
               {"ReduceSum", RISES},  {"ReduceProd", RISES},
               {"Floor", RISES},      {"Ceil", RISES},
               {"Clip", RISES},       {"Relu", RISES},
               {"Sub", FALLS},        {"Div", FALLS},
               {"Where", CHOOSES},    {"Equal", COMPARES},
               {"Less", COMPARES},    {"LessOrEqual", COMPARES},
               {"Greater", COMPARES}, {"GreaterOrEqual", COMPARES}};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        if (strcmp(all[i].op, n->op) == 0)
            return all[i].way;
    return NEITHER;
}

/* Whether all that the node reads are sizes and constants, few of them, and where it
 * moves them, what tells where to is constant. */
static bool is_computed(const struct import *im, const struct node *n, enum monotony way)
{
    bool good = way != NEITHER;
    for (int i = 0; good && i < n->n_in; i++) {
        const struct value *v = graph_value(&im->g, n->in[i]);
        const bool size = counted_is_size(im, n->in[i]);
        const bool place = way == MOVES && i > 0 && strcmp(n->op, "Concat") != 0;
        if (!v || (way == CHOOSES && i == 0))
            continue;
        good = (v->constant || (size && !place)) && value_count(v) <= SIZES &&
               (way == MOVES || size || way == COMPARES || !graph_is_real(v->dtype) ||
                v->rank == 0);
        if (good && (strcmp(n->op, "Mul") == 0 || strcmp(n->op, "ReduceProd") == 0))
            for (int64_t k = 0; good && k < value_count(v); k++)
                good = counted_least(im, n->in[i], k) >= 0;
        if (good && strcmp(n->op, "Div") == 0 && i == 1)
            good = v->constant && value_real(v, 0) > 0;
    }
    return good && value_count(&im->g.values[n->out[0]]) <= SIZES;
}

/* The node's output where its inputs are at a bound; VALUE_NONE: it is not constant. */
static int fold_bound(struct import *im, const struct node *n, enum monotony way,
                      enum bound k, strata_error *err, int *status)
{
    struct graph *g = &im->g;
    const size_t first = g->n_nodes;
    int *in = arena_get(&g->arena, (size_t)n->n_in, sizeof *in);
    for (int i = 0; in && i < n->n_in; i++) {
        const enum bound of = way == FALLS && i == 1 ? (k == LEAST ? MOST : LEAST) : k;
        in[i] = counted_is_size(im, n->in[i]) ? counted_of(im, n->in[i])->bounds[of]
                                              : n->in[i];
    }
    const bool open = way == CHOOSES && in && !g->values[in[0]].constant;
    struct node *made = !in    ? NULL
                        : open ? counted_add(im, n, k == LEAST ? "Min" : "Max", in + 1, 2)
                               : counted_add(im, n, n->op, in, n->n_in);
    if (!made)
        return VALUE_NONE;
    made->name = "";
    if (!open) {
        made->attributes = n->attributes;
        made->n_attributes = n->n_attributes;
    }
    const int out = made->out[0];
    *status = import_fold_from(im, first, err);
    return *status == STRATA_OK && g->values[out].constant ? out : VALUE_NONE;
}

/* The result of a comparison of every number of two ranges: 0, 1; -1: it differs. */
static int decide(const char *op, const int64_t a[2], const int64_t b[2])
{
    const bool below = a[1]<b[0], above = a[0]> b[1];
    const bool reaches = a[1] <= b[0], covers = a[0] >= b[1];
    if (strcmp(op, "Equal") == 0)
        return below || above ? 0 : reaches && covers ? 1 : -1;
    if (strcmp(op, "Less") == 0)
        return below ? 1 : covers ? 0 : -1;
    if (strcmp(op, "LessOrEqual") == 0)
        return reaches ? 1 : above ? 0 : -1;
    if (strcmp(op, "Greater") == 0)
        return above ? 1 : reaches ? 0 : -1;
    return covers ? 1 : below ? 0 : -1;
}

/* A comparison that has one result whatever the rows. */
static void compare(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const int64_t of_a = value_count(&g->values[n->in[0]]),
                  of_b = value_count(&g->values[n->in[1]]),
                  count = value_count(&g->values[n->out[0]]);
    uint8_t *flags = arena_get(&g->arena, (size_t)count, sizeof *flags);
    bool known = flags && !graph_is_real(g->values[n->in[0]].dtype) &&
                 (of_a == count || of_a == 1) && (of_b == count || of_b == 1);
    for (int64_t i = 0; known && i < count; i++) {
        const int64_t at_a = of_a == 1 ? 0 : i, at_b = of_b == 1 ? 0 : i;
        const int64_t a[] = {counted_least(im, n->in[0], at_a),
                             counted_most(im, n->in[0], at_a)};
        const int64_t b[] = {counted_least(im, n->in[1], at_b),
                             counted_most(im, n->in[1], at_b)};
        const int found = decide(n->op, a, b);
        known = found >= 0;
        flags[i] = found == 1;
    }
    struct value *v = &g->values[n->out[0]];
    if (!known)
        return;
    v->constant = true;
    v->data = flags;
}

/* Bounds that are the same everywhere make a constant. */
static void take_bounds(struct import *im, int value, const int made[BOUNDS])
{
    struct graph *g = &im->g;
    const struct value least = g->values[made[LEAST]], most = g->values[made[MOST]];
    const int64_t n = value_count(&most);
    bool same = true;
    for (int64_t i = 0; same && i < n; i++)
        same = value_real(&least, i) == value_real(&most, i) &&
               value_integer(&least, i) == value_integer(&most, i);
    if (same) {
        g->values[value].constant = true;
        g->values[value].data = most.data;
        return;
    }
    counted_tell(im, value, VALUE_NONE, 0);
    if (!g->values[value].counted)
        return;
    for (int k = 0; k < BOUNDS; k++)
        g->values[value].counted->bounds[k] = made[k];
}

int counted_compute(struct import *im, struct node *n, strata_error *err)
{
    struct graph *g = &im->g;
    enum monotony way = monotony_of(n);
    if (strcmp(n->op, "Cast") == 0 && graph_is_real(g->values[n->out[0]].dtype))
        way = RISES; /* marks are no numbers of floats */
    int made[BOUNDS], status = STRATA_OK;
    if (g->values[n->out[0]].constant || g->values[n->out[0]].rank < 0 ||
        !is_computed(im, n, way))
        return STRATA_OK;
    if (way == COMPARES) {
        compare(im, n);
        return STRATA_OK;
    }
    const bool moved = way == MOVES || (way == CHOOSES && g->values[n->in[0]].constant);
    for (int k = 0; k < BOUNDS; k++) {
        if (k == LABEL && !moved)
            break;
        made[k] = fold_bound(im, n, way, (enum bound)k, err, &status);
        if (status != STRATA_OK || made[k] < 0)
            return status;
    }
    const int64_t n_out = value_count(&g->values[n->out[0]]);
    int64_t own[SIZES];
    for (int64_t i = 0; i < n_out && !moved; i++) {
        const bool fixed = value_real(&g->values[made[LEAST]], i) ==
                           value_real(&g->values[made[MOST]], i);
        own[i] = fixed ? value_integer(&g->values[made[MOST]], i) : label(n->out[0], i);
    }
    if (!moved)
        made[LABEL] =
            graph_add_integers(g, g->values[n->out[0]].rank ? 1 : 0, own, n_out);
    if (made[LABEL] >= 0)
        take_bounds(im, n->out[0], made);
    return STRATA_OK;
}
