/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ParametricReLU: slopes of a channel, an element, one, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"ParametricReLU", "", .sweep = 4},
    {"ParametricReLU", "", .sweep = 3},
    {"ParametricReLU", "", .in = {S5(3, 9, 2, 5, 7)}},
    {"ParametricReLU", "", .in = {S2(3, 17)}},
    {"ParametricReLU", "", .in = {S1(33)}, .weight = {S1(33)}},
    {"ParametricReLU", "", .in = {S4(3, 9, 5, 7)}, .weight = {S1(1)}},
    {"ParametricReLU", "", .in = {S4(3, 9, 5, 7)}, .weight = {S1(7)}},
    {"ParametricReLU", "", .in = {S4(3, 9, 5, 7)}, .weight = {S2(5, 1)}},
    {"ParametricReLU", "", .in = {S4(3, 9, 5, 7)}, .weight = {S3(9, 5, 7)}},
    {"ParametricReLU", "", .in = {S4(3, 9, 5, 7)}, .weight = {S4(3, 9, 5, 7)}},
    {"ParametricReLU", "", .in = {S4(1, 33, 32, 33)}},
    {"ParametricReLU", "", .in = {S4(3, 9, 5, 7)}, .weight = {S1(9)}, .refused = true},
    {"ParametricReLU", "", .in = {S1(9)}, .weight = {S2(1, 9)}, .refused = true},
};

static const struct layer_case large[] = {
    {"ParametricReLU", "", .in = {S4(4, 65, 57, 61)}},
};

LAYER_CASES(ParametricReLU, ORDINARY(cases), LARGE(large))
