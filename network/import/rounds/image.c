/* SPDX-License-Identifier: Apache-2.0
 *
 * Dims whose sizes are computed, each round's its own: resized, cut, laid between zeros;
 * and what they are once they have one size for all rounds.
 * Rows of rounds.c, so part of its mutual recursion.
 */
#include "network/import/rounds/rounds.h"

#include <string.h>

#include "core/alloc.h"
#include "network/import/counted/counted.h"

static int add(struct import *im, const struct node *n, int a, int b)
{
    return rounds_two(im, n, "Add", a, b);
}

static int subtract(struct import *im, const struct node *n, int a, int b)
{
    return rounds_two(im, n, "Sub", a, b);
}

/* v, from 0 to `high`. */
static int within(struct import *im, const struct node *n, int v, int high)
{
    return rounds_two(im, n, "Max", rounds_two(im, n, "Min", v, high),
                      rounds_integer(im, 0));
}

static struct rounds_axis *axis_at(struct rounds_lane *l, int64_t axis)
{
    for (int i = 0; l && i < l->n_axes; i++)
        if (l->axes[i].axis == axis)
            return &l->axes[i];
    return NULL;
}

/* Elements of a list, of a round. */
static int64_t count_of(const struct value *v)
{
    return v->lane ? (v->rank == 2 ? v->dims[1] : -1) : value_count(v);
}

/* ---- resizing ------------------------------------------------------------------------
 */

/* NULL, or what of the node's attributes is not taken. */
static const char *read_kernel(const struct node *n, struct rounds_lane *l)
{
    const char *mode = node_text(n, "mode", "nearest"),
               *from = node_text(n, "coordinate_transformation_mode", "half_pixel");
    const char *policy = node_text(n, "keep_aspect_ratio_policy", "stretch");
    l->kernel = strcmp(mode, "cubic") == 0 ? ROUNDS_CUBIC : ROUNDS_LINEAR;
    l->cubic = node_real(n, "cubic_coeff_a", -0.75);
    l->shifted = strcmp(from, "pytorch_half_pixel") == 0;
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "cubic") != 0)
        return "to a size that is computed it resizes other than linear or cubic,";
    if (!l->shifted && strcmp(from, "half_pixel") != 0)
        return "to a size that is computed it resizes by other than half pixels,";
    if (node_integer(n, "antialias", 0) || node_integer(n, "exclude_outside", 0) ||
        strcmp(policy, "stretch") != 0 || node_attribute(n, "axes"))
        return "it resizes to a size that is computed with other than usual options,";
    return NULL;
}

void rounds_resize(struct import *im, struct node *n)
{
    const struct rounds_lane *x = rounds_lane(im, n->in[0]);
    const struct value *sizes = upgrade_input(im, n, 3), *v = upgrade_input(im, n, 0),
                       *scales = upgrade_input(im, n, 2);
    struct rounds_lane made = x ? *x : (struct rounds_lane){0};
    const char *why = read_kernel(n, &made);
    if (!x || !sizes || x->n_axes || x->zeros || x->state || x->appended ||
        (scales && value_count(scales) > 0) || v->dtype != STRATA_FP32)
        why = "what it resizes is the same in all rounds, or resized already,";
    const int rank = rounds_rank(im, n->in[0]);
    if (!why && count_of(sizes) != rank)
        why = "its sizes are not those of all dims,";
    for (int d = 0; !why && d < rank; d++) {
        const struct rounds_lane *s = rounds_lane(im, n->in[3]);
        const bool known = s ? d < ROUNDS_KNOWN && (s->known >> d & 1) : sizes->constant;
        const int64_t size = !s ? value_integer(sizes, d) : known ? s->element[d] : 0;
        if (known && size == v->dims[d + 1])
            continue;
        if (made.n_axes == 2 || d < rank - 2) {
            why = "it resizes others than the last two dims,";
            break;
        }
        const int own = rounds_element(im, n, n->in[3], d), no = rounds_integer(im, 0);
        made.axes[made.n_axes++] = (struct rounds_axis){.axis = d,
                                                        .of = v->dims[d + 1],
                                                        .size = own,
                                                        .offset = no,
                                                        .low = no,
                                                        .high = own,
                                                        .length = own};
    }
    if (why) {
        rounds_refuse(im, n, why);
        return;
    }
    made.known = 0;
    rounds_become(im, n, n->in[0]);
    rounds_tell_like(im, n->out[0], &made);
}

