/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of MatrixMultiply: constant and given second operands either way, addends,
 * broadcasting batches, sizes on and off the borders of tiles and vectors, few rows, and
 * what it must refuse.
 */
#include "tests/layers/cases.h"

#define MM "MatrixMultiply"
#define S8(...) {8, {__VA_ARGS__}}

static const struct layer_case cases[] = {
    /* a weight */
    {MM, "units = 10", .in = {S2(3, 37)}},
    {MM, "units = 70; transpose_b = true", .in = {S2(5, 64)}},
    {MM, "units = 129", .in = {S2(1, 300)}, .absent = 2},
    {MM, "units = 129; transpose_b = true", .in = {S2(1, 300)}},
    {MM, "units = 33; transpose_a = true", .in = {S2(40, 7)}},
    {MM, "units = 48", .in = {S3(2, 8, 16)}},
    {MM, "units = 17; alpha = 0.5", .in = {S4(2, 3, 9, 8)}},
    {MM, "", .in = {S2(2, 24)}, .weight = {S2(24, 11)}},
    {MM, "transpose_b = true", .in = {S2(2, 24)}, .weight = {S2(11, 24)}},
    {MM, "units = 8; transpose_a = true", .in = {S3(3, 16, 5)}},
    /* a second input */
    {MM, "", 0, 2, .in = {S2(7, 5), S2(5, 9)}, .absent = 3},
    {MM, "", 0, 2, .in = {S2(64, 64), S2(64, 64)}, .absent = 3},
    {MM, "transpose_a = true", 0, 2, .in = {S2(16, 24), S2(16, 40)}, .absent = 1},
    {MM, "transpose_b = true; alpha = 0.125", 0, 2,
     .in = {S4(2, 3, 17, 32), S4(2, 3, 19, 32)}, .absent = 3},
    {MM, "transpose_a = true; transpose_b = true", 0, 2,
     .in = {S3(4, 31, 10), S3(4, 12, 31)}, .absent = 3},
    {MM, "", 0, 2, .in = {S4(2, 1, 8, 16), S4(1, 3, 16, 8)}, .absent = 3},
    {MM, "", 0, 2, .in = {S4(2, 3, 4, 8), S2(8, 24)}, .absent = 3},
    {MM, "", 0, 2, .in = {S2(4, 8), S4(2, 3, 8, 24)}, .absent = 3},
    {MM, "", 0, 2, .in = {S3(1, 1, 9), S5(2, 1, 3, 9, 2)}, .absent = 3},
    {MM, "transpose_b = true", 0, 2,
     .in = {S8(1, 2, 1, 2, 3, 1, 3, 8), S8(2, 1, 1, 2, 1, 2, 5, 8)}, .absent = 3},
    {MM, "", 0, 2, .in = {S2(1, 1), S2(1, 1)}, .absent = 3},
    {MM, "", 0, 2, .in = {S3(5, 1, 64), S3(5, 64, 40)}, .absent = 3},
    {MM, "transpose_b = true", 0, 2, .in = {S3(5, 2, 64), S3(5, 33, 64)}, .absent = 3},
    /* an addend */
    {MM, "beta = 2", 0, 3, .in = {S2(6, 8), S2(8, 10), S2(6, 10)}, .absent = 3},
    {MM, "beta = -0.5; alpha = 2", 0, 3, .in = {S2(6, 8), S2(8, 10), S2(6, 1)},
     .absent = 3},
    {MM, "", 0, 3, .in = {S3(2, 6, 8), S3(2, 8, 16), S2(1, 16)}, .absent = 1},
    {MM, "", 0, 3, .in = {S3(2, 6, 8), S3(2, 8, 16), S3(2, 1, 1)}, .absent = 3},
    {MM, "", 0, 3, .in = {S3(2, 6, 8), S2(8, 16), S1(16)}, .absent = 3},
    {MM, "beta = 0", 0, 3, .in = {S2(6, 8), S2(8, 10), S2(6, 10)}, .absent = 3},
    /* few rows, long rows: a vector times a matrix */
    {MM, "units = 600", .in = {S2(1, 520)}},
    {MM, "units = 130; transpose_b = true", .in = {S2(4, 1032)}},
    {MM, "units = 96", .in = {S2(8, 256)}},
    {MM, "units = 96; transpose_b = true", .in = {S2(16, 256)}},
    {MM, "units = 50", .in = {S2(11, 264)}},
    {MM, "units = 256; transpose_b = true", .in = {S3(16, 1, 2048)}},
    /* tiles */
    {MM, "units = 200", .in = {S2(150, 140)}},
    {MM, "", 0, 2, .in = {S3(2, 130, 131), S3(2, 131, 129)}, .absent = 3},
    {MM, "transpose_a = true", 0, 2, .in = {S2(136, 128), S2(136, 128)}, .absent = 3},
    {MM, "transpose_b = true", 0, 2, .in = {S3(3, 300, 72), S3(3, 264, 72)}, .absent = 3},
    {MM, "units = 200; transpose_b = true", .in = {S2(72, 1096)}},
    {MM, "units = 104", .in = {S2(136, 520)}},
    /* whole numbers */
    {MM, "units = 12", .in = {S2(9, 40)}, INTEGERS},
    {MM, "alpha = 3; beta = -2", 0, 3, .in = {S2(9, 40), S2(40, 24), S2(9, 24)},
     .absent = 1, INTEGERS},
    {MM, "transpose_b = true", 0, 2, .in = {S3(2, 16, 64), S3(2, 32, 64)}, .absent = 3,
     INTEGERS},
    {MM, "", 0, 2, .in = {S2(5, 33), S2(33, 18)}, .absent = 3,
     .in_dtype = {STRATA_UINT8, STRATA_INT8}, .high = 100},
    {MM, "alpha = -1", 0, 2, .in = {S2(20, 64), S2(64, 300)}, .absent = 1,
     .in_dtype = {STRATA_INT8, STRATA_UINT8}, .high = 100},
    {MM, "units = 36", .in = {S2(7, 64)}, .absent = 2, .in_dtype = {STRATA_UINT8},
     .weight_dtype = {STRATA_INT8}, .high = 100, .weight_low = -100, .weight_high = 100},
    {MM, "units = 36; transpose_b = true", .in = {S2(16, 64)}, .absent = 2,
     .in_dtype = {STRATA_INT8}, .numbers = NUMBERS_WHOLE_RANGE},
    {MM, "units = 11", .in = {S2(3, 9)}, .in_dtype = {STRATA_INT32},
     .numbers = NUMBERS_WHOLE_RANGE},
    {MM, "alpha = 2; beta = 3", 0, 3, .in = {S2(3, 9), S2(9, 5), S2(3, 5)}, .absent = 3,
     .in_dtype = {STRATA_INT64, STRATA_INT64, STRATA_INT64},
     .numbers = NUMBERS_WHOLE_RANGE},
    {MM, "units = 40; alpha = 0.3", .in = {S2(5, 17)}, .in_dtype = {STRATA_FP64}},
    {MM, "units = 32", .in = {S2(16, 48)}, .in_dtype = {STRATA_E4M3},
     .weight_dtype = {STRATA_E4M3}},
    {MM, "transpose_b = true", 0, 2, .in = {S3(2, 16, 32), S3(2, 48, 32)}, .absent = 1,
     .in_dtype = {STRATA_E4M3, STRATA_E5M2}},
    /* C beside a weight; nothing to add up, and nothing at all */
    {MM, "units = 10", 0, 3, .in = {S2(3, 8), {0}, S2(3, 10)}},
    {MM, "beta = 3", 0, 3, .in = {S2(3, 0), S2(0, 5), S1(5)}, .absent = 1},
    {MM, "", 0, 2, .in = {S3(2, 3, 0), S2(0, 5)}, .absent = 3, .integers = true},
    {MM, "units = 6", .in = {S2(4, 0)}},
    {MM, "units = 6", .in = {S2(0, 4)}},
    {MM, "", 0, 2, .in = {S2(3, 4), S2(4, 0)}, .absent = 3},
    {MM, "", 0, 2, .in = {S3(0, 3, 4), S3(1, 4, 2)}, .absent = 3},
    /* what is not a number */
    {MM, "units = 10", .in = {S2(3, 37)}, .numbers = NUMBERS_NAN},
    {MM, "units = 10", .in = {S2(33, 40)}, .numbers = NUMBERS_INFINITE},
    {MM, "units = 10; transpose_b = true", .in = {S2(33, 40)}, .numbers = NUMBERS_TINY},
    /* refused */
    {MM, "alpha = 0.5", 0, 2, .in = {S2(2, 3), S2(3, 4)}, .absent = 3,
     .in_dtype = {STRATA_INT32, STRATA_INT32}, .refused = true},
    {MM, "", 0, 2, .in = {S2(2, 3), S2(3, 4)}, .absent = 3,
     .in_dtype = {STRATA_INT32, STRATA_INT64}, .refused = true},
    {MM, "", 0, 2, .in = {S2(2, 3), S2(3, 4)}, .absent = 3,
     .in_dtype = {STRATA_BOOL8, STRATA_BOOL8}, .refused = true},
    {MM, "", 0, 3, .in = {S2(2, 3), S2(3, 4), S2(2, 4)}, .absent = 3,
     .in_dtype = {STRATA_INT8, STRATA_INT8, STRATA_INT8}, .refused = true},
    {MM, "", .in = {S2(2, 300)}, .refused = true},
    {MM, "units = 4", .in = {S2(2, 300)}, .weight = {S2(299, 4)}, .refused = true},
    {MM, "units = 4", .in = {S1(300)}, .refused = true},
    {MM, "", 0, 2, .in = {S2(2, 3), S2(4, 3)}, .absent = 3, .refused = true},
    {MM, "", 0, 2, .in = {S2(2, 3), S1(3)}, .absent = 3, .refused = true},
    {MM, "units = 4", 0, 2, .in = {S2(2, 3), S2(3, 4)}, .absent = 3, .refused = true},
    {MM, "", 0, 2, .in = {S2(2, 3), S2(3, 4)}, .weight = {S2(3, 4)}, .refused = true},
    {MM, "", 0, 2, .in = {S3(2, 2, 3), S3(3, 3, 4)}, .absent = 3, .refused = true},
    {MM, "", 0, 3, .in = {S2(2, 3), S2(3, 4), S2(3, 4)}, .absent = 3, .refused = true},
    {MM, "", 0, 3, .in = {S2(2, 3), S2(3, 4), S3(2, 2, 4)}, .absent = 3,
     .refused = true},
};

/* Many tiles, and more than a chip has room for. */
static const struct layer_case large[] = {
    {MM, "units = 792", .in = {S2(700, 200)}},
    {MM, "units = 264; beta = 2", 0, 3, .in = {S2(1100, 136), {0}, S2(1100, 264)}},
    {MM, "units = 1032", .in = {S2(4200, 72)}},
    {MM, "units = 520; transpose_b = true; beta = 0.5", 0, 3,
     .in = {S2(9000, 136), {0}, S2(9000, 520)}, .absent = 2},
};

LAYER_CASES(MatrixMultiply, ORDINARY(cases), LARGE(large))
