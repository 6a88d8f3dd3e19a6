/* SPDX-License-Identifier: Apache-2.0
 *
 * What Shuffle's impls share: the reshape's dims on both sides, and their factors.
 */
#ifndef PLUGINS_SHUFFLE_SHUFFLE_H
#define PLUGINS_SHUFFLE_SHUFFLE_H

#include <strata/layers.h>

/* The two sides of the reshape. */
struct shuffle {
    int32_t from_rank, to_rank;
    int64_t from[STRATA_MAX_RANK];     /* dims after the first transpose */
    int32_t from_dim[STRATA_MAX_RANK]; /* which input dim each is */
    int64_t to[STRATA_MAX_RANK];       /* dims after the reshape */
    int32_t to_dim[STRATA_MAX_RANK];   /* which output dim each becomes */
};

/* A piece of a dim on either side: n indices, `times` apart. */
struct factor {
    int64_t n;
    int32_t from_dim, to_dim; /* of input and output */
    int64_t from_times, to_times;
};

/* Both sides of a layer whose shapes are known to be right. */
static inline void shuffle_sides(struct shuffle *s, const strata_shuffle *p,
                                 const strata_tensor *x, const strata_tensor *y)
{
    s->from_rank = x->rank;
    s->to_rank = y->rank;
    for (int32_t d = 0; d < x->rank; d++) {
        s->from_dim[d] = p->first.n ? (int32_t)p->first.v[d] : d;
        s->from[d] = x->dims[s->from_dim[d]];
    }
    for (int32_t d = 0; d < y->rank; d++) {
        int64_t at = p->second.n ? p->second.v[d] : d;
        s->to_dim[at] = d;
        s->to[at] = y->dims[d];
    }
}

/* Common factors of both sides, innermost first; -1 if there are none. */
static inline int shuffle_factors(const struct shuffle *s, struct factor *factors)
{
    int32_t i = s->from_rank, j = s->to_rank;
    int64_t from_rest = 1, to_rest = 1, from_times = 1, to_times = 1;
    int count = 0;
    for (;;) {
        for (; from_rest == 1 && i > 0; from_times = 1)
            from_rest = s->from[--i];
        for (; to_rest == 1 && j > 0; to_times = 1)
            to_rest = s->to[--j];
        if (from_rest == 1 && to_rest == 1)
            return count;
        int64_t n = from_rest < to_rest ? from_rest : to_rest;
        if (n < 2 || from_rest % n || to_rest % n)
            return -1;
        factors[count++] =
            (struct factor){n, s->from_dim[i], s->to_dim[j], from_times, to_times};
        from_rest /= n;
        to_rest /= n;
        from_times *= n;
        to_times *= n;
    }
}

/* Whether an index cut at `times` is a sum of offsets, also across a block's lanes. */
static inline int shuffle_separable(const strata_tensor *t, int32_t d, int64_t times)
{
    return d != t->vector_dim || times % t->vector == 0 || t->vector % times == 0;
}

#endif /* PLUGINS_SHUFFLE_SHUFFLE_H */
