/* SPDX-License-Identifier: Apache-2.0
 *
 * UINT64 by operators on INT64.
 */
#include "network/import/carry/wide.h"

/* Names of the formulas below: values of INT64, made before the node. */
struct maker {
    struct import *im;
    struct node *n;
};

static int number(const struct maker *m, int64_t v)
{
    return graph_add_integers(&m->im->g, 0, &v, 1);
}

static int op(const struct maker *m, const char *name, int a, int b)
{
    return upgrade_two(m->im, m->n, name, a, b);
}

/* An input of the node, or a truth, as INT64. */
static int whole(const struct maker *m, int value)
{
    return upgrade_cast(m->im, m->n, value, ONNX_INT64);
}

/* Among INT64 what x is among UINT64. */
static int ordered(const struct maker *m, int x)
{
    return op(m, "BitwiseXor", x, number(m, INT64_MIN));
}

static int shifted_right(const struct maker *m, int x, int places)
{
    const int in[] = {x, places};
    struct node *shift = upgrade_add(m->im, m->n, "BitShift", in, 2);
    node_set_text(&m->im->g, shift, "direction", "RIGHT");
    return upgrade_value(shift);
}

static int half(const struct maker *m, int x)
{
    return op(m, "BitwiseAnd", shifted_right(m, x, number(m, 1)), number(m, INT64_MAX));
}

/* The node is c ? a : b. */
static void choose(const struct maker *m, int c, int a, int b)
{
    m->n->op = "Where";
    m->n->n_attributes = 0;
    node_set_input(&m->im->g, m->n, 2, b);
    node_set_input(&m->im->g, m->n, 1, a);
    node_set_input(&m->im->g, m->n, 0, c);
}

void wide_order_inputs(struct import *im, struct node *n, unsigned operands)
{
    const struct maker m = {im, n};
    for (int i = 0; i < n->n_in; i++)
        if (i >= 32 || operands >> i & 1)
            node_set_input(&im->g, n, i, ordered(&m, whole(&m, n->in[i])));
}

void wide_order_output(struct import *im, struct node *n)
{
    const struct maker m = {im, n};
    struct node *after = upgrade_after(im, n, 0, "BitwiseXor");
    if (after)
        node_set_input(&im->g, after, 1, number(&m, INT64_MIN));
}

/* Of what INT64 has below 0, half is cast, the bit that is lost kept for the rounding,
 * and doubled. */
void wide_cast_to(struct import *im, struct node *n, enum onnx_type to)
{
    const struct maker m = {im, n};
    const int x = whole(&m, n->in[0]), last = op(&m, "BitwiseAnd", x, number(&m, 1));
    const int part = upgrade_cast(im, n, op(&m, "BitwiseOr", half(&m, x), last), to);
    choose(&m, op(&m, "Less", x, number(&m, 0)), op(&m, "Add", part, part),
           upgrade_cast(im, n, x, to));
}

/* From 2^63 on without it, which is then the highest bit. */
void wide_cast_from(struct import *im, struct node *n, enum onnx_type from)
{
    const struct maker m = {im, n};
    const double limit = 0x1p63;
    const int x = n->in[0];
    const int above =
        upgrade_cast(im, n, upgrade_reals(im, STRATA_FP64, 0, &limit, 1), from);
    const int rest = whole(&m, op(&m, "Sub", x, above));
    choose(&m, op(&m, "GreaterOrEqual", x, above), ordered(&m, rest), whole(&m, x));
}

/* By 1 first, after which the sign is 0; unless by nothing. */
void wide_shift_right(struct import *im, struct node *n)
{
    const struct maker m = {im, n};
    const int x = whole(&m, n->in[0]), y = whole(&m, n->in[1]);
    choose(&m, op(&m, "Equal", y, number(&m, 0)), x,
           shifted_right(&m, half(&m, x), op(&m, "Sub", y, number(&m, 1))));
}

/* Whether x >= y, as 1 or 0. */
static int reaches(const struct maker *m, int x, int y)
{
    return whole(m, op(m, "GreaterOrEqual", ordered(m, x), ordered(m, y)));
}

/* Half of x by y, doubled, is the quotient or 1 less; by 2^63 or more, x holds y once. */
void wide_divide(struct import *im, struct node *n)
{
    const struct maker m = {im, n};
    const int x = whole(&m, n->in[0]), y = whole(&m, n->in[1]);
    const int near = op(&m, "Mul", op(&m, "Div", half(&m, x), y), number(&m, 2));
    const int rest = op(&m, "Sub", x, op(&m, "Mul", near, y));
    choose(&m, op(&m, "Less", y, number(&m, 0)), reaches(&m, x, y),
           op(&m, "Add", near, reaches(&m, rest, y)));
}

void wide_remain(struct import *im, struct node *n)
{
    const struct maker m = {im, n};
    const int x = whole(&m, n->in[0]), y = whole(&m, n->in[1]);
    const int in[] = {x, y};
    struct node *quotient = upgrade_add(im, n, "Div", in, 2);
    if (!quotient)
        return;
    wide_divide(im, quotient);
    n->op = "Sub";
    n->n_attributes = 0;
    node_set_input(&im->g, n, 1, op(&m, "Mul", upgrade_value(quotient), y));
    node_set_input(&im->g, n, 0, x);
}
