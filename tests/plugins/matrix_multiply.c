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
    /* whole numbers */
    {MM, "units = 12", .in = {S2(9, 40)}, INTEGERS},
    {MM, "alpha = 3; beta = -2", 0, 3, .in = {S2(9, 40), S2(40, 24), S2(9, 24)},
     .absent = 1, INTEGERS},
    {MM, "transpose_b = true", 0, 2, .in = {S3(2, 16, 64), S3(2, 32, 64)}, .absent = 3,
     INTEGERS},
    /* what is not a number */
    {MM, "units = 10", .in = {S2(3, 37)}, .numbers = NUMBERS_NAN},
    {MM, "units = 10", .in = {S2(33, 40)}, .numbers = NUMBERS_INFINITE},
    {MM, "units = 10; transpose_b = true", .in = {S2(33, 40)}, .numbers = NUMBERS_TINY},
    /* refused */
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

LAYER_CASES(MatrixMultiply, ORDINARY(cases))
