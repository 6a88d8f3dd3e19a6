/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Padding: modes, on and off the borders of blocks, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Padding", "begin = 1, 2; end = 0, 3", .sweep = 4},
    {"Padding", "begin = 1, 2; end = 2, 0; value = -1.5", .sweep = 4},
    {"Padding", "begin = 0, 3, 0, 0; end = 0, 8, 0, 0", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "begin = 0, 8, 0, 0; end = 0, 1, 0, 0; value = 3",
     .in = {S4(3, 16, 5, 7)}},
    {"Padding", "begin = 1, 1, 1, 1; end = 1, 1, 1, 1; value = 2",
     .in = {S4(3, 7, 5, 7)}},
    {"Padding", "mode = reflect; begin = 2, 3; end = 1, 4", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "mode = reflect; begin = 2, 0, 0; end = 1, 1, 1", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "mode = edge; begin = 2, 3; end = 1, 4", .sweep = 4},
    {"Padding", "mode = edge; begin = 1, 2, 3, 4; end = 4, 3, 2, 1",
     .in = {S4(3, 9, 5, 7)}},
    {"Padding", "begin = 3; value = 1", .in = {S2(3, 9)}},
    {"Padding", "begin = 3, 2; end = 1, 2; mode = wrap", .in = {S4(1, 2, 70, 5)}},
    {"Padding", "begin = 40, 1; end = 50, 2; value = 7", .in = {S2(3, 9)}},
    {"Padding", "end = 3; mode = edge", .in = {S1(9)}},
    {"Padding", "begin = 1, 1, 1; end = 1, 0, 2", .in = {S5(3, 9, 2, 5, 7)}},
    {"Padding", "", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "begin = 1, 1; end = 1, 1", .in = {S4(1, 32, 32, 33)}},
    {"Padding", "mode = reflect; begin = 7, 15", .in = {S4(1, 3, 3, 7)}},
    {"Padding", "mode = reflect; begin = 3; end = 1", .in = {S2(3, 1)}},
    {"Padding", "mode = wrap; begin = 2, 9; end = 1, 8", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "mode = wrap; begin = 1, 2, 0; end = 20, 0, 3", .in = {S3(3, 9, 7)}},
    {"Padding", "begin = -1, -2; end = -2, 3; value = 4", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "mode = reflect; begin = -3, 2; end = 1, -2", .in = {S4(3, 9, 5, 7)}},
    {"Padding", "mode = edge; begin = 0, -1, 0, 0; end = 0, 9, 0, 0",
     .in = {S4(3, 9, 5, 7)}},
    {"Padding", "begin = -2; end = -3", .in = {S2(3, 5)}},
    {"Padding", "begin = 2; end = 1; value = 3", .in = {S2(3, 0)}},
    {"Padding", "begin = -2; end = -2", .in = {S2(3, 3)}, .refused = true},
    {"Padding", "mode = wrap; begin = 1", .in = {S2(3, 0)}, .refused = true},
    {"Padding", "begin = 1, 1, 1", .in = {S2(1, 1)}, .refused = true},
    /* In integer formats. */
    {"Padding", "mode = wrap; begin = 1, 2; end = 3, -1", .in = {S3(3, 9, 7)}, MOVED},
    {"Padding", "begin = 1, 2; end = 3, 1; value = 1", .in = {S3(3, 9, 7)}, MOVED},
    {"Padding", "begin = 0, 3, 1, 2; end = 1, 0, 2, 0; value = 3", .in = {S4(3, 9, 5, 7)},
     INTEGERS},
    {"Padding", "mode = reflect; begin = 1, 2; end = 2, 0", .in = {S4(3, 33, 5, 7)},
     INTEGERS},
    {"Padding", "mode = edge; begin = 2, 1, 1; end = 31, 0, 3", .in = {S4(3, 33, 5, 7)},
     INTEGERS},
};

LAYER_CASES(Padding, ORDINARY(cases))
