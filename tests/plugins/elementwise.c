/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ElementWise: operations, then broadcasting, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define PAIR .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}
#define WHOLE                                                                            \
    .may_refuse = true,                                                                  \
    .dtypes = 1 << STRATA_INT8 | 1 << STRATA_UINT8 | 1 << STRATA_INT32 | 1 << STRATA_INT64
#define WRAPPING WHOLE, .numbers = NUMBERS_WHOLE_RANGE

static const struct layer_case cases[] = {
    {"ElementWise", "", .sweep = 4, .n_in = 2},
    {"ElementWise", "op = sub", .sweep = 3, .n_in = 2},
    {"ElementWise", "op = product", .sweep = 5, .n_in = 2},
    {"ElementWise", "op = div", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)},
     .low = 0.5, .high = 2},
    {"ElementWise", "op = max", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}},
    {"ElementWise", "op = min", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}},
    /* One value for rows that are long, or long together. */
    {"ElementWise", "op = sub", .n_in = 2, .in = {S2(5, 700), S2(5, 1)}},
    {"ElementWise", "op = div", .n_in = 2, .in = {S3(4, 3, 700), S3(4, 1, 1)},
     .low = 0.5, .high = 2},
    {"ElementWise", "op = max", .n_in = 2, .in = {S4(2, 9, 23, 29), S4(1, 9, 1, 1)}},
    {"ElementWise", "op = min", .n_in = 2, .in = {S2(3, 300), S2(1, 1)}},
    {"ElementWise", "op = product", .n_in = 3, .in = {S2(3, 700), S2(3, 1), S2(1, 1)}},
    {"ElementWise", "op = pow", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)},
     .low = 0.5, .high = 2},
    {"ElementWise", "op = sum", .n_in = 3,
     .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7), S4(3, 9, 5, 7)}},
    {"ElementWise", "op = product", .n_in = 4,
     .in = {S4(3, 9, 5, 7), S4(1, 9, 1, 1), S4(3, 1, 5, 7), S4(1, 1, 1, 1)}},
    {"ElementWise", "op = max", .n_in = 3,
     .in = {S4(1, 9, 5, 7), S4(1, 9, 5, 7), S4(1, 9, 1, 7)}},
    {"ElementWise", "op = min", .n_in = 3,
     .in = {S4(1, 9, 5, 7), S4(1, 1, 5, 7), S4(1, 9, 5, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 16, 5, 7), S4(1, 16, 1, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(1, 17, 1, 1), S4(3, 17, 5, 7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 1, 5, 7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 9, 1, 7), S4(1, 9, 5, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(1, 1, 1, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(1, 1, 1, 1), S4(3, 3, 5, 7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S2(3, 17), S2(1, 17)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S2(3, 17), S2(3, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S1(700), S1(700)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S5(3, 9, 2, 5, 7), S5(1, 9, 2, 1, 7)}},
    {"ElementWise", "op = sum", .n_in = 2, .in = {S4(1, 33, 32, 33), S4(1, 33, 32, 33)}},
    {"ElementWise", "op = sum", .n_in = 2, .in = {S4(1, 33, 32, 33), S4(1, 33, 1, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S3(2, 0, 4), S1(4)}},
    {"ElementWise", "op = sub", .n_in = 3, .refused = true,
     .in = {S2(3, 3), S2(3, 3), S2(3, 3)}},
    {"ElementWise", "", .n_in = 2, .in = {S2(3, 3), S2(3, 4)}, .refused = true},
    {"ElementWise", "op = mean", .n_in = 2, .in = {S1(3), S1(3)},
     .in_dtype = {STRATA_INT32, STRATA_INT32}, .refused = true},
    {"ElementWise", "op = and", .n_in = 2, .in = {S1(3), S1(3)}, .refused = true},
    {"ElementWise", "op = bit_or", .n_in = 2, .in = {S1(3), S1(3)}, .refused = true},
    {"ElementWise", "", .n_in = 2, .in = {S1(3), S1(3)},
     .in_dtype = {STRATA_INT32, STRATA_INT64}, .refused = true},
    /* Lower ranks stand for the last dims. */
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 9, 5, 7), S1(7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S3(9, 1, 1), S4(3, 9, 5, 7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 9, 5, 7), S2(5, 7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S4(3, 16, 5, 7), S3(16, 1, 1)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S1(1), S3(3, 9, 7)}},
    {"ElementWise", "op = sub", .n_in = 2, .in = {S2(9, 1), S3(3, 1, 7)}},
    {"ElementWise", "op = sum", .n_in = 3, .in = {S1(7), S2(5, 1), S4(3, 9, 5, 7)}},
    /* Integers, which wrap; truths; powers of two dtypes. */
    {"ElementWise", "op = sum", PAIR, WRAPPING},
    {"ElementWise", "op = sub", PAIR, WRAPPING},
    {"ElementWise", "op = product", PAIR, WRAPPING},
    {"ElementWise", "op = div", PAIR, WRAPPING},
    {"ElementWise", "op = mod", PAIR, WRAPPING},
    {"ElementWise", "op = mod; fmod = yes", PAIR, WRAPPING},
    {"ElementWise", "op = max", PAIR, WRAPPING},
    {"ElementWise", "op = min", PAIR, WRAPPING},
    {"ElementWise", "op = bit_and", PAIR, WRAPPING},
    {"ElementWise", "op = bit_or", PAIR, WRAPPING},
    {"ElementWise", "op = bit_xor", PAIR, WRAPPING},
    {"ElementWise", "op = pow", PAIR, WRAPPING},
    {"ElementWise", "op = div", PAIR, WHOLE, .low = -5, .high = 5},
    {"ElementWise", "op = mod", PAIR, WHOLE, .low = -5, .high = 5},
    {"ElementWise", "op = mod; fmod = yes", PAIR, WHOLE, .low = -5, .high = 5},
    {"ElementWise", "op = pow", PAIR, WHOLE, .low = -5, .high = 5},
    {"ElementWise", "op = shift_left", PAIR, WHOLE, .low = -2, .high = 70},
    {"ElementWise", "op = shift_right", PAIR, WHOLE, .low = -2, .high = 70},
    {"ElementWise", "op = sum", .n_in = 3, .in = {S2(33, 65), S2(33, 65), S1(65)},
     WRAPPING},
    {"ElementWise", "op = and", PAIR, .in_dtype = {STRATA_BOOL8, STRATA_BOOL8}},
    {"ElementWise", "op = or", PAIR, .in_dtype = {STRATA_BOOL8, STRATA_BOOL8}},
    {"ElementWise", "op = xor", PAIR, .in_dtype = {STRATA_BOOL8, STRATA_BOOL8}},
    {"ElementWise", "op = mod", PAIR, .low = 0.5, .high = 9},
    {"ElementWise", "op = mod; fmod = yes", PAIR, .low = 0.5, .high = 9},
    {"ElementWise", "op = mean", .n_in = 3,
     .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7), S1(7)}},
    {"ElementWise", "op = mean", PAIR},
    {"ElementWise", "op = pow", PAIR, .in_dtype = {STRATA_FP32, STRATA_INT32},
     .low = 1, .high = 3},
    {"ElementWise", "op = pow", PAIR, .in_dtype = {STRATA_FP32, STRATA_INT64},
     .low = 1, .high = 3},
    {"ElementWise", "op = pow", PAIR, .in_dtype = {STRATA_INT32, STRATA_FP32},
     .low = 1, .high = 3, .integers = true, .may_refuse = true}, /* by CUDA impls */
    {"ElementWise", "op = pow", PAIR, .in_dtype = {STRATA_INT64, STRATA_INT32},
     .low = -5, .high = 5, .may_refuse = true},
};

static const struct layer_case large[] = {
    {"ElementWise", "op = product", .n_in = 2,
     .in = {S4(4, 65, 57, 61), S4(4, 65, 1, 1)}},
    {"ElementWise", "op = sum", .n_in = 3,
     .in = {S4(2, 72, 57, 61), S4(2, 72, 57, 61), S4(1, 72, 1, 1)}},
};

LAYER_CASES(ElementWise, ORDINARY(cases), LARGE(large))
