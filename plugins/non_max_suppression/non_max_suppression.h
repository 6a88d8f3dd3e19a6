/* SPDX-License-Identifier: Apache-2.0
 *
 * What NonMaxSuppression's impls share: boxes, their overlap in FP64, and the order of
 * scores as a number.
 */
#ifndef PLUGINS_NON_MAX_SUPPRESSION_NON_MAX_SUPPRESSION_H
#define PLUGINS_NON_MAX_SUPPRESSION_NON_MAX_SUPPRESSION_H

#include <strata/layers.h>

#include "plugins/common/index.h"

struct nms_box {
    double low[2], high[2];
};

/* v: as the network gives it. */
INDEX_INLINE struct nms_box nms_box(double v0, double v1, double v2, double v3,
                                    int32_t form)
{
    struct nms_box b;
    const double v[4] = {v0, v1, v2, v3};
    for (int d = 0; d < 2; d++) {
        const double a = form == STRATA_BOX_CENTER ? v[d] - v[2 + d] / 2 : v[d];
        const double c = form == STRATA_BOX_CENTER ? v[d] + v[2 + d] / 2 : v[2 + d];
        b.low[d] = a < c ? a : c;
        b.high[d] = a < c ? c : a;
    }
    return b;
}

/* Whether the shared part of what both cover is above the threshold. */
INDEX_INLINE int nms_overlap(const struct nms_box *a, const struct nms_box *b, double iou)
{
    double shared = 1, first = 1, second = 1;
    for (int d = 0; d < 2; d++) {
        const double low = a->low[d] > b->low[d] ? a->low[d] : b->low[d];
        const double high = a->high[d] < b->high[d] ? a->high[d] : b->high[d];
        shared = index_times(shared, high > low ? high - low : 0);
        first = index_times(first, a->high[d] - a->low[d]);
        second = index_times(second, b->high[d] - b->low[d]);
    }
    const double all = first + second - shared;
    return shared > 0 && all > 0 && shared / all > iou;
}

/* Rising keys are falling scores, then rising indices. bits: of the FP32 score. */
INDEX_INLINE uint64_t nms_key(uint32_t bits, int64_t index)
{
    if ((bits & 0x7fffffff) == 0) /* both zeros are equal */
        bits = 0;
    const uint32_t rising = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)~rising << 32 | (uint64_t)index;
}

/* Boxes kept of a class, at most. */
static inline int64_t nms_most(const strata_non_max_suppression *p, int64_t boxes)
{
    return p->max_output < boxes ? p->max_output : boxes;
}

#endif /* PLUGINS_NON_MAX_SUPPRESSION_NON_MAX_SUPPRESSION_H */
