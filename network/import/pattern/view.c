/* SPDX-License-Identifier: Apache-2.0
 *
 * See view.h. Each operator that moves nothing is a row of a table, and changes a view of
 * its input into one of its output.
 */
#include "network/import/pattern/view.h"

#include <string.h>

#include "core/alloc.h"

#define DEPTH 32 /* operators that are walked back */

static int64_t dim_size(const struct view *v, int d)
{
    int64_t n = 1;
    for (int i = v->first[d]; i < v->first[d + 1]; i++)
        n *= v->factor[i].n;
    return n;
}

/* Make *to from lists of factors, one dim after another. */
static void begin_dims(struct view *to, const struct view *from)
{
    *to = (struct view){.source = from->source, .offset = from->offset};
}

static bool add_dim(struct view *to, const struct view_factor *f, int n)
{
    const int at = to->first[to->rank];
    if (to->rank == STRATA_MAX_RANK || at + n > VIEW_FACTORS)
        return false;
    for (int i = 0; i < n; i++)
        to->factor[at + i] = f[i];
    to->first[++to->rank] = at + n;
    return true;
}

static bool copy_dim(struct view *to, const struct view *from, int d)
{
    return add_dim(to, from->factor + from->first[d],
                   from->first[d + 1] - from->first[d]);
}

/* ---- operators -----------------------------------------------------------------------
 */

/* What an operator makes of *v, as output `port` with these dims. */
typedef bool (*view_step)(const struct graph *g, const struct node *n, int port,
                          const struct value *out, struct view *v);

/* The factors of a dim of n elements, innermost last, from the end of those that are
 * left; how many, or -1. */
static int take_factors(struct view_factor *left, int *n_left, int64_t n,
                        struct view_factor *to, int room)
{
    int count = 0;
    while (n > 1) {
        struct view_factor *last = &left[*n_left - 1];
        if (*n_left == 0 || count == room)
            return -1;
        const int64_t part = n % last->n == 0 ? last->n : n;
        if (last->n % part != 0)
            return -1;
        memmove(to + 1, to, (size_t)count++ * sizeof *to);
        *to = (struct view_factor){part, last->step};
        last->n /= part;
        last->step *= part;
        n /= part;
        *n_left -= last->n == 1;
    }
    return count;
}

static bool step_reshape(const struct graph *g, const struct node *n, int port,
                         const struct value *out, struct view *v)
{
    struct view_factor left[VIEW_FACTORS], dims[STRATA_MAX_RANK][VIEW_FACTORS];
    int counts[STRATA_MAX_RANK], n_left = 0;
    struct view to;
    (void)g;
    (void)n;
    (void)port;
    for (int i = 0; i < v->first[v->rank]; i++)
        if (v->factor[i].n > 1)
            left[n_left++] = v->factor[i];
    for (int d = out->rank - 1; d >= 0; d--) {
        counts[d] = take_factors(left, &n_left, out->dims[d], dims[d], VIEW_FACTORS);
        if (counts[d] < 0)
            return false;
    }
    begin_dims(&to, v);
    for (int d = 0; d < out->rank; d++)
        if (!add_dim(&to, dims[d], counts[d]))
            return false;
    *v = to;
    return n_left == 0;
}

static bool step_transpose(const struct graph *g, const struct node *n, int port,
                           const struct value *out, struct view *v)
{
    int64_t perm[STRATA_MAX_RANK];
    const int64_t given = node_integers(n, "perm", perm, STRATA_MAX_RANK);
    struct view to;
    (void)g;
    (void)port;
    begin_dims(&to, v);
    for (int d = 0; d < out->rank; d++) {
        const int64_t from = given < 0 ? v->rank - 1 - d : perm[d];
        if (from < 0 || from >= v->rank || !copy_dim(&to, v, (int)from))
            return false;
    }
    *v = to;
    return true;
}

/* Dims of 1 that repeat. */
static bool step_expand(const struct graph *g, const struct node *n, int port,
                        const struct value *out, struct view *v)
{
    const int grow = out->rank - v->rank;
    struct view to;
    (void)g;
    (void)n;
    (void)port;
    begin_dims(&to, v);
    for (int d = 0; d < out->rank; d++) {
        const int64_t size = d < grow ? 1 : dim_size(v, d - grow);
        const struct view_factor repeat = {out->dims[d], 0};
        const bool same = d >= grow && size == out->dims[d];
        if (!(same ? copy_dim(&to, v, d - grow) : size == 1 && add_dim(&to, &repeat, 1)))
            return false;
    }
    *v = to;
    return true;
}

/* Elements of the source up to index i of a dim. */
static int64_t distance(const struct view *v, int d, int64_t i)
{
    int64_t at = 0;
    for (int f = v->first[d + 1] - 1; f >= v->first[d]; f--) {
        at += i % v->factor[f].n * v->factor[f].step;
        i /= v->factor[f].n;
    }
    return at;
}

static int axis_of(const struct node *n, const struct view *v, int64_t otherwise)
{
    const int64_t axis = node_integer(n, "axis", otherwise);
    const int64_t at = axis < 0 ? axis + v->rank : axis;
    return at < 0 || at >= v->rank ? -1 : (int)at;
}

