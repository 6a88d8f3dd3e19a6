/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense linear tensors by logical index, for the FP64 references.
 */
#ifndef PLUGINS_COMMON_DENSE_H
#define PLUGINS_COMMON_DENSE_H

#include <string.h>

#include <strata/plugin.h>

/* Index of element i. */
static inline void dense_index(const strata_tensor *t, int64_t i, int64_t *index)
{
    for (int d = t->rank - 1; d >= 0; d--) {
        index[d] = i % t->dims[d];
        i /= t->dims[d];
    }
}

static inline int64_t dense_offset(const strata_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int d = 0; d < t->rank; d++)
        offset = offset * t->dims[d] + index[d];
    return offset;
}

/* As above; dims of 1 stretch. */
static inline int64_t dense_broadcast(const strata_tensor *t, const int64_t *index)
{
    int64_t offset = 0;
    for (int d = 0; d < t->rank; d++)
        offset = offset * t->dims[d] + (t->dims[d] == 1 ? 0 : index[d]);
    return offset;
}

static inline int64_t dense_count(const strata_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++)
        count *= t->dims[d];
    return count;
}

/* A layer's extension function when its reference is all it extends. */
static inline const void *dense_extension(const char *id, const strata_reference *r)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? r : NULL;
}

#endif /* PLUGINS_COMMON_DENSE_H */
