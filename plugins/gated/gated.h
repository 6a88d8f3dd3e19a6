/* SPDX-License-Identifier: Apache-2.0
 *
 * The halves of Gated's input, for its impls on all devices.
 */
#ifndef PLUGINS_GATED_GATED_H
#define PLUGINS_GATED_GATED_H

#include <strata/layers.h>

#include "plugins/common/dtype.h"

static inline int32_t gated_axis(const strata_gated *p, int32_t rank)
{
    return (int32_t)(p->axis < 0 ? p->axis + rank : p->axis);
}

static inline strata_activation gated_activation(const strata_gated *p)
{
    strata_activation a = {p->kind, 0, p->alpha, p->beta};
    return a;
}

/* Vectors of a half must begin where a block does. */
static inline int gated_accept(const strata_node *n)
{
    const strata_gated *p = (const strata_gated *)n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t axis = gated_axis(p, x->rank);
    if (x->vector > 1 && axis == x->vector_dim && x->dims[axis] / 2 % x->vector != 0)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "half of dim %d, %lld, is no multiple of the vector width %d",
                           (int)axis, (long long)(x->dims[axis] / 2), (int)x->vector);
    return STRATA_OK;
}

/* The first (0) or second half of x. */
static inline strata_tensor gated_half(const strata_tensor *x, int32_t axis, int second)
{
    strata_tensor half = *x;
    half.dims[axis] = x->dims[axis] / 2;
    half.count = x->count / 2;
    const int64_t blocks =
        axis == x->vector_dim ? half.dims[axis] / x->vector : half.dims[axis];
    if (second)
        half.data =
            (char *)x->data + blocks * x->strides[axis] * (int64_t)dtype_size(x->dtype);
    return half;
}

#endif /* PLUGINS_GATED_GATED_H */
