/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of weights as the network has them, and scales folded into those before them:
 * w'[k] = w[k]*scale[k] and bias'[k] = bias[k]*scale[k] + shift[k], in FP64, rounded
 * once. Whether a scale can be folded was the planner's to say.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

enum { SCALE, SHIFT }; /* weights of core::Scale */
enum { WEIGHT, BIAS }; /* weights of core::Convolution and core::FullyConnected */

static int64_t channels_of(const strata_engine *e, const struct execution_node *n)
{
    return e->network->tensors[n->layer->outputs[0]].dims[1];
}

static bool is_scale(const struct network_layer *layer)
{
    return strcmp(layer->type->full_name, "core::Scale@1") == 0;
}

/* One of a Scale's operands, spread over the channels. */
static int load_operand(float *out, int64_t channels, const struct network_layer *scale,
                        size_t w, strata_error *err)
{
    const strata_scale *p = scale->params;
    int64_t count = 1;
    int status = STRATA_OK;
    out[0] = (float)(w == SCALE ? p->scale : p->shift);
    if (network_has_weight(scale, w)) {
        count = network_elements(scale->weights[w].dims, scale->weights[w].rank);
        status = network_weight_load(&scale->weights[w], out, err);
    }
    for (int64_t k = 1; k < channels && count == 1; k++)
        out[k] = out[0];
    return status;
}

/* All fused scales as one: y = x*factor + addend. */
static int load_scales(double *factor, double *addend, int64_t channels,
                       const struct execution_node *n, strata_error *err)
{
    float *values = zalloc((size_t)channels, 2 * sizeof *values, "a scale", err);
    int status = values ? STRATA_OK : STRATA_ENOMEM;
    for (int64_t k = 0; k < channels; k++)
        factor[k] = 1;
    for (size_t i = 0; i < n->n_scales && status == STRATA_OK; i++) {
        const struct network_layer *scale = n->fused[i];
        status = load_operand(values, channels, scale, SCALE, err);
        if (status == STRATA_OK)
            status = load_operand(values + channels, channels, scale, SHIFT, err);
        for (int64_t k = 0; k < channels; k++) {
            factor[k] *= (double)values[k];
            addend[k] = addend[k] * (double)values[k] + (double)values[channels + k];
        }
    }
    free(values);
    return status;
}

/* Output channel of an element of a weight: dim 0, but in a transposed matrix dim 1. */
static void fold(float *values, const struct execution_node *n, size_t w,
                 const double *factor, const double *addend, int64_t channels)
{
    const struct network_weight *weight = &n->layer->weights[w];
    int64_t count = w == BIAS || is_scale(n->layer)
                        ? channels
                        : network_elements(weight->dims, weight->rank);
    bool transposed = strcmp(n->layer->type->full_name, "core::FullyConnected@1") == 0 &&
                      ((const strata_fully_connected *)n->layer->params)->transposed;
    int64_t every = count / channels;
    for (int64_t i = 0; i < count; i++) {
        int64_t k = w == WEIGHT && transposed ? i % channels : i / every;
        values[i] = (float)((double)values[i] * factor[k] + (w == BIAS ? addend[k] : 0));
    }
}

const void *engine_weight_source(const struct execution_node *n, size_t w)
{
    if (n->n_scales > 0 || !network_has_weight(n->layer, w))
        return NULL;
    const struct network_weight seen =
        network_weight_seen(n->layer, n->impl->impl.flags, w);
    return network_weight_in_place(&seen);
}

void *engine_weight_in_place(const strata_engine *e, const struct execution_node *n,
                             size_t w)
{
    if (e->handle->properties.kind != STRATA_HOST)
        return NULL;
    return (void *)engine_weight_source(n, w); /* nobody writes it */
}

int engine_load_weight(const strata_engine *e, const struct execution_node *n, size_t w,
                       void *values, strata_error *err)
{
    const struct network_weight seen =
        network_weight_seen(n->layer, n->impl->impl.flags, w);
    bool folded = n->n_scales > 0;
    int64_t channels = folded ? channels_of(e, n) : 0;
    int status = STRATA_OK;
    if (folded && is_scale(n->layer))
        status = load_operand(values, channels, n->layer, w, err);
    else if (network_has_weight(n->layer, w))
        status = network_weight_load(&seen, values, err);
    else
        memset(values, 0, (size_t)channels * sizeof(float));
    if (status != STRATA_OK || !folded)
        return status;
    double *factor = zalloc((size_t)channels, 2 * sizeof *factor, "a scale", err);
    if (!factor)
        return STRATA_ENOMEM;
    status = load_scales(factor, factor + channels, channels, n, err);
    if (status == STRATA_OK)
        fold(values, n, w, factor, factor + channels, channels);
    free(factor);
    return status;
}
