/* SPDX-License-Identifier: Apache-2.0
 *
 * How large a computed number can be, by what it is computed of: boxes are clipped to
 * the image, so their heights are at most its.
 * Recursion from a value to those it is computed of, as deep as RANGE_DEPTH; for dense.c,
 * and part of its mutual recursion.
 */
#include "network/import/rounds/rounds.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

#define RANGE_DEPTH 256

struct range {
    double low, high;
};

/* What was found, by value. */
struct known {
    struct range *ranges;
    bool *is;
};

static const struct range any = {-INFINITY, INFINITY};

static struct range join(struct range a, struct range b)
{
    return (struct range){fmin(a.low, b.low), fmax(a.high, b.high)};
}

static struct range range_of(const struct import *im, int value, int depth,
                             struct known *known);

static struct range of_constant(const struct value *v)
{
    struct range r = {INFINITY, -INFINITY};
    const bool real = graph_is_real(v->dtype);
    for (int64_t i = 0; i < value_count(v); i++) {
        const double x = real ? value_real(v, i) : (double)value_integer(v, i);
        r = isnan(x) ? any : join(r, (struct range){x, x});
    }
    return r;
}

/* Of the inputs from `first` on that there are. */
static struct range of_all(const struct import *im, const struct node *n, int first,
                           int depth, struct known *known)
{
    struct range r = {INFINITY, -INFINITY};
    for (int i = first; i < n->n_in; i++)
        if (n->in[i] >= 0)
            r = join(r, range_of(im, n->in[i], depth, known));
    return r;
}

/* Element i of lists that are joined, where a Gather takes one. */
static struct range of_gather(const struct import *im, const struct node *n, int depth,
                              struct known *known)
{
    const struct value *x = graph_value(&im->g, n->in[0]),
                       *index = graph_value(&im->g, n->in[1]);
    const struct node *from = x->node;
    const int64_t axis = rounds_axis_of(n, x->rank, 0);
    const bool one = index && index->constant && value_count(index) == 1 && from &&
                     strcmp(from->op, "Concat") == 0 &&
                     rounds_axis_of(from, x->rank, 0) == axis;
    int64_t at = one ? value_integer(index, 0) : 0;
    at += at < 0 && axis >= 0 && axis < x->rank ? x->dims[axis] : 0;
    for (int i = 0; one && axis >= 0 && axis < x->rank && i < from->n_in; i++) {
        const struct value *part = graph_value(&im->g, from->in[i]);
        if (!part || part->rank != x->rank)
            break;
        if (at < part->dims[axis])
            return range_of(im, from->in[i], depth, known);
        at -= part->dims[axis];
    }
    return range_of(im, n->in[0], depth, known);
}

static struct range of_clip(const struct import *im, const struct node *n, int depth,
                            struct known *known)
{
    struct range r = range_of(im, n->in[0], depth, known);
    for (int i = 1; i < n->n_in && i < 3; i++) {
        const struct range to = n->in[i] < 0 ? any : range_of(im, n->in[i], depth, known);
        if (n->in[i] >= 0 && i == 1)
            r = (struct range){fmax(r.low, to.low), fmax(r.high, to.high)};
        else if (n->in[i] >= 0)
            r = (struct range){fmin(r.low, to.low), fmin(r.high, to.high)};
    }
    return r;
}

static struct range of_extremes(const struct import *im, const struct node *n, int depth,
                                struct known *known)
{
    struct range r = range_of(im, n->in[0], depth, known);
    for (int i = 1; i < n->n_in; i++) {
        const struct range b = range_of(im, n->in[i], depth, known);
        r = strcmp(n->op, "Max") == 0
                ? (struct range){fmax(r.low, b.low), fmax(r.high, b.high)}
                : (struct range){fmin(r.low, b.low), fmin(r.high, b.high)};
    }
    return r;
}

static struct range of_sum(const struct import *im, const struct node *n, int depth,
                           struct known *known)
{
    const struct range a = range_of(im, n->in[0], depth, known),
                       b = range_of(im, n->in[1], depth, known);
    return strcmp(n->op, "Sub") == 0 ? (struct range){a.low - b.high, a.high - b.low}
                                     : (struct range){a.low + b.low, a.high + b.high};
}

