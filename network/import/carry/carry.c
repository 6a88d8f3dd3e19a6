/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of types without a dtype through the operators that take them.
 */
#include "network/import/carry/carry.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"
#include "network/import/carry/wide.h"

/* What an operator does with such values. */
enum effect {
    MOVES,   /* its results are some of its operands' elements */
    NARROWS, /* results of the type's arithmetic, which a wider one may leave */
    TELLS,   /* results are of another type */
    CASTS,   /* between types: has a function below */
};

/* What that means for UINT64, whose carrier has the same bits, but another order. */
enum wide { SAME_BITS, IN_ORDER, BY_WIDE };

/* No number of the type has a sign. */
static void keep(struct import *im, struct node *n)
{
    (void)im;
    n->op = "Identity";
}

/* To the left, the bits are what INT64's are. */
static void shift(struct import *im, struct node *n)
{
    if (strcmp(node_text(n, "direction", ""), "RIGHT") == 0)
        wide_shift_right(im, n);
}

static const struct rule {
    const char *op;
    enum effect effect;
    bool floats;       /* of the types' floats as well */
    unsigned operands; /* mask of inputs that are of the type, all of them alike */
    enum wide wide;
    void (*apply)(struct import *im, struct node *n); /* BY_WIDE */
} rules[] = {
    {"Identity", MOVES, true, 1, SAME_BITS},
    {"Reshape", MOVES, true, 1, SAME_BITS},
    {"Flatten", MOVES, true, 1, SAME_BITS},
    {"Transpose", MOVES, true, 1, SAME_BITS},
    {"Squeeze", MOVES, true, 1, SAME_BITS},
    {"Unsqueeze", MOVES, true, 1, SAME_BITS},
    {"Slice", MOVES, true, 1, SAME_BITS},
    {"Split", MOVES, true, 1, SAME_BITS},
    {"Concat", MOVES, true, ~0u, SAME_BITS},
    {"Gather", MOVES, true, 1, SAME_BITS},
    {"GatherElements", MOVES, true, 1, SAME_BITS},
    {"GatherND", MOVES, true, 1, SAME_BITS},
    {"Expand", MOVES, true, 1, SAME_BITS},
    {"Tile", MOVES, true, 1, SAME_BITS},
    {"DepthToSpace", MOVES, true, 1, SAME_BITS},
    {"SpaceToDepth", MOVES, true, 1, SAME_BITS},
    {"Where", MOVES, true, 6, SAME_BITS},
    {"BitwiseAnd", MOVES, false, ~0u, SAME_BITS},
    {"BitwiseOr", MOVES, false, ~0u, SAME_BITS},
    {"BitwiseXor", MOVES, false, ~0u, SAME_BITS},
    {"Max", MOVES, false, ~0u, IN_ORDER},
    {"Min", MOVES, false, ~0u, IN_ORDER},
    {"TopK", MOVES, false, 1, IN_ORDER},
    {"Mod", MOVES, false, ~0u, BY_WIDE, wide_remain},
    {"Add", NARROWS, false, ~0u, SAME_BITS},
    {"Sub", NARROWS, false, ~0u, SAME_BITS},
    {"Mul", NARROWS, false, ~0u, SAME_BITS},
    {"Div", NARROWS, false, ~0u, BY_WIDE, wide_divide},
    {"Neg", NARROWS, false, 1, SAME_BITS},
    {"Abs", NARROWS, false, 1, BY_WIDE, keep},
    {"BitwiseNot", NARROWS, false, 1, SAME_BITS},
    {"BitShift", NARROWS, false, ~0u, BY_WIDE, shift},
    {"ReduceMax", NARROWS, false, 1, IN_ORDER}, /* the ends of the type, of nothing */
    {"ReduceMin", NARROWS, false, 1, IN_ORDER},
    {"ReduceSum", NARROWS, false, 1, SAME_BITS},
    {"CumSum", NARROWS, false, 1, SAME_BITS},
    {"Shape", TELLS, true, 1, SAME_BITS},
    {"Size", TELLS, true, 1, SAME_BITS},
    {"Equal", TELLS, false, ~0u, SAME_BITS},
    {"Less", TELLS, false, ~0u, IN_ORDER},
    {"LessOrEqual", TELLS, false, ~0u, IN_ORDER},
    {"Greater", TELLS, false, ~0u, IN_ORDER},
    {"GreaterOrEqual", TELLS, false, ~0u, IN_ORDER},
    {"ArgMax", TELLS, false, 1, IN_ORDER},
    {"ArgMin", TELLS, false, 1, IN_ORDER},
    {"Cast", CASTS, true, 1, SAME_BITS},
    {"CastLike", CASTS, true, 1, SAME_BITS},
    {"BitCast", CASTS, true, 1, SAME_BITS},
    {"Pow", CASTS, true, 1, SAME_BITS},
    {"QuantizeLinear", CASTS, true, 1, SAME_BITS},
    {"DequantizeLinear", CASTS, true, 1, SAME_BITS},
};

