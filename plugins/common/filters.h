/* SPDX-License-Identifier: Apache-2.0
 *
 * What layers that slide filters over channels share: how many filters there are, the
 * shapes that follow from them, operations.
 */
#ifndef PLUGINS_COMMON_FILTERS_H
#define PLUGINS_COMMON_FILTERS_H

#include "plugins/common/window.h"

/* Rows of attributes, of params that begin with a strata_convolution. */
#define FILTER_ATTRS                                                                     \
    {.name = "filters",                                                                  \
     .type = STRATA_I64,                                                                 \
     .offset = offsetof(strata_convolution, filters),                                    \
     .max = INT32_MAX,                                                                   \
     .doc = "output channels; 0 takes them from the weight"},                            \
        WINDOW_ATTRS(                                                                    \
            strata_convolution, /* which is the first member */                          \
            "window size, one value or one per spatial dim; empty: from the weight",     \
            "zeros around the input"),                                                   \
    {                                                                                    \
        .name = "groups", .type = STRATA_I64,                                            \
        .offset = offsetof(strata_convolution, groups), .def = 1, .min = 1,              \
        .max = INT32_MAX,                                                                \
        .doc = "groups of channels convolved apart; the channel count is depthwise"      \
    }

/* Of images, volumes or lines, and at least one filter. */
static inline int filters_check(const strata_node *n, int64_t filters)
{
    const strata_tensor *in = &n->in[0];
    if (in->rank < 3 || in->rank > 5)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; allowed is 3 to 5",
                           (int)in->rank);
    return filters >= 1
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EINVAL,
                             "filters is not known; give filters = N or a weight");
}

static inline int filters_check_groups(const strata_node *n, int64_t groups,
                                       int64_t filters)
{
    const int64_t channels = n->in[0].dims[1];
    return channels >= 1 && channels % groups == 0 && filters % groups == 0
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EINVAL,
                             "groups %lld does not divide %lld input channels and %lld "
                             "filters",
                             (long long)groups, (long long)channels, (long long)filters);
}

/* A convolution's filters and windows. weight: of rank 0 when it is not known yet. */
static inline int filters_of_convolution(const strata_node *n,
                                         const strata_convolution *p,
                                         const strata_tensor *weight, struct window *w,
                                         int64_t *filters)
{
    const strata_tensor *in = &n->in[0];
    *filters = p->filters ? p->filters : weight->rank > 0 ? weight->dims[0] : 0;
    int status = filters_check(n, *filters);
    for (int d = 2; d < in->rank && status == STRATA_OK; d++)
        if (in->dims[d] == 0)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "dim %d of the input is 0; only its batch may be", d);
    if (status == STRATA_OK)
        status = filters_check_groups(n, p->groups, *filters);
    return status ? status : window_of_convolution(w, p, in, weight, n->host, n->err);
}

/* Of the weight: the first two dims, then the kernel. */
static inline void filters_weight_shape(strata_tensor *expected, const struct window *w,
                                        int64_t first, int64_t second)
{
    expected->rank = 2 + w->dims;
    expected->dims[0] = first;
    expected->dims[1] = second;
    for (int d = 0; d < w->dims; d++)
        expected->dims[2 + d] = w->kernel[w->first + d];
}

static inline void filters_shape(const strata_node *n, const struct window *w,
                                 int64_t filters)
{
    n->out[0].rank = 2 + w->dims;
    n->out[0].dims[0] = n->in[0].dims[0];
    n->out[0].dims[1] = filters;
    for (int d = 0; d < w->dims; d++)
        n->out[0].dims[2 + d] = w->out[w->first + d];
}

/* A multiplication and an addition for each element of `of` and each of its filter, which
 * is all of the weight's dims but the first. */
static inline double filters_flops(const strata_tensor *of, const strata_tensor *weight)
{
    double flops = 2;
    for (int d = 0; d < of->rank; d++)
        flops *= (double)of->dims[d];
    for (int d = 1; d < weight->rank; d++)
        flops *= (double)weight->dims[d];
    return flops;
}

#endif /* PLUGINS_COMMON_FILTERS_H */
