/* SPDX-License-Identifier: Apache-2.0
 *
 * One execution of an engine at a time: an arena, impls' private memory, and argument
 * structs prepared once, so that enqueueing a node copies one pointer.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "core/threads.h"

struct context_node {
    strata_run run;
    strata_tensor *in, *out, residual;
    strata_epilogue epilogue;
    void *ctx;
    bool opened;
};

struct strata_context {
    const strata_engine *engine;
    strata_handle *handle;
    strata_stream *stream;
    void *arena;
    void **own;        /* memory of bindings that the caller has not bound */
    void **bound;      /* by the caller, or NULL */
    char **value_data; /* where each value is */
    struct context_node *nodes;
    strata_tensor *tensors; /* storage of the nodes' in and out */
    bool stale;             /* bindings changed since pointers were set */
    bool queued;            /* runs may be under way that use the pointers */
    bool failed;            /* on the stream: skip the rest of this run */
    atomic_flag busy;       /* a call is inside */
};

/* ---- entering ------------------------------------------------------------------ */

static int enter(strata_context *c, strata_error *err)
{
    error_clear(err);
    if (!atomic_flag_test_and_set_explicit(&c->busy, memory_order_acquire))
        return STRATA_OK;
    return error_set(err, STRATA_EBUSY,
                     "context is in use by another thread; make one context a thread");
}

static int leave(strata_context *c, int status)
{
    atomic_flag_clear_explicit(&c->busy, memory_order_release);
    return status;
}

/* ---- creation ------------------------------------------------------------------ */

static int allocate(strata_context *c, strata_error *err)
{
    const strata_engine *e = c->engine;
    size_t tensors = 0;
    for (size_t i = 0; i < e->n_nodes; i++)
        tensors += (size_t)(e->nodes[i].n_in + e->nodes[i].n_out);
    c->own = zalloc(e->n_bindings, sizeof *c->own, "a context", err);
    c->bound = zalloc(e->n_bindings, sizeof *c->bound, "a context", err);
    c->value_data = zalloc(e->n_values, sizeof *c->value_data, "a context", err);
    c->nodes = zalloc(e->n_nodes, sizeof *c->nodes, "a context", err);
    c->tensors = zalloc(tensors, sizeof *c->tensors, "a context", err);
    if (!c->own || !c->bound || !c->value_data || !c->nodes || !c->tensors)
        return STRATA_ENOMEM;
    c->arena = allocator_get(&c->handle->allocator, (size_t)e->arena_bytes,
                             "the context's arena", err);
    return c->arena ? STRATA_OK : STRATA_ENOMEM;
}

static int open_node(strata_context *c, size_t i, strata_tensor **next, strata_error *err)
{
    const strata_engine *e = c->engine;
    const struct engine_node *n = &e->nodes[i];
    const strata_impl *impl = &n->impl->impl;
    struct context_node *node = &c->nodes[i];
    node->in = *next;
    node->out = *next + n->n_in;
    *next += n->n_in + n->n_out;
    engine_node_tensors(e, n, node->in, node->out);
    node->ctx = zalloc(1, impl->ctx_size, "an impl's context", err);
    if (!node->ctx)
        return STRATA_ENOMEM;
    node->run = (strata_run){
        .struct_size = sizeof(strata_run),
        .n_in = n->n_in,
        .n_out = n->n_out,
        .n_weights = (int32_t)n->layer->type->n_weights,
        .params = n->n_fused && n->composed ? n->composed : n->layer->params,
        .state = n->state,
        .ctx = node->ctx,
        .in = node->in,
        .out = node->out,
        .weight = n->weights,
        .epilogue = &node->epilogue,
        .workspace = n->workspace ? (char *)c->arena + n->workspace_offset : NULL,
        .workspace_size = n->workspace,
        .host = registry_host(),
    };
    node->epilogue = n->epilogue;
    engine_residual(e, n, &node->residual);
    if (n->residual_value >= 0)
        node->epilogue.residual = &node->residual;
    struct engine_view v = {.in = node->in,
                            .out = node->out,
                            .weight = n->weights,
                            .fused = n->n_fused,
                            .residual = node->residual};
    engine_fill_view(&v, e, n, n->row, err);
    v.node.stream = c->handle->device->ops->stream_native(c->stream);
    int status =
        impl->ctx_open ? impl->ctx_open(&v.node, n->state, node->ctx) : STRATA_OK;
    node->opened = status == STRATA_OK;
    if (status != STRATA_OK) {
        error_set(err, status, "%s", strata_status_text(status));
        error_prefix(err, "layer '%s', impl %s, ctx_open", n->name, impl->name);
    }
    return status;
}