static const struct rule *rule_of(const struct node *n)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules) && !*n->domain; i++)
        if (strcmp(rules[i].op, n->op) == 0)
            return &rules[i];
    return NULL;
}

/* ---- types ---------------------------------------------------------------------------
 */

static bool is_carried(enum onnx_type type)
{
    return onnx_type_core(type) < 0 && onnx_type_carrier(type) >= 0;
}

enum onnx_type carry_type(const struct value *v)
{
    int type = ONNX_TYPE_COUNT - 1;
    if (v->carried || v->dtype < 0)
        return v->carried;
    while (type > ONNX_UNDEFINED && onnx_type_core((enum onnx_type)type) != v->dtype)
        type--;
    return (enum onnx_type)type;
}

const char *carry_values(enum onnx_type type)
{
    static const char *const names[ONNX_TYPE_COUNT] = {
        [ONNX_INT16] = "int16",
        [ONNX_UINT16] = "u16",
        [ONNX_UINT32] = "u32",
        [ONNX_INT4] = "int4",
        [ONNX_UINT4] = "u4",
        [ONNX_INT2] = "int2",
        [ONNX_UINT2] = "u2",
        [ONNX_FLOAT8E4M3FNUZ] = "e4m3fnuz",
        [ONNX_FLOAT8E5M2FNUZ] = "e5m2fnuz",
        [ONNX_FLOAT8E8M0] = "e8m0",
        [ONNX_FLOAT4E2M1] = "e2m1",
    };
    return names[type];
}

void carry_constant(struct graph *g, int value, const struct onnx_tensor *t)
{
    struct value *v = graph_value(g, value);
    if (!v)
        return;
    v->dtype = onnx_type_carrier(t->type);
    v->carried = is_carried(t->type) ? t->type : ONNX_UNDEFINED;
    v->rank = t->rank;
    memcpy(v->dims, t->dims, sizeof v->dims);
    v->constant = true;
    v->data = t->data;
    if (!v->carried)
        return;
    void *data = arena_get(&g->arena, (size_t)t->count,
                           weight_dtype_size(weight_dtype_of(v->dtype)));
    if (data)
        onnx_widen(data, t);
    v->data = t->count ? data : NULL;
}

static void tell(struct import *im, const struct node *n, int i, enum onnx_type type)
{
    struct value *v = i < n->n_out ? graph_value(&im->g, n->out[i]) : NULL;
    if (v)
        v->carried = is_carried(type) ? type : ONNX_UNDEFINED;
}

/* ---- between types -------------------------------------------------------------------
 */

static bool is_integer(enum onnx_type type)
{
    return type != ONNX_BOOL && !graph_is_real(onnx_type_carrier(type));
}

static bool can_be_added(enum onnx_type type)
{
    return dtype_is_free(onnx_type_core(type)) || type == ONNX_DOUBLE;
}

static void carry_cast(struct import *im, struct node *n, const struct value *x)
{
    const enum onnx_type from = carry_type(x),
                         to = (enum onnx_type)node_integer(n, "to", ONNX_UNDEFINED);
    const bool is_from = from == ONNX_UINT64, is_to = to == ONNX_UINT64;
    const enum onnx_type other = is_from ? to : from;
    tell(im, n, 0, to);
    if (is_from == is_to || is_integer(other) || other == ONNX_BOOL)
        return;
    if (!can_be_added(other))
        import_refuse_node(im, n, NULL, "of type uint64 are not cast %s %s",
                           is_from ? "to" : "from", onnx_type_name(other));
    else if (is_from)
        wide_cast_to(im, n, to);
    else
        wide_cast_from(im, n, from);
}

