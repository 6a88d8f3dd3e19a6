/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of FullyConnected: all channel counts, weights either way, few images and
 * many, deep ones, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"FullyConnected", "units = 10", .sweep = 4},
    {"FullyConnected", "units = 70; transposed = true", .sweep = 4},
    {"FullyConnected", "units = 3", .sweep = 3},
    {"FullyConnected", "units = 4", .sweep = 5},
    {"FullyConnected", "units = 5", .in = {S2(3, 37)}},
    {"FullyConnected", "units = 129; transposed = true", .in = {S2(5, 300)}, .absent = 2},
    {"FullyConnected", "", .in = {S2(2, 300)}, .weight = {S2(203, 300)}},
    {"FullyConnected", "transposed = true", .in = {S4(2, 3, 4, 5)},
     .weight = {S2(60, 7)}},
    {"FullyConnected", "units = 200", .in = {S4(4, 40, 6, 6)}},
    /* more images than one by one pays for, on and off the borders of tiles */
    {"FullyConnected", "units = 70", .in = {S2(33, 37)}},
    {"FullyConnected", "units = 150", .in = {S4(70, 65, 2, 2)}},
    {"FullyConnected", "units = 128; transposed = true", .in = {S2(64, 96)}},
    /* deep ones, whose depth blocks may share, with ends inside of tiles */
    {"FullyConnected", "units = 200", .in = {S2(72, 1096)}},
    {"FullyConnected", "units = 104; transposed = true", .in = {S2(136, 520)}},
    {"FullyConnected", "units = 1003", .in = {S4(1, 130, 3, 3)}},
    {"FullyConnected", "units = 4", .in = {S4(0, 3, 5, 7)}},
    /* all bits of FP32, which only TF32 may lose */
    {"FullyConnected", "units = 128", .in = {S4(60, 64, 2, 2)}, .numbers = NUMBERS_FINE},
    {"FullyConnected", "units = 4", .in = {S2(2, 0)}, .refused = true},
    {"FullyConnected", "", .in = {S2(2, 300)}, .refused = true},
    {"FullyConnected", "units = 4", .in = {S2(2, 300)}, .weight = {S2(4, 299)},
     .refused = true},
    {"FullyConnected", "units = 4", .in = {{1, {300}}}, .refused = true},
};

/* Many tiles, and more than a chip has room for. */
static const struct layer_case large[] = {
    {"FullyConnected", "units = 2968", .in = {S2(700, 72)}},
    {"FullyConnected", "units = 1001", .in = {S4(257, 128, 4, 4)}},
};

LAYER_CASES(FullyConnected, ORDINARY(cases), LARGE(large))
