/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose indices choose elements.
 */
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/import/map/compose.h"

/* The slice that a constant scalar chooses. */
static void take_slice(struct mapping *m, int64_t axis, int64_t i, int out)
{
    const struct value *x = map_input(m, 0);
    i += i < 0 ? x->dims[axis] : 0;
    if (i < 0 || i >= x->dims[axis]) {
        map_refuse(m, "index %lld is outside of dim %lld of %lld elements", (long long)i,
                   (long long)axis, (long long)x->dims[axis]);
        return;
    }
    map_section(m, "Slice");
    map_in(m, 0);
    section_out_rank(m->g, m->s, out, x->rank == 1 ? 0 : -1);
    section_integer(m->g, m->s, "axes", axis);
    section_integer(m->g, m->s, "begin", i);
    section_integer(m->g, m->s, "end", i + 1);
}

/* Constant indices lie in their dim; the layer would make zeros of others. */
static void check_indices(struct mapping *m, int64_t dim)
{
    const struct value *index = map_input(m, 1);
    const int64_t n = index->constant ? value_count(index) : 0;
    for (int64_t i = 0; i < n && !m->refused; i++) {
        const int64_t at = value_integer(index, i);
        if (at < -dim || at >= dim)
            map_refuse(m, "index %lld is outside of a dim of %lld elements",
                       (long long)at, (long long)dim);
    }
}

/* Rows of a constant matrix are an Embedding, whose table is no tensor of a run. */
static void gather(struct mapping *m, int64_t axis, int out, int rank)
{
    const struct value *x = map_input(m, 0);
    check_indices(m, x->dims[axis]);
    if (m->refused)
        return;
    const bool table =
        x->constant && x->rank == 2 && axis == 0 && dtype_is_free(x->dtype);
    map_section(m, table ? "Embedding" : "Gather");
    if (table)
        section_weight(m->s, "table", m->node->in[0]);
    else
        map_in(m, 0);
    map_in(m, 1);
    section_out_rank(m->g, m->s, out, rank);
    if (!table)
        section_integer(m->g, m->s, "axis", axis);
}

/* Whether indices are those of all that a dim has, in order: other dims for it, as of an
 * as_strided, or of a matrix whose rows are told by numbers. One index alone may be a
 * first element by intent, of a dim that has more at another size. */
static bool is_all_in_order(const struct value *x, int64_t axis,
                            const struct value *index)
{
    const int64_t n = value_count(index);
    bool all = index->constant && index->rank > 0 && n == x->dims[axis] &&
               (n > 1 || x->rank == 1) && x->rank - 1 + index->rank <= STRATA_MAX_RANK;
    for (int64_t i = 0; all && i < n; i++)
        all = value_integer(index, i) == i;
    return all;
}

/* The dims of a Gather's result. */
static int gathered_dims(const struct value *x, int64_t axis, const struct value *index,
                         int64_t *dims)
{
    int n = 0;
    for (int d = 0; d < x->rank; d++) {
        for (int i = 0; d == axis && i < index->rank; i++)
            dims[n++] = index->dims[i];
        if (d != axis)
            dims[n++] = x->dims[d];
    }
    return n;
}

/* A result without elements is a constant, whatever the indices. */
static bool makes_nothing(struct mapping *m, int rank, const int64_t *dims)
{
    for (int d = 0; d < rank; d++)
        if (dims[d] == 0) {
            map_is_constant(m, 0, map_input(m, 0)->dtype, rank, dims, NULL);
            return true;
        }
    return false;
}

/* A scalar index drops the dim that it is of. */
static void make_gather(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *index = map_input(m, 1);
    int64_t dims[STRATA_MAX_RANK];
    if (!x || !index)
        return;
    const int64_t axis = map_axis(m, node_integer(m->node, "axis", 0), x->rank);
    if (m->refused)
        return;
    if (makes_nothing(m, gathered_dims(x, axis, index, dims), dims))
        return;
    if (is_all_in_order(x, axis, index)) {
        map_reshape(m, m->node->in[0], 0, gathered_dims(x, axis, index, dims), dims);
        return;
    }
    if (index->rank > 0) {
        gather(m, axis, m->node->out[0], -1);
        return;
    }
    const bool last = x->rank == 1;
    const int out = last ? m->node->out[0] : map_between(m);
    if (index->constant)
        take_slice(m, axis, value_integer(index, 0), out);
    else
        gather(m, axis, out, last ? 0 : -1);
    if (!last && !m->refused)
        map_reshape(m, out, 0, gathered_dims(x, axis, index, dims), dims);
}

