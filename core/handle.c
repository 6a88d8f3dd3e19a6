/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, and the public face of streams and events: argument checks, then the device.
 */
#include "core/handle.h"

#include <stdlib.h>
#include <string.h>

/* Device kinds by name. A kind whose opener is NULL comes as a module. */
static const struct device_kind {
    const char *name;
    int (*open)(struct device **out, int index, strata_error *err);
} device_kinds[] = {
    {"host", host_device_open},
    {"cuda", NULL},
};

static int parse_device(const char *name, char kind[16], int *index, strata_error *err)
{
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    long number = 0;
    if (colon) {
        char *end;
        number = strtol(colon + 1, &end, 10);
        if (end == colon + 1 || *end || number < 0 || number > 1023)
            length = 0;
    }
    if (length == 0 || length >= 16)
        return error_set(err, STRATA_EINVAL,
                         "device '%s': write KIND or KIND:NUMBER, as host or cuda:0",
                         name);
    memcpy(kind, name, length);
    kind[length] = '\0';
    *index = (int)number;
    return STRATA_OK;
}

int device_open(struct device **out, const char *name, strata_error *err)
{
    char kind[16];
    int index = 0;
    int status = parse_device(name ? name : "host", kind, &index, err);
    if (status != STRATA_OK)
        return status;
    for (size_t i = 0; i < ARRAY_LENGTH(device_kinds); i++)
        if (strcmp(kind, device_kinds[i].name) == 0)
            return device_kinds[i].open ? device_kinds[i].open(out, index, err)
                                        : device_module_open(out, kind, index, err);
    return error_set(err, STRATA_EUNSUPPORTED,
                     "device '%s': there is no such kind; use host or cuda", name);
}

void device_close(struct device *d)
{
    if (d)
        d->ops->close(d);
}

int strata_create(strata_handle **out, const char *device, strata_error *err)
{
    int status = STRATA_ENOMEM;
    error_clear(err);
    if (!out)
        return error_set(err, STRATA_EINVAL, "a handle needs out");
    *out = NULL;
    strata_handle *h = zalloc(1, sizeof *h, "a handle", err);
    if (!h)
        goto done;
    if ((status = device_open(&h->device, device, err)) != STRATA_OK)
        goto done;
    const struct device_ops *ops = h->device->ops;
    ops->properties(h->device, &h->properties);
    if ((status = allocator_init(&h->allocator, ops->memory(h->device), err)) !=
        STRATA_OK)
        goto done;
    h->allocator.free_bytes = ops->free_bytes;
    h->allocator.device = h->device;
    if ((status = ops->stream_create(h->device, &h->own_stream, err)) != STRATA_OK)
        goto done;
    h->stream = h->own_stream;
    *out = h;
    h = NULL;
done:
    strata_destroy(h);
    return status;
}

void strata_destroy(strata_handle *h)
{
    if (!h)
        return;
    strata_stream_destroy(h->own_stream);
    if (h->allocator.stats.current_blocks > 0)
        log_line(STRATA_LOG_WARNING, "handle destroyed with %llu blocks of memory in use",
                 (unsigned long long)h->allocator.stats.current_blocks);
    allocator_destroy(&h->allocator);
    device_close(h->device);
    free(h);
}

const char *strata_device_name(const strata_handle *h)
{
    return h->properties.name;
}

int strata_device_ok(const strata_handle *h, strata_error *err)
{
    error_clear(err);
    return h->device->ops->check(h->device, err);
}

void *strata_host_alloc(strata_handle *h, size_t bytes, strata_error *err)
{
    error_clear(err);
    const strata_allocator a = h->device->ops->host_memory(h->device);
    void *ptr = a.alloc(a.user, bytes ? bytes : 1, TENSOR_ALIGNMENT);
    if (!ptr)
        error_no_memory(err, bytes, "host memory for copies");
    return ptr;
}

void strata_host_free(strata_handle *h, void *ptr, size_t bytes)
{
    const strata_allocator a = h->device->ops->host_memory(h->device);
    if (ptr)
        a.free(a.user, ptr, bytes ? bytes : 1);
}

int strata_set_allocator(strata_handle *h, const strata_allocator *a, strata_error *err)
{
    strata_memory_stats stats;
    error_clear(err);
    if (!a || !a->alloc || !a->free)
        return error_set(err, STRATA_EINVAL, "allocator: both callbacks are needed");
    allocator_stats(&h->allocator, &stats);
    if (stats.current_blocks > 0)
        return error_set(
            err, STRATA_EBUSY,
            "allocator: %llu blocks of the old one are in use; set it before "
            "the handle allocates",
            (unsigned long long)stats.current_blocks);
    h->allocator.callbacks = *a;
    h->allocator.free_bytes = NULL;
    return STRATA_OK;
}

