/* SPDX-License-Identifier: Apache-2.0
 *
 * A network at other sizes of its symbols: the shapes of its tensors, worked out anew by
 * the layers themselves, everything else shared. Unlike rows of a batch (batch.c), what
 * lies along a symbol may be mixed: such a network is run at its very sizes.
 */
#include "network/private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

size_t network_most_tensors(const strata_network *net)
{
    size_t most = 0;
    for (size_t i = 0; i < net->n_layers; i++) {
        const struct network_layer *l = &net->layers[i];
        const size_t n =
            (size_t)l->n_ports + (size_t)l->n_outputs + 2 * l->type->n_weights;
        most = n > most ? n : most;
    }
    return most;
}

int network_version(strata_network **out, const strata_network *base, strata_error *err)
{
    *out = NULL;
    strata_network *net = zalloc(1, sizeof *net, "a network", err);
    if (!net)
        return STRATA_ENOMEM;
    struct network_tensor *tensors =
        zalloc(base->n_tensors, sizeof *tensors, "tensors", err);
    if (!tensors) {
        free(net);
        return STRATA_ENOMEM;
    }
    memcpy(tensors, base->tensors, base->n_tensors * sizeof *tensors);
    *net = *base;
    atomic_init(&net->references, 0);
    net->tensors = tensors;
    net->base = network_retain(base);
    const int status = network_own_layers(net, err);
    if (status == STRATA_OK)
        *out = net;
    else
        strata_network_destroy(net);
    return status;
}

/* NULL, or why a layer's weights are not what it wants of its inputs. */
static const char *check_weights(const struct network_layer *layer, strata_node *node,
                                 strata_tensor *expected, const strata_error *why)
{
    const strata_layer *type = &layer->type->layer;
    if (!type->weight_shape)
        return NULL;
    for (size_t i = 0; i < layer->type->n_weights; i++)
        expected[i] = (strata_tensor){.dtype = layer->weights[i].dtype};
    if (type->weight_shape(node, expected) != STRATA_OK)
        return why->status != STRATA_OK ? why->message : "it refuses the shape";
    for (size_t i = 0; i < layer->type->n_weights; i++) {
        const struct network_weight *w = &layer->weights[i];
        const strata_tensor *e = &expected[i];
        if (w->source != WEIGHT_ABSENT && e->rank > 0 &&
            (e->rank != w->rank ||
             memcmp(e->dims, w->dims, (size_t)e->rank * sizeof *e->dims) != 0))
            return "the dims of its weights hang on the size";
    }
    return NULL;
}

static const char *infer(strata_network *net, const struct network_layer *layer,
                         strata_tensor *tensors, strata_error *why)
{
    const strata_layer *type = &layer->type->layer;
    strata_tensor *in = tensors, *out = in + layer->n_ports,
                  *weight = out + layer->n_outputs;
    strata_node node;
    network_node(net, layer, &node, in, out, weight, why);
    const char *problem =
        check_weights(layer, &node, weight + layer->type->n_weights, why);
    for (int i = 0; i < layer->n_outputs && !problem; i++) {
        out[i].dtype = layer->n_inputs ? in[0].dtype : STRATA_FP32;
        if (!type->shape && layer->n_inputs)
            out[i] = in[0];
    }
    if (!problem && type->shape && type->shape(&node) != STRATA_OK)
        problem = why->status != STRATA_OK ? why->message : "it refuses the shape";
    for (int i = 0; i < layer->n_outputs && !problem; i++) {
        struct network_tensor *t = &net->tensors[layer->outputs[i]];
        if (!network_tensor_valid(&out[i]) || out[i].rank != t->rank)
            return "the rank of its output hangs on the size, or it is too large";
        memcpy(t->dims, out[i].dims, sizeof t->dims);
    }
    return problem;
}

static int refuse(const strata_network *net, const struct network_layer *layer,
                  const int64_t *sizes, const char *why, strata_error *err)
{
    error_set(err, STRATA_EUNSUPPORTED, "layer '%s' (%s:%d) cannot have", layer->name,
              net->path, layer->place.line);
    for (size_t i = 0; i < net->n_symbols; i++)
        error_append(err, "%s %s = %" PRId64, i ? "," : "", net->symbols[i].name,
                     sizes[i]);
    error_append(err, ": %s", why);
    return STRATA_EUNSUPPORTED;
}

static int infer_layers(strata_network *net, const int64_t *sizes, strata_error *err)
{
    int status = STRATA_OK;
    strata_tensor *tensors =
        zalloc(network_most_tensors(net), sizeof *tensors, "tensors", err);
    if (!tensors)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < net->n_layers && status == STRATA_OK; i++) {
        strata_error why = {0};
        const char *problem = infer(net, &net->layers[i], tensors, &why);
        if (problem)
            status = refuse(net, &net->layers[i], sizes, problem, err);
    }
    free(tensors);
    return status;
}

void network_input_dims(int64_t *dims, const strata_network *net,
                        const struct network_input *in, const int64_t *sizes)
{
    const struct network_tensor *t = &net->tensors[in->tensor];
    for (int d = 0; d < t->rank; d++)
        dims[d] = in->symbols[d] >= 0      ? sizes[in->symbols[d]]
                  : in->sums[d].first >= 0 ? network_sum_size(&in->sums[d], sizes)
                                           : t->dims[d];
}

int network_resize(strata_network **out, const strata_network *net, const int64_t *sizes,
                   strata_error *err)
{
    strata_network *other;
    int status = network_version(&other, net, err);
    *out = NULL;
    if (status != STRATA_OK)
        return status;
    network_name_sizes(other, sizes);
    for (size_t i = 0; i < net->n_inputs; i++)
        network_input_dims(other->tensors[net->inputs[i].tensor].dims, net,
                           &net->inputs[i], sizes);
    status = infer_layers(other, sizes, err);
    if (status == STRATA_OK)
        *out = other;
    else
        strata_network_destroy(other);
    return status;
}
