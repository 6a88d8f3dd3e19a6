/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the states of a context are in order after a run: those that count positions
 * stay within their room, and no run failed that had changed some.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
        if (value > room)
            return error_set(err, STRATA_EOVERFLOW,
                             "state '%s', row %" PRId64 ", is %" PRId64
                             ": past its room of %" PRId64
                             "; reset the row, or give the state and its caches more",
                             b->name, i / row_elements, value, room);
    }
    return STRATA_OK;
}

static int check_state(strata_context *c, const struct execution_state *s,
                       strata_error *err)
{
    const struct execution_binding *b = &c->execution->bindings[s->now];
    const struct execution_value *v = &c->execution->values[b->value];
    const void *data = context_binding_data(c, (size_t)s->now, err);
    if (!data || v->bytes == 0)
        return data ? STRATA_OK : STRATA_ENOMEM;
    char *values = malloc((size_t)v->bytes);
    if (!values)
        return error_no_memory(err, (size_t)v->bytes, "a state's values");
    context_visit(c, 1);
    int status = c->handle->device->ops->copy(c->stream, values, data, (size_t)v->bytes,
                                              COPY_FROM_DEVICE, err);
    context_end_visit(c);
    if (status == STRATA_OK)
        status = c->handle->device->ops->stream_synchronize(c->stream, err);
    if (status == STRATA_OK)
        status = check_room(b, &v->desc, values, s->state->room, err);
    free(values);
    return status;
}

int context_check_states(strata_context *c, strata_error *err)
{
    const struct execution *x = c->execution;
    int status = STRATA_OK;
    for (size_t i = 0; i < x->n_states && status == STRATA_OK; i++)
        if (x->states[i].state->room)
            status = check_state(c, &x->states[i], err);
    return status;
}
