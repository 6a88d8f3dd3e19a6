/* SPDX-License-Identifier: Apache-2.0
 *
 * strata.pack/1: memory that an impl's setup asks for and that lives as long as the
 * impl's state, in trials that are timed as in engines.
 */
#ifndef PLANNER_PACK_H
#define PLANNER_PACK_H

#include <stdbool.h>

#include "core/alloc.h"

struct pack {
    void *ptr;
    size_t bytes;
    bool lent;    /* another's memory, not to be freed here */
    void *before; /* of lent memory: what was in it, until that is compared */
};

/* What one setup may have, and has. */
struct pack_memory {
    struct allocator *allocator;
    /* Memory of another's for the next pack; out->ptr stays NULL: there is none. May be
     * NULL. */
    int (*borrow)(struct pack_memory *m, size_t bytes, struct pack *out,
                  strata_error *err);
    void *lender; /* borrow's own */
    struct pack *list;
    size_t n, capacity;
    uint64_t bytes; /* of those that are not lent */
};

/* Offer it to modules. */
void pack_offer(void);
/* Empty it; what was lent stays with its owner. */
void pack_free(struct pack_memory *m);

#endif /* PLANNER_PACK_H */
