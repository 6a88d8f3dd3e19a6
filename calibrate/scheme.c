/* SPDX-License-Identifier: Apache-2.0
 *
 * Which layers and tensors are quantised.
 */
#include "calibrate/scheme.h"

#include <strata/layers.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* ---- layers that compute -------------------------------------------------------------
 */

static int64_t product(const int64_t *dims, int rank)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dims[d]; /* of a weight, whose elements fit */
    return n;
}

static void order_convolution(const struct network_layer *layer, const int64_t *dims,
                              int rank, int64_t order[3])
{
    (void)layer;
    order[ORDER_OUTER] = 1;
    order[ORDER_CHANNELS] = dims[0];
    order[ORDER_INNER] = product(dims + 1, rank - 1);
}

/* With groups a scale is that of a channel of each. */
static void order_deconvolution(const struct network_layer *layer, const int64_t *dims,
                                int rank, int64_t order[3])
{
    (void)layer;
    order[ORDER_OUTER] = dims[0];
    order[ORDER_CHANNELS] = dims[1];
    order[ORDER_INNER] = product(dims + 2, rank - 2);
}

static void order_matrix(const int64_t *dims, bool channels_last, int64_t order[3])
{
    order[ORDER_OUTER] = channels_last ? dims[0] : 1;
    order[ORDER_CHANNELS] = dims[channels_last];
    order[ORDER_INNER] = channels_last ? 1 : dims[1];
}

static void order_fully_connected(const struct network_layer *layer, const int64_t *dims,
                                  int rank, int64_t order[3])
{
    (void)rank;
    order_matrix(dims, ((const strata_fully_connected *)layer->params)->transposed,
                 order);
}

static void order_multiply(const struct network_layer *layer, const int64_t *dims,
                           int rank, int64_t order[3])
{
    (void)rank;
    order_matrix(dims, !((const strata_matrix_multiply *)layer->params)->transpose_b,
                 order);
}

static const char matrix_multiply[] = "core::MatrixMultiply@1";
static const struct computes all_computes[] = {
    {"core::Convolution@1", "weight", "bias", 1, false, order_convolution},
    {"core::Deconvolution@1", "weight", "bias", 1, false, order_deconvolution},
    {"core::FullyConnected@1", "weight", "bias", 1, true, order_fully_connected},
    {matrix_multiply, "b", "bias", -1, true, order_multiply},
};

int scheme_weight(const struct network_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->type->n_weights; i++)
        if (strcmp(layer->type->weights[i].name, name) == 0)
            return (int)i;
    return -1;
}

int scheme_channel_dim(const strata_network *net, const struct network_layer *layer,
                       const struct computes *c)
{
    const int rank = net->tensors[layer->outputs[0]].rank;
    return c->channel_dim < 0 ? c->channel_dim + rank : c->channel_dim;
}

int64_t scheme_channels(const strata_network *net, const struct network_layer *layer,
                        const struct computes *c)
{
    return net->tensors[layer->outputs[0]].dims[scheme_channel_dim(net, layer, c)];
}

static bool is_float(const strata_network *net, int tensor)
{
    return net->tensors[tensor].dtype == STRATA_FP32;
}

/* Floats in, floats out, and floats as the weight. */
const struct computes *scheme_computes(const strata_network *net,
                                       const struct network_layer *layer)
{
    for (size_t i = 0; i < ARRAY_LENGTH(all_computes); i++) {
        const struct computes *c = &all_computes[i];
        if (strcmp(layer->type->full_name, c->type) != 0)
            continue;
        const int weight = scheme_weight(layer, c->weight);
        const bool constant = weight >= 0 && network_has_weight(layer, (size_t)weight) &&
                              layer->weights[weight].dtype == STRATA_FP32 &&
                              !layer->weights[weight].factors;
        return constant && is_float(net, layer->inputs[0]) &&
                       is_float(net, layer->outputs[0])
                   ? c
                   : NULL;
    }
    return NULL;
}

/* ---- layers that carry ---------------------------------------------------------------
 */

static bool carries_pooling(const void *params)
{
    const strata_pooling *p = params;
    return p->kind == STRATA_POOL_MAX && !p->indices;
}

static bool carries_average(const void *params)
{
    return ((const strata_pooling *)params)->kind == STRATA_POOL_AVERAGE;
}

static bool carries_resize(const void *params)
{
    const strata_resize *p = params;
    return p->mode == STRATA_NEAREST && p->coordinates != STRATA_TF_CROP_AND_RESIZE;
}

static bool carries_padding(const void *params)
{
    const strata_padding *p = params;
    return p->mode != STRATA_PADDING_CONSTANT || p->value == 0;
}

static bool carries_sum(const void *params)
{
    return ((const strata_elementwise *)params)->op == STRATA_SUM;
}

/* Elements come out as they went in, so that one scale does for all; a sum's and an
 * average's are new, so that each of their tensors has a scale of its own. */
