/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the states of a context are in order after a run: those that count positions
 * stay within their room, and no run failed that had changed some.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "engine/context/context.h"

int context_states_kept(const strata_context *c, strata_error *err)
{
    return c->whole->lost
               ? error_set(err, STRATA_EINVAL,
                           "the states are as a run left them that failed; reset or "
                           "restore all rows")
               : STRATA_OK;
}

static int64_t element(const char *values, int dtype, size_t i)
{
    int64_t wide;
    int32_t narrow;
    if (dtype == STRATA_INT64) {
        memcpy(&wide, values + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, values + i * sizeof narrow, sizeof narrow);
    return narrow;
}

static int check_room(const struct execution_binding *b, const strata_desc *d,
                      const char *values, int64_t room, strata_error *err)
{
    const int64_t row_elements = strata_desc_count(d) / d->dims[0];
    for (int64_t i = 0; i < strata_desc_count(d); i++) {
        const int64_t value = element(values, d->dtype, (size_t)i);
        if (value < 0 || value > room)
            return error_set(err, STRATA_EOVERFLOW,
                             "state '%s', row %" PRId64 ", is %" PRId64
                             ", outside of its room, 0 to %" PRId64
                             "; reset the row, or give the state and its caches more",
                             b->name, i / row_elements, value, room);
    }
    return STRATA_OK;
}

/* Where the host has a state's values after a run; made at first need. */
static void *count_of(strata_context *whole, size_t i, size_t bytes, strata_error *err)
{
    if (!whole->counts)
        whole->counts = zalloc(whole->execution->n_states, sizeof *whole->counts,
                               "counts of states", err);
    if (whole->counts && !whole->counts[i])
        whole->counts[i] = strata_host_alloc(whole->handle, bytes, err);
    return whole->counts ? whole->counts[i] : NULL;
}

static const struct execution_value *value_of(const strata_context *whole, size_t i)
{
    const struct execution *x = whole->execution;
    return &x->values[x->bindings[x->states[i].now].value];
}

static bool is_counted(const strata_context *whole, size_t i)
{
    return whole->execution->states[i].state->room && value_of(whole, i)->bytes > 0;
}

void context_note_counts(strata_context *whole)
{
    for (size_t i = 0; i < whole->execution->n_states && !whole->counted; i++)
        whole->counted = is_counted(whole, i);
}

int context_copy_counts(strata_context *c, strata_error *err)
{
    strata_context *whole = c->whole;
    const struct execution *x = whole->execution;
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_states && whole->counted && status == STRATA_OK; i++) {
        if (!is_counted(whole, i))
            continue;
        const size_t bytes = (size_t)value_of(whole, i)->bytes;
        void *count = count_of(whole, i, bytes, err);
        const void *data = context_binding_data(whole, (size_t)x->states[i].now, err);
        status = count && data ? c->handle->device->ops->copy(
                                     c->stream, count, data, bytes, COPY_FROM_DEVICE, err)
                               : err->status;
    }
    return status;
}

int context_check_counts(strata_context *whole, strata_error *err)
{
    const struct execution *x = whole->execution;
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_states && whole->counted && status == STRATA_OK; i++)
        if (is_counted(whole, i))
            status = check_room(&x->bindings[x->states[i].now], &value_of(whole, i)->desc,
                                whole->counts[i], x->states[i].state->room, err);
    whole->counted = false;
    return status;
}

void context_free_counts(strata_context *whole)
{
    for (size_t i = 0; whole->counts && i < whole->execution->n_states; i++)
        strata_host_free(whole->handle, whole->counts[i],
                         whole->counts[i] ? (size_t)value_of(whole, i)->bytes : 0);
    free(whole->counts);
}
