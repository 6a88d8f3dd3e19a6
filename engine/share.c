/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that an engine for other sizes has from the one for the largest: dense ones as
 * they are, packed ones where they turn out the same. What packing makes of them is the
 * impl's secret, so a node packs into the lender's memory, of which a copy is kept, and
 * what it wrote is compared with the copy. If it differs, the copy goes back and the node
 * packs anew into memory of its own. Nobody runs the lender meanwhile: it is not built
 * yet. Where somebody may, a node packs into memory of its own; if the bytes are the
 * lender's, its state is led there. So it is where layers of one network share a weight.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

/* The node's layer in the engine's network, -1: it was made. Versions may have layers of
 * their own. */
static ptrdiff_t layer_of(const strata_engine *e, const struct execution_node *n)
{
    const struct network_layer *all = e->network->layers;
    return (uintptr_t)n->layer >= (uintptr_t)all &&
                   (uintptr_t)n->layer < (uintptr_t)(all + e->network->n_layers)
               ? n->layer - all
               : -1;
}

/* Nodes are in the network's order, but for layers that were made, which have no weights
 * or, in 8 bits, few bytes of them. */
void engine_find_lenders(strata_engine *e)
{
    const struct execution *to = e->execution,
                           *from = e->lender ? e->lender->execution : NULL;
    size_t k = 0;
    for (size_t i = 0; i < to->n_nodes; i++) {
        const ptrdiff_t layer = layer_of(e, &to->nodes[i]);
        e->parts[i]->lender = -1;
        if (!from || layer < 0)
            continue;
        while (k < from->n_nodes && layer_of(e->lender, &from->nodes[k]) < layer)
            k++;
        if (k < from->n_nodes && layer_of(e->lender, &from->nodes[k]) == layer)
            e->parts[i]->lender = (int)k;
    }
}

/* The lender's node of the same layer, or NULL. */
static const struct execution_node *lender_of(const strata_engine *e, size_t node)
{
    const int lender = e->parts[node]->lender;
    return lender < 0 ? NULL : &e->lender->execution->nodes[lender];
}

static const struct engine_part *part_of(const strata_engine *e,
                                         const struct execution_node *n)
{
    return e->parts[n - e->execution->nodes];
}

void *engine_lent_weight(const strata_engine *e, size_t node, size_t w)
{
    const struct execution_node *n = &e->execution->nodes[node];
    const struct execution_node *lender = lender_of(e, node);
    if (!lender || n->n_scales != lender->n_scales ||
        lender->weights[w].size != n->weights[w].size ||
        lender->weights[w].dtype != n->weights[w].dtype)
        return NULL;
    return part_of(e->lender, lender)->weights[w].data;
}

/* ---- packed weights ---------------------------------------------------------------- */

static int copy_block(const strata_engine *e, void *dst, const void *src, size_t bytes,
                      enum device_copy direction, strata_error *err)
{
    const struct device_ops *ops = e->handle->device->ops;
    strata_stream *s = e->handle->stream;
    if (e->handle->properties.kind == STRATA_HOST) { /* setup is on the stream's thread */
        memcpy(dst, src, bytes);
        return STRATA_OK;
    }
    int status = ops->copy(s, dst, src, bytes, direction, err);
    return status != STRATA_OK ? status : ops->stream_synchronize(s, err);
}

int engine_borrow_pack(const strata_engine *e, size_t node, size_t bytes,
                       struct pack *out, strata_error *err)
{
    const struct execution_node *n = &e->execution->nodes[node];
    const struct execution_node *lender = lender_of(e, node);
    const struct engine_part *part = e->parts[node];
    const size_t k = part->packs.n;
    *out = (struct pack){0};
    if (!lender || part->packs_alone || lender->impl != n->impl || lender->row != n->row)
        return STRATA_OK;
    const struct pack_memory *packs = &part_of(e->lender, lender)->packs;
    if (k >= packs->n || packs->list[k].bytes != bytes)
        return STRATA_OK;
    void *before = malloc(bytes ? bytes : 1);
    if (!before)
        return STRATA_OK; /* it does without */
    int status = copy_block(e, before, packs->list[k].ptr, bytes, COPY_FROM_DEVICE, err);
    if (status != STRATA_OK)
        free(before);
    else
        *out = (struct pack){packs->list[k].ptr, bytes, true, before};
    return status;
}

static int differs(const strata_engine *e, const struct pack *b, bool *out,
                   strata_error *err)
{
    void *now = zalloc(b->bytes, 1, "packed weights on their way", err);
    if (!now)
        return STRATA_ENOMEM;
    int status = copy_block(e, now, b->ptr, b->bytes, COPY_FROM_DEVICE, err);
    *out |= status == STRATA_OK && memcmp(now, b->before, b->bytes) != 0;
    free(now);
    return status;
}

int engine_check_loans(strata_engine *e, size_t node, strata_error *err)
{
    struct pack_memory *m = &e->parts[node]->packs;
    bool different = false;
    int status = STRATA_OK;
    for (size_t i = 0; i < m->n && status == STRATA_OK; i++)
        if (m->list[i].before)
            status = differs(e, &m->list[i], &different, err);
    for (size_t i = 0; i < m->n && different && status == STRATA_OK; i++)
        if (m->list[i].before)
            status = copy_block(e, m->list[i].ptr, m->list[i].before, m->list[i].bytes,
                                COPY_TO_DEVICE, err);
    for (size_t i = 0; i < m->n; i++) {
        free(m->list[i].before);
        m->list[i].before = NULL;
    }
    e->parts[node]->packs_alone = different;
    return status;
}

/* ---- beside runs ------------------------------------------------------------------- */

/* Below this a copy costs less than the look. */
#define LEAST_ADOPTED ((size_t)1 << 16)

