/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists that were attributes and became inputs.
 */
#include "network/import/upgrade.h"

#include "core/alloc.h"

/* Attribute `name` as a constant, input i of the node. */
static void move(struct import *im, struct node *n, const char *name, int i)
{
    const struct onnx_attribute *a = node_attribute(n, name);
    if (!a || a->kind != ONNX_A_INTEGERS)
        return;
    node_set_input(&im->g, n, i,
                   graph_add_integers(&im->g, 1, a->integers, (int64_t)a->n));
    node_remove(n, name);
}

static void axes_to_input(struct import *im, struct node *n)
{
    move(im, n, "axes", 1);
}

static void split_to_input(struct import *im, struct node *n)
{
    move(im, n, "split", 1);
}

#define REDUCE(op_)                                                                      \
    {                                                                                    \
        .op = op_, .version = 18, .apply = axes_to_input                                 \
    }

static const struct upgrade rows[] = {
    {.op = "Squeeze", .version = 13, .apply = axes_to_input},
    {.op = "Unsqueeze", .version = 13, .apply = axes_to_input},
    {.op = "ReduceSum", .version = 13, .apply = axes_to_input},
    {.op = "Split", .version = 13, .apply = split_to_input},
    REDUCE("ReduceMean"),
    REDUCE("ReduceMax"),
    REDUCE("ReduceMin"),
    REDUCE("ReduceProd"),
    REDUCE("ReduceL1"),
    REDUCE("ReduceL2"),
    REDUCE("ReduceLogSum"),
    REDUCE("ReduceLogSumExp"),
    REDUCE("ReduceSumSquare"),
};

const struct upgrade_table upgrade_axes = {rows, ARRAY_LENGTH(rows)};
