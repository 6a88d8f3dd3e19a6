/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles, and the public face of streams and events: argument checks, then the device.
 */
#include "core/handle.h"

#include <stdlib.h>
#include <string.h>

#include "core/arguments.h"

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
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out});
    if (status != STRATA_OK)
        return status;
    strata_handle *h = zalloc(1, sizeof *h, "a handle", err);
    if (!h)
        return STRATA_ENOMEM;
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
    return h ? h->properties.name : NULL;
}

int strata_device_ok(const strata_handle *h, strata_error *err)
{
    int status = ARGUMENTS(err, {"handle", h});
    return status != STRATA_OK ? status : h->device->ops->check(h->device, err);
}

void *strata_host_alloc(strata_handle *h, size_t bytes, strata_error *err)
{
    if (ARGUMENTS(err, {"handle", h}) != STRATA_OK)
        return NULL;
    const strata_allocator a = h->device->ops->host_memory(h->device);
    void *ptr = a.alloc(a.user, bytes ? bytes : 1, TENSOR_ALIGNMENT);
    if (!ptr && strata_device_ok(h, err) == STRATA_OK) /* else it says which is lost */
        error_no_memory(err, bytes, "host memory for copies");
    return ptr;
}

void strata_host_free(strata_handle *h, void *ptr, size_t bytes)
{
    if (!h || !ptr)
        return;
    const strata_allocator a = h->device->ops->host_memory(h->device);
    a.free(a.user, ptr, bytes ? bytes : 1);
}

int strata_set_allocator(strata_handle *h, const strata_allocator *a, strata_error *err)
{
    strata_memory_stats stats;
    int status = ARGUMENTS(err, {"handle", h}, {"a", a});
    if (status != STRATA_OK)
        return status;
    status = struct_check(a->struct_size, SIZE_THROUGH(strata_allocator, user),
                          "strata_allocator", err);
    if (status != STRATA_OK)
        return status;
    if (!a->alloc || !a->free)
        return error_set(err, STRATA_EINVAL, "allocator: both callbacks are needed");
    allocator_stats(&h->allocator, &stats);
    if (stats.current_blocks > 0)
        return error_set(
            err, STRATA_EBUSY,
            "allocator: %llu blocks of the old one are in use; set it before "
            "the handle allocates",
            (unsigned long long)stats.current_blocks);
    struct_take(&h->allocator.callbacks, sizeof h->allocator.callbacks, a,
                a->struct_size);
    h->allocator.free_bytes = NULL;
    return STRATA_OK;
}

int strata_get_memory_stats(const strata_handle *h, strata_memory_stats *out,
                            strata_error *err)
{
    strata_memory_stats stats;
    int status = ARGUMENTS(err, {"handle", h}, {"out", out});
    if (status == STRATA_OK)
        status =
            struct_check(out->struct_size, SIZE_THROUGH(strata_memory_stats, failures),
                         "strata_memory_stats", err);
    if (status != STRATA_OK)
        return status;
    allocator_stats((struct allocator *)&h->allocator, &stats);
    struct_give(out, &stats, sizeof stats);
    return STRATA_OK;
}

void strata_set_memory_observer(strata_handle *h, strata_memory_fn fn, void *user)
{
    if (h)
        allocator_observe(&h->allocator, fn, user);
}

int strata_set_math_mode(strata_handle *h, int mode, strata_error *err)
{
    int status = ARGUMENTS(err, {"handle", h});
    if (status != STRATA_OK)
        return status;
    if (mode < STRATA_MATH_DEFAULT || mode > STRATA_MATH_TF32)
        return error_set(err, STRATA_EINVAL,
                         "math mode %d: 0 (default), 1 (tensor_op) or 2 (tf32)", mode);
    h->math = mode;
    return STRATA_OK;
}

int strata_get_math_mode(const strata_handle *h)
{
    return h ? h->math : STRATA_MATH_DEFAULT;
}

