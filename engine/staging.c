/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned pieces. One thread fills pinned memory at a fraction of the speed at which it is
 * then read by the device, so what is large is filled by several. Who has filled a piece
 * puts its copy on the stream: they need no order among themselves.
 */
#include "engine/staging.h"

#include <string.h>

enum { ALONE = 4 * STAGING_PIECE }; /* bytes that take less than waking others */

void staging_open(struct staging *s, strata_handle *handle, strata_stream *stream)
{
    *s = (struct staging){.handle = handle, .stream = stream};
    pthread_mutex_init(&s->lock, NULL);
}

static int make_slots(struct staging *s, strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status = STRATA_OK;
    for (int i = 0; i < STAGING_SLOTS && status == STRATA_OK; i++)
        if (!s->sent[i])
            status = ops->event_create(s->handle->device, &s->sent[i], err);
    if (status != STRATA_OK)
        return status;
    s->pinned = strata_host_alloc(s->handle, (size_t)STAGING_SLOTS * STAGING_PIECE, err);
    if (!s->pinned)
        return STRATA_ENOMEM;
    carriers_open();
    return STRATA_OK;
}

/* The next piece that nobody has taken; 0 bytes: there is none, or one failed. */
static size_t take_piece(struct staging *s, size_t *at)
{
    pthread_mutex_lock(&s->lock);
    const size_t left = s->status == STRATA_OK ? s->bytes - s->at : 0;
    const size_t bytes = left < STAGING_PIECE ? left : STAGING_PIECE;
    *at = s->at;
    s->at += bytes;
    pthread_mutex_unlock(&s->lock);
    return bytes;
}

static int fill_slot(struct staging *s, size_t slot, size_t at, size_t bytes,
                     strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status = s->used[slot] ? ops->event_synchronize(s->sent[slot], err) : STRATA_OK;
    if (status == STRATA_OK)
        memcpy(s->pinned + slot * STAGING_PIECE, s->src + at, bytes);
    return status;
}

static int send_slot(struct staging *s, size_t slot, size_t at, size_t bytes,
                     strata_error *err)
{
    const struct device_ops *ops = s->handle->device->ops;
    int status = ops->copy(s->stream, s->dst + at, s->pinned + slot * STAGING_PIECE,
                           bytes, COPY_TO_DEVICE, err);
    if (status == STRATA_OK)
        status = ops->event_record(s->sent[slot], s->stream, err);
    s->used[slot] = s->used[slot] || status == STRATA_OK;
    return status;
}

static bool send_piece(struct carriers_job *job, int who)
{
    struct staging *s = (struct staging *)job;
    strata_error err;
    size_t at;
    const size_t bytes = take_piece(s, &at);
    if (bytes == 0)
        return false;
    s->turn[who] = !s->turn[who];
    const size_t slot = 2 * (size_t)who + s->turn[who];
    int status = fill_slot(s, slot, at, bytes, &err);
    pthread_mutex_lock(&s->lock);
    if (status == STRATA_OK)
        status = send_slot(s, slot, at, bytes, &err);
    if (status != STRATA_OK && s->status == STRATA_OK) {
        s->status = status;
        if (s->err)
            *s->err = err;
    }
    pthread_mutex_unlock(&s->lock);
    return status == STRATA_OK;
}

int staging_send(struct staging *s, void *dst, const void *src, size_t bytes,
                 strata_error *err)
{
    int status = s->pinned ? STRATA_OK : make_slots(s, err);
    if (status != STRATA_OK)
        return status;
    s->job.piece = send_piece;
    s->dst = dst;
    s->src = src;
    s->bytes = bytes;
    s->at = 0;
    s->err = err;
    s->status = STRATA_OK;
    if (bytes > ALONE)
        carriers_run(&s->job);
    else
        while (send_piece(&s->job, 0))
            ;
    return s->status;
}

int staging_wait(struct staging *s, strata_error *err)
{
    return s->handle->device->ops->stream_synchronize(s->stream, err);
}

void staging_close(struct staging *s)
{
    if (!s->handle)
        return;
    const struct device_ops *ops = s->handle->device->ops;
    staging_wait(s, NULL);
    for (int i = 0; i < STAGING_SLOTS; i++)
        if (s->sent[i])
            ops->event_destroy(s->sent[i]);
    strata_host_free(s->handle, s->pinned, (size_t)STAGING_SLOTS * STAGING_PIECE);
    if (s->pinned)
        carriers_close();
    pthread_mutex_destroy(&s->lock);
    *s = (struct staging){0};
}
