/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of a context's inputs and outputs, and the addresses that follow from it.
 */
#include "engine/context/context.h"

#include <string.h>

int strata_context_bind(strata_context *c, int index, void *data, strata_error *err)
{
    int status = context_enter(c, __func__, err);
    if (status != STRATA_OK)
        return status;
    if (index < 0 || index >= (int)c->execution->n_bindings)
        return context_leave(c, error_set(err, STRATA_EINVAL, "binding %d: there are %zu",
                                          index, c->execution->n_bindings));
    if ((uintptr_t)data % TENSOR_ALIGNMENT != 0)
        return context_leave(
            c, error_set(err, STRATA_EINVAL,
                         "binding '%s': memory must be aligned to %d bytes",
                         c->execution->bindings[index].name, TENSOR_ALIGNMENT));
    if (c->bound[index] == data) /* graphs stay good */
        return context_leave(c, STRATA_OK);
    c->bound[index] = data;
    c->stale = true;
    for (size_t i = 0; i < c->n_smaller; i++)
        c->smaller[i]->stale = true;
    return context_leave(c, STRATA_OK);
}

/* The next value of a state that is written in place is where the present one is. */
static size_t memory_of(const strata_context *c, size_t index)
{
    const struct execution *x = c->execution;
    const size_t first = x->n_bindings + x->n_states;
    return index >= first && x->states[index - first].shared
               ? (size_t)x->states[index - first].now
               : index;
}

void *context_binding_data(strata_context *c, size_t index, strata_error *err)
{
    index = memory_of(c, index);
    const struct execution *x = c->whole->execution; /* room for the largest batch */
    const struct execution_binding *b = &x->bindings[index];
    const struct device_ops *ops = c->handle->device->ops;
    size_t bytes = (size_t)x->values[b->value].bytes;
    if (c->bound[index])
        return c->bound[index];
    if (c->own[index])
        return c->own[index];
    if (c->check)
        return context_check_value(c->whole, b->value);
    void *own = allocator_get(&c->handle->allocator, bytes, b->name, err);
    if (!own)
        return NULL;
    if (c->handle->properties.kind == STRATA_HOST) {
        memset(own, 0, bytes);
    } else if (ops->fill(c->stream, own, 0, bytes, err) != STRATA_OK ||
               ops->stream_synchronize(c->stream, err) != STRATA_OK) {
        allocator_put(&c->handle->allocator, own, bytes);
        return NULL;
    }
    return c->own[index] = own;
}

void *strata_context_data(const strata_context *context, int index)
{
    strata_context *c = (strata_context *)context; /* the first call makes the memory */
    void *data = NULL;
    if (context_enter(c, __func__, NULL) != STRATA_OK)
        return NULL;
    if (index >= 0 && index < (int)c->execution->n_bindings)
        data = context_binding_data(c, (size_t)index, NULL);
    context_leave(c, STRATA_OK);
    return data;
}

/* Of one that is not bound. What is checked has guards around constants, too. */
static char *memory_of_value(const strata_context *c, int v)
{
    const struct execution_value *value = &c->execution->values[v];
    if (c->check)
        return context_check_value(c, v);
    return value->constant >= 0 ? c->engine->parts[value->constant]->constant
                                : (char *)c->arena + value->offset;
}

int context_set_pointers(strata_context *c, strata_error *err)
{
    const struct execution *x = c->execution;
    for (size_t i = 0; i < execution_bound(x); i++) {
        int owner = x->values[x->bindings[i].value].owner;
        c->value_data[owner] = context_binding_data(c, i, err);
        if (!c->value_data[owner])
            return error_set(err, STRATA_ENOMEM, "%s", x->bindings[i].name);
    }
    for (size_t v = 0; v < x->n_values; v++) {
        const struct execution_value *value = &x->values[v];
        if (value->alias < 0 && value->binding < 0)
            c->value_data[v] = memory_of_value(c, (int)v);
    }
    for (size_t v = 0; v < x->n_values; v++)
        c->value_data[v] = c->value_data[x->values[v].owner] + x->values[v].at;
    for (size_t i = 0; i < x->n_nodes; i++) {
        const struct execution_node *n = &x->nodes[i];
        for (int k = 0; k < n->n_in; k++)
            c->nodes[i].in[execution_port(n, k)].data = c->value_data[n->in_values[k]];
        for (int k = 0; k < n->n_out; k++)
            c->nodes[i].out[k].data = c->value_data[n->out_values[k]];
        if (n->residual_value >= 0)
            c->nodes[i].residual.data = c->value_data[n->residual_value];
    }
    context_drop_graphs(c); /* they hold the old ones */
    c->stale = c->warm = false;
    return STRATA_OK;
}
