/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Cast: every pair of dtypes, in the formats that both have.
 */
#include "tests/layers/cases.h"

#define FROM_ALL                                                                         \
    .dtypes = 1 << STRATA_E4M3 | 1 << STRATA_E5M2 | 1 << STRATA_FP64 |                   \
              1 << STRATA_BOOL8 | 1 << STRATA_INT8 | 1 << STRATA_UINT8 |                 \
              1 << STRATA_INT32 | 1 << STRATA_INT64
#define WHOLE .in = {S4(3, 9, 5, 7)}, FROM_ALL, .low = -3, .high = 100, .integers = true
#define ANY .in = {S2(33, 65)}, .low = -700, .high = 700

static const struct layer_case cases[] = {
    {"Cast", "to = fp16", .sweep = 4},
    {"Cast", "to = fp32", WHOLE},
    {"Cast", "to = fp16", WHOLE},
    {"Cast", "to = bf16", WHOLE},
    {"Cast", "to = fp64", WHOLE},
    {"Cast", "to = int8", WHOLE},
    {"Cast", "to = u8", WHOLE},
    {"Cast", "to = i32", WHOLE},
    {"Cast", "to = i64", WHOLE},
    {"Cast", "to = bool", WHOLE},
    {"Cast", "to = e4m3", WHOLE},
    {"Cast", "to = e5m2", WHOLE},
    {"Cast", "to = int8", ANY},
    {"Cast", "to = u8", ANY},
    {"Cast", "to = i32", ANY},
    {"Cast", "to = e4m3", ANY},
    {"Cast", "to = e4m3; saturate = no", ANY},
    {"Cast", "to = e5m2; saturate = no", .in = {S2(33, 65)}, .low = -60000, .high = 60000},
    {"Cast", "to = bf16", ANY},
    {"Cast", "to = i32", .in = {S2(3, 65)}, .numbers = NUMBERS_NAN},
    {"Cast", "to = i64", .in = {S2(3, 65)}, .numbers = NUMBERS_INFINITE},
    {"Cast", "to = bool", .in = {S2(3, 65)}, .numbers = NUMBERS_NAN},
    {"Cast", "to = fp16", .in = {S4(1, 9, 64, 65)}},
    {"Cast", "to = i64", .in = {S2(3, 0)}},
    {"Cast", "", .in = {S1(3)}, .refused = true},
    {"Cast", "to = fp8", .in = {S1(3)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Cast", "to = fp16", .in = {S4(4, 65, 57, 61)}},
    {"Cast", "to = u8", .in = {S4(4, 65, 57, 61)}, .low = 0, .high = 255},
};

LAYER_CASES(Cast, ORDINARY(cases), LARGE(large))
