/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of com.microsoft on quantized tensors, as the operator between Dequantize and
 * Quantize, which a plan may fuse.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "core/alloc.h"
#include "formats/format.h"
#include "io/weights/weights.h"

#define DOMAIN "com.microsoft"

static void standard_as(struct node *n, const char *op, int n_in)
{
    n->n_in = n_in;
    n->op = op;
    n->domain = "";
    n->version = GRAPH_OPSET;
}

/* ---- between Dequantize and Quantize -------------------------------------------------
 */

/* A tensor, its scale and its zero point, which may be absent, from input i on. */
static int dequantize(struct import *im, const struct node *n, int i)
{
    const int in[] = {n->in[i], n->in[i + 1],
                      i + 2 < n->n_in ? n->in[i + 2] : VALUE_NONE};
    return upgrade_value(
        upgrade_add(im, n, "DequantizeLinear", in, in[2] == VALUE_NONE ? 2 : 3));
}

/* The node as `op` of operands that begin at `first`; scale and zero point of the result
 * are at `result`. */
static void between(struct import *im, struct node *n, const char *op, int first,
                    int operands, int result)
{
    struct graph *g = &im->g;
    int *in = arena_get(&g->arena, (size_t)operands, sizeof *in);
    if (n->n_in < result + 1 || n->n_in < first + 3 * operands - 1 ||
        node_integer(n, "channels_last", 0)) {
        import_refuse_node(im, n, NULL,
                           "it must have scales for each tensor, and channels before the "
                           "places");
        return;
    }
    const int scale = n->in[result];
    const int zero = result + 1 < n->n_in ? n->in[result + 1] : VALUE_NONE;
    for (int i = 0; in && i < operands; i++)
        in[i] = dequantize(im, n, first + 3 * i);
    struct node *last = in ? upgrade_after(im, n, 0, "QuantizeLinear") : NULL;
    if (!last)
        return;
    node_set_input(g, last, 1, scale);
    if (zero >= 0)
        node_set_input(g, last, 2, zero);
    memcpy(n->in, in, (size_t)operands * sizeof *in);
    standard_as(n, op, operands);
}

static void of_operands(struct import *im, struct node *n)
{
    static const struct {
        const char *op, *standard;
        int operands;
    } kinds[] = {
        {"QLinearAdd", "Add", 2},
        {"QLinearMul", "Mul", 2},
        {"QLinearSigmoid", "Sigmoid", 1},
        {"QLinearLeakyRelu", "LeakyRelu", 1},
        {"QLinearAveragePool", "AveragePool", 1},
        {"QLinearGlobalAveragePool", "GlobalAveragePool", 1},
    };
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
        if (strcmp(n->op, kinds[i].op) == 0) {
            between(im, n, kinds[i].standard, 0, kinds[i].operands,
                    3 * kinds[i].operands);
            return;
        }
}

/* Input i as integers of the result's scale, instead of its own: what then moves is
 * bytes. */
static void rescale(struct import *im, struct node *n, int i)
{
    const int own[] = {dequantize(im, n, i), n->in[0], n->in[1]};
    const int bytes = upgrade_value(
        upgrade_add(im, n, "QuantizeLinear", own, own[2] == VALUE_NONE ? 2 : 3));
    if (bytes < 0)
        return;
    node_set_input(&im->g, n, i, bytes);
    node_set_input(&im->g, n, i + 1, own[1]);
    node_set_input(&im->g, n, i + 2, own[2]);
}

static void concatenated(struct import *im, struct node *n)
{
    enum { SCALED = 4 }; /* with more a plan concatenates floats */
    const int operands = (n->n_in - 2) / 3;
    for (int i = 2; operands <= SCALED && i + 2 < n->n_in; i += 3)
        if (n->in[i + 1] != n->in[0] || n->in[i + 2] != n->in[1])
            rescale(im, n, i);
    between(im, n, "Concat", 2, operands, 0);
}

