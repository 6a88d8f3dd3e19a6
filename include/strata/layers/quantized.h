/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that compute in 8 bits, and those between 8 bits and floats.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_QUANTIZED_H
#define STRATA_LAYERS_QUANTIZED_H

#include <strata/layers/sequences.h>
#include <strata/layers/windows.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Quantize and Dequantize: weights scale and zero (optional) have one element, or the
 * length of dim `axis`, or that divided by `block` in a tensor of the input's rank. */
typedef struct strata_quantize {
    int64_t axis, block; /* block 0: none */
    int32_t dtype;       /* Quantize: 0 UINT8, 1 INT8, 2 E4M3, 3 E5M2 */
    int32_t saturate;    /* Quantize to FP8 */
} strata_quantize;
typedef strata_quantize strata_dequantize;

/* What layers that compute in 8 bits share. Their input is INT8 or UINT8 and stands for
 * (x - zero_in)*scale_in, weight 0 is INT8, weight 1 the bias, and three weights of FP32
 * say how they scale: weight_scale (one, or one an output channel), scale_in and
 * scale_out (one each; scale_out where `to` is an integer). Sums are exact, in 32 bits:
 *   y = activation((sum of (x - zero_in)*weight)*(scale_in*weight_scale[k]) + bias[k])
 * in FP32, each operation rounded, none contracted. To an integer:
 *   sat(round(y/scale_out) + zero_out), a true division, ties to even; NaN is 0.
 * QuantizedProduct also takes E4M3 by E4M3, to FP32 or E4M3: sums are FP32's, whose order
 * and rounding are the impl's, zeros are 0, and y/scale_out saturates; a NaN stays one. */
typedef struct strata_quantized {
    int64_t zero_in, zero_out;
    int32_t to;         /* 0 FP32, 1 INT8, 2 UINT8, 3 E4M3 */
    int32_t activation; /* 0: none; 1 + STRATA_RELU to STRATA_CLIP */
    double alpha, beta; /* of the activation, with no default of its kind */
} strata_quantized;
enum { STRATA_QUANTIZED_WEIGHT, STRATA_QUANTIZED_BIAS, STRATA_QUANTIZED_FACTORS,
       STRATA_QUANTIZED_SCALE_IN, STRATA_QUANTIZED_SCALE_OUT, STRATA_QUANTIZED_WEIGHTS };

/* Convolution in 8 bits. A second input, of 8 bits and the output's shape, is added before
 * the activation, which then takes
 *   y + (b - zero_addend)*scale_addend
 * or, where y is rounded to `between` first and read back,
 *   r = sat(round(y/scale_between) + zero_between)
 *   (r - zero_between)*scale_between + (b - zero_addend)*scale_addend. */
typedef struct strata_quantized_convolution {
    strata_convolution convolution;
    strata_quantized quantized;
    int64_t zero_addend, zero_between;
    int32_t between; /* 0 none, 1 INT8, 2 UINT8; with a second input alone */
    int32_t reserved;
} strata_quantized_convolution;
enum { STRATA_QUANTIZED_SCALE_ADDEND = STRATA_QUANTIZED_WEIGHTS,
       STRATA_QUANTIZED_SCALE_BETWEEN, STRATA_QUANTIZED_CONVOLUTION_WEIGHTS };

/* Deconvolution in 8 bits: weight_scale is one, or one an output channel. */
typedef struct strata_quantized_deconvolution {
    strata_deconvolution deconvolution;
    strata_quantized quantized;
} strata_quantized_deconvolution;

/* MatrixMultiply by a constant in 8 bits: input ... x M x K, weight K x N or N x K. */
typedef struct strata_quantized_product {
    int64_t units;      /* N; 0: from the weight */
    int32_t transposed; /* weight is N x K */
    int32_t reserved;
    strata_quantized quantized;
} strata_quantized_product;

/* DynamicProduct: rows of UINT8 with a scale and a zero that are inputs, times a constant
 * K x N of INT8, to FP32. */
typedef struct strata_dynamic_product {
    int64_t units; /* N; 0: from the weight */
} strata_dynamic_product;

/* QuantizedSum: y = activation((a - zero_a)*scale_a + (b - zero_b)*scale_b) in FP32, then
 * as above; inputs of one shape, weights scale_a, scale_b, scale_out (one each). zero_in
 * is zero_a. */
typedef struct strata_quantized_sum {
    strata_quantized quantized;
    int64_t zero_b;
} strata_quantized_sum;

/* QuantizedPooling: averages of bytes, or maxima of floats. The sum of (x - zero_in) is
 * exact in 32 bits, then y = activation(sum*scale_in/counted) in FP32, each operation
 * rounded; or y = activation(maximum). Then as above. Weights scale_in (without
 * effect on floats) and scale_out, one each. */
typedef struct strata_quantized_pooling {
    strata_pooling pooling;
    strata_quantized quantized;
} strata_quantized_pooling;

/* Attention of E4M3: inputs q, k, v, mask and lengths as Attention's, q, k and v times the
 * weights scale_q, scale_k and scale_v, also the parts of a packed q. Weights of the
 * softmax may be rounded to E4M3, in steps of a power of two by their row's largest. Of
 * `attention` cache, present and scores are 0. To E4M3: y/scale_out, which saturates. */
typedef struct strata_quantized_attention {
    strata_attention attention;
    int32_t to; /* 0 FP32, 1 E4M3 */
    int32_t reserved;
} strata_quantized_attention;
enum { STRATA_QUANTIZED_SCALE_Q, STRATA_QUANTIZED_SCALE_K, STRATA_QUANTIZED_SCALE_V,
       STRATA_QUANTIZED_SCALE_Y, STRATA_QUANTIZED_ATTENTION_WEIGHTS };

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_QUANTIZED_H */
