/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators of com.microsoft, which ONNX Runtime's optimizers write, as those of ai.onnx.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "core/alloc.h"

#define DOMAIN "com.microsoft"

/* The same operator by another domain. */
static void standard(struct import *im, struct node *n)
{
    (void)im;
    upgrade_standard(n, n->op);
}

static void set_real(struct import *im, struct node *n, const char *name, double v)
{
    node_set(&im->g, n,
             (struct onnx_attribute){.name = name, .kind = ONNX_A_REAL, .real = v});
}

static bool is_read(const struct import *im, const struct node *n, int i)
{
    return i < n->n_out && n->out[i] >= 0 && im->g.values[n->out[i]].readers > 0;
}

/* The node's first input with input i added. */
static void add_input(struct import *im, struct node *n, int i)
{
    if (!upgrade_input(im, n, 0) || !upgrade_input(im, n, i))
        return;
    const int in[] = {n->in[0], n->in[i]};
    n->in[0] = upgrade_value(upgrade_add(im, n, "Add", in, 2));
    n->in[i] = VALUE_NONE;
}

/* ---- activations ---------------------------------------------------------------------
 */

static void bias_gelu(struct import *im, struct node *n)
{
    add_input(im, n, 1);
    n->n_in = 1;
    upgrade_standard(n, "Gelu");
}

static void fast_gelu(struct import *im, struct node *n)
{
    bias_gelu(im, n);
    node_set_text(&im->g, n, "approximate", "tanh");
}

static void quick_gelu(struct import *im, struct node *n)
{
    set_real(im, n, "alpha", node_real(n, "alpha", (double)1.702f));
    upgrade_standard(n, "Swish");
}

/* ---- normalizations ------------------------------------------------------------------
 */

/* Outputs from `first` on are of training, except `kept`. */
static void refuse_outputs(struct import *im, struct node *n, int first, int kept)
{
    for (int i = first; i < n->n_out; i++)
        if (i != kept && is_read(im, n, i))
            import_refuse_node(im, n, NULL,
                               "output %d is read, which only training needs", i);
    n->n_out = n->n_out > first ? first : n->n_out;
}

static void simplified_norm(struct import *im, struct node *n)
{
    refuse_outputs(im, n, 1, -1);
    upgrade_standard(n, "RMSNormalization");
}

/* Of the sum of two inputs and, at the end, a bias; the sum is output 3. */
static void skip_norm(struct import *im, struct node *n, const char *op, int bias)
{
    struct graph *g = &im->g;
    const int sum = is_read(im, n, 3) ? n->out[3] : VALUE_NONE;
    add_input(im, n, 1);
    add_input(im, n, bias);
    if (sum >= 0)
        graph_add_node(g, "Identity", &n->in[0], 1, &sum, 1);
    for (int i = 1; i + 1 < n->n_in; i++) /* the skip is gone */
        n->in[i] = n->in[i + 1];
    n->n_in = n->n_in > bias ? bias - 1 : n->n_in - 1;
    refuse_outputs(im, n, 1, 3);
    set_real(im, n, "epsilon", node_real(n, "epsilon", (double)1e-12f));
    node_set_integer(g, n, "axis", -1);
    upgrade_standard(n, op);
}

static void skip_layer_norm(struct import *im, struct node *n)
{
    skip_norm(im, n, "LayerNormalization", 4);
}

static void skip_simplified_norm(struct import *im, struct node *n)
{
    skip_norm(im, n, "RMSNormalization", 3);
}

/* ---- products and windows ------------------------------------------------------------
 */

static int transpose(struct import *im, const struct node *n, int value,
                     const int64_t *perm, int rank)
{
    struct node *made = upgrade_add(im, n, "Transpose", &value, 1);
    const int64_t *copy = arena_copy(&im->g.arena, perm, (size_t)rank * sizeof *perm);
    if (copy)
        node_set(&im->g, made,
                 (struct onnx_attribute){.name = "perm",
                                         .kind = ONNX_A_INTEGERS,
                                         .integers = copy,
                                         .n = (size_t)rank});
    return upgrade_value(made);
}

/* Operand i with its last two dims exchanged. */
static void transpose_operand(struct import *im, struct node *n, int i)
{
    int64_t perm[STRATA_MAX_RANK];
    const struct value *v = upgrade_input(im, n, i);
    if (!v || v->rank < 2)
        return;
    const int rank = v->rank;
    for (int d = 0; d < rank; d++)
        perm[d] = d < rank - 2 ? d : 2 * rank - 3 - d;
    n->in[i] = transpose(im, n, n->in[i], perm, rank);
}

static void fused_matmul(struct import *im, struct node *n)
{
    const double alpha = node_real(n, "alpha", 1);
    const struct value *x = upgrade_input(im, n, 0);
    if (node_integer(n, "transBatchA", 0) || node_integer(n, "transBatchB", 0)) {
        import_refuse_node(im, n, NULL, "'transBatchA' and 'transBatchB' must be 0");
        return;
    }
    const int dtype = x ? x->dtype : STRATA_FP32;
    if (node_integer(n, "transA", 0))
        transpose_operand(im, n, 0);
    if (node_integer(n, "transB", 0))
        transpose_operand(im, n, 1);
    if (alpha != 1)
        node_set_input(&im->g, upgrade_after(im, n, 0, "Mul"), 1,
                       upgrade_reals(im, dtype, 0, &alpha, 1));
    upgrade_standard(n, "MatMul");
}

