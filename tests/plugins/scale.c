/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Scale: attributes, then weights of each mode, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Scale", "scale = 0.5; shift = 1.5", .sweep = 4, .absent = 7},
    {"Scale", "", .sweep = 4, .absent = 4},
    {"Scale", "", .sweep = 4, .low = 0.5, .high = 2, .weight_low = 0.5, .weight_high = 2},
    {"Scale", "mode = channel", .sweep = 3, .absent = 4},
    {"Scale", "mode = channel", .sweep = 5, .absent = 4},
    {"Scale", "mode = uniform", .in = {S4(3, 9, 5, 7)}, .absent = 4},
    {"Scale", "mode = elementwise", .in = {S4(3, 9, 5, 7)}, .absent = 4},
    {"Scale", "mode = elementwise", .in = {S4(1, 17, 7, 5)}, .absent = 6},
    {"Scale", "mode = elementwise", .in = {S2(3, 9)}, .absent = 4},
    {"Scale", "", .in = {S4(3, 3, 5, 7)}, .absent = 4,
     .weight = {S4(1, 3, 1, 1), S3(3, 5, 7)}},
    {"Scale", "", .in = {S4(3, 9, 5, 7)}, .absent = 4, .weight = {S1(1), S1(9)}},
    {"Scale", "shift = 0.25", .in = {S4(3, 8, 5, 7)}, .absent = 6, .weight = {S1(8)}},
    {"Scale", "scale = 2", .in = {S4(3, 16, 5, 7)}, .absent = 5},
    {"Scale", "shift = 3; power = 2", .in = {S4(3, 7, 5, 7)}, .absent = 7},
    {"Scale", "shift = 4; power = -0.5", .in = {S4(3, 9, 5, 7)}, .absent = 7, .low = 0,
     .high = 2},
    {"Scale", "shift = 1", .in = {S4(3, 9, 5, 7)}, .absent = 3, .low = 0.5, .high = 2},
    {"Scale", "shift = 1; mode = elementwise", .in = {S4(3, 9, 5, 7)}, .absent = 3,
     .low = 0.5, .high = 2},
    {"Scale", "", .in = {S2(3, 700)}, .absent = 4},
    {"Scale", "", .in = {S4(1, 40, 32, 33)}, .absent = 4},
    {"Scale", "scale = 2", .in = {S4(3, 8, 0, 7)}, .absent = 7},
    {"Scale", "mode = channel", .in = {S4(0, 8, 5, 7)}, .absent = 4},
    {"Scale", "", .in = {S4(1, 8, 5, 7)}, .weight = {S1(7)}, .absent = 6,
     .refused = true},
    {"Scale", "", .in = {S1(8)}, .absent = 7, .refused = true},
};

static const struct layer_case large[] = {
    {"Scale", "", .in = {S4(4, 65, 57, 61)}, .absent = 4},
    {"Scale", "mode = elementwise", .in = {S4(3, 70, 33, 40)}, .absent = 4},
};

LAYER_CASES(Scale, ORDINARY(cases), LARGE(large))