/* Unlike that of Softmax, the default axis is the last at every opset. */
static void softmax(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0);
    const int64_t opset = node_integer(n, "opset", GRAPH_OPSET);
    int64_t axis = node_integer(n, "axis", -1);
    axis += x && axis < 0 ? x->rank : 0;
    if (x && opset < 13 && axis + 1 != x->rank) { /* of all behind it, as one dim */
        import_refuse_node(im, n, NULL, "axis %lld of opset %lld is not the last",
                           (long long)axis, (long long)opset);
        return;
    }
    node_remove(n, "opset");
    node_set_integer(&im->g, n, "axis", axis);
    between(im, n, "Softmax", 0, 1, 3);
}

static void where(struct import *im, struct node *n)
{
    const int condition = n->in[0];
    between(im, n, "Where", 1, 2, 7);
    if (node_is_refused(&im->g, n))
        return;
    memmove(n->in + 1, n->in, 2 * sizeof *n->in);
    n->in[0] = condition;
    n->n_in = 3;
}

/* ---- products ------------------------------------------------------------------------
 */

static int input_of(const struct node *n, int i)
{
    return i < n->n_in ? n->in[i] : VALUE_NONE;
}

/* Integers whose scale is that of a product: a_scale*b_scale*alpha. */
static int addend(struct import *im, const struct node *n, int integers)
{
    const double alpha = node_real(n, "alpha", 1);
    int scale = upgrade_two(im, n, "Mul", n->in[1], n->in[4]);
    if (alpha != 1)
        scale = upgrade_two(im, n, "Mul", scale,
                            upgrade_reals(im, STRATA_FP32, 0, &alpha, 1));
    return upgrade_two(im, n, "Mul", upgrade_cast(im, n, integers, ONNX_FLOAT), scale);
}

/* a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero; without y_scale floats. */
static void gemm(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const int c = input_of(n, 6), scale = input_of(n, 7), zero = input_of(n, 8);
    if (n->n_in < 6) {
        import_refuse_node(im, n, NULL, "it must have scales and zero points");
        return;
    }
    const int a = dequantize(im, n, 0);
    const int in[] = {n->in[3], n->in[4], n->in[5]};
    struct node *b = upgrade_add(im, n, "DequantizeLinear", in, in[2] < 0 ? 2 : 3);
    node_set_integer(g, b, "axis", node_integer(n, "transB", 0) ? 0 : 1);
    const int sum = c >= 0 ? addend(im, n, c) : VALUE_NONE;
    struct node *last = scale >= 0 ? upgrade_after(im, n, 0, "QuantizeLinear") : NULL;
    if (last) {
        node_set_input(g, last, 1, scale);
        if (zero >= 0)
            node_set_input(g, last, 2, zero);
    }
    n->in[0] = a;
    n->in[1] = upgrade_value(b);
    n->in[2] = sum;
    standard_as(n, "Gemm", c >= 0 ? 3 : 2);
}

/* (a - a_zero)*(b - b_zero) in integers, times a_scale*b_scale, plus a bias. */
struct product {
    int a, b, a_scale, b_scale, a_zero, b_zero, bias;
};

static void scaled(struct import *im, struct node *n, const struct product *p)
{
    const int in[] = {p->a, p->b, p->a_zero, p->b_zero};
    const int sum = upgrade_value(upgrade_add(im, n, "MatMulInteger", in, 4));
    const int wide = upgrade_cast(im, n, sum, ONNX_FLOAT);
    const int scale = upgrade_two(im, n, "Mul", p->a_scale, p->b_scale);
    if (p->bias >= 0)
        node_set_input(&im->g, upgrade_after(im, n, 0, "Add"), 1, p->bias);
    n->in[0] = wide;
    n->in[1] = scale;
    standard_as(n, "Mul", 2);
}

