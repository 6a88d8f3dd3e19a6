/* SPDX-License-Identifier: Apache-2.0
 *
 * What a PooledConvolution's impls share: its filters, the convolution's windows and
 * those of the maxima.
 */
#ifndef PLUGINS_POOLED_CONVOLUTION_SHAPE_H
#define PLUGINS_POOLED_CONVOLUTION_SHAPE_H

#include <strata/layers.h>

#include "plugins/common/filters.h"

enum { POOLED_WEIGHT, POOLED_BIAS, POOLED_SCALE_OUT };

struct pooled_shape {
    int64_t filters;
    struct window w, pool;
};

static inline int pooled_resolve(const strata_node *n, struct pooled_shape *s)
{
    const strata_pooled_convolution *p = (const strata_pooled_convolution *)n->params;
    static const int64_t one = 1;
    strata_tensor between = n->in[0];
    const int status = filters_of_convolution(
        n, &p->convolution, &n->weight[POOLED_WEIGHT], &s->w, &s->filters);
    if (status != STRATA_OK)
        return status;
    for (int d = 0; d < s->w.dims; d++)
        between.dims[2 + d] = s->w.out[s->w.first + d];
    strata_pooling pooling = p->pooling;
    if (pooling.kernel.n == 0) {
        pooling.kernel.v = &one;
        pooling.kernel.n = 1;
    }
    return window_of_pooling(&s->pool, &pooling, &between, n->host, n->err);
}

#endif /* PLUGINS_POOLED_CONVOLUTION_SHAPE_H */
