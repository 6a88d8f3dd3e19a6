/* SPDX-License-Identifier: Apache-2.0
 *
 * A MatrixMultiply's weights on the device, packed in setup.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_PACK_H
#define PLUGINS_MATRIX_MULTIPLY_PACK_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The weight `b` of n as N rows of K elements, whichever way it comes, or as K rows of N,
 * in in[0]'s dtype, or its own where that is of 8 bits. n's stream fills it. */
int matrix_weight_pack(const strata_node *n, int rows_of_n, void **packed);

/* The bias of n, which it has, in out[0]'s dtype. */
int matrix_bias_pack(const strata_node *n, void **packed);

#ifdef __cplusplus
}
#endif

#endif /* PLUGINS_MATRIX_MULTIPLY_PACK_H */
