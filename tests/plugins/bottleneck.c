/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Bottleneck: with and without an addend, a shortcut and biases, each activation
 * of the kernels; channels, images and tiles that end within a piece, one channel,
 * windows of several sizes and strides; and what it must refuse. CUDA has no impl for
 * those that may be refused. One input has a shortcut added where the results have its
 * size.
 */
#include "tests/layers/cases.h"

/* Weights that are not given. */
#define NO_BIASES (42 | 128)
#define NO_SHORTCUT (64 | 128)
#define NO_REDUCE 1
#define WINDOW "kernel = 3; pad = 1; "
#define RELU "reduced_activation = relu; convolved_activation = relu; "
#define BLOCK(r, m, p) "reduced = " #r "; convolved = " #m "; projected = " #p "; "

static const struct layer_case cases[] = {
    {"Bottleneck", WINDOW RELU BLOCK(16, 16, 64) "projected_activation = relu",
     .in = {S4(2, 64, 9, 11), S4(2, 64, 9, 11)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(8, 8, 24), .in = {S4(1, 32, 5, 7)},
     .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW RELU BLOCK(24, 24, 40) "stride = 2", .in = {S4(1, 16, 13, 12)},
     .may_refuse = true},
    {"Bottleneck",
     WINDOW RELU BLOCK(16, 16, 48) "stride = 2; projected_activation = relu",
     .in = {S4(3, 24, 8, 8), S4(3, 48, 4, 4)}, .n_in = 2, .may_refuse = true},
    {"Bottleneck", WINDOW BLOCK(13, 11, 9), .in = {S4(1, 19, 6, 5)},
     .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW BLOCK(13, 11, 9), .in = {S4(1, 19, 6, 5)}, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(16, 16, 64) "projected_activation = relu",
     .in = {S4(2, 64, 9, 11)}, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(16, 8, 24), .in = {S4(2, 12, 9, 5)},
     .absent = NO_BIASES, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(3, 20, 5) "projected_activation = relu",
     .in = {S4(2, 7, 8, 3), S4(2, 5, 8, 3)}, .n_in = 2},
    {"Bottleneck", WINDOW BLOCK(1, 1, 1) "projected_activation = relu",
     .in = {S4(1, 1, 4, 4), S4(1, 1, 4, 4)}, .n_in = 2},
    {"Bottleneck", WINDOW BLOCK(16, 16, 16) RELU, .in = {S4(1, 16, 1, 1)},
     .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW BLOCK(16, 24, 32) RELU "projected_activation = relu",
     .in = {S4(2, 16, 6, 7), S4(2, 32, 6, 7)}, .n_in = 2, .absent = NO_BIASES},
    {"Bottleneck", "kernel = 5; pad = 2; " BLOCK(16, 16, 32) RELU,
     .in = {S4(1, 8, 9, 10)}, .may_refuse = true},
    {"Bottleneck",
     "kernel = 5; stride = 2; pad_mode = same_upper; reduced_activation = relu6; "
     "convolved_activation = relu6; " BLOCK(9, 7, 12),
     .in = {S4(2, 5, 10, 9)}, .may_refuse = true},
    {"Bottleneck", WINDOW BLOCK(16, 16, 24) "dilation = 2; pad_mode = same_lower",
     .in = {S4(1, 8, 7, 9)}, .may_refuse = true},
    {"Bottleneck", "kernel = 1x3; stride = 2x1; pad = 0, 1, 0, 2; " BLOCK(5, 6, 10),
     .in = {S4(1, 7, 5, 9)}, .may_refuse = true},
    {"Bottleneck", "kernel = 1; " BLOCK(8, 16, 8) RELU, .in = {S4(1, 8, 4, 4)},
     .may_refuse = true},
    {"Bottleneck", "kernel = 3; " BLOCK(8, 8, 8) RELU, .in = {S4(1, 8, 7, 6)},
     .may_refuse = true},
    {"Bottleneck", "kernel = 3; pad = 3; reduced_activation = sigmoid; " BLOCK(8, 8, 16),
     .in = {S4(1, 8, 5, 4)}, .may_refuse = true},
    {"Bottleneck",
     WINDOW BLOCK(8, 8, 8) "reduced_activation = relu6; convolved_activation = clip; "
                           "convolved_alpha = -1; convolved_beta = 0.5; "
                           "projected_activation = relu6",
     .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 6)}, .n_in = 2, .may_refuse = true},
    {"Bottleneck",
     WINDOW BLOCK(16, 8, 8) "reduced_activation = silu; convolved_activation = silu; "
                            "projected_activation = silu",
     .in = {S4(1, 12, 6, 6)}, .may_refuse = true},
    {"Bottleneck",
     WINDOW BLOCK(8, 16, 8) "reduced_activation = hard_swish; "
                            "convolved_activation = gelu; projected_activation = tanh",
     .in = {S4(2, 8, 5, 6), S4(2, 8, 5, 6)}, .n_in = 2, .may_refuse = true},
    {"Bottleneck",
     WINDOW BLOCK(8, 8, 8) "reduced_activation = leaky_relu; reduced_alpha = 0.2; "
                           "convolved_activation = elu",
     .in = {S4(1, 8, 6, 6)}, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(16, 16, 64), .in = {S4(0, 64, 6, 6)},
     .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8), .in = {S3(1, 8, 6)}, .refused = true},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8), .in = {S5(1, 8, 6, 6, 6)}, .refused = true},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8), .in = {S4(1, 8, 0, 6)}, .refused = true},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8), .in = {S4(1, 0, 6, 6)}, .refused = true},
    {"Bottleneck", "kernel = 7; " BLOCK(8, 8, 8), .in = {S4(1, 8, 6, 6)},
     .refused = true},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8), .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 5)},
     .n_in = 2, .refused = true},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8) "stride = 2",
     .in = {S4(1, 8, 6, 6), S4(1, 8, 6, 6)}, .n_in = 2, .refused = true},
    {"Bottleneck", WINDOW RELU "reduced = 12; projected = 20", .in = {S4(2, 10, 6, 5)},
     .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW RELU "reduced = 6", .in = {S4(2, 10, 6, 5), S4(2, 10, 6, 5)},
     .n_in = 2},
    {"Bottleneck", WINDOW "convolved = 8", .in = {S4(1, 8, 6, 6)}, .refused = true},
    {"Bottleneck", BLOCK(8, 8, 8), .in = {S4(1, 8, 6, 6)}, .refused = true},
    {"Bottleneck", WINDOW BLOCK(8, 8, 8), .in = {S4(1, 8, 6, 6)}, .absent = NO_REDUCE,
     .refused = true},
};

