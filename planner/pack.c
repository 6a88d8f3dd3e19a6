/* SPDX-License-Identifier: Apache-2.0
 *
 * The table behind strata.pack/1.
 */
#include "planner/pack.h"

#include <stdlib.h>

#include "planner/view.h"

/* Another's memory if it lends some, else memory of its own. */
static int get(struct pack_memory *m, size_t bytes, struct pack *out, strata_error *err)
{
    *out = (struct pack){0};
    int status = m->borrow ? m->borrow(m, bytes, out, err) : STRATA_OK;
    if (status != STRATA_OK || out->ptr)
        return status;
    out->bytes = bytes;
    out->ptr = allocator_get(m->allocator, bytes, "packed weights", err);
    m->bytes += out->ptr ? bytes : 0;
    return out->ptr ? STRATA_OK : STRATA_ENOMEM;
}

static int pack_alloc(const strata_node *node, size_t bytes, void **out)
{
    struct pack pack;
    if (!node || !out)
        return error_set(node ? node->err : NULL, STRATA_EINVAL, "%s: %s is NULL",
                         STRATA_PACK_V1, node ? "out" : "the node");
    struct pack_memory *m =
        ((struct node_view *)node)->packs; /* node is its first member */
    if (!m)
        return error_set(node->err, STRATA_EINVAL, STRATA_PACK_V1 " is for setup only");
    int status = grow(&m->list, &m->capacity, m->n, sizeof *m->list, node->err);
    if (status != STRATA_OK)
        return status;
    status = get(m, bytes, &pack, node->err);
    *out = pack.ptr;
    if (status == STRATA_OK)
        m->list[m->n++] = pack;
    return status;
}

static const strata_pack pack_table = {
    .struct_size = sizeof(strata_pack),
    .alloc = pack_alloc,
};

void pack_offer(void)
{
    registry_set_extension(STRATA_PACK_V1, &pack_table);
}

void pack_free(struct pack_memory *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->list[i].before);
        if (!m->list[i].lent)
            allocator_put(m->allocator, m->list[i].ptr, m->list[i].bytes);
    }
    free(m->list);
    m->list = NULL;
    m->n = m->capacity = 0;
    m->bytes = 0;
}