int strata_set_threads(strata_handle *h, int threads, strata_error *err)
{
    int status = ARGUMENTS(err, {"handle", h});
    if (status != STRATA_OK)
        return status;
    if (threads < 0 || threads > 4096)
        return error_set(err, STRATA_EINVAL,
                         "threads %d: 1 to 4096, or 0 for as many as the network says",
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
    int status = ARGUMENTS(err, {"handle", h});
    if (status != STRATA_OK)
        return status;
    if (wait < STRATA_WAIT_NETWORK || wait > STRATA_WAIT_SLEEP)
        return error_set(err, STRATA_EINVAL,
                         "wait %d: one of STRATA_WAIT_NETWORK (0), _SPIN, _YIELD, _SLEEP",
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
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", h});
    if (status != STRATA_OK)
        return status;
    return h->device->ops->stream_create(h->device, out, err);
}

/* Devices with streams that others can make: those that wrap them. */
static int foreign(const strata_handle *h, const char *what, strata_error *err)
{
    if (h->device->ops->stream_wrap)
        return STRATA_OK;
    return error_set(err, STRATA_EUNSUPPORTED,
                     "%s has no %s of others; use a handle of a GPU, as cuda:0",
                     h->properties.name, what);
}

int strata_stream_wrap(strata_stream **out, strata_handle *h, void *native,
                       strata_error *err)
{
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", h});
    if (status == STRATA_OK)
        status = foreign(h, "streams", err);
    return status != STRATA_OK ? status
                               : h->device->ops->stream_wrap(h->device, native, out, err);
}

void *strata_stream_native(strata_stream *s)
{
    return s ? s->device->ops->stream_native(s) : NULL;
}

void strata_stream_destroy(strata_stream *s)
{
    if (s)
        s->device->ops->stream_destroy(s);
}

int strata_stream_synchronize(strata_stream *s, strata_error *err)
{
    int status = ARGUMENTS(err, {"stream", s});
    return status != STRATA_OK ? status : s->device->ops->stream_synchronize(s, err);
}

void strata_set_stream(strata_handle *h, strata_stream *s)
{
    if (h)
        h->stream = s ? s : h->own_stream;
}

strata_stream *strata_get_stream(const strata_handle *h)
{
    return h ? h->stream : NULL;
}

int strata_event_create(strata_event **out, strata_handle *h, strata_error *err)
{
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", h});
    if (status != STRATA_OK)
        return status;
    return h->device->ops->event_create(h->device, out, err);
}

int strata_event_wrap(strata_event **out, strata_handle *h, void *native,
                      strata_error *err)
{
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"handle", h}, {"native", native});
    if (status == STRATA_OK)
        status = foreign(h, "events", err);
    return status != STRATA_OK ? status
                               : h->device->ops->event_wrap(h->device, native, out, err);
}

void *strata_event_native(strata_event *e)
{
    return e && e->device->ops->event_native ? e->device->ops->event_native(e) : NULL;
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
    int status = ARGUMENTS(err, {"event", e}, {"stream", s});
    if (status == STRATA_OK)
        status = same_kind(e->device, s->device, err);
    return status != STRATA_OK ? status : e->device->ops->event_record(e, s, err);
}

int strata_stream_wait(strata_stream *s, strata_event *e, strata_error *err)
{
    int status = ARGUMENTS(err, {"stream", s}, {"event", e});
    if (status == STRATA_OK)
        status = same_kind(e->device, s->device, err);
    return status != STRATA_OK ? status : s->device->ops->stream_wait(s, e, err);
}

int strata_event_synchronize(strata_event *e, strata_error *err)
{
    int status = ARGUMENTS(err, {"event", e});
    return status != STRATA_OK ? status : e->device->ops->event_synchronize(e, err);
}

int strata_event_elapsed(double *ms, strata_event *from, strata_event *to,
                         strata_error *err)
{
    int status = ARGUMENTS(err, {"ms", ms}, {"from", from}, {"to", to});
    if (status == STRATA_OK)
        status = same_kind(from->device, to->device, err);
    return status != STRATA_OK ? status
                               : from->device->ops->event_elapsed(ms, from, to, err);
}
