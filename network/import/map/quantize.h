/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators of quantized numbers have in common: a scale and a zero point among
 * their inputs.
 */
#ifndef NETWORK_IMPORT_MAP_QUANTIZE_H
#define NETWORK_IMPORT_MAP_QUANTIZE_H

#include "network/import/map/compose.h"

/* Value x through a Dequantize, or a Quantize to the zero point's type, with the node's
 * inputs `scale` and `zero` (-1: none), both constant. Scales differ along `axis`. */
int quantize_undo(struct mapping *m, int x, int scale, int zero, int64_t axis);
int quantize_do(struct mapping *m, int x, int scale, int zero, int64_t axis);

/* A DynamicProduct: a, a constant matrix of bytes b, the zero of a, those of b, the scale
 * of a, those of b, a bias. The fourth and the last may be absent. (map/matrix.c) */
void matrix_of_dynamic(struct mapping *m);

#endif /* NETWORK_IMPORT_MAP_QUANTIZE_H */
