/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Pooling: windows, rounding and pads, alone and global, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Pooling", "kernel = 3; stride = 2", .sweep = 4},
    {"Pooling", "kernel = 2; stride = 2; kind = average; ceil_mode = true", .sweep = 4},
    {"Pooling", "global = true; kind = average", .sweep = 4},
    {"Pooling", "global = true", .sweep = 5},
    {"Pooling", "kernel = 3; pad = 1; kind = average", .sweep = 3},
    {"Pooling", "kernel = 2; pad = 1; stride = 2", .sweep = 5},
    {"Pooling", "kernel = 3; stride = 2; ceil_mode = true", .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "kernel = 3; stride = 3; ceil_mode = true; pad = 1",
     .in = {S4(2, 9, 8, 7)}},
    {"Pooling", "kernel = 3x2; stride = 2x3; pad = 1, 0, 2, 1", .in = {S4(2, 9, 14, 13)}},
    {"Pooling",
     "kernel = 3; stride = 2; pad = 1; kind = average; ceil_mode = true; "
     "count_include_pad = true",
     .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "kernel = 3; stride = 2; pad = 1; kind = average; ceil_mode = true",
     .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "kernel = 3; pad = 1, 2, 0, 3; kind = average; count_include_pad = true",
     .in = {S4(2, 9, 6, 7)}},
    {"Pooling", "kernel = 3; dilation = 2x3; pad = 1", .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "kernel = 2; dilation = 2; pad = 2; kind = average",
     .in = {S4(1, 3, 6, 5)}},
    {"Pooling", "kernel = 3x5; pad_mode = same_upper; stride = 2",
     .in = {S4(1, 3, 6, 9)}},
    {"Pooling",
     "kernel = 4x2; pad_mode = same_lower; kind = average; "
     "count_include_pad = true",
     .in = {S4(1, 3, 6, 9)}},
    {"Pooling", "kernel = 2; pad_mode = valid", .in = {S4(1, 3, 6, 9)}},
    {"Pooling", "kernel = 2; dilation = 4; pad = 2", .in = {S4(1, 2, 1, 1)}},
    {"Pooling", "kernel = 2; dilation = 4; pad = 2; kind = average",
     .in = {S4(1, 2, 1, 1)}},
    {"Pooling", "kernel = 2x3x2; stride = 1x2x2; pad = 1, 1, 0, 0, 1, 1; kind = average",
     .in = {S5(2, 3, 4, 5, 6)}},
    {"Pooling", "kernel = 3; stride = 2; ceil_mode = true", .in = {S4(1, 64, 56, 57)}},
    {"Pooling", "global = true; kind = average", .in = {S4(1, 70, 23, 29)}},
    {"Pooling", "kind = lp; kernel = 3x2; stride = 2; pad = 1", .sweep = 4},
    {"Pooling", "kind = lp; p = 1; kernel = 3; ceil_mode = true; stride = 2; dilation = 2",
     .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "kind = lp; p = 3; kernel = 2; pad_mode = same_upper",
     .in = {S4(2, 9, 6, 5)}},
    {"Pooling", "kind = lp; p = 2.5; kernel = 2x1x3", .in = {S5(1, 3, 4, 5, 6)}},
    {"Pooling", "kind = lp; global = true", .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "kind = lp; kernel = 3; stride = 2", .in = {S3(2, 9, 14)}},
    {"Pooling", "kernel = 3; stride = 2; pad = 1; indices = yes", .sweep = 4},
    {"Pooling", "kernel = 2x3; dilation = 2; indices = yes", .in = {S4(2, 9, 14, 13)}},
    {"Pooling", "global = true; indices = yes", .in = {S5(2, 3, 4, 5, 6)}},
    {"Pooling", "kernel = 2; pad = 2; dilation = 4; indices = yes",
     .in = {S4(1, 2, 1, 1)}},
    {"Pooling", "kernel = 3; stride = 2; indices = yes", .in = {S3(2, 9, 14)}},
    {"Pooling", "kind = average; kernel = 3; indices = yes", .in = {S4(1, 3, 9, 9)},
     .refused = true},
    {"Pooling", "kind = lp; p = 0; kernel = 3", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"Pooling", "", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"Pooling", "global = true; kernel = 3", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"Pooling", "kernel = 10", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"Pooling", "kernel = 3; stride = 1, 1, 1", .in = {S4(1, 3, 9, 9)}, .refused = true},
    {"Pooling", "kernel = 3", .in = {S2(3, 9)}, .refused = true},
    /* Bytes: where oneDNN is. */
    {"Pooling", "kernel = 3; stride = 2; pad = 1", .in = {S4(2, 33, 9, 8)},
     .in_dtype = {STRATA_INT8}, .numbers = NUMBERS_WHOLE_RANGE},
    {"Pooling", "global = yes", .in = {S4(2, 5, 4, 3)}, .in_dtype = {STRATA_UINT8},
     .numbers = NUMBERS_WHOLE_RANGE},
};

static const struct layer_case large[] = {
    {"Pooling", "kernel = 3; pad = 1", .in = {S4(1, 64, 134, 130)}},
    {"Pooling", "kernel = 3; pad = 1; kind = average; count_include_pad = true",
     .in = {S4(1, 66, 131, 137)}},
    {"Pooling", "kernel = 5x3; stride = 2; pad = 1; kind = average",
     .in = {S4(1, 72, 270, 141)}},
    {"Pooling", "kernel = 3; stride = 2; pad = 1", .in = {S4(1, 7, 730, 732)}},
    {"Pooling", "global = true; kind = average", .in = {S4(2, 23, 150, 151)}},
    {"Pooling", "global = true", .in = {S4(1, 8, 256, 256)}},
    {"Pooling", "global = true; kind = average", .in = {S4(1, 3, 61, 63)}},
    {"Pooling", "global = true; kind = average", .in = {S4(16, 515, 7, 7)}},
    {"Pooling", "kernel = 3; stride = 2; pad = 1; indices = yes",
     .in = {S4(2, 66, 70, 131)}},
    {"Pooling", "kind = lp; kernel = 3; pad = 1", .in = {S4(1, 66, 131, 137)}},
};

LAYER_CASES(Pooling, ORDINARY(cases), LARGE(large))
