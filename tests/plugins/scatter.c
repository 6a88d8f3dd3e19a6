/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Scatter: modes and reductions, with indices that meet, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Scatter", "", .n_in = 3, .in = {S2(9, 7), S2(4, 7), S2(4, 7)}, INDICES(9)},
    {"Scatter", "axis = 1", .n_in = 3, .in = {S3(3, 9, 7), S3(2, 30, 5), S3(2, 30, 5)},
     MOVED, INDICES(9)},
    {"Scatter", "axis = -1", .n_in = 3, .in = {S2(3, 5), S2(3, 40), S2(3, 40)},
     .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {-6, 5}}},
    {"Scatter", "reduction = add", .n_in = 3, .in = {S2(9, 7), S2(8, 7), S2(8, 7)},
     INDICES(9), .low = 0, .high = 2},
    {"Scatter", "reduction = mul; axis = 1", .n_in = 3,
     .in = {S3(3, 9, 7), S3(3, 4, 7), S3(3, 4, 7)}, INDICES(9)},
    {"Scatter", "reduction = max", .n_in = 3, .in = {S1(9), S1(40), S1(40)}, INDICES(9)},
    {"Scatter", "reduction = min; axis = 1", .n_in = 3,
     .in = {S2(6, 200), S2(5, 200), S2(5, 200)}, INDICES(200)},
    {"Scatter", "reduction = add", .n_in = 3, .in = {S2(9, 7), S2(8, 7), S2(8, 7)},
     INTEGERS, .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {-9, 8}}},
    {"Scatter", "reduction = max", .n_in = 3, .in = {S2(9, 7), S2(8, 7), S2(8, 7)},
     INTEGERS, .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {-9, 8}}},
    {"Scatter", "mode = nd", .n_in = 3, .in = {S3(4, 4, 7), S2(5, 2), S2(5, 7)},
     INDICES(4)},
    {"Scatter", "mode = nd", .n_in = 3, .in = {S2(9, 300), S2(20, 1), S2(20, 300)}, MOVED,
     INDICES(9)},
    {"Scatter", "mode = nd; reduction = add", .n_in = 3,
     .in = {S3(4, 4, 70), S3(2, 3, 2), S3(2, 3, 70)}, INDICES(4), .low = 0, .high = 2},
    {"Scatter", "mode = nd; reduction = mul", .n_in = 3,
     .in = {S2(9, 7), S2(6, 2), S1(6)}, INDICES(7)},
    {"Scatter", "mode = nd; reduction = min", .n_in = 3, .in = {S1(9), S2(30, 1), S1(30)},
     INDICES(9)},
    {"Scatter", "", .n_in = 3, .in = {S2(9, 7), S2(0, 7), S2(0, 7)}, INDICES(9)},
    {"Scatter", "", .n_in = 3, .in = {S2(9, 7), S2(4, 7), S2(4, 6)}, INDICES(9),
     .refused = true},
    {"Scatter", "", .n_in = 3, .in = {S2(9, 7), S2(4, 8), S2(4, 8)}, INDICES(9),
     .refused = true},
    {"Scatter", "axis = 2", .n_in = 3, .in = {S2(9, 7), S2(4, 7), S2(4, 7)}, INDICES(9),
     .refused = true},
    {"Scatter", "", .n_in = 3, .in = {S2(9, 7), S2(4, 7), S2(4, 7)}, .refused = true},
    {"Scatter", "mode = nd", .n_in = 3, .in = {S2(9, 7), S2(4, 3), S1(4)}, INDICES(7),
     .refused = true},
    {"Scatter", "mode = nd", .n_in = 3, .in = {S2(9, 7), S2(4, 1), S2(4, 6)}, INDICES(7),
     .refused = true},
};

static const struct layer_case large[] = {
    {"Scatter", "axis = 1", .n_in = 3, .in = {S2(700, 900), S2(700, 600), S2(700, 600)},
     INDICES(900)},
};

LAYER_CASES(Scatter, ORDINARY(cases), LARGE(large))
