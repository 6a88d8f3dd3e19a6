/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Dequantize: scales of a tensor, a dim and a block, every dtype, and what it
 * must refuse.
 */
#include "tests/layers/cases.h"

#define U8 .in_dtype = {STRATA_UINT8}, .low = 0, .high = 255
#define I8 .in_dtype = {STRATA_INT8}, .low = -128, .high = 127
static const struct layer_case cases[] = {
    {"Dequantize", "", .sweep = 4, U8, .absent = 2},
    {"Dequantize", "", .in = {S4(3, 9, 5, 7)}, I8, .absent = 2},
    {"Dequantize", "", .in = {S4(3, 9, 5, 7)}, .weight = {S1(9), S1(9)}, I8},
    {"Dequantize", "axis = -1", .in = {S4(3, 9, 5, 7)}, .weight = {S1(7)}, U8,
     .absent = 2},
    {"Dequantize", "axis = 0", .in = {S2(9, 1037)}, .weight = {S1(9), S1(9)}, U8},
    {"Dequantize", "block = 4", .in = {S2(3, 32)}, I8},
    {"Dequantize", "block = 2; axis = 0", .in = {S3(6, 5, 7)}, U8, .absent = 2},
    {"Dequantize", "", .in = {S2(33, 65)}, .in_dtype = {STRATA_E4M3}, .absent = 2},
    {"Dequantize", "", .in = {S2(33, 65)}, .in_dtype = {STRATA_E5M2}, .absent = 2},
    {"Dequantize", "", .in = {S2(33, 65)}, .in_dtype = {STRATA_INT32}, .low = -60000,
     .high = 60000, .absent = 2},
    {"Dequantize", "", .in = {S4(1, 33, 32, 33)}, I8, .absent = 2},
    {"Dequantize", "", .in = {S2(3, 9)}, .absent = 2, .refused = true},
    {"Dequantize", "", .in = {S2(3, 9)}, .weight = {S1(3)}, U8, .absent = 2,
     .refused = true},
};

LAYER_CASES(Dequantize, ORDINARY(cases))