static int same_bytes(const strata_engine *e, const struct pack *a, const struct pack *b,
                      bool *out, strata_error *err)
{
    char *both = zalloc(2, a->bytes, "packed weights on their way", err);
    if (!both)
        return STRATA_ENOMEM;
    int status = copy_block(e, both, a->ptr, a->bytes, COPY_FROM_DEVICE, err);
    if (status == STRATA_OK)
        status = copy_block(e, both + a->bytes, b->ptr, a->bytes, COPY_FROM_DEVICE, err);
    *out = status == STRATA_OK && memcmp(both, both + a->bytes, a->bytes) == 0;
    free(both);
    return status;
}

/* Addresses in `from` as those in `to`, wherever they stand in the state. */
static bool redirect(void *state, size_t size, const struct pack *from,
                     const struct pack *to)
{
    bool found = false;
    for (size_t at = 0; at + sizeof(uintptr_t) <= size; at += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (char *)state + at, sizeof word);
        if (word < (uintptr_t)from->ptr || word - (uintptr_t)from->ptr >= from->bytes)
            continue;
        word = word - (uintptr_t)from->ptr + (uintptr_t)to->ptr;
        memcpy((char *)state + at, &word, sizeof word);
        found = true;
    }
    return found;
}

/* Modules of ABI 1.2 keep the addresses of packs in their state and nowhere else. */
static bool can_adopt(const struct execution_node *n, const struct execution_node *lender)
{
    return lender && lender->impl == n->impl && lender->row == n->row &&
           module_info(n->impl->module).abi_minor >= 2;
}

/* Packs of the node that are those of another part, too; *any: there are such. */
static int adopt(strata_engine *e, size_t node, const struct pack_memory *its, bool *any,
                 strata_error *err)
{
    const struct execution_node *n = &e->execution->nodes[node];
    struct pack_memory *mine = &e->parts[node]->packs;
    int status = STRATA_OK;
    for (size_t k = 0; k < mine->n && k < its->n && status == STRATA_OK; k++) {
        struct pack *p = &mine->list[k];
        bool same = false;
        if (p->lent || p->bytes < LEAST_ADOPTED || p->bytes != its->list[k].bytes)
            continue;
        status = same_bytes(e, p, &its->list[k], &same, err);
        if (!same ||
            !redirect(e->parts[node]->state, n->impl->impl.state_size, p, &its->list[k]))
            continue;
        allocator_put(mine->allocator, p->ptr, p->bytes);
        mine->bytes -= p->bytes;
        *p = (struct pack){its->list[k].ptr, p->bytes, true, NULL};
        *any = true;
    }
    return status;
}

int engine_adopt_packs(strata_engine *e, size_t node, strata_error *err)
{
    const struct execution_node *lender = lender_of(e, node);
    bool any = false;
    return can_adopt(&e->execution->nodes[node], lender)
               ? adopt(e, node, &part_of(e->lender, lender)->packs, &any, err)
               : STRATA_OK;
}

/* ---- layers that share a weight ---------------------------------------------------- */

/* Whether weight w of both is the same numbers of the network's file, and large. */
static bool same_source(const struct execution_node *a, const struct execution_node *b,
                        size_t w)
{
    const struct network_weight *x = &a->layer->weights[w], *y = &b->layer->weights[w];
    return a->layer->type == b->layer->type && x->source == WEIGHT_FILE &&
           y->source == WEIGHT_FILE && x->view.data == y->view.data &&
           x->view.bytes >= LEAST_ADOPTED;
}

/* Whether a part may have another's memory, too: it holds one part at most. */
static bool may_hold(const struct engine_part *part, const struct engine_part *other)
{
    return !other->twin && (!part->twin || part->twin == other);
}

static void hold(struct engine_part *part, struct engine_part *other)
{
    other->holders += !part->twin;
    other->twins += !part->twin;
    part->twin = other;
}

/* Whether it is as the file has it, and stays when the node is set up. */
static bool is_dense(const struct execution_node *n, size_t w)
{
    return n->n_scales == 0 && !n->layer->weights[w].factors &&
           !(w == 0 && n->impl->impl.flags & STRATA_WEIGHT_PACKED);
}

void *engine_twin_weight(strata_engine *e, size_t node, size_t w)
{
    const struct execution_node *all = e->execution->nodes, *n = &all[node];
    struct engine_part *part = e->parts[node];
    for (size_t i = 0; i < node && is_dense(n, w); i++) {
        struct engine_part *other = e->parts[i];
        if (!same_source(n, &all[i], w) || !is_dense(&all[i], w) ||
            !may_hold(part, other) || other->data[w] != DATA_OWN ||
            other->weights[w].dtype != part->weights[w].dtype ||
            other->weights[w].size != part->weights[w].size)
            continue;
        hold(part, other);
        return other->weights[w].data;
    }
    return NULL;
}

/* The first part whose packs may be the node's, too; or NULL. */
static struct engine_part *find_twin(const strata_engine *e, size_t node)
{
    const struct execution_node *all = e->execution->nodes, *n = &all[node];
    for (size_t i = 0; i < node; i++)
        for (size_t w = 0; can_adopt(n, &all[i]) && w < n->layer->type->n_weights; w++)
            if (same_source(n, &all[i], w) && may_hold(e->parts[node], e->parts[i]))
                return e->parts[i];
    return NULL;
}

int engine_unite_packs(strata_engine *e, size_t node, strata_error *err)
{
    struct engine_part *part = e->parts[node],
                       *twin = part->packs.bytes ? find_twin(e, node) : NULL;
    bool any = false;
    const int status = twin ? adopt(e, node, &twin->packs, &any, err) : STRATA_OK;
    if (any)
        hold(part, twin);
    return status;
}