/* ---- parts ---------------------------------------------------------------------------
 */

/* The place that a Slice's begin or end is, of a dim of that length. */
static int place(struct import *im, const struct node *n, int value, int64_t i,
                 int length)
{
    const struct value *v = graph_value(&im->g, value);
    int own = rounds_element(im, n, value, i);
    if (v->constant && !v->lane) {
        const int64_t at = value_integer(v, i);
        if (at == 0)
            return own;
        if (at >= INT32_MAX)
            return length;
        if (at < 0)
            own = add(im, n, own, length);
        return within(im, n, own, length);
    }
    const int in[] = {rounds_two(im, n, "Less", own, rounds_integer(im, 0)),
                      add(im, n, own, length), own};
    return within(im, n, rounds_add(im, n, "Where", in, 3), length);
}

static void cut(struct import *im, const struct node *n, int64_t i, struct rounds_axis *a)
{
    const int begin = place(im, n, n->in[1], i, a->length),
              end = place(im, n, n->in[2], i, a->length);
    a->offset = add(im, n, a->offset, begin);
    a->low =
        rounds_two(im, n, "Max", subtract(im, n, a->low, begin), rounds_integer(im, 0));
    a->high = subtract(im, n, rounds_two(im, n, "Min", a->high, end), begin);
    a->length =
        rounds_two(im, n, "Max", subtract(im, n, end, begin), rounds_integer(im, 0));
}

void rounds_slice(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct rounds_lane *x = rounds_lane(im, n->in[0]);
    const struct value *starts = upgrade_input(im, n, 1), *ends = upgrade_input(im, n, 2),
                       *axes = upgrade_input(im, n, 3), *steps = upgrade_input(im, n, 4);
    const int rank = rounds_rank(im, n->in[0]);
    int64_t begin[STRATA_MAX_RANK], end[STRATA_MAX_RANK], at[STRATA_MAX_RANK],
        step[STRATA_MAX_RANK], count = 0;
    bool good = x && !x->zeros && !x->state && !x->appended && !x->dense && !x->flat &&
                starts && ends && (!axes || (axes->constant && !axes->lane)) &&
                (!steps || (steps->constant && !steps->lane));
    struct rounds_lane made = x ? *x : (struct rounds_lane){0};
    const int64_t n_cut = good ? count_of(starts) : 0;
    good = good && n_cut <= rank && count_of(ends) == n_cut &&
           (!axes || value_count(axes) == n_cut) &&
           (!steps || value_count(steps) == n_cut);
    for (int64_t i = 0; good && i < n_cut; i++) {
        int64_t axis = axes ? value_integer(axes, i) : i;
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank) {
            good = false;
            break;
        }
        struct rounds_axis *own = axis_at(&made, axis);
        const int64_t by = steps ? value_integer(steps, i) : 1;
        if (own) {
            good = by == 1;
            cut(im, n, i, own);
            continue;
        }
        good = graph_value(g, n->in[1])->constant && !rounds_lane(im, n->in[1]) &&
               graph_value(g, n->in[2])->constant && !rounds_lane(im, n->in[2]);
        if (!good)
            break;
        begin[count] = value_integer(graph_value(g, n->in[1]), i);
        end[count] = value_integer(graph_value(g, n->in[2]), i);
        at[count] = axis + 1;
        step[count++] = by;
    }
    if (!good) {
        rounds_refuse(im, n, "it cuts what is not resized at places that are computed,");
        return;
    }
    made.known = 0;
    made.index = false;
    if (count == 0)
        rounds_become(im, n, n->in[0]);
    else {
        node_set_input(g, n, 1, graph_add_integers(g, 1, begin, count));
        node_set_input(g, n, 2, graph_add_integers(g, 1, end, count));
        node_set_input(g, n, 3, graph_add_integers(g, 1, at, count));
        node_set_input(g, n, 4, graph_add_integers(g, 1, step, count));
    }
    rounds_tell_like(im, n->out[0], &made);
}

/* ---- between zeros -------------------------------------------------------------------
 */

