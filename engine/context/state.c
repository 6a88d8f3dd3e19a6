/* SPDX-License-Identifier: Apache-2.0
 *
 * States of a context: their first values, rows copied, saved and restored. Calls wait
 * for the runs under way, so that what they read and write is nobody else's.
 */
#include <strata/state.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arguments.h"
#include "engine/context/context.h"

/* A state's memory: rows one after another. */
struct kept {
    char *data;
    int64_t rows;
    size_t row_bytes;
    const struct execution_value *value;
    const struct network_state *state;
    const char *name;
};

static int find(strata_context *c, size_t index, struct kept *out, strata_error *err)
{
    const struct execution *x = c->execution;
    const struct execution_state *s = &x->states[index];
    const struct execution_binding *b = &x->bindings[s->now];
    const struct execution_value *v = &x->values[b->value];
    const int64_t rows = v->desc.dims[0];
    *out = (struct kept){
        .data = context_binding_data(c, (size_t)s->now, err),
        .rows = rows,
        .row_bytes = rows > 0 ? (size_t)(v->bytes / rows) : 0,
        .value = v,
        .state = s->state,
        .name = b->name,
    };
    return out->data ? STRATA_OK : STRATA_ENOMEM;
}

static int64_t row_count(const strata_context *c, size_t index)
{
    const struct execution *x = c->execution;
    return x->values[x->bindings[x->states[index].now].value].desc.dims[0];
}

static int check_row(const strata_context *c, int64_t row, strata_error *err)
{
    const struct execution *x = c->execution;
    for (size_t i = 0; i < x->n_states && row != STRATA_ALL_ROWS; i++)
        if (row < 0 || row >= row_count(c, i))
            return error_set(err, STRATA_EINVAL,
                             "row %" PRId64 ": state '%s' has rows 0 to %" PRId64, row,
                             x->bindings[x->states[i].now].name, row_count(c, i) - 1);
    return STRATA_OK;
}

/* Enter the context, with no run under way. To mend states a failure does not matter. */
static int enter(strata_context *c, const char *function, int64_t row, bool mend,
                 strata_error *err)
{
    int status = context_enter(c, function, err);
    if (status != STRATA_OK)
        return status;
    status = check_row(c, row, err);
    if (status == STRATA_OK && mend)
        context_settle(c, NULL);
    else if (status == STRATA_OK)
        status = context_settle(c, err);
    if (status == STRATA_OK && !mend)
        status = context_states_kept(c, err);
    return status == STRATA_OK ? STRATA_OK : context_leave(c, status);
}

static int copy(strata_context *c, void *to, const void *from, size_t bytes, int way,
                strata_error *err)
{
    return c->handle->device->ops->copy(c->stream, to, from, bytes, way, err);
}

static int leave(strata_context *c, int status, strata_error *err)
{
    if (status == STRATA_OK)
        status = c->handle->device->ops->stream_synchronize(c->stream, err);
    return context_leave(c, status);
}

/* ---- first values ------------------------------------------------------------------ */

