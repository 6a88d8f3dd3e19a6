/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ElementWise: operations, then broadcasting, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"ElementWise", "", .sweep = 4, .n_in = 2},
    {"ElementWise", "op = sub", .sweep = 3, .n_in = 2},
    {"ElementWise", "op = product", .sweep = 5, .n_in = 2},
    {"ElementWise", "op = div", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)},
     .low = 0.5, .high = 2},
    {"ElementWise", "op = max", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}},
    {"ElementWise", "op = min", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}},
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
    {"ElementWise", "op = sub", .n_in = 3, .refused = true,
     .in = {S2(3, 3), S2(3, 3), S2(3, 3)}},
    {"ElementWise", "", .n_in = 2, .in = {S2(3, 3), S2(3, 4)}, .refused = true},
    {"ElementWise", "", .n_in = 2, .in = {S2(3, 3), S3(3, 3, 3)}, .refused = true},
};

static const struct layer_case large[] = {
    {"ElementWise", "op = product", .n_in = 2,
     .in = {S4(4, 65, 57, 61), S4(4, 65, 1, 1)}},
    {"ElementWise", "op = sum", .n_in = 3,
     .in = {S4(2, 72, 57, 61), S4(2, 72, 57, 61), S4(1, 72, 1, 1)}},
};

LAYER_CASES(ElementWise, ORDINARY(cases), LARGE(large))
