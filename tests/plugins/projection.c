/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Projection: with and without each of its parts, few rows and many, depths and
 * widths that end within a thread's piece, a tile or a half, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define NO_SCALE .absent = 4
#define PLAIN .absent = 6
#define POSITIONS(from, to)                                                              \
    .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {from, to}}

static const struct layer_case cases[] = {
    {"Projection", "units = 7", .in = {S2(1, 40)}, PLAIN},
    {"Projection", "units = 9; transpose_b = yes", .in = {S2(1, 2064)}, NO_SCALE},
    {"Projection", "units = 6; normalized = yes", .in = {S3(1, 1, 72)}, .absent = 2},
    {"Projection", "units = 37; normalized = yes; transpose_b = yes",
     .in = {S3(1, 2, 136)}},
    {"Projection", "units = 10; normalized = yes; epsilon = 0.5", .in = {S2(3, 17)},
     NO_SCALE, .may_refuse = true},
    {"Projection", "units = 2; gated = yes", .in = {S2(1, 8)}, PLAIN},
    {"Projection", "units = 18; gated = yes; kind = gelu", .in = {S3(2, 1, 264)},
     NO_SCALE},
    {"Projection", "units = 22; gated = yes; normalized = yes; transpose_b = yes",
     .in = {S3(1, 1, 520)}},
    {"Projection", "units = 70; gated = yes; normalized = yes", .in = {S3(2, 3, 96)}},
    {"Projection", "units = 150; gated = yes; kind = leaky_relu; alpha = 0.25",
     .in = {S2(17, 24)}, PLAIN, .may_refuse = true},
    {"Projection", "units = 5; normalized = yes", .in = {S2(0, 16)}},
    {"Projection", "units = 32; heads = 4", .in = {S3(1, 1, 40)}, PLAIN},
    {"Projection", "units = 60; heads = 5; turned_heads = 3; normalized = yes", .n_in = 2,
     .in = {S3(1, 1, 72), S1(1)}, POSITIONS(0, 3000)},
    {"Projection", "units = 32; heads = 2; interleaved = yes; transpose_b = yes",
     .n_in = 2, .in = {S3(2, 1, 136), S1(2)}, NO_SCALE, POSITIONS(0, 3000)},
    {"Projection", "units = 96; heads = 6; turned_heads = 5; base = 500", .n_in = 2,
     .in = {S3(2, 3, 24), S2(2, 3)}, PLAIN, POSITIONS(0, 3000)},
    {"Projection", "units = 48; heads = 2; normalized = yes", .n_in = 2,
     .in = {S3(2, 5, 24), S1(2)}, NO_SCALE, POSITIONS(0, 90)},
    {"Projection", "units = 30; heads = 5", .in = {S3(1, 2, 16)}, PLAIN,
     .may_refuse = true},
    {"Projection", "units = 5; gated = yes", .in = {S2(2, 16)}, PLAIN, .refused = true},
    {"Projection", "units = 30; heads = 4", .in = {S3(1, 2, 16)}, PLAIN, .refused = true},
    {"Projection", "units = 30; heads = 10", .in = {S3(1, 2, 16)}, PLAIN,
     .refused = true},
    {"Projection", "units = 32; heads = 4", .in = {S2(2, 16)}, PLAIN, .refused = true},
    {"Projection", "units = 32", .n_in = 2, .in = {S3(1, 2, 16), S1(1)}, PLAIN,
     POSITIONS(0, 8), .refused = true},
    {"Projection", "units = 4", .in = {S1(16)}, PLAIN, .refused = true},
};

static const struct layer_case large[] = {
    {"Projection", "units = 3072; normalized = yes; transpose_b = yes",
     .in = {S3(1, 1, 2048)}, .absent = 2},
    {"Projection", "units = 9000; normalized = yes; gated = yes; transpose_b = yes",
     .in = {S3(1, 1, 1032)}, .absent = 2},
    {"Projection",
     "units = 3072; heads = 48; turned_heads = 40; normalized = yes; transpose_b = yes",
     .n_in = 2, .in = {S3(1, 1, 2048), S1(1)}, .absent = 2, POSITIONS(0, 3000)},
    {"Projection", "units = 40960; heads = 40; normalized = yes; interleaved = yes",
     .n_in = 2, .in = {S3(1, 1, 264), S1(1)}, .absent = 2, POSITIONS(0, 3000)},
    {"Projection", "units = 534; normalized = yes; gated = yes", .in = {S3(1, 1, 2056)}},
    {"Projection", "units = 1075; normalized = yes; transpose_b = yes",
     .in = {S2(1, 6152)}, NO_SCALE},
    {"Projection", "units = 540; gated = yes; kind = gelu", .in = {S2(1, 8184)}, PLAIN},
    {"Projection", "units = 520; gated = yes", .in = {S2(2, 8200)}, PLAIN},
    {"Projection", "units = 34; normalized = yes; gated = yes", .in = {S2(5, 16392)}},
};

LAYER_CASES(Projection, ORDINARY(cases), LARGE(large))
