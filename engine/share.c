/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights that an engine for a smaller batch has from the one for the largest: dense
 * ones as they are, packed ones where they turn out the same. What packing makes of them
 * is the impl's secret, so a node packs into the lender's memory, of which a copy is
 * kept, and what it wrote is compared with the copy. If it differs, the copy goes back
 * and the node packs anew into memory of its own. Nobody runs the lender meanwhile: it is
 * not built yet.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

static int by_layer(const void *key, const void *node)
{
    const struct network_layer *a = key,
                               *b = ((const struct execution_node *)node)->layer;
    return (a > b) - (a < b);
}

/* The lender's node of the same layer, or NULL. Nodes are in the network's order. */
static const struct execution_node *lender_of(const strata_engine *e, size_t node)
{
    const struct execution *from = e->lender ? e->lender->execution : NULL;
    return from ? bsearch(e->execution->nodes[node].layer, from->nodes, from->n_nodes,
                          sizeof *from->nodes, by_layer)
                : NULL;
}

static const struct engine_part *part_of(const strata_engine *e,
                                         const struct execution_node *n)
{
    return &e->parts[n - e->execution->nodes];
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
    const struct engine_part *part = &e->parts[node];
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
    struct pack_memory *m = &e->parts[node].packs;
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
    e->parts[node].packs_alone = different;
    return status;
}
