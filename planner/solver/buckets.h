/* SPDX-License-Identifier: Apache-2.0
 *
 * Items 0 ... n - 1 by a hash of what they are: for finding an equal one among many
 * without looking at all. The caller compares; the latest of a hash comes first.
 */
#ifndef PLANNER_SOLVER_BUCKETS_H
#define PLANNER_SOLVER_BUCKETS_H

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* All zero is an empty one of no capacity. */
struct buckets {
    int *latest, *before; /* of a bucket; of an item; -1: none */
    size_t mask;
};

/* For n items; half made after ENOMEM. */
static inline int buckets_open(struct buckets *b, size_t n, const char *what,
                               strata_error *err)
{
    size_t size = 16;
    while (size < n)
        size *= 2;
    b->mask = size - 1;
    b->latest = zalloc(size, sizeof *b->latest, what, err);
    b->before = zalloc(n, sizeof *b->before, what, err);
    if (!b->latest || !b->before)
        return STRATA_ENOMEM;
    memset(b->latest, -1, size * sizeof *b->latest);
    return STRATA_OK;
}

static inline void buckets_close(struct buckets *b)
{
    free(b->latest);
    free(b->before);
}

/* Never another: the planner breaks ties by it too. */
static inline uint64_t buckets_mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* The first item that may be equal, or -1; further ones are in `before`. */
static inline int buckets_find(const struct buckets *b, uint64_t hash)
{
    return b->latest[(hash ^ hash >> 32) & b->mask];
}

static inline void buckets_add(struct buckets *b, uint64_t hash, int item)
{
    int *latest = &b->latest[(hash ^ hash >> 32) & b->mask];
    b->before[item] = *latest;
    *latest = item;
}

#endif /* PLANNER_SOLVER_BUCKETS_H */
