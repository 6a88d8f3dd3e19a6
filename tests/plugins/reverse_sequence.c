/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ReverseSequence: both orders of its axes, lengths of nothing and of more than
 * there is, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define LENGTHS(n) .in_dtype = {[1] = STRATA_INT64}, .in_range = {[1] = {0, (n) + 1}}

static const struct layer_case cases[] = {
    {"ReverseSequence", "", .n_in = 2, .in = {S3(7, 5, 9), S1(5)}, LENGTHS(7)},
    {"ReverseSequence", "batch_axis = 0; time_axis = 1", .n_in = 2,
     .in = {S3(5, 7, 4), S1(5)}, MOVED, LENGTHS(7)},
    {"ReverseSequence", "batch_axis = 0; time_axis = -1", .n_in = 2,
     .in = {S4(3, 2, 5, 7), S1(3)}, LENGTHS(7)},
    {"ReverseSequence", "batch_axis = 2; time_axis = 1", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S1(5)}, .in_dtype = {[1] = STRATA_INT32},
     .in_range = {[1] = {1, 9}}},
    {"ReverseSequence", "", .n_in = 2, .in = {S2(300, 200), S1(200)}, LENGTHS(300)},
    {"ReverseSequence", "", .n_in = 2, .in = {S2(7, 5), S1(4)}, LENGTHS(7),
     .refused = true},
    {"ReverseSequence", "batch_axis = 0", .n_in = 2, .in = {S2(7, 5), S1(7)}, LENGTHS(7),
     .refused = true},
    {"ReverseSequence", "time_axis = 2", .n_in = 2, .in = {S2(7, 5), S1(5)}, LENGTHS(7),
     .refused = true},
    {"ReverseSequence", "", .n_in = 2, .in = {S2(7, 5), S1(5)}, .refused = true},
};

LAYER_CASES(ReverseSequence, ORDINARY(cases))
