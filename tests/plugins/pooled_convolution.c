/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of PooledConvolution: windows of both, pads and rounding, with and without bias,
 * activations, images that end within a tile or have several; and what it must refuse.
 * CUDA has no impl for those that may be refused.
 */
#include "tests/layers/cases.h"

/* Weights that are not given. */
#define NO_BIAS 2
#define NO_WEIGHT 1
#define SEVEN "kernel = 7; stride = 2; pad = 3; "
#define THREE "kernel = 3; stride = 2; "
#define RELU "activation = relu; "
#define POOL "pool_kernel = 3; pool_stride = 2; "
#define PADDED POOL "pool_pad = 1; "
#define CEILED POOL "pool_ceil_mode = yes; "

/* Sums of small whole numbers are exact in FP16, so bytes are those of the definition. */
#define NO_SCALE 4
#define WHOLE                                                                            \
    .integers = true, .low = -1, .high = 1, .weight_range = {{-1, 1}, {-2, 2}, {1, 3}}

static const struct layer_case cases[] = {
    {"PooledConvolution", SEVEN RELU PADDED "filters = 64", .in = {S4(2, 3, 32, 36)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 20", .in = {S4(1, 3, 37, 41)}},
    {"PooledConvolution", SEVEN RELU CEILED "filters = 72", .in = {S4(1, 3, 40, 34)}},
    {"PooledConvolution", THREE RELU CEILED "filters = 64", .in = {S4(3, 3, 29, 31)}},
    {"PooledConvolution", THREE POOL "filters = 8", .in = {S4(2, 1, 22, 19)}},
    {"PooledConvolution", THREE PADDED "filters = 33; pad = 1", .in = {S4(1, 4, 23, 24)},
     .absent = NO_BIAS},
    {"PooledConvolution",
     THREE PADDED "filters = 16; activation = silu; pad = 0, 1, 1, 0",
     .in = {S4(1, 2, 16, 21)}, .may_refuse = true},
    {"PooledConvolution",
     THREE PADDED "filters = 16; pad = 0, 1, 1, 0; "
                  "activation = clip; alpha = -0.5; beta = 0.25",
     .in = {S4(1, 2, 16, 21)}},
    {"PooledConvolution",
     SEVEN PADDED "filters = 12; activation = clip; alpha = 0.5; beta = 2",
     .in = {S4(1, 3, 20, 22)}, .may_refuse = true},
    {"PooledConvolution", SEVEN PADDED "filters = 24; activation = relu6",
     .in = {S4(2, 3, 9, 10)}},
    {"PooledConvolution",
     THREE "filters = 24; pool_kernel = 2; "
           "pool_stride = 2",
     .in = {S4(1, 3, 21, 27)}},
    {"PooledConvolution", THREE "filters = 8; pool_kernel = 2; pool_stride = 1",
     .in = {S4(1, 3, 17, 20)}},
    {"PooledConvolution", THREE RELU "filters = 8; pool_kernel = 3; pool_stride = 3",
     .in = {S4(1, 3, 30, 41)}},
    {"PooledConvolution",
     "kernel = 5x4; stride = 2; pad = 2, 1; filters = 16; pool_kernel = 3x2; "
     "pool_stride = 2x1; pool_pad = 1, 0",
     .in = {S4(2, 3, 18, 25)}},
    {"PooledConvolution", THREE RELU PADDED "filters = 64", .in = {S4(1, 3, 3, 3)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 8", .in = {S4(1, 3, 2, 300)}},
    {"PooledConvolution", SEVEN PADDED "filters = 20", .in = {S4(2, 2, 21, 291)}},
    {"PooledConvolution", SEVEN CEILED "filters = 24", .in = {S4(2, 3, 26, 224)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 24; pool_ceil_mode = yes",
     .in = {S4(2, 3, 25, 224)}},
    {"PooledConvolution", "kernel = 6x5; stride = 2; pad = 2, 1; " PADDED "filters = 136",
     .in = {S4(2, 3, 30, 46)}, .absent = NO_BIAS},
    {"PooledConvolution",
     "kernel = 4x7; stride = 2; pad = 1, 3, 2, 2; filters = 40; pool_kernel = 3; "
     "pool_stride = 2; pool_pad = 0, 1; pool_ceil_mode = yes",
     .in = {S4(3, 1, 27, 131)}},
    {"PooledConvolution", THREE RELU CEILED "filters = 8", .in = {S4(1, 3, 13, 275)}},
    {"PooledConvolution", THREE RELU PADDED "filters = 136", .in = {S4(5, 3, 12, 133)}},
    {"PooledConvolution",
     THREE "filters = 8; pool_kernel = 3; pool_stride = 2; "
           "pool_pad = 1, 2, 0, 1",
     .in = {S4(1, 3, 21, 30)}},
    {"PooledConvolution",
     THREE PADDED "filters = 8; pool_pad_mode = explicit; "
                  "pool_ceil_mode = yes",
     .in = {S4(1, 3, 18, 18)}, .may_refuse = true},
    {"PooledConvolution", "kernel = 3; filters = 6; pool_kernel = 2; pool_stride = 2",
     .in = {S4(2, 5, 9, 8)}, .may_refuse = true},
    {"PooledConvolution",
     "kernel = 3; groups = 2; filters = 6; dilation = 2; pad_mode = same_upper; "
     "pool_kernel = 3; pool_dilation = 2; pool_pad_mode = same_lower",
     .in = {S4(2, 4, 9, 8)}, .may_refuse = true},
    {"PooledConvolution", "kernel = 3; filters = 5; pool_kernel = 4; pool_stride = 3",
     .in = {S3(2, 3, 29)}, .may_refuse = true},
    {"PooledConvolution",
     "kernel = 2x3x1; filters = 5; activation = elu; pool_kernel = 2; pool_pad = 1",
     .in = {S5(1, 3, 5, 6, 4)}, .may_refuse = true},
    {"PooledConvolution", "kernel = 1; filters = 4; pool_kernel = 2; pool_pad = 2",
     .in = {S4(1, 3, 4, 5)}, .may_refuse = true},
    {"PooledConvolution", SEVEN PADDED "filters = 64", .in = {S4(0, 3, 32, 36)},
     .may_refuse = true},
    {"PooledConvolution", "kernel = 3; filters = 4", .in = {S4(1, 3, 8, 8)},
     .may_refuse = true},
    {"PooledConvolution", "pool_kernel = 2; filters = 4", .in = {S4(1, 3, 8, 8)},
     .refused = true},
    {"PooledConvolution", "kernel = 3; pool_kernel = 2", .in = {S4(1, 3, 8, 8)},
     .absent = NO_WEIGHT, .refused = true},
    {"PooledConvolution", "kernel = 3; filters = 4; pool_kernel = 7",
     .in = {S4(1, 3, 8, 8)}, .refused = true},
    {"PooledConvolution", "kernel = 9; filters = 4; pool_kernel = 2",
     .in = {S4(1, 3, 8, 8)}, .refused = true},
    {"PooledConvolution", "kernel = 3; filters = 4; groups = 2; pool_kernel = 2",
     .in = {S4(1, 3, 8, 8)}, .refused = true},
    {"PooledConvolution", "kernel = 3; filters = 4; pool_kernel = 2", .in = {S2(3, 8)},
     .refused = true},
    {"PooledConvolution",
     "kernel = 3; filters = 4; pool_kernel = 2; pool_pad = 1; "
     "pool_pad_mode = valid",
     .in = {S4(1, 3, 8, 8)}, .refused = true},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 64; to = int8; zero_out = -7",
     .in = {S4(2, 3, 32, 36)}, WHOLE},
    {"PooledConvolution", SEVEN CEILED "filters = 24; to = u8; zero_out = 100",
     .in = {S4(1, 3, 26, 224)}, WHOLE},
    {"PooledConvolution", SEVEN PADDED "filters = 136; to = int8", .absent = NO_BIAS,
     .in = {S4(1, 2, 21, 291)}, WHOLE},
    {"PooledConvolution", SEVEN PADDED "filters = 16; to = int8; activation = relu6",
     .in = {S4(2, 4, 31, 33)}, WHOLE},
    {"PooledConvolution", THREE RELU CEILED "filters = 64; to = int8",
     .in = {S4(3, 3, 29, 31)}, WHOLE},
    {"PooledConvolution",
     THREE "filters = 8; pool_kernel = 2; pool_stride = 2; to = u8; zero_out = 128",
     .in = {S4(2, 3, 21, 275)}, WHOLE},
    {"PooledConvolution",
     "kernel = 3; groups = 2; filters = 6; activation = elu; pool_kernel = 4; to = int8",
     .in = {S4(2, 4, 9, 8)}, .low = -40, .high = 40, .may_refuse = true},
    {"PooledConvolution", SEVEN PADDED "filters = 64; to = int8", .absent = NO_SCALE,
     .in = {S4(1, 3, 32, 36)}, .refused = true},
    {"PooledConvolution", SEVEN PADDED "filters = 64; to = u8; zero_out = -1",
     .in = {S4(1, 3, 32, 36)}, .refused = true},
};

static const struct layer_case large[] = {
    {"PooledConvolution", SEVEN RELU PADDED "filters = 64; to = int8",
     .in = {S4(2, 3, 224, 224)}, WHOLE},
    {"PooledConvolution", THREE RELU CEILED "filters = 32; to = u8; zero_out = 9",
     .in = {S4(40, 3, 97, 61)}, WHOLE},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 64", .in = {S4(31, 3, 120, 64)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 64", .in = {S4(1, 3, 224, 224)}},
    {"PooledConvolution", SEVEN RELU CEILED "filters = 96", .in = {S4(1, 3, 225, 227)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 72", .in = {S4(3, 3, 122, 452)}},
    {"PooledConvolution", THREE RELU CEILED "filters = 64", .in = {S4(3, 3, 227, 227)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 24", .in = {S4(3, 4, 101, 500)}},
    {"PooledConvolution", SEVEN RELU PADDED "filters = 8", .in = {S4(60, 1, 90, 131)}},
    {"PooledConvolution", THREE "filters = 8; pool_kernel = 2; pool_stride = 1",
     .in = {S4(50, 3, 41, 33)}},
};

LAYER_CASES(PooledConvolution, ORDINARY(cases), LARGE(large))
