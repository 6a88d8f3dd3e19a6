/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLANNER_ARENA_H
#define PLANNER_ARENA_H

#include "core/status.h"

/* A block of memory alive from step `first` to step `last`, both included. */
struct arena_block {
    int64_t bytes; /* rounded up to TENSOR_ALIGNMENT by arena_place */
    int first, last;
    int64_t offset; /* result */
};

#ifndef ARENA_SEARCHED
#define ARENA_SEARCHED 4096 /* blocks; more are placed in one pass */
#endif

/* Give blocks that are alive together disjoint offsets. *peak is the arena's size, *bound
 * the most bytes alive at one step, under which no placement can go; *peak may be above
 * it, since finding the least peak is NP-hard. The same for the same blocks. EOVERFLOW. */
int arena_place(struct arena_block *blocks, size_t n, int64_t *peak, int64_t *bound,
                strata_error *err);

#endif /* PLANNER_ARENA_H */
