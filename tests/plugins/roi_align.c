/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of RoiAlign: modes by coordinates, regions that leave the image or are turned
 * round, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define REGIONS                                                                          \
    .in_dtype = {[2] = STRATA_INT64}, .in_range = {[1] = {-3, 12}, [2] = {0, 2}}

static const struct layer_case cases[] = {
    {"RoiAlign", "", .n_in = 3, .in = {S4(3, 9, 8, 7), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 3x2", .n_in = 3, .in = {S4(3, 17, 8, 7), S2(5, 4), S1(5)},
     REGIONS},
    {"RoiAlign", "size = 2; sampling = 2; scale = 0.5", .n_in = 3,
     .in = {S4(3, 8, 8, 7), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 2; mode = max", .n_in = 3,
     .in = {S4(3, 9, 8, 7), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 2; mode = max; sampling = 3; coordinates = output_half_pixel",
     .n_in = 3, .in = {S4(3, 3, 8, 7), S2(5, 4), S1(5)}, .in_dtype = {[2] = STRATA_INT32},
     .in_range = {[1] = {-3, 12}, [2] = {-1, 3}}},
    {"RoiAlign", "size = 3; coordinates = output_half_pixel", .n_in = 3,
     .in = {S4(3, 70, 8, 7), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 7; sampling = 2", .n_in = 3,
     .in = {S4(3, 5, 8, 2), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 2; sampling = 3", .n_in = 3,
     .in = {S4(3, 5, 8, 1), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 30; sampling = 3", .n_in = 3,
     .in = {S4(3, 2, 8, 7), S2(5, 4), S1(5)}, REGIONS},
    {"RoiAlign", "size = 3", .n_in = 3, .in = {S4(3, 9, 8, 7), S2(5, 4), S1(4)}, REGIONS,
     .refused = true},
    {"RoiAlign", "size = 3", .n_in = 3, .in = {S4(3, 9, 8, 7), S2(5, 5), S1(5)}, REGIONS,
     .refused = true},
    {"RoiAlign", "size = 3", .n_in = 3, .in = {S4(3, 9, 8, 7), S2(5, 4), S1(5)},
     .refused = true},
    {"RoiAlign", "size = 1, 2, 3", .n_in = 3, .in = {S4(3, 9, 8, 7), S2(5, 4), S1(5)},
     REGIONS, .refused = true},
    {"RoiAlign", "", .n_in = 3, .in = {S3(3, 9, 8), S2(5, 4), S1(5)}, REGIONS,
     .refused = true},
};

LAYER_CASES(RoiAlign, ORDINARY(cases))
