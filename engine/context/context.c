/* SPDX-License-Identifier: Apache-2.0
 *
 * One execution of an engine at a time: an arena, impls' private memory, and argument
 * structs prepared once.
 */
#include "engine/context/context.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <strata/state.h>

#include "core/arguments.h"
#include "engine/staging.h"
#include "planner/view.h"

/* ---- creation ------------------------------------------------------------------ */

static int allocate(strata_context *c, strata_error *err)
{
    const struct execution *x = c->execution;
    size_t tensors = 0;
    for (size_t i = 0; i < x->n_nodes; i++)
        tensors += (size_t)(x->nodes[i].n_ports + x->nodes[i].n_out);
    const bool part = c->whole != c;
    c->own = part ? c->whole->own
                  : zalloc(execution_bound(x), sizeof *c->own, "a context", err);
    c->bound = part ? c->whole->bound
                    : zalloc(execution_bound(x), sizeof *c->bound, "a context", err);
    c->value_data = zalloc(x->n_values, sizeof *c->value_data, "a context", err);
    c->nodes = zalloc(x->n_nodes, sizeof *c->nodes, "a context", err);
    c->tensors = zalloc(tensors, sizeof *c->tensors, "a context", err);
    if (!c->own || !c->bound || !c->value_data || !c->nodes || !c->tensors)
        return STRATA_ENOMEM;
    c->arena = part && c->arena_bytes <= c->whole->arena_bytes
                   ? c->whole->arena
                   : allocator_get(&c->handle->allocator, (size_t)c->arena_bytes,
                                   "the context's arena", err);
    return c->arena ? STRATA_OK : STRATA_ENOMEM;
}

static int open_node(strata_context *c, size_t i, strata_tensor **next, strata_error *err)
{
    const struct execution *x = c->execution;
    const struct execution_node *n = &x->nodes[i];
    const struct engine_part *part = c->engine->parts[i];
    const strata_impl *impl = &n->impl->impl;
    struct context_node *node = &c->nodes[i];
    node->in = *next;
    node->out = *next + n->n_ports;
    *next += n->n_ports + n->n_out;
    execution_tensors(x, n, node->in, node->out);
    node->ctx = zalloc(1, impl->ctx_size, "an impl's context", err);
    if (!node->ctx)
        return STRATA_ENOMEM;
    node->run = (strata_run){
        .struct_size = sizeof(strata_run),
        .n_in = n->n_ports,
        .n_out = n->n_out,
        .n_weights = (int32_t)n->layer->type->n_weights,
        .params = n->params,
        .state = part->state,
        .ctx = node->ctx,
        .in = node->in,
        .out = node->out,
        .weight = part->weights,
        .epilogue = &node->epilogue,
        .workspace = n->workspace ? (char *)c->arena + n->workspace_offset : NULL,
        .workspace_size = n->workspace,
        .host = registry_host(),
    };
    node->epilogue = n->epilogue;
    execution_residual(x, n, &node->residual);
    if (n->residual_value >= 0)
        node->epilogue.residual = &node->residual;
    struct node_view v = {.in = node->in,
                          .out = node->out,
                          .weight = part->weights,
                          .residual = node->residual};
    execution_view(&v, x, n, err);
    v.node.stream = c->handle->device->ops->stream_native(c->stream);
    int status =
        impl->ctx_open ? impl->ctx_open(&v.node, part->state, node->ctx) : STRATA_OK;
    node->opened = status == STRATA_OK;
    node->uncaptured = impl->flags & STRATA_NO_CAPTURE;
    if (status != STRATA_OK) {
        error_set(err, status, "it returned %d (%s) without a message", status,
                  strata_status_text(status));
        error_prefix(err, "layer '%s', impl %s, ctx_open", n->name, impl->name);
    }
    return status;
}

