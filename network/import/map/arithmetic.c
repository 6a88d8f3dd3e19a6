/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators that work element by element.
 */
#include "network/import/map.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"

#define OPERANDS 8 /* of one ElementWise, at most */

static bool is_integer(int dtype)
{
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8 || dtype == STRATA_INT32 ||
           dtype == STRATA_INT64;
}

/* A scalar constant of that dtype. */
static int number(struct mapping *m, int dtype, double v)
{
    void *data = arena_get(&m->g->arena, 1, sizeof v);
    if (data)
        weights_convert(data, dtype, &v, WEIGHT_F64, 1, NULL);
    return graph_add_constant(m->g, "", dtype, 0, NULL, data);
}

/* A layer of two inputs that gives value `out`. */
static void join(struct mapping *m, const char *type, const char *op, int a, int b,
                 int out)
{
    map_section(m, type);
    section_in(m->g, m->s, a);
    section_in(m->g, m->s, b);
    section_out(m->g, m->s, out);
    section_word(m->g, m->s, "op", op);
}

/* ---- many operands -------------------------------------------------------------------
 */

/* One operand is what it is; more than a layer takes come in turns. */
static void make_many(struct mapping *m, const char *op)
{
    const int n = m->node->n_in;
    int sum = n ? m->node->in[0] : VALUE_NONE;
    if (n == 1)
        map_is(m, 0, sum);
    for (int i = 1; i < n; sum = m->s && m->s->n_out ? m->s->out[0] : VALUE_NONE) {
        const int end = i + OPERANDS - 1 < n ? i + OPERANDS - 1 : n;
        map_section(m, "ElementWise");
        section_word(m->g, m->s, "op", op);
        section_in(m->g, m->s, sum);
        while (i < end)
            map_in(m, i++);
        section_out(m->g, m->s, i < n ? map_between(m) : m->node->out[0]);
    }
}

static void make_max(struct mapping *m)
{
    make_many(m, "max");
}

static void make_min(struct mapping *m)
{
    make_many(m, "min");
}

static void make_sum(struct mapping *m)
{
    make_many(m, "sum");
}

static void make_mean(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (m->node->n_in <= OPERANDS) {
        make_many(m, "mean");
        return;
    }
    const int sum = map_between(m), mean = m->node->out[0];
    make_many(m, "sum");
    if (m->s && x)
        m->s->out[0] = sum;
    join(m, "ElementWise", "div", sum, number(m, x ? x->dtype : 0, m->node->n_in), mean);
}

static void finish_shift(struct mapping *m)
{
    const char *direction = node_text(m->node, "direction", "");
    const bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        map_refuse(m, "'direction' = '%s' is none of LEFT, RIGHT", direction);
    section_word(m->g, m->s, "op", left ? "shift_left" : "shift_right");
}

/* ---- activations ---------------------------------------------------------------------
 */

/* Of integers and doubles, which Activation does not take. */
static void finish_relu(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (!x || dtype_is_free(x->dtype))
        return;
    map_become(m, "ElementWise");
    section_in(m->g, m->s, number(m, x->dtype, 0));
    section_word(m->g, m->s, "op", "max");
}

static void finish_gelu(struct mapping *m)
{
    const char *form = node_text(m->node, "approximate", "none");
    if (strcmp(form, "tanh") == 0)
        section_word(m->g, m->s, "kind", "gelu_tanh");
    else if (strcmp(form, "none") != 0)
        map_refuse(m, "'approximate' = '%s' is none of none, tanh", form);
}

/* Bounds that a plan can know, of floats: +inf and -inf stand for none. */
static bool clip_is_activation(const struct mapping *m)
{
    bool known = dtype_is_free(map_input(m, 0)->dtype);
    for (int i = 1; i < 3; i++) {
        const struct value *bound = map_input(m, i);
        known &= !bound || (bound->constant && !isnan(value_real(bound, 0)));
    }
    return known;
}

static void make_clip(struct mapping *m)
{
    static const char *const names[] = {"alpha", "beta"}, *const ops[] = {"max", "min"};
    const struct value *bounds[] = {map_input(m, 1), map_input(m, 2)};
    int from = m->node->n_in ? m->node->in[0] : VALUE_NONE;
    if (!map_input(m, 0))
        return;
    if (!bounds[0] && !bounds[1]) {
        map_is(m, 0, from);
        return;
    }
    if (clip_is_activation(m)) {
        map_section(m, "Activation");
        map_in(m, 0);
        map_out(m, 0);
        section_word(m->g, m->s, "kind", "clip");
        for (int i = 0; i < 2; i++)
            if (bounds[i] && !isinf(value_real(bounds[i], 0)))
                section_real(m->g, m->s, names[i], value_real(bounds[i], 0));
        return;
    }
    for (int i = 0; i < 2; i++) {
        const int out = i || !bounds[1] ? m->node->out[0] : map_between(m);
        if (!bounds[i])
            continue;
        join(m, "ElementWise", ops[i], from, m->node->in[i + 1], out);
        from = out;
    }
}

/* Without a constant slope: x < 0 ? slope·x : x. */
static void make_prelu(struct mapping *m)
{
    const struct value *x = map_input(m, 0), *slope = map_input(m, 1);
    if (!x || !slope)
        return;
    if (slope->constant && dtype_is_free(x->dtype)) {
        map_section(m, "ParametricReLU");
        map_in(m, 0);
        map_out(m, 0);
        section_weight(m->s, "slope", m->node->in[1]);
        return;
    }
    const int negative = map_between(m), steep = map_between(m);
    join(m, "Compare", "less", m->node->in[0], number(m, x->dtype, 0), negative);
    join(m, "ElementWise", "product", m->node->in[0], m->node->in[1], steep);
    map_section(m, "Select");
    section_in(m->g, m->s, negative);
    section_in(m->g, m->s, steep);
    map_in(m, 0);
    map_out(m, 0);
}