static void integer_to_float(struct import *im, struct node *n)
{
    if (n->n_in < 4)
        import_refuse_node(im, n, NULL, "it must have two scales");
    else
        scaled(im, n,
               &(struct product){.a = n->in[0],
                                 .b = n->in[1],
                                 .a_scale = n->in[2],
                                 .b_scale = n->in[3],
                                 .a_zero = input_of(n, 4),
                                 .b_zero = input_of(n, 5),
                                 .bias = input_of(n, 6)});
}

static void dynamic(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const int made[] = {graph_add_value(g, ""), graph_add_value(g, ""),
                        graph_add_value(g, "")};
    if (n->n_in < 3) {
        import_refuse_node(im, n, NULL, "it must have a scale of 'B'");
        return;
    }
    graph_add_node(g, "DynamicQuantizeLinear", n->in, 1, made, 3);
    scaled(im, n,
           &(struct product){.a = made[0],
                             .b = n->in[1],
                             .a_scale = made[1],
                             .b_scale = n->in[2],
                             .a_zero = made[2],
                             .b_zero = input_of(n, 3),
                             .bias = input_of(n, 4)});
}

/* Weights of a recurrent cell, whose rows are columns there, as floats: input i of one
 * scale, one a direction, or one a direction and row, and the zero points behind it. */
static int cell_weights(struct import *im, struct node *n, int i, int scale)
{
    static const int64_t order[] = {0, 2, 1};
    struct graph *g = &im->g;
    const struct value *w = upgrade_input(im, n, i), *s = upgrade_input(im, n, scale);
    const int zero = input_of(n, scale + 1);
    if (!w || w->rank != 3 || !s || s->rank > 2) {
        import_refuse_node(im, n, NULL,
                           "its weights have a rank of %d and their scales one of %d; "
                           "needed are 3, and at most 2",
                           w ? w->rank : 0, s ? s->rank : 0);
        return VALUE_NONE;
    }
    const int64_t count = value_count(s);
    const int64_t dims[] = {s->rank == 2 ? s->dims[0] : count, 1,
                            s->rank == 2 ? s->dims[1] : 1};
    int x = upgrade_cast(im, n, n->in[i], ONNX_FLOAT);
    if (zero >= 0)
        x = upgrade_two(
            im, n, "Sub", x,
            upgrade_reshape(im, n, upgrade_cast(im, n, zero, ONNX_FLOAT), 3, dims));
    x = upgrade_two(im, n, "Mul", x, upgrade_reshape(im, n, n->in[scale], 3, dims));
    struct node *turned = upgrade_add(im, n, "Transpose", &x, 1);
    node_set_integers(g, turned, "perm", order, 3);
    return upgrade_value(turned);
}

/* Cells compute in floats: x and h are not rounded to 8 bits before each step. */
static void dynamic_cells(struct import *im, struct node *n)
{
    const int w = cell_weights(im, n, 1, 8);
    const int r = w < 0 ? VALUE_NONE : cell_weights(im, n, 2, 10);
    if (r < 0)
        return;
    node_set_input(&im->g, n, 1, w);
    node_set_input(&im->g, n, 2, r);
    standard_as(n, "LSTM", 8);
}

static const struct rewrite rows[] = {
    {"DynamicQuantizeLSTM", DOMAIN, dynamic_cells},
    {"DynamicQuantizeMatMul", DOMAIN, dynamic},
    {"MatMulIntegerToFloat", DOMAIN, integer_to_float},
    {"QGemm", DOMAIN, gemm},
    {"QLinearAdd", DOMAIN, of_operands},
    {"QLinearAveragePool", DOMAIN, of_operands},
    {"QLinearConcat", DOMAIN, concatenated},
    {"QLinearGlobalAveragePool", DOMAIN, of_operands},
    {"QLinearLeakyRelu", DOMAIN, of_operands},
    {"QLinearMul", DOMAIN, of_operands},
    {"QLinearSigmoid", DOMAIN, of_operands},
    {"QLinearSoftmax", DOMAIN, softmax},
    {"QLinearWhere", DOMAIN, where},
};

const struct rewrite_table upgrade_quantized = {rows, ARRAY_LENGTH(rows)};
