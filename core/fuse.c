/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers to nodes. A layer whose only reader is an Activation takes it into its epilogue
 * when one of its impls for the device can compute that kind.
 */
#include "core/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

/* The only layer that reads a tensor, or NULL: none, several, or a network output. */
static const struct network_layer *only_reader(const strata_network *net, int tensor)
{
    const struct network_layer *reader = NULL;
    for (size_t o = 0; o < net->n_outputs; o++)
        if (net->outputs[o].tensor == tensor)
            return NULL;
    for (size_t l = 0; l < net->n_layers; l++)
        for (int i = 0; i < net->layers[l].n_inputs; i++)
            if (net->layers[l].inputs[i] == tensor) {
                if (reader)
                    return NULL;
                reader = &net->layers[l];
            }
    return reader;
}

static bool takes_activation(const struct network_layer *layer, int kind, int device)
{
    for (size_t i = 0; i < layer->type->n_impls; i++) {
        const strata_impl *impl = &layer->type->impls[i].impl;
        if (impl->device == device && (impl->epilogues & STRATA_EPILOGUE_ACTIVATION) &&
            (impl->activations & UINT64_C(1) << kind) &&
            (!layer->impl || strcmp(layer->impl, impl->name) == 0))
            return true;
    }
    return false;
}

static const struct network_layer *fusable_activation(const strata_engine *e,
                                                      const struct network_layer *layer)
{
    if (!e->network->build.fusion || layer->n_outputs != 1)
        return NULL;
    const struct network_layer *reader = only_reader(e->network, layer->outputs[0]);
    if (!reader || strcmp(reader->type->full_name, "core::Activation@1") != 0)
        return NULL;
    if (layer->formats || reader->formats || reader->impl) /* wanted by itself */
        return NULL;
    const strata_activation *a = reader->params;
    return takes_activation(layer, a->kind, e->handle->properties.kind) ? reader : NULL;
}

static int name_node(struct engine_node *n, strata_error *err)
{
    size_t size = strlen(n->layer->name) + 1;
    if (!n->activation)
        return (n->name = duplicate(n->layer->name, err)) ? STRATA_OK : STRATA_ENOMEM;
    size += strlen(n->activation->name) + 3;
    n->name = zalloc(size, 1, "a node's name", err);
    if (!n->name)
        return STRATA_ENOMEM;
    snprintf(n->name, size, "%s + %s", n->layer->name, n->activation->name);
    return STRATA_OK;
}

static int make_node(struct engine_node *n, const struct network_layer *layer,
                     const struct network_layer *activation, strata_error *err)
{
    const struct network_layer *last = activation ? activation : layer;
    n->layer = layer;
    n->activation = activation;
    n->in = layer->inputs;
    n->n_in = layer->n_inputs;
    n->out = last->outputs;
    n->n_out = last->n_outputs;
    if (activation) {
        const strata_activation *a = activation->params;
        n->epilogue.flags = STRATA_EPILOGUE_ACTIVATION;
        n->epilogue.activation = a->kind;
        n->epilogue.alpha = strata_activation_alpha(a);
        n->epilogue.beta = strata_activation_beta(a);
    }
    n->in_values = zalloc((size_t)n->n_in, sizeof *n->in_values, "a node", err);
    n->out_values = zalloc((size_t)n->n_out, sizeof *n->out_values, "a node", err);
    n->weights = zalloc(layer->type->n_weights, sizeof *n->weights, "a node", err);
    if (!n->in_values || !n->out_values || !n->weights)
        return STRATA_ENOMEM;
    for (size_t w = 0; w < layer->type->n_weights; w++) {
        const struct network_weight *weight = &layer->weights[w];
        strata_desc d;
        if (weight->source == WEIGHT_ABSENT)
            continue;
        struct format linear = {weight->dtype, ORDER_LINEAR, 1};
        int status = format_desc(&d, linear, weight->dims, weight->rank, err);
        if (status != STRATA_OK)
            return status;
        tensor_view(&n->weights[w], &d, format_mask(linear), STRATA_PAD_ZERO, NULL);
    }
    return name_node(n, err);
}

int engine_make_nodes(strata_engine *e, strata_error *err)
{
    const strata_network *net = e->network;
    int status = STRATA_OK;
    bool *taken = zalloc(net->n_layers, sizeof *taken, "fusion", err);
    e->nodes = zalloc(net->n_layers, sizeof *e->nodes, "the engine's nodes", err);
    if (!taken || !e->nodes)
        status = STRATA_ENOMEM;
    for (size_t l = 0; l < net->n_layers && status == STRATA_OK; l++) {
        if (taken[l])
            continue;
        const struct network_layer *fused = fusable_activation(e, &net->layers[l]);
        if (fused)
            taken[fused - net->layers] = true;
        status = make_node(&e->nodes[e->n_nodes++], &net->layers[l], fused, err);
    }
    free(taken);
    return status;
}

void engine_free_nodes(strata_engine *e)
{
    for (size_t i = 0; e->nodes && i < e->n_nodes; i++) {
        free(e->nodes[i].name);
        free(e->nodes[i].in_values);
        free(e->nodes[i].out_values);
        free(e->nodes[i].weights);
        free(e->nodes[i].packs);
    }
    free(e->nodes);
}
