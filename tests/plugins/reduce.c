/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Reduce: every op, every pattern of kept and reduced dims, numbers that are
 * hard to add, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define INTS                                                                             \
    (1 << STRATA_INT8 | 1 << STRATA_UINT8 | 1 << STRATA_INT32 | 1 << STRATA_INT64)
#define BOOLS (1 << STRATA_BOOL8)

static const struct layer_case cases[] = {
    {"Reduce", "axes = 2, 3", .sweep = 4},
    {"Reduce", "op = mean; axes = -1, -2", .sweep = 4},
    {"Reduce", "op = max; axes = 2", .sweep = 3},
    {"Reduce", "op = mean; axes = 2, 3; keep_dims = no", .sweep = 4},
    {"Reduce", "", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "keep_dims = no", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 0", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 0; keep_dims = no", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 1", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 1; keep_dims = no", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 2", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 3", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 0, 2", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 3, 1", .in = {S4(3, 9, 5, 7)}},
    {"Reduce", "axes = 0, 1, 3", .in = {S4(3, 17, 5, 7)}},
    {"Reduce", "axes = 1, 2, 3", .in = {S4(3, 17, 5, 7)}},
    {"Reduce", "axes = 0, 2, 4; keep_dims = no", .in = {S5(3, 4, 5, 6, 7)}},
    {"Reduce", "axes = 2, 3, 4; op = mean", .in = {S5(2, 9, 5, 6, 7)}},
    {"Reduce", "op = mean; axes = 1", .in = {S2(5, 1000)}},
    {"Reduce", "op = max; axes = 1", .in = {S2(5, 777)}, .low = -50, .high = -10},
    {"Reduce", "op = min; axes = 0", .in = {S2(129, 33)}},
    {"Reduce", "op = prod; axes = 1", .in = {S2(9, 12)}, .low = 0.5, .high = 1.5},
    {"Reduce", "op = l1; axes = 1", .in = {S3(4, 50, 3)}},
    {"Reduce", "op = l2; axes = 1", .in = {S3(4, 50, 3)}},
    {"Reduce", "op = l2", .in = {S2(300, 400)}},
    {"Reduce", "op = sum_square; axes = 2", .in = {S3(4, 5, 70)}},
    {"Reduce", "op = log_sum; axes = 1", .in = {S2(4, 50)}, .low = 0.25, .high = 3},
    {"Reduce", "op = log_sum_exp; axes = 1", .in = {S2(4, 50)}},
    {"Reduce", "op = log_sum_exp; axes = 0", .in = {S2(50, 70)}, .low = -20, .high = 10},
    {"Reduce", "op = log_sum_exp; axes = 1", .in = {S3(2, 70, 5)}, .low = 60, .high = 90},
    {"Reduce", "op = mean", .in = {S3(3, 100, 300)}, .low = 7, .high = 9},
    {"Reduce", "op = log_sum_exp", .in = {S2(300, 400)}},
    {"Reduce", "op = max", .in = {S2(300, 401)}},
    {"Reduce", "op = max; axes = 1", .in = {S2(5, 90)}, .numbers = NUMBERS_NAN},
    {"Reduce", "op = min; axes = 1", .in = {S3(5, 90, 3)}, .numbers = NUMBERS_NAN},
    {"Reduce", "op = mean; axes = 1", .in = {S2(5, 90)}, .numbers = NUMBERS_NAN},
    {"Reduce", "op = log_sum_exp; axes = 1", .in = {S2(5, 90)},
     .numbers = NUMBERS_INFINITE},
    {"Reduce", "op = log_sum_exp; axes = 1", .in = {S2(5, 90)},
     .numbers = NUMBERS_NEGATIVE_INFINITE},
    {"Reduce", "axes = 1", .in = {S3(4, 50, 3)}, INTEGERS},
    {"Reduce", "axes = 2", .in = {S3(4, 5, 70)}, INTEGERS},
    {"Reduce", "op = mean", .in = {S3(4, 5, 70)}, .low = -100, .high = 30,
     .dtypes = INTS},
    {"Reduce", "op = mean; axes = 0", .in = {S2(70, 3)}, .low = -100, .high = 30,
     .dtypes = INTS},
    {"Reduce", "op = max; axes = 0", .in = {S2(70, 3)}, .dtypes = INTS | BOOLS},
    {"Reduce", "op = min; axes = 1", .in = {S2(7, 30)}, .dtypes = INTS | BOOLS},
    {"Reduce", "op = prod; axes = 1", .in = {S2(7, 30)}, .dtypes = INTS,
     .numbers = NUMBERS_WHOLE_RANGE},
    {"Reduce", "op = l1; axes = 1", .in = {S2(7, 30)}, .dtypes = INTS,
     .numbers = NUMBERS_WHOLE_RANGE},
    {"Reduce", "op = sum_square", .in = {S2(700, 300)}, .dtypes = INTS,
     .numbers = NUMBERS_WHOLE_RANGE},
    {"Reduce", "op = max; axes = 1", .in = {S2(3, 0)}, INTEGERS},
    {"Reduce", "op = min; axes = 1", .in = {S2(3, 0)}, .dtypes = INTS | BOOLS},
    {"Reduce", "op = sum; axes = 0", .in = {S2(0, 3)}, INTEGERS},
    {"Reduce", "op = prod", .in = {S2(0, 3)}, INTEGERS},
    {"Reduce", "op = mean; axes = 1; keep_dims = no", .in = {S3(2, 0, 3)}},
    {"Reduce", "op = log_sum; axes = 1", .in = {S2(3, 0)}},
    {"Reduce", "op = log_sum_exp; axes = 1", .in = {S2(3, 0)}},
    {"Reduce", "op = l2; axes = 1", .in = {S2(3, 0)}},
    {"Reduce", "op = l2", .in = {S2(3, 4)}, .in_dtype = {STRATA_INT32}, .refused = true},
    {"Reduce", "op = sum", .in = {S2(3, 4)}, .in_dtype = {STRATA_BOOL8}, .refused = true},
    {"Reduce", "axes = 4", .in = {S4(1, 2, 3, 4)}, .refused = true},
    {"Reduce", "axes = 1, -3", .in = {S4(1, 2, 3, 4)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Reduce", "axes = 1", .in = {S2(300, 4096)}},
    {"Reduce", "axes = 1", .in = {S2(1201, 3000)}},
    {"Reduce", "op = prod; axes = 1", .in = {S2(1201, 104)}, .low = 0.9, .high = 1.1},
    {"Reduce", "op = mean; axes = 0, 2", .in = {S4(30, 5, 40, 264)}},
    {"Reduce", "axes = 0", .in = {S2(3000, 520)}},
    {"Reduce", "axes = 0", .in = {S2(3000, 3)}},
    {"Reduce", "", .in = {S2(1000, 1031)}},
    {"Reduce", "op = mean; axes = 2, 3", .in = {S4(4, 64, 56, 56)}},
    {"Reduce", "op = log_sum_exp; axes = 1", .in = {S2(3, 100003)}},
    {"Reduce", "op = max; axes = 0, 2", .in = {S3(40, 70, 300)}},
};

LAYER_CASES(Reduce, ORDINARY(cases), LARGE(large))