/* One index, whose dim goes. */
static bool step_gather(const struct graph *g, const struct node *n, int port,
                        const struct value *out, struct view *v)
{
    const struct value *index = n->n_in > 1 ? graph_value(g, n->in[1]) : NULL;
    const int axis = axis_of(n, v, 0);
    struct view to;
    (void)port;
    (void)out;
    if (!index || !index->constant || index->rank != 0 || axis < 0)
        return false;
    const int64_t size = dim_size(v, axis), given = value_integer(index, 0);
    const int64_t at = given < 0 ? given + size : given;
    if (at < 0 || at >= size)
        return false;
    begin_dims(&to, v);
    to.offset += distance(v, axis, at);
    for (int d = 0; d < v->rank; d++)
        if (d != axis && !copy_dim(&to, v, d))
            return false;
    *v = to;
    return true;
}

/* [begin, begin + size) of a dim that is one factor. */
static bool cut(struct view *v, int d, int64_t begin, int64_t size)
{
    int64_t n, step, repeated;
    struct view to;
    if (!view_dim(v, d, &n, &step, &repeated) || repeated != 1 || begin < 0 ||
        begin + size > n)
        return false;
    const struct view_factor part = {size, step};
    begin_dims(&to, v);
    to.offset += begin * step;
    for (int i = 0; i < v->rank; i++)
        if (!(i == d ? add_dim(&to, &part, 1) : copy_dim(&to, v, i)))
            return false;
    *v = to;
    return true;
}

/* Input i, of integers that are constant; NULL: absent or none. */
static const struct value *numbers(const struct graph *g, const struct node *n, int i)
{
    const struct value *v = i < n->n_in ? graph_value(g, n->in[i]) : NULL;
    return v && v->constant ? v : NULL;
}

static bool step_slice(const struct graph *g, const struct node *n, int port,
                       const struct value *out, struct view *v)
{
    const struct value *begin = numbers(g, n, 1), *axes = numbers(g, n, 3);
    const struct value *step = numbers(g, n, 4);
    (void)port;
    if (!begin || (n->n_in > 3 && n->in[3] >= 0 && !axes) ||
        (n->n_in > 4 && n->in[4] >= 0 && !step))
        return false;
    for (int64_t i = 0; i < value_count(begin); i++) {
        const int64_t given = axes ? value_integer(axes, i) : i;
        const int64_t axis = given < 0 ? given + v->rank : given;
        if (axis < 0 || axis >= v->rank || (step && value_integer(step, i) != 1))
            return false;
        const int64_t size = dim_size(v, (int)axis), at = value_integer(begin, i);
        if (!cut(v, (int)axis, at < 0 ? at + size : at, out->dims[axis]))
            return false;
    }
    return true;
}

static bool step_split(const struct graph *g, const struct node *n, int port,
                       const struct value *out, struct view *v)
{
    const int axis = axis_of(n, v, 0);
    int64_t begin = 0;
    for (int i = 0; i < port && axis >= 0; i++) {
        const struct value *before = graph_value(g, n->out[i]);
        if (!before || before->rank != v->rank)
            return false;
        begin += before->dims[axis];
    }
    return axis >= 0 && cut(v, axis, begin, out->dims[axis]);
}

static const struct {
    const char *op;
    view_step step;
} steps[] = {
    {"Reshape", step_reshape},   {"Flatten", step_reshape},     {"Squeeze", step_reshape},
    {"Unsqueeze", step_reshape}, {"Transpose", step_transpose}, {"Expand", step_expand},
    {"Gather", step_gather},     {"Slice", step_slice},         {"Split", step_split},
};

static view_step find_step(const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LENGTH(steps) && !*n->domain; i++)
        if (strcmp(n->op, steps[i].op) == 0)
            return steps[i].step;
    return NULL;
}

/* ---- all of it -----------------------------------------------------------------------
 */

static void view_itself(const struct value *x, int value, struct view *v)
{
    int64_t step = value_count(x);
    *v = (struct view){.source = value};
    for (int d = 0; d < x->rank; d++) {
        step /= x->dims[d];
        const struct view_factor all = {x->dims[d], step};
        add_dim(v, &all, 1);
    }
}

static int port_of(const struct node *n, int value)
{
    int port = 0;
    while (port < n->n_out && n->out[port] != value)
        port++;
    return port;
}

static void walk_back(const struct graph *g, int value, int depth, struct view *v)
{
    const struct value *x = graph_value(g, value);
    const struct node *n = x->constant ? NULL : x->node;
    const view_step step = n && depth > 0 ? find_step(n) : NULL;
    const struct value *from = step && n->n_in > 0 ? graph_value(g, n->in[0]) : NULL;
    if (from && from->rank >= 0 && value_count(from) > 0) {
        walk_back(g, n->in[0], depth - 1, v);
        if (step(g, n, port_of(n, value), x, v))
            return;
    }
    view_itself(x, value, v);
}

bool view_of(const struct graph *g, int value, struct view *out)
{
    const struct value *x = graph_value(g, value);
    if (!x || x->rank < 0 || value_count(x) < 1)
        return false;
    walk_back(g, value, DEPTH, out);
    return true;
}

bool view_dim(const struct view *v, int d, int64_t *n, int64_t *step, int64_t *repeated)
{
    int end = v->first[d + 1];
    *n = 1;
    *step = 0;
    *repeated = 1;
    for (; end > v->first[d] && v->factor[end - 1].step == 0; end--)
        *repeated *= v->factor[end - 1].n;
    for (int i = end - 1; i >= v->first[d]; i--) {
        if (v->factor[i].n == 1)
            continue;
        if (*n > 1 && v->factor[i].step != *n * *step)
            return false;
        *step = *n > 1 ? *step : v->factor[i].step;
        *n *= v->factor[i].n;
    }
    return true;
}
