/* SPDX-License-Identifier: Apache-2.0
 *
 * Building an engine: nodes, model, plan, schedule, then weights and impls' setup.
 */
#include "core/engine_stored.h"
#include "core/explain.h"
#include "core/team.h"
#include "core/threads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Host memory by way of which weights reach a device: as large as the largest of them,
 * pinned where that makes copies faster. None on the host itself. */
struct staging {
    strata_allocator memory;
    void *ptr;
    size_t bytes;
};

static size_t weight_bytes(const strata_tensor *t)
{
    return t->rank > 0 ? (size_t)t->size * strata_dtype_size(t->dtype) : 0;
}

static int open_staging(struct staging *s, const strata_engine *e, strata_error *err)
{
    *s = (struct staging){0};
    if (e->handle->properties.kind == STRATA_HOST)
        return STRATA_OK;
    for (size_t i = 0; i < e->n_nodes; i++)
        for (size_t w = 0; w < e->nodes[i].layer->type->n_weights; w++) {
            const size_t bytes = weight_bytes(&e->nodes[i].weights[w]);
            s->bytes = bytes > s->bytes ? bytes : s->bytes;
        }
    s->memory = e->handle->device->ops->host_memory(e->handle->device);
    if (s->bytes)
        s->ptr = s->memory.alloc(s->memory.user, s->bytes, TENSOR_ALIGNMENT);
    return s->ptr || !s->bytes ? STRATA_OK
                               : error_no_memory(err, s->bytes, "a weight on its way");
}

static void close_staging(struct staging *s)
{
    if (s->ptr)
        s->memory.free(s->memory.user, s->ptr, s->bytes);
}

static int load_weight(strata_engine *e, const struct engine_node *n, size_t w,
                       const struct staging *s, strata_error *err)
{
    const struct device_ops *ops = e->handle->device->ops;
    const strata_tensor *t = &n->weights[w];
    int status = engine_load_weight(e, n, w, s->ptr ? s->ptr : t->data, err);
    if (status != STRATA_OK || !s->ptr)
        return status;
    status = ops->copy(e->handle->stream, t->data, s->ptr, weight_bytes(t),
                       COPY_TO_DEVICE, err);
    /* Before the staging memory is used again. */
    return status != STRATA_OK ? status : ops->stream_synchronize(e->handle->stream, err);
}

static int load_weights(strata_engine *e, struct engine_node *n, const struct staging *s,
                        strata_error *err)
{
    int status = STRATA_OK;
    for (size_t w = 0; w < n->layer->type->n_weights && status == STRATA_OK; w++) {
        strata_tensor *t = &n->weights[w];
        const size_t bytes = weight_bytes(t);
        if (t->rank == 0 || (t->data = engine_lent_weight(e, n, w)))
            continue;
        e->weight_bytes += bytes;
        if ((t->data = engine_weight_in_place(e, n, w)))
            continue;
        t->data =
            allocator_get(&e->handle->allocator, bytes, n->layer->weights[w].name, err);
        if (!t->data) {
            e->weight_bytes -= bytes;
            return STRATA_ENOMEM;
        }
        status = load_weight(e, n, w, s, err);
    }
    return status;
}

static void free_weight(strata_engine *e, struct engine_node *n, size_t w)
{
    strata_tensor *t = &n->weights[w];
    const size_t bytes = weight_bytes(t);
    if (t->data && t->data != engine_lent_weight(e, n, w)) {
        if (t->data != engine_weight_in_place(e, n, w))
            allocator_put(&e->handle->allocator, t->data, bytes);
        e->weight_bytes -= bytes;
    }
    t->data = NULL;
}

/* Setup has packed it, and nothing reads it any more. */
static void drop_packed(strata_engine *e, struct engine_node *n)
{
    if (!(n->impl->impl.flags & STRATA_WEIGHT_PACKED) || n->layer->type->n_weights == 0 ||
        !n->weights[0].data)
        return;
    free_weight(e, n, 0);
}

