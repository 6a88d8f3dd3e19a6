/* SPDX-License-Identifier: Apache-2.0
 *
 * What a Bottleneck's impls share: its channels and windows.
 */
#ifndef PLUGINS_BOTTLENECK_SHAPE_H
#define PLUGINS_BOTTLENECK_SHAPE_H

#include <stdbool.h>

#include <strata/layers.h>

#include "plugins/common/window.h"

/* Weights behind those of layers.h: a product of x that is added, and its bias. */
enum {
    BOTTLENECK_SHORTCUT = STRATA_BOTTLENECK_WEIGHTS,
    BOTTLENECK_SHORTCUT_BIAS,
};

struct bottleneck_shape {
    int64_t channels, reduced, convolved, results; /* of x, the windows, y */
    bool shortcut;                                 /* whether there is one */
    struct window w;
};

/* As the attribute says, or else the weight, or else `otherwise`. */
static inline int bottleneck_results(const strata_node *n, int64_t attribute, int weight,
                                     int64_t otherwise, const char *name,
                                     int64_t *results)
{
    const strata_tensor *w = &n->weight[weight];
    *results = attribute ? attribute : w->rank > 0 ? w->dims[0] : otherwise;
    return *results >= 1
               ? STRATA_OK
               : STRATA_FAIL(n, STRATA_EINVAL, "%s is not known; give %s = N or a weight",
                             name, name);
}

static inline int bottleneck_resolve(const strata_node *n, struct bottleneck_shape *s)
{
    const strata_bottleneck *p = (const strata_bottleneck *)n->params;
    const strata_tensor *x = &n->in[0];
    int status;
    if (x->rank != 4)
        return STRATA_FAIL(n, STRATA_EINVAL, "input has rank %d; images have 4",
                           (int)x->rank);
    s->channels = x->dims[1];
    s->shortcut = n->weight[BOTTLENECK_SHORTCUT].rank > 0;
    if (s->channels < 1 || x->dims[2] < 1 || x->dims[3] < 1)
        return STRATA_FAIL(n, STRATA_EINVAL,
                           "a dim of the input is 0; only its batch may be");
    if ((status = bottleneck_results(n, p->reduced, STRATA_BOTTLENECK_REDUCE, 0,
                                     "reduced", &s->reduced)) ||
        (status = bottleneck_results(n, p->convolved, STRATA_BOTTLENECK_WINDOWS,
                                     s->reduced, "convolved", &s->convolved)) ||
        (status = bottleneck_results(n, p->projected, STRATA_BOTTLENECK_PROJECT,
                                     s->channels, "projected", &s->results)))
        return status;
    return window_of_convolution(&s->w, &p->windows, x,
                                 &n->weight[STRATA_BOTTLENECK_WINDOWS], n->host, n->err);
}

#endif /* PLUGINS_BOTTLENECK_SHAPE_H */
