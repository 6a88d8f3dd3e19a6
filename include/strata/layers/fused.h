/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that the planner makes of several: Projection, Perceptron, InvertedResidual,
 * Bottleneck, SelfAttention, ShortcutConvolution and PooledConvolution.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_FUSED_H
#define STRATA_LAYERS_FUSED_H

#include <strata/layers/products.h>
#include <strata/layers/sequences.h>
#include <strata/layers/windows.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Projection: rows of x times a constant matrix, `b` (K x N, or N x K transposed), and
 * `bias` (N). normalized: each row is divided by its root mean square first, whose square
 * epsilon is added to, and multiplied by `scale` (K). gated: y = f(a)*b of the halves a
 * and b of the result, N/2 each. heads: the result, batch x sequence x heads*dim, goes
 * through a RotaryEmbedding without caches; input 1 has the positions, as that's. */
typedef struct strata_projection {
    strata_matrix_multiply product; /* transpose_b and units alone */
    int32_t normalized, gated;
    int32_t kind; /* f: of an activation, STRATA_RELU ... */
    int32_t interleaved;
    double epsilon;
    double alpha, beta; /* of f; +infinity: the kind's own */
    int64_t heads;      /* 0: nothing turns */
    int64_t turned;     /* heads that turn, the first ones; 0: all */
    double base;
} strata_projection;
enum { STRATA_PROJECTION_B, STRATA_PROJECTION_BIAS, STRATA_PROJECTION_SCALE };

/* Perceptron: up to three products by constants, each with a bias and an activation, of
 * rows of x, or of the means of its planes (N x C). Weight i is units x depth, or turned
 * depth x units. `end`: the last result as it is, its softmax, or as factors of the
 * channels of x, whose means were taken: y = x*factor. The result of means has dims of 1
 * for those of the planes where keep_dims, else it is N x units. */
typedef struct strata_perceptron_product {
    int64_t units;      /* 0: from the weight; of the second and third: or no product */
    int32_t transposed; /* weight is depth x units */
    int32_t activation; /* 0: none; 1 + STRATA_RELU ... */
    double alpha, beta; /* of it; +infinity: the kind's own */
} strata_perceptron_product;
enum { STRATA_PERCEPTRON_PLAIN, STRATA_PERCEPTRON_SOFTMAX, STRATA_PERCEPTRON_FACTORS };
enum { STRATA_PERCEPTRON_PRODUCTS = 3 };
typedef struct strata_perceptron {
    strata_perceptron_product product[STRATA_PERCEPTRON_PRODUCTS];
    int32_t mean, end;
    int32_t keep_dims;
    int32_t reserved;
} strata_perceptron; /* weights: weight1, bias1, weight2, bias2, weight3, bias3 */

/* InvertedResidual: a 1x1 convolution (or none), a depthwise one, a 1x1 one (or none),
 * each with a bias and an activation; the last result has a second input added before
 * its activation. A product is there where it has results or a weight. */
enum { STRATA_INVERTED_EXPANDED, STRATA_INVERTED_CONVOLVED, STRATA_INVERTED_PROJECTED,
       STRATA_INVERTED_STAGES };
typedef struct strata_inverted_residual {
    strata_convolution depthwise; /* its windows alone */
    int64_t expanded, projected;  /* results of the products; 0: of the weights */
    int32_t activation[STRATA_INVERTED_STAGES]; /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha[STRATA_INVERTED_STAGES], beta[STRATA_INVERTED_STAGES]; /* of these;
                                                     +infinity: the kind's own */
} strata_inverted_residual;
enum { STRATA_INVERTED_EXPAND, STRATA_INVERTED_EXPAND_BIAS, STRATA_INVERTED_DEPTHWISE,
       STRATA_INVERTED_DEPTHWISE_BIAS, STRATA_INVERTED_PROJECT,
       STRATA_INVERTED_PROJECT_BIAS, STRATA_INVERTED_WEIGHTS };

/* Bottleneck: a 1x1 convolution, one with windows of all its channels, and a 1x1 one, each
 * with a bias and an activation; the last result has a second input added before its
 * activation. Weights: reduce (reduced x channels), windows (convolved x reduced x kernel),
 * project (projected x convolved), and a bias behind each. */
enum { STRATA_BOTTLENECK_REDUCED, STRATA_BOTTLENECK_CONVOLVED,
       STRATA_BOTTLENECK_PROJECTED, STRATA_BOTTLENECK_STAGES };
typedef struct strata_bottleneck {
    strata_convolution windows;            /* their kernel, stride, pads and dilation alone */
    int64_t reduced, convolved, projected; /* results; 0: of the weights */
    int32_t activation[STRATA_BOTTLENECK_STAGES]; /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha[STRATA_BOTTLENECK_STAGES], beta[STRATA_BOTTLENECK_STAGES]; /* of these;
                                                     +infinity: the kind's own */
} strata_bottleneck;
enum { STRATA_BOTTLENECK_REDUCE, STRATA_BOTTLENECK_REDUCE_BIAS, STRATA_BOTTLENECK_WINDOWS,
       STRATA_BOTTLENECK_WINDOWS_BIAS, STRATA_BOTTLENECK_PROJECT,
       STRATA_BOTTLENECK_PROJECT_BIAS, STRATA_BOTTLENECK_WEIGHTS };

/* SelfAttention: rows of x (batch x sequence x K) times a constant matrix, `b` (K x N, or
 * N x K transposed), with `bias` (N), are queries, keys and values side by side, and go
 * through an Attention with `heads`, without mask, past and lengths. */
typedef struct strata_self_attention {
    strata_matrix_multiply product; /* transpose_b and units alone */
    strata_attention attention;     /* all but cache, present and scores */
} strata_self_attention;
enum { STRATA_SELF_ATTENTION_B, STRATA_SELF_ATTENTION_BIAS };

/* ShortcutConvolution: a convolution to whose results a product (1x1) of a second input is
 * added, before an activation. Each has a bias or none. */
typedef struct strata_shortcut_convolution {
    strata_convolution convolution; /* filters, kernel, stride, pads and dilation alone */
    strata_ints shortcut_stride;    /* between the pixels taken of the second input */
    int32_t activation;             /* 0: none; 1 + STRATA_RELU ... */
    int32_t reserved;
    double alpha, beta; /* of the activation; +infinity: the kind's own */
} strata_shortcut_convolution;
enum { STRATA_SHORTCUT_CONVOLUTION_WEIGHT, STRATA_SHORTCUT_CONVOLUTION_BIAS,
       STRATA_SHORTCUT_CONVOLUTION_SHORTCUT, STRATA_SHORTCUT_CONVOLUTION_SHORTCUT_BIAS,
       STRATA_SHORTCUT_CONVOLUTION_WEIGHTS };

/* PooledConvolution: a convolution with a bias, an activation, and the maxima of windows
 * of that, which may be rounded to 8 bits. Weights are Convolution's, and a scale_out. */
typedef struct strata_pooled_convolution {
    strata_convolution convolution;
    strata_pooling pooling; /* kernel, stride, pads, dilation and ceil_mode alone */
    int32_t activation;     /* 0: none; 1 + STRATA_RELU ... */
    int32_t to;             /* 0: a float; 1: int8; 2: u8 */
    double alpha, beta;     /* of the activation; +infinity: the kind's own */
    int64_t zero_out;       /* what stands for 0 in integers */
} strata_pooled_convolution;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_FUSED_H */
