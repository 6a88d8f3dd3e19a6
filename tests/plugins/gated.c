/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Gated: kinds and axes, halves that lie across vectors, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Gated", "axis = 1", .sweep = 4},
    {"Gated", "", .sweep = 3},
    {"Gated", "kind = gelu", .in = {S3(3, 9, 64)}},
    {"Gated", "kind = sigmoid; axis = 1", .in = {S4(3, 32, 5, 7)}},
    {"Gated", "kind = sigmoid; axis = 1", .in = {S4(3, 18, 5, 7)}},
    {"Gated", "kind = leaky_relu; alpha = 0.25; axis = 2", .in = {S4(3, 9, 6, 7)}},
    {"Gated", "kind = tanh; axis = 0", .in = {S4(2, 17, 5, 7)}},
    {"Gated", "", .in = {S1(64)}},
    {"Gated", "", .in = {S2(33, 1024)}},
    {"Gated", "", .in = {S2(3, 0)}},
    {"Gated", "", .in = {S2(3, 9)}, .refused = true},
    {"Gated", "axis = 2", .in = {S2(4, 4)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Gated", "", .in = {S2(257, 4096)}},
    {"Gated", "axis = 1", .in = {S4(4, 64, 57, 61)}},
};

LAYER_CASES(Gated, ORDINARY(cases), LARGE(large))
