/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Gather: modes, indices from both ends and beyond them, rows shorter and longer
 * than the widest words, every type, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Gather", "", .n_in = 2, .in = {S2(9, 7), S1(5)}, INDICES(9)},
    {"Gather", "axis = 1", .n_in = 2, .in = {S3(3, 9, 7), S2(2, 4)}, INDICES(9)},
    {"Gather", "axis = -1", .n_in = 2, .in = {S3(3, 5, 7), S1(11)}, INDICES(7)},
    {"Gather", "axis = 1", .n_in = 2, .in = {S4(3, 9, 5, 8), S1(1)}, INDICES(9)},
    {"Gather", "axis = 2; batch_dims = 1", .n_in = 2, .in = {S4(3, 4, 6, 5), S2(3, 7)},
     INDICES(6)},
    {"Gather", "axis = 1; batch_dims = 1", .n_in = 2, .in = {S2(3, 6), S3(3, 2, 2)},
     INDICES(6)},
    {"Gather", "", .n_in = 2, .in = {S2(37, 1000), S1(300)}, INDICES(37)},
    {"Gather", "", .n_in = 2, .in = {S1(7), S1(1)}, .in_dtype = {[1] = STRATA_INT32},
     .in_range = {[1] = {-7, 6}}},
    {"Gather", "axis = 1", .n_in = 2, .in = {S3(3, 9, 7), S2(2, 4)}, MOVED,
     .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {-10, 9}}},
    {"Gather", "mode = elements", .n_in = 2, .in = {S2(9, 7), S2(12, 7)}, INDICES(9)},
    {"Gather", "mode = elements; axis = 1", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(3, 4, 5, 7)}, INDICES(9)},
    {"Gather", "mode = elements; axis = 1", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(2, 11, 4, 6)}, INDICES(9)},
    {"Gather", "mode = elements; axis = -1", .n_in = 2, .in = {S3(3, 5, 7), S3(3, 5, 9)},
     MOVED, INDICES(7)},
    {"Gather", "mode = elements", .n_in = 2, .in = {S2(60, 700), S2(60, 700)},
     INDICES(60)},
    /* Of 64 indices in a row most are inside, some are not. */
    {"Gather", "mode = elements; axis = -1", .n_in = 2, .in = {S2(7, 700), S2(7, 650)},
     .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {-1, 700}}},
    {"Gather", "mode = elements", .n_in = 2, .in = {S2(700, 90), S2(7, 90)},
     .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {-1, 700}}},
    {"Gather", "mode = nd", .n_in = 2, .in = {S3(4, 4, 7), S2(5, 2)}, INDICES(4)},
    {"Gather", "mode = nd", .n_in = 2, .in = {S3(4, 5, 4), S3(2, 3, 3)}, INDICES(4)},
    {"Gather", "mode = nd; batch_dims = 1", .n_in = 2,
     .in = {S4(3, 4, 6, 5), S3(3, 7, 1)}, INDICES(4)},
    {"Gather", "mode = nd; batch_dims = 2", .n_in = 2,
     .in = {S4(3, 4, 6, 5), S3(3, 4, 2)}, MOVED, INDICES(5)},
    {"Gather", "mode = nd", .n_in = 2, .in = {S1(9), S1(1)}, INDICES(9)},
    {"Gather", "", .n_in = 2, .in = {S2(9, 7), S1(0)}, INDICES(9)},
    {"Gather", "", .n_in = 2, .in = {S2(0, 7), S1(3)}, INDICES(1), .refused = true},
    {"Gather", "", .n_in = 2, .in = {S2(9, 7), S1(5)}, .refused = true},
    {"Gather", "axis = 2", .n_in = 2, .in = {S2(9, 7), S1(5)}, INDICES(9),
     .refused = true},
    {"Gather", "batch_dims = 1", .n_in = 2, .in = {S2(9, 7), S2(9, 3)}, INDICES(9),
     .refused = true},
    {"Gather", "axis = 1; batch_dims = 1", .n_in = 2, .in = {S2(9, 7), S2(8, 3)},
     INDICES(7), .refused = true},
    {"Gather", "mode = elements", .n_in = 2, .in = {S2(9, 7), S1(5)}, INDICES(9),
     .refused = true},
    {"Gather", "mode = elements", .n_in = 2, .in = {S2(9, 7), S2(5, 8)}, INDICES(9),
     .refused = true},
    {"Gather", "mode = nd", .n_in = 2, .in = {S2(9, 7), S2(5, 3)}, INDICES(7),
     .refused = true},
    {"Gather", "mode = nd; batch_dims = 2", .n_in = 2, .in = {S2(9, 7), S2(9, 7)},
     INDICES(7), .refused = true},
};

static const struct layer_case large[] = {
    {"Gather", "", .n_in = 2, .in = {S2(500, 4096), S1(1000)}, INDICES(500)},
    {"Gather", "axis = 1", .n_in = 2, .in = {S3(64, 1000, 33), S1(700)}, INDICES(1000)},
};

LAYER_CASES(Gather, ORDINARY(cases), LARGE(large))
