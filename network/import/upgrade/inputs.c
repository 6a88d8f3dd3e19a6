/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes that became inputs, most of them so that a model may compute them.
 */
#include "network/import/upgrade.h"

#include "core/alloc.h"

static void axes_to_input(struct import *im, struct node *n)
{
    upgrade_move(im, n, "axes", 1);
}

static void split_to_input(struct import *im, struct node *n)
{
    upgrade_move(im, n, "split", 1);
}

/* Without sizes, the parts are equal: how many there are was told by the outputs. */
static void split_count(struct import *im, struct node *n)
{
    if (!upgrade_input(im, n, 1))
        node_set_integer(&im->g, n, "num_outputs", n->n_out);
}

static void slice_to_inputs(struct import *im, struct node *n)
{
    upgrade_move(im, n, "starts", 1);
    upgrade_move(im, n, "ends", 2);
    upgrade_move(im, n, "axes", 3);
}

static void shape_to_input(struct import *im, struct node *n)
{
    upgrade_move(im, n, "shape", 1);
}

static void k_to_input(struct import *im, struct node *n)
{
    upgrade_move(im, n, "k", 1);
}

/* A real of the first input's type. */
static void real_to_input(struct import *im, struct node *n, const char *name, int i)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    const struct value *x = upgrade_input(im, n, 0);
    if (!a || a->kind != ONNX_A_REAL || !x)
        return;
    node_set_input(&im->g, n, i, upgrade_reals(im, x->dtype, 0, &a->real, 1));
    node_remove(n, name);
}

static void clip_to_inputs(struct import *im, struct node *n)
{
    real_to_input(im, n, "min", 1);
    real_to_input(im, n, "max", 2);
}

static void pads_renamed(struct import *im, struct node *n)
{
    const struct onnx_attribute *a = node_attribute(n, "paddings");
    struct onnx_attribute pads;
    if (!a)
        return;
    pads = *a;
    pads.name = "pads";
    node_remove(n, "paddings");
    node_set(&im->g, n, pads);
}

static void pads_to_inputs(struct import *im, struct node *n)
{
    upgrade_move(im, n, "pads", 1);
    real_to_input(im, n, "value", 2);
}

/* What is computed is inference: the ratio is of no consequence, nor is is_test. */
static void dropout_without_ratio(struct import *im, struct node *n)
{
    (void)im;
    node_remove(n, "ratio");
    node_remove(n, "is_test");
}

static void scales_to_input(struct import *im, struct node *n)
{
    const struct onnx_attribute *a = node_attribute(n, "scales");
    if (!a || a->kind != ONNX_A_REALS)
        return;
    node_set_input(&im->g, n, 1,
                   upgrade_reals(im, STRATA_FP32, 1, a->reals, (int64_t)a->n));
    node_remove(n, "scales");
}

static void axis_to_input(struct import *im, struct node *n)
{
    const int64_t axis = node_integer(n, "axis", 1);
    node_set_input(&im->g, n, 2, graph_add_integers(&im->g, 0, &axis, 1));
    node_remove(n, "axis");
}

/* Tile along one axis, told by inputs, became a count for each axis. */
static void tile_to_repeats(struct import *im, struct node *n)
{
    int64_t repeats[STRATA_MAX_RANK];
    const struct value *x = upgrade_input(im, n, 0);
    const struct value *tiles = upgrade_input(im, n, 1), *axis = upgrade_input(im, n, 2);
    if (!x || !tiles || !axis)
        return;
    const int64_t at = value_integer(axis, 0);
    if (!tiles->constant || !axis->constant || at < 0 || at >= x->rank) {
        import_refuse_node(im, n, NULL,
                           "'tiles' and 'axis' must be constant, the axis one of %d",
                           x->rank);
        return;
    }
    for (int d = 0; d < x->rank; d++)
        repeats[d] = d == at ? value_integer(tiles, 0) : 1;
    node_set_input(&im->g, n, 1, graph_add_integers(&im->g, 1, repeats, x->rank));
    n->n_in = 2;
}

#define REDUCE(op_)                                                                      \
    {                                                                                    \
        op_, {18}, axes_to_input                                                         \
    }

static const struct upgrade rows[] = {
    {"Squeeze", {13}, axes_to_input},
    {"Unsqueeze", {13}, axes_to_input},
    {"ReduceSum", {13}, axes_to_input},
    REDUCE("ReduceMean"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    REDUCE("ReduceSumSquare"),
    {"Split", {13}, split_to_input},
    {"Split", {18}, split_count},
    {"Slice", {10}, slice_to_inputs},
    {"Reshape", {5}, shape_to_input},
    {"TopK", {10}, k_to_input},
    {"Clip", {11}, clip_to_inputs},
    {"Pad", {2}, pads_renamed},
    {"Pad", {11}, pads_to_inputs},
    {"Dropout", {12}, dropout_without_ratio},
    {"Upsample", {9}, scales_to_input},
    {"DFT", {20}, axis_to_input},
    {"Tile", {6}, tile_to_repeats},
};

const struct upgrade_table upgrade_inputs = {rows, ARRAY_LENGTH(rows)};
