/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ArgMax: axes, ties, NaN, integers, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define INTS                                                                             \
    (1 << STRATA_INT8 | 1 << STRATA_UINT8 | 1 << STRATA_INT32 | 1 << STRATA_INT64)
#define FEW .low = -1, .high = 1, .integers = true /* many are equal */

static const struct layer_case cases[] = {
    {"ArgMax", "axis = 1", .sweep = 4},
    {"ArgMax", "", .in = {S4(3, 9, 5, 7)}},
    {"ArgMax", "axis = 2; op = min", .in = {S4(3, 9, 5, 7)}},
    {"ArgMax", "axis = -1; keep_dims = no", .in = {S4(3, 9, 5, 7)}},
    {"ArgMax", "axis = 1; keep_dims = no", .in = {S4(3, 9, 5, 7)}},
    {"ArgMax", "axis = 1; index = i32", .in = {S2(5, 1000)}},
    {"ArgMax", "axis = 1; op = min", .in = {S2(5, 9001)}},
    {"ArgMax", "axis = 0", .in = {S1(77)}},
    {"ArgMax", "axis = 0; keep_dims = no", .in = {S1(77)}},
    {"ArgMax", "axis = 1", .in = {S2(9, 200)}, FEW, .dtypes = INTS},
    {"ArgMax", "axis = 1; ties = last", .in = {S2(9, 9000)}, FEW, .dtypes = INTS},
    {"ArgMax", "axis = 0; ties = last", .in = {S2(20, 300)}, FEW, .dtypes = INTS},
    {"ArgMax", "axis = 0; ties = last; op = min", .in = {S2(20, 300)}, FEW},
    {"ArgMax", "axis = 1; op = min", .in = {S3(4, 20, 3)}, FEW, .dtypes = INTS},
    {"ArgMax", "axis = 1", .in = {S2(5, 90)}, .dtypes = INTS,
     .numbers = NUMBERS_WHOLE_RANGE},
    {"ArgMax", "axis = 1", .in = {S2(5, 90)}, .numbers = NUMBERS_NAN},
    {"ArgMax", "axis = 1; op = min; ties = last", .in = {S2(5, 90)},
     .numbers = NUMBERS_NAN},
    {"ArgMax", "axis = 0", .in = {S2(90, 5)}, .numbers = NUMBERS_NAN},
    {"ArgMax", "axis = 0; op = min; ties = last", .in = {S2(90, 5)},
     .numbers = NUMBERS_NAN},
    {"ArgMax", "axis = 1", .in = {S2(5, 90)}, .numbers = NUMBERS_NEGATIVE_INFINITE},
    {"ArgMax", "axis = 2", .in = {S2(3, 4)}, .refused = true},
    {"ArgMax", "axis = 1", .in = {S2(3, 0)}, .refused = true},
};

static const struct layer_case large[] = {
    {"ArgMax", "axis = 1", .in = {S2(64, 50000)}},
    {"ArgMax", "axis = 1; op = min; ties = last", .in = {S2(3, 50001)}, FEW},
    {"ArgMax", "axis = 1", .in = {S2(2000, 1000)}},
    {"ArgMax", "axis = 1", .in = {S4(2, 21, 130, 128)}},
    {"ArgMax", "axis = 0", .in = {S2(5000, 40)}, .dtypes = INTS},
};

LAYER_CASES(ArgMax, ORDINARY(cases), LARGE(large))
