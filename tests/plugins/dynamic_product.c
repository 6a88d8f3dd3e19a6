/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of DynamicProduct: tiles and what is left of them, zeros and factors of the
 * weight that are absent, one and one a column, sums that wrap, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define BYTES                                                                            \
    .n_in = 3, .in_dtype = {STRATA_UINT8, STRATA_FP32, STRATA_UINT8},                    \
    .numbers = NUMBERS_WHOLE_RANGE, .weight_range = {[2] = {0.01, 0.5}},                 \
    .in_range = {[1] = {0.01, 0.5}}
#define X(...) .in = {{__VA_ARGS__}, S1(1), S1(1)}
enum { NO_BIAS = 1 << 1, NO_ZERO = 1 << 3 };
static const struct layer_case cases[] = {
    {"DynamicProduct", "", X(2, {1, 1}), .weight = {S2(1, 1)}, BYTES},
    {"DynamicProduct", "", X(2, {1, 5}), .weight = {S2(5, 33)}, BYTES},
    {"DynamicProduct", "", X(2, {7, 64}), .weight = {S2(64, 48)}, .absent = NO_BIAS,
     BYTES},
    {"DynamicProduct", "", X(2, {13, 67}), .weight = {S2(67, 31)}, .absent = NO_ZERO,
     BYTES},
    {"DynamicProduct", "", X(3, {2, 17, 30}),
     .weight = {S2(30, 65), {1, {65}}, {1, {1}}, {1, {1}}}, BYTES},
    {"DynamicProduct", "", X(4, {2, 3, 5, 129}),
     .weight = {S2(129, 16), {1, {16}}, {1, {16}}, {1, {1}}}, BYTES},
    {"DynamicProduct", "", X(2, {101, 40}), .weight = {S2(40, 90)}, .absent = NO_ZERO,
     BYTES},
    {"DynamicProduct", "", X(2, {3, 2051}), .weight = {S2(2051, 9)},
     .absent = NO_BIAS | NO_ZERO, BYTES},
    /* Whole tiles of 16 and 32 rows, one row more, and depths of 64 and one more. */
    {"DynamicProduct", "", X(2, {48, 192}), .weight = {S2(192, 64)}, BYTES},
    {"DynamicProduct", "", X(3, {1, 33, 65}), .weight = {S2(65, 33)}, BYTES},
    {"DynamicProduct", "", X(2, {113, 128}), .weight = {S2(128, 17)}, BYTES},
    /* The most rows that leave tiles alone, and one more; by a team, and by one. */
    {"DynamicProduct", "", X(2, {4, 70}), .weight = {S2(70, 33)}, BYTES},
    {"DynamicProduct", "", X(2, {5, 70}), .weight = {S2(70, 33)}, BYTES},
    {"DynamicProduct", "", X(2, {4, 520}), .weight = {S2(520, 256)}, BYTES},
    {"DynamicProduct", "", X(2, {3, 0}), .weight = {S2(0, 4)}, BYTES},
    {"DynamicProduct", "", X(2, {0, 8}), .weight = {S2(8, 4)}, BYTES},
    {"DynamicProduct", "", X(2, {3, 8}), .weight = {S2(9, 4)}, BYTES, .refused = true},
    {"DynamicProduct", "", X(1, {8}), .weight = {S2(8, 4)}, BYTES, .refused = true},
    {"DynamicProduct", "", .in = {S2(3, 8), S1(2), S1(1)}, .weight = {S2(8, 4)}, BYTES,
     .refused = true},
    {"DynamicProduct", "", .in = {S2(3, 8), S1(1), S1(3)}, .weight = {S2(8, 4)}, BYTES,
     .refused = true},
    {"DynamicProduct", "", X(2, {3, 8}), .weight = {S2(8, 4), {1, {1}}}, BYTES,
     .refused = true},
    {"DynamicProduct", "", X(2, {3, 8}), .weight = {S2(8, 4)}, .n_in = 3,
     .in_dtype = {STRATA_INT8, STRATA_FP32, STRATA_UINT8}, .refused = true},
};

static const struct layer_case large[] = {
    {"DynamicProduct", "", X(2, {517, 260}), .weight = {S2(260, 131)}, BYTES},
    {"DynamicProduct", "", X(2, {256, 768}), .weight = {S2(768, 256)}, .absent = NO_ZERO,
     BYTES},
};

LAYER_CASES(DynamicProduct, ORDINARY(cases), LARGE(large))
