/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes looked up in a table of 256.
 */
#ifndef PLUGINS_QUANTIZED_POINTWISE_TABLE_H
#define PLUGINS_QUANTIZED_POINTWISE_TABLE_H

#include <stdint.h>

enum { TABLE_BYTES = 256 };

/* y[i] = table[x[i]]; y may be x. */
void table_look_up(uint8_t *y, const uint8_t *x, int64_t n,
                   const uint8_t table[TABLE_BYTES]);

#endif /* PLUGINS_QUANTIZED_POINTWISE_TABLE_H */