static const struct layer_case large[] = {
    {"Bottleneck", WINDOW RELU BLOCK(64, 64, 256) "projected_activation = relu",
     .in = {S4(1, 64, 56, 56), S4(1, 256, 56, 56)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(128, 128, 512) "stride = 2",
     .in = {S4(1, 256, 56, 56)}, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(128, 128, 512) "projected_activation = relu",
     .in = {S4(2, 512, 28, 28), S4(2, 512, 28, 28)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(256, 256, 1024) "projected_activation = relu",
     .in = {S4(1, 1024, 14, 14), S4(1, 1024, 14, 14)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(512, 512, 2048) "stride = 2",
     .in = {S4(1, 1024, 14, 14)}, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(512, 512, 2048) "projected_activation = relu",
     .in = {S4(1, 2048, 7, 7), S4(1, 2048, 7, 7)}, .n_in = 2, .may_refuse = true},
    {"Bottleneck", WINDOW RELU BLOCK(120, 56, 72) "projected_activation = relu",
     .in = {S4(9, 200, 15, 17), S4(9, 72, 15, 17)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(61, 67, 125), .in = {S4(33, 125, 15, 14)},
     .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW RELU BLOCK(8, 7, 17) "projected_activation = relu",
     .in = {S4(130, 8, 15, 16), S4(130, 17, 15, 16)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(60, 60, 250) "projected_activation = relu",
     .in = {S4(9, 250, 13, 29), S4(9, 250, 13, 29)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(64, 64, 256) "projected_activation = relu",
     .in = {S4(3, 256, 43, 60), S4(3, 256, 43, 60)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(8, 16, 24) "projected_activation = relu",
     .in = {S4(50, 24, 31, 21), S4(50, 24, 31, 21)}, .n_in = 2},
    {"Bottleneck",
     WINDOW BLOCK(24, 8, 70) "reduced_activation = relu; convolved_activation = silu",
     .in = {S4(1, 72, 3, 330)}, .absent = NO_SHORTCUT},
    {"Bottleneck", WINDOW RELU BLOCK(100, 120, 390) "projected_activation = relu",
     .in = {S4(4, 420, 26, 29), S4(4, 390, 26, 29)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(128, 128, 512) "projected_activation = relu",
     .in = {S4(5, 512, 28, 28), S4(5, 512, 28, 28)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(66, 72, 72) "projected_activation = relu",
     .in = {S4(36, 64, 28, 28), S4(36, 72, 28, 28)}, .n_in = 2},
    {"Bottleneck",
     WINDOW BLOCK(70, 100, 200) "reduced_activation = silu; projected_activation = clip; "
                                "projected_alpha = -400; projected_beta = 600",
     .in = {S4(2, 130, 40, 61)}, .absent = NO_SHORTCUT},
    {"Bottleneck",
     WINDOW BLOCK(66, 128, 72) "reduced_activation = relu; "
                               "convolved_activation = hard_swish",
     .in = {S4(90, 24, 9, 7), S4(90, 72, 9, 7)}, .n_in = 2},
    {"Bottleneck", WINDOW RELU BLOCK(64, 64, 256) "projected_activation = relu",
     .in = {S4(2, 64, 56, 56)}},
    {"Bottleneck", WINDOW RELU BLOCK(40, 56, 72) "projected_activation = relu",
     .in = {S4(9, 57, 15, 17)}},
    {"Bottleneck", WINDOW RELU BLOCK(60, 64, 200), .in = {S4(33, 24, 15, 14)},
     .absent = NO_BIASES},
    {"Bottleneck",
     WINDOW BLOCK(24, 8, 128) "convolved_activation = relu; projected_activation = silu",
     .in = {S4(2, 8, 31, 58)}},
};

LAYER_CASES(Bottleneck, ORDINARY(cases), LARGE(large))
