/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Expand: broadcasts with more and fewer dims, repeats, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Expand", "shape = 2, 1, 1, 1, 1", .sweep = 4},
    {"Expand", "repeats = 2, 3, 1", .sweep = 3},
    {"Expand", "shape = 5", .in = {S1(1)}, INTEGERS},
    {"Expand", "shape = 1", .in = {S2(3, 4)}, INTEGERS},
    {"Expand", "shape = 3, 4", .in = {S2(3, 1)}, INTEGERS},
    {"Expand", "shape = 2, 1, 6", .in = {S2(3, 1)}, INTEGERS},
    {"Expand", "shape = 4, 1, 7", .in = {S4(3, 1, 9, 1)}, INTEGERS},
    {"Expand", "shape = 64, 65, 8", .in = {S3(1, 65, 1)}},
    {"Expand", "shape = 33, 1, 64", .in = {S3(1, 31, 64)}},
    {"Expand", "repeats = 2", .in = {S1(7)}, INTEGERS},
    {"Expand", "repeats = 2, 1, 3, 2", .in = {S4(3, 2, 5, 4)}, INTEGERS},
    {"Expand", "repeats = 1, 1", .in = {S2(3, 4)}},
    {"Expand", "repeats = 3, 2", .in = {S2(100, 120)}},
    {"Expand", "shape = 2, 1, 0", .in = {S2(3, 1)}},
    {"Expand", "repeats = 0, 2", .in = {S2(3, 4)}},
    {"Expand", "", .in = {S2(3, 4)}, .refused = true},
    {"Expand", "shape = 2", .in = {S2(3, 4)}, .refused = true},
    {"Expand", "shape = -1, 4", .in = {S2(3, 4)}, .refused = true},
    {"Expand", "repeats = 2", .in = {S2(3, 4)}, .refused = true},
    {"Expand", "repeats = 2, 9000000000000000000", .in = {S2(3, 4)}, .refused = true},
    {"Expand", "shape = 3, 4; repeats = 1, 1", .in = {S2(3, 4)}, .refused = true},
};

LAYER_CASES(Expand, ORDINARY(cases))
