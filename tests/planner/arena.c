/* SPDX-License-Identifier: Apache-2.0
 *
 * Arena placement.
 */
#include "core/alloc.h"
#include "planner/arena.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(arena, blocks_alive_together_never_overlap)
{
    struct arena_block blocks[64];
    int64_t peak, bound;
    srand(5);
    for (int round = 0; round < 300; round++) {
        size_t n = (size_t)(1 + rand() % 64);
        for (size_t i = 0; i < n; i++) {
            int first = rand() % 40;
            blocks[i] =
                (struct arena_block){rand() % 100000, first, first + rand() % 8, -1};
        }
        cr_assert_eq(arena_place(blocks, n, &peak, &bound, NULL), STRATA_OK);
        cr_expect_leq(bound, peak);
        for (size_t i = 0; i < n; i++) {
            cr_expect_eq(blocks[i].offset % TENSOR_ALIGNMENT, 0);
            cr_expect_geq(blocks[i].offset, 0);
            cr_expect_leq(blocks[i].offset + blocks[i].bytes, peak);
            for (size_t j = 0; j < i; j++)
                cr_expect(blocks[i].last < blocks[j].first ||
                              blocks[j].last < blocks[i].first ||
                              blocks[i].offset + blocks[i].bytes <= blocks[j].offset ||
                              blocks[j].offset + blocks[j].bytes <= blocks[i].offset,
                          "round %d: blocks %zu and %zu overlap", round, i, j);
        }
    }
}

/* Blocks that begin in turn, so that those before b alive with it are near it. */
Test(arena, more_blocks_than_are_searched_never_overlap)
{
    enum { N = 4 * ARENA_SEARCHED, SPAN = 12 };
    struct arena_block *blocks = zalloc(N, sizeof *blocks, "blocks", NULL);
    int64_t peak, bound;
    srand(6);
    for (int i = 0; i < N; i++)
        blocks[i] = (struct arena_block){rand() % 100000, i / 3, i / 3 + rand() % SPAN, -1};
    cr_assert_eq(arena_place(blocks, N, &peak, &bound, NULL), STRATA_OK);
    cr_expect_leq(bound, peak);
    cr_expect_leq(peak, bound + bound / 2, "%lld of %lld", (long long)peak,
                  (long long)bound);
    for (int i = 0; i < N; i++) {
        cr_assert_geq(blocks[i].offset, 0);
        cr_assert_leq(blocks[i].offset + blocks[i].bytes, peak);
        for (int j = i < 3 * SPAN ? 0 : i - 3 * SPAN; j < i; j++)
            cr_assert(blocks[j].last < blocks[i].first ||
                          blocks[i].offset + blocks[i].bytes <= blocks[j].offset ||
                          blocks[j].offset + blocks[j].bytes <= blocks[i].offset,
                      "blocks %d and %d overlap", i, j);
    }
    free(blocks);
}

Test(arena, a_chain_takes_its_lower_bound)
{
    struct arena_block blocks[] = {
        {1000, 0, 1, 0}, {5000, 1, 2, 0}, {2000, 2, 3, 0}, {256, 3, 4, 0}};
    int64_t peak, bound;
    cr_assert_eq(arena_place(blocks, 4, &peak, &bound, NULL), STRATA_OK);
    cr_expect_eq(bound, 5120 + 2048);
    cr_expect_eq(peak, bound);
}

Test(arena, orders_other_than_by_size_are_tried)
{
    struct arena_block blocks[48];
    int64_t peak, bound, sum = 0, bounds = 0;
    srand(11);
    for (int round = 0; round < 100; round++) {
        size_t n = 48;
        for (size_t i = 0; i < n; i++) {
            int first = rand() % 40;
            blocks[i] = (struct arena_block){256 * (1 + rand() % 64), first,
                                             first + 1 + rand() % 6, -1};
        }
        cr_assert_eq(arena_place(blocks, n, &peak, &bound, NULL), STRATA_OK);
        cr_expect_leq((double)peak, 1.15 * (double)bound, "round %d", round);
        sum += peak;
        bounds += bound;
    }
    cr_expect_leq((double)sum, 1.01 * (double)bounds, "%g over the bound on average",
                  (double)sum / (double)bounds - 1);
}

Test(arena, the_same_blocks_get_the_same_offsets)
{
    struct arena_block a[40], b[40];
    int64_t peak, bound;
    srand(3);
    for (size_t i = 0; i < 40; i++) {
        int first = rand() % 20;
        a[i] = b[i] = (struct arena_block){rand() % 9999, first, first + rand() % 9, -1};
    }
    cr_assert_eq(arena_place(a, 40, &peak, &bound, NULL), STRATA_OK);
    cr_assert_eq(arena_place(b, 40, &peak, &bound, NULL), STRATA_OK);
    for (size_t i = 0; i < 40; i++)
        cr_expect_eq(a[i].offset, b[i].offset, "block %zu", i);
}

/* Largest first gives 6144 and 6912. */
Test(arena, reaches_the_bound_where_one_order_does_not)
{
    struct arena_block a[] = {{1024, 2, 4, 0},
                              {1536, 0, 0, 0},
                              {2048, 4, 5, 0},
                              {1280, 0, 3, 0},
                              {1792, 3, 5, 0}};
    struct arena_block b[] = {{1536, 4, 6, 0}, {2048, 2, 2, 0}, {1792, 1, 3, 0},
                              {1792, 1, 3, 0}, {1280, 1, 1, 0}, {1280, 3, 6, 0}};
    int64_t peak, bound;
    cr_assert_eq(arena_place(a, ARRAY_LENGTH(a), &peak, &bound, NULL), STRATA_OK);
    cr_expect_eq(bound, 4864);
    cr_expect_eq(peak, bound);
    cr_assert_eq(arena_place(b, ARRAY_LENGTH(b), &peak, &bound, NULL), STRATA_OK);
    cr_expect_eq(bound, 5632);
    cr_expect_eq(peak, bound);
}

Test(arena, sizes_that_overflow_are_refused)
{
    struct arena_block blocks[] = {{INT64_MAX / 2, 0, 1, 0},
                                   {INT64_MAX / 2 + 2, 0, 1, 0}};
    int64_t peak, bound;
    strata_error err = {0};
    cr_expect_eq(arena_place(blocks, 2, &peak, &bound, &err), STRATA_EOVERFLOW);
    cr_expect_gt(err.length, 0);
}

Test(arena, no_blocks_take_no_memory)
{
    int64_t peak = 1, bound = 1;
    cr_expect_eq(arena_place(NULL, 0, &peak, &bound, NULL), STRATA_OK);
    cr_expect_eq(peak, 0);
    cr_expect_eq(bound, 0);
}
