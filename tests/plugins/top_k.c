/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of TopK: k from one to all, axes, equal elements, NaN, integers, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

#define INTS                                                                             \
    (1 << STRATA_INT8 | 1 << STRATA_UINT8 | 1 << STRATA_INT32 | 1 << STRATA_INT64)
#define FEW .low = -1, .high = 1, .integers = true /* many are equal */

static const struct layer_case cases[] = {
    {"TopK", "k = 1", .in = {S2(5, 100)}},
    {"TopK", "k = 5", .in = {S2(5, 100)}},
    {"TopK", "k = 100", .in = {S2(3, 100)}},
    {"TopK", "k = 10; largest = no", .in = {S2(4, 1000)}},
    {"TopK", "k = 64", .in = {S2(2, 5001)}},
    {"TopK", "k = 130; largest = no", .in = {S2(2, 1500)}},
    {"TopK", "k = 7; axis = 1", .in = {S4(3, 9, 5, 7)}},
    {"TopK", "k = 3; axis = 0; largest = no", .in = {S3(9, 4, 5)}},
    {"TopK", "k = 4; sorted = no", .in = {S1(17)}},
    {"TopK", "k = 20", .in = {S2(4, 300)}, FEW, .dtypes = INTS},
    {"TopK", "k = 200; largest = no", .in = {S2(3, 300)}, FEW, .dtypes = INTS},
    {"TopK", "k = 6; axis = 1; largest = no", .in = {S3(3, 50, 3)}, FEW, .dtypes = INTS},
    {"TopK", "k = 9", .in = {S2(3, 70)}, .dtypes = INTS, .numbers = NUMBERS_WHOLE_RANGE},
    {"TopK", "k = 30", .in = {S2(3, 70)}, .numbers = NUMBERS_INFINITE},
    {"TopK", "k = 30", .in = {S2(3, 70)}, .numbers = NUMBERS_NEGATIVE_INFINITE},
    {"TopK", "k = 5", .in = {S2(3, 4)}, .refused = true},
    {"TopK", "k = 0", .in = {S2(3, 4)}, .refused = true},
    {"TopK", "k = 1; axis = 2", .in = {S2(3, 4)}, .refused = true},
};

static const struct layer_case large[] = {
    {"TopK", "k = 10", .in = {S2(64, 50000)}},
    {"TopK", "k = 8", .in = {S2(200, 4096)}},
    {"TopK", "k = 64", .in = {S2(1, 131072)}},
    {"TopK", "k = 128; largest = no", .in = {S2(3, 20001)}},
    {"TopK", "k = 500", .in = {S2(3, 20001)}},
    {"TopK", "k = 2000", .in = {S2(2, 3000)}},
    {"TopK", "k = 1000; largest = no", .in = {S2(2, 30000)}, FEW, .dtypes = INTS},
    {"TopK", "k = 100", .in = {S2(2, 30000)}, FEW, .dtypes = INTS},
    {"TopK", "k = 700; axis = 0", .in = {S2(9000, 5)}},
};

LAYER_CASES(TopK, ORDINARY(cases), LARGE(large))
