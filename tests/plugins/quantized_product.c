/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedProduct: all sizes, both orders of the weight, zeros and scales of
 * both ends, and what it must refuse; of E4M3 the same, with NaN.
 */
#include "tests/layers/cases.h"

#define INT8 .in_dtype = {STRATA_INT8}, .weight_low = 0.25, .weight_high = 7
#define U8 .in_dtype = {STRATA_UINT8}, .weight_low = 0.25, .weight_high = 7
#define WHOLE .numbers = NUMBERS_WHOLE_RANGE
/* Scales that leave nothing beyond the largest, but for where that is wanted. Tensor
 * cores keep 14 bits of a sum. */
#define E4M3                                                                             \
    .in_dtype = {STRATA_E4M3}, .tolerance = 8,                                           \
    .weight_range = {[STRATA_QUANTIZED_FACTORS] = {0.25, 2},                             \
                     [STRATA_QUANTIZED_SCALE_IN] = {0.5, 1.5},                           \
                     [STRATA_QUANTIZED_SCALE_OUT] = {0.5, 2}}
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
    {"QuantizedProduct", "units = 5", .sweep = 2, E4M3},
    {"QuantizedProduct", "units = 7; to = e4m3; transposed = yes", .sweep = 3, E4M3},
    {"QuantizedProduct", "units = 32; to = e4m3; activation = relu",
     .in = {S3(3, 100, 144)}, E4M3},
    {"QuantizedProduct", "transposed = yes; activation = clip; alpha = -2; beta = 3",
     .in = {S2(9, 129)}, .weight = {S2(31, 129), {1, {31}}, {1, {1}}}, E4M3},
    {"QuantizedProduct", "units = 48; activation = leaky_relu; alpha = 0.25",
     .in = {S2(17, 80)}, .absent = 2, E4M3},
    {"QuantizedProduct", "units = 16; to = e4m3", .in = {S2(5, 32)},
     .in_dtype = {STRATA_E4M3}, .low = -400, .high = 400}, /* some saturate */
    {"QuantizedProduct", "units = 16; activation = relu6", .in = {S2(20, 48)}, E4M3,
     .numbers = NUMBERS_NAN},
    {"QuantizedProduct", "units = 16; to = e4m3", .in = {S2(20, 48)}, E4M3,
     .numbers = NUMBERS_NAN},
    {"QuantizedProduct", "units = 8; to = e4m3", .in = {S2(0, 16)}, E4M3},
    {"QuantizedProduct", "units = 3; to = int8", .in = {S2(3, 5)}, E4M3, .refused = true},
    {"QuantizedProduct", "units = 3; to = e4m3", .in = {S2(3, 5)}, INT8, .refused = true},
    {"QuantizedProduct", "units = 3; zero_in = 1", .in = {S2(3, 5)}, E4M3,
     .refused = true},
    {"QuantizedProduct", "units = 3; to = e4m3; zero_out = 1", .in = {S2(3, 5)}, E4M3,
     .refused = true},
    {"QuantizedProduct", "units = 3; to = e4m3", .in = {S2(3, 5)}, .absent = 1 << 4, E4M3,
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
    {"QuantizedProduct", "units = 528; to = e4m3", .in = {S2(2100, 272)}, E4M3},
    {"QuantizedProduct", "units = 784; activation = relu", .in = {S2(1300, 1040)}, E4M3},
    {"QuantizedProduct", "units = 144; transposed = yes", .in = {S3(3, 99, 2064)}, E4M3},
    {"QuantizedProduct", "units = 1024; to = e4m3; transposed = yes", .in = {S2(1, 4096)},
     E4M3},
    /* Sums that only grow: in tensor cores alone they would lose 3 %. */
    {"QuantizedProduct", "units = 64", .in = {S2(64, 2064)}, .in_dtype = {STRATA_E4M3},
     .low = 0, .high = 2, .weight_low = 0.001, .weight_high = 1, .tolerance = 8},
};

LAYER_CASES(QuantizedProduct, ORDINARY(cases), LARGE(large))
