/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of DynamicQuantize: ranges on both sides of 0 and on one, of nothing but zeros,
 * numbers that are none, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"DynamicQuantize", "", .sweep = 3},
    {"DynamicQuantize", "", .sweep = 4},
    {"DynamicQuantize", "", .in = {S2(37, 131)}, .low = 0.5, .high = 9},
    {"DynamicQuantize", "", .in = {S2(37, 131)}, .low = -70, .high = -3},
    {"DynamicQuantize", "", .in = {S3(3, 5, 7)}, .low = -1e-30, .high = 1e-30},
    {"DynamicQuantize", "", .in = {S3(3, 5, 7)}, .low = -1e30, .high = 1e30},
    {"DynamicQuantize", "", .in = {S2(9, 67)}, .numbers = NUMBERS_NAN},
    {"DynamicQuantize", "", .in = {S2(9, 67)}, .numbers = NUMBERS_INFINITE},
    {"DynamicQuantize", "", .in = {S2(9, 67)}, .numbers = NUMBERS_NEGATIVE_INFINITE},
    {"DynamicQuantize", "", .in = {S2(9, 67)}, .numbers = NUMBERS_FINE},
    {"DynamicQuantize", "", .in = {S4(1, 33, 32, 33)}, .numbers = NUMBERS_FINE},
    {"DynamicQuantize", "", .in = {S2(3, 5)}, .in_dtype = {STRATA_INT32},
     .refused = true},
};

static const struct layer_case large[] = {
    {"DynamicQuantize", "", .in = {S2(1031, 517)}, .numbers = NUMBERS_FINE},
    {"DynamicQuantize", "", .in = {S2(2048, 1024)}},
};

LAYER_CASES(DynamicQuantize, ORDINARY(cases), LARGE(large))