/* strata.pack/1: memory that lives with the node's state. */
static int pack_alloc(const strata_node *view, size_t bytes, void **out)
{
    struct engine_view *v = (struct engine_view *)view; /* node is its first member */
    struct engine_node *n = view->instance;
    struct allocator *memory = v->allocator;
    int status =
        memory
            ? grow(&n->packs, &n->packs_capacity, n->n_packs, sizeof *n->packs, view->err)
            : error_set(view->err, STRATA_EINVAL, STRATA_PACK_V1 " is for setup only");
    struct engine_block block = {0};
    if (status == STRATA_OK && v->borrower)
        status = engine_borrow_pack(v->borrower, n, bytes, &block, view->err);
    if (status != STRATA_OK)
        return status;
    if (!block.ptr) {
        block = (struct engine_block){.bytes = bytes};
        block.ptr = allocator_get(memory, bytes, "packed weights", view->err);
        *v->packed += block.ptr ? bytes : 0;
    }
    *out = block.ptr;
    if (!*out)
        return STRATA_ENOMEM;
    n->packs[n->n_packs++] = block;
    return STRATA_OK;
}

static const strata_pack pack_table = {
    .struct_size = sizeof(strata_pack),
    .alloc = pack_alloc,
};

void engine_node_tensors(const strata_engine *e, const struct engine_node *n,
                         strata_tensor *in, strata_tensor *out)
{
    for (int side = 0; side < 2; side++) {
        int count = side ? n->n_out : n->n_in;
        for (int i = 0; i < count; i++) {
            const struct engine_value *v =
                &e->values[side ? n->out_values[i] : n->in_values[i]];
            tensor_view(side ? &out[i] : &in[i], &v->desc, UINT64_C(1) << v->format,
                        v->pad, NULL);
        }
    }
}

void engine_residual(const strata_engine *e, const struct engine_node *n,
                     strata_tensor *out)
{
    if (n->residual_value < 0)
        return;
    const struct engine_value *v = &e->values[n->residual_value];
    tensor_view(out, &v->desc, UINT64_C(1) << v->format, v->pad, NULL);
}

static int setup_node(strata_engine *e, struct engine_node *n, strata_error *err)
{
    const strata_impl *impl = &n->impl->impl;
    struct engine_view v = {.weight = n->weights,
                            .fused = n->n_fused,
                            .allocator = &e->handle->allocator,
                            .packed = &e->weight_bytes,
                            .borrower = e->lender ? e : NULL};
    int status = STRATA_ENOMEM;
    n->state = zalloc(1, impl->state_size, "an impl's state", err);
    v.in = zalloc((size_t)n->n_in, sizeof *v.in, "a node", err);
    v.out = zalloc((size_t)n->n_out, sizeof *v.out, "a node", err);
    if (!n->state || !v.in || !v.out)
        goto done;
    status = STRATA_OK;
    engine_node_tensors(e, n, v.in, v.out);
    engine_residual(e, n, &v.residual);
    engine_fill_view(&v, e, n, n->row, err);
    v.node.stream = e->handle->device->ops->stream_native(e->handle->stream);
    if (impl->setup && (status = impl->setup(&v.node, n->state)) != STRATA_OK) {
        error_set(err, status, "%s", strata_status_text(status));
        error_prefix(err, "layer '%s', impl %s, setup", n->name, impl->name);
    }
    n->set_up = status == STRATA_OK;
done:
    free(v.in);
    free(v.out);
    return status;
}

struct setup_payload {
    strata_engine *engine;
    struct engine_node *node;
};

static int setup_on_stream(void *payload, void *stream, strata_error *err)
{
    const struct setup_payload *p = payload;
    (void)stream;
    int before = threads_set(p->engine->threads);
    int status = setup_node(p->engine, p->node, err);
    threads_set(before);
    return status;
}

static void undo_setup(strata_engine *e, struct engine_node *n)
{
    if (n->set_up && n->impl->impl.teardown)
        n->impl->impl.teardown(n->state);
    free(n->state);
    n->state = NULL;
    n->set_up = false;
    for (size_t i = 0; i < n->n_packs; i++) {
        free(n->packs[i].before);
        if (!n->packs[i].lent)
            allocator_put(&e->handle->allocator, n->packs[i].ptr, n->packs[i].bytes);
    }
    n->n_packs = 0;
}

static int setup_once(strata_engine *e, struct engine_node *n, strata_error *err)
{
    const struct device_ops *ops = e->handle->device->ops;
    struct setup_payload p = {e, n};
    int status = ops->submit(e->handle->stream, setup_on_stream, &p, sizeof p, err);
    return status != STRATA_OK ? status : ops->stream_synchronize(e->handle->stream, err);
}

