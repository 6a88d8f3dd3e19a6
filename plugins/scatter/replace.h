/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of 4 bytes that take the place of others, without a call for each.
 */
#ifndef PLUGINS_SCATTER_REPLACE_H
#define PLUGINS_SCATTER_REPLACE_H

#include "plugins/common/index.h"

/* Indices `at` on of one line along the axis, `each` apart, and of n neighbours inside
 * it; `to` is the line's first element. The last of those that meet stays. */
static inline void replace_line(uint32_t *to, const uint32_t *updates,
                                const struct index_elements *g, int64_t at, int64_t each,
                                int64_t n)
{
    const int64_t stride = g->stride[g->axis];
    for (int64_t k = 0; k < g->n[g->axis]; k++, at += each)
        for (int64_t i = 0; i < n; i++) {
            const int64_t j = index_at(g->index, g->dtype, at + i, g->dim);
            if (j >= 0)
                to[j * stride + i] = updates[at + i];
        }
}

#endif /* PLUGINS_SCATTER_REPLACE_H */
