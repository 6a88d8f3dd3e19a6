/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers between a Dequantize and a Quantize as one that computes in 8 bits. A layer all
 * of whose inputs a Dequantize makes, and whose weight is INT8, begins a group that reads
 * the integers instead; an Activation and a Quantize after it go into its pass. A layer
 * that only moves or picks elements takes the integers as they are, where what goes in
 * and what comes out have the same scale. Whether a group runs is the plan's choice; a
 * Dequantize all of whose readers do without it then makes nothing.
 */
#include "planner/planner.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

enum { SCALE, ZERO };  /* weights of Quantize and Dequantize */
enum { WEIGHT, BIAS }; /* of layers that multiply */

/* A chain from a layer that could compute with integers. */
struct chain {
    const struct network_layer *from[PLAN_MAX_PORTS]; /* the Dequantize of each input */
    int n_from;
    int nodes[3]; /* the layer, an Activation, a Quantize */
    int n;
    const struct network_layer *activation, *to; /* or NULL */
};

static bool is_type(const struct network_layer *layer, const char *name)
{
    return strcmp(layer->type->full_name, name) == 0;
}

static bool is_byte(int dtype)
{
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8;
}

/* ---- scales ------------------------------------------------------------------------ */

static bool is_one(const struct network_weight *w)
{
    return w->source == WEIGHT_FILE && w->dtype == STRATA_FP32 &&
           network_elements(w->dims, w->rank) == 1;
}

/* NULL, or why a Quantize or Dequantize is not one scale of a tensor of 8 bits. */
static const char *refuse_scale(const struct network_layer *q, int dtype)
{
    const strata_quantize *p = q->params;
    if (!is_byte(dtype))
        return "its integers are not of 8 bits";
    if (p->block != 0 || !is_one(&q->weights[SCALE]))
        return "it has several scales, or none in a file";
    return network_has_weight(q, ZERO) && !is_one(&q->weights[ZERO])
               ? "its zero is in no file"
               : NULL;
}

static float value_of(const struct network_layer *q, size_t w)
{
    float value = 0;
    if (network_has_weight(q, w) &&
        network_weight_load(&q->weights[w], &value, NULL) != STRATA_OK)
        return 0; /* a file's element that is there converts */
    return value;
}

static bool same_scale(const struct network_layer *a, const struct network_layer *b)
{
    return value_of(a, SCALE) == value_of(b, SCALE) &&
           value_of(a, ZERO) == value_of(b, ZERO);
}

/* ---- chains ------------------------------------------------------------------------ */

/* NULL, or why not all that a layer reads is dequantised. */
static const char *find_inputs(struct chain *c, const struct planner *planner, int node)
{
    const strata_network *net = planner->network;
    const struct planner_node *n = &planner->nodes[node];
    const char *why = NULL;
    if (n->n_in < 1 || n->n_out != 1 || n->rewritten || n->layer->ports ||
        2 * n->n_in + (n->residual >= 0) > PLAN_MAX_PORTS)
        return "it has too many inputs";
    for (int i = 0; i < n->n_in && !why; i++) {
        const int producer = net->tensors[n->in[i]].producer;
        if (producer < 0 || !is_type(&net->layers[producer], "core::Dequantize@1"))
            return "not all that it reads is dequantised";
        c->from[c->n_from++] = &net->layers[producer];
        why = refuse_scale(&net->layers[producer],
                           net->tensors[net->layers[producer].inputs[0]].dtype);
    }
    return why;
}

/* The reader of what a node makes, if nobody else needs that; or -1. */
static int only_reader(const struct planner *planner, const int *reader, int node)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    const int tensor = layer->outputs[0];
    return planner->is_output[tensor] || planner->readers[tensor] != 1 ||
                   planner->network->tensors[tensor].formats ||
                   planner->nodes[reader[tensor]].layer->impl
               ? -1
               : reader[tensor];
}

/* Kinds that are exact in FP32, whoever computes them. */
static bool is_fusible(const struct network_layer *layer)
{
    return is_type(layer, "core::Activation@1") &&
           ((const strata_activation *)layer->params)->kind <= STRATA_CLIP;
}

static void find_chain(struct chain *c, const struct planner *planner, const int *reader,
                       int node, bool computes)
{
    c->nodes[c->n++] = node;
    int next = only_reader(planner, reader, node);
    if (next >= 0 && computes && is_fusible(planner->nodes[next].layer)) {
        c->activation = planner->nodes[next].layer;
        c->nodes[c->n++] = next;
        next = only_reader(planner, reader, next);
    }
    if (next < 0 || !is_type(planner->nodes[next].layer, "core::Quantize@1"))
        return;
    const struct network_layer *to = planner->nodes[next].layer;
    if (refuse_scale(to, planner->network->tensors[to->outputs[0]].dtype))
        return;
    c->to = to;
    c->nodes[c->n++] = next;
}