void strata_get_memory_stats(const strata_handle *h, strata_memory_stats *out)
{
    allocator_stats((struct allocator *)&h->allocator, out);
}

void strata_set_memory_observer(strata_handle *h, strata_memory_fn fn, void *user)
{
    allocator_observe(&h->allocator, fn, user);
}

int strata_set_math_mode(strata_handle *h, int mode, strata_error *err)
{
    error_clear(err);
    if (mode != STRATA_MATH_DEFAULT && mode != STRATA_MATH_TENSOR_OP)
        return error_set(err, STRATA_EINVAL, "math mode %d: 0 (default) or 1 (tensor_op)",
                         mode);
    h->math = mode;
    return STRATA_OK;
}

int strata_get_math_mode(const strata_handle *h)
{
    return h->math;
}

int strata_set_threads(strata_handle *h, int threads, strata_error *err)
{
    error_clear(err);
    if (!h || threads < 0 || threads > 4096)
        return error_set(
            err, STRATA_EINVAL,
            "threads %d: a handle and 1 to 4096 are needed, or 0 for as many "
            "as the network says",
            threads);
    h->threads = threads;
    return STRATA_OK;
}

int strata_get_threads(const strata_handle *h)
{
    return h ? h->threads : 0;
}

int strata_set_wait(strata_handle *h, int wait, strata_error *err)
{
    error_clear(err);
    if (!h || wait < STRATA_WAIT_NETWORK || wait > STRATA_WAIT_SLEEP)
        return error_set(err, STRATA_EINVAL,
                         "wait %d: a handle and one of STRATA_WAIT_NETWORK (0), _SPIN, "
                         "_YIELD, _SLEEP are needed",
                         wait);
    h->wait = wait;
    return STRATA_OK;
}

int strata_get_wait(const strata_handle *h)
{
    return h ? h->wait : STRATA_WAIT_NETWORK;
}

int strata_stream_create(strata_stream **out, strata_handle *h, strata_error *err)
{
    error_clear(err);
    if (!out || !h)
        return error_set(err, STRATA_EINVAL, "a stream needs out and handle");
    *out = NULL;
    return h->device->ops->stream_create(h->device, out, err);
}

void strata_stream_destroy(strata_stream *s)
{
    if (s)
        s->device->ops->stream_destroy(s);
}

int strata_stream_synchronize(strata_stream *s, strata_error *err)
{
    error_clear(err);
    return s->device->ops->stream_synchronize(s, err);
}

void strata_set_stream(strata_handle *h, strata_stream *s)
{
    h->stream = s ? s : h->own_stream;
}

strata_stream *strata_get_stream(const strata_handle *h)
{
    return h->stream;
}

int strata_event_create(strata_event **out, strata_handle *h, strata_error *err)
{
    error_clear(err);
    if (!out || !h)
        return error_set(err, STRATA_EINVAL, "an event needs out and handle");
    *out = NULL;
    return h->device->ops->event_create(h->device, out, err);
}

void strata_event_destroy(strata_event *e)
{
    if (e)
        e->device->ops->event_destroy(e);
}

/* Devices come one a handle, so kinds are compared, not objects. */
static int same_kind(const struct device *a, const struct device *b, strata_error *err)
{
    if (a->ops == b->ops)
        return STRATA_OK;
    return error_set(err, STRATA_EINVAL, "event and stream are of different devices");
}

int strata_event_record(strata_event *e, strata_stream *s, strata_error *err)
{
    error_clear(err);
    int status = same_kind(e->device, s->device, err);
    return status != STRATA_OK ? status : e->device->ops->event_record(e, s, err);
}

int strata_stream_wait(strata_stream *s, strata_event *e, strata_error *err)
{
    error_clear(err);
    int status = same_kind(e->device, s->device, err);
    return status != STRATA_OK ? status : s->device->ops->stream_wait(s, e, err);
}

int strata_event_synchronize(strata_event *e, strata_error *err)
{
    error_clear(err);
    return e->device->ops->event_synchronize(e, err);
}

int strata_event_elapsed(double *ms, strata_event *from, strata_event *to,
                         strata_error *err)
{
    error_clear(err);
    int status = same_kind(from->device, to->device, err);
    return status != STRATA_OK ? status
                               : from->device->ops->event_elapsed(ms, from, to, err);
}
