/* SPDX-License-Identifier: Apache-2.0
 *
 * Indices that are data, and copies of whole rows that they choose: what Gather,
 * Embedding, Scatter and ReverseSequence share.
 */
#ifndef PLUGINS_COMMON_INDEX_H
#define PLUGINS_COMMON_INDEX_H

#include <stdint.h>
#include <string.h>

#include <strata/plugin.h>

#ifdef __CUDACC__
#define INDEX_INLINE static __host__ __device__ inline
#else
#define INDEX_INLINE static inline
#endif

/* Every dtype in its linear layout, of any element size. */
#define INDEX_LINEAR                                                                     \
    (STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_F64_NCHW |            \
     STRATA_I8_NCHW | STRATA_U8_NCHW | STRATA_I32_NCHW | STRATA_I64_NCHW |               \
     STRATA_BOOL_NCHW | STRATA_E4M3_NCHW | STRATA_E5M2_NCHW)
#define INDEX_FORMATS (STRATA_I32_NCHW | STRATA_I64_NCHW) /* of indices */

#define INDEX_PARALLEL (1 << 16) /* bytes below which threads do not pay */

/* A product of which the device's compiler makes no fused sum: both devices choose the
 * same elements where the result decides. */
INDEX_INLINE double index_times(double a, double b)
{
#ifdef __CUDA_ARCH__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

INDEX_INLINE int64_t index_value(const void *data, int32_t dtype, int64_t i)
{
    return dtype == STRATA_INT64 ? ((const int64_t *)data)[i]
                                 : ((const int32_t *)data)[i];
}

/* Index i as a position in a dim, negative ones from its end; -1 when outside. */
INDEX_INLINE int64_t index_at(const void *data, int32_t dtype, int64_t i, int64_t dim)
{
    int64_t at = index_value(data, dtype, i);
    at += at < 0 ? dim : 0;
    return (uint64_t)at < (uint64_t)dim ? at : -1;
}

/* The same of an index that a reference has as int64_t. */
INDEX_INLINE int64_t index_wrapped(int64_t at, int64_t dim)
{
    at += at < 0 ? dim : 0;
    return (uint64_t)at < (uint64_t)dim ? at : -1;
}

/* Bytes of an element. */
static inline int64_t index_size(int32_t dtype)
{
    static const int8_t sizes[STRATA_DTYPE_COUNT] = {
        [STRATA_FP32] = 4,  [STRATA_FP16] = 2,  [STRATA_INT8] = 1,  [STRATA_UINT8] = 1,
        [STRATA_INT32] = 4, [STRATA_INT64] = 8, [STRATA_BOOL8] = 1, [STRATA_BF16] = 2,
        [STRATA_E4M3] = 1,  [STRATA_E5M2] = 1,  [STRATA_FP64] = 8,
    };
    return sizes[dtype];
}

/* Elements in dims [begin, end); of a tensor that exists, so it fits. */
static inline int64_t index_count(const strata_tensor *t, int32_t begin, int32_t end)
{
    int64_t n = 1;
    for (int32_t d = begin; d < end; d++)
        n *= t->dims[d];
    return n;
}

/* An axis counted from the front, or -1. */
static inline int32_t index_axis(int64_t axis, int32_t rank)
{
    axis += axis < 0 ? rank : 0;
    return axis < 0 || axis >= rank ? -1 : (int32_t)axis;
}

static inline int index_is_integer(int32_t dtype)
{
    return dtype == STRATA_INT32 || dtype == STRATA_INT64;
}

/* Indices of the data's rank, one for each element: dims of the indices with the data's
 * strides, dims that lie dense in each other joined; an index takes the place of the
 * position on `axis`. */
struct index_elements {
    const void *index;
    int64_t dim; /* of the data along the axis */
    int64_t n[STRATA_MAX_RANK], stride[STRATA_MAX_RANK];
    int32_t rank, axis, dtype;
};

static inline struct index_elements index_join(int32_t axis, const strata_tensor *x,
                                               const strata_tensor *index)
{
    struct index_elements g = {.index = index->data, .dim = x->dims[axis], .axis = -1};
    g.dtype = index->dtype;
    for (int32_t d = 0; d < x->rank; d++) {
        const int64_t stride = index_count(x, d + 1, x->rank);
        const int32_t last = g.rank - 1;
        if (d != axis && last >= 0 && last != g.axis &&
            g.stride[last] == index->dims[d] * stride) {
            g.n[last] *= index->dims[d];
            g.stride[last] = stride;
            continue;
        }
        g.axis = d == axis ? g.rank : g.axis;
        g.n[g.rank] = index->dims[d];
        g.stride[g.rank++] = stride;
    }
    return g;
}

/* Copy a row, or write zeros where there is none. Short rows of common sizes go without
 * a call. */
static inline void index_copy_row(char *to, const char *from, int64_t bytes)
{
    if (!from)
        memset(to, 0, (size_t)bytes);
    else if (bytes == 4)
        memcpy(to, from, 4);
    else if (bytes == 8)
        memcpy(to, from, 8);
    else
        memcpy(to, from, (size_t)bytes);
}

#endif /* PLUGINS_COMMON_INDEX_H */
