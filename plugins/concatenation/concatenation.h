/* SPDX-License-Identifier: Apache-2.0
 *
 * What Concatenation's impls share.
 */
#ifndef PLUGINS_CONCATENATION_CONCATENATION_H
#define PLUGINS_CONCATENATION_CONCATENATION_H

#include <strata/layers.h>

/* The axis counted from the front, or -1. */
static inline int32_t concatenation_axis(const void *params, int32_t rank)
{
    const strata_concatenation *p = params;
    int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
    return axis < 0 || axis >= rank ? -1 : (int32_t)axis;
}

#endif /* PLUGINS_CONCATENATION_CONCATENATION_H */