/* Once more where what it packed is not as the lender's. */
static int setup(strata_engine *e, struct engine_node *n, strata_error *err)
{
    int status = setup_once(e, n, err);
    if (status == STRATA_OK)
        status = engine_check_loans(e, n, err);
    if (status != STRATA_OK || !n->packs_alone)
        return status;
    undo_setup(e, n);
    return setup_once(e, n, err);
}

/* Setup runs where run will: an impl that opens a parallel region leaves its threads to
 * the stream's own thread, not to the builder's, where they would compete with it. */
static int setup_nodes(strata_engine *e, strata_error *err)
{
    struct staging staging;
    int status = open_staging(&staging, e, err);
    for (size_t i = 0; i < e->n_nodes && status == STRATA_OK; i++) {
        status = load_weights(e, &e->nodes[i], &staging, err);
        if (status == STRATA_OK)
            status = setup(e, &e->nodes[i], err);
        if (status == STRATA_OK)
            drop_packed(e, &e->nodes[i]);
    }
    close_staging(&staging);
    return status;
}

/* A search that was cut is no secret. */
static void tell_gap(const strata_engine *e)
{
    const struct plan *p = e->plan;
    if (p->proved || e->network->build.objective == OBJECTIVE_MEMORY)
        return;
    if (e->plan_options.objective == PLAN_LEAST_TIME)
        log_line(
            STRATA_LOG_WARNING,
            "the plan may take up to %.2f %% more than the best one: its search ended "
            "after %" PRIu64 " nodes; build.plan_nodes allows more",
            100 * plan_gap(p), p->nodes);
    else
        log_line(STRATA_LOG_WARNING,
                 "a plan with fewer reformats may exist: the search ended after %" PRIu64
                 " nodes; build.plan_nodes allows more",
                 p->nodes);
}

static int solve(strata_engine *e, strata_error *err)
{
    static const struct plan_ban no_reformat = {PLAN_BAN_CONVERSION, -1, -1, -1, -1};
    if (e->network->build.objective == OBJECTIVE_REFORMATS)
        e->plan_options.objective = PLAN_FEWEST_REFORMATS;
    e->plan_options.bans = &no_reformat;
    e->plan_options.n_bans = e->network->build.no_reformat;
    e->plan_options.max_nodes = (uint64_t)e->network->build.plan_nodes;
    int status = cost_plan(e, &e->plan_options, err);
    if (status == STRATA_OK)
        status = engine_trade_time(e, err);
    if (status == STRATA_OK)
        tell_gap(e);
    return status == STRATA_EPLAN ? explain_conflict(e, &e->plan_options, err) : status;
}

/* plan: of the same network on the same handle, or NULL to make one. */
static int build(strata_engine *e, const struct plan *plan, strata_error *err)
{
    int status;
    if ((status = engine_make_nodes(e, err)) != STRATA_OK)
        return status;
    if ((status = engine_make_model(e, err)) != STRATA_OK)
        return status;
    status = e->stored ? engine_restore_plan(e, err)
             : plan    ? plan_copy(&e->plan, &e->model->problem, plan, err)
                       : solve(e, err);
    if (status != STRATA_OK)
        return status;
    if ((status = engine_make_schedule(e, err)) != STRATA_OK)
        return status;
    return setup_nodes(e, err);
}

static int end_team_on_stream(void *payload, void *stream, strata_error *err)
{
    (void)payload;
    (void)stream;
    (void)err;
    team_end();
    return STRATA_OK;
}

/* Contexts may well be on other streams, whose teams would suffer from this one's. */
static void end_team(const strata_engine *e)
{
    const struct device_ops *ops = e->handle->device->ops;
    if (e->handle->properties.kind == STRATA_HOST &&
        ops->submit(e->handle->stream, end_team_on_stream, NULL, 0, NULL) == STRATA_OK)
        ops->stream_synchronize(e->handle->stream, NULL);
}

