/* SPDX-License-Identifier: Apache-2.0
 *
 * What a value of all rounds is, and what each operator makes of such values.
 * Called by fold.c and asks counted.c: part of its mutual recursion, and one with
 * image.c, though none folds a graph.
 */
#include "network/import/rounds/rounds.h"

#include <string.h>

#include "core/alloc.h"
#include "network/import/counted/counted.h"

#define HINT                                                                             \
    " in a Loop whose number of rounds values tell: export the network up to there, as " \
    "to boxes and scores, and do the rest behind it (docs/onnx.md)"

/* ---- lanes ---------------------------------------------------------------------------
 */

const struct rounds_lane *rounds_lane(const struct import *im, int value)
{
    const struct value *v = graph_value(&im->g, value);
    return v ? v->lane : NULL;
}

struct rounds_lane *rounds_tell(struct import *im, int value, int64_t rounds)
{
    struct rounds_lane *made = arena_get(&im->g.arena, 1, sizeof *made);
    struct value *v = graph_value(&im->g, value);
    if (!made || !v)
        return NULL;
    made->rounds = rounds;
    made->made = VALUE_NONE;
    v->lane = made;
    return made;
}

struct rounds_lane *rounds_tell_like(struct import *im, int value,
                                     const struct rounds_lane *from)
{
    struct rounds_lane *made = rounds_tell(im, value, from->rounds);
    if (made)
        *made = *from;
    if (made)
        made->made = VALUE_NONE;
    return made;
}

bool rounds_reads(const struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (rounds_lane(im, n->in[i]))
            return true;
    return false;
}

int rounds_rank(const struct import *im, int value)
{
    const struct value *v = graph_value(&im->g, value);
    const struct rounds_lane *l = rounds_lane(im, value);
    return !v ? 0 : l && l->zeros ? (int)v->dims[1] : l ? v->rank - 1 : v->rank;
}

int rounds_index(struct import *im, int64_t rounds)
{
    int64_t *v = arena_get(&im->g.arena, (size_t)rounds, sizeof *v);
    for (int64_t i = 0; v && i < rounds; i++)
        v[i] = i;
    const int value =
        v ? graph_add_constant(&im->g, "", STRATA_INT64, 1, &rounds, v) : VALUE_NONE;
    struct rounds_lane *l = rounds_tell(im, value, rounds);
    if (l)
        l->index = true;
    return value;
}

int rounds_state(struct import *im, int64_t rounds, int initial, int state)
{
    const int value = graph_add_value(&im->g, "");
    struct value *v = graph_value(&im->g, value);
    const struct value *from = graph_value(&im->g, initial);
    struct rounds_lane *l = rounds_tell(im, value, rounds);
    if (!l || !from)
        return VALUE_NONE;
    v->dtype = from->dtype;
    v->carried = from->carried;
    v->rank = from->rank;
    memcpy(v->dims, from->dims, sizeof v->dims);
    l->state = state + 1;
    return value;
}

/* ---- nodes ---------------------------------------------------------------------------
 */

void rounds_refuse(struct import *im, struct node *n, const char *why)
{
    import_refuse_node(im, n, NULL, "%s" HINT, why);
}

int rounds_add(struct import *im, const struct node *n, const char *op, const int *in,
               int n_in)
{
    return upgrade_value(counted_add(im, n, op, in, n_in));
}

int rounds_two(struct import *im, const struct node *n, const char *op, int a, int b)
{
    return rounds_add(im, n, op, (const int[]){a, b}, 2);
}

int rounds_integer(struct import *im, int64_t v)
{
    return graph_add_integers(&im->g, 1, &v, 1);
}

void rounds_become(struct import *im, struct node *n, int value)
{
    n->op = "Identity";
    n->domain = "";
    n->n_in = 0;
    n->attributes = NULL;
    n->n_attributes = 0;
    node_set_input(&im->g, n, 0, value);
}

int rounds_spread(struct import *im, const struct node *n, int value, int64_t rounds)
{
    const struct value *v = graph_value(&im->g, value);
    int64_t dims[STRATA_MAX_RANK] = {rounds};
    if (!v || v->lane)
        return value;
    if (v->rank >= STRATA_MAX_RANK)
        return VALUE_NONE;
    memcpy(dims + 1, v->dims, sizeof dims - sizeof *dims);
    const int in[] = {value, graph_add_integers(&im->g, 1, dims, v->rank + 1)};
    return rounds_add(im, n, "Expand", in, 2);
}

