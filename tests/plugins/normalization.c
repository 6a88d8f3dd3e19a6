/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Normalization: kinds, axes, weights that are absent, residuals, statistics,
 * and what it must refuse.
 */
#include "tests/layers/cases.h"

#define POSITIVE .weight_low = 0.25, .weight_high = 2

static const struct layer_case cases[] = {
    {"Normalization", "", .in = {S2(5, 17)}},
    {"Normalization", "axis = 1", .in = {S3(3, 9, 5)}},
    {"Normalization", "axis = 0", .in = {S4(3, 2, 5, 7)}},
    {"Normalization", "axis = -2", .in = {S4(3, 2, 5, 7)}, .absent = 1},
    {"Normalization", "epsilon = 0.5", .in = {S2(4, 64)}, .absent = 2},
    {"Normalization", "", .in = {S2(7, 768)}},
    {"Normalization", "", .in = {S2(3, 1023)}, .absent = 3},
    {"Normalization", "", .in = {S3(2, 3, 4104)}, .low = 90, .high = 100},
    {"Normalization", "statistics = yes", .in = {S3(4, 5, 33)}},
    {"Normalization", "statistics = yes; axis = 1", .in = {S3(4, 5, 33)}},
    {"Normalization", "sum = yes", .n_in = 2, .in = {S2(6, 40), S2(6, 40)}},
    {"Normalization", "", .n_in = 2, .in = {S2(6, 41), S2(6, 41)}},
    {"Normalization", "sum = yes; statistics = yes", .n_in = 2,
     .in = {S2(6, 40), S2(6, 40)}},
    {"Normalization", "kind = rms", .in = {S2(5, 17)}},
    {"Normalization", "kind = rms; axis = 1", .in = {S3(3, 9, 8)}, .absent = 2},
    {"Normalization", "kind = rms; sum = yes", .n_in = 2, .in = {S2(3, 96), S2(3, 96)}},
    {"Normalization", "kind = group; groups = 1", .sweep = 4},
    {"Normalization", "kind = group; groups = $C", .sweep = 3},
    {"Normalization", "kind = group; groups = 4", .in = {S4(3, 12, 5, 7)}},
    {"Normalization", "kind = group; groups = 2", .in = {S4(2, 20, 9, 7)}, .absent = 1},
    {"Normalization", "kind = group; groups = 3", .in = {S2(3, 12)}, .absent = 2},
    {"Normalization", "kind = group; groups = 4; sum = yes", .n_in = 2,
     .in = {S4(3, 12, 5, 7), S4(3, 12, 5, 7)}},
    {"Normalization", "kind = instance", .sweep = 4},
    {"Normalization", "kind = instance", .in = {S5(2, 9, 3, 5, 7)}},
    {"Normalization", "kind = instance", .in = {S3(2, 10, 33)}, .absent = 3},
    {"Normalization", "kind = instance", .in = {S4(1, 3, 150, 140)}, .low = 30,
     .high = 40},
    {"Normalization", "kind = batch", .sweep = 4, POSITIVE},
    {"Normalization", "kind = batch", .in = {S2(4, 9)}, .absent = 12},
    {"Normalization", "kind = batch; sum = yes", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}, POSITIVE},
    {"Normalization", "kind = lp", .in = {S2(5, 17)}},
    {"Normalization", "kind = lp; axis = 1; p = 1", .in = {S4(3, 9, 5, 7)}},
    {"Normalization", "kind = lp; axis = 0", .in = {S3(9, 4, 5)}},
    {"Normalization", "kind = lp; p = 3", .in = {S3(4, 5, 33)}},
    {"Normalization", "kind = lp; p = 4; axis = 1", .n_in = 2,
     .in = {S3(4, 9, 5), S3(4, 9, 5)}},
    {"Normalization", "axis = 2", .in = {S2(2, 3)}, .refused = true},
    {"Normalization", "axis = -3", .in = {S2(2, 3)}, .refused = true},
    {"Normalization", "kind = group; groups = 5", .in = {S3(2, 12, 3)}, .refused = true},
    {"Normalization", "kind = group", .in = {S1(12)}, .refused = true},
    {"Normalization", "kind = rms; statistics = yes", .in = {S2(2, 3)}, .refused = true},
    {"Normalization", "sum = yes", .in = {S2(2, 3)}, .refused = true},
    {"Normalization", "", .n_in = 2, .in = {S2(2, 3), S2(3, 2)}, .refused = true},
    {"Normalization", "", .in = {S2(2, 3)}, .weight = {S1(4)}, .refused = true},
    {"Normalization", "kind = lp", .in = {S2(2, 3)}, .weight = {S1(3)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Normalization", "", .in = {S2(300, 768)}},
    {"Normalization", "", .in = {S2(600, 128)}},
    {"Normalization", "kind = rms", .in = {S2(40, 4096)}},
    {"Normalization", "statistics = yes", .in = {S2(7, 12288)}},
    {"Normalization", "", .in = {S2(3, 40000)}},
    {"Normalization", "kind = rms", .in = {S2(3, 131072)}},
    {"Normalization", "", .in = {S2(2, 300001)}, .low = 10, .high = 12},
    {"Normalization", "kind = group; groups = 32", .in = {S4(2, 320, 33, 32)}},
    {"Normalization", "kind = group; groups = 8", .in = {S4(3, 64, 64, 64)}},
    {"Normalization", "kind = instance", .in = {S4(2, 33, 100, 100)}},
    {"Normalization", "kind = lp; axis = 1", .in = {S3(16, 700, 130)}},
};

LAYER_CASES(Normalization, ORDINARY(cases), LARGE(large))
