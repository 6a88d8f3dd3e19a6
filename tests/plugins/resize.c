/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Resize: modes by coordinates, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Resize", "scale = 2; coordinates = asymmetric", .sweep = 4},
    {"Resize", "scale = 2; mode = bilinear", .sweep = 4},
    {"Resize", "scale = 2", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "scale = 1.5, 0.6", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "size = 3, 11", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "size = 3, 11; coordinates = asymmetric", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "size = 3, 11; coordinates = align_corners", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "size = 1, 11; coordinates = align_corners", .in = {S4(3, 9, 1, 7)}},
    {"Resize", "size = 4; mode = bilinear", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "size = 3, 11; mode = bilinear", .in = {S4(3, 17, 5, 7)}},
    {"Resize", "size = 3, 11; mode = bilinear; coordinates = asymmetric",
     .in = {S4(3, 7, 5, 7)}},
    {"Resize", "size = 9, 13; mode = bilinear; coordinates = align_corners",
     .in = {S4(3, 8, 5, 7)}},
    {"Resize", "size = 1, 1; mode = bilinear; coordinates = align_corners",
     .in = {S4(3, 8, 5, 7)}},
    {"Resize", "size = 5, 7; mode = bilinear", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "scale = 1.5, 2.5; mode = bilinear", .in = {S4(3, 9, 5, 7)}},
    {"Resize", "scale = 2.25", .in = {S3(3, 9, 7)}},
    {"Resize", "scale = 2.25; mode = bilinear", .in = {S3(3, 9, 7)}},
    {"Resize", "scale = 2, 1.5, 0.75", .in = {S5(3, 9, 2, 5, 7)}},
    {"Resize", "scale = 2, 1.5, 0.75; mode = bilinear", .in = {S5(3, 9, 2, 5, 7)}},
    {"Resize", "scale = 2; coordinates = asymmetric", .in = {S4(1, 40, 20, 21)}},
    {"Resize", "scale = 2; mode = bilinear", .in = {S4(1, 40, 20, 21)}},
    {"Resize", "scale = 2; mode = bilinear", .in = {S4(2, 4, 7, 14)}},
    {"Resize", "", .in = {S4(1, 1, 5, 5)}, .refused = true},
    {"Resize", "scale = 2; size = 3", .in = {S4(1, 1, 5, 5)}, .refused = true},
    {"Resize", "scale = 2", .in = {S2(5, 5)}, .refused = true},
    {"Resize", "size = 1, 2, 3", .in = {S4(1, 1, 5, 5)}, .refused = true},
    {"Resize", "scale = 0.1", .in = {S4(1, 1, 5, 5)}, .refused = true},
    {"Resize", "scale = 1000000", .in = {S4(1, 1, 5, 5000)}, .refused = true},
    /* In integer formats. */
    {"Resize", "scale = 2; coordinates = asymmetric", .sweep = 4, INTEGERS},
    {"Resize", "size = 3, 11", .in = {S4(3, 33, 5, 7)}, INTEGERS},
};

LAYER_CASES(Resize, ORDINARY(cases))