static const struct carries {
    const char *type;
    bool (*holds)(const void *params); /* NULL: always */
    bool sums, averages;
    bool any; /* of any type, not int8 alone */
} all_carries[] = {
    {"core::Pooling@1", carries_pooling},
    {"core::Pooling@1", carries_average, .averages = true},
    {"core::Resize@1", carries_resize},
    {"core::Padding@1", carries_padding},
    {"core::Concatenation@1", .any = true},
    {"core::Shuffle@1", .any = true},
    {"core::Slice@1", .any = true},
    {"core::Identity@1", .any = true},
    {"core::ElementWise@1", carries_sum, .sums = true},
};

static const struct carries *carries(const struct network_layer *layer,
                                     const struct quant_type *type)
{
    for (size_t i = 0; i < ARRAY_LENGTH(all_carries); i++) {
        const struct carries *c = &all_carries[i];
        if (strcmp(layer->type->full_name, c->type) == 0 &&
            (c->any || type == &quant_int8) && (!c->holds || c->holds(layer->params)))
            return c;
    }
    return NULL;
}

/* ---- tensors -------------------------------------------------------------------------
 */

static int first_of(const struct scheme *s, int tensor)
{
    while (s->shares[tensor] != tensor)
        tensor = s->shares[tensor];
    return tensor;
}

static void share(struct scheme *s, int a, int b)
{
    a = first_of(s, a);
    b = first_of(s, b);
    s->shares[a > b ? a : b] = a > b ? b : a;
}

static void take(struct scheme *s, int tensor)
{
    s->n_tensors += !s->tensors[tensor];
    s->tensors[tensor] = true;
}

/* Whether a sum of the tensor can be part of a computing layer's pass, which has it in
 * more than eight bits: only Scale and Activation are between, and nobody else reads.
 * Whether that layer is kept does not matter, so that what becomes int8 with some layers
 * kept is some of what does with none. */
static bool in_pass(const struct scheme *s, int tensor)
{
    const strata_network *net = s->net;
    while (s->readers[tensor] == 1 && net->tensors[tensor].producer >= 0) {
        const int at = net->tensors[tensor].producer;
        const struct network_layer *l = &net->layers[at];
        if (scheme_computes(net, l))
            return true;
        if (strcmp(l->type->full_name, "core::Scale@1") != 0 &&
            strcmp(l->type->full_name, "core::Activation@1") != 0)
            return false;
        tensor = l->inputs[0];
    }
    return false;
}

/* Whether a kept layer makes what a max Pooling reads. Rounding keeps the order of
 * values, so the maxima are the same integers where the smaller tensor is rounded
 * instead. */
static bool pools_floats(const struct scheme *s, const struct network_layer *l)
{
    const struct network_tensor *tensors = s->net->tensors;
    int tensor = l->inputs[0];
    if (strcmp(l->type->full_name, "core::Pooling@1") != 0 || s->tensors[tensor])
        return false;
    while (in_pass(s, tensor)) {
        const int at = tensors[tensor].producer;
        if (scheme_computes(s->net, &s->net->layers[at]))
            return !s->computes[at];
        tensor = s->net->layers[at].inputs[0];
    }
    return false;
}

static bool is_open(const struct scheme *s, int tensor)
{
    return !s->tensors[tensor] && is_float(s->net, tensor);
}

/* Of a sum one addend may stay as the layer's pass has it: the one that is made last, for
 * the others are there by then. */
static void take_addends(struct scheme *s, const struct network_layer *l)
{
    const struct network_tensor *tensors = s->net->tensors;
    int last = -1;
    for (int i = 0; i < l->n_inputs; i++)
        if (is_open(s, l->inputs[i]) && in_pass(s, l->inputs[i]) &&
            (last < 0 ||
             tensors[l->inputs[i]].producer > tensors[l->inputs[last]].producer))
            last = i;
    for (int i = 0; i < l->n_inputs; i++)
        if (i != last && is_open(s, l->inputs[i]))
            take(s, l->inputs[i]);
}

static void take_carried(struct scheme *s, const struct network_layer *l)
{
    for (int i = 0; i < l->n_inputs; i++) {
        if (!is_float(s->net, l->inputs[i])) /* dims, by a tensor's */
            continue;
        take(s, l->inputs[i]);
        share(s, l->inputs[0], l->inputs[i]);
    }
    for (int i = 0; i < l->n_outputs; i++)
        if (s->tensors[l->outputs[i]])
            share(s, l->inputs[0], l->outputs[i]);
}

static bool any_taken(const struct scheme *s, const struct network_layer *l)
{
    bool any = false;
    for (int i = 0; i < l->n_outputs; i++)
        any |= s->tensors[l->outputs[i]];
    return any;
}

/* Whether an Activation is what may end the pass of what it reads, and becomes int8. */
static bool ends_pass(const struct scheme *s, const struct network_layer *l)
{
    return strcmp(l->type->full_name, "core::Activation@1") == 0 &&
           ((const strata_activation *)l->params)->kind <= STRATA_CLIP &&
           s->readers[l->inputs[0]] == 1 && any_taken(s, l);
}

