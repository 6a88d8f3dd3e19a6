/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Concatenation: on and off the borders of blocks, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Concatenation", "", .sweep = 4, .n_in = 2},
    {"Concatenation", "axis = 2", .sweep = 4, .n_in = 3},
    {"Concatenation", "axis = -1", .sweep = 3, .n_in = 2},
    {"Concatenation", "axis = 0", .sweep = 5, .n_in = 2},
    {"Concatenation", "", .n_in = 1, .in = {S4(3, 9, 5, 7)}},
    {"Concatenation", "", .n_in = 3,
     .in = {S4(3, 16, 5, 7), S4(3, 32, 5, 7), S4(3, 5, 5, 7)}},
    {"Concatenation", "", .n_in = 4,
     .in = {S4(1, 3, 5, 7), S4(1, 1, 5, 7), S4(1, 4, 5, 7), S4(1, 8, 5, 7)}},
    {"Concatenation", "", .n_in = 2, .in = {S4(1, 2, 1, 1), S4(1, 17, 1, 1)}},
    {"Concatenation", "", .n_in = 2, .in = {S4(3, 8, 5, 7), S4(3, 8, 5, 7)}},
    {"Concatenation", "axis = -2", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 1, 7)}},
    {"Concatenation", "axis = 0", .n_in = 2, .in = {S2(3, 17), S2(1, 17)}},
    {"Concatenation", "", .n_in = 2, .in = {S2(3, 17), S2(3, 8)}},
    {"Concatenation", "", .n_in = 2, .in = {S4(1, 32, 32, 33), S4(1, 16, 32, 33)}},
    {"Concatenation", "", .n_in = 2, .in = {S4(1, 3, 5, 7), S4(1, 3, 5, 6)},
     .refused = true},
    {"Concatenation", "axis = 4", .n_in = 2, .in = {S4(1, 3, 5, 7), S4(1, 3, 5, 7)},
     .refused = true},
    /* Rows that are written whole, on one thread and on several. */
    {"Concatenation", "axis = -1", .n_in = 3, .in = {S2(5, 65), S2(5, 64), S2(5, 131)}},
    {"Concatenation", "", .n_in = 2, .in = {S3(70, 9, 37), S3(70, 8, 37)}},
    {"Concatenation", "axis = 2", .n_in = 2, .in = {S4(2, 3, 7, 65), S4(2, 3, 1, 65)}},
    /* In integer formats. */
    {"Concatenation", "", .sweep = 4, .n_in = 2, INTEGERS},
    {"Concatenation", "axis = 3", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 1)},
     INTEGERS},
    {"Concatenation", "", .n_in = 3, .in = {S2(3, 32), S2(3, 4), S2(3, 33)}, INTEGERS},
    {"Concatenation", "", .sweep = 4, .n_in = 2, NARROW},
    {"Concatenation", "", .n_in = 3,
     .in = {S4(3, 9, 5, 7), S4(3, 0, 5, 7), S4(3, 7, 5, 7)}},
    {"Concatenation", "", .n_in = 2, .in = {S4(3, 0, 5, 7), S4(3, 17, 5, 7)}, INTEGERS},
    {"Concatenation", "axis = 0", .n_in = 2, .in = {S2(0, 17), S2(0, 17)}},
};

LAYER_CASES(Concatenation, ORDINARY(cases))
