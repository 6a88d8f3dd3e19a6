/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedPooling: planes and windows in every format, pads that count or do
 * not, zeros, activations, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define SCALES .weight_low = 0.125, .weight_high = 2, .numbers = NUMBERS_WHOLE_RANGE
#define SIGNED .in_dtype = {STRATA_INT8}, SCALES
#define MAXIMA .weight_low = 0.125, .weight_high = 2
static const struct layer_case cases[] = {
    {"QuantizedPooling", "global = true; to = int8", .sweep = 4, SIGNED},
    {"QuantizedPooling", "kernel = 2; stride = 2; ceil_mode = true; to = int8",
     .sweep = 4, SIGNED},
    {"QuantizedPooling", "global = true; to = u8; zero_in = -3; zero_out = 17",
     .in = {S4(2, 33, 7, 7)}, SIGNED},
    {"QuantizedPooling",
     "global = true; to = int8; zero_in = 200; zero_out = -9; activation = relu",
     .in = {S4(2, 64, 5, 9)}, .in_dtype = {STRATA_UINT8}, SCALES},
    {"QuantizedPooling", "kernel = 3; stride = 2; pad = 1; zero_in = 5; to = int8",
     .in = {S4(2, 36, 9, 7)}, SIGNED},
    {"QuantizedPooling",
     "kernel = 3; pad = 1, 2, 0, 3; count_include_pad = true; to = int8",
     .in = {S4(2, 9, 6, 7)}, SIGNED},
    {"QuantizedPooling", "kernel = 2; dilation = 2; pad = 2; to = int8",
     .in = {S4(1, 3, 6, 5)}, SIGNED},
    {"QuantizedPooling", "kernel = 5x4; activation = clip; alpha = -3; beta = 40",
     .in = {S4(2, 33, 6, 8)}, SIGNED},
    {"QuantizedPooling", "global = true", .in = {S5(2, 33, 3, 4, 5)}, SIGNED},
    {"QuantizedPooling", "kind = max; kernel = 3; stride = 2; pad = 1; to = int8",
     .in = {S4(2, 64, 9, 7)}, .low = -40, .high = 40, MAXIMA},
    {"QuantizedPooling", "kind = max; kernel = 2; stride = 2; to = u8; zero_out = 9",
     .in = {S4(2, 33, 9, 8)}, .low = -40, .high = 40, MAXIMA},
    {"QuantizedPooling",
     "kind = max; kernel = 4x3; dilation = 2x1; pad = 1; to = int8; "
     "activation = relu",
     .in = {S4(1, 40, 12, 8)}, .low = -40, .high = 40, MAXIMA},
    {"QuantizedPooling", "kind = max; kernel = 2", .in = {S4(2, 3, 4, 4)},
     .refused = true},
    {"QuantizedPooling", "kind = max; kernel = 2; to = int8", .in = {S4(2, 3, 4, 4)},
     .refused = true, SIGNED},
    {"QuantizedPooling", "global = true; zero_in = 200", .in = {S4(2, 3, 4, 4)},
     .refused = true, SIGNED},
    {"QuantizedPooling", "global = true; kernel = 2", .in = {S4(2, 3, 4, 4)},
     .refused = true, SIGNED},
};

/* More windows than warps share. */
static const struct layer_case large[] = {
    {"QuantizedPooling", "global = true; to = int8; zero_out = 3",
     .in = {S4(20, 2048, 7, 7)}, SIGNED},
    {"QuantizedPooling", "global = true; zero_in = -5", .in = {S4(30, 1300, 6, 9)},
     SIGNED},
};

LAYER_CASES(QuantizedPooling, ORDINARY(cases), LARGE(large))
