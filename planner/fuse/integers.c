/* SPDX-License-Identifier: Apache-2.0
 *
 * The layers of 8 bits that chains between a Dequantize and a Quantize become.
 */
#include "planner/fuse/chain.h"

#include <math.h>
#include <string.h>

#include <strata/layers.h>

enum { WEIGHT, BIAS };  /* of layers that multiply */
enum { FACTOR, SHIFT }; /* of core::Scale */
/* Inputs of core::Attention, and of core::QuantizedAttention. */
enum { VALUES = 2, PAST_K = 4, PAST_V = 5, LENGTHS = 6, QUANTIZED_LENGTHS = 4 };

float chain_value(const struct network_layer *q, size_t w)
{
    float value = 0;
    if (network_has_weight(q, w) &&
        network_weight_load(&q->weights[w], &value, NULL) != STRATA_OK)
        return 0; /* a file's element that is there converts */
    return value;
}

bool chain_same_scale(const struct network_layer *a, const struct network_layer *b)
{
    return chain_value(a, QUANTIZE_SCALE) == chain_value(b, QUANTIZE_SCALE) &&
           chain_value(a, QUANTIZE_ZERO) == chain_value(b, QUANTIZE_ZERO);
}

/* ---- scales ------------------------------------------------------------------------ */

static bool is_byte(int dtype)
{
    return dtype == STRATA_INT8 || dtype == STRATA_UINT8;
}

static bool is_one(const struct network_weight *w)
{
    return w->source == WEIGHT_FILE && w->dtype == STRATA_FP32 &&
           network_elements(w->dims, w->rank) == 1;
}

