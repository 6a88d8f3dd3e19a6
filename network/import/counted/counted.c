/* SPDX-License-Identifier: Apache-2.0
 *
 * What each operator does with rows that are counted.
 * What it puts beside a node is folded: mutual recursion with fold.c, by no more than the
 * nodes that it adds, none of which counts rows.
 */
#include "network/import/counted/counted.h"

#include <string.h>

#include "core/alloc.h"

static const struct rule {
    const char *op;
    enum counted_way way;
    bool asks; /* `before` is for all nodes, not for counted rows and sizes alone */
    void (*before)(struct import *im, struct node *n);
} rules[] = {
    {"NonZero", NOWHERE, true, counted_places},
    {"Compress", SAME, true, counted_compress},
    {"NonMaxSuppression", NOWHERE, true, counted_suppress},
    {"Shape", NOWHERE, false, counted_shape},
    {"Size", NOWHERE, false, counted_elements},
    {"TopK", SAME, false, counted_largest},
    {"Concat", SAME, false, counted_join},
    {"ScatterElements", SAME, false, counted_scatter},
    {"ScatterND", SAME, false, counted_scatter},
    {"Slice", SAME, false, counted_slice},
    {"Reshape", RESHAPED, false, counted_reshaped},
    {"Flatten", RESHAPED},
    {"Squeeze", RESHAPED},
    {"Unsqueeze", RESHAPED},
    {"Expand", STRETCHED, false, counted_expand},
    {"ConstantOfShape", NOWHERE, false, counted_filled},
    {"Range", NOWHERE, false, counted_range},
    {"Pad", SAME, false, counted_pad},
    {"Transpose", PERMUTED},
    {"Gather", GATHERED, false, counted_gather},
    {"GatherND", TUPLES, false, counted_elements_of},
    {"GatherElements", INDICES, false, counted_elements_of},
    {"ReduceSum", REDUCED, false, counted_reduce},
    {"ReduceMax", REDUCED, false, counted_reduce},
    {"ReduceMin", REDUCED, false, counted_reduce},
    {"ReduceProd", REDUCED, false, counted_reduce},
    {"ReduceL1", REDUCED, false, counted_reduce},
    {"ReduceL2", REDUCED, false, counted_reduce},
    {"ReduceSumSquare", REDUCED, false, counted_reduce},
    {"ReduceMean", REDUCED, false, counted_reduce},
    {"ArgMax", REDUCED, false, counted_reduce},
    {"ArgMin", REDUCED, false, counted_reduce},
    {"CumSum", SAME, false, counted_sums},
    {"Softmax", SAME, false, counted_reduce},
    {"LogSoftmax", SAME, false, counted_reduce},
    {"Split", SAME, false, counted_split},
    {"MatMul", PRODUCT},
    {"Gemm", FIRST},
    {"Conv", FIRST},
    {"ConvTranspose", FIRST},
    {"BatchNormalization", FIRST},
    {"InstanceNormalization", FIRST},
    {"LayerNormalization", FIRST},
    {"GroupNormalization", FIRST},
    {"MaxPool", FIRST},
    {"AveragePool", FIRST},
    {"GlobalAveragePool", FIRST},
    {"GlobalMaxPool", FIRST},
    {"Resize", FIRST},
    {"RoiAlign", FIRST},
};

/* Element by element, operands stretched. */
static const char *const elementwise[] = {
    "Abs",        "Neg",        "Exp",         "Log",        "Sqrt",
    "Reciprocal", "Sign",       "Floor",       "Ceil",       "Round",
    "Sin",        "Cos",        "Tan",         "Atan",       "Erf",
    "Not",        "IsNaN",      "IsInf",       "Add",        "Sub",
    "Mul",        "Div",        "Pow",         "Mod",        "Max",
    "Min",        "Sum",        "Mean",        "And",        "Or",
    "Xor",        "BitwiseAnd", "BitwiseOr",   "BitwiseXor", "BitShift",
    "Equal",      "Less",       "LessOrEqual", "Greater",    "GreaterOrEqual",
    "Where",      "Relu",       "LeakyRelu",   "Sigmoid",    "Tanh",
    "Elu",        "Softplus",   "HardSigmoid", "HardSwish",  "Swish",
    "Mish",       "Gelu",       "Clip",        "PRelu",      "Cast",
    "CastLike",   "Identity",   "Dropout"};

bool counted_is_elementwise(const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LENGTH(elementwise) && !*n->domain; i++)
        if (strcmp(elementwise[i], n->op) == 0)
            return true;
    return false;
}