int strata_context_create(strata_context **out, const strata_engine *engine,
                          strata_handle *handle, strata_error *err)
{
    int status = STRATA_ENOMEM;
    error_clear(err);
    if (!out || !engine || !handle)
        return error_set(err, STRATA_EINVAL, "a context needs out, engine and handle");
    *out = NULL;
    if (handle->device->ops != engine->handle->device->ops)
        return error_set(err, STRATA_EINVAL,
                         "the engine is for device %s, the handle for %s; create the "
                         "context on a handle of the engine's device",
                         engine->handle->properties.name, handle->properties.name);
    strata_context *c = zalloc(1, sizeof *c, "a context", err);
    if (!c)
        goto done;
    c->engine = engine;
    c->handle = handle;
    c->stream = handle->stream;
    c->stale = true;
    atomic_flag_clear(&c->busy);
    if ((status = allocate(c, err)) != STRATA_OK)
        goto done;
    strata_tensor *next = c->tensors;
    for (size_t i = 0; i < engine->n_nodes; i++)
        if ((status = open_node(c, i, &next, err)) != STRATA_OK)
            goto done;
    *out = c;
    c = NULL;
done:
    strata_context_destroy(c);
    return status;
}

void strata_context_destroy(strata_context *c)
{
    if (!c)
        return;
    const strata_engine *e = c->engine;
    strata_stream_synchronize(c->stream, NULL);
    for (size_t i = 0; c->nodes && i < e->n_nodes; i++) {
        if (c->nodes[i].opened && e->nodes[i].impl->impl.ctx_close)
            e->nodes[i].impl->impl.ctx_close(c->nodes[i].ctx);
        free(c->nodes[i].ctx);
    }
    for (size_t i = 0; c->own && i < e->n_bindings; i++)
        allocator_put(&c->handle->allocator, c->own[i],
                      (size_t)e->values[e->bindings[i].value].bytes);
    allocator_put(&c->handle->allocator, c->arena, (size_t)e->arena_bytes);
    free(c->own);
    free(c->bound);
    free(c->value_data);
    free(c->nodes);
    free(c->tensors);
    free(c);
}

/* ---- bindings -------------------------------------------------------------------- */

int strata_context_bind(strata_context *c, int index, void *data, strata_error *err)
{
    int status = enter(c, err);
    if (status != STRATA_OK)
        return status;
    if (index < 0 || index >= (int)c->engine->n_bindings)
        return leave(c, error_set(err, STRATA_EINVAL, "binding %d: there are %zu", index,
                                  c->engine->n_bindings));
    if ((uintptr_t)data % TENSOR_ALIGNMENT != 0)
        return leave(c, error_set(err, STRATA_EINVAL,
                                  "binding '%s': memory must be aligned to %d bytes",
                                  c->engine->bindings[index].name, TENSOR_ALIGNMENT));
    c->bound[index] = data;
    c->stale = true;
    return leave(c, STRATA_OK);
}

