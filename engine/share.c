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
    const struct network_layer *a = key, *b = ((const struct engine_node *)node)->layer;
    return (a > b) - (a < b);
}

/* The lender's node of the same layer, or NULL. Nodes are in the network's order. */
static const struct engine_node *lender_of(const strata_engine *e,
                                           const struct engine_node *n)
{
    const strata_engine *from = e->lender;
    return from ? bsearch(n->layer, from->nodes, from->n_nodes, sizeof *from->nodes,
                          by_layer)
                : NULL;
}

/* Fused scales, which are folded into the weights. */
static size_t scales(const strata_engine *e, const struct engine_node *n)
{
    size_t count = 0;
    while (count < n->n_fused && e->fusions[n->tail[count]].kind == FUSE_SCALE)
        count++;
    return count;
}

void *engine_lent_weight(const strata_engine *e, const struct engine_node *n, size_t w)
{
    const struct engine_node *lender = lender_of(e, n);
    if (!lender || scales(e, n) != scales(e->lender, lender) ||
        lender->weights[w].size != n->weights[w].size ||
        lender->weights[w].dtype != n->weights[w].dtype)
        return NULL;
    return lender->weights[w].data;
}

/* ---- packed weights ---------------------------------------------------------------- */

static int copy_block(strata_engine *e, void *dst, const void *src, size_t bytes,
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

int engine_borrow_pack(strata_engine *e, const struct engine_node *n, size_t bytes,
                       struct engine_block *out, strata_error *err)
{
    const struct engine_node *lender = lender_of(e, n);
    const size_t k = n->n_packs;
    *out = (struct engine_block){0};
    if (!lender || n->packs_alone || lender->impl != n->impl || lender->row != n->row ||
        k >= lender->n_packs || lender->packs[k].bytes != bytes)
        return STRATA_OK;
    void *before = malloc(bytes ? bytes : 1);
    if (!before)
        return STRATA_OK; /* it does without */
    int status =
        copy_block(e, before, lender->packs[k].ptr, bytes, COPY_FROM_DEVICE, err);
    if (status != STRATA_OK)
        free(before);
    else
        *out = (struct engine_block){lender->packs[k].ptr, bytes, true, before};
    return status;
}

static int differs(strata_engine *e, const struct engine_block *b, bool *out,
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

int engine_check_loans(strata_engine *e, struct engine_node *n, strata_error *err)
{
    bool different = false;
    int status = STRATA_OK;
    for (size_t i = 0; i < n->n_packs && status == STRATA_OK; i++)
        if (n->packs[i].before)
            status = differs(e, &n->packs[i], &different, err);
    for (size_t i = 0; i < n->n_packs && different && status == STRATA_OK; i++)
        if (n->packs[i].before)
            status = copy_block(e, n->packs[i].ptr, n->packs[i].before, n->packs[i].bytes,
                                COPY_TO_DEVICE, err);
    for (size_t i = 0; i < n->n_packs; i++) {
        free(n->packs[i].before);
        n->packs[i].before = NULL;
    }
    n->packs_alone = different;
    return status;
}
