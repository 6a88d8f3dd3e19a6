/* SPDX-License-Identifier: Apache-2.0
 *
 * Elements of 4 bytes that take the place of others, without a call for each.
 */
#ifndef PLUGINS_SCATTER_REPLACE_H
#define PLUGINS_SCATTER_REPLACE_H

#include "plugins/common/index.h"

/* One line along the axis: `count` indices, `each` apart, and of n neighbours inside it.
 * Those of one neighbour are a loop of their own, of a few instructions an index. */
#define REPLACE(I)                                                                       \
    static inline void replace_##I(uint32_t *to, const uint32_t *u, const I *index,      \
                                   int64_t dim, int64_t stride, int64_t count,           \
                                   int64_t each, int64_t n)                              \
    {                                                                                    \
        for (int64_t k = 0; k < count && n == 1; k++) {                                  \
            const int64_t j = index[k * each] + (index[k * each] < 0 ? dim : 0);         \
            if ((uint64_t)j < (uint64_t)dim)                                             \
                to[j * stride] = u[k * each];                                            \
        }                                                                                \
        for (int64_t k = 0; k < count && n > 1; k++, index += each, u += each)           \
            for (int64_t i = 0; i < n; i++) {                                            \
                const int64_t j = index[i] + (index[i] < 0 ? dim : 0);                   \
                if ((uint64_t)j < (uint64_t)dim)                                         \
                    to[j * stride + i] = u[i];                                           \
            }                                                                            \
    }
REPLACE(int32_t)
REPLACE(int64_t)
#undef REPLACE

/* Indices `at` on of one line along the axis, `each` apart, and of n neighbours inside
 * it; `to` is the line's first element. The last of those that meet stays. */
static inline void replace_line(uint32_t *to, const uint32_t *updates,
                                const struct index_elements *g, int64_t at, int64_t each,
                                int64_t n)
{
    const int64_t stride = g->stride[g->axis], count = g->n[g->axis];
    if (g->dtype == STRATA_INT64)
        replace_int64_t(to, updates + at, (const int64_t *)g->index + at, g->dim, stride,
                        count, each, n);
    else
        replace_int32_t(to, updates + at, (const int32_t *)g->index + at, g->dim, stride,
                        count, each, n);
}

#endif /* PLUGINS_SCATTER_REPLACE_H */
