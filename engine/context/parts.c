/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of an application's parts: those that are right together, and where that fails
 * each alone.
 */
#include "engine/context/parts.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/arguments.h"

/* Parts lie in the caller's array as large as its header has them. */
static strata_part *part_at(strata_part *parts, size_t index)
{
    return (strata_part *)(void *)((char *)parts + index * parts->struct_size);
}

/* ---- what is asked --------------------------------------------------------------- */

static int check_memory(const strata_context *c, const strata_memory *m, const char *name,
                        strata_error *err)
{
    const bool device = m->kind == STRATA_MEMORY_DEVICE;
    if (!device && m->kind != STRATA_MEMORY_HOST)
        return error_set(err, STRATA_EINVAL,
                         "'%s': memory of kind %d; set STRATA_MEMORY_*", name, m->kind);
    if (device && c->handle->properties.kind == STRATA_HOST)
        return error_set(err, STRATA_EINVAL,
                         "'%s': device memory for an engine of the host; copy it to the "
                         "host first",
                         name);
    return !m->data && m->bytes > 0
               ? error_set(err, STRATA_EINVAL, "'%s': data is NULL", name)
               : STRATA_OK;
}

static int check_input(const strata_context *c, const strata_part *p, size_t index,
                       const strata_memory **next, strata_error *err)
{
    const char *name = c->execution->bindings[index].name;
    const uint64_t needed = parts_bytes(c, index, p->rows);
    uint64_t found = 0;
    int status = STRATA_OK;
    for (uint32_t n = p->pieces ? p->pieces[index] : 1; n > 0 && !status; n--, ++*next) {
        status = check_memory(c, *next, name, err);
        if (status == STRATA_OK && __builtin_add_overflow(found, (*next)->bytes, &found))
            found = UINT64_MAX;
    }
    if (status == STRATA_OK && found != needed)
        status = error_set(err, STRATA_EINVAL,
                           "input '%s': %" PRIu64 " bytes; %" PRId64 " rows are %" PRIu64,
                           name, found, p->rows, needed);
    return status;
}

static int check_output(const strata_context *c, const strata_part *p, size_t index,
                        strata_error *err)
{
    const char *name = c->execution->bindings[index].name;
    const uint64_t needed = parts_bytes(c, index, p->rows);
    const strata_memory *m =
        p->outputs ? &p->outputs[index - c->execution->n_inputs] : NULL;
    if (!m || !m->data)
        return STRATA_OK;
    if (m->bytes < needed)
        return error_set(err, STRATA_EINVAL,
                         "output '%s': room for %" PRIu64 " bytes; %" PRId64
                         " rows are %" PRIu64,
                         name, m->bytes, p->rows, needed);
    return check_memory(c, m, name, err);
}

static int check_part(const strata_context *c, const strata_part *p, strata_error *err)
{
    const struct execution *x = c->execution;
    const strata_memory *next = p->inputs;
    int status = STRATA_OK;
    if (!next && x->n_inputs > 0)
        return error_set(err, STRATA_EINVAL, "a part needs inputs");
    for (size_t i = 0; i < x->n_inputs && status == STRATA_OK; i++)
        status = check_input(c, p, i, &next, err);
    for (size_t i = x->n_inputs; i < x->n_bindings && status == STRATA_OK; i++)
        status = check_output(c, p, i, err);
    return status;
}

/* More than one: their rows are apart. */
static int check_together(const strata_context *c, strata_error *err)
{
    const struct execution *x = c->execution;
    if (x->n_states)
        return error_set(err, STRATA_EINVAL,
                         "%s: parts cannot share a batch: the rows of its states are "
                         "sequences, and a part does not say which is its own",
                         c->engine->network->path);
    for (size_t i = 0; i < x->n_inputs; i++)
        if (!c->engine->row_bytes[i])
            return error_set(err, STRATA_EINVAL,
                             "%s: parts cannot share input '%s': it has no rows of the "
                             "batch",
                             c->engine->network->path, x->bindings[i].name);
    return STRATA_OK;
}

