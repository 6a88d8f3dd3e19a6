/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests that run together, each one's rows to their place in the bindings and back:
 * straight, or with all others' in one copy. For a context that nobody else uses
 * meanwhile.
 */
#ifndef ENGINE_CONTEXT_PARTS_H
#define ENGINE_CONTEXT_PARTS_H

#include <strata/parts.h>

#include "engine/context/context.h"
#include "engine/staging.h"

/* Bytes that the host moves in about the time of one copy on a device; and on the host in
 * that of giving all tensors new addresses. */
enum { PARTS_SMALL = 32 << 10 };

/* Host memory for the rows of all parts of a binding, of two runs; NULL: each is copied
 * from or to where its part has it. */
struct parts_port {
    char *staged;
    size_t bytes; /* of one run */
};

/* A context's. */
struct parts_room {
    strata_context *context;
    struct parts_port *ports;
    struct staging staging; /* of what is larger, and not pinned */
    struct staging_source *sources; /* or targets */
    size_t n_sources, most_sources;
    void **before; /* what the application had bound, during a run */
    size_t last_slot;
    strata_part **list; /* of a run's parts, `most`: for two runs */
    int64_t most;
};

struct parts_run {
    strata_part **parts; /* right in themselves */
    size_t n;
    int64_t rows;
    size_t slot; /* of staged memory */
};

/* For runs of at most so many rows; close takes what there is. */
int parts_open(struct parts_room *room, strata_context *c, int64_t most,
               strata_error *err);
void parts_close(struct parts_room *room);
/* Room for a run's parts, until the next but one. */
void parts_take_slot(struct parts_room *room, struct parts_run *run);
/* Put it on the stream; on the host it is complete on return. */
int parts_begin(struct parts_room *room, struct parts_run *run, strata_error *err);
/* Once it is complete: what was staged goes to the parts. */
void parts_end(struct parts_room *room, const struct parts_run *run);
/* What a run that failed left in the inputs must not fail a later one that is shorter
 * than the batch it is run at. */
void parts_clear(struct parts_room *room);
/* gather.c: all parts' rows of a binding, to it or from it, on the stream; on the host at
 * once, where nothing is under way. */
int parts_copy(struct parts_room *room, const struct parts_run *run, size_t index,
               strata_error *err);
/* The pieces of a binding that a part has: none of an output that is not wanted. */
const strata_memory *parts_pieces(const strata_context *c, const strata_part *p,
                                  size_t index, uint32_t *n);
bool parts_on_host(const strata_context *c);
/* Bytes of a binding for so many rows at the sizes of the next run, which are resolved.
 */
uint64_t parts_bytes(const strata_context *c, size_t index, int64_t rows);

#endif /* ENGINE_CONTEXT_PARTS_H */
