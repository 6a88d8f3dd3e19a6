/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedAttention: shapes of heads, what Attention has but a past, outputs of
 * both kinds, and what it must refuse.
 */
#include "tests/layers/cases.h"

/* Scores of some steps, and results that fill e4m3 without passing its end. */
#define SCALES                                                                           \
    .weight_range = {[STRATA_QUANTIZED_SCALE_Q] = {0.5, 2},                              \
                     [STRATA_QUANTIZED_SCALE_K] = {0.5, 2},                              \
                     [STRATA_QUANTIZED_SCALE_V] = {0.25, 3},                             \
                     [STRATA_QUANTIZED_SCALE_Y] = {0.01, 0.02}}
#define E4M3_(m, l) .in_dtype = {STRATA_E4M3, STRATA_E4M3, STRATA_E4M3, m, l}, SCALES
#define E4M3 E4M3_(STRATA_FP32, STRATA_INT64)
#define BOOLEAN E4M3_(STRATA_BOOL8, STRATA_INT64)
#define NONE                                                                             \
    {                                                                                    \
        0                                                                                \
    }
#define LENGTHS(from, to) .in_range = {[4] = {from, to}}
/* batch 2; 3 heads of 5 elements; 7 queries */
#define Q S4(2, 3, 7, 5)
#define K S4(2, 3, 9, 5)
#define V S4(2, 3, 9, 5)

static const struct layer_case cases[] = {
    {"QuantizedAttention", "", .n_in = 3, .in = {Q, K, V}, E4M3},
    {"QuantizedAttention", "to = e4m3", .n_in = 3, .in = {Q, K, S4(2, 3, 9, 11)}, E4M3},
    {"QuantizedAttention", "", .n_in = 3,
     .in = {S4(1, 2, 1, 1), S4(1, 2, 1, 1), S4(1, 2, 1, 1)}, E4M3},
    {"QuantizedAttention", "", .n_in = 3,
     .in = {S4(2, 6, 7, 16), S4(2, 2, 9, 16), S4(2, 2, 9, 16)}, E4M3},
    {"QuantizedAttention", "to = e4m3", .n_in = 3,
     .in = {S4(1, 4, 50, 64), S4(1, 1, 300, 64), S4(1, 1, 300, 32)}, E4M3},
    {"QuantizedAttention", "heads = 3", .n_in = 3,
     .in = {S3(2, 7, 15), S3(2, 9, 15), S3(2, 9, 33)}, E4M3},
    {"QuantizedAttention", "heads = 6; kv_heads = 2", .n_in = 3,
     .in = {S3(2, 7, 96), S3(2, 9, 32), S3(2, 9, 64)}, E4M3},
    {"QuantizedAttention", "heads = 3", .in = {S3(2, 7, 45)}, E4M3},
    {"QuantizedAttention", "heads = 2; to = e4m3", .in = {S3(1, 130, 192)}, E4M3},
    {"QuantizedAttention", "", .n_in = 3, .in = {S4(2, 3, 0, 5), K, V}, E4M3},
    {"QuantizedAttention", "", .n_in = 3, .in = {Q, S4(2, 3, 0, 5), S4(2, 3, 0, 5)},
     E4M3},
    {"QuantizedAttention", "scale = 0.7", .n_in = 3, .in = {Q, K, V}, E4M3},
    {"QuantizedAttention", "softcap = 1.5", .n_in = 3,
     .in = {S4(2, 3, 37, 16), S4(2, 3, 140, 16), S4(2, 3, 140, 16)}, E4M3},
    {"QuantizedAttention", "causal = yes", .n_in = 3, .in = {Q, Q, Q}, E4M3},
    {"QuantizedAttention", "causal = yes", .n_in = 3, .in = {K, Q, Q}, E4M3},
    {"QuantizedAttention", "heads = 2; causal = yes", .in = {S3(1, 290, 96)}, E4M3},
    {"QuantizedAttention", "window_left = 130; causal = yes", .n_in = 3,
     .in = {S4(1, 2, 300, 16), S4(1, 1, 300, 16), S4(1, 1, 300, 16)}, E4M3},
    {"QuantizedAttention", "window_left = 3; window_right = 2", .n_in = 3,
     .in = {S4(1, 2, 20, 16), S4(1, 2, 9, 16), S4(1, 2, 9, 16)}, E4M3}, /* some nothing */
    {"QuantizedAttention", "", .n_in = 4, .in = {Q, K, V, S4(2, 3, 7, 9)}, BOOLEAN},
    {"QuantizedAttention", "", .n_in = 4,
     .in = {S4(2, 2, 70, 32), S4(2, 2, 90, 32), S4(2, 2, 90, 32), S4(2, 1, 1, 90)}, E4M3},
    {"QuantizedAttention", "causal = yes", .n_in = 4,
     .in = {S4(1, 2, 70, 16), S4(1, 2, 70, 16), S4(1, 2, 70, 16), S2(70, 70)}, BOOLEAN},
    {"QuantizedAttention", "", .n_in = 4, .in = {Q, K, V, S2(7, 6)}, E4M3},
    {"QuantizedAttention", "", .n_in = 5,
     .in = {S4(3, 2, 7, 16), S4(3, 2, 150, 16), S4(3, 2, 150, 16), NONE, S1(3)}, E4M3,
     LENGTHS(0, 150)},
    {"QuantizedAttention", "causal = yes; softcap = 3", .n_in = 5,
     .in = {S4(3, 2, 7, 16), S4(3, 2, 40, 16), S4(3, 2, 40, 16), S4(3, 1, 1, 35), S1(3)},
     E4M3, LENGTHS(0, 40)},
    {"QuantizedAttention", "", .n_in = 3, .in = {Q, K, V}, .refused = true},
    {"QuantizedAttention", "to = e4m3", .n_in = 3, .in = {Q, K, V}, E4M3,
     .absent = 1 << STRATA_QUANTIZED_SCALE_Y, .refused = true},
    {"QuantizedAttention", "heads = 2", .in = {S3(2, 7, 45)}, E4M3, .refused = true},
    {"QuantizedAttention", "", .n_in = 3, .in = {Q, S4(2, 2, 9, 5), V}, E4M3,
     .refused = true},
};