/* ---- places that a list tells --------------------------------------------------------
 */

static int one_dim(struct mapping *m, const int64_t *v, int64_t n)
{
    return graph_add_integers(m->g, 1, v, n);
}

/* Where a constant condition holds: indices along an axis, or into all elements. */
static void make_compressed(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *condition = map_constant(m, 1, "condition");
    const bool flat = !node_attribute(m->node, "axis");
    if (!x || !condition)
        return;
    const int64_t axis =
        flat ? 0 : map_axis(m, node_integer(m->node, "axis", 0), x->rank);
    const int64_t all = value_count(x), n = value_count(condition);
    int64_t *index = arena_get(&m->g->arena, (size_t)n, sizeof *index), kept = 0;
    int from = m->node->in[0];
    for (int64_t i = 0; index && i < n; i++)
        if (value_integer(condition, i))
            index[kept++] = i;
    if (m->refused || !index)
        return;
    if (flat) {
        from = map_between(m);
        map_section(m, "Shuffle");
        map_in(m, 0);
        section_integers(m->g, m->s, "shape", &all, 1);
        section_out(m->g, m->s, from);
    }
    map_section(m, "Gather");
    section_in(m->g, m->s, from);
    section_in(m->g, m->s, one_dim(m, index, kept));
    map_out(m, 0);
    section_integer(m->g, m->s, "axis", axis);
}

/* Places of elements that are not 0, a column each. */
static void make_places(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (!x || !x->constant) {
        map_refuse(m,
                   "it is of a scalar or of no elements; those of 1 to 8 dims are taken");
        return;
    }
    const int64_t all = value_count(x);
    int64_t n = 0, column = 0;
    for (int64_t i = 0; i < all; i++)
        n += value_real(x, i) != 0;
    int64_t *places = arena_get(&m->g->arena, (size_t)(n * x->rank), sizeof *places);
    for (int64_t i = 0; places && i < all; i++) {
        int64_t rest = i;
        if (value_real(x, i) == 0)
            continue;
        for (int d = x->rank - 1; d >= 0; rest /= x->dims[d--])
            places[d * n + column] = rest % x->dims[d];
        column++;
    }
    map_is_constant(m, 0, STRATA_INT64, 2, (const int64_t[]){x->rank, n}, places);
}

/* ---- one hot -------------------------------------------------------------------------
 */

static void compare(struct mapping *m, int a, int b, int out)
{
    map_section(m, "Compare");
    section_in(m->g, m->s, a);
    section_in(m->g, m->s, b);
    section_out(m->g, m->s, out);
}

/* first, first + 1, ... along one dim of a rank, as the indices' type. */
static int count_up(struct mapping *m, int dtype, int64_t first, int64_t n, int behind)
{
    int64_t dims[STRATA_MAX_RANK] = {n};
    int64_t *v = compose_room(m, sizeof *v, &n, 1);
    void *data = compose_room(m, sizeof *v, &n, 1);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = first + i;
    for (int d = 1; d <= behind; d++)
        dims[d] = 1;
    if (v && data)
        weights_convert(data, dtype, v, WEIGHT_I64, n, NULL);
    return graph_add_constant(m->g, "", dtype, behind + 1, dims, data);
}

/* Element i of the two values as a tensor of one. */
static int pick(struct mapping *m, int64_t i)
{
    const struct value *v = map_input(m, 2);
    const size_t size = weight_dtype_size(weight_dtype_of(v->dtype));
    if (v->constant && value_count(v) > i)
        return graph_add_constant(m->g, "", v->dtype, 0, NULL,
                                  (const char *)v->data + (size_t)i * size);
    const int out = map_between(m);
    map_section(m, "Slice");
    map_in(m, 2);
    section_out(m->g, m->s, out);
    section_integer(m->g, m->s, "axes", 0);
    section_integer(m->g, m->s, "begin", i);
    section_integer(m->g, m->s, "end", i + 1);
    return out;
}

