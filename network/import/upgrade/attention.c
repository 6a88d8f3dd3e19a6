/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention of com.microsoft, in floats and of quantized inputs, as that of ai.onnx. That
 * of grouped queries is in grouped.c.
 */
#include "network/import/upgrade.h"

#include <string.h>

#include "core/alloc.h"

#define DOMAIN "com.microsoft"

/* ---- rotation ------------------------------------------------------------------------
 */

/* Heads side by side are told by the caches, where a head turns as a whole. */
static void count_heads(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0), *cos = upgrade_input(im, n, 2);
    const bool told = node_integer(n, "num_heads", 0) > 0;
    if (!told && x && x->rank == 3 && cos && cos->rank == 2 && cos->dims[1] > 0)
        node_set_integer(&im->g, n, "num_heads", x->dims[2] / (2 * cos->dims[1]));
}

/* That of the first token, in each row of the batch. */
static void turn_from(struct import *im, struct node *n, int first)
{
    node_set_integer(&im->g, n, "heads", node_integer(n, "num_heads", 0));
    node_set_integer(&im->g, n, "dims", node_integer(n, "rotary_embedding_dim", 0));
    upgrade_rotary(im, n, first, n->in[2], n->in[3]);
}

static void rotary(struct import *im, struct node *n)
{
    const struct value *x = upgrade_input(im, n, 0);
    const struct value *positions = upgrade_input(im, n, 1);
    if (n->n_in != 4 || !x || !positions || positions->rank < 1 || positions->rank > 2 ||
        node_integer(n, "is_packed_batching", 0) || node_real(n, "scale", 1) != 1) {
        import_refuse_node(im, n, NULL,
                           "'position_ids' must be batch x length or one number, 'scale' "
                           "1, and the batch not packed");
        return;
    }
    count_heads(im, n);
    if (im->places >= 0 && !positions->node && !positions->constant)
        turn_from(im, n, im->places);
    else if (positions->rank == 1) {
        const int rows = graph_add_integers(&im->g, 1, &x->dims[0], 1);
        turn_from(im, n, upgrade_two(im, n, "Expand", n->in[1], rows));
    } else {
        const int in[] = {n->in[0], n->in[2], n->in[3], n->in[1]};
        memcpy(n->in, in, sizeof in);
        upgrade_standard(n, "RotaryEmbedding");
    }
}

/* ---- of query, key and value ---------------------------------------------------------
 */

/* A third of the bias for each of query, key and value. */
static void add_biases(struct import *im, struct node *n)
{
    const struct value *bias = upgrade_input(im, n, 3);
    int64_t at = 0;
    for (int i = 0; bias && i < 3; i++) {
        const struct value *x = upgrade_input(im, n, i);
        if (!x || x->rank != 3)
            return;
        const int64_t end = at + x->dims[2], zero = 0;
        const int cut[] = {n->in[3], graph_add_integers(&im->g, 1, &at, 1),
                           graph_add_integers(&im->g, 1, &end, 1),
                           graph_add_integers(&im->g, 1, &zero, 1)};
        const int sum[] = {n->in[i], upgrade_value(upgrade_add(im, n, "Slice", cut, 4))};
        n->in[i] = upgrade_value(upgrade_add(im, n, "Add", sum, 2));
        at = end;
    }
}

/* Which keys count, batch x length: those that a mask has above 0, or the first ones,
 * where there is a number of them for each row. */
static int keys_that_count(struct import *im, const struct node *n, int mask,
                           int64_t length)
{
    struct graph *g = &im->g;
    const int wide = upgrade_cast(im, n, mask, ONNX_INT64);
    const int64_t none = 0, one = 1;
    if (graph_value(g, mask)->rank == 2)
        return upgrade_two(im, n, "Greater", wide, graph_add_integers(g, 1, &none, 1));
    int64_t *places = arena_get(&g->arena, (size_t)length, sizeof *places);
    for (int64_t i = 0; places && i < length; i++)
        places[i] = i;
    const int lengths =
        upgrade_two(im, n, "Unsqueeze", wide, graph_add_integers(g, 1, &one, 1));
    return places ? upgrade_two(im, n, "Less", graph_add_integers(g, 1, places, length),
                                lengths)
                  : VALUE_NONE;
}

/* What is added to scores: batch x 1 x 1 x length. */
static int addend_of(struct import *im, const struct node *n, int mask, int64_t length,
                     int dtype)
{
    const double zero = 0, filter = node_real(n, "mask_filter_value", -10000);
    const int64_t ones[] = {1, 2};
    const int keys = upgrade_two(im, n, "Unsqueeze", keys_that_count(im, n, mask, length),
                                 graph_add_integers(&im->g, 1, ones, 2));
    const int in[] = {keys, upgrade_reals(im, dtype, 0, &zero, 1),
                      upgrade_reals(im, dtype, 0, &filter, 1)};
    return upgrade_value(upgrade_add(im, n, "Where", in, 3));
}

