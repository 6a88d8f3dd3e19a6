/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedProduct: all sizes, both orders of the weight, zeros and scales of
 * both ends, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define INT8 .in_dtype = {STRATA_INT8}, .weight_low = 0.25, .weight_high = 7
#define U8 .in_dtype = {STRATA_UINT8}, .weight_low = 0.25, .weight_high = 7
#define WHOLE .numbers = NUMBERS_WHOLE_RANGE
static const struct layer_case cases[] = {
    {"QuantizedProduct", "units = 5", .sweep = 2, INT8, WHOLE},
    {"QuantizedProduct", "units = 7; to = int8; transposed = yes", .sweep = 3, INT8,
     WHOLE},
    {"QuantizedProduct", "to = u8; zero_in = 131; zero_out = 7; activation = relu",
     .in = {S3(2, 5, 67)}, .weight = {S2(67, 33), {1, {33}}, {1, {1}}}, U8, WHOLE},
    {"QuantizedProduct", "units = 31; to = int8; activation = leaky_relu; alpha = 0.25",
     .in = {S2(9, 129)}, U8, WHOLE},
    {"QuantizedProduct", "units = 31; to = int8", .in = {S2(9, 129)}, .absent = 2, INT8,
     WHOLE},
    {"QuantizedProduct", "units = 3", .in = {S2(3, 5)}, .refused = true},
    {"QuantizedProduct", "units = 3; to = u8", .in = {S2(3, 5)}, .absent = 1 << 4, INT8,
     .refused = true},
    {"QuantizedProduct", "", .in = {S2(3, 5)}, .weight = {S2(4, 3)}, INT8,
     .refused = true},
};

/* Sums of some thousand products that stay within bytes, whatever the depth; not as
 * NUMBERS_WHOLE_RANGE, which is for small tensors. */
#define SCALED                                                                           \
    .low = -128, .high = 255,                                                            \
    .weight_range = {[STRATA_QUANTIZED_WEIGHT] = {-128, 127},                            \
                     [STRATA_QUANTIZED_BIAS] = {-200, 200},                              \
                     [STRATA_QUANTIZED_FACTORS] = {0.005, 0.015},                        \
                     [STRATA_QUANTIZED_SCALE_IN] = {0.5, 1.5},                           \
                     [STRATA_QUANTIZED_SCALE_OUT] = {10, 40}}
static const struct layer_case large[] = {
    /* Tiles at edges, blocks that go through several, depths that are shared. */
    {"QuantizedProduct", "units = 528; to = int8", .in = {S2(2100, 272)},
     .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedProduct", "units = 144; to = u8; transposed = yes; zero_in = 31",
     .in = {S3(3, 111, 1040)}, .in_dtype = {STRATA_UINT8}, SCALED},
    {"QuantizedProduct", "units = 1000; activation = relu", .in = {S2(33, 2048)},
     .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedProduct", "units = 768; activation = leaky_relu; alpha = 0.125",
     .in = {S2(1500, 144)}, .in_dtype = {STRATA_INT8}, SCALED},
};

LAYER_CASES(QuantizedProduct, ORDINARY(cases), LARGE(large))
