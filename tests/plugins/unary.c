/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Unary: each function over the range where it is defined, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

#define WIDE .in = {S4(3, 9, 5, 7)}
static const struct layer_case cases[] = {
    {"Unary", "op = exp", .sweep = 4},
    {"Unary", "op = cos", .sweep = 3},
    {"Unary", "op = abs", .sweep = 5},
    {"Unary", "op = neg", WIDE},
    {"Unary", "op = exp", WIDE, .low = -80, .high = 10},
    {"Unary", "op = exp", WIDE, .low = -110, .high = -70},
    {"Unary", "op = log", WIDE, .low = 0.015625, .high = 50},
    {"Unary", "op = sqrt", WIDE, .low = 0, .high = 50},
    {"Unary", "op = reciprocal", WIDE, .low = 0.5, .high = 9},
    {"Unary", "op = sign", WIDE},
    {"Unary", "op = floor", WIDE, .low = -9, .high = 9},
    {"Unary", "op = ceil", WIDE, .low = -9, .high = 9},
    {"Unary", "op = round", WIDE, .low = -9, .high = 9},
    {"Unary", "op = sin", WIDE, .low = -9, .high = 9},
    {"Unary", "op = sin", WIDE, .low = -60000, .high = 60000},
    {"Unary", "op = cos", WIDE, .low = -60000, .high = 60000},
    {"Unary", "op = tan", WIDE, .low = -1.5, .high = 1.5},
    {"Unary", "op = asin", WIDE, .low = -1, .high = 1},
    {"Unary", "op = acos", WIDE, .low = -1, .high = 1},
    {"Unary", "op = atan", WIDE, .low = -9, .high = 9},
    {"Unary", "op = sinh", WIDE, .low = -9, .high = 9},
    {"Unary", "op = cosh", WIDE, .low = -9, .high = 9},
    {"Unary", "op = tanh", WIDE, .low = -9, .high = 9},
    {"Unary", "op = asinh", WIDE, .low = -9, .high = 9},
    {"Unary", "op = acosh", WIDE, .low = 1, .high = 9},
    {"Unary", "op = atanh", WIDE, .low = -0.984375, .high = 0.984375},
    {"Unary", "op = erf", WIDE, .low = -4, .high = 4},
    {"Unary", "op = exp", .in = {S1(700)}},
    {"Unary", "op = erf", .in = {S4(1, 9, 64, 65)}},
    {"Unary", "op = exp", .in = {S2(0, 3)}},
    {"Unary", "", .in = {S1(3)}, .refused = true},
    {"Unary", "op = cube", .in = {S1(3)}, .refused = true},
    {"Unary", "op = not", .in = {S1(3)}, .refused = true},
    {"Unary", "op = bit_not", .in = {S1(3)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Unary", "op = tanh", .in = {S4(4, 65, 57, 61)}},
    {"Unary", "op = sin", .in = {S4(4, 65, 57, 61)}},
};

LAYER_CASES(Unary, ORDINARY(cases), LARGE(large))
