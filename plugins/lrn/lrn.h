/* SPDX-License-Identifier: Apache-2.0
 *
 * LRN, resolved: what both devices read.
 */
#ifndef PLUGINS_LRN_LRN_H
#define PLUGINS_LRN_LRN_H

#include <strata/layers.h>

struct lrn {
    int64_t before, after; /* neighbours of a channel in its window */
    float bias, factor;    /* y = x*(bias + factor*sum)^-beta */
    float beta;
};

static inline struct lrn lrn_of(const strata_lrn *p)
{
    struct lrn l;
    l.before = (p->size - 1) / 2;
    l.after = p->size / 2;
    l.bias = (float)p->bias;
    l.factor = (float)(p->alpha / (double)p->size);
    l.beta = (float)p->beta;
    return l;
}

#endif /* PLUGINS_LRN_LRN_H */