/* ---- the table -----------------------------------------------------------------------
 */

/* Rounding leaves integers as they are. */
static void finish_round(struct mapping *m)
{
    const struct value *x = map_input(m, 0);
    if (x && is_integer(x->dtype))
        map_become(m, "Identity");
}

#define UNARY(op_, name_)                                                                \
    {                                                                                    \
        .op = op_, .layer = "Unary", .fixed = "op=" name_, .ports = "x"                  \
    }
#define ROUND(op_, name_)                                                                \
    {                                                                                    \
        .op = op_, .layer = "Unary", .fixed = "op=" name_, .ports = "x",                 \
        .finish = finish_round                                                           \
    }
#define BINARY(op_, name_)                                                               \
    {                                                                                    \
        .op = op_, .layer = "ElementWise", .fixed = "op=" name_, .ports = "xx"           \
    }
#define MANY(op_, function)                                                              \
    {                                                                                    \
        .op = op_, .finish = function                                                    \
    }
#define COMPARE(op_, name_)                                                              \
    {                                                                                    \
        .op = op_, .layer = "Compare", .fixed = "op=" name_, .ports = "xx"               \
    }
#define ACTIVATION(op_, kind_, names_)                                                   \
    {                                                                                    \
        .op = op_, .layer = "Activation", .fixed = "kind=" kind_, .ports = "x",          \
        .names = names_                                                                  \
    }

static const struct map_rule rules[] = {
    UNARY("Abs", "abs"),
    UNARY("Neg", "neg"),
    UNARY("Exp", "exp"),
    UNARY("Log", "log"),
    UNARY("Sqrt", "sqrt"),
    UNARY("Reciprocal", "reciprocal"),
    UNARY("Sign", "sign"),
    ROUND("Floor", "floor"),
    ROUND("Ceil", "ceil"),
    ROUND("Round", "round"),
    UNARY("Sin", "sin"),
    UNARY("Cos", "cos"),
    UNARY("Tan", "tan"),
    UNARY("Asin", "asin"),
    UNARY("Acos", "acos"),
    UNARY("Atan", "atan"),
    UNARY("Sinh", "sinh"),
    UNARY("Cosh", "cosh"),
    UNARY("Asinh", "asinh"),
    UNARY("Acosh", "acosh"),
    UNARY("Atanh", "atanh"),
    UNARY("Erf", "erf"),
    UNARY("Not", "not"),
    UNARY("BitwiseNot", "bit_not"),
    UNARY("IsNaN", "is_nan"),
    {.op = "IsInf",
     .layer = "Unary",
     .fixed = "op=is_inf",
     .ports = "x",
     .names = "detect_negative=negative?,detect_positive=positive?"},
    BINARY("Add", "sum"),
    BINARY("Sub", "sub"),
    BINARY("Mul", "product"),
    BINARY("Div", "div"),
    BINARY("Pow", "pow"),
    {.op = "Mod",
     .layer = "ElementWise",
     .fixed = "op=mod",
     .ports = "xx",
     .names = "fmod=fmod?"},
    MANY("Max", make_max),
    MANY("Min", make_min),
    MANY("Sum", make_sum),
    MANY("Mean", make_mean),
    BINARY("And", "and"),
    BINARY("Or", "or"),
    BINARY("Xor", "xor"),
    BINARY("BitwiseAnd", "bit_and"),
    BINARY("BitwiseOr", "bit_or"),
    BINARY("BitwiseXor", "bit_xor"),
    {.op = "BitShift", .layer = "ElementWise", .ports = "xx", .finish = finish_shift},
    COMPARE("Equal", "equal"),
    COMPARE("Less", "less"),
    COMPARE("LessOrEqual", "less_equal"),
    COMPARE("Greater", "greater"),
    COMPARE("GreaterOrEqual", "greater_equal"),
    {.op = "Where", .layer = "Select", .ports = "xxx"},
    {.op = "Relu",
     .layer = "Activation",
     .fixed = "kind=relu",
     .ports = "x",
     .finish = finish_relu},
    ACTIVATION("LeakyRelu", "leaky_relu", "alpha=alpha"),
    ACTIVATION("Sigmoid", "sigmoid", ""),
    ACTIVATION("Tanh", "tanh", ""),
    ACTIVATION("Elu", "elu", "alpha=alpha"),
    ACTIVATION("Selu", "selu", "alpha=alpha,gamma=beta"),
    ACTIVATION("Celu", "celu", "alpha=alpha"),
    ACTIVATION("Softplus", "softplus", ""),
    ACTIVATION("Softsign", "softsign", ""),
    ACTIVATION("HardSigmoid", "hard_sigmoid", "alpha=alpha,beta=beta"),
    ACTIVATION("HardSwish", "hard_swish", ""),
    ACTIVATION("Mish", "mish", ""),
    ACTIVATION("Swish", "swish", "alpha=alpha"),
    ACTIVATION("ThresholdedRelu", "thresholded_relu", "alpha=alpha"),
    ACTIVATION("Shrink", "shrink", "lambd=alpha,bias=beta"),
    {.op = "Gelu",
     .layer = "Activation",
     .fixed = "kind=gelu",
     .ports = "x",
     .finish = finish_gelu},
    MANY("Clip", make_clip),
    MANY("PRelu", make_prelu),
};

const struct map_table map_arithmetic = {"Element by element", rules,
                                         ARRAY_LENGTH(rules)};
