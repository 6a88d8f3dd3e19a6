/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ShortcutConvolution: with and without biases, each activation of the kernels;
 * channels, filters, images and tiles that end within a piece, one channel, windows and
 * steps of several sizes, depths for one block and for several; and what it must refuse.
 * CUDA has no impl for those that may be refused.
 */
#include "tests/layers/cases.h"

#define RELU "activation = relu; "
#define NO_BIASES 10
#define NO_SHORTCUT 4

static const struct layer_case cases[] = {
    {"ShortcutConvolution", RELU "filters = 48; kernel = 1; shortcut_stride = 2",
     .in = {S4(2, 24, 5, 6), S4(2, 40, 9, 11)}, .n_in = 2},
    {"ShortcutConvolution", RELU "filters = 64; kernel = 1; shortcut_stride = 2",
     .in = {S4(3, 16, 7, 7), S4(3, 40, 14, 14)}, .n_in = 2, .absent = NO_BIASES},
    {"ShortcutConvolution", RELU "filters = 40; kernel = 1",
     .in = {S4(2, 70, 6, 7), S4(2, 9, 6, 7)}, .n_in = 2},
    {"ShortcutConvolution", "filters = 34; kernel = 3; pad = 1; shortcut_stride = 2",
     .in = {S4(1, 40, 8, 6), S4(1, 48, 15, 12)}, .n_in = 2},
    {"ShortcutConvolution",
     "filters = 40; kernel = 3; pad = 1; stride = 2; shortcut_stride = 2; "
     "activation = relu6",
     .in = {S4(2, 40, 13, 12), S4(2, 64, 13, 12)}, .n_in = 2, .absent = 8},
    {"ShortcutConvolution",
     "filters = 130; kernel = 1; shortcut_stride = 3x1; activation = clip; alpha = -0.5; "
     "beta = 1.5",
     .in = {S4(2, 66, 4, 9), S4(2, 130, 10, 9)}, .n_in = 2},
    {"ShortcutConvolution", "filters = 48; kernel = 1; activation = silu",
     .in = {S4(5, 200, 3, 5), S4(5, 120, 3, 5)}, .n_in = 2, .absent = 2},
    {"ShortcutConvolution",
     "filters = 36; kernel = 5x3; pad = 2, 1, 2, 1; dilation = 1x1; "
     "activation = leaky_relu; alpha = 0.2",
     .in = {S4(1, 36, 9, 8), S4(1, 52, 9, 8)}, .n_in = 2},
    {"ShortcutConvolution", "filters = 1; kernel = 1; activation = tanh",
     .in = {S4(1, 1, 4, 4), S4(1, 1, 4, 4)}, .n_in = 2, .may_refuse = true},
    {"ShortcutConvolution", "filters = 9; kernel = 3; pad_mode = same_upper",
     .in = {S4(2, 7, 5, 4), S4(2, 5, 5, 4)}, .n_in = 2, .may_refuse = true},
    {"ShortcutConvolution",
     "kernel = 3; dilation = 2; pad_mode = same_lower; "
     "filters = 40; activation = gelu",
     .in = {S4(1, 40, 7, 9), S4(1, 16, 7, 9)}, .n_in = 2},
    {"ShortcutConvolution", RELU "filters = 48; kernel = 1; shortcut_stride = 2",
     .in = {S4(0, 16, 3, 3), S4(0, 40, 6, 6)}, .n_in = 2},
    {"ShortcutConvolution", "filters = 8; kernel = 1",
     .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 5)}, .n_in = 2, .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 1; shortcut_stride = 2",
     .in = {S4(1, 8, 4, 4), S4(1, 8, 6, 6)}, .n_in = 2, .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 1",
     .in = {S4(2, 8, 6, 6), S4(1, 8, 6, 6)}, .n_in = 2, .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 1", .in = {S3(1, 8, 6), S3(1, 8, 6)},
     .n_in = 2, .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 1",
     .in = {S4(1, 8, 6, 6), S4(1, 0, 6, 6)}, .n_in = 2, .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 7",
     .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 6)}, .n_in = 2, .refused = true},
    {"ShortcutConvolution", "kernel = 1", .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 6)},
     .n_in = 2, .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 1", .in = {S4(1, 8, 6, 6)}, .n_in = 1,
     .refused = true},
    {"ShortcutConvolution", "filters = 8; kernel = 1",
     .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 6)}, .n_in = 2, .absent = NO_SHORTCUT,
     .refused = true},
};

static const struct layer_case large[] = {
    {"ShortcutConvolution", RELU "filters = 512; kernel = 1; shortcut_stride = 2",
     .in = {S4(3, 128, 28, 28), S4(3, 256, 56, 56)}, .n_in = 2},
    {"ShortcutConvolution", RELU "filters = 1024; kernel = 1; shortcut_stride = 2",
     .in = {S4(5, 256, 14, 14), S4(5, 512, 28, 28)}, .n_in = 2},
    {"ShortcutConvolution", RELU "filters = 2048; kernel = 1; shortcut_stride = 2",
     .in = {S4(5, 512, 7, 7), S4(5, 1024, 14, 14)}, .n_in = 2},
    {"ShortcutConvolution", RELU "filters = 256; kernel = 1",
     .in = {S4(2, 64, 29, 31), S4(2, 64, 29, 31)}, .n_in = 2},
    {"ShortcutConvolution",
     RELU "filters = 128; kernel = 3; pad = 1; shortcut_stride = 2",
     .in = {S4(5, 128, 28, 27), S4(5, 64, 56, 53)}, .n_in = 2},
    {"ShortcutConvolution", RELU "filters = 264; kernel = 1; shortcut_stride = 3",
     .in = {S4(33, 72, 11, 9), S4(33, 136, 32, 25)}, .n_in = 2},
    {"ShortcutConvolution", "filters = 390; kernel = 1; shortcut_stride = 2",
     .in = {S4(17, 100, 13, 13), S4(17, 60, 26, 25)}, .n_in = 2, .absent = 2},
    {"ShortcutConvolution",
     "filters = 72; kernel = 3; stride = 2; shortcut_stride = 4; activation = clip; "
     "alpha = -300; beta = 400",
     .in = {S4(40, 136, 21, 17), S4(40, 40, 40, 31)}, .n_in = 2},
    {"ShortcutConvolution", "filters = 1030; kernel = 1; activation = silu",
     .in = {S4(1, 1500, 15, 14), S4(1, 700, 15, 14)}, .n_in = 2, .absent = NO_BIASES},
};

LAYER_CASES(ShortcutConvolution, ORDINARY(cases), LARGE(large))
