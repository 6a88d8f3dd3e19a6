/* SPDX-License-Identifier: Apache-2.0
 *
 * What Normalization means on every device: which elements share mean and deviation, and
 * what its outputs are. C99 and C++14.
 */
#ifndef PLUGINS_NORMALIZATION_NORMALIZATION_H
#define PLUGINS_NORMALIZATION_NORMALIZATION_H

#include <strata/layers.h>

/* Formats of rows and lines. */
#define NORM_LINEAR (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW)

enum { NORM_SCALE, NORM_BIAS, NORM_MEAN, NORM_VARIANCE, NORM_WEIGHTS };

/* The axis counted from the front, or -1. */
static inline int32_t norm_axis(const strata_normalization *p, int32_t rank)
{
    const int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
    return axis < 0 || axis >= rank ? -1 : (int32_t)axis;
}

/* Product of dims first to last - 1. */
static inline int64_t norm_span(const strata_tensor *t, int32_t first, int32_t last)
{
    int64_t n = 1;
    for (int32_t d = first; d < last; d++)
        n *= t->dims[d];
    return n;
}

/* Whether elements are normalized over all dims from the axis on. */
static inline int norm_by_rows(const strata_normalization *p)
{
    return p->kind == STRATA_NORMALIZATION_LAYER || p->kind == STRATA_NORMALIZATION_RMS;
}

/* Groups of channels; dim 1 has channels. */
static inline int64_t norm_groups(const strata_normalization *p, const strata_tensor *x)
{
    return p->kind == STRATA_NORMALIZATION_GROUP ? p->groups : x->dims[1];
}

/* Index of the output with the sum, or with the mean; -1: none. */
static inline int norm_sum_output(const strata_normalization *p)
{
    return p->sum ? 1 : -1;
}
static inline int norm_mean_output(const strata_normalization *p)
{
    return p->statistics ? 1 + (p->sum != 0) : -1;
}

#endif /* PLUGINS_NORMALIZATION_NORMALIZATION_H */
