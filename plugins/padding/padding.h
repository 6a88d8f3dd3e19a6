/* SPDX-License-Identifier: Apache-2.0
 *
 * What Padding's impls share: where an output element comes from, and the constant.
 */
#ifndef PLUGINS_PADDING_PADDING_H
#define PLUGINS_PADDING_PADDING_H

#include <strata/layers.h>

/* Elements before and after dim d; lists are for the last dims. */
static inline int64_t padding_entry(strata_ints list, int32_t d, int32_t rank)
{
    int64_t k = d - (rank - list.n);
    return k < 0 ? 0 : list.v[k];
}

/* What is left of a dim after negative entries have taken their elements away. */
static inline int64_t padding_kept(const strata_padding *p, int32_t d, int32_t rank,
                                   int64_t dim)
{
    const int64_t begin = padding_entry(p->begin, d, rank),
                  end = padding_entry(p->end, d, rank);
    return dim + (begin < 0 ? begin : 0) + (end < 0 ? end : 0);
}

/* i >= 0 or below, folded into [0, n) as the mode says; -1 in a constant border. */
static inline int64_t padding_fold(int32_t mode, int64_t i, int64_t n)
{
    const int64_t mirror = n > 1 ? 2 * (n - 1) : 1;
    const int64_t period = mode == STRATA_PADDING_WRAP ? n : mirror;
    if (i >= 0 && i < n)
        return i;
    if (mode == STRATA_PADDING_CONSTANT)
        return -1;
    if (mode == STRATA_PADDING_EDGE)
        return i < 0 ? 0 : n - 1;
    i %= period;
    i += i < 0 ? period : 0;
    return i < n ? i : mirror - i;
}

/* Input index under output index i of dim d, or -1 in a constant border. */
static inline int64_t padding_source(const strata_padding *p, int32_t d, int32_t rank,
                                     int64_t i, int64_t dim)
{
    const int64_t begin = padding_entry(p->begin, d, rank);
    const int64_t at =
        padding_fold(p->mode, i - (begin > 0 ? begin : 0), padding_kept(p, d, rank, dim));
    return at < 0 ? -1 : at - (begin < 0 ? begin : 0);
}

#endif /* PLUGINS_PADDING_PADDING_H */
