/* SPDX-License-Identifier: Apache-2.0
 *
 * What Scatter's impls share: where a tuple of indices leads, what gathers in FP32.
 */
#ifndef PLUGINS_SCATTER_SCATTER_H
#define PLUGINS_SCATTER_SCATTER_H

#include <strata/layers.h>

#include "plugins/common/index.h"

/* Whether updates gather in FP32, which is rounded once at the end. */
static inline int scatter_gathers(const strata_scatter *p, int32_t dtype)
{
    return (dtype == STRATA_FP16 || dtype == STRATA_BF16) &&
           (p->reduction == STRATA_SCATTER_ADD || p->reduction == STRATA_SCATTER_MUL);
}

/* Bytes of the FP32 that they gather in. */
static inline size_t scatter_gather_size(const strata_node *n)
{
    return scatter_gathers((const strata_scatter *)n->params, n->in[0].dtype)
               ? (size_t)n->out[0].count * sizeof(float)
               : 0;
}

/* Mode nd: `tuples` of `depth` indices, each leads to a row of the data. */
struct scatter_rows {
    const void *index;
    int64_t tuples, row;                                   /* row: elements */
    int64_t dim[STRATA_MAX_RANK], stride[STRATA_MAX_RANK]; /* stride: in rows */
    int32_t depth, dtype;
};

static inline struct scatter_rows scatter_rows(const strata_tensor *x,
                                               const strata_tensor *index)
{
    struct scatter_rows s = {.index = index->data, .dtype = index->dtype};
    s.depth = (int32_t)index->dims[index->rank - 1];
    s.tuples = index_count(index, 0, index->rank - 1);
    s.row = index_count(x, s.depth, x->rank);
    for (int32_t k = 0; k < s.depth; k++) {
        s.dim[k] = x->dims[k];
        s.stride[k] = index_count(x, k + 1, s.depth);
    }
    return s;
}

/* Row of the data, or -1: an index is outside. */
INDEX_INLINE int64_t scatter_target(const struct scatter_rows *s, int64_t tuple)
{
    int64_t row = 0;
    for (int32_t k = 0; k < s->depth; k++) {
        const int64_t i = index_at(s->index, s->dtype, tuple * s->depth + k, s->dim[k]);
        if (i < 0)
            return -1;
        row += i * s->stride[k];
    }
    return row;
}

#endif /* PLUGINS_SCATTER_SCATTER_H */
