/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of com.microsoft on quantized tensors, as the operator between Dequantize and
 * Quantize, which a plan may fuse; and weights of few bits, as the numbers that they are.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "core/alloc.h"
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

static void concatenated(struct import *im, struct node *n)
{
    between(im, n, "Concat", 2, (n->n_in - 2) / 3, 0);
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

/* ---- weights of few bits -------------------------------------------------------------
 */

/* A matrix of N x K numbers, in blocks of a row that share a scale. */
struct packed {
    int64_t rows, columns, block, blocks; /* blocks of a row */
    int bits;
    const uint8_t *bytes, *zeros; /* zeros: NULL, half of the range */
    const struct value *scales;
};

static int unpack(const uint8_t *bytes, int64_t i, int bits)
{
    const int64_t bit = i * bits;
    return bytes[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
}

static bool is_bytes(const struct value *v, int64_t n)
{
    return v && v->constant && v->dtype == STRATA_UINT8 && v->data && value_count(v) == n;
}

static bool read_packed(const struct import *im, const struct node *n, struct packed *p)
{
    const struct value *weights = upgrade_input(im, n, 1);
    const struct value *zeros = upgrade_input(im, n, 3);
    *p = (struct packed){.rows = node_integer(n, "N", 0),
                         .columns = node_integer(n, "K", 0),
                         .block = node_integer(n, "block_size", 0),
                         .bits = (int)node_integer(n, "bits", 4),
                         .scales = upgrade_input(im, n, 2)};
    if ((p->bits != 2 && p->bits != 4 && p->bits != 8) || p->block < 8 || p->rows < 1 ||
        p->columns < 1 || p->block > INT32_MAX || p->rows > INT32_MAX ||
        p->columns > INT32_MAX || upgrade_input(im, n, 4) || !weights)
        return false;
    p->blocks = (p->columns + p->block - 1) / p->block;
    const int64_t bytes = p->blocks * (p->block * p->bits / 8);
    if (bytes > INT64_MAX / p->rows || !is_bytes(weights, p->rows * bytes) ||
        !p->scales || !p->scales->constant ||
        value_count(p->scales) != p->rows * p->blocks)
        return false;
    if (zeros && !is_bytes(zeros, p->rows * ((p->blocks * p->bits + 7) / 8)))
        return false;
    p->bytes = weights->data;
    p->zeros = zeros ? zeros->data : NULL;
    return true;
}

/* K x N floats: the product's second operand. */
static void unpack_all(const struct packed *p, float *out)
{
    const int64_t row_bytes = p->blocks * (p->block * p->bits / 8);
    const int64_t zero_bytes = (p->blocks * p->bits + 7) / 8;
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t b = 0; b < p->blocks; b++) {
            const float scale = (float)value_real(p->scales, r * p->blocks + b);
            const int zero = p->zeros ? unpack(p->zeros + r * zero_bytes, b, p->bits)
                                      : 1 << (p->bits - 1);
            for (int64_t k = b * p->block; k < (b + 1) * p->block && k < p->columns; k++)
                out[k * p->rows + r] =
                    scale * (float)(unpack(p->bytes + r * row_bytes, k, p->bits) - zero);
        }
}

/* The matrix as a constant of the first input's type. */
static int unpacked(struct import *im, const struct packed *p, int dtype)
{
    struct graph *g = &im->g;
    const int64_t dims[] = {p->columns, p->rows};
    const size_t n = (size_t)(p->columns * p->rows);
    float *wide = arena_get(&g->arena, n, sizeof *wide);
    void *data = wide;
    if (!wide)
        return VALUE_NONE;
    unpack_all(p, wide);
    if (dtype != STRATA_FP32 &&
        (!(data = arena_get(&g->arena, n, sizeof *wide)) ||
         weights_convert(data, dtype, wide, WEIGHT_F32, (int64_t)n, NULL) != STRATA_OK))
        return VALUE_NONE;
    return graph_add_constant(g, "", dtype, 2, dims, data);
}

static void few_bits(struct import *im, struct node *n)
{
    struct packed p;
    const struct value *x = upgrade_input(im, n, 0);
    const int bias = n->n_in > 5 ? n->in[5] : VALUE_NONE;
    if (!x || !read_packed(im, n, &p)) {
        import_refuse_node(
            im, n, NULL,
            "weights, scales and zero points must be constant, of 2, 4 or "
            "8 bits packed as 'K', 'N' and 'block_size' say, not reordered");
        return;
    }
    const int weights = unpacked(im, &p, x->dtype);
    if (bias >= 0)
        node_set_input(&im->g, upgrade_after(im, n, 0, "Add"), 1, bias);
    n->in[1] = weights;
    standard_as(n, "MatMul", 2);
}

static const struct rewrite rows[] = {
    {"DynamicQuantizeMatMul", DOMAIN, dynamic},
    {"MatMulIntegerToFloat", DOMAIN, integer_to_float},
    {"MatMulNBits", DOMAIN, few_bits},
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
