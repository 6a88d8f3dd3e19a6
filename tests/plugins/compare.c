/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Compare: relations of every dtype, NaN, broadcasting, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define PAIR .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}
#define FEW .low = 0, .high = 3, .integers = true
static const struct layer_case cases[] = {
    {"Compare", "", .sweep = 4, .n_in = 2, FEW},
    {"Compare", "op = not_equal", PAIR, FEW},
    {"Compare", "op = less", PAIR, FEW},
    {"Compare", "op = less_equal", PAIR, FEW},
    {"Compare", "op = greater", PAIR, FEW},
    {"Compare", "op = greater_equal", PAIR, FEW},
    {"Compare", "", PAIR, .in_dtype = {STRATA_BOOL8, STRATA_BOOL8}},
    {"Compare", "op = less", PAIR, .in_dtype = {STRATA_INT64, STRATA_INT64},
     .numbers = NUMBERS_WHOLE_RANGE},
    {"Compare", "op = greater", PAIR, .in_dtype = {STRATA_INT32, STRATA_INT32},
     .numbers = NUMBERS_WHOLE_RANGE},
    {"Compare", "op = less", PAIR, .numbers = NUMBERS_NAN},
    {"Compare", "op = not_equal", PAIR, .numbers = NUMBERS_NAN},
    {"Compare", "op = equal", PAIR, .numbers = NUMBERS_INFINITE},
    {"Compare", "op = less", .n_in = 2, .in = {S4(3, 9, 5, 7), S1(7)}, FEW},
    {"Compare", "op = less", .n_in = 2, .in = {S2(9, 1), S3(3, 1, 17)}, FEW},
    {"Compare", "op = less", .n_in = 2, .in = {S1(1), S2(33, 65)}, FEW},
    {"Compare", "op = less", .n_in = 2, .in = {S2(300, 128), S2(300, 128)}, FEW},
    {"Compare", "", .n_in = 2, .in = {S2(5, 517), S1(1)}, FEW},
    {"Compare", "op = not_equal", .n_in = 2, .in = {S2(5, 517), S1(1)}, FEW},
    {"Compare", "op = less", .n_in = 2, .in = {S2(5, 2073), S2(5, 1)}, FEW},
    {"Compare", "op = less_equal", .n_in = 2, .in = {S2(5, 517), S2(5, 1)}, FEW},
    {"Compare", "op = greater", .n_in = 2, .in = {S2(5, 517), S1(1)}, FEW},
    {"Compare", "op = greater_equal", .n_in = 2, .in = {S3(4, 5, 3), S1(1)}, FEW},
    {"Compare", "op = not_equal", .n_in = 2, .in = {S2(2, 517), S1(1)},
     .numbers = NUMBERS_NAN},
    {"Compare", "", .n_in = 2, .in = {S2(0, 3), S1(3)}},
    {"Compare", "", .n_in = 2, .in = {S2(3, 3), S2(3, 4)}, .refused = true},
    {"Compare", "", .n_in = 2, .in = {S1(3), S1(3)},
     .in_dtype = {STRATA_INT32, STRATA_INT64}, .refused = true},
};

static const struct layer_case large[] = {
    {"Compare", "op = less", .n_in = 2, .in = {S2(257, 4099), S2(257, 4099)}, FEW},
};

LAYER_CASES(Compare, ORDINARY(cases), LARGE(large))
