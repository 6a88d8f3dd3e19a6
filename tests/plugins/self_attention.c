/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of SelfAttention: heads of 64 elements and others, full and short sequences, odd
 * and even batches, depths that end within a piece, bounds on what a query sees, and what
 * it must refuse.
 */
#include "tests/layers/cases.h"

#define NO_BIAS .absent = 2
/* Scores of a few units: of a depth of K, products of deviation 1 or so. */
#define SMALL .weight_low = -0.08, .weight_high = 0.08
#define TINY .weight_low = -0.04, .weight_high = 0.04
#define FEW_HEADS .may_refuse = true /* or of a kind that no card takes */

static const struct layer_case cases[] = {
    {"SelfAttention", "units = 18; heads = 2", .in = {S3(2, 5, 7)}, FEW_HEADS},
    {"SelfAttention", "units = 15; heads = 1; transpose_b = yes", .in = {S3(1, 1, 3)},
     NO_BIAS, FEW_HEADS},
    {"SelfAttention", "units = 40; heads = 3; kv_heads = 1", .in = {S3(2, 9, 12)}, SMALL,
     FEW_HEADS},
    {"SelfAttention", "units = 24; heads = 2; softcap = 1.5; scale = 0.4",
     .in = {S3(2, 11, 8)}, FEW_HEADS},
    {"SelfAttention", "units = 24; heads = 2; window_left = 3; window_right = 1",
     .in = {S3(1, 20, 8)}, FEW_HEADS},
    {"SelfAttention", "units = 192; heads = 1", .in = {S3(64, 1, 8)}, SMALL},
    {"SelfAttention", "units = 1536; heads = 8", .in = {S3(8, 128, 64)}, SMALL},
    {"SelfAttention", "units = 384; heads = 2; transpose_b = yes", .in = {S3(33, 37, 72)},
     SMALL},
    {"SelfAttention", "units = 2304; heads = 12", .in = {S3(6, 65, 136)}, SMALL, NO_BIAS},
    {"SelfAttention", "units = 1344; heads = 7; causal = yes", .in = {S3(10, 128, 40)},
     SMALL},
    {"SelfAttention", "units = 2496; heads = 13; causal = yes; scale = 0.25",
     .in = {S3(5, 100, 64)}, SMALL},
    {"SelfAttention", "units = 4224; heads = 22; window_left = 17; window_right = 5",
     .in = {S3(3, 111, 264)}, SMALL},
    {"SelfAttention", "units = 384; heads = 2", .in = {S3(33, 9, 16)}, SMALL,
     .numbers = NUMBERS_LARGE},
    {"SelfAttention", "units = 384; heads = 2", .in = {S3(33, 9, 16)}, SMALL,
     .numbers = NUMBERS_NAN},
    {"SelfAttention", "units = 384; heads = 2", .in = {S3(33, 9, 16)}, SMALL,
     .numbers = NUMBERS_INFINITE},
    {"SelfAttention", "units = 192; heads = 1", .in = {S3(2, 130, 64)}, SMALL, FEW_HEADS},
    {"SelfAttention", "units = 192; heads = 1", .in = {S3(63, 3, 8)}, SMALL, FEW_HEADS},
    {"SelfAttention", "units = 24; heads = 2", .in = {S3(0, 4, 8)}, FEW_HEADS},
    {"SelfAttention", "units = 24; heads = 2", .in = {S2(4, 8)}, .refused = true},
    {"SelfAttention", "units = 25; heads = 2", .in = {S3(1, 4, 8)}, .refused = true},
    {"SelfAttention", "units = 24", .in = {S3(1, 4, 8)}, .refused = true},
    {"SelfAttention", "heads = 2", .in = {S3(1, 4, 8)}, .refused = true},
};

/* More heads and sequences than there are multiprocessors; depths of many rounds. */
static const struct layer_case large[] = {
    {"SelfAttention", "units = 2304; heads = 12; transpose_b = yes",
     .in = {S3(8, 128, 768)}, TINY},
    {"SelfAttention", "units = 2304; heads = 12", .in = {S3(7, 128, 768)}, TINY},
    {"SelfAttention", "units = 2304; heads = 12; transpose_b = yes",
     .in = {S3(32, 128, 136)}, SMALL},
    {"SelfAttention", "units = 2304; heads = 12; causal = yes", .in = {S3(27, 97, 264)},
     TINY, NO_BIAS},
    {"SelfAttention", "units = 192; heads = 1; transpose_b = yes",
     .in = {S3(301, 128, 24)}, SMALL},
    {"SelfAttention", "units = 384; heads = 2", .in = {S3(133, 77, 520)}, TINY},
};

LAYER_CASES(SelfAttention, ORDINARY(cases), LARGE(large))