/* A row in which every element is the state's first value; pad lanes are zero. */
static int make_row(const struct kept *k, char **out, strata_error *err)
{
    strata_desc row, flat;
    strata_desc from = k->value->desc;
    from.dims[0] = 1;
    int status =
        format_desc(&row, *format_at(k->value->format), from.dims, from.rank, err);
    if (status == STRATA_OK)
        status = format_desc(
            &flat,
            (struct format){.dtype = STRATA_FP64, .order = ORDER_LINEAR, .vector = 1},
            from.dims, from.rank, err);
    if (status != STRATA_OK)
        return status;
    const size_t n = (size_t)strata_desc_count(&flat);
    double *values = zalloc(n, sizeof *values, "a state's row", err);
    *out = zalloc(k->row_bytes, 1, "a state's row", err);
    if (!values || !*out) {
        free(values);
        return STRATA_ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        values[i] = k->state->value;
    status = strata_reformat(&row, *out, &flat, values, err);
    free(values);
    return status;
}

static int reset_rows(strata_context *c, const struct kept *k, int64_t first, int64_t n,
                      strata_error *err)
{
    char *row = NULL, *at = k->data + (size_t)first * k->row_bytes;
    if (k->state->value == 0)
        return c->handle->device->ops->fill(c->stream, at, 0, (size_t)n * k->row_bytes,
                                            err);
    int status = make_row(k, &row, err);
    for (int64_t i = 0; i < n && status == STRATA_OK; i++)
        status = copy(c, at + (size_t)i * k->row_bytes, row, k->row_bytes, COPY_TO_DEVICE,
                      err);
    if (status == STRATA_OK) /* before the row is gone */
        status = c->handle->device->ops->stream_synchronize(c->stream, err);
    free(row);
    return status;
}

int context_reset_states(strata_context *c, int64_t row, strata_error *err)
{
    const bool all = row == STRATA_ALL_ROWS;
    int status = STRATA_OK;
    for (size_t i = 0; i < c->execution->n_states && status == STRATA_OK; i++) {
        struct kept k;
        status = find(c, i, &k, err);
        if (status == STRATA_OK)
            status = reset_rows(c, &k, all ? 0 : row, all ? k.rows : 1, err);
    }
    if (all && status == STRATA_OK)
        c->lost = false;
    return status;
}

int strata_context_reset_state(strata_context *c, int64_t row, strata_error *err)
{
    int status = enter(c, __func__, row, true, err);
    return status != STRATA_OK ? status
                               : leave(c, context_reset_states(c, row, err), err);
}

/* ---- rows copied ------------------------------------------------------------------- */

static int copy_rows(strata_context *c, int64_t from, int64_t to, strata_error *err)
{
    int status = STRATA_OK;
    for (size_t i = 0; i < c->execution->n_states && status == STRATA_OK; i++) {
        struct kept k;
        status = find(c, i, &k, err);
        if (status == STRATA_OK && from != to)
            status = copy(c, k.data + (size_t)to * k.row_bytes,
                          k.data + (size_t)from * k.row_bytes, k.row_bytes,
                          COPY_ON_DEVICE, err);
    }
    return status;
}

int strata_context_copy_state(strata_context *c, int64_t from, int64_t to,
                              strata_error *err)
{
    int status = enter(c, __func__, from, false, err);
    if (status != STRATA_OK)
        return status;
    status =
        from == STRATA_ALL_ROWS || to == STRATA_ALL_ROWS
            ? error_set(err, STRATA_EINVAL, "%s: one row is copied at a time", __func__)
            : check_row(c, to, err);
    return leave(c, status == STRATA_OK ? copy_rows(c, from, to, err) : status, err);
}

/* ---- saved and restored ------------------------------------------------------------ */

/* Before the bytes of each state. */
struct saved {
    char magic[8];
    uint64_t key; /* of name, format and the dims of a row */
    uint64_t rows, bytes;
};
static const char magic[8] = {'s', 't', 'a', 't', 'e', ' ', '1', '\n'};

static uint64_t hash(uint64_t h, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    return h;
}

static struct saved describe(const struct kept *k, int64_t row)
{
    const char *format =
        format_mask_name(UINT64_C(1) << k->value->format, k->value->desc.rank);
    struct saved s = {.key = UINT64_C(0xcbf29ce484222325)};
    memcpy(s.magic, magic, sizeof magic);
    s.rows = (uint64_t)(row == STRATA_ALL_ROWS ? k->rows : 1);
    s.bytes = s.rows * k->row_bytes;
    s.key = hash(s.key, k->name, strlen(k->name) + 1);
    s.key = hash(s.key, format, strlen(format) + 1);
    s.key = hash(s.key, k->value->desc.dims + 1,
                 (size_t)(k->value->desc.rank - 1) * sizeof *k->value->desc.dims);
    return s;
}

size_t context_states_bytes(strata_context *c, int64_t row)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->execution->n_states; i++) {
        struct kept k;
        if (find(c, i, &k, NULL) != STRATA_OK)
            return 0;
        bytes += sizeof(struct saved) + (size_t)describe(&k, row).bytes;
    }
    return bytes;
}