/* ---- layers ------------------------------------------------------------------------ */

/* A weight of one element, as one of rank 1. */
static struct network_weight flat(const struct network_weight *w)
{
    struct network_weight f = *w;
    f.dims[0] = network_elements(w->dims, w->rank);
    f.rank = 1;
    return f;
}

static void set_quantized(strata_quantized *q, const struct planner *planner,
                          const struct chain *c)
{
    *q = (strata_quantized){.zero_in = (int64_t)value_of(c->from[0], ZERO)};
    if (c->activation) {
        const strata_activation *a = c->activation->params;
        q->activation = 1 + a->kind;
        q->alpha = strata_activation_alpha(a);
        q->beta = strata_activation_beta(a);
    }
    if (!c->to)
        return;
    q->zero_out = (int64_t)value_of(c->to, ZERO);
    q->to = planner->network->tensors[c->to->outputs[0]].dtype == STRATA_INT8 ? 1 : 2;
}

/* Of a layer that multiplies by a constant. */
static void set_weights(struct made_layer *m, const struct network_layer *layer,
                        const struct chain *c)
{
    struct network_weight *w = m->weights;
    w[STRATA_QUANTIZED_WEIGHT] = network_weight_stored(&layer->weights[WEIGHT]);
    w[STRATA_QUANTIZED_BIAS] = layer->weights[BIAS];
    w[STRATA_QUANTIZED_FACTORS] = flat(layer->weights[WEIGHT].factors);
    w[STRATA_QUANTIZED_SCALE_IN] = flat(&c->from[0]->weights[SCALE]);
    if (c->to)
        w[STRATA_QUANTIZED_SCALE_OUT] = flat(&c->to->weights[SCALE]);
}

/* NULL, or why a layer's weight is no INT8 constant. */
static const char *refuse_weight(const struct network_layer *layer)
{
    const struct network_weight *w = &layer->weights[WEIGHT];
    return !w->factors || w->view.dtype != WEIGHT_I8
               ? "its weight is not INT8 with a weight_scale"
               : NULL;
}

static const char *make_convolution(struct made_layer *m, const struct planner *planner,
                                    const struct network_layer *layer,
                                    const struct chain *c)
{
    const char *why = refuse_weight(layer);
    m->layer.type = planner->network->quantized_convolution;
    if (why || !m->layer.type)
        return why ? why : "there is no QuantizedConvolution here";
    m->params.quantized_convolution.convolution =
        *(const strata_convolution *)layer->params;
    set_quantized(&m->params.quantized_convolution.quantized, planner, c);
    set_weights(m, layer, c);
    return NULL;
}

/* Image by image a window over all of it; of a matrix a product. */
static const char *make_fully_connected(struct made_layer *m,
                                        const struct planner *planner,
                                        const struct network_layer *layer,
                                        const struct chain *c)
{
    const strata_fully_connected *p = layer->params;
    const struct network_tensor *x = &planner->network->tensors[layer->inputs[0]];
    const char *why = refuse_weight(layer);
    const bool matrix = x->rank == 2;
    m->layer.type = matrix ? planner->network->quantized_product
                           : planner->network->quantized_convolution;
    if (why || !m->layer.type)
        return why ? why : "there is no layer of 8 bits for it here";
    if (!matrix && (p->transposed || x->rank > 5))
        return "its weight is transposed, and its input no matrix";
    set_weights(m, layer, c);
    if (matrix) {
        m->params.quantized_product = (strata_quantized_product){
            .transposed = !p->transposed}; /* (M, K) is N x K */
        set_quantized(&m->params.quantized_product.quantized, planner, c);
        return NULL;
    }
    struct network_weight *w = &m->weights[STRATA_QUANTIZED_WEIGHT];
    w->rank = x->rank;
    memcpy(w->dims + 1, x->dims + 1, (size_t)(x->rank - 1) * sizeof *w->dims);
    m->params.quantized_convolution.convolution = (strata_convolution){.groups = 1};
    set_quantized(&m->params.quantized_convolution.quantized, planner, c);
    return NULL;
}

