/* SPDX-License-Identifier: Apache-2.0
 *
 * Scales folded into the weights before them: w'[k] = w[k]*scale[k] and
 * bias'[k] = bias[k]*scale[k] + shift[k], in FP64, rounded once. Where the layer before
 * is a Scale too, its factor and addend are w and bias.
 */
#include "planner/planner.h"

#include <stdlib.h>
#include <string.h>

#include <strata/layers.h>

enum { SCALE, SHIFT, POWER }; /* weights of core::Scale */
enum { WEIGHT, BIAS };        /* weights of core::Convolution and core::FullyConnected */

static int64_t channels_of(const struct planner *planner, const struct planner_node *n)
{
    return planner->network->tensors[n->layer->outputs[0]].dims[1];
}

static bool is_product(const struct network_layer *layer)
{
    return strcmp(layer->type->full_name, "core::Convolution@1") == 0 ||
           strcmp(layer->type->full_name, "core::FullyConnected@1") == 0;
}

static bool is_scale(const struct network_layer *layer)
{
    return strcmp(layer->type->full_name, "core::Scale@1") == 0;
}

/* NULL, or why a Scale is no affine map of each channel. */
static const char *refuse_scale(const struct network_layer *scale, int64_t channels)
{
    const strata_scale *p = scale->params;
    if (network_has_weight(scale, POWER) || p->power != 1)
        return "a power is not linear";
    for (size_t w = SCALE; w <= SHIFT; w++) {
        const struct network_weight *weight = &scale->weights[w];
        if (!network_has_weight(scale, w))
            continue;
        int64_t count = network_elements(weight->dims, weight->rank);
        if (count != 1 && count != channels)
            return "it scales each element by itself";
    }
    return NULL;
}

const char *planner_refuse_fold(const struct planner *planner,
                                const struct planner_node *n,
                                const struct network_layer *scale)
{
    const int64_t channels = channels_of(planner, n);
    const char *why = NULL;
    if (is_scale(n->layer))
        why = refuse_scale(n->layer, channels);
    else if (!is_product(n->layer) || n->layer->type->n_weights <= BIAS)
        return "it has no weights to fold a Scale into";
    else if (n->layer->weights[WEIGHT].dtype != STRATA_FP32)
        return "its weights are not fp32";
    return why ? why : refuse_scale(scale, channels);
}

int planner_weights(const struct planner *planner, const struct planner_node *n,
                    const strata_impl *impl, size_t fused, strata_tensor *weights,
                    strata_error *err)
{
    for (size_t w = 0; w < n->layer->type->n_weights; w++) {
        const struct network_weight seen = network_weight_seen(n->layer, impl->flags, w);
        const struct network_weight *weight = &seen;
        struct format linear = {weight->dtype, ORDER_LINEAR, 1};
        const int64_t *dims = weight->dims;
        int rank = weight->rank;
        int64_t channels;
        strata_desc d;
        bool folded = planner_scales(planner, n, fused) > 0;
        weights[w] = (strata_tensor){0};
        if (folded && impl->flags & STRATA_WEIGHT_STORED)
            return error_set(err, STRATA_EUNSUPPORTED,
                             "a Scale has no room in a weight of few bits");
        if (is_scale(n->layer) ? folded && w != POWER
                               : weight->source == WEIGHT_ABSENT && folded && w == BIAS) {
            linear.dtype = STRATA_FP32;
            channels = channels_of(planner, n);
            dims = &channels;
            rank = 1;
        } else if (weight->source == WEIGHT_ABSENT) {
            continue;
        }
        int status = format_desc(&d, linear, dims, rank, err);
        if (status != STRATA_OK)
            return status;
        tensor_view(&weights[w], &d, format_mask(linear), STRATA_PAD_ZERO, NULL);
    }
    return STRATA_OK;
}
