/* SPDX-License-Identifier: Apache-2.0
 *
 * Interpolation as it lies in memory, in any format: axes outermost first, some of which
 * have taps, and innermost a run of elements that share their taps.
 */
#ifndef PLUGINS_RESIZE_PLAN_H
#define PLUGINS_RESIZE_PLAN_H

#include "plugins/resize/resize.h"

#define RESIZE_PLAN_AXES (STRATA_MAX_RANK + 1)

struct resize_plan_axis {
    int64_t n, to, from; /* positions of the output; strides in elements */
    int64_t in;          /* positions of the input */
    int32_t taps;        /* index of the resized axis, or -1: positions are alike */
};

struct resize_plan {
    int32_t n;
    struct resize_plan_axis
        axis[RESIZE_PLAN_AXES]; /* the last one has taps, if any has */
    int64_t lanes;              /* elements of the run */
    int32_t resized;
    struct resize_axis resize[RESIZE_AXES];
};

static inline void resize_plan_add(struct resize_plan *plan, struct resize_plan_axis a)
{
    int32_t at = plan->n;
    if (a.n == 1 && a.in == 1)
        return;
    for (; at > 0 && plan->axis[at - 1].to < a.to; at--)
        plan->axis[at] = plan->axis[at - 1];
    plan->axis[at] = a;
    plan->n++;
}

static inline struct resize_plan
resize_plan(const strata_resize *p, const strata_tensor *x, const strata_tensor *y)
{
    struct resize_plan plan = {.lanes = 1, .resized = resize_axes(p, x->rank)};
    int32_t taps[STRATA_MAX_RANK];
    for (int32_t d = 0; d < x->rank; d++)
        taps[d] = -1;
    for (int32_t k = 0; k < plan.resized; k++) {
        plan.resize[k] = resize_axis(p, x, y, k);
        taps[plan.resize[k].dim] = k;
    }
    for (int32_t d = 0; d < x->rank; d++) {
        const int vectored = d == y->vector_dim && y->vector > 1;
        const int64_t v = vectored ? y->vector : 1;
        resize_plan_add(&plan, (struct resize_plan_axis){
                                   (y->dims[d] + v - 1) / v, y->strides[d], x->strides[d],
                                   (x->dims[d] + v - 1) / v, taps[d]});
        if (vectored)
            resize_plan_add(&plan, (struct resize_plan_axis){v, 1, 1, v, -1});
    }
    while (plan.n > 0) {
        const struct resize_plan_axis *last = &plan.axis[plan.n - 1];
        if (last->taps >= 0 || last->to != plan.lanes || last->from != plan.lanes)
            break;
        plan.lanes *= last->n;
        plan.n--;
    }
    return plan;
}

/* ---- rows of the output ---------------------------------------------------------- */

/* A row: its place along all axes but that of the row, the first `axes`. */
struct resize_place {
    int64_t index[RESIZE_PLAN_AXES];
};

static inline struct resize_place resize_place_of(const struct resize_plan *plan,
                                                  int32_t axes, int64_t row)
{
    struct resize_place p;
    for (int32_t k = axes - 1; k >= 0; k--) {
        p.index[k] = row % plan->axis[k].n;
        row /= plan->axis[k].n;
    }
    return p;
}

/* To the next row: divisions for each would take as long as the row. */
static inline void resize_advance(struct resize_place *p, const struct resize_plan *plan,
                                  int32_t axes)
{
    for (int32_t k = axes - 1; k >= 0; k--) {
        if (++p->index[k] < plan->axis[k].n)
            return;
        p->index[k] = 0;
    }
}

#endif /* PLUGINS_RESIZE_PLAN_H */
