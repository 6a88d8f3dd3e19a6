/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods that choose a range: from a histogram to the largest magnitude that a number
 * type shall hold; what lies beyond is saturated. All are symmetric: 0 stays 0.
 */
#ifndef CALIBRATE_METHOD_METHOD_H
#define CALIBRATE_METHOD_METHOD_H

#include "calibrate/histogram.h"

struct quant_type {
    const char *name; /* as `dtype =` of Quantize says it */
    int dtype;        /* STRATA_INT8 */
    int steps;        /* from 0 to the largest: 127 of 8 bits, as -128 has no twin */
    uint8_t (*code)(double); /* of a number of steps: its byte, the nearest */
    double (*value)(uint8_t);
    bool even; /* steps are one everywhere, as entropy and mse have it */
};
extern const struct quant_type quant_int8, quant_e4m3;
/* NULL: there is none of the name. */
const struct quant_type *quant_type_find(const char *name);

struct range_method {
    const char *name;
    /* Share of the magnitudes that are inside, in percent: of the percentile alone. */
    double (*bound)(const struct histogram *h, const struct quant_type *t, double share);
    const char *doc;
};
/* NULL: there is none of the name. "max|percentile|..." for messages. */
const struct range_method *range_method_find(const char *name);
extern const struct range_method range_methods[];
extern const size_t range_methods_count;
#define RANGE_SHARE 99.99 /* percent */

/* The largest magnitude. */
double bound_max(const struct histogram *h, const struct quant_type *t, double share);
/* The end of the bin in which the share of all is reached. */
double bound_percentile(const struct histogram *h, const struct quant_type *t,
                        double share);
/* Where the divergence of what is quantised from what was is least. */
double bound_entropy(const struct histogram *h, const struct quant_type *t, double share);
/* Where the mean squared error is least: of rounding, and of what is saturated. */
double bound_mse(const struct histogram *h, const struct quant_type *t, double share);

/* Scale of a range whose largest magnitude is given; never 0. */
double quant_scale(const struct quant_type *t, double magnitude);

#endif /* CALIBRATE_METHOD_METHOD_H */