static const struct rule *rule_of(const struct node *n)
{
    static const struct rule stretched = {"", STRETCHED, false, NULL};
    for (size_t i = 0; i < ARRAY_LENGTH(rules) && !*n->domain; i++)
        if (strcmp(rules[i].op, n->op) == 0)
            return &rules[i];
    return counted_is_elementwise(n) ? &stretched : NULL;
}

static bool reads_counted(const struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (counted_axis(im, n->in[i]) >= 0)
            return true;
    return false;
}

static bool reads_any(const struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (counted_is_size(im, n->in[i]))
            return true;
    return reads_counted(im, n);
}

/* ---- before --------------------------------------------------------------------------
 */

/* Operands that have room for different numbers of rows, of which as many count. One that
 * has room for one row is stretched. */
static void cut_alike(struct import *im, struct node *n, const struct rule *rule)
{
    int64_t least = INT64_MAX;
    if (rule->way != STRETCHED || strcmp(n->op, "Expand") == 0)
        return;
    for (int i = 0; i < n->n_in; i++) {
        const int axis = counted_axis(im, n->in[i]);
        const int64_t room = axis >= 0 ? im->g.values[n->in[i]].dims[axis] : INT64_MAX;
        least = room < least && room != 1 ? room : least;
    }
    for (int i = 0; i < n->n_in && least < INT64_MAX; i++) {
        const int axis = counted_axis(im, n->in[i]);
        const int64_t room = axis >= 0 ? im->g.values[n->in[i]].dims[axis] : least;
        if (room == least || room == 1)
            continue;
        const int rows = counted_of(im, n->in[i])->rows;
        const int64_t begin = 0, at = axis;
        const int in[] = {n->in[i], graph_add_integers(&im->g, 1, &begin, 1),
                          graph_add_integers(&im->g, 1, &least, 1),
                          graph_add_integers(&im->g, 1, &at, 1)};
        const int cut = upgrade_value(counted_add(im, n, "Slice", in, 4));
        counted_tell(im, cut, rows, axis);
        node_set_input(&im->g, n, i, cut);
    }
}

int counted_before(struct import *im, struct node *n, strata_error *err)
{
    const struct rule *rule = n->whole ? NULL : rule_of(n);
    (void)err;
    if (n->whole || (!reads_any(im, n) && !(rule && rule->asks)))
        return STRATA_OK;
    if (!rule && reads_counted(im, n)) {
        import_refuse_node(
            im, n, NULL,
            "it reads rows whose number values tell (of a NonZero or a "
            "NonMaxSuppression), with which it is not taken: export the network up to "
            "there, as to boxes and scores, and do the rest behind it (docs/onnx.md)");
        return STRATA_OK;
    }
    if (rule && rule->before)
        rule->before(im, n);
    if (rule && !n->whole && !node_is_refused(&im->g, n))
        cut_alike(im, n, rule);
    return arena_status(&im->g.arena, "a model", err);
}

/* ---- after ---------------------------------------------------------------------------
 */

static void refuse_two(struct import *im, const struct node *n)
{
    import_refuse_node(im, n, NULL,
                       "rows whose number values tell (of a NonZero or a "
                       "NonMaxSuppression) meet others along another dim, or lie where "
                       "it does not take them: export the network up to there, as to "
                       "boxes and scores, and do the rest behind it (docs/onnx.md)");
}

static void tell(struct import *im, struct node *n, const struct rule *rule)
{
    int axis = -1, rows = VALUE_NONE;
    for (int i = 0; i < n->n_in; i++) {
        const int to =
            counted_axis(im, n->in[i]) < 0 ? -1 : counted_axis_made(im, n, rule->way, i);
        if (to == -2 || (to >= 0 && axis >= 0 && to != axis)) {
            refuse_two(im, n);
            return;
        }
        if (to >= 0 && rows < 0)
            rows = counted_of(im, n->in[i])->rows;
        axis = to >= 0 ? to : axis;
    }
    for (int i = 0; i < n->n_out && axis >= 0; i++)
        if (n->out[i] >= 0)
            counted_tell(im, n->out[i], rows, axis);
}

int counted_after(struct import *im, struct node *n, strata_error *err)
{
    const struct rule *rule = n->whole ? NULL : rule_of(n);
    int status = STRATA_OK;
    if (!rule || n->n_out == 0 || n->out[0] < 0 || node_is_refused(&im->g, n))
        return STRATA_OK;
    if (reads_counted(im, n)) {
        if (rule->way == RESHAPED)
            counted_reshape_rows(im, n);
        else
            tell(im, n, rule);
    } else if (reads_any(im, n))
        status = counted_compute(im, n, err);
    return status == STRATA_OK ? arena_status(&im->g.arena, "a model", err) : status;
}

