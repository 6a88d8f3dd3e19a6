/* SPDX-License-Identifier: Apache-2.0
 *
 * How often a tensor's values fall where: collected once, and read by every method. The
 * bins reach as far as a power of two, which doubles where a value lies beyond; two bins
 * become one then, exactly. So a histogram hangs on the values alone: not on their order,
 * nor on how they were shared among threads.
 */
#ifndef CALIBRATE_HISTOGRAM_H
#define CALIBRATE_HISTOGRAM_H

#include "core/status.h"

#define HISTOGRAM_SIDE 2048    /* bins of the values from 0 on, and of those below */
#define HISTOGRAM_LEAST (-149) /* exponents: 2^-149 is the least FP32, */
#define HISTOGRAM_MOST 128     /* 2^128 above the largest */
#define HISTOGRAM_SEEN_MAX INT64_C(1000000000000000000)

struct histogram {
    int exponent;                     /* bins cover -2^exponent to 2^exponent */
    double low, high;                 /* of the values; 0 of none */
    int64_t seen;                     /* that are counted */
    int64_t odd;                      /* NaN and infinities, which are not */
    int64_t bins[2 * HISTOGRAM_SIDE]; /* each from its lower end, which is inside */
};

void histogram_open(struct histogram *h);
void histogram_add(struct histogram *h, const float *values, int64_t n);
void histogram_merge(struct histogram *h, const struct histogram *other);
/* Of a bin. */
double histogram_width(const struct histogram *h);
/* How many have a magnitude in the k-th of HISTOGRAM_SIDE bins; and the share of those
 * beyond one, by bins: the one it falls into counts as inside. */
int64_t histogram_magnitude(const struct histogram *h, int k);
double histogram_beyond(const struct histogram *h, double magnitude);
/* Bins of magnitudes up to the last that holds any. */
int histogram_used(const struct histogram *h);

#endif /* CALIBRATE_HISTOGRAM_H */
