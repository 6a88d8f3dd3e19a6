/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Shuffle: permutations and new shapes, alone and together, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Shuffle", "first = 0, 2, 3, 1", .sweep = 4},
    {"Shuffle", "first = 3, 1, 0, 2", .in = {S4(3, 9, 5, 7)}},
    {"Shuffle", "first = 1, 0", .in = {S2(3, 17)}},
    {"Shuffle", "first = 0, 4, 1, 3, 2", .in = {S5(3, 9, 2, 5, 7)}},
    {"Shuffle", "shape = 0, -1", .sweep = 4},
    {"Shuffle", "shape = 0, -1", .sweep = 3},
    {"Shuffle", "shape = 0, 0, -1", .in = {S4(3, 9, 5, 7)}},
    {"Shuffle", "shape = 0, 2, 8, 5, 7; second = 0, 2, 1, 3, 4", .in = {S4(3, 16, 5, 7)}},
    {"Shuffle", "first = 0, 2, 1, 3, 4; shape = 3, 16, 5, 7", .in = {S5(3, 2, 8, 5, 7)}},
    {"Shuffle", "shape = 0, 3, 4, 5, 7", .in = {S4(3, 12, 5, 7)}},
    {"Shuffle", "shape = 6, 4", .in = {S2(4, 6)}},
    {"Shuffle", "shape = 3, 14, 6, 5", .in = {S4(3, 4, 15, 7)}},
    {"Shuffle", "first = 0, 3, 1, 2; shape = 3, 7, 45; second = 0, 2, 1",
     .in = {S4(3, 9, 5, 7)}},
    {"Shuffle", "shape = 0, 24, 7; second = 2, 1, 0", .in = {S5(3, 8, 1, 3, 7)}},
    {"Shuffle", "shape = 1, 1, -1, 1", .in = {S2(3, 9)}},
    {"Shuffle", "shape = -1", .in = {S4(3, 9, 5, 7)}},
    {"Shuffle", "", .in = {S4(3, 9, 5, 7)}},
    {"Shuffle", "first = 0, 2, 3, 1", .in = {S4(1, 33, 32, 33)}},
    {"Shuffle", "first = 0, 2, 3, 1", .in = {S4(2, 72, 8, 12)}},
    {"Shuffle", "first = 0, 1, 3, 2", .in = {S4(2, 8, 70, 18)}},
    {"Shuffle", "shape = 0, -1", .in = {S4(1, 33, 32, 33)}},
    {"Shuffle", "first = 0, 0, 1, 2", .in = {S4(1, 1, 1, 1)}, .refused = true},
    {"Shuffle", "first = 0, 1", .in = {S4(1, 1, 1, 1)}, .refused = true},
    {"Shuffle", "shape = -1, -1", .in = {S4(1, 1, 1, 1)}, .refused = true},
    {"Shuffle", "shape = 4, -1", .in = {S2(3, 3)}, .refused = true},
    {"Shuffle", "shape = 3, 4", .in = {S2(3, 3)}, .refused = true},
    {"Shuffle", "shape = 3, 3, 0", .in = {S2(3, 3)}, .refused = true},
    {"Shuffle", "shape = 1000000000000, 1000000000000", .in = {S2(3, 3)},
     .refused = true},
    {"Shuffle", "second = 1, 0, 2", .in = {S2(3, 3)}, .refused = true},
    /* In integer formats. */
    {"Shuffle", "first = 0, 2, 3, 1", .sweep = 4, INTEGERS},
    {"Shuffle", "shape = 0, -1", .in = {S4(3, 9, 5, 7)}, INTEGERS},
    {"Shuffle", "shape = 3, 14, 6, 5", .in = {S4(3, 4, 15, 7)}, INTEGERS},
    {"Shuffle", "first = 0, 1, 3, 2", .in = {S4(2, 8, 70, 18)}, INTEGERS},
    {"Shuffle", "first = 0, 2, 3, 1", .sweep = 4, NARROW},
    {"Shuffle", "first = 0, 2, 3, 1", .in = {S4(3, 0, 5, 7)}},
    {"Shuffle", "shape = 0, -1", .in = {S4(3, 9, 0, 7)}},
    {"Shuffle", "shape = -1, 7", .in = {S3(0, 5, 7)}, INTEGERS},
};

LAYER_CASES(Shuffle, ORDINARY(cases))