/* Blocks that take several parts, rings that go round, tiles that causal masks cut. */
static const struct layer_case large[] = {
    {"QuantizedAttention", "causal = yes", .n_in = 3,
     .in = {S4(2, 8, 513, 128), S4(2, 2, 513, 128), S4(2, 2, 513, 128)}, E4M3},
    {"QuantizedAttention", "to = e4m3", .n_in = 3,
     .in = {S4(2, 12, 200, 64), S4(2, 12, 1400, 64), S4(2, 12, 1400, 64)}, E4M3},
    {"QuantizedAttention", "heads = 12", .in = {S3(3, 384, 2304)}, E4M3},
    {"QuantizedAttention", "window_left = 200; causal = yes", .n_in = 3,
     .in = {S4(1, 40, 700, 80), S4(1, 40, 900, 80), S4(1, 40, 900, 48)}, E4M3},
    {"QuantizedAttention", "", .n_in = 4,
     .in = {S4(2, 4, 300, 128), S4(2, 4, 700, 128), S4(2, 4, 700, 128), S4(2, 1, 1, 700)},
     E4M3},
    {"QuantizedAttention", "softcap = 5", .n_in = 5,
     .in = {S4(4, 4, 100, 64), S4(4, 4, 700, 64), S4(4, 4, 700, 64), NONE, S1(4)}, E4M3,
     LENGTHS(0, 700)},
    {"QuantizedAttention", "causal = yes", .n_in = 5,
     .in = {S4(4, 4, 100, 112), S4(4, 4, 700, 112), S4(4, 4, 700, 112), NONE, S1(4)},
     E4M3, LENGTHS(0, 700)},
};

LAYER_CASES(QuantizedAttention, ORDINARY(cases), LARGE(large))
