/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena placement by liveness. Blocks are placed one by one at the lowest place they fit,
 * largest first (greedy by size, Pisarchyk and Lee, 2020). If the peak misses the bound,
 * the block on top goes to the front of the order and all are placed again, round by
 * round; then the same from the longest-lived first. The lowest peak is kept.
 */
#include "planner/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/checked.h"

#define ROUNDS 200
#define WORK (UINT64_C(1) << 27) /* pairs of blocks looked at; rounds end with it */

struct arena {
    struct arena_block **order, **placed; /* placed: sorted by offset */
    size_t n;
    size_t top;       /* place in the order of the block that makes the peak */
    int64_t best;     /* lowest peak */
    int64_t *offsets; /* that gave it, by the blocks' own index */
};

static int by_size(const void *a, const void *b)
{
    const struct arena_block *x = *(struct arena_block *const *)a;
    const struct arena_block *y = *(struct arena_block *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : x > y; /* position, so that the order is total */
}

static int by_lifetime(const void *a, const void *b)
{
    const struct arena_block *x = *(struct arena_block *const *)a;
    const struct arena_block *y = *(struct arena_block *const *)b;
    int dx = x->last - x->first, dy = y->last - y->first;
    return dx != dy ? (dx < dy ? 1 : -1) : x < y ? -1 : x > y;
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

/* Place all blocks in order; the peak. */
static int64_t place_in_order(struct arena *a)
{
    int64_t peak = 0;
    a->top = 0;
    for (size_t i = 0; i < a->n; i++) {
        struct arena_block *block = a->order[i];
        block->offset = lowest_gap(block, a->placed, i);
        insert(a->placed, i, block);
        if (peak < block->offset + block->bytes) {
            peak = block->offset + block->bytes;
            a->top = i;
        }
    }
    return peak;
}

static void keep(struct arena *a, const struct arena_block *blocks, int64_t peak)
{
    a->best = peak;
    for (size_t i = 0; i < a->n; i++)
        a->offsets[i] = blocks[i].offset;
}

static void raise_top(struct arena *a)
{
    struct arena_block *block = a->order[a->top];
    memmove(a->order + 1, a->order, a->top * sizeof *a->order);
    a->order[0] = block;
}

static void search(struct arena *a, struct arena_block *blocks, int64_t bound)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_lifetime};
    uint64_t affordable = WORK / ((uint64_t)a->n * a->n + 1);
    int rounds = affordable < ROUNDS ? (int)affordable : ROUNDS;
    a->best = INT64_MAX;
    for (size_t o = 0; o < ARRAY_LENGTH(orders) && a->best > bound; o++) {
        for (size_t i = 0; i < a->n; i++)
            a->order[i] = &blocks[i];
        qsort(a->order, a->n, sizeof *a->order, orders[o]);
        for (int round = 0; round <= rounds && a->best > bound; round++) {
            int64_t peak = place_in_order(a);
            if (peak < a->best)
                keep(a, blocks, peak);
            if (a->best > bound)
                raise_top(a);
        }
    }
    for (size_t i = 0; i < a->n; i++)
        blocks[i].offset = a->offsets[i];
}

int arena_place(struct arena_block *blocks, size_t n, int64_t *peak, int64_t *bound,
                strata_error *err)
{
    int status = STRATA_ENOMEM;
    int64_t total = 0;
    struct arena a = {.n = n};
    a.order = zalloc(n, sizeof *a.order, "the arena planner", err);
    a.placed = zalloc(n, sizeof *a.placed, "the arena planner", err);
    a.offsets = zalloc(n, sizeof *a.offsets, "the arena planner", err);
    if (!a.order || !a.placed || !a.offsets)
        goto done;
    for (size_t i = 0; i < n; i++)
        if (!checked_round_up(blocks[i].bytes, TENSOR_ALIGNMENT, &blocks[i].bytes) ||
            !checked_add(total, blocks[i].bytes, &total)) {
            status = error_set(err, STRATA_EOVERFLOW, "the network's tensors overflow");
            goto done;
        }
    *bound = lower_bound(blocks, n);
    search(&a, blocks, *bound);
    *peak = a.best;
    status = STRATA_OK;
done:
    free(a.order);
    free(a.placed);
    free(a.offsets);
    return status;
}
