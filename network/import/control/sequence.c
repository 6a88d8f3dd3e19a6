/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of tensors, and values that may be absent: known while the model is imported.
 * Rows of control.c, so part of its mutual recursion, though none folds a graph.
 */
#include "network/import/control/control.h"

#include <string.h>

#include "core/alloc.h"

/* The list that input 0 is; NULL, and refused: it is none. */
static const struct sequence *list_of(struct import *im, struct node *n)
{
    const struct value *v = upgrade_input(im, n, 0);
    if (v && v->sequence)
        return v->sequence;
    import_refuse_node(im, n, NULL, "value '%s' is no sequence known here",
                       v ? v->name : "");
    return NULL;
}

static int construct(struct import *im, struct node *n, strata_error *err)
{
    (void)err;
    control_give_list(im, n, 0, n->in, n->n_in);
    return STRATA_OK;
}

static int insert(struct import *im, struct node *n, strata_error *err)
{
    const struct sequence *list = list_of(im, n);
    (void)err;
    if (!list || !upgrade_input(im, n, 1))
        return STRATA_OK;
    int64_t at = list->n;
    if (upgrade_input(im, n, 2) && !control_integer(im, n, n->in[2], "the position", &at))
        return STRATA_OK;
    at = at < 0 ? at + list->n : at;
    int *values = arena_get(&im->g.arena, (size_t)list->n + 1, sizeof *values);
    if (at < 0 || at > list->n) {
        import_refuse_node(im, n, NULL, "position %lld is none of %d", (long long)at,
                           list->n + 1);
        return STRATA_OK;
    }
    for (int i = 0; values && i <= list->n; i++)
        values[i] = i < at ? list->values[i] : i == at ? n->in[1] : list->values[i - 1];
    if (values)
        control_give_list(im, n, 0, values, list->n + 1);
    return STRATA_OK;
}

/* Position of input 1 in the list; -1, and refused. */
static int64_t element_place(struct import *im, struct node *n,
                             const struct sequence *list, int64_t otherwise)
{
    int64_t at = otherwise;
    if (upgrade_input(im, n, 1) && !control_integer(im, n, n->in[1], "the position", &at))
        return -1;
    const int64_t place = at < 0 ? at + list->n : at;
    if (place >= 0 && place < list->n)
        return place;
    import_refuse_node(im, n, NULL, "position %lld is none of %d", (long long)at,
                       list->n);
    return -1;
}

static int erase(struct import *im, struct node *n, strata_error *err)
{
    const struct sequence *list = list_of(im, n);
    const int64_t at = list ? element_place(im, n, list, list->n - 1) : -1;
    int *values =
        at >= 0 ? arena_get(&im->g.arena, (size_t)list->n, sizeof *values) : NULL;
    (void)err;
    for (int i = 0; values && i + 1 < list->n; i++)
        values[i] = list->values[i + (i >= at)];
    if (values)
        control_give_list(im, n, 0, values, list->n - 1);
    return STRATA_OK;
}

static int at(struct import *im, struct node *n, strata_error *err)
{
    const struct sequence *list = list_of(im, n);
    const int64_t place = list ? element_place(im, n, list, list->n) : -1;
    (void)err;
    if (place >= 0)
        control_give(im, n, 0, list->values[place]);
    return STRATA_OK;
}

static int length(struct import *im, struct node *n, strata_error *err)
{
    const struct sequence *list = list_of(im, n);
    (void)err;
    if (list)
        control_give_integer(im, n, 0, STRATA_INT64, list->n);
    return STRATA_OK;
}

static int join(struct import *im, struct node *n, strata_error *err)
{
    const struct sequence *list = list_of(im, n);
    const int64_t axis = node_integer(n, "axis", 0);
    (void)err;
    if (list && (node_integer(n, "new_axis", 0) || list->n == 0))
        control_stack(im, n, 0, list->values, list->n, axis, NULL);
    else if (list)
        node_set_integer(
            &im->g, graph_add_node(&im->g, "Concat", list->values, list->n, n->out, 1),
            "axis", axis);
    return STRATA_OK;
}