/* The activation by name, its numbers in a list. */
static void activation_after(struct import *im, struct node *n)
{
    static const struct {
        const char *op, *numbers[2];
    } kinds[] = {
        {"Relu", {NULL}},         {"Tanh", {NULL}},
        {"Sigmoid", {NULL}},      {"LeakyRelu", {"alpha"}},
        {"Clip", {"min", "max"}}, {"HardSigmoid", {"alpha", "beta"}},
    };
    const char *op = node_text(n, "activation", "");
    const struct onnx_attribute *numbers = node_attribute(n, "activation_params");
    const struct value *x = upgrade_input(im, n, 0);
    const int dtype = x ? x->dtype : STRATA_FP32;
    for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
        if (strcmp(op, kinds[i].op) != 0)
            continue;
        struct node *made = upgrade_after(im, n, 0, kinds[i].op);
        for (size_t k = 0; k < 2 && numbers && k < numbers->n; k++)
            if (strcmp(op, "Clip") == 0)
                node_set_input(&im->g, made, (int)k + 1,
                               upgrade_reals(im, dtype, 0, &numbers->reals[k], 1));
            else if (kinds[i].numbers[k])
                set_real(im, made, kinds[i].numbers[k], numbers->reals[k]);
        return;
    }
    if (*op)
        import_refuse_node(im, n, NULL, "'activation' = '%s' is not known", op);
}

static void fused_conv(struct import *im, struct node *n)
{
    const int added = n->n_in > 3 ? n->in[3] : VALUE_NONE;
    activation_after(im, n);
    if (added >= 0)
        node_set_input(&im->g, upgrade_after(im, n, 0, "Add"), 1, added);
    n->n_in = n->n_in > 3 ? 3 : n->n_in;
    upgrade_standard(n, "Conv");
}

static void fused_gemm(struct import *im, struct node *n)
{
    activation_after(im, n);
    upgrade_standard(n, "Gemm");
}

static void nhwc_max_pool(struct import *im, struct node *n)
{
    static const int64_t in[] = {0, 3, 1, 2}, out[] = {0, 2, 3, 1};
    const struct value *x = upgrade_input(im, n, 0);
    if (!x || x->rank != 4) {
        import_refuse_node(im, n, NULL, "the input has %d dims; 4 are taken",
                           x ? x->rank : 0);
        return;
    }
    n->in[0] = transpose(im, n, n->in[0], in, 4);
    struct node *back = upgrade_after(im, n, 0, "Transpose");
    node_set(&im->g, back,
             (struct onnx_attribute){
                 .name = "perm", .kind = ONNX_A_INTEGERS, .integers = out, .n = 4});
    upgrade_standard(n, "MaxPool");
}

/* ---- embeddings ----------------------------------------------------------------------
 */

/* ids, segments, embeddings of words, places and segments, scale, bias, mask, places. */
static void embed_layer_norm(struct import *im, struct node *n)
{
    struct graph *g = &im->g;
    const struct value *ids = upgrade_input(im, n, 0);
    const int64_t begin = 0, one = 1;
    if (n->n_in < 7 || !ids || ids->rank != 2 ||
        (is_read(im, n, 1) && !upgrade_input(im, n, 7))) {
        import_refuse_node(im, n, NULL,
                           "ids must be batch x length, and a mask be there where the "
                           "number of its ones is read");
        return;
    }
    const int cut[] = {n->in[3], graph_add_integers(g, 1, &begin, 1),
                       graph_add_integers(g, 1, &ids->dims[1], 1)};
    const int places = upgrade_input(im, n, 8)
                           ? upgrade_two(im, n, "Gather", n->in[3], n->in[8])
                           : upgrade_value(upgrade_add(im, n, "Slice", cut, 3));
    int sum = upgrade_two(im, n, "Add", upgrade_two(im, n, "Gather", n->in[2], n->in[0]),
                          places);
    if (upgrade_input(im, n, 1) && upgrade_input(im, n, 4))
        sum = upgrade_two(im, n, "Add", sum,
                          upgrade_two(im, n, "Gather", n->in[4], n->in[1]));
    if (is_read(im, n, 1)) {
        const int in[] = {n->in[7], graph_add_integers(g, 1, &one, 1)};
        struct node *counted = graph_add_node(g, "ReduceSum", in, 2, &n->out[1], 1);
        node_set_integer(g, counted, "keepdims", 0);
    }
    if (is_read(im, n, 2))
        graph_add_node(g, "Identity", &sum, 1, &n->out[2], 1);
    const int in[] = {sum, n->in[5], n->in[6]};
    memcpy(n->in, in, sizeof in);
    n->n_in = 3;
    n->n_out = 1;
    set_real(im, n, "epsilon", node_real(n, "epsilon", (double)1e-12f));
    node_set_integer(g, n, "axis", -1);
    upgrade_standard(n, "LayerNormalization");
}

static const struct rewrite rows[] = {
    {"BiasGelu", DOMAIN, bias_gelu},
    {"DequantizeLinear", DOMAIN, standard},
    {"EmbedLayerNormalization", DOMAIN, embed_layer_norm},
    {"FastGelu", DOMAIN, fast_gelu},
    {"FusedConv", DOMAIN, fused_conv},
    {"FusedGemm", DOMAIN, fused_gemm},
    {"FusedMatMul", DOMAIN, fused_matmul},
    {"Gelu", DOMAIN, standard},
    {"LayerNormalization", DOMAIN, standard},
    {"NhwcMaxPool", DOMAIN, nhwc_max_pool},
    {"QuantizeLinear", DOMAIN, standard},
    {"QuickGelu", DOMAIN, quick_gelu},
    {"SimplifiedLayerNormalization", DOMAIN, simplified_norm},
    {"SimplifiedLayerNormalization", "", simplified_norm}, /* as it is written, too */
    {"SkipLayerNormalization", DOMAIN, skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", DOMAIN, skip_simplified_norm},
    {"TransposeMatMul", DOMAIN, fused_matmul},
};

const struct rewrite_table upgrade_microsoft = {rows, ARRAY_LENGTH(rows)};