int rounds_element(struct import *im, const struct node *n, int value, int64_t i)
{
    const struct rounds_lane *l = rounds_lane(im, value);
    const struct value *v = graph_value(&im->g, value);
    if (!l)
        return rounds_integer(im, v && v->constant ? value_integer(v, i) : 0);
    if (i < ROUNDS_KNOWN && l->known >> i & 1)
        return rounds_integer(im, l->element[i]);
    const int part = v->rank > 1 ? counted_integer(im, i) : VALUE_NONE;
    const bool wide = v->dtype == STRATA_INT64;
    if (part >= 0) {
        struct node *made = counted_add(im, n, "Gather", (const int[]){value, part}, 2);
        node_set_integer(&im->g, made, "axis", 1);
        value = upgrade_value(made);
    }
    return wide ? value : counted_cast(im, n, value, ONNX_INT64);
}

int64_t rounds_axis_of(const struct node *n, int rank, int64_t otherwise)
{
    const int64_t axis = node_integer(n, "axis", otherwise);
    return axis < 0 ? axis + rank : axis;
}

/* Rows whose number values tell, of what is the same in all rounds: each round would see
 * those that do not count. Those that rounds take one by one do. */
static bool reads_rows(const struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (!rounds_lane(im, n->in[i]) && counted_axis(im, n->in[i]) >= 0 &&
            (i > 0 || counted_axis(im, n->in[i]) > 0 || strcmp(n->op, "Gather") != 0))
            return true;
    return false;
}

/* ---- all operators -------------------------------------------------------------------
 */

static const struct {
    const char *op;
    void (*apply)(struct import *im, struct node *n);
    int inputs; /* that have to be there, from the first on; 0: all of them */
    bool any;   /* the first may be the same in all rounds, if another is not */
} rules[] = {
    {"Gather", rounds_gather, 2, true},
    {"Concat", rounds_concat, 0, true},
    {"Unsqueeze", rounds_change_rank, 1},
    {"Squeeze", rounds_change_rank, 1},
    {"Reshape", rounds_reshape, 2},
    {"Expand", rounds_reshape, 2},
    {"Transpose", rounds_transpose, 1},
    {"Shape", rounds_shape, 1},
    {"ConstantOfShape", rounds_fill, 1},
    {"Slice", rounds_slice, 3},
    {"Resize", rounds_resize, 1},
    {"ReduceMax", rounds_reduce, 1},
    {"ReduceMin", rounds_reduce, 1},
    {"ReduceSum", rounds_reduce, 1},
    {"ReduceProd", rounds_reduce, 1},
    {"ReduceMean", rounds_reduce, 1},
    {"ReduceL1", rounds_reduce, 1},
    {"ReduceL2", rounds_reduce, 1},
    {"ReduceSumSquare", rounds_reduce, 1},
    {"ArgMax", rounds_reduce, 1},
    {"ArgMin", rounds_reduce, 1},
    {"Softmax", rounds_reduce, 1},
    {"LogSoftmax", rounds_reduce, 1},
    /* Element by element, but with the first one's dims. */
    {"Identity", rounds_elementwise, 1},
    {"Cast", rounds_elementwise, 1},
    {"Clip", rounds_elementwise, 1},
    {"CastLike", rounds_elementwise, 1},
    {"Dropout", rounds_elementwise, 1},
    {"PRelu", rounds_elementwise, 2},
};

/* Whether the inputs that rule k needs are there, and of known dims. */
static bool has_inputs(const struct import *im, const struct node *n, size_t k)
{
    const bool listed = k < ARRAY_LENGTH(rules);
    const int needed = listed && rules[k].inputs ? rules[k].inputs : n->n_in;
    bool good = n->n_in >= needed && n->n_out > 0;
    for (int i = 0; i < n->n_in && good; i++) {
        const struct value *v = graph_value(&im->g, n->in[i]);
        good = v ? v->rank >= 0 && v->dtype >= 0 : i >= needed;
    }
    return good && (!listed || rules[k].any || rounds_lane(im, n->in[0]));
}

int rounds_before(struct import *im, struct node *n, strata_error *err)
{
    size_t k = 0;
    if (n->whole || !rounds_reads(im, n))
        return STRATA_OK;
    while (k < ARRAY_LENGTH(rules) && (*n->domain || strcmp(rules[k].op, n->op) != 0))
        k++;
    if (reads_rows(im, n))
        rounds_refuse(im, n, "it reads rows whose number values tell,");
    else if (k == ARRAY_LENGTH(rules) && !counted_is_elementwise(n))
        rounds_refuse(im, n, "it is not taken with what differs from round to round,");
    else if (!has_inputs(im, n, k))
        rounds_refuse(im, n, "its axes or dims differ from round to round,");
    else if (k < ARRAY_LENGTH(rules))
        rules[k].apply(im, n);
    else
        rounds_elementwise(im, n);
    n->whole = true;
    return arena_status(&im->g.arena, "a loop", err);
}
