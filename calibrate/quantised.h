/* SPDX-License-Identifier: Apache-2.0
 *
 * A quantised network's files: its text, in which every tensor that becomes int8 has a
 * Quantize and a Dequantize behind it, and its weights. Layers and their tensors keep
 * their names. Of a tensor T the file of weights has
 *
 *   T.quantize.scale   FP32: the step
 *   ranges.T           FP32: low, high, and the share of the values beyond them, NaN
 *                      where that is not known; for people
 *
 * and of a quantised layer L its operand as int8 (or the scheme's type), L.weight_scale
 * (FP32, a step each channel of the output) and L.bias.
 */
#ifndef CALIBRATE_QUANTISED_H
#define CALIBRATE_QUANTISED_H

#include "calibrate/ranges.h"
#include "calibrate/scheme.h"

#define QUANTISED_RANGES "ranges."

/* What a network becomes quantised by; all but registry and scheme may be NULL. */
struct quantising {
    const struct scheme *scheme;
    strata_registry *registry;
    const struct ranges *ranges;      /* of every tensor of the scheme */
    const double *saturated;          /* of each tensor: share beyond its range */
    const double *const *corrections; /* of each layer, channels: added to its bias */
};

/* Names of the files as the text has them; weights NULL: of network_parse. */
struct quantised_names {
    const char *weights, *labels;
};

struct quantised {
    char *text;
    void *weights;
    size_t text_size, weights_size;
};
int quantised_make(struct quantised *out, const struct quantising *q,
                   const struct quantised_names *names, strata_error *err);
void quantised_free(struct quantised *q);

/* Scale of a tensor by its range. */
float quantised_scale(const struct quant_type *type, const struct range *r);

#endif /* CALIBRATE_QUANTISED_H */
