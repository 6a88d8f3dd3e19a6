/* SPDX-License-Identifier: Apache-2.0
 *
 * Products: FullyConnected and MatrixMultiply.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_PRODUCTS_H
#define STRATA_LAYERS_PRODUCTS_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* FullyConnected: input flattened to (N, K); weight (M, K), bias (M) optional; output
 * (N, M, 1, 1) for rank 4 and (N, M) for rank 2. */
typedef struct strata_fully_connected {
    int64_t units;      /* M; 0: from the weight */
    int32_t transposed; /* weight is (K, M) */
    int32_t reserved;
} strata_fully_connected;

/* MatrixMultiply: Y = alpha*op(A)*op(B) + beta*C + bias over the last two dims, leading
 * ones broadcast; op is transposition where asked for. A is input 0. B is input 1, or the
 * weight `b` (K x N, N x K transposed); C is input 2 and broadcasts to Y; weight `bias`
 * (N) is optional. */
typedef struct strata_matrix_multiply {
    int32_t transpose_a, transpose_b;
    double alpha, beta; /* beta 0: C is not read; whole numbers for integers */
    int64_t units;      /* N where `b` is a weight; 0: from the weight */
    int64_t weight_bits;  /* 4: a byte of `b` has two values along K; 0: as its dtype */
    int64_t weight_group; /* values along K that a factor of `b` is for; 0: all of them */
} strata_matrix_multiply;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_PRODUCTS_H */