bool rounds_join(struct import *im, struct node *n, int64_t axis)
{
    int image = VALUE_NONE, before = VALUE_NONE, behind = VALUE_NONE;
    for (int i = 0; i < n->n_in; i++) {
        const struct rounds_lane *own = rounds_lane(im, n->in[i]);
        int *side = image < 0 ? &before : &behind;
        if (own && own->zeros) {
            const int more = rounds_element(im, n, n->in[i], axis);
            *side = *side < 0 ? more : add(im, n, *side, more);
        } else if (own && own->n_axes && !own->dense && !own->flat && image < 0)
            image = n->in[i];
        else
            return false;
    }
    if (image < 0)
        return false;
    struct rounds_lane made = *rounds_lane(im, image);
    struct rounds_axis *a = axis_at(&made, axis);
    if (!a)
        return false;
    if (before >= 0) {
        a->offset = subtract(im, n, a->offset, before);
        a->low = add(im, n, a->low, before);
        a->high = add(im, n, a->high, before);
        a->length = add(im, n, a->length, before);
    }
    if (behind >= 0)
        a->length = add(im, n, a->length, behind);
    rounds_become(im, n, image);
    rounds_tell_like(im, n->out[0], &made);
    return true;
}

/* ---- one size ------------------------------------------------------------------------
 */

static int number(struct import *im, double v)
{
    return counted_number(im, STRATA_FP32, v);
}

int rounds_column(struct import *im, const struct node *n, int value, int64_t rounds,
                  int rank)
{
    const struct value *v = graph_value(&im->g, value);
    int64_t dims[STRATA_MAX_RANK] = {v->constant && value_count(v) == 1 ? 1 : rounds};
    for (int d = 1; d < rank; d++)
        dims[d] = 1;
    return counted_reshape(im, n, value, rank, dims);
}

/* The same before the dims of a matrix, as floats. */
static int column(struct import *im, const struct node *n, int value, int64_t rounds,
                  bool real)
{
    const int made = rounds_column(im, n, value, rounds, 3);
    return real ? counted_cast(im, n, made, ONNX_FLOAT) : made;
}

/* from, from + 1, ...: as 1 x n x 1, or 1 x 1 x n. */
static int places(struct import *im, int64_t n, int64_t from, bool down, bool real)
{
    const int64_t dims[] = {1, down ? n : 1, down ? 1 : n};
    int64_t *v = arena_get(&im->g.arena, (size_t)n, sizeof *v);
    float *f = arena_get(&im->g.arena, (size_t)n, sizeof *f);
    for (int64_t i = 0; v && f && i < n; i++) {
        v[i] = from + i;
        f[i] = (float)v[i];
    }
    return graph_add_constant(&im->g, "", real ? STRATA_FP32 : STRATA_INT64, 3, dims,
                              real ? (const void *)f : (const void *)v);
}

/* Weights of the two elements beside x: 1 - |x - m|, x held to the elements. */
static int linear(struct import *im, const struct node *n, int x, int64_t of)
{
    x = rounds_two(im, n, "Min", rounds_two(im, n, "Max", x, number(im, 0)),
                   number(im, (double)(of - 1)));
    const int far = subtract(im, n, x, places(im, of, 0, false, true));
    const int away = rounds_add(im, n, "Abs", &far, 1);
    const int near = subtract(im, n, number(im, 1), away);
    return rounds_add(im, n, "Relu", &near, 1);
}

/* ((p t + q) t + r) t + s */
static int polynomial(struct import *im, const struct node *n, int t, const double c[4])
{
    int y = rounds_two(im, n, "Mul", t, number(im, c[0]));
    for (int i = 1; i < 4; i++) {
        y = c[i] != 0 ? add(im, n, y, number(im, c[i])) : y;
        y = i < 3 ? rounds_two(im, n, "Mul", y, t) : y;
    }
    return y;
}

