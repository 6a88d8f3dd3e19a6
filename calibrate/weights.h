/* SPDX-License-Identifier: Apache-2.0
 *
 * A layer's constant operand in few bits, symmetric: as int8 or e4m3 with a scale for
 * each channel of its output, or as the scheme has it, with one for each group of a
 * channel's values.
 */
#ifndef CALIBRATE_WEIGHTS_H
#define CALIBRATE_WEIGHTS_H

#include "calibrate/scheme.h"

struct int8_weight {
    uint8_t
        *values; /* codes of the type, of 4 bits int8 from -8 to 7, as the weight lies */
    float *scales; /* of each group of each channel, as the channels lie */
    int64_t count, channels, groups; /* groups of a channel */
    int64_t group;                   /* values in one */
    int64_t order[3];                /* of the values: ORDER_OUTER ... */
    double signal, noise; /* sums of squares: of the weights, of what rounding changed */
};

/* form: of a matrix; NULL: the type, a scale for each channel. */
int int8_weight_make(struct int8_weight *out, const struct network_layer *layer,
                     const struct computes *c, const struct quant_type *type,
                     const struct weight_form *form, strata_error *err);
void int8_weight_free(struct int8_weight *w);
/* Where an element's scale is. */
int64_t int8_weight_scale(const struct int8_weight *w, int64_t i);
/* Two values of 4 bits in each byte, as `weight_bits = 4` has them: allocated; bytes of
 * the dims, of which `dims` gets them. */
uint8_t *int8_weight_pack(const struct int8_weight *w, int64_t dims[2],
                          strata_error *err);

#endif /* CALIBRATE_WEIGHTS_H */
