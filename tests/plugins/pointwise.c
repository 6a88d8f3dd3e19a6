/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Pointwise: each family of operations, results kept over several instructions,
 * broadcasting, truths; and programs that must be refused.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Pointwise", "program = product x0 x1, relu r0 0 0", .sweep = 4, .n_in = 2},
    {"Pointwise", "program = sigmoid x0 0 0, product x0 r0", .sweep = 3},
    {"Pointwise", "program = scale x0 2 -1, clip r0 -1.5 0.5, abs r1, sum r2 x1",
     .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}},
    {"Pointwise",
     "program = scale x0 0.70710678 0, erf r0, scale r1 0.5 0.5, product x0 r2",
     .in = {S4(3, 16, 5, 7)}},
    {"Pointwise", "program = exp x0, neg x0, exp r1, sub r0 r2, sum r0 r2, div r3 r4",
     .in = {S4(2, 17, 3, 5)}},
    {"Pointwise", "program = max x0 x1, min r0 x2, sub r1 x3, leaky_relu r2 0.1 0",
     .n_in = 4,
     .in = {S4(3, 9, 5, 7), S4(1, 9, 1, 1), S4(3, 1, 5, 7), S4(1, 1, 1, 1)}},
    {"Pointwise", "program = sum x0 x1, tanh r0 0 0", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S1(7)}},
    {"Pointwise", "program = sin x0, cos x0, product r0 r1, pow x1 x1, sum r2 r3",
     .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 9, 5, 7)}, .low = 0.5, .high = 2},
    {"Pointwise", "program = less x0 x1, select r0 x0 x1", .n_in = 2,
     .in = {S3(3, 9, 35), S3(3, 9, 35)}},
    {"Pointwise", "program = greater_equal x0 x1, less x0 x2, and r0 r1", .n_in = 3,
     .in = {S2(33, 40), S2(33, 40), S2(1, 40)}},
    {"Pointwise", "program = select x0 x1 x2, silu r0 0 0", .n_in = 3,
     .in = {S2(33, 40), S2(33, 40), S2(33, 1)}, .in_dtype = {STRATA_BOOL8}},
    {"Pointwise", "program = not x0, or r0 x1", .n_in = 2, .in = {S2(33, 41), S2(33, 41)},
     .in_dtype = {STRATA_BOOL8, STRATA_BOOL8}},
    {"Pointwise", "program = cast_bool x0", .in = {S2(33, 41)}},
    {"Pointwise", "program = sum x0 x1, sum r0 x2, sum r1 x3, sum r2 x4, sum r3 x5, "
                  "sum r4 x6, sum r5 x7",
     .n_in = 8,
     .in = {S2(3, 40), S2(3, 40), S2(3, 40), S2(3, 40), S2(3, 40), S2(1, 40), S2(3, 1),
            S1(40)}},
    /* The result before as the second or third operand, and as both. */
    {"Pointwise", "program = exp x0, sub x1 r0, less x0 r1, select r2 x1 r1", .n_in = 2,
     .in = {S2(33, 1001), S2(33, 1001)}},
    {"Pointwise", "program = sum x0 x1, product r0 r0, div x0 r1", .n_in = 2,
     .in = {S2(7, 41), S2(7, 41)}, .low = 0.5, .high = 2},
    {"Pointwise", "program = cast_fp32 x0, neg r0, cast_fp32 r1", .in = {S2(33, 41)}},
    /* Inputs of one element, truths among them, and all that can be held at once. */
    {"Pointwise", "program = select x0 x1 x2, product r0 x3", .n_in = 4,
     .in = {S1(1), S2(33, 41), S2(33, 41), S2(1, 1)}, .in_dtype = {STRATA_BOOL8}},
    {"Pointwise", "program = select x0 x1 x2, sub r0 x1", .n_in = 3,
     .in = {S2(9, 1), S2(9, 77), S2(1, 1)}, .in_dtype = {STRATA_BOOL8}},
    {"Pointwise", "program = sin x0, cos x1, sum x2 x3, pow x4 x5, sum r0 x6, "
                  "sum r1 x7, product r2 r3, sub r4 r5, sum r6 r7",
     .n_in = 8, .low = 0.5, .high = 2,
     .in = {S2(3, 40), S2(3, 40), S2(3, 40), S2(3, 40), S2(3, 40), S2(3, 40), S2(3, 40),
            S2(3, 40)}},
    {"Pointwise", "program = relu x0 0 0", .in = {S3(2, 0, 5)}},
    {"Pointwise", "program = ", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = dequantize x0 1 0", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = quantize_u8 x0 1 0", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = relu", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = relu x1 0 0", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = relu r0 0 0", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = leaky_relu x0, scale r0 3, softplus r1", .in = {S2(3, 4)}},
    {"Pointwise", "program = relu x0 a", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = relu x0 0 0 0", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = relux x0 0 0", .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = exp x0, exp x0, exp x0, exp x0, exp x0, sum r0 r1, sum r2 r3",
     .in = {S2(3, 4)}, .refused = true},
    {"Pointwise", "program = sum x0 x1", .n_in = 2, .in = {S2(3, 4), S2(3, 5)},
     .refused = true},
    {"Pointwise", "program = abs x0", .in = {S2(3, 4)}, .in_dtype = {STRATA_INT32},
     .refused = true},
};
/* Several tiles a block, the last of them a part. */
static const struct layer_case large[] = {
    {"Pointwise", "program = exp x0, product r0 x1, sigmoid r1, sum r2 x0, abs r3, "
                  "max r4 x1",
     .n_in = 2, .in = {S2(1501, 4003), S2(1501, 4003)}, .low = -2, .high = 2},
    {"Pointwise", "program = sum x0 x1, gelu r0, product r1 x2", .n_in = 3,
     .in = {S4(3, 65, 131, 129), S4(1, 65, 1, 1), S1(129)}},
};

LAYER_CASES(Pointwise, ORDINARY(cases), LARGE(large))
