/* SPDX-License-Identifier: Apache-2.0
 *
 * Guarded blocks of a device, for layer tests: each lies in host memory too, where it is
 * filled and checked as on the host, and is copied there and back around a run.
 */
#ifndef CHECK_HARNESS_MIRROR_H
#define CHECK_HARNESS_MIRROR_H

#include "core/handle.h"
#include "check/harness/memory.h"

#define MIRROR_BLOCKS 48                /* at once */
#define MIRROR_SIZE ((size_t)256 << 20) /* bytes that any layer test needs */

/* How a block is treated. */
enum mirror_kind {
    MIRROR_FULL,   /* copied there and back */
    MIRROR_BLANK,  /* as FULL, but an exact mirror does not initialise it */
    MIRROR_SCRATCH /* filled there by a byte; only its bands come back */
};

/*
 * By default blocks lie in one allocation with their bands, which makes a run two copies.
 * An exact mirror gives each an allocation of its own and exactly as long, without bands,
 * so that compute-sanitizer sees what is out of bounds or never written.
 */
struct mirror {
    strata_handle *handle;
    strata_stream *stream;
    bool exact;
    unsigned char *host, *device; /* size bytes each; device NULL when exact */
    size_t size;
    size_t used, top; /* full blocks lie below used, scratch from top on */
    struct {
        struct block *block;
        enum mirror_kind kind;
    } blocks[MIRROR_BLOCKS];
    int n_blocks;
};

int mirror_open(struct mirror *m, strata_handle *h, bool exact, strata_error *err);
/* The same with room for `size` bytes of blocks, all in all. */
int mirror_open_size(struct mirror *m, strata_handle *h, bool exact, size_t size,
                     strata_error *err);
void mirror_close(struct mirror *m);

/* As block_make, with b->device for the impl; valid until mirror_reset. */
bool mirror_block(struct mirror *m, struct block *b, size_t bytes, unsigned char fill,
                  enum mirror_kind kind);
void mirror_reset(struct mirror *m);

/* One block's content to the device, for one made after mirror_push. Waits. */
int mirror_push_block(struct mirror *m, const struct block *b, strata_error *err);
/* All blocks to the device; scratch is filled with `pattern`. Does not wait. */
int mirror_push(struct mirror *m, unsigned char pattern, strata_error *err);
int mirror_wait(struct mirror *m, strata_error *err);
/* All blocks back, when all work on the stream is done. */
int mirror_pull(struct mirror *m, strata_error *err);

#endif /* CHECK_HARNESS_MIRROR_H */