/* At most one of plan and stored; stored is taken over. */
static int make_engine(strata_engine **out, strata_handle *handle,
                       const strata_network *network, const struct plan *plan,
                       struct engine_stored *stored, const strata_engine *lender,
                       strata_error *err)
{
    int status = STRATA_ENOMEM;
    *out = NULL;
    registry_set_extension(STRATA_PACK_V1, &pack_table);
    strata_engine *e = zalloc(1, sizeof *e, "an engine", err);
    if (!e) {
        engine_stored_free(stored);
        return status;
    }
    e->network = network_retain(network);
    e->handle = handle;
    e->lender = lender;
    e->stored = stored;
    cost_table_init(&e->known, handle->properties.build);
    e->math = handle->math == STRATA_MATH_TENSOR_OP ? handle->math : network->build.math;
    e->math = stored ? stored->math : e->math;
    e->threads = handle->properties.kind == STRATA_HOST
                     ? threads_for(network, handle->properties.threads)
                     : 0;
    int before = threads_set(e->threads); /* what accept and workspace count with */
    status = build(e, plan, err);
    if (status == STRATA_OK && !lender)
        status = engine_add_batches(e, err);
    threads_set(before);
    if (!lender)
        end_team(e);
    if (status != STRATA_OK) {
        error_prefix(err, "%s", network->path);
        goto done;
    }
    *out = e;
    e = NULL;
done:
    strata_engine_destroy(e);
    return status;
}

int engine_build_plan(strata_engine **out, strata_handle *handle,
                      const strata_network *network, const struct plan *plan,
                      strata_error *err)
{
    error_clear(err);
    if (!out || !handle || !network)
        return error_set(err, STRATA_EINVAL, "an engine needs out, handle and network");
    return make_engine(out, handle, network, plan, NULL, NULL, err);
}

int engine_build_lent(strata_engine **out, strata_handle *handle,
                      const strata_network *network, struct engine_stored *stored,
                      const strata_engine *lender, strata_error *err)
{
    return make_engine(out, handle, network, NULL, stored, lender, err);
}

int engine_build_stored(strata_engine **out, strata_handle *handle,
                        const strata_network *network, struct engine_stored *stored,
                        strata_error *err)
{
    return make_engine(out, handle, network, NULL, stored, NULL, err);
}

int strata_engine_build(strata_engine **out, strata_handle *handle,
                        const strata_network *network, strata_error *err)
{
    return engine_build_plan(out, handle, network, NULL, err);
}

static void release_node(strata_engine *e, struct engine_node *n)
{
    undo_setup(e, n);
    for (size_t w = 0; n->weights && w < n->layer->type->n_weights; w++)
        free_weight(e, n, w);
}

void strata_engine_destroy(strata_engine *e)
{
    if (!e)
        return;
    engine_free_batches(e);
    for (size_t i = 0; i < e->n_nodes; i++)
        release_node(e, &e->nodes[i]);
    engine_free_nodes(e);
    engine_free_model(e->model);
    plan_free(e->plan);
    free(e->values);
    free(e->steps);
    free(e->bindings);
    cost_table_free(&e->known);
    strata_network_destroy(e->network);
    engine_stored_free(e->stored); /* after the network, whose weights are in the file */
    free(e);
}

int strata_engine_bindings(const strata_engine *e)
{
    return (int)e->n_bindings;
}

int strata_engine_binding(const strata_engine *e, int index, strata_binding *out,
                          strata_error *err)
{
    error_clear(err);
    if (index < 0 || index >= (int)e->n_bindings)
        return error_set(err, STRATA_EINVAL, "binding %d: there are %zu", index,
                         e->n_bindings);
    const struct engine_binding *b = &e->bindings[index];
    const struct engine_value *v = &e->values[b->value];
    *out = (strata_binding){.name = b->name,
                            .is_input = b->is_input,
                            .desc = v->desc,
                            .format =
                                format_mask_name(UINT64_C(1) << v->format, v->desc.rank),
                            .bytes = v->bytes};
    return STRATA_OK;
}

int strata_engine_find(const strata_engine *e, const char *name)
{
    for (size_t i = 0; i < e->n_bindings && name; i++)
        if (strcmp(e->bindings[i].name, name) == 0)
            return (int)i;
    return -1;
}

uint64_t strata_engine_weight_bytes(const strata_engine *e)
{
    uint64_t bytes = e->weight_bytes;
    for (size_t i = 0; i < e->n_smaller; i++)
        bytes += e->smaller[i]->weight_bytes;
    return bytes;
}

uint64_t strata_engine_arena_bytes(const strata_engine *e)
{
    uint64_t most = (uint64_t)e->arena_bytes;
    for (size_t i = 0; i < e->n_smaller; i++)
        if (most < strata_engine_arena_bytes(e->smaller[i]))
            most = strata_engine_arena_bytes(e->smaller[i]);
    return most;
}