/* Each index compared with all that there are, counted from either end. */
static void make_one_hot(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *depth = map_constant(m, 1, "depth");
    int64_t dims[STRATA_MAX_RANK];
    if (!x || !depth || !map_input(m, 2))
        return;
    const int rank = x->rank + 1, dtype = x->dtype;
    const int64_t n = (int64_t)value_real(depth, 0);
    const int64_t axis = map_axis(m, node_integer(m->node, "axis", -1), rank);
    if (n < 1 || n > INT32_MAX || rank > STRATA_MAX_RANK)
        map_refuse(m, "a depth of %lld in a result of rank %d cannot be", (long long)n,
                   rank);
    if (m->refused)
        return;
    for (int d = 0; d < rank; d++)
        dims[d] = d == axis ? 1 : x->dims[d > axis ? d - 1 : d];
    const int apart = map_between(m), behind = rank - 1 - (int)axis;
    const int from_begin = map_between(m), from_end = map_between(m),
              hot = map_between(m);
    map_section(m, "Shuffle");
    map_in(m, 0);
    section_out(m->g, m->s, apart);
    section_integers(m->g, m->s, "shape", dims, rank);
    compare(m, apart, count_up(m, dtype, 0, n, behind), from_begin);
    compare(m, apart, count_up(m, dtype, -n, n, behind), from_end);
    map_section(m, "ElementWise");
    section_in(m->g, m->s, from_begin);
    section_in(m->g, m->s, from_end);
    section_out(m->g, m->s, hot);
    section_word(m->g, m->s, "op", "or");
    const int on = pick(m, 1), off = pick(m, 0);
    map_section(m, "Select");
    section_in(m->g, m->s, hot);
    section_in(m->g, m->s, on);
    section_in(m->g, m->s, off);
    map_out(m, 0);
}

/* ---- writes into a cache -------------------------------------------------------------
 */

/* Steps 0, 1, ... along one dim of the updates; beside them dims of 1. */
static int count_steps(struct mapping *m, const struct value *update, int64_t axis)
{
    int64_t dims[STRATA_MAX_RANK];
    const int64_t n = update->dims[axis];
    int64_t *v = compose_room(m, sizeof *v, &n, 1);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = i;
    for (int d = 0; d < update->rank; d++)
        dims[d] = d == axis ? n : 1;
    return graph_add_constant(m->g, "", STRATA_INT64, update->rank, dims, v);
}

static int combine(struct mapping *m, const char *op, int a, int b)
{
    const int out = map_between(m);
    map_section(m, "ElementWise");
    section_in(m->g, m->s, a);
    section_in(m->g, m->s, b);
    section_out(m->g, m->s, out);
    section_word(m->g, m->s, "op", op);
    return out;
}

/* A batch's first step, as a tensor that has the updates' rank. */
static int first_steps(struct mapping *m, int64_t batch, int rank)
{
    int64_t dims[STRATA_MAX_RANK] = {batch};
    const int out = map_between(m);
    for (int d = 1; d < rank; d++)
        dims[d] = 1;
    map_section(m, "Shuffle");
    map_in(m, 2);
    section_out(m->g, m->s, out);
    section_integers(m->g, m->s, "shape", dims, rank);
    return out;
}

/* Each update goes to its step, counted from the batch's first one. */
static void make_cached(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *given = map_input(m, 1);
    const bool circular = strcmp(node_text(m->node, "mode", "linear"), "circular") == 0;
    if (!x || !given)
        return;
    const struct value update = *given;
    const int64_t axis = map_axis(m, node_integer(m->node, "axis", -2), x->rank);
    const int64_t length = x->dims[axis];
    if (update.rank != x->rank)
        map_refuse(m, "the updates have a rank of %d, the cache of %d", update.rank,
                   x->rank);
    if (m->refused)
        return;
    int steps = count_steps(m, &update, axis);
    if (map_input(m, 2))
        steps = combine(m, "sum", first_steps(m, update.dims[0], update.rank), steps);
    if (circular)
        steps = combine(m, "mod", steps, graph_add_integers(m->g, 1, &length, 1));
    const int index = map_between(m);
    map_section(m, "Expand");
    section_in(m->g, m->s, steps);
    section_out(m->g, m->s, index);
    section_integers(m->g, m->s, "shape", update.dims, update.rank);
    map_section(m, "Scatter");
    map_in(m, 0);
    section_in(m->g, m->s, index);
    map_in(m, 1);
    map_out(m, 0);
    section_integer(m->g, m->s, "axis", axis);
}

/* ---- the table -----------------------------------------------------------------------
 */

/* Whether indices are all places of the first dims, one after another. One alone may be a
 * first element by intent. */