static void multi_head_attention(struct import *im, struct node *n)
{
    const struct value *key = upgrade_input(im, n, 1), *mask = upgrade_input(im, n, 4);
    const int64_t heads = node_integer(n, "num_heads", 0);
    if (!key || key->rank != 3 || !upgrade_input(im, n, 2) || n->n_in > 8 ||
        n->n_out > 3 ||
        (mask && (mask->rank < 1 || mask->rank > 2 || mask->dims[0] != key->dims[0] ||
                  upgrade_input(im, n, 5) || upgrade_input(im, n, 6)))) {
        import_refuse_node(
            im, n, NULL,
            "query, key and value must be apart, of 3 dims, without a "
            "cache of fixed length; a mask of padded keys is taken without "
            "an addend and a past");
        return;
    }
    if (mask)
        node_set_input(&im->g, n, 5,
                       addend_of(im, n, n->in[4], key->dims[1], key->dtype));
    add_biases(im, n);
    for (int i = 3; i < 6; i++) /* bias and padding mask are gone */
        if (i + 2 < n->n_in)
            n->in[i] = n->in[i + 2];
    n->n_in = n->n_in > 5 ? n->n_in - 2 : 3;
    node_set_integer(&im->g, n, "q_num_heads", heads);
    node_set_integer(&im->g, n, "kv_num_heads", heads);
    node_set_integer(&im->g, n, "is_causal", node_integer(n, "unidirectional", 0));
    upgrade_standard(n, "Attention");
}

/* Sizes of query, key and value; false: not known. */
static bool read_hidden(const struct node *n, const struct value *weight, int64_t size[3])
{
    const struct onnx_attribute *a = node_attribute(n, "qkv_hidden_sizes");
    for (int i = 0; i < 3; i++)
        size[i] = a && a->kind == ONNX_A_INTEGERS && a->n == 3 ? a->integers[i]
                                                               : weight->dims[1] / 3;
    return size[0] > 0 && size[1] > 0 && size[2] > 0 &&
           size[0] + size[1] + size[2] == weight->dims[1];
}

/* ---- of one product ------------------------------------------------------------------
 */

/* Queries, keys and values side by side, and what comes with them; values of the graph,
 * or VALUE_NONE. */
struct packed {
    int product, mask, past, addend;
    int64_t size[3], batch, length, dtype;
};

static int input_of(const struct node *n, int i)
{
    return i < n->n_in ? n->in[i] : VALUE_NONE;
}

/* Half `i` of what has both keys and values. */
static int half_of(struct import *im, const struct node *n, int both, int64_t i)
{
    return upgrade_two(im, n, "Gather", both, graph_add_integers(&im->g, 0, &i, 1));
}

/* Keys and values of all steps become one output. */
static void join_present(struct import *im, struct node *n, int present)
{
    struct graph *g = &im->g;
    const int64_t first = 0;
    int *out = arena_get(&g->arena, 3, sizeof *out), parts[2];
    if (!out)
        return;
    out[0] = n->out[0];
    n->out = out;
    n->n_out = 3;
    for (int i = 0; i < 2; i++) {
        out[i + 1] = graph_add_value(g, "");
        if (out[i + 1] >= 0)
            g->values[out[i + 1]].node = n;
        parts[i] = upgrade_two(im, n, "Unsqueeze", out[i + 1],
                               graph_add_integers(g, 1, &first, 1));
    }
    node_set_integer(g, graph_add_node(g, "Concat", parts, 2, &present, 1), "axis", 0);
}

/* What is added to scores, of the mask, of the node's own addend, or of both. */
static int addend_of_both(struct import *im, const struct node *n, const struct packed *p)
{
    const struct value *past = graph_value(&im->g, p->past);
    const int64_t keys = p->length + (past ? past->dims[3] : 0);
    if (p->mask < 0)
        return p->addend;
    const int masked = addend_of(im, n, p->mask, keys, (int)p->dtype);
    return p->addend < 0 ? masked : upgrade_two(im, n, "Add", masked, p->addend);
}

