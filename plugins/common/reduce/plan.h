/* SPDX-License-Identifier: Apache-2.0
 *
 * How the memory of a layer that reduces dims (Reduce, ArgMax) lies: axes in the order of
 * the input's memory, joined where they are alike. An output's elements are `width`
 * columns of `kept` outer positions; each gathers `run` elements, width apart, at `gone`
 * places. Pad lanes are columns like others. C99 and C++14.
 */
#ifndef PLUGINS_COMMON_REDUCE_PLAN_H
#define PLUGINS_COMMON_REDUCE_PLAN_H

#include <stdbool.h>
#include <string.h>

#include <strata/layers.h>

struct reduce_axis {
    int64_t n;
    int64_t in, out; /* distance of neighbours, in elements; out of kept ones */
};

struct reduce_plan {
    int64_t width, step; /* columns, and their distance in the output */
    int64_t run;
    int64_t kept, gone; /* positions */
    int32_t n_kept, n_gone;
    struct reduce_axis keep[STRATA_MAX_RANK + 1],
        go[STRATA_MAX_RANK + 1]; /* inner first */
};

/* Bit d: dim d is reduced. -1: an axis is out of range, -2: given twice. */
static inline int32_t reduce_dims(const strata_reduce *p, int32_t rank)
{
    int32_t dims = 0;
    for (int64_t i = 0; i < p->axes.n; i++) {
        const int64_t axis = p->axes.v[i] < 0 ? p->axes.v[i] + rank : p->axes.v[i];
        if (axis < 0 || axis >= rank)
            return -1;
        if (dims >> axis & 1)
            return -2;
        dims |= 1 << axis;
    }
    return p->axes.n ? dims : (1 << rank) - 1;
}

/* Elements behind one of the output. */
static inline int64_t reduce_terms(const strata_reduce *p, const strata_tensor *x)
{
    const int32_t dims = reduce_dims(p, x->rank);
    int64_t terms = 1;
    for (int32_t d = 0; d < x->rank; d++)
        terms *= dims >> d & 1 ? x->dims[d] : 1;
    return terms;
}

struct reduce_sorted {
    struct reduce_axis axis;
    bool reduced;
};

/* Insert by the input's distances, inner first. */
static inline void reduce_insert(struct reduce_sorted *list, int *n, int64_t extent,
                                 int64_t in, int64_t out, bool reduced)
{
    int at = (*n)++;
    for (; at > 0 && list[at - 1].axis.in > in; at--)
        list[at] = list[at - 1];
    list[at].axis.n = extent;
    list[at].axis.in = in;
    list[at].axis.out = reduced ? 0 : out;
    list[at].reduced = reduced;
}

static inline int reduce_sort(struct reduce_sorted *list, const strata_reduce *p,
                              const strata_tensor *x, const strata_tensor *y)
{
    const int32_t dims = reduce_dims(p, x->rank);
    int n = 0, last = 0;
    for (int32_t d = 0, to = 0; d < x->rank; d++) {
        const bool reduced = dims >> d & 1, blocked = d == x->vector_dim && x->vector > 1;
        const int64_t out = reduced ? 0 : y->strides[to];
        to += !reduced || p->keep_dims;
        if (blocked) {
            reduce_insert(list, &n, x->vector, 1, 1, reduced);
            reduce_insert(list, &n, (x->dims[d] + x->vector - 1) / x->vector,
                          x->strides[d], out, reduced);
        } else if (x->dims[d] != 1) {
            reduce_insert(list, &n, x->dims[d], x->strides[d], out, reduced);
        }
    }
    for (int i = 1; i < n; i++) {
        struct reduce_axis *inner = &list[last].axis;
        const struct reduce_axis *outer = &list[i].axis;
        if (list[i].reduced == list[last].reduced && outer->in == inner->in * inner->n &&
            outer->out == inner->out * inner->n)
            inner->n *= outer->n;
        else
            list[++last] = list[i];
    }
    return n ? last + 1 : 0;
}

/* most: columns up to which runs of several rows are of use. */
static inline struct reduce_plan reduce_plan_of(const strata_reduce *p,
                                                const strata_tensor *x,
                                                const strata_tensor *y, int64_t most)
{
    struct reduce_sorted list[STRATA_MAX_RANK + 1];
    struct reduce_plan plan;
    const int n = reduce_sort(list, p, x, y);
    int i = 0;
    memset(&plan, 0, sizeof plan);
    plan.width = plan.run = plan.kept = plan.gone = 1;
    if (i < n && !list[i].reduced && list[i].axis.in == 1) {
        plan.width = list[i].axis.n;
        plan.step = list[i++].axis.out;
    }
    if (i < n && list[i].reduced && list[i].axis.in == plan.width && plan.width <= most)
        plan.run = list[i++].axis.n;
    for (; i < n; i++)
        if (list[i].reduced) {
            plan.go[plan.n_gone++] = list[i].axis;
            plan.gone *= list[i].axis.n;
        } else {
            plan.keep[plan.n_kept++] = list[i].axis;
            plan.kept *= list[i].axis.n;
        }
    return plan;
}

/* Elements of one access: `most`, if all rows and columns begin at multiples, or 1. */
static inline int reduce_width(const struct reduce_plan *p, int most)
{
    int fits = (p->width == 1 ? p->run : p->width) % most == 0;
    for (int d = 0; d < p->n_kept; d++)
        fits = fits && p->keep[d].in % most == 0;
    for (int d = 0; d < p->n_gone; d++)
        fits = fits && p->go[d].in % most == 0;
    return fits ? most : 1;
}

#endif /* PLUGINS_COMMON_REDUCE_PLAN_H */
