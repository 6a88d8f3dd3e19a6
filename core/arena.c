/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena placement by liveness, greedy by size (Pisarchyk and Lee, 2020).
 */
#include "core/arena.h"

#include <stdlib.h>

#include <stdbool.h>

#include "core/alloc.h"
#include "core/checked.h"

static int by_size(const void *a, const void *b)
{
    const struct arena_block *x = *(struct arena_block *const *)a;
    const struct arena_block *y = *(struct arena_block *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* position, so that the order is total */
}

static bool together(const struct arena_block *a, const struct arena_block *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset at which `block` misses every placed block alive with it. placed is
 * sorted by offset. */
static int64_t lowest_gap(const struct arena_block *block, struct arena_block **placed,
                          size_t n)
{
    int64_t offset = 0;
    for (size_t i = 0; i < n; i++) {
        if (!together(block, placed[i]))
            continue;
        if (placed[i]->offset - offset >= block->bytes)
            break;
        int64_t end = placed[i]->offset + placed[i]->bytes;
        offset = end > offset ? end : offset;
    }
    return offset;
}

static void insert(struct arena_block **placed, size_t n, struct arena_block *block)
{
    size_t i = n;
    for (; i > 0 && placed[i - 1]->offset > block->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] = block;
}

/* The bytes alive change only where a block begins, so its first steps suffice. */
static int64_t lower_bound(const struct arena_block *blocks, size_t n)
{
    int64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t alive = 0;
        for (size_t j = 0; j < n; j++)
            if (blocks[j].first <= blocks[i].first && blocks[i].first <= blocks[j].last)
                alive += blocks[j].bytes;
        most = alive > most ? alive : most;
    }
    return most;
}

int arena_place(struct arena_block *blocks, size_t n, int64_t *peak, int64_t *bound,
                strata_error *err)
{
    int status = STRATA_ENOMEM;
    int64_t total = 0;
    struct arena_block **order = zalloc(n, sizeof *order, "the arena planner", err);
    struct arena_block **placed = zalloc(n, sizeof *placed, "the arena planner", err);
    if (!order || !placed)
        goto done;
    *peak = 0;
    for (size_t i = 0; i < n; i++) {
        order[i] = &blocks[i];
        if (!checked_round_up(blocks[i].bytes, TENSOR_ALIGNMENT, &blocks[i].bytes) ||
            !checked_add(total, blocks[i].bytes, &total)) {
            status = error_set(err, STRATA_EOVERFLOW, "the network's tensors overflow");
            goto done;
        }
    }
    qsort(order, n, sizeof *order, by_size);
    for (size_t i = 0; i < n; i++) {
        order[i]->offset = lowest_gap(order[i], placed, i);
        insert(placed, i, order[i]);
        if (*peak < order[i]->offset + order[i]->bytes)
            *peak = order[i]->offset + order[i]->bytes;
    }
    *bound = lower_bound(blocks, n);
    status = STRATA_OK;
done:
    free(order);
    free(placed);
    return status;
}
