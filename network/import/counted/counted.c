/* SPDX-License-Identifier: Apache-2.0
 *
 * What each operator does with rows that are counted.
 * What it puts beside a node is folded: mutual recursion with fold.c, by no more than the
 * nodes that it adds, none of which counts rows.
 */
#include "network/import/counted/counted.h"

#include <string.h>

#include "core/alloc.h"

/* Where the counted rows of what is made lie. */
enum way {
    SAME,      /* at the axis of the input */
    STRETCHED, /* where broadcasting puts it */
    FIRST,     /* as SAME, of the first dim alone: batches */
    RESHAPED,  /* where as many elements lie behind it */
    PERMUTED,
    GATHERED,
    TUPLES,  /* of GatherND */
    INDICES, /* of GatherElements, where its indices have it */
    REDUCED,
    PRODUCT, /* of matrices */
    NOWHERE, /* what is made has all of its rows, or `before` told */
};

static const struct rule {
    const char *op;
    enum way way;
    bool asks; /* `before` is for all nodes, not for those of counted rows and sizes alone
                */
    void (*before)(struct import *im, struct node *n);
} rules[] = {
    {"NonZero", NOWHERE, true, counted_places},
    {"Compress", NOWHERE, true, counted_compress},
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
    {"Gather", GATHERED},
    {"GatherND", TUPLES},
    {"GatherElements", INDICES},
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
    {"CumSum", SAME},
    {"Softmax", SAME, false, counted_reduce},
    {"LogSoftmax", SAME, false, counted_reduce},
    {"Split", SAME},
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

static const struct rule *rule_of(const struct node *n)
{
    static const struct rule stretched = {"", STRETCHED, false, NULL};
    for (size_t i = 0; i < ARRAY_LENGTH(rules) && !*n->domain; i++)
        if (strcmp(rules[i].op, n->op) == 0)
            return &rules[i];
    for (size_t i = 0; i < ARRAY_LENGTH(elementwise) && !*n->domain; i++)
        if (strcmp(elementwise[i], n->op) == 0)
            return &stretched;
    return NULL;
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

/* Operands that have room for different numbers of rows, of which as many count. */
static void cut_alike(struct import *im, struct node *n, const struct rule *rule)
{
    int64_t least = INT64_MAX;
    if (rule->way != STRETCHED || strcmp(n->op, "Expand") == 0)
        return;
    for (int i = 0; i < n->n_in; i++) {
        const int axis = counted_axis(im, n->in[i]);
        const int64_t room = axis >= 0 ? im->g.values[n->in[i]].dims[axis] : INT64_MAX;
        least = room < least ? room : least;
    }
    for (int i = 0; i < n->n_in && least < INT64_MAX; i++) {
        const int axis = counted_axis(im, n->in[i]);
        if (axis < 0 || im->g.values[n->in[i]].dims[axis] == least)
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

/* The axis of y behind which as many elements lie as behind that of x, where as many lie
 * before it, or a whole number of times so many; -1: there is none. */
static int reshaped_axis(const struct value *x, int axis, const struct value *y)
{
    int64_t before = 1, at = 1;
    int found = -1;
    for (int d = 0; d < axis; d++)
        before *= x->dims[d];
    for (int d = 0; d < y->rank && at <= before; at *= y->dims[d++])
        if (at == before && (found < 0 || y->dims[found] == 1))
            found = d;
    return found;
}

static int64_t behind(const struct value *v, int axis)
{
    int64_t n = 1;
    for (int d = axis + 1; d < v->rank; d++)
        n *= v->dims[d];
    return n;
}

/* Rows of x as rows of y, which are longer or shorter by a whole number. */
static void tell_reshaped(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value *x = &g->values[n->in[0]], *y = &g->values[n->out[0]];
    const int from = counted_axis(im, n->in[0]), to = reshaped_axis(x, from, y);
    int rows = counted_of(im, n->in[0])->rows;
    const int64_t a = behind(x, from), b = to < 0 ? 1 : behind(y, to);
    if (to < 0 || (a % b && b % a) || x->dims[from] * a != y->dims[to] * b) {
        import_refuse_node(im, n, NULL,
                           "its dims divide rows whose number values tell (of a NonZero "
                           "or a NonMaxSuppression); what is taken joins whole rows or "
                           "divides each: export the network up to there");
        return;
    }
    const int64_t most = y->dims[to];
    if (a != b) {
        rows = counted_two(im, n, a > b ? "Mul" : "Div", rows,
                           counted_integer(im, a > b ? a / b : b / a));
        counted_bound_rows(im, rows, most);
    }
    counted_tell(im, n->out[0], rows, to);
}

static int gathered_axis(const struct import *im, const struct node *n, int i)
{
    const struct value *x = &im->g.values[n->in[0]], *index = &im->g.values[n->in[1]];
    const int64_t given = node_integer(n, "axis", 0);
    const int axis = (int)(given < 0 ? given + x->rank : given);
    const int at = counted_axis(im, n->in[i]);
    if (i == 1)
        return axis + at;
    return at == axis ? -1 : at < axis ? at : at - 1 + index->rank;
}

/* Data that are counted are read where indices say; rows of indices are rows. */
static int tuples_axis(const struct import *im, const struct node *n, int i)
{
    const struct value *index = &im->g.values[n->in[1]];
    const int at = counted_axis(im, n->in[i]), last = index->rank - 1;
    if (i == 1)
        return at < last ? at : -2;
    const int behind_tuple = (int)(index->dims[last] + node_integer(n, "batch_dims", 0));
    return at < behind_tuple ? -1 : last + at - (int)index->dims[last];
}

static int permuted_axis(const struct node *n, int at, int rank)
{
    int64_t order[STRATA_MAX_RANK];
    const int64_t given = node_integers(n, "perm", order, STRATA_MAX_RANK);
    for (int d = 0; d < rank; d++)
        if ((given < 0 ? rank - 1 - d : order[d]) == at)
            return d;
    return -2;
}

/* Which dims go, where they are not kept. */
static int reduced_axis(const struct import *im, const struct node *n, int at, int rank)
{
    const bool one = strncmp(n->op, "Arg", 3) == 0;
    const struct value *axes = one || n->n_in < 2 ? NULL : graph_value(&im->g, n->in[1]);
    const int64_t count = one ? 1 : axes ? value_count(axes) : 0;
    bool gone[STRATA_MAX_RANK] = {false};
    int to = at;
    for (int64_t i = 0; i < count; i++) {
        const int64_t a = one ? node_integer(n, "axis", 0) : value_integer(axes, i);
        gone[(a < 0 ? a + rank : a) & (STRATA_MAX_RANK - 1)] = true;
    }
    if (count == 0 || gone[at])
        return -1;
    for (int d = 0; d < at && node_integer(n, "keepdims", 1) == 0; d++)
        to -= gone[d];
    return to;
}

/* Where the rows of input i lie in what is made; -1: nowhere, it has all; -2: it is not
 * taken. */
static int axis_of(const struct import *im, const struct node *n, const struct rule *rule,
                   int i)
{
    const struct value *x = &im->g.values[n->in[i]], *y = &im->g.values[n->out[0]];
    const int at = counted_axis(im, n->in[i]);
    switch (rule->way) {
    case SAME:
        return i == 0 || strcmp(n->op, "Concat") == 0 ? at : -1;
    case STRETCHED:
        return at + y->rank - x->rank;
    case FIRST:
        return at == 0 && !(i == 1 && strcmp(n->op, "Gemm") == 0) ? 0 : -2;
    case PERMUTED:
        return permuted_axis(n, at, x->rank);
    case GATHERED:
        return gathered_axis(im, n, i);
    case TUPLES:
        return tuples_axis(im, n, i);
    case INDICES:
        return i == 1 ? at : -1;
    case REDUCED:
        return reduced_axis(im, n, at, x->rank);
    case PRODUCT:
        return at == x->rank - (i == 0 ? 1 : 2) ? -2 : at + y->rank - x->rank;
    default:
        return -1;
    }
}

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
        const int to = counted_axis(im, n->in[i]) < 0 ? -1 : axis_of(im, n, rule, i);
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
            tell_reshaped(im, n);
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
