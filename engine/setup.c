/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights to the device, and impls' setup, which packs them. Both are put on the stream
 * one behind the other: nobody waits between nodes, but for the memory of dense weights
 * that were packed, which may be freed only then.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "core/team.h"
#include "engine/staging.h"
#include "planner/view.h"

/* Bytes of dense weights that may be on the device beside the packed ones. */
#define MOST_DENSE ((size_t)64 << 20)

/* Whether a node's part was another engine's before. */
static bool is_taken(const strata_engine *e, size_t node)
{
    return e->parts[node]->execution != e->execution;
}

/* Nodes whose weights or setup may be under way. */
struct setup {
    strata_engine *engine;
    struct staging staging;
    size_t first, end;
    size_t dense; /* bytes that will be dropped */
};

static size_t weight_bytes(const strata_tensor *t)
{
    return t->rank > 0 ? (size_t)t->size * strata_dtype_size(t->dtype) : 0;
}

/* From where the network has it, else from memory of its own. */
static int send_weight(struct setup *s, const struct execution_node *n, size_t w,
                       const strata_tensor *t, strata_error *err)
{
    const strata_allocator host = host_memory();
    const size_t bytes = weight_bytes(t);
    const void *source = engine_weight_source(n, w);
    if (source)
        return staging_send(&s->staging, t->data, source, bytes, err);
    void *values = host.alloc(host.user, bytes ? bytes : 1, TENSOR_ALIGNMENT);
    if (!values)
        return error_no_memory(err, bytes, "a weight on its way");
    int status = engine_load_weight(s->engine, n, w, values, err);
    if (status == STRATA_OK)
        status = staging_send(&s->staging, t->data, values, bytes, err);
    host.free(host.user, values, bytes ? bytes : 1);
    return status;
}

/* Memory and values of one weight, if it needs any of its own. */
static int load_weight(struct setup *s, size_t node, size_t w, strata_error *err)
{
    strata_engine *e = s->engine;
    const struct execution_node *n = &e->execution->nodes[node];
    strata_tensor *t = &e->parts[node]->weights[w];
    enum part_data *data = &e->parts[node]->data[w];
    const size_t bytes = weight_bytes(t);
    if (t->rank == 0)
        return STRATA_OK;
    if ((t->data = engine_lent_weight(e, node, w)) ||
        (t->data = engine_twin_weight(e, node, w))) {
        *data = DATA_LENT;
        return STRATA_OK;
    }
    if ((t->data = engine_weight_in_place(e, n, w))) {
        *data = DATA_IN_PLACE;
        e->weight_bytes += bytes;
        return STRATA_OK;
    }
    t->data = allocator_get(&e->handle->allocator, bytes, n->layer->weights[w].name, err);
    if (!t->data)
        return STRATA_ENOMEM;
    *data = DATA_OWN;
    e->weight_bytes += bytes;
    s->dense += bytes;
    return e->handle->properties.kind == STRATA_HOST
               ? engine_load_weight(e, n, w, t->data, err)
               : send_weight(s, n, w, t, err);
}

static int load_weights(struct setup *s, size_t node, strata_error *err)
{
    const struct execution_node *n = &s->engine->execution->nodes[node];
    struct engine_part *part = s->engine->parts[node];
    const size_t n_weights = n->layer->type->n_weights;
    int status = STRATA_OK;
    part->weights = zalloc(n_weights, sizeof *part->weights, "a node", err);
    part->data = zalloc(n_weights, sizeof *part->data, "a node", err);
    if (!part->weights || !part->data)
        return STRATA_ENOMEM;
    memcpy(part->weights, n->weights, n_weights * sizeof *part->weights);
    part->constant = engine_lent_constant(s->engine, node);
    for (size_t w = 0; w < n_weights && !part->constant && status == STRATA_OK; w++)
        status = load_weight(s, node, w, err);
    return status;
}

static void free_weight(strata_handle *handle, struct engine_part *part, size_t w)
{
    strata_tensor *t = &part->weights[w];
    if (part->data[w] == DATA_OWN)
        allocator_put(&handle->allocator, t->data, weight_bytes(t));
    t->data = NULL;
    part->data[w] = DATA_NONE;
}

