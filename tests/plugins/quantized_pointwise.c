/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedPointwise: every format and pair of dtypes, functions of all bytes,
 * roundings in between, lengths that end within a vector, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define SILU                                                                             \
    "program = \"dequantize x0 0.125 3, sigmoid r0, quantize_u8 r1 0.00390625 0, "       \
    "dequantize r2 0.00390625 0, product r0 r3, quantize_int8 r4 0.0625 -100\""
static const struct layer_case cases[] = {
    {"QuantizedPointwise", SILU, .sweep = 4, .n_in = 1, .in_dtype = {STRATA_INT8},
     .numbers = NUMBERS_WHOLE_RANGE},
    {"QuantizedPointwise", SILU, .in = {S4(3, 37, 5, 7)}, .n_in = 1,
     .in_dtype = {STRATA_UINT8}, .numbers = NUMBERS_WHOLE_RANGE},
    {"QuantizedPointwise", "program = \"dequantize x0 0.5 -7, quantize_u8 r0 0.75 200\"",
     .in = {S4(1, 65, 3, 5)}, .n_in = 1, .in_dtype = {STRATA_INT8},
     .numbers = NUMBERS_WHOLE_RANGE},
    {"QuantizedPointwise", "program = \"quantize_int8 x0 1 -128\"", .in = {S2(2, 129)},
     .n_in = 1, .in_dtype = {STRATA_UINT8}, .numbers = NUMBERS_WHOLE_RANGE},
    {"QuantizedPointwise",
     "program = \"dequantize x0 1 0, log r0, quantize_int8 r1 0.1 5\"",
     .in = {S2(2, 256)}, .n_in = 1, .in_dtype = {STRATA_INT8},
     .numbers = NUMBERS_WHOLE_RANGE},
    {"QuantizedPointwise", "program = \"dequantize x0 1 0\"", .in = {S2(2, 33)},
     .n_in = 1, .in_dtype = {STRATA_INT8}, .refused = true},
    {"QuantizedPointwise", "program = \"quantize_u8 x0 1 0\"", .in = {S2(2, 33)},
     .n_in = 1, .in_dtype = {STRATA_FP32}, .refused = true},
};

LAYER_CASES(QuantizedPointwise, ORDINARY(cases))
