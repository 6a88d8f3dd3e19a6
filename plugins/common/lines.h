/* SPDX-License-Identifier: Apache-2.0
 *
 * A dense linear tensor as lines along one axis: line i begins at i / inner * length *
 * inner + i % inner, and its elements are `inner` apart. C99 and C++14.
 */
#ifndef PLUGINS_COMMON_LINES_H
#define PLUGINS_COMMON_LINES_H

#include <strata/plugin.h>

#ifdef __CUDACC__
#define LINES_INLINE static __host__ __device__ inline
#else
#define LINES_INLINE static inline
#endif

struct lines {
    int64_t outer, length, inner;
};

/* The axis counted from the front, or -1. */
static inline int32_t lines_axis(int64_t axis, int32_t rank)
{
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 || axis >= rank ? -1 : (int32_t)axis;
}

static inline struct lines lines_of(const strata_tensor *t, int32_t axis)
{
    struct lines l = {1, t->dims[axis], 1};
    for (int32_t d = 0; d < axis; d++)
        l.outer *= t->dims[d];
    for (int32_t d = axis + 1; d < t->rank; d++)
        l.inner *= t->dims[d];
    return l;
}

/* Where line i begins in a tensor whose lines have `length` elements. */
LINES_INLINE int64_t lines_start(int64_t i, int64_t length, int64_t inner)
{
    return i / inner * length * inner + i % inner;
}

#endif /* PLUGINS_COMMON_LINES_H */
