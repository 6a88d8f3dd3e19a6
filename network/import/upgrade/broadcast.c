/* SPDX-License-Identifier: Apache-2.0
 *
 * Operands that were aligned otherwise than by their last dims.
 */
#include "network/import/upgrade.h"

#include "core/alloc.h"

/* Input i, whose dims are those of input 0 from `axis` on, with ones behind them. */
static void align(struct import *im, struct node *n, int i, int64_t axis)
{
    int64_t dims[STRATA_MAX_RANK];
    const struct value *x = upgrade_input(im, n, 0), *v = upgrade_input(im, n, i);
    const int rank = (int)(x->rank - axis);
    if (axis < 0 || rank < v->rank) {
        import_refuse_node(im, n, NULL,
                           "axis %lld with operands of %d and %d dims; the second's must "
                           "be some of the first's",
                           (long long)axis, x->rank, v->rank);
        return;
    }
    if (rank == v->rank)
        return;
    for (int d = 0; d < rank; d++)
        dims[d] = d < v->rank ? v->dims[d] : 1;
    node_set_input(&im->g, n, i, upgrade_reshape(im, n, n->in[i], rank, dims));
}

/* `axis` told where the second operand's dims begin in the first's; without it they were
 * the last, as ever since. */
static void align_second(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0), *v = upgrade_input(im, n, 1);
    const int64_t axis = node_integer(n, "axis", 0);
    const bool given = node_attribute(n, "axis") && node_integer(n, "broadcast", 0);
    node_remove(n, "axis");
    node_remove(n, "broadcast");
    if (given && x && v && value_count(v) > 1)
        align(im, n, 1, axis < 0 ? axis + x->rank : axis);
}

/* A slope a channel. */
static void align_slope(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0), *slope = upgrade_input(im, n, 1);
    if (x && slope && x->rank > 2 && slope->rank == 1 && slope->dims[0] > 1)
        align(im, n, 1, 1);
}

/* Each of a group's numbers for each of its channels. */
static void spread_group(struct import *im, struct node *n, int i)
{
    const struct value *x = upgrade_input(im, n, 0), *v = upgrade_input(im, n, i);
    if (!x || !v || x->rank < 2 || v->rank != 1 || v->dims[0] < 1)
        return;
    const int64_t channels = x->dims[1], groups = v->dims[0];
    const int64_t column[] = {groups, 1}, wide[] = {groups, channels / groups};
    if (channels % groups) {
        import_refuse_node(im, n, NULL, "%lld channels are not groups of %lld",
                           (long long)channels, (long long)groups);
        return;
    }
    const int in[] = {upgrade_reshape(im, n, n->in[i], 2, column),
                      graph_add_integers(&im->g, 1, wide, 2)};
    const int expanded = upgrade_value(upgrade_add(im, n, "Expand", in, 2));
    node_set_input(&im->g, n, i, upgrade_reshape(im, n, expanded, 1, &channels));
}

static void spread_groups(struct import *im, struct node *n)
{
    spread_group(im, n, 1);
    spread_group(im, n, 2);
}

#define SECOND(op_)                                                                      \
    {                                                                                    \
        op_, {7}, align_second                                                           \
    }

static const struct upgrade rows[] = {
    SECOND("Add"),
    SECOND("Sub"),
    SECOND("Mul"),
    SECOND("Div"),
    SECOND("Pow"),
    SECOND("And"),
    SECOND("Or"),
    SECOND("Xor"),
    SECOND("Equal"),
    SECOND("Greater"),
    SECOND("Less"),
    {"PRelu", {7}, align_slope},
    {"GroupNormalization", {21}, spread_groups},
};

const struct upgrade_table upgrade_broadcast = {rows, ARRAY_LENGTH(rows)};