/* Integers of one size have the same bits where they are equal but for a wrap. */
static void carry_bit_cast(struct import *im, struct node *n, const struct value *x)
{
    const enum onnx_type from = carry_type(x),
                         to = (enum onnx_type)node_integer(n, "to", ONNX_UNDEFINED);
    if (is_integer(from) && is_integer(to) &&
        onnx_type_bits(from) == onnx_type_bits(to)) {
        n->op = "Cast";
        tell(im, n, 0, to);
    } else if (x->carried || is_carried(to))
        import_refuse_node(im, n, NULL, "elements of type %s are not taken as %s",
                           onnx_type_name(from), onnx_type_name(to));
}

static void carry_quantize(struct import *im, struct node *n)
{
    const struct value *zero = upgrade_input(im, n, 2);
    tell(im, n, 0,
         zero ? carry_type(zero)
              : (enum onnx_type)node_integer(n, "output_dtype", ONNX_UINT8));
}

/* The exponent as a number of the base's type. */
static void carry_power(struct import *im, struct node *n, const struct value *base)
{
    const struct value *exponent = upgrade_input(im, n, 1);
    if (exponent && exponent->carried && !base->carried && dtype_is_free(base->dtype))
        node_set_input(&im->g, n, 1, upgrade_cast(im, n, n->in[1], carry_type(base)));
    else if (base->carried || (exponent && exponent->carried))
        import_refuse_node(im, n, NULL, "it is not taken with elements of type %s",
                           onnx_type_name(carry_type(base->carried ? base : exponent)));
}

static void carry_between(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0), *like = upgrade_input(im, n, 1);
    if (!x)
        return;
    if (strcmp(n->op, "CastLike") == 0 && like && (x->carried || like->carried)) {
        n->op = "Cast";
        n->n_in = 1;
        node_set_integer(&im->g, n, "to", carry_type(like));
    }
    if (strcmp(n->op, "Cast") == 0)
        carry_cast(im, n, x);
    else if (strcmp(n->op, "BitCast") == 0)
        carry_bit_cast(im, n, x);
    else if (strcmp(n->op, "QuantizeLinear") == 0)
        carry_quantize(im, n);
    else if (strcmp(n->op, "Pow") == 0)
        carry_power(im, n, x);
}

/* ---- all operators -------------------------------------------------------------------
 */

/* The one type that all operands have; ONNX_UNDEFINED, and refused, where they differ or
 * the operator does not take it. */
static enum onnx_type operand_type(struct import *im, struct node *n,
                                   const struct rule *rule)
{
    enum onnx_type type = ONNX_UNDEFINED;
    bool alike = rule != NULL;
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = upgrade_input(im, n, i);
        const bool operand = rule && (i >= 32 || rule->operands >> i & 1);
        if (v && operand && type != ONNX_UNDEFINED)
            alike &= carry_type(v) == type;
        else if (v && (operand || v->carried))
            type = carry_type(v);
        alike &= !v || operand || !v->carried;
    }
    if (!alike || !is_carried(type) || (!rule->floats && !is_integer(type))) {
        import_refuse_node(im, n, NULL, "it is not taken with elements of type %s",
                           onnx_type_name(type));
        return ONNX_UNDEFINED;
    }
    return type;
}

static bool reads_carried(const struct import *im, const struct node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const struct value *v = upgrade_input(im, n, i);
        if (v && v->carried)
            return true;
    }
    return false;
}

void carry_node(struct import *im, struct node *n)
{
    const struct rule *rule = rule_of(n);
    if (rule && rule->effect == CASTS) {
        carry_between(im, n);
        return;
    }
    if (!reads_carried(im, n) || n->n_out == 0)
        return;
    const enum onnx_type type = operand_type(im, n, rule);
    if (type == ONNX_UNDEFINED)
        return;
    const bool wide = type == ONNX_UINT64, in_order = wide && rule->wide == IN_ORDER;
    if (in_order)
        wide_order_inputs(im, n, rule->operands);
    if (wide && rule->wide == BY_WIDE)
        rule->apply(im, n);
    if (rule->effect == TELLS)
        return;
    for (int i = 0; i < (strcmp(n->op, "Split") == 0 ? n->n_out : 1); i++)
        tell(im, n, i, type);
    if (in_order)
        wide_order_output(im, n);
    else if (rule->effect == NARROWS && !wide)
        node_set_integer(&im->g, upgrade_after(im, n, 0, "Cast"), "to", type);
}
