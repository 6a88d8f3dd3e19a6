/* SPDX-License-Identifier: Apache-2.0
 *
 * What Gather's impls share: where an output row, or in mode elements an output element,
 * comes from.
 */
#ifndef PLUGINS_GATHER_GATHER_H
#define PLUGINS_GATHER_GATHER_H

#include <strata/layers.h>

#include "plugins/common/index.h"

/* Modes slices and nd. Row (b, o, i) of the output, i < per, is row
 *   (b*outer + o)*dim[0] + index[b*per + i]        of the data in mode slices, and
 *   b*batch + sum over k of index[..][k]*stride[k] in mode nd (outer is 1). */
struct gather_rows {
    const void *index;
    int64_t outer, per, batch;
    int64_t dim[STRATA_MAX_RANK], stride[STRATA_MAX_RANK]; /* of a tuple's entries */
    int32_t depth; /* entries of a tuple; 0: mode slices */
    int32_t dtype; /* of the indices */
};

static inline struct gather_rows
gather_slices(const strata_gather *p, const strata_tensor *x, const strata_tensor *index)
{
    const int32_t axis = index_axis(p->axis, x->rank), batch = (int32_t)p->batch_dims;
    struct gather_rows g = {.index = index->data, .dtype = index->dtype};
    g.outer = index_count(x, batch, axis);
    g.per = index_count(index, batch, index->rank);
    g.dim[0] = x->dims[axis];
    return g;
}

static inline struct gather_rows
gather_tuples(const strata_gather *p, const strata_tensor *x, const strata_tensor *index)
{
    const int32_t batch = (int32_t)p->batch_dims;
    struct gather_rows g = {.index = index->data, .outer = 1, .dtype = index->dtype};
    g.depth = (int32_t)index->dims[index->rank - 1];
    g.per = index_count(index, batch, index->rank - 1);
    g.batch = index_count(x, batch, batch + g.depth);
    for (int32_t k = 0; k < g.depth; k++) {
        g.dim[k] = x->dims[batch + k];
        g.stride[k] = index_count(x, batch + k + 1, batch + g.depth);
    }
    return g;
}

/* Elements of a row. */
static inline int64_t gather_row(const strata_gather *p, const strata_tensor *x,
                                 const strata_tensor *index)
{
    return p->mode == STRATA_GATHER_SLICES
               ? index_count(x, index_axis(p->axis, x->rank) + 1, x->rank)
               : index_count(x, (int32_t)(p->batch_dims + index->dims[index->rank - 1]),
                             x->rank);
}

static inline struct gather_rows
gather_rows(const strata_gather *p, const strata_tensor *x, const strata_tensor *index)
{
    return p->mode == STRATA_GATHER_SLICES ? gather_slices(p, x, index)
                                           : gather_tuples(p, x, index);
}

/* Row of the data for tuple `at` of batch b, or -1. */
INDEX_INLINE int64_t gather_tuple(const struct gather_rows *g, int64_t b, int64_t at)
{
    int64_t row = b * g->batch;
    for (int32_t k = 0; k < g->depth; k++) {
        const int64_t i = index_at(g->index, g->dtype, at * g->depth + k, g->dim[k]);
        if (i < 0)
            return -1;
        row += i * g->stride[k];
    }
    return row;
}

/* Row of the data for row (b, o, i) of the output, or -1. */
INDEX_INLINE int64_t gather_source(const struct gather_rows *g, int64_t b, int64_t o,
                                   int64_t i)
{
    if (g->depth)
        return gather_tuple(g, b, b * g->per + i);
    const int64_t at = index_at(g->index, g->dtype, b * g->per + i, g->dim[0]);
    return at < 0 ? -1 : (b * g->outer + o) * g->dim[0] + at;
}

#endif /* PLUGINS_GATHER_GATHER_H */
