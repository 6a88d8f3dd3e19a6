/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Perceptron: one to three products, of rows and of means, each end; channels,
 * units and planes that end within a thread's piece or a block's part, few rows and more
 * than a device has clusters for; and what it must refuse.
 */
#include "tests/layers/cases.h"

/* Weights from number 2*n on are not given. */
#define PRODUCTS(n) .absent = 63 & ~((1 << 2 * (n)) - 1)
#define NO_BIAS(n) .absent = 63 & ~(21 & ((1 << 2 * (n)) - 1))
#define EXCITE "mean = yes; end = factors; activation1 = silu; activation2 = sigmoid; "

static const struct layer_case cases[] = {
    {"Perceptron", "units1 = 5", .in = {S2(1, 7)}, PRODUCTS(1)},
    {"Perceptron", "units1 = 9; transposed1 = yes; end = softmax", .in = {S2(3, 16)},
     NO_BIAS(1)},
    {"Perceptron", "units1 = 33; activation1 = relu; units2 = 17; transposed2 = yes",
     .in = {S3(2, 3, 40)}, PRODUCTS(2)},
    {"Perceptron",
     "units1 = 24; activation1 = gelu; units2 = 8; activation2 = tanh; units3 = 3; "
     "activation3 = leaky_relu; alpha3 = 0.25",
     .in = {S2(9, 130)}, PRODUCTS(3)},
    {"Perceptron", "units1 = 10; mean = yes", .in = {S4(1, 12, 7, 7)}, PRODUCTS(1)},
    {"Perceptron", "units1 = 10; mean = yes; keep_dims = yes; activation1 = hard_swish",
     .in = {S4(2, 9, 5, 3)}, PRODUCTS(1)},
    {"Perceptron", "units1 = 19; mean = yes; end = softmax", .in = {S4(3, 24, 1, 1)},
     PRODUCTS(1)},
    {"Perceptron", "units1 = 21; units2 = 11; mean = yes; end = softmax; keep_dims = yes",
     .in = {S4(2, 33, 4, 4)}, NO_BIAS(2)},
    {"Perceptron", "units1 = 6; mean = yes; keep_dims = yes", .in = {S3(2, 5, 11)},
     PRODUCTS(1)},
    {"Perceptron", "units1 = 6; mean = yes", .in = {S5(1, 8, 2, 3, 5)}, PRODUCTS(1)},
    {"Perceptron", EXCITE "units1 = 4; units2 = 1", .in = {S4(1, 1, 6, 5)}, PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 4; units2 = 32", .in = {S4(1, 32, 14, 14)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 3; units2 = 17; transposed2 = yes",
     .in = {S4(5, 17, 7, 9)}, PRODUCTS(2)},
    {"Perceptron",
     "mean = yes; end = factors; units1 = 40; activation1 = hard_sigmoid; alpha1 = 0.2; "
     "beta1 = 0.5",
     .in = {S4(9, 40, 3, 3)}, PRODUCTS(1)},
    {"Perceptron", EXCITE "units1 = 10; units2 = 5; units3 = 50", .in = {S4(2, 50, 8, 8)},
     PRODUCTS(3)},
    {"Perceptron", "units1 = 4; mean = yes", .in = {S4(0, 8, 2, 2)}, PRODUCTS(1)},
    {"Perceptron", "units1 = 4; mean = yes", .in = {S2(2, 8)}, PRODUCTS(1),
     .refused = true},
    {"Perceptron", "units1 = 4; end = factors", .in = {S2(2, 8)}, PRODUCTS(1),
     .refused = true},
    {"Perceptron", "units1 = 4; end = factors; mean = yes", .in = {S4(2, 8, 2, 2)},
     PRODUCTS(1), .refused = true},
    {"Perceptron", "units1 = 4; units3 = 4", .in = {S2(2, 8)}, PRODUCTS(1),
     .refused = true},
    {"Perceptron", "units1 = 4; mean = yes", .in = {S4(2, 8, 0, 2)}, PRODUCTS(1),
     .refused = true},
};

static const struct layer_case large[] = {
    {"Perceptron", EXCITE "units1 = 8; units2 = 32", .in = {S4(1, 32, 112, 112)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 6; units2 = 144", .in = {S4(3, 144, 56, 56)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 10; units2 = 240", .in = {S4(2, 240, 28, 28)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 28; units2 = 672", .in = {S4(9, 672, 14, 14)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 48; units2 = 1152", .in = {S4(1, 1152, 7, 7)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 83; units2 = 2000", .in = {S4(2, 2000, 7, 5)},
     PRODUCTS(2)},
    {"Perceptron", EXCITE "units1 = 20; units2 = 481", .in = {S4(1, 481, 15, 13)},
     PRODUCTS(2)},
    {"Perceptron", "units1 = 1000; mean = yes; end = softmax; keep_dims = yes",
     .in = {S4(1, 1280, 7, 7)}, PRODUCTS(1)},
    {"Perceptron", "units1 = 1000; mean = yes", .in = {S4(8, 2048, 7, 7)}, PRODUCTS(1)},
    {"Perceptron", "units1 = 1001; mean = yes; end = softmax", .in = {S4(9, 1024, 7, 7)},
     PRODUCTS(1)},
    {"Perceptron",
     "units1 = 512; activation1 = relu; units2 = 256; activation2 = relu; units3 = 64; "
     "end = softmax",
     .in = {S2(16, 784)}, PRODUCTS(3)},
    {"Perceptron", "units1 = 2000; activation1 = relu; units2 = 1999",
     .in = {S2(2, 1003)}, PRODUCTS(2)},
};

LAYER_CASES(Perceptron, ORDINARY(cases), LARGE(large))
