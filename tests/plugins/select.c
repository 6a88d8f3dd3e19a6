/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Select: every dtype, broadcasting of each of the three, NaN, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

#define OF(dtype) .in_dtype = {STRATA_BOOL8, dtype, dtype}
#define ALIKE .n_in = 3, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7), S4(3, 9, 5, 7)}
static const struct layer_case cases[] = {
    {"Select", "", .sweep = 4, .n_in = 3, OF(STRATA_FP32)},
    {"Select", "", ALIKE, OF(STRATA_FP32)},
    {"Select", "", ALIKE, OF(STRATA_FP64)},
    {"Select", "", ALIKE, OF(STRATA_INT64), .numbers = NUMBERS_WHOLE_RANGE},
    {"Select", "", ALIKE, OF(STRATA_INT32), .numbers = NUMBERS_WHOLE_RANGE},
    {"Select", "", ALIKE, OF(STRATA_INT8), .numbers = NUMBERS_WHOLE_RANGE},
    {"Select", "", ALIKE, OF(STRATA_UINT8), .numbers = NUMBERS_WHOLE_RANGE},
    {"Select", "", ALIKE, OF(STRATA_BOOL8)},
    {"Select", "", ALIKE, OF(STRATA_FP32), .numbers = NUMBERS_NAN},
    {"Select", "", .n_in = 3, .in = {S4(3, 9, 5, 7), S1(7), S3(9, 1, 1)},
     OF(STRATA_FP32)},
    {"Select", "", .n_in = 3, .in = {S2(5, 1), S4(3, 9, 5, 7), S1(1)}, OF(STRATA_FP32)},
    {"Select", "", .n_in = 3, .in = {S1(1), S2(33, 65), S2(33, 65)}, OF(STRATA_INT64)},
    {"Select", "", .n_in = 3, .in = {S2(300, 128), S2(300, 128), S1(1)},
     OF(STRATA_FP32)},
    {"Select", "", .n_in = 3, .in = {S2(0, 1), S1(3), S1(1)}, OF(STRATA_FP32)},
    {"Select", "", .n_in = 3, .in = {S1(3), S1(3), S1(3)}, .refused = true},
    {"Select", "", .n_in = 3, .in = {S1(3), S1(3), S1(4)}, OF(STRATA_FP32),
     .refused = true},
    {"Select", "", .n_in = 3, .in = {S1(3), S1(3), S1(3)},
     .in_dtype = {STRATA_BOOL8, STRATA_INT32, STRATA_INT64}, .refused = true},
};

static const struct layer_case large[] = {
    {"Select", "", .n_in = 3, .in = {S2(257, 4099), S2(257, 4099), S2(257, 4099)},
     OF(STRATA_FP32)},
};

LAYER_CASES(Select, ORDINARY(cases), LARGE(large))