/* Of numbers from 0 on alone. */
static struct range of_product(const struct import *im, const struct node *n, int depth,
                               struct known *known)
{
    const struct range a = range_of(im, n->in[0], depth, known),
                       b = range_of(im, n->in[1], depth, known);
    const bool divides = strcmp(n->op, "Div") == 0;
    if (a.low < 0 || b.low < 0 || (divides && b.low <= 0))
        return any;
    return divides ? (struct range){0, a.high / b.low}
                   : (struct range){0, a.high * b.high};
}

static struct range of_first(const struct import *im, const struct node *n, int depth,
                             struct known *known)
{
    return range_of(im, n->in[0], depth, known);
}

static struct range of_chosen(const struct import *im, const struct node *n, int depth,
                              struct known *known)
{
    return of_all(im, n, strcmp(n->op, "Where") == 0, depth, known);
}

/* To whole numbers. */
static struct range of_rounded(const struct import *im, const struct node *n, int depth,
                               struct known *known)
{
    const struct range r = range_of(im, n->in[0], depth, known);
    return (struct range){floor(r.low), ceil(r.high)};
}

/* Other types have no room for all numbers, and truth is 0 or 1. */
static struct range of_cast(const struct import *im, const struct node *n, int depth,
                            struct known *known)
{
    const struct range r = of_rounded(im, n, depth, known);
    const bool held = r.low >= INT32_MIN && r.high <= INT32_MAX;
    switch ((enum onnx_type)node_integer(n, "to", ONNX_UNDEFINED)) {
    case ONNX_FLOAT:
    case ONNX_DOUBLE:
        return r;
    case ONNX_INT32:
    case ONNX_INT64:
        return held ? r : any;
    case ONNX_BOOL:
        return (struct range){0, 1};
    default:
        return any;
    }
}

static const struct {
    const char *op;
    struct range (*of)(const struct import *im, const struct node *n, int depth,
                       struct known *known);
} ranges[] = {
    {"Identity", of_first},  {"Reshape", of_first},
    {"Squeeze", of_first},   {"Unsqueeze", of_first},
    {"Flatten", of_first},   {"Transpose", of_first},
    {"Expand", of_first},    {"Slice", of_first},
    {"GatherND", of_first},  {"GatherElements", of_first},
    {"Split", of_first},     {"Compress", of_first},
    {"ReduceMax", of_first}, {"ReduceMin", of_first},
    {"Gather", of_gather},   {"Concat", of_chosen},
    {"Where", of_chosen},    {"Cast", of_cast},
    {"Ceil", of_rounded},    {"Floor", of_rounded},
    {"Round", of_rounded},   {"Clip", of_clip},
    {"Max", of_extremes},    {"Min", of_extremes},
    {"Add", of_sum},         {"Sub", of_sum},
    {"Mul", of_product},     {"Div", of_product},
};

static struct range find(const struct import *im, int value, int depth,
                         struct known *known)
{
    const struct value *v = graph_value(&im->g, value);
    if (v->constant)
        return of_constant(v);
    const struct node *n = v->node;
    for (size_t i = 0; n && n->n_in > 0 && !*n->domain && i < ARRAY_LENGTH(ranges); i++)
        if (strcmp(ranges[i].op, n->op) == 0)
            return ranges[i].of(im, n, depth - 1, known);
    return any;
}

static struct range range_of(const struct import *im, int value, int depth,
                             struct known *known)
{
    if (!graph_value(&im->g, value) || depth == 0)
        return any;
    if (!known->is[value]) {
        known->is[value] = true;
        known->ranges[value] = any; /* a circle is refused elsewhere */
        const struct range r = find(im, value, depth, known);
        if (!isnan(r.low) && !isnan(r.high)) /* as infinity times 0 is */
            known->ranges[value] = r;
    }
    return known->ranges[value];
}

double rounds_most(struct import *im, int value)
{
    const size_t n = (size_t)im->g.n_values;
    struct known known = {arena_get(&im->g.arena, n, sizeof(struct range)),
                          arena_get(&im->g.arena, n, sizeof(bool))};
    if (!known.ranges || !known.is)
        return INFINITY;
    return range_of(im, value, RANGE_DEPTH, &known).high;
}
