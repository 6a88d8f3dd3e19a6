/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of RotaryEmbedding: both pairings, positions and caches of every form, and what it
 * must refuse.
 */
#include "tests/layers/cases.h"

#define POSITIONS(from, to)                                                              \
    .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {from, to}}
#define NONE {0}
#define COMPUTED .absent = 3
#define WEIGHTS(rows, half) .weight = {S2(rows, half), S2(rows, half)}

static const struct layer_case cases[] = {
    /* computed */
    {"RotaryEmbedding", "", .in = {S4(2, 3, 7, 16)}, COMPUTED},
    {"RotaryEmbedding", "interleaved = yes", .in = {S4(2, 3, 7, 16)}, COMPUTED},
    {"RotaryEmbedding", "interleaved = yes", .in = {S4(2, 3, 7, 10)}, COMPUTED},
    {"RotaryEmbedding", "heads = 3", .in = {S3(2, 7, 30)}, COMPUTED},
    {"RotaryEmbedding", "dims = 6; base = 500", .in = {S4(2, 3, 7, 11)}, COMPUTED},
    {"RotaryEmbedding", "heads = 5; dims = 16; interleaved = yes", .in = {S3(2, 70, 120)},
     COMPUTED},
    {"RotaryEmbedding", "heads = 2", .in = {S3(3, 0, 16)}, COMPUTED},
    {"RotaryEmbedding", "", .n_in = 2, .in = {S4(2, 3, 7, 16), S2(2, 7)}, COMPUTED,
     POSITIONS(0, 3000)},
    {"RotaryEmbedding", "", .n_in = 2, .in = {S4(2, 3, 7, 16), S1(2)}, COMPUTED,
     .in_dtype = {[1] = STRATA_INT32}, .in_range = {[1] = {0, 3000}}},
    {"RotaryEmbedding", "heads = 32", .in = {S3(1, 130, 2048)}, COMPUTED},
    {"RotaryEmbedding", "heads = 7; turned_heads = 4", .in = {S3(2, 5, 112)}, COMPUTED},
    {"RotaryEmbedding", "turned_heads = 2; dims = 6", .in = {S4(2, 3, 7, 9)}, COMPUTED},
    /* caches that are weights */
    {"RotaryEmbedding", "", .in = {S4(2, 3, 7, 16)}, WEIGHTS(9, 8)},
    {"RotaryEmbedding", "", .in = {S4(2, 3, 7, 16)}, WEIGHTS(5, 8)}, /* too few */
    {"RotaryEmbedding", "heads = 3; dims = 4", .n_in = 2, .in = {S3(2, 7, 30), S2(2, 7)},
     WEIGHTS(9, 2), POSITIONS(-1, 9)},
    {"RotaryEmbedding", "interleaved = yes", .n_in = 2, .in = {S4(2, 3, 7, 16), S1(2)},
     WEIGHTS(20, 8), POSITIONS(0, 13)},
    /* caches that are inputs */
    {"RotaryEmbedding", "", .n_in = 4,
     .in = {S4(2, 3, 7, 16), S2(2, 7), S2(9, 8), S2(9, 8)}, COMPUTED, POSITIONS(0, 8)},
    {"RotaryEmbedding", "", .n_in = 4, .in = {S4(2, 3, 7, 16), NONE, S2(9, 8), S2(9, 8)},
     COMPUTED},
    {"RotaryEmbedding", "heads = 3; interleaved = yes", .n_in = 4,
     .in = {S3(2, 7, 48), NONE, S3(2, 7, 8), S3(2, 7, 8)}, COMPUTED},
    /* refused */
    {"RotaryEmbedding", "turned_heads = 4", .in = {S4(2, 3, 7, 16)}, COMPUTED,
     .refused = true},
    {"RotaryEmbedding", "", .in = {S3(2, 7, 30)}, COMPUTED, .refused = true},
    {"RotaryEmbedding", "heads = 4", .in = {S3(2, 7, 30)}, COMPUTED, .refused = true},
    {"RotaryEmbedding", "", .in = {S4(2, 3, 7, 15)}, COMPUTED, .refused = true},
    {"RotaryEmbedding", "dims = 18", .in = {S4(2, 3, 7, 16)}, COMPUTED, .refused = true},
    {"RotaryEmbedding", "", .n_in = 2, .in = {S4(2, 3, 7, 16), S2(2, 6)}, COMPUTED,
     POSITIONS(0, 8), .refused = true},
    {"RotaryEmbedding", "", .n_in = 2, .in = {S4(2, 3, 7, 16), S2(2, 7)}, COMPUTED,
     .refused = true},
    {"RotaryEmbedding", "", .in = {S4(2, 3, 7, 16)}, WEIGHTS(9, 7), .refused = true},
    {"RotaryEmbedding", "", .n_in = 3, .in = {S4(2, 3, 7, 16), NONE, S2(9, 8)}, COMPUTED,
     .refused = true},
    {"RotaryEmbedding", "", .n_in = 4,
     .in = {S4(2, 3, 7, 16), S2(2, 7), S3(2, 7, 8), S3(2, 7, 8)}, COMPUTED,
     POSITIONS(0, 8), .refused = true},
};

static const struct layer_case large[] = {
    {"RotaryEmbedding", "heads = 32", .n_in = 2, .in = {S3(3, 501, 4096), S1(3)}, COMPUTED,
     POSITIONS(0, 4000)},
    {"RotaryEmbedding", "interleaved = yes", .in = {S4(2, 32, 513, 128)},
     WEIGHTS(1024, 64)},
};

LAYER_CASES(RotaryEmbedding, ORDINARY(cases), LARGE(large))
