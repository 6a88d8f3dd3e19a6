/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of CumSum: axes, both directions, both ops, integers, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define INTS (1 << STRATA_INT32 | 1 << STRATA_INT64)

static const struct layer_case cases[] = {
    {"CumSum", "", .in = {S2(9, 5)}},
    {"CumSum", "axis = 1", .in = {S2(5, 100)}},
    {"CumSum", "axis = 0; reverse = yes", .in = {S2(7, 5003)}},
    {"CumSum", "axis = 1; exclusive = yes", .in = {S3(2, 6, 2113)}},
    {"CumSum", "axis = -1; exclusive = yes", .in = {S3(3, 4, 300)}},
    {"CumSum", "axis = -1; reverse = yes", .in = {S3(3, 4, 301)}},
    {"CumSum", "axis = 1; reverse = yes; exclusive = yes", .in = {S3(3, 40, 300)}},
    {"CumSum", "axis = 2; exclusive = yes; reverse = yes", .in = {S4(2, 3, 70, 5)}},
    {"CumSum", "axis = 1; op = product", .in = {S2(5, 20)}, .low = 0.5, .high = 1.5},
    {"CumSum", "axis = 0; op = product; exclusive = yes", .in = {S2(20, 7)}, .low = 0.5,
     .high = 1.5},
    {"CumSum", "axis = 1; op = product; exclusive = yes; reverse = yes",
     .in = {S2(9, 23)}, .low = 0.5, .high = 1.5},
    {"CumSum", "axis = 1; op = product; exclusive = yes", .in = {S2(8, 22)}, .low = 0.5,
     .high = 1.5},
    {"CumSum", "axis = 1; reverse = yes", .in = {S2(6, 3)}},
    {"CumSum", "axis = 1; exclusive = yes", .in = {S2(9, 1)}},
    {"CumSum", "axis = 1; reverse = yes", .in = {S2(8, 0)}},
    {"CumSum", "axis = 1", .in = {S2(5, 9)}, .numbers = NUMBERS_NAN},
    {"CumSum", "axis = 1", .in = {S2(2, 9000)}, .low = -1, .high = 1},
    {"CumSum", "axis = 1", .in = {S2(3, 1032)}, .low = -1, .high = 1},
    {"CumSum", "axis = 1; reverse = yes; exclusive = yes", .in = {S2(3, 4104)}, .low = -1,
     .high = 1},
    {"CumSum", "axis = 1; exclusive = yes", .in = {S2(2, 3096)}, .dtypes = INTS,
     .numbers = NUMBERS_WHOLE_RANGE},
    {"CumSum", "axis = 1; op = product; reverse = yes", .in = {S2(2, 6000)}, .low = 0.999,
     .high = 1.001},
    {"CumSum", "axis = 1", .in = {S2(4, 50)}, .low = -50, .high = 50, .dtypes = INTS},
    {"CumSum", "axis = 1; reverse = yes", .in = {S2(4, 50)}, .dtypes = INTS,
     .numbers = NUMBERS_WHOLE_RANGE},
    {"CumSum", "axis = 0; op = product; exclusive = yes", .in = {S2(50, 3)},
     .dtypes = INTS, .numbers = NUMBERS_WHOLE_RANGE},
    {"CumSum", "axis = 1", .in = {S2(3, 60)}, .numbers = NUMBERS_NAN},
    {"CumSum", "axis = 2", .in = {S2(2, 3)}, .refused = true},
};

static const struct layer_case large[] = {
    {"CumSum", "axis = 1", .in = {S2(30, 8192)}, .low = -1, .high = 1},
    {"CumSum", "axis = 1", .in = {S2(5, 6008)}, .low = -1, .high = 1},
    {"CumSum", "axis = 1; exclusive = yes; reverse = yes", .in = {S2(3, 100003)},
     .low = -1, .high = 1, .dtypes = INTS},
    {"CumSum", "axis = 1", .in = {S2(1, 300000)}, .low = -1, .high = 1, .dtypes = INTS},
    {"CumSum", "axis = 0", .in = {S2(3000, 300)}, .low = -1, .high = 1},
    {"CumSum", "axis = 1", .in = {S2(4000, 60)}},
};

LAYER_CASES(CumSum, ORDINARY(cases), LARGE(large))
