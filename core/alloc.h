/* SPDX-License-Identifier: Apache-2.0
 *
 * Host memory: a counting front for the user's allocator callback (tensors, arenas,
 * weights), and small helpers for the library's own structures.
 */
#ifndef CORE_ALLOC_H
#define CORE_ALLOC_H

#include <pthread.h>

#include "core/status.h"

#define TENSOR_ALIGNMENT 256 /* bytes; every tensor, weight and workspace base */

struct device;

struct allocator {
    strata_allocator callbacks;
    pthread_mutex_t lock; /* guards stats and observer */
    strata_memory_stats stats;
    strata_memory_fn observer; /* or NULL */
    void *observer_user;
    /* Of the device whose memory it is, for messages; NULL: unknown. */
    uint64_t (*free_bytes)(struct device *d);
    struct device *device;
};

/* The C library's aligned memory. */
strata_allocator host_memory(void);

int allocator_init(struct allocator *a, strata_allocator callbacks, strata_error *err);
void allocator_destroy(struct allocator *a);
/* Memory aligned to TENSOR_ALIGNMENT, not cleared; NULL with ENOMEM in err, which names
 * the bytes and `what`. bytes 0 gives a valid one-byte block. */
void *allocator_get(struct allocator *a, size_t bytes, const char *what,
                    strata_error *err);
/* bytes as asked for; ptr may be NULL. */
void allocator_put(struct allocator *a, void *ptr, size_t bytes);
void allocator_stats(struct allocator *a, strata_memory_stats *out);
void allocator_observe(struct allocator *a, strata_memory_fn fn, void *user);

/* calloc(n, size) with ENOMEM in err; n = 0 gives a valid block. */
void *zalloc(size_t n, size_t size, const char *what, strata_error *err);
/* A copy of text, or NULL with ENOMEM in err. */
char *duplicate(const char *text, strata_error *err);

/* Grow *array (elements of `size` bytes, *capacity of them) to hold n + 1; STRATA_OK or
 * ENOMEM, *array left as it was. */
int grow(void *array, size_t *capacity, size_t n, size_t size, strata_error *err);

#endif /* CORE_ALLOC_H */
