/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedConvolution: all channel counts, each attribute, zeros and scales of
 * both ends, every activation, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define INT8 .in_dtype = {STRATA_INT8}, .weight_low = 0.25, .weight_high = 7
#define U8 .in_dtype = {STRATA_UINT8}, .weight_low = 0.25, .weight_high = 7
#define WHOLE .numbers = NUMBERS_WHOLE_RANGE
/* Sums of some thousand products that stay within bytes, whatever the depth; not as
 * NUMBERS_WHOLE_RANGE, which is for small tensors. */
#define SCALED                                                                           \
    .low = -128, .high = 255,                                                            \
    .weight_range = {[STRATA_QUANTIZED_WEIGHT] = {-128, 127},                            \
                     [STRATA_QUANTIZED_BIAS] = {-200, 200},                              \
                     [STRATA_QUANTIZED_FACTORS] = {0.005, 0.015},                        \
                     [STRATA_QUANTIZED_SCALE_IN] = {0.5, 1.5},                           \
                     [STRATA_QUANTIZED_SCALE_OUT] = {10, 40},                            \
                     [STRATA_QUANTIZED_SCALE_ADDEND] = {1, 9},                           \
                     [STRATA_QUANTIZED_SCALE_BETWEEN] = {10, 40}}
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
    {"QuantizedConvolution", "to = int8; zero_addend = 5; pad = 1",
     .in = {S4(2, 9, 7, 11), S4(2, 12, 7, 11)}, .n_in = 2,
     .weight = {S4(12, 9, 3, 3), {1, {12}}}, .in_dtype = {STRATA_INT8, STRATA_INT8},
     WHOLE, .weight_low = 0.25, .weight_high = 7},
    {"QuantizedConvolution",
     "to = u8; zero_out = 9; zero_in = 3; zero_addend = 201; stride = 2; groups = 4; "
     "activation = relu",
     .in = {S4(2, 8, 7, 11), S4(2, 12, 3, 5)}, .n_in = 2,
     .weight = {S4(12, 2, 3, 3), {1, {12}}, {1, {1}}},
     .in_dtype = {STRATA_UINT8, STRATA_UINT8}, WHOLE, .weight_low = 0.25,
     .weight_high = 7},
    {"QuantizedConvolution",
     "between = u8; zero_between = 130; zero_addend = -100; activation = leaky_relu; "
     "alpha = 0.25; to = int8; zero_out = -9",
     .in = {S4(3, 6, 4, 5), S4(3, 70, 4, 5)}, .n_in = 2,
     .weight = {S4(70, 6, 1, 1), {1, {70}}, {1, {70}}},
     .in_dtype = {STRATA_UINT8, STRATA_INT8}, WHOLE, .weight_low = 0.25,
     .weight_high = 7},
    {"QuantizedConvolution",
     "between = int8; zero_between = -3; dilation = 1x2; pad = 0, 2, 1, 0; activation = "
     "clip; alpha = -200; beta = 90.5",
     .in = {S4(1, 7, 5, 9), S4(1, 80, 4, 7)}, .n_in = 2,
     .weight = {S4(80, 7, 3, 3), {1, {80}}, {1, {1}}},
     .in_dtype = {STRATA_INT8, STRATA_UINT8}, WHOLE, .weight_low = 0.25,
     .weight_high = 7},
    {"QuantizedConvolution",
     "to = u8; zero_out = 200; activation = clip; alpha = -900; "
     "beta = -500",
     .in = {S3(2, 5, 30)}, .weight = {{3, {67, 5, 4}}, {1, {67}}}, INT8, WHOLE},
    /* A channel a group: blocks of 64, 32 and 16 channels, and what is left of them. */
    {"QuantizedConvolution", "groups = 16; pad = 1; to = u8; zero_in = 3; zero_out = 7",
     .in = {S4(2, 16, 5, 11)}, .weight = {S4(16, 1, 3, 3), {1, {16}}, {1, {16}}}, U8,
     WHOLE},
    {"QuantizedConvolution", "groups = 37; pad = 2; stride = 2; to = int8; zero_in = -9",
     .in = {S4(1, 37, 7, 9)}, .weight = {S4(37, 1, 5, 5), {1, {37}}, {1, {1}}}, INT8,
     WHOLE},
    {"QuantizedConvolution",
     "groups = 51; pad = 3, 2, 1, 0; stride = 2x1; activation = leaky_relu; "
     "alpha = 0.25; to = u8",
     .in = {S4(2, 51, 9, 14)}, .weight = {S4(51, 1, 7, 7), {1, {51}}, {1, {51}}}, U8,
     WHOLE},
    {"QuantizedConvolution", "groups = 31; stride = 3; pad = 1; zero_in = 200",
     .in = {S4(1, 31, 10, 13)}, .weight = {S4(31, 1, 2, 4), {1, {31}}, {1, {31}}}, U8,
     WHOLE},
    {"QuantizedConvolution", "groups = 80; pad = 1; activation = relu6; to = int8",
     .in = {S4(1, 80, 13, 3)}, .weight = {S4(80, 1, 3, 3), {1, {80}}, {1, {80}}}, INT8,
     WHOLE},
    {"QuantizedConvolution",
     "groups = 97; pad = 4, 0, 0, 3; to = u8; zero_out = 99; activation = clip; "
     "alpha = -30; beta = 90.5",
     .in = {S4(1, 97, 9, 6)}, .weight = {S4(97, 1, 8, 1), {1, {97}}, {1, {97}}}, INT8,
     WHOLE},
    {"QuantizedConvolution", "groups = 115; stride = 5x4; to = u8",
     .in = {S4(1, 115, 12, 9)}, .weight = {S4(115, 1, 1, 1), {1, {115}}, {1, {1}}}, U8,
     WHOLE},
    {"QuantizedConvolution", "groups = 130; pad = 2; to = int8; zero_in = 5",
     .in = {S3(3, 130, 9)}, .weight = {{3, {130, 1, 6}}, {1, {130}}}, U8, WHOLE},
    {"QuantizedConvolution",
     "to = int8; kernel = 3x2x1; stride = 1x2x1; pad = 1; "
     "filters = 19",
     .in = {S5(2, 10, 4, 5, 6)}, INT8, WHOLE},
    {"QuantizedConvolution", "to = int8", .in = {S4(1, 3, 8, 8), S4(1, 4, 8, 7)},
     .n_in = 2, .weight = {S4(4, 3, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_INT8},
     .refused = true},
    {"QuantizedConvolution", "to = int8; between = int8", .in = {S4(1, 3, 8, 8)},
     .weight = {S4(4, 3, 1, 1)}, INT8, .refused = true},
    {"QuantizedConvolution", "to = int8", .in = {S4(1, 3, 8, 8), S4(1, 4, 8, 8)},
     .n_in = 2, .weight = {S4(4, 3, 1, 1)}, .absent = 1 << 5,
     .in_dtype = {STRATA_INT8, STRATA_INT8}, .refused = true},
    {"QuantizedConvolution", "to = int8; between = u8; zero_between = -1",
     .in = {S4(1, 3, 8, 8), S4(1, 4, 8, 8)}, .n_in = 2, .weight = {S4(4, 3, 1, 1)},
     .in_dtype = {STRATA_INT8, STRATA_INT8}, .refused = true},
    /* Weights of more than a quarter of a megabyte, which are read in pieces: the last
     * one is shorter, and so is the last block of filters. */
    {"QuantizedConvolution", "to = u8; zero_in = 77; zero_out = 9; pad = 1; stride = 2",
     .in = {S4(1, 261, 9, 13)}, .weight = {S4(131, 261, 3, 3), {1, {131}}, {1, {131}}},
     U8, SCALED},
    {"QuantizedConvolution", "zero_in = -5; activation = relu",
     .in = {S4(2, 1030, 9, 13)}, .weight = {S4(280, 1030, 1, 1), {1, {280}}, {1, {1}}},
     INT8, SCALED},
    /* Sums that are rounded and joined: whole vectors of filters and not, several tiles,
     * both second inputs. */
    {"QuantizedConvolution",
     "between = u8; zero_between = 121; zero_addend = 7; to = u8; activation = relu",
     .in = {S4(2, 20, 11, 13), S4(2, 112, 11, 13)}, .n_in = 2,
     .weight = {S4(112, 20, 1, 1), {1, {112}}, {1, {112}}},
     .in_dtype = {STRATA_UINT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "between = int8; zero_between = -9; zero_addend = 3; to = int8; zero_out = 17; "
     "pad = 1",
     .in = {S4(1, 24, 7, 9), S4(1, 200, 7, 9)}, .n_in = 2,
     .weight = {S4(200, 24, 3, 3), {1, {200}}, {1, {200}}},
     .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "between = u8; zero_between = 99; zero_addend = -100; to = u8; zero_out = 128; "
     "stride = 2",
     .in = {S4(1, 1100, 9, 9), S4(1, 256, 5, 5)}, .n_in = 2,
     .weight = {S4(256, 1100, 1, 1), {1, {256}}, {1, {1}}},
     .in_dtype = {STRATA_UINT8, STRATA_INT8}, SCALED},
    /* Tiles of AMX: pixels as they lie, the last ones of which do not fill a tile, of one
     * image and of three. */
    {"QuantizedConvolution", "to = u8; zero_in = 7; zero_out = 9; activation = relu",
     .in = {S4(3, 64, 5, 7)}, .weight = {S4(83, 64, 1, 1), {1, {83}}, {1, {83}}}, U8,
     SCALED},
    {"QuantizedConvolution", "to = int8; zero_in = -7; zero_addend = 3; between = u8",
     .in = {S4(1, 128, 1, 1), S4(1, 130, 1, 1)}, .n_in = 2,
     .weight = {S4(130, 128, 1, 1), {1, {130}}, {1, {1}}},
     .in_dtype = {STRATA_INT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution", "zero_in = 130; activation = clip; alpha = -900; beta = 900",
     .in = {S3(1, 192, 47)}, .weight = {{3, {20, 192, 1}}, {1, {20}}}, U8, SCALED},
    /* A copy with pads, over the ends of whose rows tiles go on; rows with tiles of their
     * own; dilated ones; few channels, several images, one pixel. */
    {"QuantizedConvolution", "to = int8; zero_in = -100; zero_out = 5; pad = 1",
     .in = {S4(3, 128, 7, 9)}, .weight = {S4(67, 128, 3, 3), {1, {67}}, {1, {67}}}, INT8,
     SCALED},
    {"QuantizedConvolution",
     "to = u8; zero_in = 100; stride = 2; pad = 1; between = u8; zero_between = 120; "
     "zero_addend = 7",
     .in = {S4(2, 64, 9, 37), S4(2, 32, 5, 19)}, .n_in = 2,
     .weight = {S4(32, 64, 3, 3), {1, {32}}, {1, {32}}},
     .in_dtype = {STRATA_UINT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "zero_in = 33; stride = 1x2; dilation = 2x1; pad = 2, 0, 1, 4; activation = relu",
     .in = {S4(2, 64, 8, 21)}, .weight = {S4(50, 64, 3, 2), {1, {50}}}, INT8, SCALED},
    {"QuantizedConvolution", "to = u8; zero_in = 3; dilation = 1x3; pad = 2, 3",
     .in = {S4(1, 64, 6, 17)}, .weight = {S4(16, 64, 2, 3), {1, {16}}}, U8, SCALED},
    {"QuantizedConvolution", "to = u8; zero_in = 114; stride = 2; pad = 3; zero_out = 3",
     .in = {S4(2, 3, 37, 35)}, .weight = {S4(64, 3, 7, 7), {1, {64}}, {1, {64}}}, U8,
     SCALED},
    /* Not a plane: its windows lie in the pads before the depth. */
    {"QuantizedConvolution",
     "to = int8; zero_in = 5; stride = 2x1x1; pad = 1, 1, 1, 0, 1, 1",
     .in = {S5(1, 64, 1, 8, 8)}, .weight = {{5, {32, 64, 1, 3, 3}}, {1, {32}}}, INT8,
     SCALED},
    {"QuantizedConvolution", "to = int8; zero_in = 100; pad = 1", .in = {S4(3, 64, 1, 1)},
     .weight = {S4(48, 64, 3, 3), {1, {48}}, {1, {1}}}, INT8, SCALED},
    /* Windows that are gathered: many and few pixels, volumes, rows that are dilated. */
    {"QuantizedConvolution", "to = u8; zero_in = 5; stride = 2; activation = relu",
     .in = {S4(3, 100, 11, 9)}, .weight = {S4(70, 100, 1, 1), {1, {70}}}, INT8, SCALED},
    {"QuantizedConvolution", "to = int8; zero_in = 200; stride = 2; pad = 1",
     .in = {S4(2, 192, 6, 6)}, .weight = {S4(144, 192, 3, 3), {1, {144}}, {1, {144}}}, U8,
     SCALED},
    {"QuantizedConvolution", "to = u8; zero_in = -9; pad = 1; dilation = 1x1x2",
     .in = {S5(2, 48, 3, 5, 6)}, .weight = {{5, {24, 48, 3, 2, 3}}, {1, {24}}}, INT8,
     SCALED},
};

static const struct layer_case large[] = {
    /* Blocks go through several tiles each; thin and deep windows; depths that are
     * shared; channels with pad lanes. */
    {"QuantizedConvolution", "filters = 64; kernel = 1; to = int8",
     .in = {S4(12, 64, 61, 60)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "filters = 45; kernel = 3; pad = 1; to = int8; zero_out = 9",
     .in = {S4(4, 30, 60, 61)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 136; kernel = 3x2; stride = 2; pad = 0, 1, 1, 0; to = int8; "
     "activation = relu",
     .in = {S4(8, 80, 49, 50)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "filters = 272; kernel = 1; stride = 2; to = u8",
     .in = {S4(5, 144, 65, 61)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 400; kernel = 1; to = int8; activation = clip; alpha = -90; beta = 600",
     .in = {S4(7, 96, 60, 41)}, .in_dtype = {STRATA_UINT8}, SCALED},
    {"QuantizedConvolution", "filters = 64; kernel = 1; to = u8; zero_in = 130",
     .in = {S4(3, 96, 33, 31)}, .in_dtype = {STRATA_UINT8}, SCALED},
    {"QuantizedConvolution", "filters = 32; kernel = 3; pad = 1; dilation = 1x2",
     .in = {S4(2, 512, 7, 9)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "filters = 128; kernel = 1", .in = {S4(3, 256, 29, 31)},
     .in_dtype = {STRATA_UINT8}, SCALED},
    {"QuantizedConvolution", "to = int8; zero_addend = 5; activation = relu",
     .in = {S4(3, 64, 56, 57), S4(3, 208, 56, 57)}, .n_in = 2,
     .weight = {S4(208, 64, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    /* The last tile of 192 columns ends at 384. */
    {"QuantizedConvolution", "filters = 208; kernel = 1; to = int8; activation = relu",
     .in = {S4(5, 128, 57, 59)}, .in_dtype = {STRATA_INT8}, SCALED},
    /* Warpgroups have three tiles and more, so that both buffers come again. */
    {"QuantizedConvolution",
     "to = int8; zero_out = -3; zero_addend = 130; activation = relu",
     .in = {S4(9, 32, 64, 63), S4(9, 272, 64, 63)}, .n_in = 2,
     .weight = {S4(272, 32, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "to = int8; zero_out = 3; between = int8; zero_between = -7; pad = 1",
     .in = {S4(2, 144, 9, 9), S4(2, 75, 9, 9)}, .n_in = 2, .weight = {S4(75, 144, 3, 3)},
     .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "to = int8; between = u8; zero_between = 120",
     .in = {S4(5, 256, 30, 31), S4(5, 136, 30, 31)}, .n_in = 2,
     .weight = {S4(136, 256, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    /* Weights that stay: several tiles of a block, pieces of channels that are not whole,
     * more of them than a ring has stages. */
    {"QuantizedConvolution",
     "to = int8; between = u8; zero_between = 120; zero_out = -9; activation = relu",
     .in = {S4(6, 300, 50, 49), S4(6, 136, 50, 49)}, .n_in = 2,
     .weight = {S4(136, 300, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_UINT8}, SCALED},
    /* Three units of a block and more, with pieces of channels that are not whole, one
     * and two of them; patches; every other pixel. */
    {"QuantizedConvolution",
     "to = int8; zero_in = 9; between = u8; zero_between = 120; zero_addend = -5; "
     "zero_out = 3",
     .in = {S4(6, 150, 57, 59), S4(6, 264, 57, 59)}, .n_in = 2,
     .weight = {S4(264, 150, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "to = u8; zero_in = 12; zero_addend = 77; activation = relu",
     .in = {S4(7, 50, 51, 61), S4(7, 270, 51, 61)}, .n_in = 2,
     .weight = {S4(270, 50, 1, 1)}, .in_dtype = {STRATA_UINT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "to = int8; zero_in = -128; zero_addend = 3; stride = 2; activation = relu",
     .in = {S4(8, 130, 97, 99), S4(8, 264, 49, 50)}, .n_in = 2,
     .weight = {S4(264, 130, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "to = int8; zero_addend = 3; pad = 1; activation = relu",
     .in = {S4(16, 10, 60, 59), S4(16, 130, 60, 59)}, .n_in = 2,
     .weight = {S4(130, 10, 3, 3)}, .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution", "filters = 144; kernel = 1; to = u8; zero_in = 7",
     .in = {S4(6, 1000, 40, 41)}, .in_dtype = {STRATA_UINT8}, SCALED},
    /* The same of few channels: rows that do not fill a unit, from the first one on and
     * from the last; sums that are rounded and joined; every third pixel; patches of 3x3
     * and of others, an odd number of them. */
    {"QuantizedConvolution",
     "to = int8; zero_in = 4; zero_out = -5; zero_addend = 99; activation = relu",
     .in = {S4(9, 20, 53, 41), S4(9, 75, 53, 41)}, .n_in = 2,
     .weight = {S4(75, 20, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "to = u8; between = int8; zero_between = 8; zero_out = 100; zero_addend = -3",
     .in = {S4(9, 70, 53, 41), S4(9, 80, 53, 41)}, .n_in = 2,
     .weight = {S4(80, 70, 1, 1)}, .in_dtype = {STRATA_UINT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 75; kernel = 1; to = int8; zero_in = -9; activation = relu",
     .in = {S4(9, 96, 53, 41)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "to = int8; zero_in = 7; zero_addend = 5; stride = 3x2; activation = relu",
     .in = {S4(13, 72, 71, 73), S4(13, 130, 24, 37)}, .n_in = 2,
     .weight = {S4(130, 72, 1, 1)}, .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 130; kernel = 1; stride = 2; to = u8; activation = relu",
     .in = {S4(9, 300, 61, 73)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 100; kernel = 3; pad = 1; to = int8; activation = relu; zero_out = -128",
     .in = {S4(11, 16, 61, 45)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "to = u8; between = u8; zero_between = 3; zero_addend = 3; pad = 1",
     .in = {S4(11, 12, 49, 45), S4(11, 100, 49, 45)}, .n_in = 2,
     .weight = {S4(100, 12, 3, 3)}, .in_dtype = {STRATA_INT8, STRATA_UINT8}, SCALED},
    {"QuantizedConvolution", "filters = 100; kernel = 2x5; pad = 0, 2, 1, 2; to = int8",
     .in = {S4(11, 24, 49, 45)}, .in_dtype = {STRATA_UINT8}, SCALED},
    /* A channel a group. */
    {"QuantizedConvolution",
     "filters = 36; groups = 36; kernel = 5; stride = 2; pad = 2, 1, 1, 2; to = u8",
     .in = {S4(2, 36, 29, 31)}, .in_dtype = {STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 144; groups = 144; kernel = 3; pad = 1; to = u8; zero_in = 3",
     .in = {S4(1, 144, 30, 101)}, .in_dtype = {STRATA_UINT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 40; groups = 40; kernel = 5; pad = 2; to = int8; zero_out = -128",
     .in = {S4(1, 40, 33, 70)}, .in_dtype = {STRATA_INT8}, SCALED},
    {"QuantizedConvolution",
     "filters = 57; groups = 57; kernel = 2x3; dilation = 3x1; pad = 1; zero_in = -9; "
     "to = int8; zero_out = 5; activation = relu6",
     .in = {S4(3, 57, 18, 13)}, .in_dtype = {STRATA_INT8}, SCALED},
};

LAYER_CASES(QuantizedConvolution, ORDINARY(cases), LARGE(large))
