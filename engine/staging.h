/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of host memory to a device: by pieces through a few that are pinned, so that
 * some are on their way while the next is filled.
 */
#ifndef ENGINE_STAGING_H
#define ENGINE_STAGING_H

#include "core/handle.h"

/* Few bytes: pinning and unpinning them takes half a millisecond a MiB. */
enum { STAGING_SLOTS = 4, STAGING_PIECE = 512 << 10 };

struct staging {
    strata_handle *handle;
    char *pinned; /* of all slots; NULL until something is sent */
    strata_event *sent[STAGING_SLOTS];
    size_t n_sent; /* pieces so far */
};

void staging_open(struct staging *s, strata_handle *handle);
/* Put on the handle's stream; src is the caller's again on return. */
int staging_send(struct staging *s, void *dst, const void *src, size_t bytes,
                 strata_error *err);
/* Until all that is on the stream is done. */
int staging_wait(struct staging *s, strata_error *err);
/* Waits too, as nothing may still be on its way. */
void staging_close(struct staging *s);

#endif /* ENGINE_STAGING_H */
