/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a run between their memory and the bindings'. All of it is put on the stream
 * at once; the host copies on the calling thread.
 */
#include "engine/context/parts.h"

#include <stdlib.h>
#include <string.h>

#include "core/checked.h"
#include "formats/reformat/reformat.h"

bool parts_on_host(const strata_context *c)
{
    return c->handle->properties.kind == STRATA_HOST;
}

/* ---- room ------------------------------------------------------------------------ */

static int stage(struct parts_room *room, size_t index, strata_error *err)
{
    const strata_engine *e = room->context->engine;
    struct parts_port *p = &room->ports[index];
    const int64_t row_bytes = e->row_bytes[index];
    int64_t bytes;
    if (row_bytes == 0 || row_bytes > PARTS_SMALL)
        return STRATA_OK;
    if (!checked_mul(row_bytes, 2 * room->most, &bytes))
        return error_set(err, STRATA_EOVERFLOW, "binding '%s': too large",
                         e->execution->bindings[index].name);
    /* Where none can be had each part is a copy. */
    p->staged = strata_host_alloc(room->context->handle, (size_t)bytes, NULL);
    p->bytes = p->staged ? (size_t)bytes / 2 : 0;
    return STRATA_OK;
}

int parts_open(struct parts_room *room, strata_context *c, int64_t most,
               strata_error *err)
{
    const size_t n = c->execution->n_bindings;
    int status = STRATA_OK;
    room->context = c;
    room->most = most;
    staging_open(&room->staging, c->handle, c->stream);
    staging_keep(&room->staging);
    room->ports = zalloc(n, sizeof *room->ports, "parts of runs", err);
    room->before = zalloc(n, sizeof *room->before, "parts of runs", err);
    room->list = zalloc((size_t)most, 2 * sizeof *room->list, "parts of runs", err);
    if (!room->ports || !room->before || !room->list)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        if (!context_binding_data(c, i, err))
            return STRATA_ENOMEM;
        if (!parts_on_host(c))
            status = stage(room, i, err);
    }
    return status;
}

void parts_close(struct parts_room *room)
{
    const strata_context *c = room->context; /* NULL: it was not opened */
    if (c)
        strata_stream_synchronize(c->stream, NULL); /* a copy that failed may go on */
    staging_close(&room->staging);
    for (size_t i = 0; room->ports && i < c->execution->n_bindings; i++)
        strata_host_free(c->handle, room->ports[i].staged, 2 * room->ports[i].bytes);
    free(room->ports);
    free(room->before);
    free(room->list);
    free(room->sources);
    *room = (struct parts_room){0};
}

void parts_take_slot(struct parts_room *room, struct parts_run *run)
{
    run->slot = room->last_slot = !room->last_slot;
    run->parts = room->list + run->slot * (size_t)room->most;
    run->n = 0;
}

void parts_clear(struct parts_room *room)
{
    strata_context *c = room->context;
    const struct execution *x = c->execution;
    for (size_t i = 0; i < x->n_inputs; i++) {
        const size_t bytes = (size_t)x->values[x->bindings[i].value].bytes;
        if (c->own[i] && parts_on_host(c))
            memset(c->own[i], 0, bytes);
        else if (c->own[i])
            c->handle->device->ops->fill(c->stream, c->own[i], 0, bytes, NULL);
    }
}

uint64_t parts_bytes(const strata_context *c, size_t index, int64_t rows)
{
    return engine_bytes_of_rows(c->active->engine, index, rows);
}

/* ---- pieces ---------------------------------------------------------------------- */

const strata_memory *parts_pieces(const strata_context *c, const strata_part *p,
                                  size_t index, uint32_t *n)
{
    const size_t n_in = c->execution->n_inputs;
    const strata_memory *first = p->inputs;
    *n = p->pieces && index < n_in ? p->pieces[index] : 1;
    if (index >= n_in) {
        *n = p->outputs && p->outputs[index - n_in].data;
        return p->outputs + (*n ? index - n_in : 0);
    }
    for (size_t i = 0; i < index; i++)
        first += p->pieces ? p->pieces[i] : 1;
    return first;
}

static void count(strata_context *c, bool in, const strata_memory *m, uint64_t bytes)
{
    struct context_calls *calls = &c->calls;
    *(in ? &calls->copied_in : &calls->copied_out) += bytes;
    if (m->kind == STRATA_MEMORY_DEVICE && m->device != c->handle->properties.index)
        calls->cross_device += bytes;
}

