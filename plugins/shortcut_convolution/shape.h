/* SPDX-License-Identifier: Apache-2.0
 *
 * What a ShortcutConvolution's impls share: its filters, the windows of its first input
 * and the pixels that it takes of its second.
 */
#ifndef PLUGINS_SHORTCUT_CONVOLUTION_SHAPE_H
#define PLUGINS_SHORTCUT_CONVOLUTION_SHAPE_H

#include <strata/layers.h>

#include "plugins/common/window.h"

struct shortcut_shape {
    int64_t channels, others, filters; /* of the inputs; results */
    struct window w, shortcut;
};

static inline int shortcut_check_inputs(const strata_node *n)
{
    for (int i = 0; i < 2; i++) {
        const strata_tensor *x = &n->in[i];
        if (x->rank != 4)
            return STRATA_FAIL(n, STRATA_EINVAL, "input %d has rank %d; images have 4", i,
                               (int)x->rank);
        if (x->dims[1] < 1 || x->dims[2] < 1 || x->dims[3] < 1)
            return STRATA_FAIL(n, STRATA_EINVAL,
                               "a dim of input %d is 0; only its batch may be", i);
    }
    return n->in[0].dims[0] == n->in[1].dims[0]
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EINVAL, "the inputs have %lld and %lld images",
                             (long long)n->in[0].dims[0], (long long)n->in[1].dims[0]);
}

static inline int shortcut_check_sizes(const strata_node *n,
                                       const struct shortcut_shape *s)
{
    const int64_t *a = s->w.out, *b = s->shortcut.out;
    return a[1] == b[1] && a[2] == b[2]
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EINVAL,
                             "the windows give %lld x %lld results, and the shortcut "
                             "%lld x %lld; give its shortcut_stride",
                             (long long)a[1], (long long)a[2], (long long)b[1],
                             (long long)b[2]);
}

static inline int shortcut_resolve(const strata_node *n, struct shortcut_shape *s)
{
    static const int64_t pixel[] = {1, 1};
    const strata_shortcut_convolution *p = (const strata_shortcut_convolution *)n->params;
    const strata_tensor *weight = &n->weight[STRATA_SHORTCUT_CONVOLUTION_WEIGHT];
    int status = shortcut_check_inputs(n);
    if (status != STRATA_OK)
        return status;
    s->channels = n->in[0].dims[1];
    s->others = n->in[1].dims[1];
    s->filters = p->convolution.filters ? p->convolution.filters
                 : weight->rank > 0     ? weight->dims[0]
                                        : 0;
    if (s->filters < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "filters is not known; give filters = N or a weight");
    struct window_attrs a = {};
    a.stride = p->shortcut_stride;
    a.default_kernel = pixel;
    status =
        window_of_convolution(&s->w, &p->convolution, &n->in[0], weight, n->host, n->err);
    if (status == STRATA_OK)
        status = window_resolve(&s->shortcut, &a, &n->in[1], n->host, n->err);
    return status == STRATA_OK ? shortcut_check_sizes(n, s) : status;
}

#endif /* PLUGINS_SHORTCUT_CONVOLUTION_SHAPE_H */
