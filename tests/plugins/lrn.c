/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of LRN: odd and even windows, wider than the channels too, and the exponents.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"LRN", "size = 5", .sweep = 4},
    {"LRN", "size = 4; alpha = 0.5; beta = 0.6", .sweep = 3},
    {"LRN", "size = 3; alpha = 2; beta = 0.5; bias = 2", .in = {S5(2, 9, 3, 4, 5)}},
    {"LRN", "size = 1; alpha = 1; beta = 1", .in = {S4(2, 9, 5, 7)}},
    {"LRN", "size = 40; alpha = 4", .in = {S4(1, 9, 5, 7)}},
    {"LRN", "size = 2; alpha = 4; bias = 0.5", .in = {S4(1, 33, 9, 17)}},
    {"LRN", "size = 5; alpha = 3; beta = 0.75; bias = 1", .in = {S4(1, 64, 27, 27)}},
    {"LRN", "size = 5; alpha = 3", .in = {S4(1, 72, 27, 27)}},
    {"LRN", "size = 7; alpha = 3; beta = 2.5", .in = {S4(1, 40, 13, 13)}},
    {"LRN", "", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"LRN", "size = 0", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"LRN", "size = 3", .in = {S2(3, 9)}, .refused = true},
};

static const struct layer_case large[] = {
    {"LRN", "size = 5; alpha = 3", .in = {S4(2, 96, 55, 55)}},
    {"LRN", "size = 5; alpha = 3", .in = {S4(67, 70, 56, 56)}},
    {"LRN", "size = 5; alpha = 3; bias = 0.5", .in = {S4(90, 37, 55, 64)}},
    {"LRN", "size = 4; alpha = 3", .in = {S4(1, 257, 29, 31)}},
    {"LRN", "size = 31; alpha = 3", .in = {S4(1, 130, 30, 31)}},
};

LAYER_CASES(LRN, ORDINARY(cases), LARGE(large))