static void attend(struct import *im, struct node *n, const struct packed *p)
{
    struct graph *g = &im->g;
    const int64_t heads = node_integer(n, "num_heads", 0);
    const int64_t *size = p->size;
    const bool reads = n->n_out > 1 && n->out[1] >= 0 && g->values[n->out[1]].readers > 0;
    const int present = reads ? n->out[1] : VALUE_NONE;
    const int in[] = {
        upgrade_part(im, n, p->product, 0, size[0]),
        upgrade_part(im, n, p->product, size[0], size[0] + size[1]),
        upgrade_part(im, n, p->product, size[0] + size[1], size[0] + size[1] + size[2]),
        addend_of_both(im, n, p),
        p->past < 0 ? VALUE_NONE : half_of(im, n, p->past, 0),
        p->past < 0 ? VALUE_NONE : half_of(im, n, p->past, 1),
    };
    n->n_out = 1;
    for (int i = 0; i < (int)ARRAY_LENGTH(in); i++)
        node_set_input(g, n, i, in[i]);
    n->n_in = p->past >= 0 ? 6 : in[3] >= 0 ? 4 : 3;
    if (reads)
        join_present(im, n, present);
    node_set_integer(g, n, "q_num_heads", heads);
    node_set_integer(g, n, "kv_num_heads", heads);
    node_set_integer(g, n, "is_causal", node_integer(n, "unidirectional", 0));
    upgrade_standard(n, "Attention");
}

/* Whether what the node reads can be taken; else it is refused. Inputs: of the mask, of
 * the past, and one of a cache of fixed length. */
static bool read_packed(struct import *im, struct node *n, struct packed *p, int mask,
                        int past, int fixed)
{
    const struct value *x = upgrade_input(im, n, 0), *weight = upgrade_input(im, n, 1);
    const struct value *m = upgrade_input(im, n, mask), *k = upgrade_input(im, n, past);
    if (x && x->rank == 3 && weight && weight->rank == 2 &&
        read_hidden(n, weight, p->size) && (!m || m->rank == 1 || m->rank == 2) &&
        !(m && m->rank == 1 && m->dims[0] != x->dims[0]) && (!k || k->rank == 5) &&
        !upgrade_input(im, n, fixed) && !node_integer(n, "do_rotary", 0) &&
        !node_integer(n, "past_present_share_buffer", 0)) {
        p->mask = input_of(n, mask);
        p->past = input_of(n, past);
        p->batch = x->dims[0];
        p->length = x->dims[1];
        return true;
    }
    import_refuse_node(im, n, NULL,
                       "it is taken without a cache of fixed length and rotation; a mask "
                       "is of batch x length, or a length for each row");
    return false;
}

/* Input, weights and bias of all three, mask, past, addend. */
static void packed_attention(struct import *im, struct node *n)
{
    struct packed p = {.addend = VALUE_NONE};
    if (!read_packed(im, n, &p, 3, 4, 6))
        return;
    p.dtype = upgrade_input(im, n, 0)->dtype;
    p.addend = input_of(n, 5);
    p.product = upgrade_two(im, n, "MatMul", n->in[0], n->in[1]);
    if (upgrade_input(im, n, 2))
        p.product = upgrade_two(im, n, "Add", p.product, n->in[2]);
    attend(im, n, &p);
}

/* Input, weights and bias of all three, scales of both, mask, zero points of both, past:
 * the product is one of integers. */
static void quantized_attention(struct import *im, struct node *n)
{
    struct packed p = {.addend = VALUE_NONE};
    if (!upgrade_input(im, n, 2) || !upgrade_input(im, n, 3) ||
        !upgrade_input(im, n, 4)) {
        import_refuse_node(im, n, NULL, "it must have a bias and two scales");
        return;
    }
    if (!read_packed(im, n, &p, 5, 8, 9))
        return;
    p.dtype = upgrade_input(im, n, 2)->dtype;
    const int in[] = {n->in[0], n->in[1], input_of(n, 6), input_of(n, 7)};
    const int sum = upgrade_value(upgrade_add(im, n, "MatMulInteger", in, 4));
    const int scale = upgrade_two(im, n, "Mul", n->in[3], n->in[4]);
    p.product = upgrade_two(im, n, "Mul", upgrade_cast(im, n, sum, ONNX_FLOAT), scale);
    p.product = upgrade_two(im, n, "Add", p.product, n->in[2]);
    attend(im, n, &p);
}

static const struct rewrite rows[] = {
    {"Attention", DOMAIN, packed_attention},
    {"GroupQueryAttention", DOMAIN, upgrade_grouped},
    {"MultiHeadAttention", DOMAIN, multi_head_attention},
    {"QAttention", DOMAIN, quantized_attention},
    {"RotaryEmbedding", DOMAIN, rotary},
};

const struct rewrite_table upgrade_attention = {rows, ARRAY_LENGTH(rows)};
