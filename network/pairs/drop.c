/* SPDX-License-Identifier: Apache-2.0
 *
 * The network without some pairs. What it makes for itself is a list of blocks, freed
 * together; layers and tensors are the base's, but for what reads the pairs.
 */
#include "network/pairs/pairs.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

enum part { STAYS, QUANTIZE, DEQUANTIZE };

/* Of the base: the float tensor that stands for each one that a pair makes, itself for
 * all others; and what layers are of the pairs that are left out. */
struct dropping {
    const strata_network *base;
    int *stands;
    enum part *parts;
};

static int open_dropping(struct dropping *d, strata_error *err)
{
    d->stands = zalloc(d->base->n_tensors, sizeof *d->stands, "pairs", err);
    d->parts = zalloc(d->base->n_layers, sizeof *d->parts, "pairs", err);
    return d->stands && d->parts ? STRATA_OK : STRATA_ENOMEM;
}

/* Producers come first, so that what stands for a pair's input is known by then. */
static void mark(struct dropping *d, const struct network_pairs *pairs,
                 const bool *dropped)
{
    const strata_network *base = d->base;
    for (size_t t = 0; t < base->n_tensors; t++)
        d->stands[t] = (int)t;
    for (size_t i = 0; i < pairs->n; i++)
        if (dropped[pairs->list[i].region])
            d->parts[pairs->list[i].quantize] = QUANTIZE;
    for (size_t i = 0; i < base->n_layers; i++) {
        const struct network_layer *l = &base->layers[i];
        const int producer = l->n_inputs ? base->tensors[l->inputs[0]].producer : -1;
        if (producer >= 0 && d->parts[producer] == QUANTIZE)
            d->parts[i] = DEQUANTIZE;
        if (d->parts[i] != STAYS)
            d->stands[l->outputs[0]] = d->stands[l->inputs[0]];
    }
}

/* A list of inputs of its own for a layer that reads what is left out. */
static int place_layer(strata_network *net, const struct dropping *d, int **inputs,
                       const struct network_layer *from)
{
    struct network_layer *l = &net->layers[net->n_layers++];
    bool reads = false;
    *l = *from;
    for (int i = 0; i < l->n_inputs; i++)
        reads |= d->stands[l->inputs[i]] != l->inputs[i];
    if (!reads)
        return STRATA_OK;
    l->inputs = *inputs;
    *inputs += l->n_inputs;
    for (int i = 0; i < l->n_inputs; i++)
        l->inputs[i] = d->stands[from->inputs[i]];
    return STRATA_OK;
}

static void set_producers(strata_network *net)
{
    for (size_t t = 0; t < net->n_tensors; t++)
        net->tensors[t].producer = -1;
    for (size_t i = 0; i < net->n_layers; i++)
        for (int k = 0; k < net->layers[i].n_outputs; k++)
            net->tensors[net->layers[i].outputs[k]].producer = (int)i;
}

/* Takes the block. */
static int keep(strata_network *net, void *block, strata_error *err)
{
    struct network_merged *m = net->merged;
    int status = block ? grow(&m->blocks, &m->capacity, m->n, sizeof *m->blocks, err)
                       : STRATA_ENOMEM;
    if (status == STRATA_OK)
        m->blocks[m->n++] = block;
    else
        free(block);
    return status;
}

/* The base without layers; nothing else of its own yet. */
static int open_network(strata_network **out, const strata_network *base,
                        strata_error *err)
{
    strata_network *net = zalloc(1, sizeof *net, "a network", err);
    struct network_merged *merged = zalloc(1, sizeof *merged, "a network", err);
    struct network_tensor *tensors =
        zalloc(base->n_tensors, sizeof *tensors, "tensors", err);
    if (!net || !merged || !tensors) {
        free(net);
        free(merged);
        free(tensors);
        return STRATA_ENOMEM;
    }
    *net = *base;
    atomic_init(&net->references, 0);
    net->base = network_retain(base);
    net->merged = merged;
    merged->pairs = true;
    net->tensors = memcpy(tensors, base->tensors, base->n_tensors * sizeof *tensors);
    net->n_layers = 0;
    *out = net;
    return STRATA_OK;
}

static int fill_network(strata_network *net, const struct dropping *d, strata_error *err)
{
    const strata_network *base = d->base;
    size_t n = 0;
    for (size_t i = 0; i < base->n_layers; i++)
        n += (size_t)base->layers[i].n_inputs;
    int *inputs = zalloc(n, sizeof *inputs, "layers", err);
    int status = keep(net, inputs, err);
    if (status != STRATA_OK)
        return status;
    net->layers = zalloc(base->n_layers, sizeof *net->layers, "layers", err);
    status = keep(net, net->layers, err);
    for (size_t i = 0; i < base->n_layers && status == STRATA_OK; i++)
        if (d->parts[i] == STAYS)
            status = place_layer(net, d, &inputs, &base->layers[i]);
    if (status == STRATA_OK)
        set_producers(net);
    return status;
}

int network_drop_pairs(strata_network **out, const strata_network *base,
                       const struct network_pairs *pairs, const bool *dropped,
                       strata_error *err)
{
    struct dropping d = {.base = base};
    strata_network *net = NULL;
    *out = NULL;
    int status = open_dropping(&d, err);
    if (status == STRATA_OK)
        status = open_network(&net, base, err);
    if (status == STRATA_OK) {
        mark(&d, pairs, dropped);
        status = fill_network(net, &d, err);
    }
    free(d.stands);
    free(d.parts);
    if (status == STRATA_OK)
        *out = net;
    else
        strata_network_destroy(net);
    return status;
}
