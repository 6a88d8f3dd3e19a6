/* SPDX-License-Identifier: Apache-2.0
 *
 * What Resize's impls share: which input elements an output index is made of.
 */
#ifndef PLUGINS_RESIZE_RESIZE_H
#define PLUGINS_RESIZE_RESIZE_H

#include <math.h>

#include <strata/layers.h>

#include "plugins/common/element.h"

/* Input coordinate of index i of dim d, inside or outside the input. */
static inline double resize_coordinate(const strata_resize *p, const strata_tensor *x,
                                       const strata_tensor *y, int32_t d, int64_t i)
{
    double in = (double)x->dims[d], out = (double)y->dims[d], at = (double)i;
    if (p->coordinates == STRATA_ALIGN_CORNERS)
        return out > 1 ? at * (in - 1) / (out - 1) : 0;
    if (p->scale.n > 0) {
        in = 1;
        out = p->scale.v[p->scale.n == 1 ? 0 : d - 2];
    }
    return p->coordinates == STRATA_ASYMMETRIC ? at * in / out
                                               : (at + 0.5) * in / out - 0.5;
}

static inline int64_t resize_nearest(const strata_resize *p, const strata_tensor *x,
                                     const strata_tensor *y, int32_t d, int64_t i)
{
    double at = resize_coordinate(p, x, y, d, i);
    at = p->coordinates == STRATA_ASYMMETRIC ? floor(at) : ceil(at - 0.5);
    return (int64_t)element_clamp(at, 0, (double)(x->dims[d] - 1));
}

/* Lower neighbour of index i of dim d, and the share of the next one. */
static inline int64_t resize_lower(const strata_resize *p, const strata_tensor *x,
                                   const strata_tensor *y, int32_t d, int64_t i,
                                   double *share)
{
    double at =
        element_clamp(resize_coordinate(p, x, y, d, i), 0, (double)(x->dims[d] - 1));
    *share = at - floor(at);
    return (int64_t)at;
}

#endif /* PLUGINS_RESIZE_RESIZE_H */
