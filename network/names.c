/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of [profile] in layers: entries of their lists that are a symbol's size. A
 * version of the network for other sizes has such parameters for itself.
 */
#include "network/private.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* The list that a name stands in. */
static strata_ints *list_of(const struct network_layer *layer,
                            const struct network_name *name)
{
    return (void *)((char *)layer->params + name->attr->offset);
}

static bool is_first_of_list(const struct network_layer *layer, size_t i)
{
    return i == 0 || layer->names[i].attr != layer->names[i - 1].attr;
}

bool network_begins_with(const struct network_layer *layer, int symbol)
{
    for (size_t i = 0; i < layer->n_names; i++)
        if (layer->names[i].symbol == symbol && layer->names[i].plus < 0 &&
            layer->names[i].entry == 0)
            return true;
    return false;
}

void network_name_sizes(strata_network *version, const int64_t *sizes)
{
    for (size_t i = 0; i < version->n_layers; i++) {
        const struct network_layer *layer = &version->layers[i];
        for (size_t k = 0; k < layer->n_names; k++) {
            const struct network_name *name = &layer->names[k];
            const int64_t size = sizes[name->symbol],
                          other = name->plus < 0 ? 0 : sizes[name->plus];
            if (size >= 0 && other >= 0) /* the version's own: copy_params */
                ((int64_t *)list_of(layer, name)->v)[name->entry] =
                    size * name->times / name->over + other + name->more;
        }
    }
}

int64_t network_sum_size(const struct network_sum *sum, const int64_t *sizes)
{
    return sizes[sum->first] + (sum->second < 0 ? 0 : sizes[sum->second]) + sum->more;
}

void network_sum_range(const strata_network *net, const struct network_sum *sum,
                       int64_t *least, int64_t *most)
{
    int64_t sizes[NETWORK_MAX_SYMBOLS];
    for (size_t i = 0; i < net->n_symbols; i++)
        sizes[i] = net->symbols[i].least;
    *least = network_sum_size(sum, sizes);
    for (size_t i = 0; i < net->n_symbols; i++)
        sizes[i] = net->symbols[i].most;
    *most = network_sum_size(sum, sizes);
}

/* In int64_t: the parameters, and behind them those of their lists that name symbols. */
static size_t count_words(const struct network_layer *layer)
{
    size_t n = layer->type->layer.params_size / sizeof(int64_t) + 1;
    for (size_t i = 0; i < layer->n_names; i++)
        if (is_first_of_list(layer, i))
            n += (size_t)list_of(layer, &layer->names[i])->n;
    return n;
}

static int copy_params(struct network_layer *layer, strata_error *err)
{
    const size_t size = layer->type->layer.params_size;
    int64_t *block =
        zalloc(count_words(layer), sizeof *block, "a layer's parameters", err);
    if (block)
        memcpy(block, layer->params, size);
    layer->params = block;
    if (!block)
        return STRATA_ENOMEM;
    block += size / sizeof *block + 1;
    for (size_t i = 0; i < layer->n_names; i++) {
        strata_ints *list = list_of(layer, &layer->names[i]);
        if (!is_first_of_list(layer, i))
            continue;
        list->v = memcpy(block, list->v, (size_t)list->n * sizeof *block);
        block += list->n;
    }
    return STRATA_OK;
}

int network_own_layers(strata_network *version, strata_error *err)
{
    const struct network_layer *from = version->layers;
    bool named = false;
    for (size_t i = 0; i < version->n_layers; i++)
        named |= from[i].n_names > 0;
    if (!named)
        return STRATA_OK;
    struct network_layer *layers =
        zalloc(version->n_layers, sizeof *layers, "layers", err);
    if (!layers)
        return STRATA_ENOMEM;
    memcpy(layers, from, version->n_layers * sizeof *layers);
    version->layers = layers;
    for (size_t i = 0; i < version->n_layers; i++)
        if (layers[i].n_names)
            layers[i].params = NULL;
    int status = STRATA_OK;
    for (size_t i = 0; i < version->n_layers && status == STRATA_OK; i++)
        if (layers[i].n_names) {
            layers[i].params = from[i].params;
            status = copy_params(&layers[i], err);
        }
    return status;
}

void network_free_own_layers(strata_network *version)
{
    if (version->layers == version->base->layers)
        return;
    for (size_t i = 0; i < version->n_layers; i++)
        if (version->layers[i].n_names)
            free(version->layers[i].params);
    free(version->layers);
}
