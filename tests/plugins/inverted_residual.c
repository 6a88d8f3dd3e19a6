/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of InvertedResidual: with and without either product, an addend, each activation
 * of the kernels; channels, images and tiles that end within a piece; few pixels, whose
 * channels a cluster shares, and many; and what it must refuse. CUDA has no impl for
 * those that may be refused.
 */
#include "tests/layers/cases.h"

/* Weights that are not given. */
#define NO_EXPAND 3
#define NO_PROJECT 48
#define NO_BIASES 42
#define RELU6 "expanded_activation = relu6; convolved_activation = relu6; "
#define SILU "expanded_activation = silu; convolved_activation = silu; "
#define WINDOW "kernel = 3; pad = 1; "

static const struct layer_case cases[] = {
    {"InvertedResidual", WINDOW "expanded = 24; projected = 16", .in = {S4(1, 8, 5, 7)}},
    {"InvertedResidual", WINDOW RELU6 "expanded = 48; projected = 16",
     .in = {S4(2, 16, 9, 11), S4(2, 16, 9, 11)}, .n_in = 2},
    {"InvertedResidual", WINDOW RELU6 "expanded = 40; projected = 24; stride = 2",
     .in = {S4(1, 16, 13, 12)}},
    {"InvertedResidual", WINDOW "convolved_activation = relu; projected = 9",
     .in = {S4(3, 20, 6, 5)}, .absent = NO_EXPAND},
    {"InvertedResidual",
     WINDOW "convolved_activation = clip; convolved_alpha = -1; convolved_beta = 0.5; "
            "projected_activation = relu; projected = 5",
     .in = {S4(1, 13, 8, 8), S4(1, 5, 8, 8)}, .n_in = 2, .absent = NO_EXPAND},
    {"InvertedResidual", "kernel = 5; pad = 2; expanded = 33; " SILU,
     .in = {S4(1, 11, 7, 6)}, .absent = NO_PROJECT},
    {"InvertedResidual",
     "kernel = 5; stride = 2; pad_mode = same_upper; expanded = 24; projected = 40; "
     "expanded_activation = hard_swish; convolved_activation = hard_swish",
     .in = {S4(2, 8, 10, 9)}},
    {"InvertedResidual", "kernel = 3; expanded = 16; projected = 8",
     .in = {S4(1, 8, 6, 3)}, .absent = NO_BIASES},
    {"InvertedResidual",
     WINDOW "expanded = 12; projected = 7; expanded_activation = gelu; dilation = 2; "
            "projected_activation = tanh",
     .in = {S4(2, 6, 9, 8)}, .may_refuse = true},
    {"InvertedResidual", "kernel = 1x3; stride = 1x2; pad = 0, 1, 0, 2; expanded = 10",
     .in = {S4(1, 7, 4, 9)}, .absent = NO_PROJECT, .may_refuse = true},
    {"InvertedResidual", WINDOW, .in = {S4(1, 19, 5, 5)},
     .absent = NO_EXPAND | NO_PROJECT},
    {"InvertedResidual",
     WINDOW "convolved_activation = clip; convolved_alpha = 0.25; convolved_beta = 3",
     .in = {S4(1, 19, 5, 5)}, .absent = NO_EXPAND | NO_PROJECT, .may_refuse = true},
    {"InvertedResidual", WINDOW "expanded = 16; projected = 8", .in = {S4(0, 8, 6, 6)}},
    {"InvertedResidual", WINDOW "expanded = 16; projected = 8", .in = {S3(1, 8, 6)},
     .refused = true},
    {"InvertedResidual", WINDOW "expanded = 16; projected = 8", .in = {S4(1, 8, 6, 6)},
     .absent = NO_EXPAND, .refused = true},
    {"InvertedResidual", WINDOW "expanded = 16; projected = 8", .in = {S4(1, 8, 6, 6)},
     .absent = NO_PROJECT, .refused = true},
    {"InvertedResidual", WINDOW "expanded = 16; projected = 8",
     .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 5)}, .n_in = 2, .refused = true},
    {"InvertedResidual", WINDOW "expanded = 16; projected = 8", .in = {S4(1, 8, 0, 6)},
     .refused = true},
};

static const struct layer_case large[] = {
    {"InvertedResidual", WINDOW RELU6 "projected = 16", .in = {S4(1, 32, 112, 112)},
     .absent = NO_EXPAND},
    {"InvertedResidual", WINDOW RELU6 "expanded = 144; projected = 24",
     .in = {S4(2, 24, 56, 56), S4(2, 24, 56, 56)}, .n_in = 2},
    {"InvertedResidual", WINDOW RELU6 "expanded = 384; projected = 64",
     .in = {S4(1, 64, 14, 14), S4(1, 64, 14, 14)}, .n_in = 2},
    {"InvertedResidual", WINDOW RELU6 "expanded = 384; projected = 96; stride = 2",
     .in = {S4(33, 64, 14, 14)}},
    {"InvertedResidual", WINDOW RELU6 "expanded = 960; projected = 320",
     .in = {S4(1, 160, 7, 7)}},
    {"InvertedResidual", WINDOW RELU6 "expanded = 955; projected = 157",
     .in = {S4(9, 157, 7, 7), S4(9, 157, 7, 7)}, .n_in = 2},
    {"InvertedResidual", WINDOW RELU6 "expanded = 48; projected = 72; stride = 2",
     .in = {S4(130, 8, 15, 16)}},
    {"InvertedResidual", "kernel = 5; pad = 2; expanded = 1152; " SILU,
     .in = {S4(2, 192, 7, 7)}, .absent = NO_PROJECT},
    {"InvertedResidual", "kernel = 5; pad = 2; stride = 2; expanded = 240; " SILU,
     .in = {S4(1, 40, 29, 31)}, .absent = NO_PROJECT},
};

LAYER_CASES(InvertedResidual, ORDINARY(cases), LARGE(large))
