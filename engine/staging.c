/* SPDX-License-Identifier: Apache-2.0
 *
 * A ring of pinned pieces. One thread fills pinned memory at a fraction of the speed at
 * which it is then read by the device, so large pieces are filled by all.
 */
#include "engine/staging.h"

#include <string.h>

#include "core/team.h"

enum { SHARE = 64 << 10 }; /* bytes that one thread copies */

void staging_open(struct staging *s, strata_handle *handle)
{
    *s = (struct staging){.handle = handle};
}

static int make_slots(struct staging *s, strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status = STRATA_OK;
    s->pinned = strata_host_alloc(s->handle, (size_t)STAGING_SLOTS * STAGING_PIECE, err);
    if (!s->pinned)
        return STRATA_ENOMEM;
    for (int i = 0; i < STAGING_SLOTS && status == STRATA_OK; i++)
        status = ops->event_create(s->handle->device, &s->sent[i], err);
    return status;
}

static void copy_shares(char *dst, const char *src, size_t bytes)
{
    const size_t n = bytes / SHARE + (bytes % SHARE != 0);
#pragma omp parallel for if (n > 2) schedule(static)
    for (size_t i = 0; i < n; i++) {
        const size_t at = i * SHARE;
        memcpy(dst + at, src + at, bytes - at < SHARE ? bytes - at : SHARE);
    }
}

static int send_piece(struct staging *s, char *dst, const char *src, size_t bytes,
                      strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    const size_t slot = s->n_sent % STAGING_SLOTS;
    char *pinned = s->pinned + slot * STAGING_PIECE;
    int status = s->n_sent < STAGING_SLOTS ? STRATA_OK
                                           : ops->event_synchronize(s->sent[slot], err);
    if (status != STRATA_OK)
        return status;
    copy_shares(pinned, src, bytes);
    status = ops->copy(s->handle->stream, dst, pinned, bytes, COPY_TO_DEVICE, err);
    if (status == STRATA_OK)
        status = ops->event_record(s->sent[slot], s->handle->stream, err);
    s->n_sent++;
    return status;
}

int staging_send(struct staging *s, void *dst, const void *src, size_t bytes,
                 strata_error *err)
{
    int status = s->pinned ? STRATA_OK : make_slots(s, err);
    for (size_t at = 0; at < bytes && status == STRATA_OK; at += STAGING_PIECE) {
        const size_t left = bytes - at;
        status = send_piece(s, (char *)dst + at, (const char *)src + at,
                            left < STAGING_PIECE ? left : STAGING_PIECE, err);
    }
    return status;
}

int staging_wait(struct staging *s, strata_error *err)
{
    return s->handle->device->ops->stream_synchronize(s->handle->stream, err);
}

void staging_close(struct staging *s)
{
    const struct device_ops *ops = s->handle->device->ops;
    staging_wait(s, NULL);
    for (int i = 0; i < STAGING_SLOTS; i++)
        if (s->sent[i])
            ops->event_destroy(s->sent[i]);
    strata_host_free(s->handle, s->pinned, (size_t)STAGING_SLOTS * STAGING_PIECE);
    if (s->pinned)
        team_end();
}
