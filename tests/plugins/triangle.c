/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Triangle: both sides, diagonals inside and far outside, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Triangle", "", .sweep = 4},
    {"Triangle", "upper = no", .sweep = 3},
    {"Triangle", "k = 2", .in = {S3(3, 9, 7)}, INTEGERS},
    {"Triangle", "k = -3", .in = {S3(3, 9, 7)}, INTEGERS},
    {"Triangle", "upper = no; k = 2", .in = {S2(9, 17)}, INTEGERS},
    {"Triangle", "upper = no; k = -3", .in = {S2(9, 17)}, INTEGERS},
    {"Triangle", "k = 100", .in = {S2(9, 17)}},
    {"Triangle", "k = -100", .in = {S2(9, 17)}},
    {"Triangle", "upper = no; k = 100", .in = {S2(9, 17)}},
    {"Triangle", "upper = no; k = -9000000000000000000", .in = {S2(9, 17)}},
    {"Triangle", "k = 9000000000000000000", .in = {S2(9, 17)}},
    {"Triangle", "", .in = {S2(300, 128)}},
    {"Triangle", "", .in = {S3(2, 0, 4)}},
    {"Triangle", "", .in = {S1(9)}, .refused = true},
};

LAYER_CASES(Triangle, ORDINARY(cases))
