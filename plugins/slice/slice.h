/* SPDX-License-Identifier: Apache-2.0
 *
 * What Slice's impls share: the range of each dim.
 */
#ifndef PLUGINS_SLICE_SLICE_H
#define PLUGINS_SLICE_SLICE_H

#include <strata/layers.h>

struct slice_range {
    int64_t begin, step, n; /* of one dim */
};

/* A position from the front, limited to [low, high]. */
static inline int64_t slice_clamp(int64_t v, int64_t dim, int64_t low, int64_t high)
{
    if (v < 0)
        v += dim;
    return v < low ? low : v > high ? high : v;
}

static inline struct slice_range slice_range(int64_t begin, int64_t end, int64_t step,
                                             int64_t dim)
{
    struct slice_range range = {0, step, 0};
    if (dim == 0)
        return range;
    if (step > 0) {
        range.begin = slice_clamp(begin, dim, 0, dim);
        end = slice_clamp(end, dim, 0, dim);
        if (end > range.begin)
            range.n = (end - range.begin - 1) / step + 1;
    } else {
        range.begin = slice_clamp(begin, dim, 0, dim - 1);
        end = slice_clamp(end, dim, -1, dim - 1);
        if (end < range.begin)
            range.n = (range.begin - end - 1) / -step + 1;
    }
    return range;
}

/* Dim of the k-th entry of the lists, or -1. */
static inline int32_t slice_axis(const strata_slice *p, int64_t k, int32_t rank)
{
    int64_t axis = p->axes.n ? p->axes.v[k] : k;
    axis = axis < 0 ? axis + rank : axis;
    return axis < 0 || axis >= rank ? -1 : (int32_t)axis;
}

/* Dim of the second input that the k-th entry names, or -1. */
static inline int32_t slice_like(const strata_slice *p, int64_t k,
                                 const strata_tensor *like)
{
    int64_t dim = p->like.v[k];
    dim = dim < 0 ? dim + like->rank : dim;
    return dim < 0 || dim >= like->rank ? -1 : (int32_t)dim;
}

/* Dims that a range is given for. */
static inline int64_t slice_count(const strata_slice *p)
{
    return p->like.n ? p->like.n : p->begin.n;
}

/* Outputs of the splitting form; 0: the layer has one output, the range. */
static inline int64_t slice_parts(const strata_slice *p)
{
    return p->split.n ? p->split.n : p->parts;
}

/* The splitting form: elements of output `port` along a dim, and the first of them. */
static inline struct slice_range slice_part(const strata_slice *p, int64_t port,
                                            int64_t dim)
{
    struct slice_range range = {0, 1, dim};
    if (p->split.n) {
        for (int64_t k = 0; k < port; k++)
            range.begin += p->split.v[k];
        range.n = p->split.v[port];
    } else if (p->parts) {
        const int64_t most = dim / p->parts + (dim % p->parts != 0);
        range.begin = port * most < dim ? port * most : dim;
        range.n = dim - range.begin < most ? dim - range.begin : most;
    }
    return range;
}

/* Range of the k-th entry of the lists along a dim; `in` are the inputs. */
static inline struct slice_range slice_entry(const strata_slice *p, int64_t k,
                                             const strata_tensor *in, int64_t dim)
{
    const int64_t begin = p->begin.n ? p->begin.v[k] : 0;
    const int64_t step = p->step.n ? p->step.v[k] : 1;
    if (p->like.n) {
        struct slice_range range = {begin < 0 ? begin + dim : begin, 1, 0};
        range.n = in[1].dims[slice_like(p, k, &in[1])];
        return range;
    }
    const int64_t end = p->end.n ? p->end.v[k] : step > 0 ? INT64_MAX : INT64_MIN;
    return slice_range(begin, end, step, dim);
}

/* Ranges of all dims for output `port`; the lists are known to be right. */
static inline void slice_ranges(const strata_slice *p, const strata_tensor *in,
                                int32_t port, struct slice_range *ranges)
{
    const strata_tensor *x = &in[0];
    const int64_t axis = p->axis < 0 ? p->axis + x->rank : p->axis;
    for (int32_t d = 0; d < x->rank; d++)
        ranges[d] = (struct slice_range){0, 1, x->dims[d]};
    if (slice_parts(p))
        ranges[axis] = slice_part(p, port, x->dims[axis]);
    for (int64_t k = 0; k < slice_count(p); k++) {
        const int32_t d = slice_axis(p, k, x->rank);
        ranges[d] = slice_entry(p, k, in, x->dims[d]);
    }
}

#endif /* PLUGINS_SLICE_SLICE_H */