/* Nothing reads it any more. */
static void drop_weight(strata_engine *e, size_t node)
{
    struct engine_part *part = e->parts[node];
    if (part->data[0] > DATA_LENT)
        e->weight_bytes -= weight_bytes(&part->weights[0]);
    free_weight(e->handle, part, 0);
}

/* Setup has packed it. */
static void drop_packed(strata_engine *e, size_t node)
{
    const struct execution_node *n = &e->execution->nodes[node];
    if (n->impl->impl.flags & STRATA_WEIGHT_PACKED && n->layer->type->n_weights > 0)
        drop_weight(e, node);
}

/* ---- impls' setup ------------------------------------------------------------------ */

/* A node of an engine: work on the stream, and who its packs are borrowed for. */
struct setup_payload {
    strata_engine *engine;
    size_t node;
};

static int borrow(struct pack_memory *m, size_t bytes, struct pack *out,
                  strata_error *err)
{
    const struct setup_payload *p = m->lender;
    return engine_borrow_pack(p->engine, p->node, bytes, out, err);
}

static int run_setup(strata_engine *e, size_t node, struct node_view *v,
                     strata_error *err)
{
    const struct execution_node *n = &e->execution->nodes[node];
    const strata_impl *impl = &n->impl->impl;
    struct engine_part *part = e->parts[node];
    int status = STRATA_OK;
    execution_tensors(e->execution, n, v->in, v->out);
    execution_residual(e->execution, n, &v->residual);
    execution_view(v, e->execution, n, err);
    v->node.stream = e->handle->device->ops->stream_native(e->handle->stream);
    if (impl->setup && (status = impl->setup(&v->node, part->state)) != STRATA_OK) {
        error_set(err, status, "it returned %d (%s) without a message", status,
                  strata_status_text(status));
        error_prefix(err, "layer '%s', impl %s, setup", n->name, impl->name);
    }
    part->set_up = status == STRATA_OK;
    return status;
}

static int setup_node(struct setup_payload *p, strata_error *err)
{
    strata_engine *e = p->engine;
    const struct execution_node *n = &e->execution->nodes[p->node];
    struct engine_part *part = e->parts[p->node];
    struct node_view v = {.weight = part->weights, .packs = &part->packs};
    int status = STRATA_ENOMEM;
    part->packs.allocator = &e->handle->allocator;
    part->packs.borrow = e->lender && !e->late ? borrow : NULL;
    part->packs.lender = p;
    part->state = zalloc(1, n->impl->impl.state_size, "an impl's state", err);
    v.in = zalloc((size_t)n->n_ports, sizeof *v.in, "a node", err);
    v.out = zalloc((size_t)n->n_out, sizeof *v.out, "a node", err);
    if (part->state && v.in && v.out)
        status = run_setup(e, p->node, &v, err);
    free(v.in);
    free(v.out);
    return status;
}

static int setup_on_stream(void *payload, void *stream, strata_error *err)
{
    struct setup_payload *p = payload;
    (void)stream;
    int before = threads_set(p->engine->execution->threads);
    int status = setup_node(p, err);
    threads_set(before);
    return status;
}

static void undo_setup(struct engine_part *part)
{
    const strata_impl *impl = &part->execution->nodes[part->node].impl->impl;
    if (part->set_up && impl->teardown)
        impl->teardown(part->state);
    free(part->state);
    part->state = NULL;
    part->set_up = false;
    pack_free(&part->packs);
}

/* Setup runs on the stream's thread: an impl that opens a parallel region leaves its
 * threads there, not to the builder's, and they end when the engine is made. */
static int begin_setup(struct setup *s, size_t node, strata_error *err)
{
    struct setup_payload p = {s->engine, node};
    return s->engine->handle->device->ops->submit(s->engine->handle->stream,
                                                  setup_on_stream, &p, sizeof p, err);
}