/* Memory of a binding: the caller's, or some of our own, made at first need. */
static void *binding_data(strata_context *c, size_t index, strata_error *err)
{
    const struct engine_binding *b = &c->engine->bindings[index];
    const struct device_ops *ops = c->handle->device->ops;
    size_t bytes = (size_t)c->engine->values[b->value].bytes;
    if (c->bound[index])
        return c->bound[index];
    if (c->own[index])
        return c->own[index];
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

void *strata_context_data(const strata_context *c, int index)
{
    if (index < 0 || index >= (int)c->engine->n_bindings)
        return NULL;
    return binding_data((strata_context *)c, (size_t)index, NULL);
}

/* One way or the other, through the stream, complete on return. */
static int copy_binding(strata_context *c, int index, void *to_host,
                        const void *from_host, strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    if (index < 0 || index >= (int)c->engine->n_bindings)
        return error_set(err, STRATA_EINVAL, "binding %d: there are %zu", index,
                         c->engine->n_bindings);
    const size_t bytes =
        (size_t)c->engine->values[c->engine->bindings[index].value].bytes;
    void *data = binding_data(c, (size_t)index, err);
    if (!data)
        return STRATA_ENOMEM;
    int status = from_host
                     ? ops->copy(c->stream, data, from_host, bytes, COPY_TO_DEVICE, err)
                     : ops->copy(c->stream, to_host, data, bytes, COPY_FROM_DEVICE, err);
    return status != STRATA_OK ? status : ops->stream_synchronize(c->stream, err);
}

int strata_copy_in(strata_context *c, int index, const void *data, strata_error *err)
{
    int status = enter(c, err);
    return status != STRATA_OK ? status
                               : leave(c, copy_binding(c, index, NULL, data, err));
}

int strata_copy_out(strata_context *c, int index, void *data, strata_error *err)
{
    int status = enter(c, err);
    return status != STRATA_OK ? status
                               : leave(c, copy_binding(c, index, data, NULL, err));
}

static int set_pointers(strata_context *c, strata_error *err)
{
    const strata_engine *e = c->engine;
    for (size_t i = 0; i < e->n_bindings; i++) {
        int owner = engine_owner(e, e->bindings[i].value);
        c->value_data[owner] = binding_data(c, i, err);
        if (!c->value_data[owner])
            return error_set(err, STRATA_ENOMEM, "%s", e->bindings[i].name);
    }
    for (size_t v = 0; v < e->n_values; v++) {
        const struct engine_value *value = &e->values[v];
        if (value->alias < 0 && value->binding < 0)
            c->value_data[v] = (char *)c->arena + value->offset;
    }
    for (size_t v = 0; v < e->n_values; v++) {
        int64_t begin = 0;
        for (int at = (int)v; e->values[at].alias >= 0; at = e->values[at].alias)
            begin += e->values[at].begin;
        c->value_data[v] = c->value_data[engine_owner(e, (int)v)] + begin;
    }
    for (size_t i = 0; i < e->n_nodes; i++) {
        const struct engine_node *n = &e->nodes[i];
        for (int k = 0; k < n->n_in; k++)
            c->nodes[i].in[k].data = c->value_data[n->in_values[k]];
        for (int k = 0; k < n->n_out; k++)
            c->nodes[i].out[k].data = c->value_data[n->out_values[k]];
        if (n->residual_value >= 0)
            c->nodes[i].residual.data = c->value_data[n->residual_value];
    }
    c->stale = false;
    return STRATA_OK;
}

/* ---- running ----------------------------------------------------------------------- */

struct step_payload {
    strata_context *context;
    const struct engine_step *step; /* NULL: the run begins */
};

static bool nothing_to_do(const struct context_node *node)
{
    for (int i = 0; i < node->run.n_out; i++)
        if (node->run.out[i].count > 0)
            return false;
    return true;
}

static int run_node(strata_context *c, int index, void *stream, strata_error *err)
{
    const struct engine_node *n = &c->engine->nodes[index];
    struct context_node *node = &c->nodes[index];
    if (nothing_to_do(node))
        return STRATA_OK;
    node->run.stream = stream;
    node->run.err = err;
    int status = n->impl->impl.run(&node->run);
    if (status != STRATA_OK) {
        error_set(err, status, "%s", strata_status_text(status));
        error_prefix(err, "%s:%d: layer '%s', impl %s, run", c->engine->network->path,
                     n->layer->place.line, n->name, n->impl->impl.name);
    }
    return status;
}

static int run_step(void *payload, void *stream, strata_error *err)
{
    const struct step_payload *p = payload;
    strata_context *c = p->context;
    if (!p->step) { /* the run begins, on the stream's own thread */
        threads_set(c->engine->threads);
        c->failed = false;
        return STRATA_OK;
    }
    if (c->failed)
        return STRATA_OK;
    int status = run_node(c, p->step->node, stream, err);
    c->failed = status != STRATA_OK;
    return status;
}

static int enqueue_step(strata_context *c, const struct engine_step *step,
                        strata_error *err)
{
    const struct device_ops *ops = c->handle->device->ops;
    const strata_engine *e = c->engine;
    struct step_payload payload = {c, step};
    if (step && step->kind == STEP_RELABEL)
        return STRATA_OK;
    if (step && step->kind == STEP_REFORMAT)
        return ops->reformat(c->stream, &e->values[step->to].desc,
                             c->value_data[step->to], &e->values[step->from].desc,
                             c->value_data[step->from], err);
    return ops->submit(c->stream, run_step, &payload, sizeof payload, err);
}

/* Wait for the runs under way; gives their failure. */
static int settle(strata_context *c, strata_error *err)
{
    c->queued = false;
    return strata_stream_synchronize(c->stream, err);
}

static int enqueue(strata_context *c, strata_event *input_consumed, strata_error *err)
{
    const strata_engine *e = c->engine;
    int status = STRATA_OK;
    if (c->stale && c->queued && (status = settle(c, err)) != STRATA_OK)
        return status;
    if (c->stale && (status = set_pointers(c, err)) != STRATA_OK)
        return status;
    c->queued = true;
    status = enqueue_step(c, NULL, err);
    for (size_t s = 0; s < e->n_steps && status == STRATA_OK; s++) {
        status = enqueue_step(c, &e->steps[s], err);
        if (status == STRATA_OK && input_consumed && (int)s == e->last_input_step)
            status = strata_event_record(input_consumed, c->stream, err);
    }
    if (status == STRATA_OK && input_consumed && e->last_input_step < 0)
        status = strata_event_record(input_consumed, c->stream, err);
    return status;
}

int strata_context_enqueue(strata_context *c, strata_event *input_consumed,
                           strata_error *err)
{
    int status = enter(c, err);
    return status != STRATA_OK ? status : leave(c, enqueue(c, input_consumed, err));
}

int strata_context_wait(strata_context *c, strata_error *err)
{
    int status = enter(c, err);
    return status != STRATA_OK ? status : leave(c, settle(c, err));
}

int strata_context_run(strata_context *c, strata_error *err)
{
    int status = enter(c, err);
    if (status != STRATA_OK)
        return status;
    status = enqueue(c, NULL, err);
    if (status == STRATA_OK)
        status = settle(c, err);
    return leave(c, status);
}