/* Sizes of the parts along the axis, in an array; how many, -1: refused. */
static int part_sizes(struct import *im, struct node *n, int64_t dim, int64_t **sizes)
{
    const struct value *split = upgrade_input(im, n, 1);
    int64_t size = 1, total = 0, parts = dim;
    if (split && (!split->constant || value_count(split) > CONTROL_NODES)) {
        import_want(im, split);
        import_refuse_node(im, n, NULL, "'split' must be constant, of few numbers");
        return -1;
    }
    const bool each = split && split->rank == 1;
    if (split && !each)
        size = value_integer(split, 0);
    parts = each ? value_count(split) : size > 0 ? (dim + size - 1) / size : -1;
    if (parts < 0 || parts > CONTROL_NODES) {
        import_refuse_node(im, n, NULL, "parts of %lld of a dim of %lld", (long long)size,
                           (long long)dim);
        return -1;
    }
    *sizes = arena_get(&im->g.arena, (size_t)parts, sizeof **sizes);
    for (int64_t i = 0; *sizes && i < parts; i++) {
        (*sizes)[i] = each                 ? value_integer(split, i)
                      : total + size > dim ? dim - total
                                           : size;
        total += (*sizes)[i];
    }
    return *sizes ? (int)parts : -1;
}

static int split(struct import *im, struct node *n, strata_error *err)
{
    struct graph *g = &im->g;
    const struct value *x = upgrade_input(im, n, 0);
    const int64_t axis = node_integer(n, "axis", 0);
    const int64_t d = x && axis < 0 ? axis + x->rank : axis;
    int64_t *sizes = NULL;
    (void)err;
    if (!x || d < 0 || d >= x->rank) {
        import_refuse_node(im, n, NULL, "axis %lld is none of its dims", (long long)axis);
        return STRATA_OK;
    }
    const int parts = part_sizes(im, n, x->dims[d], &sizes);
    int *values = arena_get(&g->arena, (size_t)(parts > 0 ? parts : 0), sizeof *values);
    if (parts < 0 || !values)
        return STRATA_OK;
    for (int i = 0; i < parts; i++)
        values[i] = graph_add_value(g, "");
    const bool squeezed = !upgrade_input(im, n, 1) && !node_integer(n, "keepdims", 1);
    const int in[] = {n->in[0], graph_add_integers(g, 1, sizes, parts)};
    struct node *made = graph_add_node(g, "Split", in, 2, values, parts);
    node_set_integer(g, made, "axis", d);
    if (made)
        made->name = n->name;
    for (int i = 0; i < parts; i++) {
        const int part[] = {values[i], graph_add_integers(g, 1, &d, 1)};
        if (squeezed)
            values[i] = upgrade_value(upgrade_add(im, n, "Squeeze", part, 2));
    }
    if (made)
        control_give_list(im, n, 0, values, parts);
    return STRATA_OK;
}

/* ---- values that may be absent -------------------------------------------------------
 */

static int optional(struct import *im, struct node *n, strata_error *err)
{
    (void)err;
    if (upgrade_input(im, n, 0))
        control_give(im, n, 0, n->in[0]);
    else
        import_refuse_node(im, n, NULL, "the value is absent, and something reads it");
    return STRATA_OK;
}

static int has_element(struct import *im, struct node *n, strata_error *err)
{
    (void)err;
    control_give_integer(im, n, 0, STRATA_BOOL8, upgrade_input(im, n, 0) != NULL);
    return STRATA_OK;
}

#define LISTED "lists made in the model; positions and sizes are constant"
#define PRESENT "of tensors"

const struct control control_sequences[] = {
    {"SequenceConstruct", LISTED, construct},
    {"SequenceEmpty", LISTED, construct},
    {"SequenceInsert", LISTED, insert},
    {"SequenceErase", LISTED, erase},
    {"SequenceAt", LISTED, at},
    {"SequenceLength", LISTED, length},
    {"ConcatFromSequence", LISTED, join},
    {"SplitToSequence", LISTED, split},
    {"Optional", PRESENT, optional},
    {"OptionalGetElement", PRESENT, optional},
    {"OptionalHasElement", PRESENT, has_element},
};
const size_t control_n_sequences = ARRAY_LENGTH(control_sequences);