static int check_all(const strata_context *c, strata_part *parts, size_t n, int64_t *rows,
                     strata_error *err)
{
    int status = struct_check(parts->struct_size, SIZE_THROUGH(strata_part, status),
                              "strata_part", err);
    *rows = 0;
    for (size_t i = 0; i < n && status == STRATA_OK; i++) {
        const strata_part *p = part_at(parts, i);
        if (p->struct_size != parts->struct_size)
            status = error_set(err, STRATA_EINVAL,
                               "part %zu: strata_part.struct_size is %zu, that of the "
                               "first %zu",
                               i, p->struct_size, parts->struct_size);
        else if (p->rows < 1 || p->rows > c->engine->batch - *rows)
            status = error_set(err, STRATA_EINVAL,
                               "part %zu: %" PRId64 " rows behind %" PRId64
                               "; a part has 1 or more, and the engine takes %" PRId64,
                               i, p->rows, *rows, c->engine->batch);
        else
            *rows += p->rows;
    }
    return status != STRATA_OK || n == 1 ? status : check_together(c, err);
}

/* ---- in place -------------------------------------------------------------------- */

/* The memory of a lone part that the run can use where it is; NULL: it cannot. */
static void *in_place(const struct parts_run *run, const strata_context *c, size_t index)
{
    uint32_t n;
    const strata_memory *m = parts_pieces(c, run->parts[0], index, &n);
    const bool usable = parts_on_host(c) && run->n == 1 &&
                        run->rows == c->active->engine->batch && n == 1 &&
                        (uintptr_t)m->data % TENSOR_ALIGNMENT == 0 &&
                        parts_bytes(c, index, run->rows) > PARTS_SMALL;
    return usable ? m->data : NULL;
}

static void set_bound(strata_context *c, size_t index, void *data)
{
    if (c->bound[index] == data)
        return;
    c->bound[index] = data;
    c->stale = true;
    for (size_t i = 0; i < c->n_smaller; i++)
        c->smaller[i]->stale = true;
}

/* For this run, instead of what the application bound: that is not to be written. */
static void bind_parts(struct parts_room *room, const struct parts_run *run)
{
    strata_context *c = room->context;
    bool any = false;
    for (size_t i = 0; i < c->execution->n_bindings; i++) {
        void *data = in_place(run, c, i);
        any = any || data;
        room->before[i] = c->bound[i];
        set_bound(c, i, data);
    }
    c->calls.in_place += any;
}

static void unbind_parts(struct parts_room *room)
{
    strata_context *c = room->context;
    for (size_t i = 0; i < c->execution->n_bindings; i++)
        set_bound(c, i, room->before[i]);
}

/* ---- a run ----------------------------------------------------------------------- */

static int copy_bindings(struct parts_room *room, const struct parts_run *run,
                         size_t first, size_t end, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = first; i < end && status == STRATA_OK; i++)
        if (!in_place(run, room->context, i))
            status = parts_copy(room, run, i, err);
    return status;
}

/* Bytes of the run's parts that are in memory of the host. */
static uint64_t moved(const strata_context *c, const struct parts_run *run)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < run->n; i++)
        for (size_t k = 0; k < c->execution->n_bindings; k++) {
            uint32_t n;
            const strata_memory *m = parts_pieces(c, run->parts[i], k, &n);
            if (n > 0 && m->kind == STRATA_MEMORY_HOST)
                bytes += parts_bytes(c, k, run->parts[i]->rows);
        }
    return bytes;
}

int parts_begin(struct parts_room *room, struct parts_run *run, strata_error *err)
{
    strata_context *c = room->context;
    const struct execution *x = c->execution;
    int status = context_set_rows(c, run->rows, err);
    if (status == STRATA_OK)
        status = context_resolve(c, err);
    if (status != STRATA_OK)
        return status;
    bind_parts(room, run);
    staging_begin(&room->staging);
    status = copy_bindings(room, run, 0, x->n_inputs, err);
    if (status == STRATA_OK)
        status =
            parts_on_host(c) ? context_run(c, err) : context_start(c, moved(c, run), err);
    if (status == STRATA_OK)
        status = copy_bindings(room, run, x->n_inputs, x->n_bindings, err);
    unbind_parts(room);
    return status;
}

/* ---- running --------------------------------------------------------------------- */

static int run_list(struct parts_room *room, struct parts_run *run, strata_error *err)
{
    strata_context *c = room->context;
    run->rows = 0;
    for (size_t i = 0; i < run->n; i++)
        run->rows += run->parts[i]->rows;
    error_clear(err);
    const int began = parts_begin(room, run, err);
    const int ended = context_settle(c, began == STRATA_OK ? err : NULL);
    if (began == STRATA_OK && ended == STRATA_OK)
        parts_end(room, run);
    else
        parts_clear(room);
    return began != STRATA_OK ? began : ended;
}

