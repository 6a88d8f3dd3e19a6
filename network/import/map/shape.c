/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that move elements: other dims, another order, pieces and copies.
 */
#include <string.h>

#include "core/alloc.h"
#include "network/import/map/compose.h"

static int64_t product(const int64_t *v, int n)
{
    int64_t all = 1;
    for (int i = 0; i < n; i++)
        all *= v[i];
    return all;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* ---- the same elements ---------------------------------------------------------------
 */

static void make_identity(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (x && x->constant)
        map_is_constant(m, 0, x->dtype, x->rank, x->dims, x->data);
    else if (x)
        map_is(m, 0, m->node->in[0]);
}

static void make_dropout(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *ratio = map_input(m, 1);
    const struct value *training = map_constant(m, 2, "training_mode");
    if (training && value_integer(training, 0))
        ratio = map_constant(m, 1, "ratio");
    if (training && value_integer(training, 0) && (!ratio || value_real(ratio, 0) != 0))
        map_refuse(m, "it drops elements at random, as in training; export the model for "
                      "inference");
    if (m->refused || !x)
        return;
    make_identity(m);
    if (!map_has_output(m, 1))
        return;
    char *mask = compose_room(m, 1, x->dims, x->rank);
    if (mask)
        memset(mask, 1, (size_t)value_count(x));
    map_is_constant(m, 1, STRATA_BOOL8, x->rank, x->dims, mask);
}

/* Dims that `shape` asks for: 0 is the input's, unless `as_is`, and -1 what is left. */
static bool resolve_shape(const struct value *x, int64_t *dims, int n, bool as_is)
{
    int64_t rest = 1;
    int inferred = -1;
    for (int d = 0; d < n; d++) {
        if (dims[d] == 0 && !as_is && d < x->rank)
            dims[d] = x->dims[d];
        if (dims[d] == -1)
            inferred = d;
        else if (dims[d] < 0 || __builtin_mul_overflow(rest, dims[d], &rest))
            return false;
    }
    if (inferred >= 0)
        dims[inferred] = rest ? value_count(x) / rest : 0;
    return inferred >= 0 ? rest * dims[inferred] == value_count(x)
                         : rest == value_count(x);
}

static void make_reshape(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    int64_t shape[STRATA_MAX_RANK], dims[STRATA_MAX_RANK];
    const int n = map_integers(m, "shape", 1, shape);
    const bool as_is = node_integer(m->node, "allowzero", 0) != 0;
    if (m->refused || !x || n < 0)
        return;
    memcpy(dims, shape, sizeof dims);
    if (!resolve_shape(x, dims, n, as_is)) {
        map_refuse(m, "'shape' does not hold the input's %lld elements",
                   (long long)value_count(x));
        return;
    }
    map_reshape(m, m->node->in[0], 0, n, dims);
    if (m->s && strcmp(m->s->type, "Shuffle") == 0 && n &&
        !as_is) /* as the model says it, which may hold for other batches */
        section_integers(m->g, m->s, "shape", shape, n);
}

static void make_flat(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (!x)
        return;
    const int64_t axis = node_integer(m->node, "axis", 1);
    const int at = (int)(axis == x->rank ? axis : map_axis(m, axis, x->rank));
    if (!m->refused)
        map_reshape(
            m, m->node->in[0], 0, 2,
            (const int64_t[]){product(x->dims, at), product(x->dims + at, x->rank - at)});
}

/* Which of `rank` dims are listed in input 1; false: the list is none. */
static bool read_axes(struct mapping *m, int rank, bool listed[STRATA_MAX_RANK])
{
    int64_t axes[STRATA_MAX_RANK];
    const int n = map_integers(m, "axes", 1, axes);
    memset(listed, 0, STRATA_MAX_RANK * sizeof *listed);
    for (int i = 0; i < n && !m->refused; i++)
        listed[map_axis(m, axes[i], rank)] = true;
    return n >= 0;
}

static void make_squeezed(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    bool gone[STRATA_MAX_RANK];
    int64_t dims[STRATA_MAX_RANK];
    int n = 0;
    if (!x)
        return;
    const bool given = read_axes(m, x->rank, gone);
    for (int d = 0; d < x->rank; d++) {
        if (gone[d] && x->dims[d] != 1)
            map_refuse(m, "dim %d is %lld; only a dim of 1 can be left out", d,
                       (long long)x->dims[d]);
        if (given ? !gone[d] : x->dims[d] != 1)
            dims[n++] = x->dims[d];
    }
    if (!m->refused)
        map_reshape(m, m->node->in[0], 0, n, dims);
}

static void make_unsqueezed(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *axes = map_constant(m, 1, "axes");
    bool added[STRATA_MAX_RANK];
    int64_t dims[STRATA_MAX_RANK];
    if (!x || !axes)
        return;
    const int64_t rank = x->rank + value_count(axes);
    if (rank > STRATA_MAX_RANK) {
        map_refuse(m, "the result has a rank of %lld; there are at most %d dims",
                   (long long)rank, STRATA_MAX_RANK);
        return;
    }
    read_axes(m, (int)rank, added);
    for (int d = 0, from = 0; d < rank; d++)
        dims[d] = added[d] || from >= x->rank ? 1 : x->dims[from++];
    if (!m->refused)
        map_reshape(m, m->node->in[0], 0, (int)rank, dims);
}

/* ---- another order -------------------------------------------------------------------
 */

static void make_transposed(struct mapping *m)
{
    const int rank = map_input_rank(m, 0);
    int64_t order[STRATA_MAX_RANK];
    const int n = map_integers(m, "perm", -1, order);
    if (n < 0)
        for (int d = 0; d < rank; d++)
            order[d] = rank - 1 - d;
    else if (n != rank)
        map_refuse(m, "'perm' has %d numbers; the input has a rank of %d", n, rank);
    bool same = true;
    for (int d = 0; d < rank; d++)
        same &= order[d] == d;
    if (m->refused)
        return;
    if (same) {
        make_identity(m);
        return;
    }
    map_section(m, "Shuffle");
    map_in(m, 0);
    map_out(m, 0);
    section_integers(m->g, m->s, "first", order, rank);
}

/* Channels to blocks of space, or back: a reshape to six dims whose order changes. */
static void make_blocks(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const bool to_space = strcmp(m->node->op, "DepthToSpace") == 0;
    const bool columns = strcmp(node_text(m->node, "mode", "DCR"), "CRD") == 0;
    const int64_t b = node_integer(m->node, "blocksize", 0);
    if (!x || x->rank != 4 || b < 1 || b > INT16_MAX || x->dims[to_space ? 1 : 2] % b ||
        (!to_space && x->dims[3] % b)) {
        map_refuse(m, "blocks of %lld do not divide an input of rank %d", (long long)b,
                   map_input_rank(m, 0));
        return;
    }
    const int64_t *d = x->dims, c = to_space ? d[1] / b / b : d[1];
    const int64_t apart[3][6] = {{0, b, b, c, d[2], d[3]},
                                 {0, c, b, b, d[2], d[3]},
                                 {0, c, d[2] / b, b, d[3] / b, b}};
    static const int64_t orders[3][6] = {
        {0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}, {0, 3, 5, 1, 2, 4}};
    const int form = !to_space ? 2 : columns ? 1 : 0;
    const int between = map_between(m);
    map_section(m, "Shuffle");
    map_in(m, 0);
    section_out(m->g, m->s, between);
    section_integers(m->g, m->s, "shape", apart[form], 6);
    section_integers(m->g, m->s, "second", orders[form], 6);
    map_reshape(m, between, 0, 4,
                to_space ? (const int64_t[]){d[0], c, d[2] * b, d[3] * b}
                         : (const int64_t[]){d[0], c * b * b, d[2] / b, d[3] / b});
}

/* ---- pieces --------------------------------------------------------------------------
 */

/* Elements [begin, end) of an axis as output i; none: a constant. */
static void cut(struct mapping *m, int i, int64_t axis, int64_t begin, int64_t end)
{
    const struct value *x = map_input(m, 0);
    int64_t dims[STRATA_MAX_RANK];
    memcpy(dims, x->dims, sizeof dims);
    if (begin == end) {
        dims[axis] = 0;
        map_is_constant(m, i, x->dtype, x->rank, dims, NULL);
        return;
    }
    map_section(m, "Slice");
    map_in(m, 0);
    map_out(m, i);
    section_integer(m->g, m->s, "axes", axis);
    section_integer(m->g, m->s, "begin", begin);
    section_integer(m->g, m->s, "end", end);
}

/* Sizes of the parts; false after refusing. */
static bool read_parts(struct mapping *m, int64_t dim, int64_t *parts)
{
    const struct value *given = map_constant(m, 1, "split");
    const int n = m->node->n_out;
    const int64_t each = (dim + n - 1) / n;
    int64_t sum = 0;
    if (m->refused)
        return false;
    if (given && value_count(given) != n) {
        map_refuse(m, "'split' has %lld sizes for %d outputs",
                   (long long)value_count(given), n);
        return false;
    }
    for (int i = 0; i < n; i++) {
        parts[i] = given ? value_integer(given, i) : clamp(dim - sum, 0, each);
        if (parts[i] < 0 || parts[i] > dim - sum) {
            map_refuse(m, "'split' holds %lld where %lld of the dim are left",
                       (long long)parts[i], (long long)(dim - sum));
            return false;
        }
        sum += parts[i];
    }
    if (sum != dim)
        map_refuse(m, "'split' adds up to %lld, the dim is %lld", (long long)sum,
                   (long long)dim);
    return !m->refused;
}

static void make_parts(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    const int n = m->node->n_out;
    int64_t *parts = arena_get(&m->g->arena, (size_t)n, sizeof *parts), begin = 0;
    if (!x || !parts)
        return;
    const int64_t axis =
        map_axis(m, node_integer(m->node, "axis", 0), map_input_rank(m, 0));
    if (m->refused || !read_parts(m, x->dims[axis], parts))
        return;
    bool empty = value_count(x) == 0, equal = true;
    for (int i = 0; i < n; i++) {
        empty |= parts[i] == 0;
        equal &= parts[i] == parts[0];
    }
    for (int i = 0; empty && i < n; begin += parts[i++])
        cut(m, i, axis, begin, begin + parts[i]);
    if (empty)
        return;
    map_section(m, "Slice");
    map_in(m, 0);
    for (int i = 0; i < n; i++)
        map_out(m, i);
    section_integer(m->g, m->s, "axis", axis);
    if (equal)
        section_integer(m->g, m->s, "parts", n);
    else
        section_integers(m->g, m->s, "split", parts, n);
}

/* A range of a dim within its bounds: what an end beyond them means is the same for all
 * dims. */
static void read_range(int64_t dim, int64_t step, int64_t *begin, int64_t *end)
{
    *begin += *begin < 0 ? dim : 0;
    *end += *end < 0 ? dim : 0;
    *begin = step > 0 ? clamp(*begin, 0, dim) : clamp(*begin, 0, dim - 1);
    *end = step > 0 ? clamp(*end, 0, dim) : clamp(*end, -1, dim - 1);
    if (step < 0 && *end < 0)
        *end = -dim - 1;
}

static void make_slice(struct mapping *m)
{
    static const char *const names[] = {"starts", "ends", "axes", "steps"};
    const struct value *x = map_input(m, 0);
    int64_t v[4][STRATA_MAX_RANK];
    int n[4], kept = 0;
    for (int i = 0; i < 4; i++)
        n[i] = map_integers(m, names[i], i + 1, v[i]);
    if (m->refused || !x)
        return;
    for (int i = 1; i < 4; i++)
        if (n[i] != n[0] && (i == 1 || n[i] >= 0)) {
            map_refuse(m, "'%s' has %d numbers, 'starts' %d", names[i], n[i], n[0]);
            return;
        }
    for (int i = 0; i < n[0]; i++) {
        const int64_t axis = map_axis(m, n[2] < 0 ? i : v[2][i], x->rank);
        const int64_t step = n[3] < 0 ? 1 : clamp(v[3][i], -INT32_MAX, INT32_MAX);
        int64_t begin = v[0][i], end = v[1][i];
        if (m->refused)
            return;
        read_range(x->dims[axis], step, &begin, &end);
        if (begin == 0 && end == x->dims[axis] && step == 1)
            continue;
        v[0][kept] = begin;
        v[1][kept] = end;
        v[2][kept] = axis;
        v[3][kept++] = step;
    }
    if (kept == 0) {
        make_identity(m);
        return;
    }
    map_section(m, "Slice");
    map_in(m, 0);
    map_out(m, 0);
    section_integers(m->g, m->s, "axes", v[2], kept);
    section_integers(m->g, m->s, "begin", v[0], kept);
    section_integers(m->g, m->s, "end", v[1], kept);
    for (int i = 0; i < kept; i++)
        if (v[3][i] != 1) {
            section_integers(m->g, m->s, "step", v[3], kept);
            break;
        }
}

static void finish_joined(struct mapping *m)
{
    if (m->node->n_in == 1)
        map_become(m, "Identity");
}

/* ---- more of them --------------------------------------------------------------------
 */

static void add_pads(struct mapping *m, const int64_t *begin, const int64_t *end, int n)
{
    map_section(m, "Padding");
    map_in(m, 0);
    map_out(m, 0);
    section_integers(m->g, m->s, "begin", begin, n);
    section_integers(m->g, m->s, "end", end, n);
}

static void make_padded(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *pads = map_constant(m, 1, "pads");
    const struct value *fill = map_constant(m, 2, "constant_value");
    int64_t axes[STRATA_MAX_RANK], begin[STRATA_MAX_RANK] = {0},
                                   end[STRATA_MAX_RANK] = {0};
    int n = map_integers(m, "axes", 3, axes);
    if (m->refused || !x || !pads)
        return;
    for (int d = 0; n < 0 && d < x->rank; d++)
        axes[d] = d;
    n = n < 0 ? x->rank : n;
    if (value_count(pads) != 2 * n) {
        map_refuse(m, "'pads' has %lld numbers; %d dims need %d",
                   (long long)value_count(pads), n, 2 * n);
        return;
    }
    for (int i = 0; i < n; i++) {
        const int64_t axis = map_axis(m, axes[i], x->rank);
        begin[axis] = value_integer(pads, i);
        end[axis] = value_integer(pads, i + n);
    }
    if (m->refused)
        return;
    add_pads(m, begin, end, x->rank);
    section_word(m->g, m->s, "mode", node_text(m->node, "mode", "constant"));
    if (fill && value_count(fill) && value_real(fill, 0) != 0)
        section_real(m->g, m->s, "value", value_real(fill, 0));
}

/* What is missing is added, what is too much is taken away, on both sides. */
static void make_centered(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    int64_t axes[STRATA_MAX_RANK], size[STRATA_MAX_RANK];
    int64_t begin[STRATA_MAX_RANK] = {0}, end[STRATA_MAX_RANK] = {0};
    const int n = map_integers(m, "shape", 1, size);
    const int listed = map_integers(m, "axes", -1, axes);
    if (!m->refused && x && n != (listed < 0 ? x->rank : listed))
        map_refuse(m, "'shape' has %d numbers for %d dims", n,
                   listed < 0 ? x->rank : listed);
    for (int i = 0; x && i < n && compose_fits(m, "shape", size, n, 0); i++) {
        const int64_t axis = map_axis(m, listed < 0 ? i : axes[i], x->rank);
        const int64_t more = size[i] - x->dims[axis];
        begin[axis] = more > 0 ? more / 2 : -(-more / 2);
        end[axis] = more - begin[axis];
    }
    if (!m->refused && x)
        add_pads(m, begin, end, x->rank);
}

static void make_expanded(struct mapping *m)
{
    const bool tile = strcmp(m->node->op, "Tile") == 0;
    const struct value *x = map_input(m, 0);
    int64_t v[STRATA_MAX_RANK];
    const int n = map_integers(m, tile ? "repeats" : "shape", 1, v);
    if (m->refused || !x)
        return;
    bool same = tile || n <= x->rank;
    for (int i = 0; i < n; i++)
        same &= v[i] == 1 || (!tile && same && v[i] == x->dims[x->rank - n + i]);
    if (same) {
        make_identity(m);
        return;
    }
    map_section(m, "Expand");
    map_in(m, 0);
    map_out(m, 0);
    section_integers(m->g, m->s, tile ? "repeats" : "shape", v, n);
}

#define ROW(op_, function)                                                               \
    {                                                                                    \
        .op = op_, .finish = function                                                    \
    }

static const struct map_rule rules[] = {
    ROW("Identity", make_identity),
    {.op = "Dropout", .finish = make_dropout, .note = "as in inference"},
    ROW("Reshape", make_reshape),
    ROW("Flatten", make_flat),
    ROW("Squeeze", make_squeezed),
    ROW("Unsqueeze", make_unsqueezed),
    ROW("Transpose", make_transposed),
    ROW("DepthToSpace", make_blocks),
    ROW("SpaceToDepth", make_blocks),
    ROW("Split", make_parts),
    ROW("Slice", make_slice),
    {.op = "Concat",
     .layer = "Concatenation",
     .ports = "x+",
     .names = "axis=axis",
     .finish = finish_joined},
    ROW("Pad", make_padded),
    ROW("CenterCropPad", make_centered),
    ROW("Expand", make_expanded),
    ROW("Tile", make_expanded),
    {.op = "Trilu", .layer = "Triangle", .ports = "x-", .names = "upper=upper?,#1=k"},
};

const struct map_table map_shape = {"Shapes", rules, ARRAY_LENGTH(rules)};
