/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers with windows over the spatial dims: Convolution, Deconvolution, Pooling, MaxUnpool
 * and LRN.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_WINDOWS_H
#define STRATA_LAYERS_WINDOWS_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* pad_mode of windows. SAME pads so that out = ceil(in/stride); the odd element goes to
 * the end (upper) or the begin (lower). VALID is no padding. */
enum {
    STRATA_PAD_EXPLICIT = 0,
    STRATA_PAD_SAME_UPPER = 1,
    STRATA_PAD_SAME_LOWER = 2,
    STRATA_PAD_VALID = 3
};

/* Convolution: weight (K, C/groups, kernel...), bias (K) optional. Rank 3 to 5. */
typedef struct strata_convolution {
    int64_t filters;    /* K; 0: from the weight */
    strata_ints kernel; /* empty: from the weight */
    strata_ints stride, pad, dilation;
    int32_t pad_mode;
    int32_t reserved;
    int64_t groups;
} strata_convolution;

enum { STRATA_POOL_MAX = 0, STRATA_POOL_AVERAGE = 1, STRATA_POOL_LP = 2 };
typedef struct strata_pooling {
    int32_t kind;
    int32_t global; /* kernel is the whole plane */
    strata_ints kernel, stride, pad, dilation;
    int32_t pad_mode;
    int32_t ceil_mode;
    int32_t count_include_pad; /* average divides by the kernel's area */
    int32_t indices; /* a second output, i64: where each maximum is in the whole input */
    double p;        /* of lp: (sum |x|^p)^(1/p) */
} strata_pooling;

/* Deconvolution (transposed convolution): weight (C, K/groups, kernel...), bias (K)
 * optional. Rank 3 to 5. Out = stride*(in - 1) + output_pad + (kernel - 1)*dilation + 1 -
 * pads, or output_size, which then decides the pads. */
typedef struct strata_deconvolution {
    int64_t filters;    /* K; 0: from the weight */
    strata_ints kernel; /* empty: from the weight */
    strata_ints stride, pad, dilation;
    int32_t pad_mode; /* same_*: out = in*stride */
    int32_t reserved;
    int64_t groups;
    strata_ints output_pad;  /* added at the end; empty: 0 */
    strata_ints output_size; /* empty: by the formula */
} strata_deconvolution;

/* LRN: y = x/(bias + alpha/size*sum)^beta with the sum of x^2 over the channels
 * c - (size - 1)/2 to c + size/2. Rank 3 to 5. */
typedef struct strata_lrn {
    int64_t size;
    double alpha, beta, bias;
} strata_lrn;

/* MaxUnpool: each x goes to its place of `indices`, flat in the whole output tensor of the
 * size that the window gives; all else is 0. */
typedef struct strata_max_unpool {
    strata_ints kernel, stride, pad; /* of the pooling that is undone */
    strata_ints output_size;         /* empty: by the window */
} strata_max_unpool;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_WINDOWS_H */
