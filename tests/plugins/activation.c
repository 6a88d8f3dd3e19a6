/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Activation: each kind, with f(0) = 0 and without, which shows in pad
 * lanes, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Activation", "", .sweep = 4},
    {"Activation", "kind = sigmoid", .sweep = 4, .low = -8, .high = 8},
    {"Activation", "kind = relu", .sweep = 3},
    {"Activation", "kind = relu", .sweep = 5},
    {"Activation", "kind = leaky_relu", .in = {S4(3, 9, 5, 7)}},
    {"Activation", "kind = leaky_relu; alpha = 0.25", .in = {S4(3, 9, 5, 7)}},
    {"Activation", "kind = relu6", .in = {S4(3, 17, 5, 7)}, .low = -9, .high = 9},
    {"Activation", "kind = clip", .in = {S4(1, 3, 5, 7)}},
    {"Activation", "kind = clip; alpha = 0.5; beta = 1.25", .in = {S4(3, 3, 5, 7)}},
    {"Activation", "kind = clip; alpha = -1", .in = {S4(1, 8, 5, 7)}},
    {"Activation", "kind = clip; beta = 1", .in = {S4(1, 8, 5, 7)}},
    {"Activation", "kind = sigmoid", .in = {S2(3, 33)}, .low = -90, .high = 90},
    {"Activation", "kind = tanh", .in = {S4(3, 7, 5, 5)}, .low = -8, .high = 8},
    {"Activation", "kind = elu", .in = {S4(1, 16, 7, 5)}},
    {"Activation", "kind = elu; alpha = 0.5", .in = {S4(1, 9, 7, 5)}},
    {"Activation", "kind = selu", .in = {S4(3, 2, 7, 5)}},
    {"Activation", "kind = selu; alpha = 1.5; beta = 2", .in = {S4(1, 17, 7, 5)}},
    {"Activation", "kind = softplus", .in = {S4(3, 9, 5, 7)}, .low = -20, .high = 20},
    {"Activation", "kind = softsign", .in = {S4(3, 9, 5, 7)}, .low = -8, .high = 8},
    {"Activation", "kind = gelu", .in = {S4(3, 7, 5, 7)}, .low = -6, .high = 6},
    {"Activation", "kind = silu", .in = {S4(3, 8, 5, 7)}, .low = -8, .high = 8},
    {"Activation", "kind = hard_sigmoid", .in = {S4(3, 3, 5, 7)}, .low = -4, .high = 4},
    {"Activation", "kind = hard_sigmoid; alpha = 0.125; beta = 0.25",
     .in = {S4(3, 9, 5, 7)}, .low = -4, .high = 4},
    {"Activation", "kind = hard_swish", .in = {S4(3, 9, 5, 7)}, .low = -5, .high = 5},
    {"Activation", "kind = mish", .in = {S4(1, 17, 5, 7)}, .low = -8, .high = 8},
    {"Activation", "kind = gelu_tanh", .in = {S4(3, 7, 5, 7)}, .low = -6, .high = 6},
    {"Activation", "kind = gelu_tanh", .in = {S2(3, 33)}, .low = -90, .high = 90},
    {"Activation", "kind = swish", .in = {S4(3, 8, 5, 7)}, .low = -8, .high = 8},
    {"Activation", "kind = swish; alpha = 1.702", .in = {S4(1, 9, 5, 7)}, .low = -8,
     .high = 8},
    {"Activation", "kind = celu", .in = {S4(1, 9, 7, 5)}, .low = -8, .high = 8},
    {"Activation", "kind = celu; alpha = 0.25", .in = {S4(3, 17, 7, 5)}},
    {"Activation", "kind = thresholded_relu", .in = {S4(3, 9, 5, 7)}},
    {"Activation", "kind = thresholded_relu; alpha = -1", .in = {S4(3, 9, 5, 7)}},
    {"Activation", "kind = shrink", .in = {S4(3, 3, 5, 7)}},
    {"Activation", "kind = shrink; alpha = 1; beta = 0.75", .in = {S4(1, 17, 5, 7)}},
    {"Activation", "kind = scaled_tanh", .in = {S4(3, 7, 5, 5)}, .low = -8, .high = 8},
    {"Activation", "kind = scaled_tanh; alpha = 1.5; beta = 0.5", .in = {S4(1, 9, 5, 5)}},
    {"Activation", "kind = sigmoid", .in = {S4(1, 9, 64, 65)}},
    {"Activation", "kind = softplus", .in = {S4(3, 0, 5, 7)}},
    {"Activation", "kind = sine", .in = {S4(1, 1, 1, 1)}, .refused = true},
};

LAYER_CASES(Activation, ORDINARY(cases))
