/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena placement by liveness. Blocks are placed one by one at the lowest place they fit,
 * largest first (greedy by size, Pisarchyk and Lee, 2020). If the peak misses the bound,
 * the block on top goes to the front of the order and all are placed again, round by
 * round; then the same from the longest-lived first. The lowest peak is kept. More blocks
 * than ARENA_SEARCHED, which would each be compared with all, are placed in the order of
 * time instead, by best fit.
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

static int by_first(const void *a, const void *b)
{
    const struct arena_block *x = *(struct arena_block *const *)a;
    const struct arena_block *y = *(struct arena_block *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : by_size(a, b);
}

static int by_last(const void *a, const void *b)
{
    const struct arena_block *x = *(struct arena_block *const *)a;
    const struct arena_block *y = *(struct arena_block *const *)b;
    return x->last != y->last ? (x->last < y->last ? -1 : 1) : x < y ? -1 : x > y;
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

/* The bytes alive change only where a block begins, so its first steps suffice. begun and
 * ended: the blocks by their first and by their last step. */
static int64_t lower_bound(struct arena_block *const *begun,
                           struct arena_block *const *ended, size_t n)
{
    int64_t most = 0, alive = 0;
    for (size_t i = 0, e = 0; i < n; i++) {
        for (; ended[e]->last < begun[i]->first; e++)
            alive -= ended[e]->bytes;
        alive += begun[i]->bytes;
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

/* ---- more than a search can place ------------------------------------------------ */

/* Memory between blocks, by offset; the last one has no end. */
struct gaps {
    struct gap {
        int64_t begin, end;
    } *list;
    size_t n;
};

static size_t gap_after(const struct gaps *g, int64_t offset)
{
    size_t low = 0, high = g->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (g->list[middle].begin < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_gap(struct gaps *g, size_t i)
{
    memmove(&g->list[i], &g->list[i + 1], (--g->n - i) * sizeof *g->list);
}

/* Of the gaps that are large enough the smallest, and of those the lowest. */
static int64_t take_gap(struct gaps *g, int64_t bytes)
{
    size_t best = g->n - 1;
    for (size_t i = 0; i + 1 < g->n; i++) {
        int64_t size = g->list[i].end - g->list[i].begin;
        if (size >= bytes && size < g->list[best].end - g->list[best].begin)
            best = i;
    }
    int64_t offset = g->list[best].begin;
    g->list[best].begin += bytes;
    if (g->list[best].begin == g->list[best].end)
        remove_gap(g, best);
    return offset;
}

/* There is room for a gap beside each block that is placed. */
static void give_gap(struct gaps *g, int64_t offset, int64_t bytes)
{
    size_t i = gap_after(g, offset);
    struct gap *next = &g->list[i];
    if (i > 0 && next[-1].end == offset) {
        next[-1].end = offset + bytes;
        if (next->begin == offset + bytes) {
            next[-1].end = next->end;
            remove_gap(g, i);
        }
    } else if (next->begin == offset + bytes) {
        next->begin = offset;
    } else {
        memmove(next + 1, next, (g->n++ - i) * sizeof *next);
        *next = (struct gap){offset, offset + bytes};
    }
}

/* Blocks in the order in which they begin, each in the gap that fits it best. */
static int place_by_time(struct arena *a, struct arena_block *const *begun,
                         struct arena_block *const *ended, strata_error *err)
{
    struct gaps g = {zalloc(a->n + 1, sizeof *g.list, "the arena planner", err), 1};
    if (!g.list)
        return STRATA_ENOMEM;
    g.list[0].end = INT64_MAX;
    a->best = 0;
    for (size_t i = 0, e = 0; i < a->n; i++) {
        struct arena_block *b = begun[i];
        for (; ended[e]->last < b->first; e++)
            if (ended[e]->bytes)
                give_gap(&g, ended[e]->offset, ended[e]->bytes);
        b->offset = b->bytes ? take_gap(&g, b->bytes) : 0;
        a->best = b->offset + b->bytes > a->best ? b->offset + b->bytes : a->best;
    }
    free(g.list);
    return STRATA_OK;
}

/* ---- public ---------------------------------------------------------------------- */

static int place(struct arena *a, struct arena_block *blocks, int64_t *bound,
                 strata_error *err)
{
    for (size_t i = 0; i < a->n; i++)
        a->order[i] = a->placed[i] = &blocks[i];
    qsort(a->order, a->n, sizeof *a->order, by_first);
    qsort(a->placed, a->n, sizeof *a->placed, by_last);
    *bound = lower_bound(a->order, a->placed, a->n);
    if (a->n > ARENA_SEARCHED)
        return place_by_time(a, a->order, a->placed, err);
    search(a, blocks, *bound);
    return STRATA_OK;
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
    status = place(&a, blocks, bound, err);
    *peak = a.best;
done:
    free(a.order);
    free(a.placed);
    free(a.offsets);
    return status;
}
