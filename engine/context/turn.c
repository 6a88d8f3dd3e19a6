/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of contexts whose runs take much from the host. Two that compute at once end at
 * once, so that both then copy while nothing computes: they fall into step. One after the
 * other, each copies while the other computes.
 */
#include <pthread.h>

#include "engine/context/parts.h"

enum {
    DEVICES = 64,
    LINK = 50, /* bytes in a ns, about, from the host */
    SHARE = 4  /* of a run, that copies take at least where turns gain by it */
};

static struct {
    pthread_mutex_t lock;
    const struct parts_room *last; /* whose run is the last of the device's queue */
} turns[DEVICES] = {[0 ... DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static bool gains(const struct parts_room *room)
{
    const strata_context *c = room->context;
    const int64_t copy_ns = (int64_t)(room->from_host / LINK);
    const int64_t run_ns = c->active->execution->cost / 16;
    return room->ran && c->handle->properties.index < DEVICES &&
           SHARE * copy_ns >= run_ns;
}

int parts_take_turn(struct parts_room *room, strata_error *err)
{
    const strata_context *c = room->context;
    const int device = c->handle->properties.index;
    room->in_turn = gains(room);
    if (!room->in_turn)
        return STRATA_OK;
    pthread_mutex_lock(&turns[device].lock);
    const struct parts_room *last = turns[device].last;
    return last && last != room
               ? c->handle->device->ops->stream_wait(c->stream, last->ran, err)
               : STRATA_OK;
}

int parts_leave_turn(struct parts_room *room, int status, strata_error *err)
{
    const strata_context *c = room->context;
    const int device = c->handle->properties.index;
    if (!room->in_turn)
        return status;
    if (status == STRATA_OK)
        status = c->handle->device->ops->event_record(room->ran, c->stream, err);
    if (status == STRATA_OK)
        turns[device].last = room;
    pthread_mutex_unlock(&turns[device].lock);
    return status;
}

/* Where the device has no events to be had, runs take no turns. */
void parts_open_turns(struct parts_room *room)
{
    const strata_handle *h = room->context->handle;
    if (h->properties.kind != STRATA_HOST &&
        h->device->ops->event_create(h->device, &room->ran, NULL) != STRATA_OK)
        room->ran = NULL;
}

void parts_close_turns(struct parts_room *room)
{
    const strata_handle *h = room->context->handle;
    const int device = h->properties.index;
    if (!room->ran)
        return;
    if (device < DEVICES) {
        pthread_mutex_lock(&turns[device].lock);
        if (turns[device].last == room)
            turns[device].last = NULL;
        pthread_mutex_unlock(&turns[device].lock);
    }
    h->device->ops->event_destroy(room->ran);
    room->ran = NULL;
}
