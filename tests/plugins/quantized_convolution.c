/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedConvolution: all channel counts, each attribute, zeros and scales of
 * both ends, every activation, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define INT8 .in_dtype = {STRATA_INT8}, .weight_low = 0.25, .weight_high = 7
#define U8 .in_dtype = {STRATA_UINT8}, .weight_low = 0.25, .weight_high = 7
#define WHOLE .numbers = NUMBERS_WHOLE_RANGE
static const struct layer_case cases[] = {
    {"QuantizedConvolution", "filters = 5; kernel = 3; pad = 1", .sweep = 4, INT8, WHOLE},
    {"QuantizedConvolution", "filters = 3; kernel = 2; to = int8", .sweep = 4, INT8,
     WHOLE},
    {"QuantizedConvolution", "filters = $C; groups = $C; kernel = 3; pad = 1; to = int8",
     .sweep = 4, INT8, WHOLE},
    {"QuantizedConvolution", "filters = 4; kernel = 2; to = u8; zero_out = 131",
     .sweep = 3, INT8, WHOLE},
    {"QuantizedConvolution", "filters = 4; kernel = 2x1x3; to = int8", .sweep = 5, INT8,
     WHOLE},
    {"QuantizedConvolution", "to = int8; zero_in = -7; zero_out = 5; pad = 1",
     .in = {S4(2, 9, 7, 11)}, .weight = {S4(12, 3, 3, 3), {1, {12}}, {1, {1}}}, INT8,
     WHOLE, .refused = true},
    {"QuantizedConvolution",
     "to = int8; zero_in = -7; zero_out = 5; pad = 1; groups = 3; activation = relu",
     .in = {S4(2, 9, 7, 11)}, .weight = {S4(12, 3, 3, 3), {1, {12}}, {1, {1}}}, INT8,
     WHOLE},
    {"QuantizedConvolution",
     "filters = 6; kernel = 4x3; pad = 0, 1, 3, 2; stride = 2x3; to = u8; zero_in = 200; "
     "zero_out = 3; activation = relu6",
     .in = {S4(1, 4, 6, 5)}, U8, WHOLE},
    {"QuantizedConvolution",
     "filters = 6; kernel = 3; dilation = 2x1; to = int8; activation = leaky_relu; "
     "alpha = 0.125",
     .in = {S4(2, 33, 9, 8)}, U8, WHOLE},
    {"QuantizedConvolution",
     "filters = 6; kernel = 3; pad_mode = same_upper; activation = clip; alpha = -9.5; "
     "beta = 77.25",
     .in = {S4(2, 5, 9, 8)}, U8, WHOLE},
    {"QuantizedConvolution", "filters = 37; kernel = 1; to = int8",
     .in = {S4(2, 35, 3, 5)}, .absent = 2, .in_dtype = {STRATA_INT8}, WHOLE,
     .weight_low = 1, .weight_high = 1},
    {"QuantizedConvolution", "filters = 4; kernel = 3", .in = {S4(1, 3, 8, 8)},
     .refused = true},
    {"QuantizedConvolution", "filters = 4; kernel = 3; to = int8", .in = {S4(1, 3, 8, 8)},
     .absent = 1 << 4, INT8, .refused = true},
    {"QuantizedConvolution", "filters = 4; kernel = 3; zero_in = 200",
     .in = {S4(1, 3, 8, 8)}, INT8, .refused = true},
    {"QuantizedConvolution", "filters = 4; kernel = 3; to = u8; zero_out = -1",
     .in = {S4(1, 3, 8, 8)}, INT8, .refused = true},
    {"QuantizedConvolution", "filters = 4; kernel = 3; groups = 2",
     .in = {S4(1, 3, 8, 8)}, INT8, .refused = true},
};

LAYER_CASES(QuantizedConvolution, ORDINARY(cases))
