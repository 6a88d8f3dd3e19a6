/* SPDX-License-Identifier: Apache-2.0
 *
 * The operations of the pointwise layers under one number, on the host and on devices.
 * C and CUDA.
 */
#ifndef PLUGINS_COMMON_POINTWISE_OPERATIONS_H
#define PLUGINS_COMMON_POINTWISE_OPERATIONS_H

#include <stdint.h>

/* Bases; the layer's enumerator is added where it has one. No enumerators themselves, for
 * C++ adds those of two enumerations with a warning. */
#define POINTWISE_UNARY 0        /* + STRATA_UNARY_*: y = op(a) */
#define POINTWISE_ELEMENTWISE 64 /* + STRATA_SUM ...: y = a op b; not mean */
#define POINTWISE_FMOD 95        /* y = a - b*truncated(a/b) */
#define POINTWISE_COMPARE 96     /* + STRATA_COMPARE_*: y = a op b */
#define POINTWISE_SELECT 104     /* y = a ? b : c */
#define POINTWISE_AFFINE 105     /* y = a*alpha + beta */
#define POINTWISE_PRELU 106      /* y = a < 0 ? a*b : a */
#define POINTWISE_COPY 107
#define POINTWISE_QUANTIZE 108   /* y = round(a/b) + c */
#define POINTWISE_DEQUANTIZE 109 /* y = (a - b)*c */
#define POINTWISE_ROUND 112 /* + STRATA_FP16, STRATA_BF16: the nearest of the dtype */
#define POINTWISE_ACTIVATION 128 /* + STRATA_RELU ...: kinds of alpha and beta */
#define POINTWISE_END 160

/* What an operation takes beside rows. */
struct pointwise_constants {
    double alpha, beta; /* of activations; is_inf: whether -inf and +inf count */
    int32_t bits;       /* of an integer dtype, for shifts and what wraps */
    int32_t reserved;
};

#endif /* PLUGINS_COMMON_POINTWISE_OPERATIONS_H */