const char *chain_refuse_scale(const struct network_layer *q, int dtype)
{
    const strata_quantize *p = q->params;
    if (!is_byte(dtype) && dtype != STRATA_E4M3)
        return "its numbers are neither integers of 8 bits nor e4m3";
    if (dtype == STRATA_E4M3 && strcmp(q->type->full_name, "core::Quantize@1") == 0 &&
        !p->saturate)
        return "it does not saturate";
    if (p->block != 0 || !is_one(&q->weights[QUANTIZE_SCALE]))
        return "it has several scales, or none in a file";
    return network_has_weight(q, QUANTIZE_ZERO) && !is_one(&q->weights[QUANTIZE_ZERO])
               ? "its zero is in no file"
               : NULL;
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

/* `to` of strata_quantized. */
static int byte_of(const struct planner *planner, const struct network_layer *quantize)
{
    const int dtype = planner->network->tensors[quantize->outputs[0]].dtype;
    return dtype == STRATA_INT8 ? 1 : dtype == STRATA_UINT8 ? 2 : 3;
}

static bool reads_e4m3(const struct planner *planner, const struct chain *c)
{
    bool any = false;
    for (int i = 0; i < c->n_from; i++)
        any |= planner->network->tensors[c->from[i]->inputs[0]].dtype == STRATA_E4M3;
    return any;
}

static void set_quantized(strata_quantized *q, const struct planner *planner,
                          const struct chain *c)
{
    *q = (strata_quantized){.zero_in = (int64_t)chain_value(c->from[0], QUANTIZE_ZERO)};
    if (c->activation) {
        const strata_activation *a = c->activation->params;
        q->activation = 1 + a->kind;
        q->alpha = strata_activation_alpha(a);
        q->beta = strata_activation_beta(a);
    }
    if (!c->to)
        return;
    q->zero_out = (int64_t)chain_value(c->to, QUANTIZE_ZERO);
    q->to = byte_of(planner, c->to);
}

static struct network_operand operand(const struct network_layer *layer, size_t w,
                                      double absent)
{
    return (struct network_operand){
        network_has_weight(layer, w) ? &layer->weights[w] : NULL, absent};
}

/* A vector of a value for each channel, of weights of the layer and of the Scale. */
static void set_affine(struct made_layer *m, size_t w, int64_t channels,
                       struct network_operand of, struct network_operand shift,
                       const struct network_layer *scale)
{
    const strata_scale *p = scale->params;
    m->affine[w] = (struct network_affine){
        .of = of, .scale = operand(scale, FACTOR, p->scale), .shift = shift};
    m->weights[w] = (struct network_weight){.source = WEIGHT_AFFINE,
                                            .dtype = STRATA_FP32,
                                            .rank = 1,
                                            .dims = {channels},
                                            .name = scale->name};
}

/* Of a layer that multiplies by a constant. A Scale is only folded where dim 1 has them.
 */
static void set_weights(struct made_layer *m, const struct planner *planner,
                        const struct network_layer *layer, const struct chain *c)
{
    const int64_t channels = planner->network->tensors[layer->outputs[0]].dims[1];
    struct network_weight *w = m->weights;
    w[STRATA_QUANTIZED_WEIGHT] = network_weight_stored(&layer->weights[WEIGHT]);
    w[STRATA_QUANTIZED_BIAS] = layer->weights[BIAS];
    w[STRATA_QUANTIZED_FACTORS] = flat(layer->weights[WEIGHT].factors);
    w[STRATA_QUANTIZED_SCALE_IN] = flat(&c->from[0]->weights[QUANTIZE_SCALE]);
    if (c->to)
        w[STRATA_QUANTIZED_SCALE_OUT] = flat(&c->to->weights[QUANTIZE_SCALE]);
    if (!c->scale)
        return;
    const strata_scale *p = c->scale->params;
    set_affine(m, STRATA_QUANTIZED_BIAS, channels, operand(layer, BIAS, 0),
               operand(c->scale, SHIFT, p->shift), c->scale);
    set_affine(m, STRATA_QUANTIZED_FACTORS, channels,
               (struct network_operand){layer->weights[WEIGHT].factors, 0},
               (struct network_operand){NULL, 0}, c->scale);
}

/* NULL, or why a layer's weight is no constant of INT8, of E4M3 for an input of that. */
static const char *refuse_weight(const struct network_layer *layer,
                                 const struct planner *planner, const struct chain *c)
{
    const struct network_weight *w = &layer->weights[WEIGHT];
    const bool floats = reads_e4m3(planner, c);
    if (!w->factors || w->view.dtype != (floats ? WEIGHT_F8_E4M3 : WEIGHT_I8))
        return floats ? "its weight is not E4M3 with a weight_scale"
                      : "its weight is not INT8 with a weight_scale";
    return w->factors->shared ? "its weight has factors of groups" : NULL;
}

/* What is added to sums, which may be rounded before. */
static void set_addend(struct made_layer *m, const struct planner *planner,
                       const struct chain *c)
{
    strata_quantized_convolution *p = &m->params.quantized_convolution;
    p->zero_addend = (int64_t)chain_value(c->addend, QUANTIZE_ZERO);
    m->weights[STRATA_QUANTIZED_SCALE_ADDEND] = flat(&c->addend->weights[QUANTIZE_SCALE]);
    if (!c->between)
        return;
    p->zero_between = (int64_t)chain_value(c->between, QUANTIZE_ZERO);
    p->between = byte_of(planner, c->between);
    m->weights[STRATA_QUANTIZED_SCALE_BETWEEN] =
        flat(&c->between->weights[QUANTIZE_SCALE]);
}

static const char *make_convolution(struct made_layer *m, const struct planner *planner,
                                    const struct network_layer *layer,
                                    const struct chain *c)
{
    const char *why = refuse_weight(layer, planner, c);
    m->layer.type = planner->network->quantized_convolution;
    if (why || !m->layer.type)
        return why ? why : "there is no QuantizedConvolution here";
    m->params.quantized_convolution.convolution =
        *(const strata_convolution *)layer->params;
    set_quantized(&m->params.quantized_convolution.quantized, planner, c);
    set_weights(m, planner, layer, c);
    if (c->addend)
        set_addend(m, planner, c);
    return NULL;
}

static const char *make_deconvolution(struct made_layer *m, const struct planner *planner,
                                      const struct network_layer *layer,
                                      const struct chain *c)
{
    const strata_deconvolution *p = layer->params;
    const char *why = refuse_weight(layer, planner, c);
    m->layer.type = planner->network->quantized_deconvolution;
    if (why || !m->layer.type)
        return why ? why : "there is no QuantizedDeconvolution here";
    const struct network_weight *factors = layer->weights[WEIGHT].factors;
    if (p->groups > 1 && network_elements(factors->dims, factors->rank) > 1)
        return "its groups share scales";
    m->params.quantized_deconvolution.deconvolution = *p;
    set_quantized(&m->params.quantized_deconvolution.quantized, planner, c);
    set_weights(m, planner, layer, c);
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
    const char *why = refuse_weight(layer, planner, c);
    const bool matrix = x->rank == 2;
    m->layer.type = matrix ? planner->network->quantized_product
                           : planner->network->quantized_convolution;
    if (why || !m->layer.type)
        return why ? why : "there is no layer of 8 bits for it here";
    if (!matrix && reads_e4m3(planner, c))
        return "e4m3 is for a matrix";
    if (!matrix && (p->transposed || x->rank > 5))
        return "its weight is transposed, and its input no matrix";
    set_weights(m, planner, layer, c);
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
    const char *why = refuse_weight(layer, planner, c);
    m->layer.type = planner->network->quantized_product;
    if (why || !m->layer.type)
        return why ? why : "there is no QuantizedProduct here";
    if (p->transpose_a || p->alpha != 1 || layer->n_inputs != 1)
        return "it is more than a product by a constant";
    m->params.quantized_product =
        (strata_quantized_product){.transposed = p->transpose_b};
    set_quantized(&m->params.quantized_product.quantized, planner, c);
    set_weights(m, planner, layer, c);
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
    m->params.quantized_sum.zero_b = (int64_t)chain_value(c->from[1], QUANTIZE_ZERO);
    m->weights[0] = flat(&c->from[0]->weights[QUANTIZE_SCALE]);
    m->weights[1] = flat(&c->from[1]->weights[QUANTIZE_SCALE]);
    m->weights[2] = flat(&c->to->weights[QUANTIZE_SCALE]);
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
        if (!chain_same_scale(c->from[i], c->to) ||
            tensors[c->from[i]->inputs[0]].dtype != tensors[c->to->outputs[0]].dtype)
            return "what goes in has another scale, zero or dtype than what comes out";
    for (size_t w = 0; w < layer->type->n_weights; w++)
        if (network_has_weight(layer, w))
            return "it has weights";
    m->layer.type = layer->type;
    m->own_params = layer->params;
    return NULL;
}

/* What is added becomes the integer that stands for it. */
static const char *make_padding(struct made_layer *m, const struct planner *planner,
                                const struct network_layer *layer, const struct chain *c)
{
    const char *why = make_mover(m, planner, layer, c);
    if (why)
        return why;
    const double least = byte_of(planner, c->to) == 1 ? -128 : 0;
    const strata_padding *p = layer->params;
    const float steps = rintf((float)p->value / chain_value(c->to, QUANTIZE_SCALE));
    const double whole = (double)steps + (double)chain_value(c->to, QUANTIZE_ZERO);
    m->own_params = NULL;
    m->params.padding = *p;
    m->params.padding.value = isnan(whole) ? 0 : fmin(fmax(whole, least), least + 255);
    return NULL;
}

static const char *make_resize(struct made_layer *m, const struct planner *planner,
                               const struct network_layer *layer, const struct chain *c)
{
    return ((const strata_resize *)layer->params)->mode != STRATA_NEAREST
               ? "it interpolates"
               : make_mover(m, planner, layer, c);
}

static const char *make_pooling(struct made_layer *m, const struct planner *planner,
                                const struct network_layer *layer, const struct chain *c)
{
    const strata_pooling *p = layer->params;
    if (p->kind == STRATA_POOL_MAX)
        return make_mover(m, planner, layer, c);
    m->layer.type = planner->network->quantized_pooling;
    if (p->kind != STRATA_POOL_AVERAGE)
        return "it is neither a maximum nor an average";
    if (!m->layer.type)
        return "there is no QuantizedPooling here";
    m->params.quantized_pooling.pooling = *p;
    set_quantized(&m->params.quantized_pooling.quantized, planner, c);
    m->weights[0] = flat(&c->from[0]->weights[QUANTIZE_SCALE]);
    if (c->to)
        m->weights[1] = flat(&c->to->weights[QUANTIZE_SCALE]);
    return NULL;
}

const char *chain_round(struct made_layer *m, const struct planner *planner,
                        const struct network_layer *layer, const struct network_layer *to)
{
    const strata_pooling *p = layer->params;
    if (strcmp(layer->type->full_name, "core::Pooling@1") != 0 ||
        p->kind != STRATA_POOL_MAX || p->indices)
        return "it is no maximum";
    m->layer.type = planner->network->quantized_pooling;
    if (!m->layer.type)
        return "there is no QuantizedPooling here";
    m->params.quantized_pooling.pooling = *p;
    m->params.quantized_pooling.quantized = (strata_quantized){
        .zero_out = (int64_t)chain_value(to, QUANTIZE_ZERO), .to = byte_of(planner, to)};
    m->weights[0] = m->weights[1] = flat(&to->weights[QUANTIZE_SCALE]);
    return NULL;
}

/* Inputs of q, k and v in ports of their own, or packed in one; then what stays. */
static const char *make_attention(struct made_layer *m, const struct planner *planner,
                                  const struct network_layer *layer,
                                  const struct chain *c)
{
    const strata_attention *p = layer->params;
    struct network_weight *w = m->weights;
    m->layer.type = planner->network->quantized_attention;
    if (!m->layer.type)
        return "there is no QuantizedAttention here";
    if (!reads_e4m3(planner, c) || p->cache || p->present ||
        p->scores != STRATA_SCORES_NONE)
        return "it is of e4m3 alone, and gives neither scores nor keys";
    for (int i = 0; i < m->layer.n_inputs; i++) {
        const int port = network_port(layer, i);
        if (i < c->n_from ? port != i : port == PAST_K || port == PAST_V)
            return "it has keys of a past, or lacks some";
        m->ports[i] = port == LENGTHS ? QUANTIZED_LENGTHS : port;
    }
    m->ported = layer->ports != NULL;
    m->params.quantized_attention = (strata_quantized_attention){.attention = *p};
    for (int i = 0; i < c->n_from; i++)
        if (!(chain_value(c->from[i], QUANTIZE_SCALE) > 0))
            return "a scale is not above 0";
    for (int i = 0; i <= VALUES; i++) {
        const struct network_layer *from = c->from[i < c->n_from ? i : 0];
        w[STRATA_QUANTIZED_SCALE_Q + i] = flat(&from->weights[QUANTIZE_SCALE]);
    }
    if (c->to) {
        m->params.quantized_attention.to = 1;
        w[STRATA_QUANTIZED_SCALE_Y] = flat(&c->to->weights[QUANTIZE_SCALE]);
    }
    return NULL;
}

static const struct rule {
    const char *type;
    bool computes; /* an Activation may follow */
    bool adds;     /* and before that a sum */
    bool floats;   /* it takes E4M3, too */
    const char *(*make)(struct made_layer *m, const struct planner *planner,
                        const struct network_layer *layer, const struct chain *c);
} rules[] = {
    {"core::Convolution@1", true, true, false, make_convolution},
    {"core::Deconvolution@1", true, false, false, make_deconvolution},
    {"core::FullyConnected@1", true, false, true, make_fully_connected},
    {"core::MatrixMultiply@1", true, false, true, make_product},
    {"core::ElementWise@1", true, false, false, make_sum},
    {"core::Attention@1", false, false, true, make_attention},
    {"core::Concatenation@1", false, false, true, make_mover},
    {"core::Identity@1", false, false, true, make_mover},
    {"core::Padding@1", false, false, false, make_padding},
    {"core::Pooling@1", false, false, false, make_pooling},
    {"core::Resize@1", false, false, false, make_resize},
    {"core::Shuffle@1", false, false, true, make_mover},
    {"core::Slice@1", false, false, true, make_mover},
};

static const struct rule *rule_of(const struct network_layer *layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
        if (strcmp(layer->type->full_name, rules[i].type) == 0)
            return &rules[i];
    return NULL;
}

const char *chain_refuse(const struct network_layer *layer)
{
    return rule_of(layer) ? NULL : "it computes in floats";
}

int chain_inputs(const struct network_layer *layer)
{
    int n = 0;
    if (strcmp(layer->type->full_name, "core::Attention@1") != 0)
        return layer->n_inputs;
    while (n < layer->n_inputs && network_port(layer, n) <= VALUES)
        n++;
    return n;
}

bool chain_adds(const struct network_layer *layer)
{
    const struct rule *rule = rule_of(layer);
    return rule && rule->adds;
}

bool chain_computes(const struct network_layer *layer)
{
    const struct rule *rule = rule_of(layer);
    return rule && rule->computes;
}

const char *chain_make(struct made_layer *m, const struct planner *planner,
                       const struct network_layer *layer, const struct chain *c)
{
    const struct rule *rule = rule_of(layer);
    return !rule->floats && reads_e4m3(planner, c) ? "it does not compute in e4m3"
                                                   : rule->make(m, planner, layer, c);
}
