/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of engines that are no more, which engines of the same planner may still need:
 * the newest, of so many bytes at most.
 */
#include "engine/engine.h"

#include <stdlib.h>

static void drop_oldest(struct engine_pool *pool)
{
    pool->bytes -= engine_part_bytes(pool->list[0]);
    engine_release_part(pool->handle, pool->list[0]);
    for (size_t i = 1; i < pool->n; i++)
        pool->list[i - 1] = pool->list[i];
    pool->n--;
}

void engine_pool_keep(struct engine_pool *pool, const strata_engine *e)
{
    for (size_t i = 0; i < e->execution->n_nodes; i++) {
        struct engine_part *part = e->parts[i];
        const uint64_t bytes = engine_part_bytes(part);
        if (part->holders > 1 || bytes > pool->most ||
            grow(&pool->list, &pool->capacity, pool->n, sizeof(*pool->list), NULL) !=
                STRATA_OK)
            continue;
        part->holders++;
        pool->list[pool->n++] = part;
        pool->bytes += bytes;
        while (pool->bytes > pool->most)
            drop_oldest(pool);
    }
}

void engine_pool_free(struct engine_pool *pool)
{
    while (pool->n > 0)
        engine_release_part(pool->handle, pool->list[--pool->n]);
    free(pool->list);
    *pool = (struct engine_pool){.handle = pool->handle};
}
