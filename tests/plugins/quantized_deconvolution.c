/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedDeconvolution: all channel counts, each attribute, zeros and scales
 * of both ends, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define OF(dtype)                                                                        \
    .in_dtype = {dtype}, .weight_low = 0.25, .weight_high = 7,                           \
    .numbers = NUMBERS_WHOLE_RANGE
static const struct layer_case cases[] = {
    {"QuantizedDeconvolution", "filters = 5; kernel = 3; stride = 2", .sweep = 4,
     OF(STRATA_INT8)},
    {"QuantizedDeconvolution", "filters = 3; kernel = 2; to = int8", .sweep = 4,
     OF(STRATA_UINT8)},
    {"QuantizedDeconvolution", "filters = 4; kernel = 2; to = u8; zero_out = 131",
     .sweep = 3, OF(STRATA_INT8)},
    {"QuantizedDeconvolution", "filters = 4; kernel = 2x1x3; stride = 1x2x1; to = int8",
     .sweep = 5, OF(STRATA_INT8)},
    {"QuantizedDeconvolution",
     "to = int8; zero_in = -7; zero_out = 5; pad = 1; stride = 2; output_pad = 1; "
     "activation = relu",
     .in = {S4(2, 9, 7, 11)}, .weight = {S4(9, 21, 3, 3), {1, {21}}, {1, {21}}},
     OF(STRATA_INT8)},
    {"QuantizedDeconvolution",
     "to = u8; zero_in = 200; groups = 3; stride = 3x2; dilation = 2x1; pad = 0, 1, 2, 1",
     .in = {S4(2, 6, 4, 5)}, .weight = {S4(6, 5, 2, 3), {1, {15}}, {1, {1}}},
     OF(STRATA_UINT8)},
    {"QuantizedDeconvolution",
     "filters = 33; kernel = 4; stride = 2; output_size = 11x9; activation = clip; "
     "alpha = -9.5; beta = 77.25",
     .in = {S4(1, 35, 5, 4)}, OF(STRATA_UINT8)},
    /* Outputs that see no input. */
    {"QuantizedDeconvolution", "filters = 2; kernel = 3; stride = 8",
     .in = {S4(1, 1, 2, 1)}, OF(STRATA_INT8)},
    {"QuantizedDeconvolution",
     "filters = 20; kernel = 2; dilation = 2x3; stride = 3x2; output_pad = 2; to = int8; "
     "zero_out = 3",
     .in = {S4(2, 17, 3, 4)}, OF(STRATA_UINT8)},
    {"QuantizedDeconvolution", "filters = 4; kernel = 3", .in = {S4(1, 3, 8, 8)},
     .refused = true},
    {"QuantizedDeconvolution", "filters = 4; kernel = 3; to = int8",
     .in = {S4(1, 3, 8, 8)}, .absent = 1 << 4, OF(STRATA_INT8), .refused = true},
    {"QuantizedDeconvolution", "filters = 4; kernel = 3; groups = 2",
     .in = {S4(1, 3, 8, 8)}, OF(STRATA_INT8), .refused = true},
};

LAYER_CASES(QuantizedDeconvolution, ORDINARY(cases))