/* On the stream; on the host at once, where nothing is under way. */
static int copy(struct parts_room *room, bool in, char *data, char *theirs, size_t bytes,
                int kind, strata_error *err)
{
    strata_context *c = room->context;
    void *to = in ? data : theirs;
    const void *from = in ? theirs : data;
    enum device_copy way = in ? COPY_TO_DEVICE : COPY_FROM_DEVICE;
    if (!parts_on_host(c))
        return c->handle->device->ops->copy(
            c->stream, to, from, bytes,
            kind == STRATA_MEMORY_DEVICE ? COPY_ON_DEVICE : way, err);
    if (bytes > 0)
        memcpy(to, from, bytes);
    return STRATA_OK;
}

/* ---- pinned pieces ----------------------------------------------------------------- */

static bool keep_source(struct parts_room *room, const void *data, uint64_t bytes)
{
    if (room->n_sources == room->most_sources) {
        const size_t most = room->most_sources + (size_t)room->most + 8;
        struct staging_source *grown = realloc(room->sources, most * sizeof *grown);
        if (!grown)
            return false;
        room->sources = grown;
        room->most_sources = most;
    }
    room->sources[room->n_sources++] = (struct staging_source){data, (size_t)bytes};
    return true;
}

/* Whether a binding's parts go by pieces: all of them are memory that the driver would
 * copy by one thread, large or many; of an output, all are wanted. They are then the
 * room's sources, or where its rows go to. */
static bool is_sent(struct parts_room *room, const struct parts_run *run, size_t index)
{
    const strata_context *c = room->context;
    const bool in = index < c->execution->n_inputs;
    struct device *d = c->handle->device;
    uint64_t sum = 0;
    room->n_sources = 0;
    if (!d->ops->is_pinned)
        return false;
    for (size_t i = 0; i < run->n; i++) {
        uint32_t n;
        const strata_memory *m = parts_pieces(c, run->parts[i], index, &n);
        if (!in && n == 0)
            return false;
        for (; n > 0; n--, m++) {
            const uint64_t bytes =
                in ? m->bytes : parts_bytes(c, index, run->parts[i]->rows);
            if (m->kind != STRATA_MEMORY_HOST || d->ops->is_pinned(d, m->data) ||
                !keep_source(room, m->data, bytes))
                return false;
            sum += bytes;
        }
    }
    return sum > PARTS_SMALL;
}

/* Whether they travel as halves: they are whole elements, too. */
static bool are_rounded(const struct parts_room *room, size_t index)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < room->n_sources; i++) {
        const struct staging_source *s = &room->sources[i];
        if (s->bytes % sizeof(float) != 0 || (uintptr_t)s->data % sizeof(float) != 0)
            return false;
        bytes += s->bytes;
    }
    return engine_sends_halves(room->context->active->execution, index, bytes);
}

/* By the arena to where the run reads floats: the device's memory is quicker than its way
 * there by two orders. */
static int send_rounded(struct parts_room *room, float *data, strata_error *err)
{
    const strata_context *run = room->context->active;
    const int64_t dense = 1;
    strata_desc floats, halves;
    int64_t n = 0;
    for (size_t i = 0; i < room->n_sources; i++)
        n += (int64_t)(room->sources[i].bytes / sizeof(float));
    int status = strata_desc_strided(&floats, STRATA_FP32, &n, &dense, 1, err);
    if (status == STRATA_OK)
        status = strata_desc_strided(&halves, STRATA_FP16, &n, &dense, 1, err);
    if (status == STRATA_OK)
        status = staging_send_halves(&room->staging, run->arena, room->sources,
                                     room->n_sources, err);
    return status != STRATA_OK
               ? status
               : reformat_enqueue(run->stream, &floats, data, &halves, run->arena, err);
}

static int send_sources(struct parts_room *room, size_t index, char *data,
                        strata_error *err)
{
    return are_rounded(room, index)
               ? send_rounded(room, (float *)(void *)data, err)
               : staging_send_all(&room->staging, data, room->sources, room->n_sources,
                                  err);
}

