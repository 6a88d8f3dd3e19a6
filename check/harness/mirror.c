/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of a device and their copies in pinned host memory, at the same offsets.
 */
#include "check/harness/mirror.h"

#include <stdlib.h>
#include <string.h>

int mirror_open_size(struct mirror *m, strata_handle *h, bool exact, size_t size,
                     strata_error *err)
{
    memset(m, 0, sizeof *m);
    m->handle = h;
    m->stream = strata_get_stream(h);
    m->exact = exact;
    m->size = m->top = size;
    m->host = strata_host_alloc(h, size, err);
    if (m->host && !exact)
        m->device = allocator_get(&h->allocator, size, "a mirror", err);
    return m->host && (exact || m->device) ? STRATA_OK : STRATA_ENOMEM;
}

int mirror_open(struct mirror *m, strata_handle *h, bool exact, strata_error *err)
{
    return mirror_open_size(m, h, exact, MIRROR_SIZE, err);
}

void mirror_close(struct mirror *m)
{
    mirror_reset(m);
    if (m->device)
        allocator_put(&m->handle->allocator, m->device, m->size);
    if (m->host)
        strata_host_free(m->handle, m->host, m->size);
    memset(m, 0, sizeof *m);
}

bool mirror_block(struct mirror *m, struct block *b, size_t bytes, unsigned char fill,
                  enum mirror_kind kind)
{
    const bool scratch = kind == MIRROR_SCRATCH;
    if (bytes > m->size)
        return false;
    size_t whole = block_whole(bytes);
    if (m->n_blocks == MIRROR_BLOCKS || whole > m->top - m->used)
        return false;
    size_t at = scratch ? m->top - whole : m->used;
    block_lay(b, m->host + at, bytes, fill, scratch);
    b->device = m->exact ? allocator_get(&m->handle->allocator, bytes, "a block", NULL)
                         : m->device + at + (b->data - b->base);
    if (!b->device)
        return false;
    if (scratch)
        m->top = at;
    else
        m->used = at + whole;
    m->blocks[m->n_blocks].block = b;
    m->blocks[m->n_blocks++].kind = kind;
    return true;
}

void mirror_reset(struct mirror *m)
{
    for (int i = 0; i < m->n_blocks && m->exact; i++)
        allocator_put(&m->handle->allocator, m->blocks[i].block->device,
                      m->blocks[i].block->bytes);
    m->n_blocks = 0;
    m->used = 0;
    m->top = m->size;
}

static int copy(struct mirror *m, void *dst, const void *src, size_t bytes,
                enum device_copy direction, strata_error *err)
{
    return m->handle->device->ops->copy(m->stream, dst, src, bytes, direction, err);
}

/* The bands of a block that lies in the mirror's own allocation. */
static int copy_bands(struct mirror *m, const struct block *b, enum device_copy direction,
                      strata_error *err)
{
    size_t before = (size_t)(b->data - b->base);
    unsigned char *host[] = {b->base, b->data + b->bytes};
    unsigned char *device[] = {b->device - before, b->device + b->bytes};
    int status = STRATA_OK;
    for (int i = 0; i < 2 && status == STRATA_OK; i++)
        status = direction == COPY_TO_DEVICE
                     ? copy(m, device[i], host[i], before, direction, err)
                     : copy(m, host[i], device[i], before, direction, err);
    return status;
}

int mirror_wait(struct mirror *m, strata_error *err)
{
    return m->handle->device->ops->stream_synchronize(m->stream, err);
}

static int push_content(struct mirror *m, const struct block *b, strata_error *err)
{
    return copy(m, b->device, b->data, b->bytes, COPY_TO_DEVICE, err);
}

int mirror_push_block(struct mirror *m, const struct block *b, strata_error *err)
{
    int status = push_content(m, b, err);
    if (status == STRATA_OK && !m->exact)
        status = copy_bands(m, b, COPY_TO_DEVICE, err);
    int waited = mirror_wait(m, err);
    return status == STRATA_OK ? waited : status;
}

int mirror_push(struct mirror *m, unsigned char pattern, strata_error *err)
{
    const struct device_ops *ops = m->handle->device->ops;
    int status = STRATA_OK;
    if (!m->exact)
        status = copy(m, m->device, m->host, m->used, COPY_TO_DEVICE, err);
    for (int i = 0; i < m->n_blocks && status == STRATA_OK; i++) {
        const struct block *b = m->blocks[i].block;
        enum mirror_kind kind = m->blocks[i].kind;
        if (m->exact && kind == MIRROR_FULL)
            status = push_content(m, b, err);
        else if (!m->exact && kind == MIRROR_SCRATCH)
            status = ops->fill(m->stream, b->device, pattern, b->bytes, err);
        if (!m->exact && kind == MIRROR_SCRATCH && status == STRATA_OK)
            status = copy_bands(m, b, COPY_TO_DEVICE, err);
    }
    return status;
}

int mirror_pull(struct mirror *m, strata_error *err)
{
    int status = STRATA_OK;
    if (!m->exact)
        status = copy(m, m->host, m->device, m->used, COPY_FROM_DEVICE, err);
    for (int i = 0; i < m->n_blocks && status == STRATA_OK; i++) {
        const struct block *b = m->blocks[i].block;
        bool scratch = m->blocks[i].kind == MIRROR_SCRATCH;
        if (m->exact && !scratch)
            status = copy(m, b->data, b->device, b->bytes, COPY_FROM_DEVICE, err);
        else if (!m->exact && scratch)
            status = copy_bands(m, b, COPY_FROM_DEVICE, err);
    }
    int waited = mirror_wait(m, err);
    return status == STRATA_OK ? waited : status;
}
