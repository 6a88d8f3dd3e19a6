/* SPDX-License-Identifier: Apache-2.0
 *
 * FlexAttention: attention with a graph of its own for the scores, and one for the
 * probabilities, put between the products; mutual recursion where one holds another.
 */
#include "network/import/control/control.h"

#include <math.h>

#include "network/import/carry/carry.h"

/* No node where the types are the same. */
static int cast(struct import *im, const struct node *n, int value, enum onnx_type from,
                enum onnx_type to)
{
    return from == to ? value : upgrade_cast(im, n, value, to);
}

/* Keys or values, each head as often as heads of queries share it. */
static int shared_heads(struct import *im, const struct node *n, int value, int64_t heads)
{
    const struct value *v = graph_value(&im->g, value);
    const int64_t own = v->dims[1], axis = 2;
    const int64_t repeats[] = {1, 1, heads / (own ? own : 1), 1, 1};
    const int64_t dims[] = {0, heads, -1, v->dims[3]};
    if (own == heads)
        return value;
    value =
        upgrade_two(im, n, "Unsqueeze", value, graph_add_integers(&im->g, 1, &axis, 1));
    value =
        upgrade_two(im, n, "Expand", value, graph_add_integers(&im->g, 1, repeats, 5));
    return upgrade_two(im, n, "Reshape", value, graph_add_integers(&im->g, 1, dims, 4));
}

static bool is_attention(struct import *im, struct node *n)
{
    const struct value *q = upgrade_input(im, n, 0), *k = upgrade_input(im, n, 1),
                       *v = upgrade_input(im, n, 2);
    if (control_inputs(n) == 3 && n->n_out == 1 && q && k && v && q->rank == 4 &&
        k->rank == 4 && v->rank == 4 && k->dims[1] > 0 && k->dims[1] == v->dims[1] &&
        q->dims[1] % k->dims[1] == 0 && graph_is_real(q->dtype))
        return true;
    import_refuse_node(im, n, NULL,
                       "queries, keys and values must be floats of four dims, and heads "
                       "of queries a multiple of those of keys and values");
    return false;
}

/* What the graph of an attribute makes of a value; the value itself where there is none.
 */
static int modified(struct import *im, struct node *n, const char *name, int value,
                    int *status, strata_error *err)
{
    struct body b;
    const int out = graph_add_value(&im->g, "");
    if (*status != STRATA_OK || !node_attribute(n, name))
        return value;
    if (!body_open(&b, im, n, name, 1, 1))
        return VALUE_NONE;
    *status = body_run(&b, name, &value, &out, err);
    return out;
}

int control_flex_attention(struct import *im, struct node *n, strata_error *err)
{
    int status = STRATA_OK;
    if (!is_attention(im, n))
        return STRATA_OK;
    const struct value *q = upgrade_input(im, n, 0);
    const int64_t heads = q->dims[1], turned[] = {0, 1, 3, 2};
    const int dtype = q->dtype;
    const enum onnx_type type = carry_type(q),
                         otherwise = type == ONNX_DOUBLE ? ONNX_DOUBLE : ONNX_FLOAT,
                         inner = (enum onnx_type)node_integer(n, "softmax_precision",
                                                              otherwise);
    const double scale =
        node_real(n, "scale", 1 / sqrt((double)(q->dims[3] ? q->dims[3] : 1)));
    const int k = shared_heads(im, n, n->in[1], heads);
    struct node *keys = upgrade_add(im, n, "Transpose", &k, 1);
    node_set_integers(&im->g, keys, "perm", turned, 4);
    int x = upgrade_two(im, n, "MatMul", n->in[0], upgrade_value(keys));
    x = upgrade_two(im, n, "Mul", x, upgrade_reals(im, dtype, 0, &scale, 1));
    x = modified(im, n, "score_mod", cast(im, n, x, type, inner), &status, err);
    struct node *softmax = upgrade_add(im, n, "Softmax", &x, 1);
    node_set_integer(&im->g, softmax, "axis", -1);
    x = modified(im, n, "prob_mod", upgrade_value(softmax), &status, err);
    const int v = cast(im, n, shared_heads(im, n, n->in[2], heads), type, inner);
    x = cast(im, n, upgrade_two(im, n, "MatMul", x, v), inner, type);
    control_give(im, n, 0, x);
    return status;
}
