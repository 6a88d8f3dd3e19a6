/* SPDX-License-Identifier: Apache-2.0
 *
 * Inputs and outputs from and to the host's memory, of the shape that the next run has.
 */
#include "engine/context/context.h"
#include "engine/context/parts.h"

/* Whether it goes by pinned pieces: the driver would copy it by one thread. */
static bool goes_by_pieces(const strata_context *c, const void *host, size_t bytes)
{
    struct device *d = c->handle->device;
    return bytes > PARTS_SMALL && d->ops->is_pinned && !d->ops->is_pinned(d, host);
}

/* To the host, or from there. */
static int move_by_pieces(strata_context *c, void *data, void *to_host,
                          const void *from_host, size_t bytes, strata_error *err)
{
    if (!c->staging) {
        if (!(c->staging = zalloc(1, sizeof *c->staging, "copies", err)))
            return STRATA_ENOMEM;
        staging_open(c->staging, c->handle, c->stream);
        staging_keep(c->staging);
    }
    const struct staging_source target = {to_host, bytes};
    c->staging->stream = c->stream;
    staging_begin(c->staging);
    return to_host ? staging_receive_all(c->staging, &target, 1, data, err)
                   : staging_send(c->staging, data, from_host, bytes, err);
}

/* One way or the other, put on the stream; what is waited for may go by pieces. */
static int enqueue_copy(strata_context *c, const char *function, int index, void *to_host,
                        const void *from_host, bool wait, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    if (index < 0 || index >= (int)c->execution->n_bindings)
        return error_set(err, STRATA_EINVAL, "binding %d: there are %zu", index,
                         c->execution->n_bindings);
    int status = context_resolve(c, err);
    if (status != STRATA_OK)
        return status;
    const struct execution *x = c->active->execution;
    const struct execution_binding *b = &x->bindings[index];
    const int64_t row_bytes = c->active->engine->row_bytes[index];
    const size_t bytes =
        (size_t)(row_bytes ? row_bytes * context_rows(c) : x->values[b->value].bytes);
    if (!from_host && !to_host && bytes > 0)
        return error_set(err, STRATA_EINVAL,
                         "%s: data is NULL; binding '%s' has %zu bytes", function,
                         b->name, bytes);
    void *data = context_binding_data(c, (size_t)index, err);
    if (!data)
        return STRATA_ENOMEM;
    *(from_host ? &c->calls.copied_in : &c->calls.copied_out) += bytes;
    if (wait && goes_by_pieces(c, from_host ? from_host : to_host, bytes))
        return move_by_pieces(c, data, to_host, from_host, bytes, err);
    return from_host ? ops->copy(c->stream, data, from_host, bytes, COPY_TO_DEVICE, err)
                     : ops->copy(c->stream, to_host, data, bytes, COPY_FROM_DEVICE, err);
}

static int copy_binding(strata_context *c, const char *function, int index, void *to_host,
                        const void *from_host, bool wait, strata_error *err)
{
    int status = context_enter(c, function, err);
    if (status != STRATA_OK)
        return status;
    if (wait)
        context_visit(c, 1);
    status = enqueue_copy(c, function, index, to_host, from_host, wait, err);
    context_end_visit(c);
    if (status == STRATA_OK && wait)
        status = c->handle->device->ops->stream_synchronize(c->stream, err);
    return context_leave(c, status);
}

int strata_copy_in(strata_context *c, int index, const void *data, strata_error *err)
{
    return copy_binding(c, __func__, index, NULL, data, true, err);
}

int strata_copy_out(strata_context *c, int index, void *data, strata_error *err)
{
    return copy_binding(c, __func__, index, data, NULL, true, err);
}

int strata_enqueue_copy_in(strata_context *c, int index, const void *data,
                           strata_error *err)
{
    return copy_binding(c, __func__, index, NULL, data, false, err);
}

int strata_enqueue_copy_out(strata_context *c, int index, void *data, strata_error *err)
{
    return copy_binding(c, __func__, index, data, NULL, false, err);
}
