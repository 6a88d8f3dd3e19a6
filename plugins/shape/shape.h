/* SPDX-License-Identifier: Apache-2.0
 *
 * What Shape's impls share: which dims the output holds.
 */
#ifndef PLUGINS_SHAPE_H
#define PLUGINS_SHAPE_H

#include <strata/layers.h>

/* The input in every format, since no element of it is read. */
#define SHAPE_FORMATS ((UINT64_C(1) << STRATA_FORMAT_COUNT) - 1)

/* Numbers that the output holds. */
static inline int64_t shape_count(const strata_shape *p, const strata_tensor *x)
{
    return p->axes.n ? p->axes.n : x->rank;
}

/* Dim of the k-th of them; -1: it is none of x's. */
static inline int32_t shape_axis(const strata_shape *p, int64_t k,
                                 const strata_tensor *x)
{
    int64_t axis = p->axes.n ? p->axes.v[k] : k;
    axis += axis < 0 ? x->rank : 0;
    return axis < 0 || axis >= x->rank ? -1 : (int32_t)axis;
}

#endif /* PLUGINS_SHAPE_H */