static bool is_everywhere(const struct value *x, const struct value *index)
{
    const int depth = index->rank > 0 ? (int)index->dims[index->rank - 1] : 0;
    int64_t at[STRATA_MAX_RANK] = {0}, n = 1;
    if (!index->constant || depth < 1 || depth > x->rank)
        return false;
    for (int d = 0; d < depth; d++)
        n *= x->dims[d];
    if (n < 2 || value_count(index) != n * depth)
        return false;
    for (int64_t i = 0; i < n * depth; i += depth) {
        for (int d = 0; d < depth; d++)
            if (value_integer(index, i + d) != at[d])
                return false;
        for (int d = depth; d-- > 0 && ++at[d] == x->dims[d];)
            at[d] = 0;
    }
    return true;
}

/* Constant tuples lie in the dims behind the batch's. */
static void check_tuples(struct mapping *m, int batch_dims)
{
    const struct value *x = map_input(m, 0), *index = map_input(m, 1);
    const int64_t depth = index->dims[index->rank - 1];
    const int64_t n = index->constant ? value_count(index) : 0;
    for (int64_t i = 0; i < n && depth + batch_dims <= x->rank && !m->refused; i++) {
        const int64_t at = value_integer(index, i), dim = x->dims[batch_dims + i % depth];
        if (at < -dim || at >= dim)
            map_refuse(m, "index %lld is outside of a dim of %lld elements",
                       (long long)at, (long long)dim);
    }
}

static bool has_dims_of(const struct value *a, const struct value *b)
{
    bool same = a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

/* A tuple of all dims chooses a scalar. Those of all elements in order are other dims for
 * them, as of a mask that is read by numbers of rows and keys. */
static void finish_tuples(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *index = map_input(m, 1);
    int64_t dims[STRATA_MAX_RANK];
    int rank = 0;
    if (!x || !index || index->rank < 1)
        return;
    check_tuples(m, (int)node_integer(m->node, "batch_dims", 0));
    const int depth = (int)index->dims[index->rank - 1];
    if (index->rank == 1 && depth == x->rank)
        map_rank(m, 0, 0);
    if (node_integer(m->node, "batch_dims", 0) || !is_everywhere(x, index) ||
        index->rank - 1 + x->rank - depth > STRATA_MAX_RANK)
        return;
    for (int d = 0; d < index->rank - 1; d++)
        dims[rank++] = index->dims[d];
    for (int d = depth; d < x->rank; d++)
        dims[rank++] = x->dims[d];
    map_become(m, "Shuffle");
    m->s->n_in = 1;
    section_integers(m->g, m->s, "shape", dims, rank);
}

/* What is written everywhere is the result, as a mask that is set as a whole. */
static void finish_scattered(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *index = map_input(m, 1);
    if (!x || !index || !map_input(m, 2) || !is_everywhere(x, index) ||
        !has_dims_of(map_input(m, 2), x) ||
        strcmp(node_text(m->node, "reduction", "none"), "none") != 0)
        return;
    map_become(m, "Identity");
    m->s->in[0] = m->node->in[2];
    m->s->n_in = 1;
}

static const struct map_rule rules[] = {
    {.op = "Gather", .finish = make_gather},
    {.op = "GatherElements",
     .layer = "Gather",
     .fixed = "mode=elements",
     .ports = "xx",
     .names = "axis=axis"},
    {.op = "GatherND",
     .layer = "Gather",
     .fixed = "mode=nd",
     .ports = "xx",
     .names = "batch_dims=batch_dims",
     .finish = finish_tuples},
    {.op = "ScatterElements",
     .layer = "Scatter",
     .ports = "xxx",
     .names = "axis=axis,reduction=reduction"},
    {.op = "ScatterND",
     .layer = "Scatter",
     .fixed = "mode=nd",
     .ports = "xxx",
     .names = "reduction=reduction",
     .finish = finish_scattered},
    {.op = "TensorScatter", .finish = make_cached},
    {.op = "ReverseSequence",
     .layer = "ReverseSequence",
     .ports = "xx",
     .names = "batch_axis=batch_axis,time_axis=time_axis"},
    {.op = "OneHot", .finish = make_one_hot, .note = "depth must be constant"},
    {.op = "Compress",
     .finish = make_compressed,
     .note = "as many rows as there may be, where the condition is computed"},
    {.op = "NonZero",
     .finish = make_places,
     .note = "as many rows as there may be, of what is computed"},
};

const struct map_table map_index = {"Indices", rules, ARRAY_LENGTH(rules)};
