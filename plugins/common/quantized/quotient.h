/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition's true division without a divider: with r = 1/scale rounded,
 *   q = y*r, then twice q = q + (y - q*scale)*r, each by one FMA
 * is y/scale correctly rounded (Markstein: the first step leaves less than an ulp, whose
 * remainder is exact), as long as nothing over- or underflows. A quotient below a quarter
 * may underflow on the way: it rounds to 0 all the same.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_QUOTIENT_H
#define PLUGINS_COMMON_QUANTIZED_QUOTIENT_H

#include "plugins/common/quantized/quantized.h"

/* An activation as y > 0 ? y : slope*y, cut to bounds. */
static inline void quantized_bounds(const strata_quantized *q, float *slope, float *low,
                                    float *high)
{
    *slope = 1;
    *low = -INFINITY;
    *high = INFINITY;
    switch (q->activation - 1) {
    case STRATA_RELU:
        *low = 0;
        break;
    case STRATA_LEAKY_RELU:
        *slope = (float)q->alpha;
        break;
    case STRATA_RELU6:
        *low = 0;
        *high = 6;
        break;
    case STRATA_CLIP:
        *low = (float)q->alpha;
        *high = (float)q->beta;
        break;
    default:
        break;
    }
}

/* What 1/scale rounded leaves of 1/scale: y*r + y*rest is one operation more than a
 * product by r, and a thousandth of an ulp at most beside y/scale before it is rounded.
 */
static inline float quotient_rest(float scale)
{
    return (float)(1 / (double)scale - (double)(1 / scale));
}

/* Whether that always rounds to the same whole number as y/scale does: it can only matter
 * where a quotient is at the middle of two, and there are few such places. Past 512 all
 * saturate. */
static inline int quotient_is_short(float scale)
{
    enum { MOST = 512, NEIGHBOURS = 4 };
    const float r = 1 / scale, rest = quotient_rest(scale);
    for (int i = 0; i < MOST; i++) {
        float y = ((float)i + 0.5F) * scale;
        for (int k = 0; k < NEIGHBOURS; k++)
            y = nextafterf(y, 0);
        for (int k = 0; k <= 2 * NEIGHBOURS; k++, y = nextafterf(y, INFINITY))
            if (rintf(fmaf(y, r, y * rest)) != rintf(y / scale))
                return 0;
    }
    return 1;
}

/* Whether scales are so, and an activation bounded: then sums below 2^62 have quotients
 * far from the ends of FP32's range. */
static inline int quotient_is_middling(float scale)
{
    return scale > 0x1p-40F && scale < 0x1p40F;
}

static inline int quotient_is_bounded(float slope, float low, float high)
{
    return fabsf(slope) < 0x1p20F && (low == -INFINITY || fabsf(low) < 0x1p60F) &&
           (high == INFINITY || fabsf(high) < 0x1p60F);
}

#endif /* PLUGINS_COMMON_QUANTIZED_QUOTIENT_H */