/* Once more where what a node packed is not as the lender's. */
static int settle_loans(struct setup *s, size_t node, strata_error *err)
{
    strata_engine *e = s->engine;
    int status = engine_check_loans(e, node, err);
    if (status != STRATA_OK || !e->parts[node]->packs_alone)
        return status;
    undo_setup(e->parts[node]);
    status = begin_setup(s, node, err);
    return status == STRATA_OK ? staging_wait(&s->staging, err) : status;
}

static int settle(struct setup *s, strata_error *err)
{
    strata_engine *e = s->engine;
    int status = staging_wait(&s->staging, err);
    for (; s->first < s->end && status == STRATA_OK; s->first++) {
        if (is_taken(e, s->first))
            continue;
        status = e->late ? engine_adopt_packs(e, s->first, err)
                         : settle_loans(s, s->first, err);
        if (status == STRATA_OK)
            status = engine_unite_packs(e, s->first, err);
        e->weight_bytes += e->parts[s->first]->packs.bytes;
        if (status == STRATA_OK)
            drop_packed(e, s->first);
    }
    s->dense = 0;
    return status;
}

/* Of all nodes, those of kin among them. */
static int make_parts(strata_engine *e, const strata_engine *kin,
                      const struct engine_pool *pool, strata_error *err)
{
    const size_t n_nodes = e->execution->n_nodes;
    e->parts = zalloc(n_nodes, sizeof(*e->parts), "an engine", err);
    if (!e->parts)
        return STRATA_ENOMEM;
    if (kin)
        engine_take_parts(e, kin, pool);
    for (size_t i = 0; i < n_nodes; i++) {
        if (e->parts[i])
            continue;
        if (!(e->parts[i] = zalloc(1, sizeof *e->parts[i], "an engine", err)))
            return STRATA_ENOMEM;
        e->parts[i]->holders = 1;
        e->parts[i]->execution = execution_retain(e->execution);
        e->parts[i]->node = i;
    }
    return STRATA_OK;
}

static int make_constant(strata_engine *e, size_t node, strata_error *err)
{
    const int status = engine_make_constant(e, node, err);
    if (status == STRATA_OK && !engine_keeps_weight(e->parts[node]))
        drop_weight(e, node);
    return status;
}

int engine_setup_parts(strata_engine *e, const strata_engine *kin,
                       const struct engine_pool *pool, strata_error *err)
{
    struct setup s = {.engine = e};
    const size_t n_nodes = e->execution->n_nodes;
    int status = make_parts(e, kin, pool, err);
    if (status != STRATA_OK)
        return status;
    engine_find_lenders(e);
    staging_open(&s.staging, e->handle, e->handle->stream);
    for (; s.end < n_nodes && status == STRATA_OK; s.end++) {
        if (is_taken(e, s.end))
            continue;
        if (s.dense > MOST_DENSE || e->lender) /* whose packs are compared one by one */
            status = settle(&s, err);
        if (status == STRATA_OK)
            status = load_weights(&s, s.end, err);
        if (status == STRATA_OK)
            status = begin_setup(&s, s.end, err);
        if (status == STRATA_OK)
            status = make_constant(e, s.end, err);
    }
    if (status == STRATA_OK)
        status = settle(&s, err);
    staging_close(&s.staging);
    return status;
}

void engine_release_part(strata_handle *handle, struct engine_part *part)
{
    if (!part || --part->holders > 0)
        return;
    const struct execution_node *n = &part->execution->nodes[part->node];
    undo_setup(part);
    engine_free_constant(handle, part);
    for (size_t w = 0; part->weights && part->data && w < n->layer->type->n_weights; w++)
        free_weight(handle, part, w);
    free(part->weights);
    free(part->data);
    execution_free(part->execution);
    if (part->twin)
        part->twin->twins--;
    engine_release_part(handle, part->twin);
    free(part);
}

void engine_free_parts(strata_engine *e)
{
    for (size_t i = 0; e->parts && i < e->execution->n_nodes; i++)
        engine_release_part(e->handle, e->parts[i]);
    free(e->parts);
}
