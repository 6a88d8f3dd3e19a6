/* SPDX-License-Identifier: Apache-2.0
 *
 * What RoiAlign's impls share: the sampling points of a bin, along one dim, and the
 * elements around a point. FP64, so that both devices and the reference take as many.
 */
#ifndef PLUGINS_ROI_ALIGN_ROI_ALIGN_H
#define PLUGINS_ROI_ALIGN_ROI_ALIGN_H

#include <float.h>
#include <math.h>

#include <strata/layers.h>

#include "plugins/common/index.h"

#define ROI_MOST 4096 /* points of a bin along a dim */

/* A region along one dim: bins of `bin` elements from `begin` on, `points` in each. */
struct roi_side {
    double begin, bin;
    int64_t points, dim; /* dim: of the input */
};

/* Neighbours of a point; weight 0 of both: outside. */
struct roi_pair {
    int64_t low, high;
    double low_weight, high_weight;
};

INDEX_INLINE struct roi_side roi_side(double low, double high, int64_t bins, int64_t dim,
                                      double scale, int64_t sampling, int32_t coordinates)
{
    const double offset = coordinates == STRATA_ROI_HALF_PIXEL ? 0.5 : 0;
    struct roi_side s;
    double length = index_times(high, scale) - offset - (index_times(low, scale) - offset);
    if (coordinates != STRATA_ROI_HALF_PIXEL && !(length >= 1))
        length = 1;
    s.begin = index_times(low, scale) - offset;
    s.bin = length / (double)bins;
    s.dim = dim;
    const double wanted = sampling > 0 ? (double)sampling : ceil(s.bin);
    s.points = !(wanted > 0) ? 0 : wanted < ROI_MOST ? (int64_t)wanted : ROI_MOST;
    return s;
}

/* Points of bin k from *begin on, before *end: all that may lie in the input. The others
 * are 0, and many where a region is far larger than its image. */
INDEX_INLINE void roi_inside(const struct roi_side *s, int64_t k, int64_t *begin,
                             int64_t *end)
{
    const double most = (double)s->points, step = s->bin / most;
    const double from = s->begin + index_times((double)k, s->bin);
    *begin = *end = 0;
    if (!(fabs(from) <= DBL_MAX && fabs(step) <= DBL_MAX))
        return;
    const double a = (-1 - from) / step, b = ((double)s->dim - from) / step;
    const double low = floor(step < 0 ? b : a) - 1, high = ceil(step < 0 ? a : b) + 1;
    *begin = low > most ? s->points : low > 0 ? (int64_t)low : 0;
    *end = high < (double)*begin ? *begin : high < most ? (int64_t)high : s->points;
}

/* Point i of bin k. */
INDEX_INLINE struct roi_pair roi_point(const struct roi_side *s, int64_t k, int64_t i)
{
    struct roi_pair p = {0, 0, 0, 0};
    double at =
        s->begin + index_times((double)k, s->bin) +
        index_times((double)i + 0.5, s->bin) / (double)s->points;
    if (!(at >= -1 && at <= (double)s->dim))
        return p;
    at = at < 0 ? 0 : at;
    p.low = (int64_t)at;
    p.high = p.low + 1;
    if (p.low >= s->dim - 1) {
        p.low = p.high = s->dim - 1;
        at = (double)p.low;
    }
    p.high_weight = at - (double)p.low;
    p.low_weight = 1 - p.high_weight;
    return p;
}

/* Bins along height (0) or width (1). */
static inline int64_t roi_bins(const strata_roi_align *p, int32_t side)
{
    return p->size.n == 0 ? 1 : p->size.v[p->size.n == 1 ? 0 : side];
}

#endif /* PLUGINS_ROI_ALIGN_ROI_ALIGN_H */
