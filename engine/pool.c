/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of engines that are no more, which engines of the same planner may still need:
 * the newest, of so many bytes at most. A part keeps the memory of its twin: that is
 * here, too, and counted, as long as the part is.
 */
#include "engine/engine.h"

#include <stdlib.h>

static bool has(const struct engine_pool *pool, const struct engine_part *part)
{
    bool found = false;
    for (size_t i = 0; i < pool->n && !found; i++)
        found = pool->list[i] == part;
    return found;
}

static void drop(struct engine_pool *pool, size_t at)
{
    struct engine_part *part = pool->list[at];
    pool->bytes -= engine_part_bytes(part);
    pool->n--;
    for (size_t i = at; i < pool->n; i++)
        pool->list[i] = pool->list[i + 1];
    engine_release_part(pool->handle, part);
}

/* And those whose twin it is. */
static void drop_oldest(struct engine_pool *pool)
{
    for (size_t i = pool->n; i-- > 1;)
        if (pool->list[i]->twin == pool->list[0])
            drop(pool, i);
    drop(pool, 0);
}

static bool put(struct engine_pool *pool, struct engine_part *part)
{
    const uint64_t bytes = engine_part_bytes(part);
    if (bytes > pool->most || grow(&pool->list, &pool->capacity, pool->n,
                                   sizeof(*pool->list), NULL) != STRATA_OK)
        return false;
    part->holders++;
    pool->list[pool->n++] = part;
    pool->bytes += bytes;
    while (pool->bytes > pool->most)
        drop_oldest(pool);
    return true;
}

void engine_pool_keep(struct engine_pool *pool, const strata_engine *e)
{
    for (size_t i = 0; i < e->execution->n_nodes; i++) {
        struct engine_part *part = e->parts[i], *twin = part->twin;
        if (part->holders - part->twins == 1 &&
            (!twin || has(pool, twin) || put(pool, twin)))
            put(pool, part);
    }
}

void engine_pool_free(struct engine_pool *pool)
{
    while (pool->n > 0)
        engine_release_part(pool->handle, pool->list[--pool->n]);
    free(pool->list);
    *pool = (struct engine_pool){.handle = pool->handle};
}
