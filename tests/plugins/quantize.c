/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Quantize: scales of a tensor, a dim and a block, every dtype, saturation, and
 * what it must refuse.
 */
#include "tests/layers/cases.h"

#define SCALE .weight_low = 0.03125, .weight_high = 0.5
static const struct layer_case cases[] = {
    {"Quantize", "", .sweep = 4, .absent = 2, SCALE},
    {"Quantize", "dtype = int8", .in = {S4(3, 9, 5, 7)}, .low = -40, .high = 40,
     .absent = 2, SCALE},
    {"Quantize", "dtype = u8", .in = {S4(3, 9, 5, 7)}, .weight = {S1(9)}, .low = -9,
     .high = 90, .absent = 2, SCALE},
    {"Quantize", "dtype = int8; axis = -1", .in = {S4(3, 9, 5, 7)}, .weight = {S1(7)},
     .absent = 2, SCALE},
    {"Quantize", "", .in = {S2(3, 9)}, .weight = {S1(9), S1(9)}, .weight_low = 1,
     .weight_high = 1},
    {"Quantize", "dtype = int8", .in = {S4(2, 19, 2, 131)}, .weight = {S1(1)}, .low = -40,
     .high = 40, .absent = 2, .numbers = NUMBERS_NAN, SCALE},
    {"Quantize", "", .in = {S4(2, 16, 0, 5)}, .weight = {S1(1)}, .absent = 2, SCALE},
    {"Quantize", "block = 4; dtype = int8", .in = {S2(3, 32)}, .absent = 2, SCALE},
    {"Quantize", "block = 2; axis = 0", .in = {S3(6, 5, 7)}, .absent = 2, SCALE},
    {"Quantize", "dtype = e4m3", .in = {S4(3, 9, 5, 7)}, .absent = 2, SCALE},
    {"Quantize", "dtype = e4m3; saturate = no", .in = {S2(33, 65)}, .low = -400,
     .high = 400, .absent = 2, .weight_low = 0.5, .weight_high = 0.5},
    {"Quantize", "dtype = e5m2", .in = {S2(33, 65)}, .absent = 2, SCALE},
    {"Quantize", "", .in = {S2(33, 65)}, .absent = 2, .numbers = NUMBERS_NAN, SCALE},
    {"Quantize", "", .in = {S4(1, 33, 32, 33)}, .absent = 2, SCALE},
    {"Quantize", "", .in = {S2(37, 131)}, .weight = {S1(1), S1(1)}, .low = -70,
     .high = 70, .weight_low = 0.37, .weight_high = 0.37},
    {"Quantize", "dtype = int8", .in = {S3(5, 3, 1031)}, .weight = {S1(3)}, .low = -300,
     .high = 300, .absent = 2, .numbers = NUMBERS_NAN, .weight_low = 0.3,
     .weight_high = 0.9},
    {"Quantize", "axis = 0", .in = {S2(9, 67)}, .weight = {S1(9)}, .low = -1e30,
     .high = 1e30, .absent = 2, SCALE},
    {"Quantize", "", .in = {S2(3, 9)}, .weight = {S1(3)}, .absent = 2, .refused = true},
    {"Quantize", "axis = 2", .in = {S2(3, 9)}, .weight = {S1(3)}, .absent = 2,
     .refused = true},
    {"Quantize", "block = 4", .in = {S2(3, 9)}, .absent = 2, .refused = true},
    {"Quantize", "", .in = {S2(3, 9)}, .weight = {S1(9), S1(3)}, .refused = true},
    {"Quantize", "dtype = i32", .in = {S2(3, 9)}, .absent = 2, .refused = true},
};

LAYER_CASES(Quantize, ORDINARY(cases))
