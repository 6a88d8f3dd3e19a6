/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Shape: any input, which dims, both dtypes, and what it must refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Shape", "", .sweep = 4},
    {"Shape", "axes = 1", .in = {S2(3, 65)}, MOVED},
    {"Shape", "axes = -1, 0, 0; to = i32", .in = {S3(2, 7, 30)}},
    {"Shape", "axes = 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0", .in = {S2(300, 4)}},
    {"Shape", "to = i32", .in = {S3(2, 0, 4)}},
    {"Shape", "axes = 2", .in = {S2(3, 4)}, .refused = true},
    {"Shape", "axes = -3", .in = {S2(3, 4)}, .refused = true},
};

LAYER_CASES(Shape, ORDINARY(cases))