size_t strata_context_state_bytes(const strata_context *context, int64_t row)
{
    strata_context *c = (strata_context *)context; /* the first call makes the memory */
    if (context_enter(c, __func__, NULL) != STRATA_OK)
        return 0;
    const size_t bytes =
        check_row(c, row, NULL) == STRATA_OK ? context_states_bytes(c, row) : 0;
    context_leave(c, STRATA_OK);
    return bytes;
}

static int check_size(strata_context *c, const char *function, int64_t row,
                      const void *data, size_t size, strata_error *err)
{
    const size_t needed = context_states_bytes(c, row);
    if (!data)
        return error_set(err, STRATA_EINVAL,
                         "%s: data is NULL; the states have %zu bytes", function, needed);
    return size >= needed ? STRATA_OK
                          : error_set(err, STRATA_EINVAL,
                                      "%zu bytes; these states need %zu", size, needed);
}

int context_save_states(strata_context *c, int64_t row, void *data, strata_error *err)
{
    int status = STRATA_OK;
    char *at = data;
    for (size_t i = 0; i < c->execution->n_states && status == STRATA_OK; i++) {
        struct kept k;
        if ((status = find(c, i, &k, err)) != STRATA_OK)
            break;
        const struct saved s = describe(&k, row);
        const size_t first = row == STRATA_ALL_ROWS ? 0 : (size_t)row;
        memcpy(at, &s, sizeof s);
        status = copy(c, at + sizeof s, k.data + first * k.row_bytes, (size_t)s.bytes,
                      COPY_FROM_DEVICE, err);
        at += sizeof s + s.bytes;
    }
    return status;
}

/* Whether the bytes are those of these states, before anything is changed. */
static int check_saved(strata_context *c, int64_t row, const char *at, strata_error *err)
{
    for (size_t i = 0; i < c->execution->n_states; i++) {
        struct kept k;
        struct saved found;
        int status = find(c, i, &k, err);
        if (status != STRATA_OK)
            return status;
        const struct saved needed = describe(&k, row);
        memcpy(&found, at, sizeof found);
        if (memcmp(found.magic, magic, sizeof magic) != 0)
            return error_set(err, STRATA_EPARSE,
                             "state '%s': no saved states, or damaged", k.name);
        if (found.key != needed.key)
            return error_set(err, STRATA_EPARSE,
                             "state '%s': the saved states are of another network: name, "
                             "format or shape differ",
                             k.name);
        if (found.rows != needed.rows || found.bytes != needed.bytes)
            return error_set(err, STRATA_EPARSE,
                             "state '%s': %" PRIu64 " rows were saved; %" PRIu64
                             " are to be restored",
                             k.name, found.rows, needed.rows);
        at += sizeof found + found.bytes;
    }
    return STRATA_OK;
}

int context_restore_states(strata_context *c, int64_t row, const void *data,
                           strata_error *err)
{
    const char *at = data;
    int status = check_saved(c, row, at, err);
    for (size_t i = 0; i < c->execution->n_states && status == STRATA_OK; i++) {
        struct kept k;
        if ((status = find(c, i, &k, err)) != STRATA_OK)
            break;
        const size_t first = row == STRATA_ALL_ROWS ? 0 : (size_t)row;
        const size_t bytes = (size_t)describe(&k, row).bytes;
        at += sizeof(struct saved);
        status = copy(c, k.data + first * k.row_bytes, at, bytes, COPY_TO_DEVICE, err);
        at += bytes;
    }
    if (status == STRATA_OK && row == STRATA_ALL_ROWS)
        c->lost = false;
    return status;
}

int strata_context_save_state(strata_context *c, int64_t row, void *data, size_t size,
                              strata_error *err)
{
    int status = enter(c, __func__, row, false, err);
    if (status != STRATA_OK)
        return status;
    status = check_size(c, __func__, row, data, size, err);
    return leave(c, status == STRATA_OK ? context_save_states(c, row, data, err) : status,
                 err);
}

int strata_context_restore_state(strata_context *c, int64_t row, const void *data,
                                 size_t size, strata_error *err)
{
    int status = enter(c, __func__, row, true, err);
    if (status != STRATA_OK)
        return status;
    status = check_size(c, __func__, row, data, size, err);
    return leave(
        c, status == STRATA_OK ? context_restore_states(c, row, data, err) : status, err);
}