/* One way or the other. */
static int move_sources(struct parts_room *room, size_t index, char *data,
                        strata_error *err)
{
    strata_context *c = room->context;
    const bool in = index < c->execution->n_inputs;
    for (size_t i = 0; i < room->n_sources; i++)
        *(in ? &c->calls.copied_in : &c->calls.copied_out) += room->sources[i].bytes;
    room->staging.stream = c->stream;
    return in ? send_sources(room, index, data, err)
              : staging_receive_all(&room->staging, room->sources, room->n_sources, data,
                                    err);
}

/* Whether its parts are staged: all of them are memory of the host. */
static bool is_staged(const struct parts_room *room, const struct parts_run *run,
                      size_t index)
{
    uint32_t n = 0;
    if (!room->ports[index].staged)
        return false;
    for (size_t i = 0; i < run->n; i++) {
        const strata_memory *m = parts_pieces(room->context, run->parts[i], index, &n);
        for (uint32_t k = 0; k < n; k++)
            if (m[k].kind == STRATA_MEMORY_DEVICE)
                return false;
    }
    return true;
}

static char *staged_at(const struct parts_room *room, const struct parts_run *run,
                       size_t index)
{
    return room->ports[index].staged + run->slot * room->ports[index].bytes;
}

/* Rows of all parts between their memory and the staged. */
static void move_staged(struct parts_room *room, const struct parts_run *run,
                        size_t index)
{
    const strata_context *c = room->context;
    const bool in = index < c->execution->n_inputs;
    char *staged = staged_at(room, run, index);
    for (size_t i = 0; i < run->n; i++) {
        const uint64_t bytes = parts_bytes(c, index, run->parts[i]->rows);
        uint32_t n;
        const strata_memory *m = parts_pieces(c, run->parts[i], index, &n);
        for (uint64_t k = 0, at = 0; k < n; at += m[k++].bytes)
            memcpy(in ? staged + at : m[k].data, in ? m[k].data : staged + at,
                   in ? m[k].bytes : bytes);
        staged += bytes;
    }
}

static int copy_staged(struct parts_room *room, const struct parts_run *run, size_t index,
                       char *data, strata_error *err)
{
    strata_context *c = room->context;
    const bool in = index < c->execution->n_inputs;
    const strata_memory host = {.kind = STRATA_MEMORY_HOST};
    const uint64_t bytes = parts_bytes(c, index, run->rows);
    if (in)
        move_staged(room, run, index);
    count(c, in, &host, bytes);
    return copy(room, in, data, staged_at(room, run, index), bytes, host.kind, err);
}

/* A part's pieces, one behind the other. */
static int copy_part(struct parts_room *room, const strata_part *p, size_t index,
                     char *data, strata_error *err)
{
    strata_context *c = room->context;
    const bool in = index < c->execution->n_inputs;
    int status = STRATA_OK;
    uint32_t n;
    const strata_memory *m = parts_pieces(c, p, index, &n);
    for (; n > 0 && status == STRATA_OK; n--, m++) {
        const uint64_t bytes = in ? m->bytes : parts_bytes(c, index, p->rows);
        count(c, in, m, bytes);
        status = copy(room, in, data, m->data, bytes, m->kind, err);
        data += bytes;
    }
    return status;
}

int parts_copy(struct parts_room *room, const struct parts_run *run, size_t index,
               strata_error *err)
{
    strata_context *c = room->context;
    const bool rows = c->active->engine->row_bytes[index] > 0;
    char *data = context_binding_data(c, index, err);
    int status = data ? STRATA_OK : STRATA_ENOMEM;
    if (data && is_staged(room, run, index))
        return copy_staged(room, run, index, data, err);
    if (data && is_sent(room, run, index))
        return move_sources(room, index, data, err);
    for (size_t i = 0; i < run->n && status == STRATA_OK; i++) {
        status = copy_part(room, run->parts[i], index, data, err);
        data += rows ? parts_bytes(c, index, run->parts[i]->rows) : 0;
    }
    return status;
}

void parts_end(struct parts_room *room, const struct parts_run *run)
{
    const struct execution *x = room->context->execution;
    for (size_t i = x->n_inputs; i < x->n_bindings; i++)
        if (is_staged(room, run, i))
            move_staged(room, run, i);
}

void context_free_parts(strata_context *c)
{
    if (c->parts)
        parts_close(c->parts);
    free(c->parts);
    c->parts = NULL;
}
