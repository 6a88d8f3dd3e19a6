/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that gather along dims: Softmax, Normalization, Reduce, ArgMax, TopK and CumSum.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_ROWS_H
#define STRATA_LAYERS_ROWS_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct strata_softmax {
    int64_t axis; /* negative counts from the end */
    int32_t log;  /* log-softmax */
    int32_t reserved;
} strata_softmax;

/* Normalization: y = scale*(x - mean)/sqrt(variance + epsilon) + bias, x the sum of the
 * first input and an optional second one. layer and rms normalize the dims from `axis` on
 * (rms: mean 0), group and instance the channels of a group, or one channel, over the
 * spatial dims, batch by the weights mean and variance; lp is x/|x|, the p-norm along
 * `axis`. Outputs: y; with `sum` then x; with `statistics` (layer) then mean and
 * 1/sqrt(variance + epsilon), FP32, with 1 for the normalized dims. */
enum {
    STRATA_NORMALIZATION_LAYER = 0,
    STRATA_NORMALIZATION_RMS = 1,
    STRATA_NORMALIZATION_GROUP = 2,
    STRATA_NORMALIZATION_INSTANCE = 3,
    STRATA_NORMALIZATION_BATCH = 4,
    STRATA_NORMALIZATION_LP = 5
};
typedef struct strata_normalization {
    int32_t kind;
    int32_t sum;        /* give the sum of both inputs */
    int32_t statistics; /* give mean and inverse deviation */
    int32_t reserved;
    int64_t axis; /* negative counts from the end */
    int64_t groups;
    int64_t p;
    double epsilon;
} strata_normalization;

/* Reduce over `axes` (all when empty). Empty sets: sums 0, prod 1, max the least and min
 * the greatest of the dtype, mean NaN (integers: 0), log_sum and log_sum_exp -infinity.
 * Integers gather in 64 bits and wrap; their mean truncates. */
enum {
    STRATA_REDUCE_SUM = 0,
    STRATA_REDUCE_MEAN = 1,
    STRATA_REDUCE_MAX = 2,
    STRATA_REDUCE_MIN = 3,
    STRATA_REDUCE_PROD = 4,
    STRATA_REDUCE_L1 = 5,
    STRATA_REDUCE_L2 = 6,
    STRATA_REDUCE_SUM_SQUARE = 7,
    STRATA_REDUCE_LOG_SUM = 8,
    STRATA_REDUCE_LOG_SUM_EXP = 9
};
typedef struct strata_reduce {
    int32_t op;
    int32_t keep_dims; /* reduced dims stay as dims of 1 */
    strata_ints axes;  /* in any order; negative counts from the end */
} strata_reduce;

/* ArgMax: index of the largest (smallest) element along `axis`. NaN is largest and
 * smallest, -0 equals 0. */
enum { STRATA_ARG_MAX = 0, STRATA_ARG_MIN = 1 };
enum { STRATA_TIES_FIRST = 0, STRATA_TIES_LAST = 1 };
enum { STRATA_INDEX_I64 = 0, STRATA_INDEX_I32 = 1 };
typedef struct strata_arg_max {
    int32_t op;
    int32_t keep_dims;
    int32_t ties;  /* which index of equal elements */
    int32_t index; /* dtype of the output */
    int64_t axis;  /* negative counts from the end */
} strata_arg_max;

/* TopK: the k largest (smallest) elements along `axis`, in order, and their indices (i64).
 * NaN is larger than infinity; of equal elements the lower index comes first. */
typedef struct strata_top_k {
    int64_t k;
    int64_t axis; /* negative counts from the end */
    int32_t largest;
    int32_t sorted; /* ours are always in order */
} strata_top_k;

/* CumSum: y[i] = x[0] + ... + x[i] along `axis`; exclusive: to x[i - 1], beginning with 0;
 * reverse: from the end. product: the same with *, and 1. */
enum { STRATA_CUM_SUM = 0, STRATA_CUM_PRODUCT = 1 };
typedef struct strata_cum_sum {
    int32_t op;
    int32_t exclusive;
    int32_t reverse;
    int32_t reserved;
    int64_t axis; /* negative counts from the end */
} strata_cum_sum;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_ROWS_H */
