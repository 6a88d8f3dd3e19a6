/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer's constant operand as int8, symmetric, with a scale for each channel of its
 * output.
 */
#ifndef CALIBRATE_WEIGHTS_H
#define CALIBRATE_WEIGHTS_H

#include "calibrate/scheme.h"

struct int8_weight {
    int8_t *values; /* -127 to 127, as the weight lies */
    float *scales;  /* of each channel */
    int64_t count, channels;
    double signal, noise; /* sums of squares: of the weights, of what rounding changed */
};

int int8_weight_make(struct int8_weight *out, const struct network_layer *layer,
                     const struct computes *c, strata_error *err);
void int8_weight_free(struct int8_weight *w);
/* Of an element. */
int64_t int8_weight_channel(const int64_t order[3], int64_t i);

#endif /* CALIBRATE_WEIGHTS_H */
