/* SPDX-License-Identifier: Apache-2.0
 *
 * What the checks of a node share: memory between guards, and the words for what it did.
 */
#include "engine/context/check.h"

#define GUARD TENSOR_ALIGNMENT /* bytes on each side */
#define GUARD_BYTE 0xa5

/* ---- memory ------------------------------------------------------------------------ */

int guard_fetch(strata_context *c, void *to, const void *from, size_t bytes,
                strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    int status = ops->copy(c->stream, to, from, bytes, COPY_FROM_DEVICE, err);
    return status != STRATA_OK ? status : ops->stream_synchronize(c->stream, err);
}

size_t guard_bytes(const strata_tensor *t)
{
    return t->data ? (size_t)t->size * strata_dtype_size(t->dtype) : 0;
}

bool guard_overlap(const strata_tensor *a, const strata_tensor *b)
{
    const char *x = a->data, *y = b->data;
    return x && y && x < y + guard_bytes(b) && y < x + guard_bytes(a);
}

static size_t block_whole(const struct guard_block *b)
{
    return b->room + 2 * GUARD;
}

int guard_make(strata_context *c, struct guard_block *b, size_t bytes, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    b->bytes = bytes;
    b->room = (bytes + GUARD - 1) / GUARD * GUARD;
    char *whole =
        allocator_get(&c->handle->allocator, block_whole(b), "a guarded block", err);
    if (!whole)
        return STRATA_ENOMEM;
    b->data = whole + GUARD;
    int status = ops->fill(c->stream, whole, 0, block_whole(b), err);
    return status != STRATA_OK ? status : ops->stream_synchronize(c->stream, err);
}

void guard_free(strata_context *c, struct guard_block *b)
{
    if (b->data)
        allocator_put(&c->handle->allocator, b->data - GUARD, block_whole(b));
}

int guard_set(strata_context *c, const struct guard_block *b, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    int status = ops->fill(c->stream, b->data - GUARD, GUARD_BYTE, GUARD, err);
    return status != STRATA_OK
               ? status
               : ops->fill(c->stream, b->data + b->bytes, GUARD_BYTE, GUARD, err);
}

/* The guard byte nearest to the block that is not as it was: its distance, counted from
 * 1; 0: none. */
static size_t find_damage(const unsigned char *guard, bool before)
{
    for (size_t i = 0; i < GUARD; i++)
        if (guard[before ? GUARD - 1 - i : i] != GUARD_BYTE)
            return i + 1;
    return 0;
}

int guard_check(strata_context *c, size_t node, const struct guard_block *b,
                const char *what, int index, strata_error *err)
{
    unsigned char guards[2][GUARD];
    int status = guard_fetch(c, guards[0], b->data - GUARD, GUARD, err);
    if (status == STRATA_OK)
        status = guard_fetch(c, guards[1], b->data + b->bytes, GUARD, err);
    for (int past = 0; past < 2 && status == STRATA_OK; past++) {
        const size_t at = find_damage(guards[past], !past);
        if (at > 0)
            status = guard_found(c, node, err, "wrote byte %zu %s the %zu bytes of %s %d",
                                 at, past ? "past" : "before", b->bytes, what, index);
    }
    return status;
}

/* ---- findings ---------------------------------------------------------------------- */

void guard_name(const strata_context *c, size_t node, const char *kind, strata_error *err)
{
    const struct execution_node *n = &c->execution->nodes[node];
    error_prefix(err, "%s:%d: %slayer '%s', impl %s of %s: STRATA_CHECK",
                 c->engine->network->path, n->layer->place.line, kind, n->name,
                 n->impl->impl.name, module_info(n->impl->module).path);
}

int guard_found(const strata_context *c, size_t node, strata_error *err,
                const char *format, ...)
{
    va_list args;
    va_start(args, format);
    error_set_va(err, STRATA_EINTERNAL, format, args);
    va_end(args);
    guard_name(c, node, "error: ", err);
    error_append(err, "; `strata check` shows it alone");
    return STRATA_EINTERNAL;
}
