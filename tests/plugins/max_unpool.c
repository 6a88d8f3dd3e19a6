/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of MaxUnpool: indices in and out of a plane and of the output, several to one
 * place, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define PLACES(last) .in_dtype = {0, STRATA_INT64}, .in_range = {{-2, 2}, {-3, last}}

static const struct layer_case cases[] = {
    {"MaxUnpool", "kernel = 2; stride = 2", .n_in = 2,
     .in = {S4(1, 1, 4, 5), S4(1, 1, 4, 5)}, PLACES(84)},
    {"MaxUnpool", "kernel = 3; stride = 2; pad = 1", .n_in = 2,
     .in = {S4(2, 9, 7, 5), S4(2, 9, 7, 5)}, PLACES(2110)},
    {"MaxUnpool", "kernel = 3x2; stride = 3, 1; pad = 1, 0, 0, 1; output_size = 9x8",
     .n_in = 2, .in = {S4(2, 17, 3, 4), S4(2, 17, 3, 4)}, PLACES(2460)},
    {"MaxUnpool", "kernel = 2; output_size = 6", .n_in = 2,
     .in = {S3(3, 8, 5), S3(3, 8, 5)}, PLACES(150)},
    {"MaxUnpool", "kernel = 2; stride = 2", .n_in = 2,
     .in = {S5(1, 3, 2, 3, 4), S5(1, 3, 2, 3, 4)}, PLACES(600)},
    {"MaxUnpool", "kernel = 2; stride = 2", .n_in = 2,
     .in = {S4(1, 3, 4, 5), S4(1, 3, 4, 4)}, .in_dtype = {0, STRATA_INT64},
     .refused = true},
    {"MaxUnpool", "kernel = 2; stride = 2", .n_in = 2,
     .in = {S4(1, 3, 4, 5), S4(1, 3, 4, 5)}, .refused = true},
    {"MaxUnpool", "stride = 2", .n_in = 2, .in = {S4(1, 3, 4, 5), S4(1, 3, 4, 5)},
     .in_dtype = {0, STRATA_INT64}, .refused = true},
    {"MaxUnpool", "kernel = 2; pad = 9", .n_in = 2,
     .in = {S4(1, 3, 4, 5), S4(1, 3, 4, 5)}, .in_dtype = {0, STRATA_INT64},
     .refused = true},
};

static const struct layer_case large[] = {
    {"MaxUnpool", "kernel = 2; stride = 2", .n_in = 2,
     .in = {S4(2, 70, 61, 64), S4(2, 70, 61, 64)}, PLACES(2200000)},
};

LAYER_CASES(MaxUnpool, ORDINARY(cases), LARGE(large))
