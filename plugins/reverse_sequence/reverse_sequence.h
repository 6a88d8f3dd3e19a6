/* SPDX-License-Identifier: Apache-2.0
 *
 * What ReverseSequence's impls share: the input row of an output row. Rows are what lies
 * inside both axes.
 */
#ifndef PLUGINS_REVERSE_SEQUENCE_REVERSE_SEQUENCE_H
#define PLUGINS_REVERSE_SEQUENCE_REVERSE_SEQUENCE_H

#include <strata/layers.h>

#include "plugins/common/index.h"

/* Row ((outer*first + i)*middle + m)*second + j. */
struct reverse_rows {
    const void *length;
    int64_t first, middle, second;
    int32_t dtype;      /* of the lengths */
    int32_t time_first; /* time is the first of the two axes */
};

static inline struct reverse_rows reverse_rows(const strata_reverse_sequence *p,
                                               const strata_tensor *x,
                                               const strata_tensor *length)
{
    const int32_t time = index_axis(p->time_axis, x->rank),
                  batch = index_axis(p->batch_axis, x->rank),
                  first = time < batch ? time : batch,
                  second = time < batch ? batch : time;
    struct reverse_rows r = {.length = length->data, .dtype = length->dtype};
    r.first = x->dims[first];
    r.middle = index_count(x, first + 1, second);
    r.second = x->dims[second];
    r.time_first = time < batch;
    return r;
}

/* Elements of a row. */
static inline int64_t reverse_row(const strata_reverse_sequence *p,
                                  const strata_tensor *x)
{
    const int32_t time = index_axis(p->time_axis, x->rank),
                  batch = index_axis(p->batch_axis, x->rank);
    return index_count(x, (time < batch ? batch : time) + 1, x->rank);
}

/* Where step t comes from: the first `length` steps are reversed, all of them where
 * it is larger than there are. */
INDEX_INLINE int64_t reverse_step(int64_t t, int64_t length, int64_t steps)
{
    length = length < steps ? length : steps;
    return t < length ? length - 1 - t : t;
}

INDEX_INLINE int64_t reverse_source(const struct reverse_rows *r, int64_t row)
{
    const int64_t each = r->middle * r->second, i = row / each % r->first,
                  j = row % r->second;
    const int64_t length = index_value(r->length, r->dtype, r->time_first ? j : i);
    return r->time_first ? row + (reverse_step(i, length, r->first) - i) * each
                         : row + reverse_step(j, length, r->second) - j;
}

#endif /* PLUGINS_REVERSE_SEQUENCE_REVERSE_SEQUENCE_H */
