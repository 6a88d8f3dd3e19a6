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

int parts_start(struct parts_room *room, strata_error *err)
{
    strata_context *c = room->context;
    const struct device_ops *ops = c->handle->device->ops;
    int status = STRATA_OK;
    if (!gains(room))
        return context_start(c, err);
    const int device = c->handle->properties.index;
    pthread_mutex_lock(&turns[device].lock);
    if (turns[device].last && turns[device].last != room)
        status = ops->stream_wait(c->stream, turns[device].last->ran, err);
    if (status == STRATA_OK)
        status = context_start(c, err);
    if (status == STRATA_OK)
        status = ops->event_record(room->ran, c->stream, err);
    if (status == STRATA_OK)
        turns[device].last = room;
    pthread_mutex_unlock(&turns[device].lock);
    return status;
}

/* Where the device has no events to be had, runs take no turns. */
void parts_open_turns(struct parts_room *room)
{
    struct device *d = room->context->handle->device;
    if (!parts_on_host(room->context) &&
        d->ops->event_create(d, &room->ran, NULL) != STRATA_OK)
        room->ran = NULL;
}

void parts_close_turns(struct parts_room *room)
{
    const strata_context *c = room->context;
    if (!room->ran)
        return;
    const int device = c->handle->properties.index;
    if (device < DEVICES) {
        pthread_mutex_lock(&turns[device].lock);
        if (turns[device].last == room)
            turns[device].last = NULL;
        pthread_mutex_unlock(&turns[device].lock);
    }
    c->handle->device->ops->event_destroy(room->ran);
    room->ran = NULL;
}
