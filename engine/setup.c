/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights to the device, and impls' setup, which packs them. Both are put on the stream
 * one behind the other: nobody waits between nodes, but for the memory of dense weights
 * that were packed, which may be freed only then.
 */
#include "engine/staging.h"
#include "core/team.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of dense weights that may be on the device beside the packed ones. */
#define MOST_DENSE ((size_t)64 << 20)

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
static int send_weight(struct setup *s, const struct engine_node *n, size_t w,
                       strata_error *err)
{
    const strata_allocator host = host_memory();
    const strata_tensor *t = &n->weights[w];
    const size_t bytes = weight_bytes(t);
    const void *source = engine_weight_source(s->engine, n, w);
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

static int load_weights(struct setup *s, struct engine_node *n, strata_error *err)
{
    strata_engine *e = s->engine;
    const bool host = e->handle->properties.kind == STRATA_HOST;
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
        s->dense += bytes;
        status =
            host ? engine_load_weight(e, n, w, t->data, err) : send_weight(s, n, w, err);
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

void engine_offer_packs(void)
{
    registry_set_extension(STRATA_PACK_V1, &pack_table);
}

static int setup_node(strata_engine *e, struct engine_node *n, strata_error *err)
{
    const strata_impl *impl = &n->impl->impl;
    struct engine_view v = {.weight = n->weights,
                            .fused = n->n_fused,
                            .allocator = &e->handle->allocator,
                            .packed = &n->packed_bytes,
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
    n->packed_bytes = 0;
}

/* Setup runs where run will: an impl that opens a parallel region leaves its threads to
 * the stream's own thread, not to the builder's, where they would compete with it. */
static int begin_setup(struct setup *s, struct engine_node *n, strata_error *err)
{
    struct setup_payload p = {s->engine, n};
    return s->engine->handle->device->ops->submit(s->engine->handle->stream,
                                                  setup_on_stream, &p, sizeof p, err);
}

/* Once more where what a node packed is not as the lender's. */
static int settle_loans(struct setup *s, struct engine_node *n, strata_error *err)
{
    strata_engine *e = s->engine;
    int status = engine_check_loans(e, n, err);
    if (status != STRATA_OK || !n->packs_alone)
        return status;
    undo_setup(e, n);
    status = begin_setup(s, n, err);
    return status == STRATA_OK ? staging_wait(&s->staging, err) : status;
}

static int settle(struct setup *s, strata_error *err)
{
    strata_engine *e = s->engine;
    int status = staging_wait(&s->staging, err);
    for (; s->first < s->end && status == STRATA_OK; s->first++) {
        struct engine_node *n = &e->nodes[s->first];
        status = settle_loans(s, n, err);
        e->weight_bytes += n->packed_bytes;
        if (status == STRATA_OK)
            drop_packed(e, n);
    }
    s->dense = 0;
    return status;
}

int engine_setup_nodes(strata_engine *e, strata_error *err)
{
    struct setup s = {.engine = e};
    int status = STRATA_OK;
    staging_open(&s.staging, e->handle);
    for (; s.end < e->n_nodes && status == STRATA_OK; s.end++) {
        if (s.dense > MOST_DENSE || e->lender) /* whose packs are compared one by one */
            status = settle(&s, err);
        if (status == STRATA_OK)
            status = load_weights(&s, &e->nodes[s.end], err);
        if (status == STRATA_OK)
            status = begin_setup(&s, &e->nodes[s.end], err);
    }
    if (status == STRATA_OK)
        status = settle(&s, err);
    staging_close(&s.staging);
    return status;
}

void engine_release_node(strata_engine *e, struct engine_node *n)
{
    undo_setup(e, n);
    for (size_t w = 0; n->weights && w < n->layer->type->n_weights; w++)
        free_weight(e, n, w);
}
