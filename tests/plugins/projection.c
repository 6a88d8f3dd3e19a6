/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Projection: with and without each of its parts, few rows and many, depths and
 * widths that end within a thread's piece, a tile or a half, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define NO_SCALE .absent = 4
#define PLAIN .absent = 6

static const struct layer_case cases[] = {
    {"Projection", "units = 7", .in = {S2(1, 40)}, PLAIN},
    {"Projection", "units = 9; transpose_b = yes", .in = {S2(1, 2064)}, NO_SCALE},
    {"Projection", "units = 6; normalized = yes", .in = {S3(1, 1, 72)}, .absent = 2},
    {"Projection", "units = 37; normalized = yes; transpose_b = yes",
     .in = {S3(1, 2, 136)}},
    {"Projection", "units = 10; normalized = yes; epsilon = 0.5", .in = {S2(3, 17)},
     NO_SCALE},
    {"Projection", "units = 2; gated = yes", .in = {S2(1, 8)}, PLAIN},
    {"Projection", "units = 18; gated = yes; kind = gelu", .in = {S3(2, 1, 264)},
     NO_SCALE},
    {"Projection", "units = 22; gated = yes; normalized = yes; transpose_b = yes",
     .in = {S3(1, 1, 520)}},
    {"Projection", "units = 70; gated = yes; normalized = yes", .in = {S3(2, 3, 96)}},
    {"Projection", "units = 150; gated = yes; kind = leaky_relu; alpha = 0.25",
     .in = {S2(17, 24)}, PLAIN},
    {"Projection", "units = 5; normalized = yes", .in = {S2(0, 16)}},
    {"Projection", "units = 5; gated = yes", .in = {S2(2, 16)}, PLAIN, .refused = true},
    {"Projection", "units = 4", .in = {S1(16)}, PLAIN, .refused = true},
    {"Projection", "units = 4", .in = {S2(2, 16)}, .refused = true},
};

static const struct layer_case large[] = {
    {"Projection", "units = 3072; normalized = yes; transpose_b = yes",
     .in = {S3(1, 1, 2048)}, .absent = 2},
    {"Projection", "units = 9000; normalized = yes; gated = yes; transpose_b = yes",
     .in = {S3(1, 1, 1032)}, .absent = 2},
    {"Projection", "units = 520; gated = yes", .in = {S2(2, 8200)}, PLAIN},
    {"Projection", "units = 34; normalized = yes; gated = yes", .in = {S2(5, 16392)}},
};

LAYER_CASES(Projection, ORDINARY(cases), LARGE(large))