static const char *make_product(struct made_layer *m, const struct planner *planner,
                                const struct network_layer *layer, const struct chain *c)
{
    const strata_matrix_multiply *p = layer->params;
    const char *why = refuse_weight(layer);
    m->layer.type = planner->network->quantized_product;
    if (why || !m->layer.type)
        return why ? why : "there is no QuantizedProduct here";
    if (p->transpose_a || p->alpha != 1 || layer->n_inputs != 1)
        return "it is more than a product by a constant";
    m->params.quantized_product =
        (strata_quantized_product){.transposed = p->transpose_b};
    set_quantized(&m->params.quantized_product.quantized, planner, c);
    set_weights(m, layer, c);
    return NULL;
}

static const char *make_sum(struct made_layer *m, const struct planner *planner,
                            const struct network_layer *layer, const struct chain *c)
{
    const struct network_tensor *tensors = planner->network->tensors;
    const struct network_tensor *a = &tensors[layer->inputs[0]];
    const struct network_tensor *b = &tensors[layer->inputs[layer->n_inputs - 1]];
    m->layer.type = planner->network->quantized_sum;
    if (!m->layer.type)
        return "there is no QuantizedSum here";
    if (((const strata_elementwise *)layer->params)->op != STRATA_SUM ||
        layer->n_inputs != 2 || a->rank != b->rank ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
        return "it is no sum of two tensors of one shape";
    if (!c->to)
        return "its output is not quantised, and is as quick to compute in floats";
    set_quantized(&m->params.quantized_sum.quantized, planner, c);
    m->params.quantized_sum.zero_b = (int64_t)value_of(c->from[1], ZERO);
    m->weights[0] = flat(&c->from[0]->weights[SCALE]);
    m->weights[1] = flat(&c->from[1]->weights[SCALE]);
    m->weights[2] = flat(&c->to->weights[SCALE]);
    return NULL;
}

/* The layer itself, of integers. */
static const char *make_mover(struct made_layer *m, const struct planner *planner,
                              const struct network_layer *layer, const struct chain *c)
{
    const struct network_tensor *tensors = planner->network->tensors;
    if (!c->to)
        return "its output is not quantised";
    for (int i = 0; i < c->n_from; i++)
        if (!same_scale(c->from[i], c->to) ||
            tensors[c->from[i]->inputs[0]].dtype != tensors[c->to->outputs[0]].dtype)
            return "what goes in has another scale, zero or dtype than what comes out";
    for (size_t w = 0; w < layer->type->n_weights; w++)
        if (network_has_weight(layer, w))
            return "it has weights";
    m->layer.type = layer->type;
    m->own_params = layer->params;
    return NULL;
}

static const char *make_resize(struct made_layer *m, const struct planner *planner,
                               const struct network_layer *layer, const struct chain *c)
{
    return ((const strata_resize *)layer->params)->mode != STRATA_NEAREST
               ? "it interpolates"
               : make_mover(m, planner, layer, c);
}

static const struct rule {
    const char *type;
    bool computes; /* an Activation may follow */
    const char *(*make)(struct made_layer *m, const struct planner *planner,
                        const struct network_layer *layer, const struct chain *c);
} rules[] = {
    {"core::Convolution@1", true, make_convolution},
    {"core::FullyConnected@1", true, make_fully_connected},
    {"core::MatrixMultiply@1", true, make_product},
    {"core::ElementWise@1", true, make_sum},
    {"core::Concatenation@1", false, make_mover},
    {"core::Identity@1", false, make_mover},
    {"core::Resize@1", false, make_resize},
    {"core::Shuffle@1", false, make_mover},
    {"core::Slice@1", false, make_mover},
};

static const struct rule *rule_of(const struct network_layer *layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (is_type(layer, rules[i].type))
            return &rules[i];
    return NULL;
}

/* NULL and a layer; or why there is none. */
static const char *make(struct made_layer *m, struct chain *c,
                        const struct planner *planner, const int *reader, int node)
{
    const struct network_layer *layer = planner->nodes[node].layer;
    const struct rule *rule = rule_of(layer);
    const char *why = rule ? NULL : "it computes in floats";
    if (!why)
        why = find_inputs(c, planner, node);
    if (!why && layer->impl)
        why = "the network asks for an impl of it";
    if (why)
        return why;
    find_chain(c, planner, reader, node, rule->computes);
    *m = (struct made_layer){.layer = {.name = layer->name,
                                       .place = layer->place,
                                       .n_inputs = c->n_from,
                                       .n_outputs = 1},
                             .kind = MADE_QUANTIZED};
    for (int i = 0; i < c->n_from; i++)
        m->inputs[i] = c->from[i]->inputs[0];
    m->output = planner->nodes[c->nodes[c->n - 1]].layer->outputs[0];
    return rule->make(m, planner, layer, c);
}

/* ---- notes ------------------------------------------------------------------------- */

static int note(struct planner_fusion *f, bool possible, int into, strata_error *err,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

static int note(struct planner_fusion *f, bool possible, int into, strata_error *err,
                const char *format, ...)
{
    char text[400];
    va_list list;
    if (f->reason && (f->possible || !possible))
        return STRATA_OK; /* another can take it, or has said why not */
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    free(f->reason);
    f->possible = possible;
    f->into = into;
    return (f->reason = duplicate(text, err)) ? STRATA_OK : STRATA_ENOMEM;
}

/* Of each Dequantize that a node reads, and of the Quantize that reads the node. */
static int note_refusal(struct planner *planner, const int *reader, int node,
                        const char *why, strata_error *err)
{
    const strata_network *net = planner->network;
    const struct network_layer *layer = planner->nodes[node].layer;
    int status = STRATA_OK;
    for (int i = 0; i < layer->n_inputs && status == STRATA_OK; i++) {
        const int p = net->tensors[layer->inputs[i]].producer;
        if (p >= 0 && is_type(&net->layers[p], "core::Dequantize@1"))
            status =
                note(&planner->fusions[p], false, node, err, "%s: %s", layer->name, why);
    }
    for (int k = 0; k < layer->n_outputs && status == STRATA_OK; k++) {
        const int next = reader[layer->outputs[k]];
        if (next >= 0 && is_type(&net->layers[next], "core::Quantize@1"))
            status = note(&planner->fusions[next], false, node, err, "%s: %s",
                          layer->name, why);
    }
    return status;
}

static int note_group(struct planner *planner, const struct chain *c, strata_error *err)
{
    static const char how[] = "computed with integers";
    const char *name = planner->nodes[c->nodes[0]].layer->name;
    int status = STRATA_OK;
    for (int i = 0; i < c->n_from && status == STRATA_OK; i++)
        status = note(&planner->fusions[c->from[i] - planner->network->layers], true,
                      c->nodes[0], err, "%s: %s", name, how);
    for (int i = 1; i < c->n && status == STRATA_OK; i++)
        status = note(&planner->fusions[c->nodes[i]], true, c->nodes[0], err, "%s: %s",
                      name, how);
    return status;
}

/* ---- groups ------------------------------------------------------------------------ */

static int add_group(struct planner *planner, const int *reader, int node,
                     strata_error *err)
{
    struct chain c = {.n = 0};
    struct made_layer made;
    const char *why = make(&made, &c, planner, reader, node);
    if (why)
        return note_refusal(planner, reader, node, why, err);
    for (int i = 1; i < c.n; i++) {
        planner->nodes[c.nodes[i - 1]].next = c.nodes[i];
        planner->nodes[c.nodes[i]].previous = c.nodes[i - 1];
    }
    int status = planner_add_group(planner, node, &made, c.n, "with integers", err);
    if (status != STRATA_OK)
        return status;
    planner->nodes[node].group->instead = true;
    return note_group(planner, &c, err);
}

/* Whether each reader of a Dequantize is a group that reads its integers. */
static bool has_instead(const struct planner *planner, int tensor)
{
    bool all = !planner->is_output[tensor] && planner->readers[tensor] > 0;
    for (size_t i = 0; i < planner->n_nodes && all; i++) {
        const struct planner_node *n = &planner->nodes[i];
        bool reads = false;
        for (int k = 0; k < n->n_in; k++)
            reads |= n->in[k] == tensor;
        all = !reads || (n->group && n->group->instead);
    }
    return all;
}

int planner_make_quantized(struct planner *planner, strata_error *err)
{
    const strata_network *net = planner->network;
    int status = STRATA_OK, *reader;
    if (!net->quantized_convolution && !net->quantized_product && !net->quantized_sum)
        return STRATA_OK; /* nothing is dequantised */
    if (!(reader = malloc(net->n_tensors * sizeof *reader)))
        return error_no_memory(err, net->n_tensors * sizeof *reader, "the groups");
    memset(reader, -1, net->n_tensors * sizeof *reader);
    for (size_t i = 0; i < planner->n_nodes; i++)
        for (int k = 0; k < planner->nodes[i].n_in; k++)
            reader[planner->nodes[i].in[k]] = (int)i;
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++)
        if (!is_type(planner->nodes[i].layer, "core::Dequantize@1") &&
            !is_type(planner->nodes[i].layer, "core::Quantize@1"))
            status = add_group(planner, reader, (int)i, err);
    for (size_t i = 0; i < planner->n_nodes && status == STRATA_OK; i++)
        planner->nodes[i].unread =
            is_type(planner->nodes[i].layer, "core::Dequantize@1") &&
            has_instead(planner, planner->nodes[i].layer->outputs[0]);
    free(reader);
    return status;
}
