/* SPDX-License-Identifier: Apache-2.0
 *
 * Dense linear tensors by logical index, and what lies between, for references of either
 * version.
 */
#ifndef PLUGINS_COMMON_DENSE_H
#define PLUGINS_COMMON_DENSE_H

#include <math.h>
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

/* Offset in an operand of the element at `index` of a result of a rank: NumPy's rules,
 * dims are aligned at the right, and those of 1 stretch. */
static inline int64_t dense_broadcast_from(const strata_tensor *t, const int64_t *index,
                                           int32_t rank)
{
    int64_t offset = 0;
    index += rank - t->rank;
    for (int d = 0; d < t->rank; d++)
        offset = offset * t->dims[d] + (t->dims[d] == 1 ? 0 : index[d]);
    return offset;
}

/* The same for an operand of the result's rank. */
static inline int64_t dense_broadcast(const strata_tensor *t, const int64_t *index)
{
    return dense_broadcast_from(t, index, t->rank);
}

static inline int64_t dense_count(const strata_tensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->rank; d++)
        count *= t->dims[d];
    return count;
}

/* Whether "strata.reference/2" has a tensor's values as doubles, else as int64_t. */
static inline int dense_is_real(int32_t dtype)
{
    return dtype == STRATA_FP32 || dtype == STRATA_FP16 || dtype == STRATA_BF16 ||
           dtype == STRATA_FP64 || dtype == STRATA_E4M3 || dtype == STRATA_E5M2;
}

/* An integer as its type holds it: the low bits, two's complement. */
static inline int64_t dense_wrap(int32_t dtype, int64_t x)
{
    switch (dtype) {
    case STRATA_INT8:
        return (int8_t)(uint8_t)x;
    case STRATA_UINT8:
        return (uint8_t)x;
    case STRATA_INT32:
        return (int32_t)(uint32_t)x;
    case STRATA_BOOL8:
        return x != 0;
    default:
        return x;
    }
}

/* A layer's extension function when its reference is all it extends. */
static inline const void *dense_extension(const char *id, const strata_reference *r)
{
    return strcmp(id, STRATA_REFERENCE_V1) == 0 ? r : NULL;
}

static inline const void *dense_extension_typed(const char *id,
                                                const strata_reference_typed *r)
{
    return strcmp(id, STRATA_REFERENCE_V2) == 0 ? r : NULL;
}

/* What lies between is stored in FP16 where the input is, and never becomes infinite
 * (STRATA_HELD_WITHIN). */
static inline void dense_hold(const strata_node *n, double *between, int64_t count)
{
    const double most = 65504;
    for (int64_t i = 0; i < count && n->in[0].dtype == STRATA_FP16; i++)
        if (!isnan(between[i]))
            between[i] = fmin(fmax(between[i], -most), most);
}

#endif /* PLUGINS_COMMON_DENSE_H */