static int open_context(strata_context **out, const strata_engine *engine,
                        strata_handle *handle, strata_context *whole, strata_error *err)
{
    int status = STRATA_ENOMEM;
    strata_context *c = zalloc(1, sizeof *c, "a context", err);
    if (!c)
        goto done;
    c->engine = engine;
    c->execution = engine->execution;
    c->handle = handle;
    c->stream = whole ? whole->stream : handle->stream;
    c->whole = whole ? whole : c;
    c->active = c;
    c->turn.use = STRATA_TURNS_AUTO;
    c->batch = engine->batch;
    c->stale = true;
    c->arena_bytes = (int64_t)strata_engine_arena_bytes(engine);
    memcpy(c->sizes, engine->sizes, sizeof c->sizes);
    c->wants_graph = whole ? whole->wants_graph : engine->network->runtime.graph;
    c->use_graph =
        c->wants_graph && handle->device->ops->capture_begin && !context_check_wanted();
    atomic_flag_clear(&c->busy);
    if ((status = allocate(c, err)) != STRATA_OK)
        goto done;
    if (context_check_wanted() && (status = context_check_open(c, err)) != STRATA_OK)
        goto done;
    strata_tensor *next = c->tensors;
    for (size_t i = 0; i < engine->execution->n_nodes; i++)
        if ((status = open_node(c, i, &next, err)) != STRATA_OK)
            goto done;
    *out = c;
    c = NULL;
done:
    strata_context_destroy(c);
    return status;
}

static int open_part(strata_context **out, const strata_engine *engine,
                     strata_context *whole, strata_error *err)
{
    int status = open_context(out, engine, whole->handle, whole, err);
    if (status == STRATA_OK && whole->profile)
        status = context_watch(*out, &whole->profile->caller, err);
    if (status == STRATA_OK)
        return status;
    strata_context_destroy(*out);
    *out = NULL;
    return status;
}

/* One context for each combination of sizes that the engine is planned for, all on the
 * stream, the bindings and the arena of the whole. */
static int open_smaller(strata_context *c, strata_error *err)
{
    const strata_engine *e = c->engine;
    int status = STRATA_OK;
    c->smaller = zalloc(e->n_smaller + CONTEXT_MAX_VERSIONS, sizeof(*c->smaller),
                        "a context", err);
    if (!c->smaller)
        return STRATA_ENOMEM;
    for (size_t i = 0; i < e->n_smaller && status == STRATA_OK; i++) {
        status = open_part(&c->smaller[i], e->smaller[i], c, err);
        c->n_smaller += status == STRATA_OK;
    }
    return status;
}

int strata_context_create(strata_context **out, const strata_engine *engine,
                          strata_handle *handle, strata_error *err)
{
    strata_context *c = NULL;
    if (out)
        *out = NULL;
    int status = ARGUMENTS(err, {"out", out}, {"engine", engine}, {"handle", handle});
    if (status != STRATA_OK)
        return status;
    if (handle->device->ops != engine->handle->device->ops ||
        handle->properties.index != engine->handle->properties.index)
        return error_set(err, STRATA_EINVAL,
                         "the engine is for device %s, the handle for %s; create the "
                         "context on a handle of the engine's device",
                         engine->handle->properties.name, handle->properties.name);
    status = open_context(&c, engine, handle, NULL, err);
    if (status == STRATA_OK)
        status = open_smaller(c, err);
    if (status == STRATA_OK && c->execution->n_states)
        status = context_reset_states(c, STRATA_ALL_ROWS, err);
    if (status == STRATA_OK && c->execution->n_states)
        status = strata_stream_synchronize(c->stream, err);
    if (status != STRATA_OK)
        strata_context_destroy(c);
    else
        *out = c;
    return status;
}

static void free_bindings(strata_context *c)
{
    const struct execution *x = c->execution;
    for (size_t i = 0; c->own && i < execution_bound(x); i++)
        allocator_put(&c->handle->allocator, c->own[i],
                      (size_t)x->values[x->bindings[i].value].bytes);
    free(c->own);
    free(c->bound);
}