/* Weights of the four elements about x, those beyond the ends on the last ones. */
static int cubic(struct import *im, const struct node *n, int x, int64_t of, double a)
{
    const int64_t room = of + 4, dims[] = {room, of};
    const double inner[] = {a + 2, -(a + 3), 0, 1}, outer[] = {a, -5 * a, 8 * a, -4 * a};
    float *last = arena_get(&im->g.arena, (size_t)(room * of), sizeof *last);
    for (int64_t i = 0; last && i < room; i++) {
        const int64_t m = i < 2 ? 0 : i - 2 > of - 1 ? of - 1 : i - 2;
        last[i * of + m] = 1;
    }
    const int far = subtract(im, n, x, places(im, room, -2, false, true));
    const int t = rounds_add(im, n, "Abs", &far, 1);
    const int edge[] = {rounds_two(im, n, "Less", t, number(im, 2)),
                        polynomial(im, n, t, outer), number(im, 0)};
    const int in[] = {rounds_two(im, n, "LessOrEqual", t, number(im, 1)),
                      polynomial(im, n, t, inner), rounds_add(im, n, "Where", edge, 3)};
    return rounds_two(im, n, "MatMul", rounds_add(im, n, "Where", in, 3),
                      graph_add_constant(&im->g, "", STRATA_FP32, 2, dims, last));
}

/* What each of `room` elements of the dim is of those before it was resized: rounds x
 * room x of. */
static int weights(struct import *im, const struct node *n, const struct rounds_lane *l,
                   const struct rounds_axis *a, int64_t room)
{
    const int64_t rounds = l->rounds;
    const int size = column(im, n, a->size, rounds, true);
    const int scale = rounds_two(im, n, "Div", size, number(im, (double)a->of));
    const int at = add(im, n, places(im, room, 0, true, true),
                       column(im, n, a->offset, rounds, true));
    const int middle = add(im, n, at, number(im, 0.5));
    int x = subtract(im, n, rounds_two(im, n, "Div", middle, scale), number(im, 0.5));
    if (l->shifted) {
        const int in[] = {rounds_two(im, n, "Greater", size, number(im, 1)), x,
                          number(im, 0)};
        x = rounds_add(im, n, "Where", in, 3);
    }
    const int w = l->kernel == ROUNDS_CUBIC ? cubic(im, n, x, a->of, l->cubic)
                                            : linear(im, n, x, a->of);
    const int j = places(im, room, 0, true, false);
    const int live[] = {
        rounds_two(im, n, "LessOrEqual", column(im, n, a->low, rounds, false), j),
        rounds_two(im, n, "Less", j, column(im, n, a->high, rounds, false))};
    const int in[] = {rounds_add(im, n, "And", live, 2), w, number(im, 0)};
    return rounds_add(im, n, "Where", in, 3);
}

/* With dims of 1 between the rounds and the last two, turned or not. */
static int matrix(struct import *im, const struct node *n, int value, int64_t rounds,
                  int rank, const int64_t last[2], bool turned)
{
    const int64_t order[] = {0, 2, 1};
    int64_t dims[STRATA_MAX_RANK] = {rounds};
    if (turned) {
        struct node *made = counted_add(im, n, "Transpose", &value, 1);
        node_set_integers(&im->g, made, "perm", order, 3);
        value = upgrade_value(made);
    }
    for (int d = 1; d <= rank; d++)
        dims[d] = 1;
    dims[rank - 1] = last[turned];
    dims[rank] = last[!turned];
    return counted_reshape(im, n, value, rank + 1, dims);
}

/* As many matrices as there are: a size that is the same for all rounds has one. */
static int64_t matrices(const struct import *im, const struct rounds_lane *l,
                        const struct rounds_axis *a)
{
    const int of[] = {a->size, a->offset, a->low, a->high};
    for (size_t i = 0; i < ARRAY_LENGTH(of); i++) {
        const struct value *v = &im->g.values[of[i]];
        if (!v->constant || value_count(v) != 1) /* one a round, as of its number */
            return l->rounds;
    }
    return 1;
}

int rounds_settle(struct import *im, const struct node *n, int value, const int64_t *dims)
{
    const struct rounds_lane *l = rounds_lane(im, value);
    const int rank = rounds_rank(im, value);
    for (int i = 0; l && i < l->n_axes; i++) {
        const struct rounds_axis *a = &l->axes[i];
        const int64_t last[] = {dims[a->axis], a->of};
        const bool columns = a->axis == rank - 1;
        const int w = matrix(im, n, weights(im, n, l, a, dims[a->axis]),
                             matrices(im, l, a), rank, last, columns);
        value = columns ? rounds_two(im, n, "MatMul", value, w)
                        : rounds_two(im, n, "MatMul", w, value);
    }
    return value;
}