/* The first failure's message is kept. */
static int run_each(struct parts_room *room, strata_part *parts, size_t n,
                    strata_error *err)
{
    int first = STRATA_OK;
    for (size_t i = 0; i < n; i++) {
        strata_part *p = part_at(parts, i);
        struct parts_run one;
        if (p->status != STRATA_OK) /* it was wrong */
            continue;
        parts_take_slot(room, &one);
        one.parts[one.n++] = p;
        p->status = run_list(room, &one, first == STRATA_OK ? err : NULL);
        first = first != STRATA_OK ? first : p->status;
    }
    return first;
}

/* Select the parts that are right; the others have their status then, of which the first
 * is given. */
static int select_parts(strata_context *c, strata_part *parts, size_t n,
                        struct parts_run *run, strata_error *err)
{
    int first = STRATA_OK;
    for (size_t i = 0; i < n; i++) {
        strata_part *p = part_at(parts, i);
        p->status = check_part(c, p, err);
        first = first != STRATA_OK ? first : p->status;
        if (p->status == STRATA_OK)
            run->parts[run->n++] = p;
    }
    return first;
}

static int make_room(strata_context *c, strata_error *err)
{
    if (c->parts)
        return STRATA_OK;
    struct parts_room *room = zalloc(1, sizeof *room, "parts of runs", err);
    if (!room)
        return STRATA_ENOMEM;
    int status = parts_open(room, c, c->engine->batch, err);
    if (status == STRATA_OK) {
        c->parts = room;
        return STRATA_OK;
    }
    parts_close(room);
    free(room);
    return status;
}

static int run_parts(strata_context *c, strata_part *parts, size_t n, int64_t rows,
                     strata_error *err)
{
    struct parts_run run;
    int status = make_room(c, err);
    if (status == STRATA_OK) /* what the application enqueued may use the bindings */
        status = context_settle(c, err);
    if (status == STRATA_OK)
        status = context_set_rows(c, rows, err);
    if (status == STRATA_OK)
        status = context_resolve(c, err);
    if (status != STRATA_OK)
        return status;
    parts_take_slot(c->parts, &run);
    const int wrong = select_parts(c, parts, n, &run, err);
    strata_error *const why = wrong == STRATA_OK ? err : NULL;
    if (run.n > 0)
        status = run_list(c->parts, &run, why);
    if (status != STRATA_OK && run.n == 1)
        run.parts[0]->status = status;
    else if (status != STRATA_OK)
        status = run_each(c->parts, parts, n, why);
    return wrong != STRATA_OK ? wrong : status;
}

int strata_context_run_parts(strata_context *c, strata_part *parts, size_t n,
                             strata_error *err)
{
    int64_t rows;
    int status = ARGUMENTS(err, {"context", c}, {"parts", parts});
    if (status != STRATA_OK || n == 0)
        return status;
    if ((status = context_enter(c, __func__, err)) != STRATA_OK)
        return status;
    status = check_all(c, parts, n, &rows, err);
    if (status == STRATA_OK) {
        const int64_t before = c->batch;
        status = run_parts(c, parts, n, rows, err);
        context_set_rows(c, before, NULL);
    }
    return context_leave(c, status);
}

/* ---- statistics ------------------------------------------------------------------ */

int strata_context_get_stats(const strata_context *context, strata_context_stats *out,
                             strata_error *err)
{
    strata_context *c = (strata_context *)context;
    int status = ARGUMENTS(err, {"context", c}, {"out", out});
    if (status == STRATA_OK)
        status =
            struct_check(out->struct_size, SIZE_THROUGH(strata_context_stats, in_place),
                         "strata_context_stats", err);
    if (status != STRATA_OK || (status = context_enter(c, __func__, err)) != STRATA_OK)
        return status;
    const strata_context_stats found = {.struct_size = sizeof found,
                                        .runs = c->calls.runs,
                                        .copied_in = c->calls.copied_in,
                                        .copied_out = c->calls.copied_out,
                                        .cross_device = c->calls.cross_device,
                                        .in_place = c->calls.in_place};
    struct_give(out, &found, sizeof found);
    return context_leave(c, STRATA_OK);
}
