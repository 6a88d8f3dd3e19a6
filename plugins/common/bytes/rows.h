/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of FP32 to bytes with one scale, in the vectors of the processor at hand.
 */
#ifndef PLUGINS_COMMON_BYTES_ROWS_H
#define PLUGINS_COMMON_BYTES_ROWS_H

#include <stdint.h>

/* One scale, and what a byte may be; INT8 as its bits. */
struct quantize_scale {
    float scale, zero, low, high;
};

/* y = round(x/scale) + zero of n values, within [low, high]; of NaN 0. */
typedef void quantize_row(uint8_t *y, const float *x, const struct quantize_scale *s,
                          int64_t n);

/* The row for such a scale and zero: without a divider where that is exact. */
quantize_row *quantize_row_for(const struct quantize_scale *s);

#endif /* PLUGINS_COMMON_BYTES_ROWS_H */
