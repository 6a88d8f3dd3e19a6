/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Softmax: every axis, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Softmax", "", .sweep = 4, .low = -8, .high = 8},
    {"Softmax", "axis = -1", .sweep = 4, .low = -8, .high = 8},
    {"Softmax", "axis = 0", .in = {S4(3, 9, 5, 7)}},
    {"Softmax", "axis = 2", .in = {S4(3, 9, 5, 7)}},
    {"Softmax", "axis = -2", .in = {S4(3, 17, 5, 7)}},
    {"Softmax", "axis = -4", .in = {S4(3, 9, 5, 7)}},
    {"Softmax", "", .in = {S2(3, 1000)}, .low = -100, .high = 100},
    {"Softmax", "", .in = {S2(1, 17)}},
    {"Softmax", "axis = 0", .in = {S1(17)}},
    {"Softmax", "log = true", .in = {S2(3, 17)}},
    {"Softmax", "log = true", .in = {S4(3, 9, 5, 7)}, .low = -50, .high = 50},
    {"Softmax", "axis = 4", .in = {S5(3, 9, 2, 5, 7)}},
    {"Softmax", "", .in = {S3(3, 9, 5)}},
    {"Softmax", "", .in = {S4(1, 33, 32, 37)}},
    {"Softmax", "", .in = {S4(0, 9, 5, 7)}},
    {"Softmax", "", .in = {S4(3, 0, 5, 7)}},
    {"Softmax", "", .in = {S2(3, 1000)}, .in_dtype = {STRATA_FP64}, .low = -800,
     .high = 800},
    {"Softmax", "log = true", .in = {S4(3, 9, 5, 7)}, .in_dtype = {STRATA_FP64}},
    {"Softmax", "axis = -1", .in = {S3(301, 33, 17)}, .in_dtype = {STRATA_FP64}},
    {"Softmax", "axis = 0", .in = {S2(0, 7)}, .in_dtype = {STRATA_FP64}},
    {"Softmax", "axis = 4", .in = {S4(1, 1, 1, 1)}, .refused = true},
    {"Softmax", "axis = -5", .in = {S4(1, 1, 1, 1)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Softmax", "", .in = {S2(3, 5000)}},
    {"Softmax", "log = true", .in = {S2(5, 3001)}},
    {"Softmax", "axis = 0", .in = {S2(1200, 33)}},
    {"Softmax", "", .in = {S2(3000, 10)}},
    {"Softmax", "", .in = {S4(1, 601, 20, 24)}},
    {"Softmax", "", .in = {S4(2, 1000, 1, 1)}},
    {"Softmax", "log = true", .in = {S4(7, 1024, 1, 1)}},
    {"Softmax", "", .in = {S4(1, 5, 512, 264)}, .low = -50, .high = 50},
    {"Softmax", "log = true", .in = {S4(2, 31, 256, 260)}},
    {"Softmax", "", .in = {S4(8, 3, 128, 132)}},
    /* Teams of 1, 2, 4 and 8 warps, clusters of 2, 4 and 8 blocks, and what is too long.
     */
    {"Softmax", "axis = -1", .in = {S3(61, 97, 200)}, .low = -50, .high = 50},
    {"Softmax", "", .in = {S2(4001, 1000)}, .low = -50, .high = 50},
    {"Softmax", "", .in = {S2(37, 264)}},
    {"Softmax", "log = true", .in = {S2(9, 640)}},
    {"Softmax", "", .in = {S2(50701, 136)}}, /* lines in chunks */
    {"Softmax", "log = true", .in = {S2(3001, 1032)}},
    {"Softmax", "", .in = {S2(1501, 2056)}},
    {"Softmax", "", .in = {S2(701, 4104)}},
    {"Softmax", "log = true", .in = {S2(401, 8200)}},
    {"Softmax", "", .in = {S2(201, 16392)}},
    {"Softmax", "log = true", .in = {S2(101, 33000)}},
    {"Softmax", "", .in = {S2(51, 65544)}},
    {"Softmax", "", .in = {S2(5, 131080)}},
    /* Rows of threads along the axis: 1, some, all. */
    {"Softmax", "axis = 2", .in = {S4(4, 5, 24, 1028)}},
    {"Softmax", "axis = 2", .in = {S4(3, 5, 391, 132)}, .low = -50, .high = 50},
    {"Softmax", "axis = 0; log = true", .in = {S2(767, 2052)}},
    {"Softmax", "axis = 1", .in = {S3(7, 50, 64)}},
};

LAYER_CASES(Softmax, ORDINARY(cases), LARGE(large))
