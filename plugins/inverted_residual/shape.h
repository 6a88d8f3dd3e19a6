/* SPDX-License-Identifier: Apache-2.0
 *
 * What an InvertedResidual's impls share: its channels and windows.
 */
#ifndef PLUGINS_INVERTED_RESIDUAL_SHAPE_H
#define PLUGINS_INVERTED_RESIDUAL_SHAPE_H

#include <strata/layers.h>

#include "plugins/common/window.h"

struct inverted_shape {
    int64_t channels, middle, results; /* of x, of the windows, of y */
    int32_t expands, projects;
    struct window w;
};

static inline int64_t inverted_results(int64_t attribute, const strata_tensor *weight)
{
    return attribute ? attribute : weight->rank > 0 ? weight->dims[0] : 0;
}

static inline int inverted_resolve(const strata_node *n, struct inverted_shape *s)
{
    const strata_inverted_residual *p = (const strata_inverted_residual *)n->params;
    const strata_tensor *x = &n->in[0];
    if (x->rank != 4)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; images have 4",
                           (int)x->rank);
    const int64_t expanded =
        inverted_results(p->expanded, &n->weight[STRATA_INVERTED_EXPAND]);
    const int64_t projected =
        inverted_results(p->projected, &n->weight[STRATA_INVERTED_PROJECT]);
    s->channels = x->dims[1];
    s->expands = expanded > 0;
    s->projects = projected > 0;
    s->middle = expanded > 0 ? expanded : s->channels;
    s->results = projected > 0 ? projected : s->middle;
    if (s->channels < 1 || x->dims[2] < 1 || x->dims[3] < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "a dim of the input is 0; only its batch may be");
    return window_of_convolution(&s->w, &p->depthwise, x,
                                 &n->weight[STRATA_INVERTED_DEPTHWISE], n->host, n->err);
}

#endif /* PLUGINS_INVERTED_RESIDUAL_SHAPE_H */
