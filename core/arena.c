/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena placement by liveness: greedy by size and by breadth (Pisarchyk and Lee, 2020),
 * then a short search that places earlier what ended up highest.
 */
#include "core/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* Bytes alive at a block's first step. */
static int64_t breadth(const struct arena_block *blocks, size_t n, int step)
{
    int64_t alive = 0;
    for (size_t j = 0; j < n; j++)
        if (blocks[j].first <= step && step <= blocks[j].last)
            alive += blocks[j].bytes;
    return alive;
}

/* Step by step, from the one with the most bytes alive; within a step largest first.
 * order comes sorted by size and its blocks are moved, not changed. */
static int order_by_breadth(struct arena_block *blocks, size_t n,
                            struct arena_block **order, strata_error *err)
{
    size_t taken = 0;
    int64_t *alive = zalloc(n, sizeof *alive, "the arena planner", err);
    struct arena_block **rest = zalloc(n, sizeof *rest, "the arena planner", err);
    bool ready = alive && rest;
    if (ready && n > 0)
        memcpy(rest, order, n * sizeof *rest);
    for (size_t i = 0; i < n && ready; i++)
        alive[i] = breadth(blocks, n, blocks[i].first);
    while (ready && taken < n) {
        size_t widest = n;
        for (size_t i = 0; i < n; i++)
            if (rest[i] &&
                (widest == n || alive[rest[i] - blocks] > alive[rest[widest] - blocks]))
                widest = i;
        int step = rest[widest]->first;
        for (size_t i = 0; i < n; i++)
            if (rest[i] && rest[i]->first <= step && step <= rest[i]->last) {
                order[taken++] = rest[i];
                rest[i] = NULL;
            }
    }
    free(alive);
    free(rest);
    return ready ? STRATA_OK : STRATA_ENOMEM;
}

static int64_t place_in_order(struct arena_block **order, size_t n,
                              struct arena_block **placed)
{
    int64_t peak = 0;
    for (size_t i = 0; i < n; i++) {
        order[i]->offset = lowest_gap(order[i], placed, i);
        insert(placed, i, order[i]);
        if (peak < order[i]->offset + order[i]->bytes)
            peak = order[i]->offset + order[i]->bytes;
    }
    return peak;
}

static void move(struct arena_block **order, size_t from, size_t to)
{
    struct arena_block *block = order[from];
    memmove(&order[to + 1], &order[to], (from - to) * sizeof *order);
    order[to] = block;
}

/* Search work in pairs of blocks compared, so that large networks stay quick. */
enum { SEARCH_PAIRS = 20000000, SEARCH_ROUNDS = 2000 };

/* Move a block that reaches the top to a random earlier place; keep what is no worse. */
static int64_t search(struct arena_block **order, size_t n, struct arena_block **placed,
                      struct arena_block **best, int64_t peak, int64_t bound)
{
    uint64_t state = 1;
    size_t rounds = SEARCH_PAIRS / (n * n + 1);
    rounds = rounds < SEARCH_ROUNDS ? rounds : SEARCH_ROUNDS;
    memcpy(best, order, n * sizeof *best);
    for (size_t round = 0; round < rounds && peak > bound; round++) {
        size_t at = 0;
        while (order[at]->offset + order[at]->bytes < peak)
            at++;
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (at > 0)
            move(order, at, (size_t)(state >> 33) % at);
        if (round % 2 || at == 0) { /* and any other, to leave a dead end */
            size_t from = (size_t)(state >> 17) % n;
            move(order, from, from ? (size_t)(state >> 40) % from : 0);
        }
        int64_t now = place_in_order(order, n, placed);
        if (now <= peak) {
            peak = now;
            memcpy(best, order, n * sizeof *best);
        } else {
            memcpy(order, best, n * sizeof *best);
            place_in_order(order, n, placed);
        }
    }
    return peak;
}

static int round_sizes(struct arena_block *blocks, size_t n, strata_error *err)
{
    int64_t total = 0;
    for (size_t i = 0; i < n; i++)
        if (!checked_round_up(blocks[i].bytes, TENSOR_ALIGNMENT, &blocks[i].bytes) ||
            !checked_add(total, blocks[i].bytes, &total))
            return error_set(err, STRATA_EOVERFLOW, "the network's tensors overflow");
    return STRATA_OK;
}

int arena_place(struct arena_block *blocks, size_t n, int64_t *peak, int64_t *bound,
                strata_error *err)
{
    int status = STRATA_ENOMEM;
    struct arena_block **order = zalloc(n, sizeof *order, "the arena planner", err);
    struct arena_block **other = zalloc(n, sizeof *other, "the arena planner", err);
    struct arena_block **placed = zalloc(n, sizeof *placed, "the arena planner", err);
    *peak = *bound = 0;
    if (!order || !other || !placed ||
        (status = round_sizes(blocks, n, err)) != STRATA_OK)
        goto done;
    for (size_t i = 0; i < n; i++)
        order[i] = other[i] = &blocks[i];
    if (n > 0) {
        qsort(order, n, sizeof *order, by_size);
        memcpy(other, order, n * sizeof *other);
    }
    *bound = lower_bound(blocks, n);
    *peak = place_in_order(order, n, placed);
    if (*peak == *bound)
        goto done;
    if ((status = order_by_breadth(blocks, n, other, err)) != STRATA_OK)
        goto done;
    int64_t by_breadth = place_in_order(other, n, placed);
    if (by_breadth < *peak)
        memcpy(order, other, n * sizeof *order);
    *peak = place_in_order(order, n, placed);
    *peak = search(order, n, placed, other, *peak, *bound);
done:
    free(order);
    free(other);
    free(placed);
    return status;
}
