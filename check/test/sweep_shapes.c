/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes that cases are run over.
 */
#include "check/test/sweep_shapes.h"

#include <stdlib.h>
#include <string.h>

static int64_t elements(const struct harness_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->rank; d++)
        n *= s->dims[d];
    return n;
}

static int compare_elements(const void *a, const void *b)
{
    const int64_t x = elements(a), y = elements(b);
    return (x > y) - (x < y);
}

size_t sweep_shapes(struct harness_shape *out, int rank, bool thorough)
{
    static const int64_t images[] = {1, 3};
    static const int64_t channels[] = {1, 2, 3, 7, 8, 9, 16, 17};
    static const int64_t sizes[][2] = {{1, 1}, {5, 7}, {6, 4}, {7, 1}, {8, 8}, {7, 7},
                                       {2, 6}, {4, 5}, {1, 5}, {7, 5}, {1, 7}, {5, 1}};
    const size_t n_sizes = rank < 3 ? 1 : thorough ? 12 : 5;
    size_t n = 0;
    for (size_t i = 0; i < (rank == 1 ? 1 : ARRAY_LENGTH(images)); i++)
        for (size_t k = 0; k < ARRAY_LENGTH(channels); k++)
            for (size_t s = 0; s < n_sizes; s++) {
                struct harness_shape *shape = &out[n++];
                *shape = (struct harness_shape){.rank = rank};
                shape->dims[0] = rank == 1 ? channels[k] : images[i];
                shape->dims[1] = channels[k];
                for (int d = 2; d < rank; d++)
                    shape->dims[d] = sizes[s][d % 2];
            }
    for (int64_t side = 3; side < 20; side *= 2) /* what only takes squares */
        if (rank == 2)
            out[n++] = (struct harness_shape){2, {side, side}};
    qsort(out, n, sizeof *out, compare_elements);
    return n;
}

size_t sweep_few_shapes(struct harness_shape *out, int rank)
{
    static const int64_t dims[SWEEP_FEW_SHAPES][5] = {
        {1, 3, 5, 7, 5}, {2, 8, 7, 7, 7}, {3, 9, 7, 5, 5}, {8, 8, 8, 8, 8}};
    for (size_t i = 0; i < SWEEP_FEW_SHAPES; i++) {
        out[i] = (struct harness_shape){.rank = rank};
        memcpy(out[i].dims, dims[i], (size_t)rank * sizeof dims[i][0]);
    }
    return SWEEP_FEW_SHAPES;
}

size_t sweep_large_shapes(struct harness_shape *out, int rank)
{
    static const int64_t dims[SWEEP_LARGE_SHAPES][5] = {
        {2, 17, 31, 33, 3}, {4, 16, 32, 32, 4}, {64, 64, 64, 64, 4}};
    for (size_t i = 0; i < SWEEP_LARGE_SHAPES; i++) {
        out[i] = (struct harness_shape){.rank = rank};
        memcpy(out[i].dims, dims[i], (size_t)rank * sizeof dims[i][0]);
    }
    return rank < 3 ? SWEEP_LARGE_SHAPES : 2;
}