/* ---- branches and outputs ------------------------------------------------------------
 */

/* The rows of a value along an axis, as a scalar. */
static int rows_of(struct import *im, int value, int axis)
{
    return counted_axis(im, value) == axis
               ? counted_of(im, value)->rows
               : counted_integer(im, im->g.values[value].dims[axis]);
}

/* The axis along which one of them is counted. */
static int common_axis(const struct import *im, int a, int b)
{
    return counted_axis(im, a) >= 0 ? counted_axis(im, a) : counted_axis(im, b);
}

bool counted_fit(const struct import *im, int a, int b)
{
    const struct value *x = graph_value(&im->g, a), *y = graph_value(&im->g, b);
    const int axis = common_axis(im, a, b);
    if (counted_axis(im, a) >= 0 && counted_axis(im, b) >= 0 &&
        counted_axis(im, a) != counted_axis(im, b))
        return false;
    if (!x || !y || axis < 0 || x->rank != y->rank || x->dtype != y->dtype)
        return false;
    for (int d = 0; d < x->rank; d++)
        if (x->dims[d] != y->dims[d] && (d != axis || (x->dims[d] && y->dims[d])))
            return false;
    return true;
}

bool counted_choose(struct import *im, struct node *n, int i, int a, int b)
{
    struct graph *g = &im->g;
    const int axis = common_axis(im, a, b);
    if (!counted_fit(im, a, b))
        return false;
    const int64_t rows_a = g->values[a].dims[axis], rows_b = g->values[b].dims[axis];
    const int64_t most = rows_a > rows_b ? rows_a : rows_b;
    const int either[] = {n->in[0], rows_of(im, a, axis), rows_of(im, b, axis)};
    const int in[] = {n->in[0], a, b};
    const int rows = upgrade_value(counted_add(im, n, "Where", either, 3));
    struct node *made =
        rows_a == rows_b
            ? graph_add_node(g, "Where", in, 3, &n->out[i], 1)
            : graph_add_node(g, "Identity", rows_a ? &a : &b, 1, &n->out[i], 1);
    if (!made)
        return true;
    made->whole = true;
    counted_bound_rows(im, rows, most);
    counted_tell(im, n->out[i], rows, axis);
    return true;
}

static void hide_output(struct import *im, int value)
{
    struct graph *g = &im->g;
    struct value *v = &g->values[value];
    struct node *n = v->node;
    const struct value like = *v;
    const int rows = counted_of(im, value)->rows, axis = counted_axis(im, value);
    int i = 0;
    while (n && i < n->n_out && n->out[i] != value)
        i++;
    if (!n || i == n->n_out)
        return;
    const bool flag = like.dtype == STRATA_BOOL8;
    const int live = counted_live(im, n, rows, like.dims[axis], axis, like.rank);
    const int none = flag ? VALUE_NONE : counted_number(im, like.dtype, -1);
    struct node *made = upgrade_after(im, n, i, flag ? "And" : "Where");
    if (!made)
        return;
    struct value *fresh = &g->values[n->out[i]];
    fresh->dtype = like.dtype;
    fresh->rank = like.rank;
    fresh->exact = like.exact;
    fresh->same = like.same;
    fresh->constant = like.constant;
    fresh->data = like.data;
    memcpy(fresh->dims, like.dims, sizeof fresh->dims);
    made->whole = true;
    g->values[value].counted = NULL;
    g->values[value].same = VALUE_NONE;
    g->values[value].constant = false;
    node_set_input(g, made, flag ? 1 : 0, live);
    if (flag)
        return;
    node_set_input(g, made, 1, n->out[i]);
    node_set_input(g, made, 2, none);
}

int counted_outputs(struct import *im, strata_error *err)
{
    const size_t first = im->g.n_nodes, n = im->g.n_outputs;
    if (!im->all_refusals)
        counted_limit(im);
    im->counted = arena_get(&im->g.arena, n, sizeof *im->counted);
    for (size_t i = 0; im->counted && i < n; i++)
        im->counted[i] = counted_axis(im, im->g.outputs[i]);
    im->n_counted = im->counted ? n : 0;
    for (size_t i = 0; i < n && !im->all_refusals; i++)
        if (counted_axis(im, im->g.outputs[i]) >= 0)
            hide_output(im, im->g.outputs[i]);
    const int status = arena_status(&im->g.arena, "a model", err);
    return status == STRATA_OK ? import_fold_from(im, first, err) : status;
}