/* Inputs of core::Attention: the last one of q, k and v, and those of a past. */
enum { ATTENTION_VALUES = 2, ATTENTION_PAST_K = 4, ATTENTION_PAST_V = 5 };

static bool has_past(const struct network_layer *l)
{
    bool any = false;
    for (int i = 0; i < l->n_inputs; i++) {
        const int port = network_port(l, i);
        any |= port == ATTENTION_PAST_K || port == ATTENTION_PAST_V;
    }
    return any;
}

/* Whether e4m3 is what a layer multiplies: queries, keys and values, whoever reads the
 * means. It needs no weight. */
static bool attends(const struct scheme *s, const struct network_layer *l)
{
    const strata_attention *p = l->params;
    return s->type != &quant_int8 &&
           strcmp(l->type->full_name, "core::Attention@1") == 0 && !p->cache &&
           !p->present && p->scores == STRATA_SCORES_NONE && !has_past(l) &&
           is_float(s->net, l->inputs[0]) && is_float(s->net, l->outputs[0]);
}

static void take_attended(struct scheme *s, const struct network_layer *l)
{
    for (int i = 0; i < l->n_inputs; i++)
        if (network_port(l, i) <= ATTENTION_VALUES)
            take(s, l->inputs[i]);
}

/* Layers stand in the order of a run: from the last, what reads comes before what is
 * read. */
static void take_tensors(struct scheme *s, const bool *keep)
{
    const strata_network *net = s->net;
    for (size_t i = 0; i < net->n_layers; i++) {
        s->reads[i] = attends(s, &net->layers[i]) && !(keep && keep[i]);
        if (s->computes[i])
            take(s, net->layers[i].inputs[0]);
        if (s->reads[i])
            take_attended(s, &net->layers[i]);
        for (int k = 0; k < net->layers[i].n_inputs; k++)
            s->readers[net->layers[i].inputs[k]]++;
    }
    for (size_t i = net->n_layers; i-- > 0;) {
        const struct network_layer *l = &net->layers[i];
        const struct carries *c = carries(l, s->type);
        s->reads[i] |= s->computes[i] != NULL;
        if (ends_pass(s, l))
            s->activated[l->inputs[0]] = true;
        if (!c || !l->n_inputs || !is_float(net, l->inputs[0]) ||
            !(any_taken(s, l) || (c->sums && s->activated[l->outputs[0]])) ||
            pools_floats(s, l))
            continue;
        s->reads[i] = true;
        if (c->sums)
            take_addends(s, l);
        else if (c->averages)
            take(s, l->inputs[0]);
        else
            take_carried(s, l);
    }
    for (size_t t = 0; t < net->n_tensors; t++)
        s->shares[t] = first_of(s, (int)t);
}

/* How a layer is quantised; NULL: it is not. */
static const struct computes *choose(const struct scheme *s,
                                     const struct network_layer *l)
{
    const struct computes *c = scheme_computes(s->net, l);
    const bool matrix =
        c && (c->type == matrix_multiply || s->net->tensors[l->inputs[0]].rank == 2);
    return (s->weights_only && c && c->type != matrix_multiply) ||
                   (s->type != &quant_int8 && c && !(c->products && matrix))
               ? NULL
               : c;
}

int scheme_make(struct scheme *s, const strata_network *net,
                const struct quant_type *type, const bool *keep,
                const struct weight_form *weights_only, strata_error *err)
{
    *s = (struct scheme){.net = net, .type = type, .weights_only = weights_only};
    s->computes = zalloc(net->n_layers, sizeof *s->computes, "a scheme", err);
    s->reads = zalloc(net->n_layers, sizeof *s->reads, "a scheme", err);
    s->tensors = zalloc(net->n_tensors, sizeof *s->tensors, "a scheme", err);
    s->shares = zalloc(net->n_tensors, sizeof *s->shares, "a scheme", err);
    s->readers = zalloc(net->n_tensors, sizeof *s->readers, "a scheme", err);
    s->activated = zalloc(net->n_tensors, sizeof *s->activated, "a scheme", err);
    if (!s->computes || !s->reads || !s->tensors || !s->shares || !s->readers ||
        !s->activated) {
        scheme_free(s);
        return STRATA_ENOMEM;
    }
    for (size_t t = 0; t < net->n_tensors; t++)
        s->shares[t] = (int)t;
    for (size_t i = 0; i < net->n_layers; i++) {
        s->computes[i] = keep && keep[i] ? NULL : choose(s, &net->layers[i]);
        s->n_layers += s->computes[i] != NULL;
    }
    if (!weights_only)
        take_tensors(s, keep);
    return STRATA_OK;
}

void scheme_free(struct scheme *s)
{
    free(s->computes);
    free(s->reads);
    free(s->tensors);
    free(s->shares);
    free(s->readers);
    free(s->activated);
    *s = (struct scheme){.net = NULL};
}