static void free_staging(strata_context *c)
{
    if (c->staging)
        staging_close(c->staging);
    free(c->staging);
}

void strata_context_destroy(strata_context *c)
{
    if (!c)
        return;
    const struct execution *x = c->execution;
    strata_stream_synchronize(c->stream, NULL);
    context_close_turn(c);
    context_free_parts(c);
    free_staging(c);
    for (size_t i = 0; i < c->n_smaller; i++)
        strata_context_destroy(c->smaller[i]);
    free(c->smaller);
    context_drop_graphs(c);
    context_free_profile(c);
    for (size_t i = 0; c->nodes && i < x->n_nodes; i++) {
        if (c->nodes[i].opened && x->nodes[i].impl->impl.ctx_close)
            x->nodes[i].impl->impl.ctx_close(c->nodes[i].ctx);
        free(c->nodes[i].ctx);
    }
    context_check_close(c);
    if (c->whole == c) {
        context_free_counts(c);
        free_bindings(c);
    }
    if (c->whole == c || c->arena != c->whole->arena)
        allocator_put(&c->handle->allocator, c->arena, (size_t)c->arena_bytes);
    free(c->value_data);
    free(c->nodes);
    free(c->tensors);
    strata_engine_destroy(c->version);
    free(c);
}

/* ---- sizes ----------------------------------------------------------------------- */

/* Room for one more version: the one that was not used for longest goes, at its end. */
static int make_room(strata_context *c, size_t *at, strata_error *err)
{
    const size_t first = c->engine->n_smaller;
    *at = c->n_smaller;
    if (c->n_smaller < first + CONTEXT_MAX_VERSIONS)
        return STRATA_OK;
    *at = first;
    for (size_t i = first; i < c->n_smaller; i++)
        if (c->smaller[i]->used < c->smaller[*at]->used)
            *at = i;
    int status = context_settle(c, err);
    if (status != STRATA_OK)
        return status;
    if (c->active == c->smaller[*at])
        c->active = c;
    strata_context_destroy(c->smaller[*at]);
    c->smaller[*at] = c->smaller[--c->n_smaller];
    *at = c->n_smaller;
    return STRATA_OK;
}

static int open_version(strata_context *c, const int64_t *sizes, strata_context **out,
                        strata_error *err)
{
    strata_engine *engine = NULL;
    size_t at;
    int status = make_room(c, &at, err);
    if (status == STRATA_OK)
        status = engine_make_version(&engine, c->engine, c->handle, sizes, err);
    if (status != STRATA_OK)
        return status;
    status = open_part(&c->smaller[at], engine, c, err);
    if (status != STRATA_OK) {
        strata_engine_destroy(engine);
        return status;
    }
    c->smaller[at]->version = engine;
    c->n_smaller++;
    *out = c->smaller[at];
    return STRATA_OK;
}

int context_resolve(strata_context *c, strata_error *err)
{
    int64_t sizes[NETWORK_MAX_SYMBOLS] = {0};
    strata_context *found = NULL;
    int status = STRATA_OK;
    if (c->resolved)
        return STRATA_OK;
    engine_run_sizes(c->engine, c->sizes, sizes);
    if (engine_has_sizes(c->engine, sizes))
        found = c;
    for (size_t i = 0; i < c->n_smaller && !found; i++)
        if (engine_has_sizes(c->smaller[i]->engine, sizes))
            found = c->smaller[i];
    if (!found)
        status = open_version(c, sizes, &found, err);
    if (status == STRATA_OK && c->execution->n_states && c->batch < found->engine->batch)
        status = error_set(err, STRATA_EUNSUPPORTED,
                           "%s: a batch of %" PRId64 ": the plan that it would go by "
                           "changes the states of %" PRId64
                           " rows; list it in [profile], or run those",
                           c->engine->network->path, c->batch, found->engine->batch);
    if (status != STRATA_OK)
        return status;
    c->active = found;
    found->used = ++c->uses;
    c->resolved = true;
    return STRATA_OK;
}
