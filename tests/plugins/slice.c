/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Slice: on and off the borders of blocks, steps both ways, several outputs, and
 * what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Slice", "axes = 1; begin = 0; end = 1", .sweep = 4},
    {"Slice", "axes = 2, 3; begin = 1, 1; end = -1, 1000", .sweep = 4},
    {"Slice", "axes = 1; begin = 8; end = 24", .in = {S4(3, 33, 5, 7)}},
    {"Slice", "axes = 1; begin = 3; end = 20", .in = {S4(3, 33, 5, 7)}},
    {"Slice", "axes = 1; begin = 1; end = 17; step = 3", .in = {S4(3, 17, 5, 7)}},
    {"Slice", "axes = 1; begin = -1; end = -1000; step = -1", .in = {S4(3, 17, 5, 7)}},
    {"Slice", "axes = 3; begin = 5; end = 0; step = -2", .in = {S4(3, 9, 5, 7)}},
    {"Slice", "axes = -1; begin = -3; end = -1", .in = {S4(3, 9, 5, 7)}},
    {"Slice", "begin = 1, 2, 0, 3; end = 3, 9, 5, 7; step = 1, 2, 2, 3",
     .in = {S4(3, 9, 5, 7)}},
    {"Slice", "begin = 1, 8; end = 3, 16", .in = {S2(3, 17)}},
    {"Slice", "begin = 2; end = 600", .in = {S1(700)}},
    {"Slice", "axes = 4, 2; begin = 1, 0; end = 6, 1", .in = {S5(3, 9, 2, 5, 7)}},
    {"Slice", "axes = 0; begin = 2; end = 3", .in = {S4(3, 9, 5, 7)}},
    {"Slice", "axes = 1; begin = 0; end = 16", .in = {S4(1, 32, 48, 49)}},
    {"Slice", "axes = 1; begin = 3; end = 3", .in = {S4(1, 9, 1, 1)}},
    {"Slice", "axes = 1; begin = -1; end = -9; step = -1", .in = {S4(1, 0, 3, 1)}},
    {"Slice", "split = 1, 8, 7; axis = 1", .in = {S4(3, 16, 5, 7)}},
    {"Slice", "split = 3, 2, 2; axis = -1", .in = {S4(3, 9, 5, 7)}},
    {"Slice", "split = 5, 0, 4; axis = 1", .in = {S3(3, 9, 7)}},
    {"Slice", "parts = 2; axis = 0", .in = {S1(700)}},
    {"Slice", "parts = 4; axis = 1", .in = {S4(2, 33, 5, 7)}},
    {"Slice", "parts = 3; axis = 1", .in = {S2(5, 2)}},
    {"Slice", "parts = 1; axis = 2", .in = {S3(3, 9, 7)}},
    {"Slice", "split = 1, 2; axis = 1", .in = {S2(3, 4)}, .refused = true},
    {"Slice", "split = 0, 4; axis = 1", .in = {S2(3, 4)}, .refused = true},
    {"Slice", "parts = 2; split = 2, 2; axis = 1", .in = {S2(3, 4)}, .refused = true},
    {"Slice", "parts = 2; begin = 0; end = 1; axes = 0", .in = {S2(3, 4)},
     .refused = true},
    {"Slice", "parts = 2; axis = 2", .in = {S2(3, 4)}, .refused = true},
    {"Slice", "parts = 2; axis = 1", .in = {S3(3, 40, 7)}, MOVED},
    {"Slice", "axes = 1, 1; begin = 0, 0; end = 1, 1", .in = {S4(1, 9, 1, 1)},
     .refused = true},
    {"Slice", "axes = 4; begin = 0; end = 1", .in = {S4(1, 9, 1, 1)}, .refused = true},
    {"Slice", "axes = 1; begin = 0, 0; end = 1", .in = {S4(1, 9, 1, 1)}, .refused = true},
    {"Slice", "begin = 0; end = 1", .in = {S4(1, 9, 1, 1)}, .refused = true},
    {"Slice", "axes = 1; begin = 0; end = 1; step = 0", .in = {S4(1, 9, 1, 1)},
     .refused = true},
    {"Slice", "axes = 1; end = 1", .in = {S4(1, 9, 1, 1)}, .refused = true},
    /* In integer formats. */
    {"Slice", "axes = 1; begin = 3; end = 36; step = 2", .in = {S4(3, 40, 5, 7)},
     INTEGERS},
    {"Slice", "axes = 1, 3; begin = 32, 6; end = 64, 0; step = 1, -1",
     .in = {S4(1, 70, 5, 7)}, INTEGERS},
};

LAYER_CASES(Slice, ORDINARY(cases))
