/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of Softmax's arithmetic in the vectors of the processor at hand.
 */
#ifndef PLUGINS_SOFTMAX_ROWS_H
#define PLUGINS_SOFTMAX_ROWS_H

#include <stdint.h>

struct softmax_rows {
    /* A line of n in one piece, or its logarithm; y may be x. */
    void (*line)(float *y, const float *x, int64_t n, int logarithm);
    /* Of n lines beside each other an element each: */
    void (*maximum)(float *maximum, const float *x, int64_t n);
    /* sum += exp(x - maximum) */
    void (*sum)(float *sum, const float *x, const float *maximum, int64_t n);
    /* y = exp(x - maximum)*factor, or x - maximum - factor */
    void (*result)(float *y, const float *x, const float *maximum, const float *factor,
                   int64_t n, int logarithm);
};

const struct softmax_rows *softmax_rows_choose(void);

#endif /* PLUGINS_SOFTMAX_ROWS_H */
