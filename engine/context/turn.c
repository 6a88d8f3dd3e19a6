/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of contexts on a device. Two runs that share it end at about the same time, so
 * both then copy while nothing computes, and so again. One after the other, each context
 * copies while the other computes.
 */
#include <pthread.h>

#include "core/arguments.h"
#include "engine/context/parts.h"

enum { DEVICES = 64 };

static struct {
    pthread_mutex_t lock;
    const struct parts_room *last; /* whose run is the last of the device's queue */
} turns[DEVICES] = {[0 ... DEVICES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static int device_of(const struct parts_room *room)
{
    return room->context->handle->properties.index;
}

static const struct device_ops *ops_of(const struct parts_room *room)
{
    return room->context->handle->device->ops;
}

static bool takes_turns(const struct parts_room *room)
{
    return room->context->takes_turns && !parts_on_host(room->context) &&
           device_of(room) >= 0 && device_of(room) < DEVICES;
}

int parts_take_turn(struct parts_room *room, strata_error *err)
{
    int status = STRATA_OK;
    room->in_turn = false;
    if (!takes_turns(room))
        return STRATA_OK;
    if (!room->ran)
        status =
            ops_of(room)->event_create(room->context->handle->device, &room->ran, err);
    if (status != STRATA_OK)
        return status;
    room->in_turn = true;
    pthread_mutex_lock(&turns[device_of(room)].lock);
    const struct parts_room *last = turns[device_of(room)].last;
    return last && last != room
               ? ops_of(room)->stream_wait(room->context->stream, last->ran, err)
               : STRATA_OK;
}

int parts_leave_turn(struct parts_room *room, int status, strata_error *err)
{
    if (!room->in_turn)
        return status;
    if (status == STRATA_OK)
        status = ops_of(room)->event_record(room->ran, room->context->stream, err);
    if (status == STRATA_OK)
        turns[device_of(room)].last = room;
    pthread_mutex_unlock(&turns[device_of(room)].lock);
    room->in_turn = false;
    return status;
}

void parts_close_turns(struct parts_room *room)
{
    if (!room->ran)
        return;
    pthread_mutex_lock(&turns[device_of(room)].lock);
    if (turns[device_of(room)].last == room)
        turns[device_of(room)].last = NULL;
    pthread_mutex_unlock(&turns[device_of(room)].lock);
    ops_of(room)->event_destroy(room->ran);
    room->ran = NULL;
}

int strata_context_set_turns(strata_context *c, int on, strata_error *err)
{
    int status = ARGUMENTS(err, {"context", c});
    if (status != STRATA_OK || (status = context_enter(c, __func__, err)) != STRATA_OK)
        return status;
    c->takes_turns = on != 0;
    return context_leave(c, STRATA_OK);
}
