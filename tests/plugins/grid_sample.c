/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of GridSample: modes by paddings, coordinates far outside, and what it must
 * refuse.
 */
#include "tests/layers/cases.h"

/* Coordinates well beyond both borders. */
#define GRID .in_range = {[1] = {-2.5, 2.5}}

static const struct layer_case cases[] = {
    {"GridSample", "", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)}, GRID},
    {"GridSample", "align_corners = yes", .n_in = 2,
     .in = {S4(3, 16, 5, 7), S4(3, 4, 6, 2)}, GRID},
    {"GridSample", "padding = border", .n_in = 2, .in = {S4(3, 3, 5, 7), S4(3, 4, 6, 2)},
     GRID},
    {"GridSample", "padding = reflection", .n_in = 2,
     .in = {S4(1, 17, 5, 7), S4(1, 4, 6, 2)}, GRID},
    {"GridSample", "padding = reflection; align_corners = yes", .n_in = 2,
     .in = {S4(1, 8, 1, 7), S4(1, 4, 6, 2)}, GRID},
    {"GridSample", "mode = nearest", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)},
     GRID},
    {"GridSample", "mode = nearest; padding = border", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)}, GRID},
    {"GridSample", "mode = nearest; padding = reflection", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)}, GRID},
    {"GridSample", "mode = cubic", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)},
     GRID},
    {"GridSample", "mode = cubic; padding = border", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)}, GRID},
    {"GridSample", "mode = cubic; padding = reflection; align_corners = yes", .n_in = 2,
     .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 2)}, GRID},
    {"GridSample", "", .n_in = 2, .in = {S5(2, 9, 3, 4, 5), S5(2, 2, 3, 4, 3)}, GRID},
    {"GridSample", "mode = nearest; padding = reflection", .n_in = 2,
     .in = {S5(2, 9, 3, 4, 5), S5(2, 2, 3, 4, 3)}, GRID},
    {"GridSample", "", .n_in = 2, .in = {S4(1, 40, 20, 21), S4(1, 30, 30, 2)}, GRID},
    /* Rows shorter than a window, and blocks of pixels. */
    {"GridSample", "padding = border", .n_in = 2, .in = {S4(2, 3, 5, 1), S4(2, 4, 6, 2)},
     GRID},
    {"GridSample", "mode = cubic", .n_in = 2, .in = {S4(2, 3, 5, 3), S4(2, 4, 6, 2)},
     GRID},
    {"GridSample", "mode = cubic; padding = reflection", .n_in = 2,
     .in = {S4(2, 3, 1, 4), S4(2, 4, 7, 2)}, GRID},
    {"GridSample", "padding = reflection", .n_in = 2,
     .in = {S4(2, 3, 9, 2), S4(2, 33, 35, 2)}, GRID},
    {"GridSample", "mode = nearest; padding = border", .n_in = 2,
     .in = {S4(1, 3, 9, 8), S4(1, 40, 41, 2)}, GRID},
    {"GridSample", "mode = cubic; align_corners = yes", .n_in = 2,
     .in = {S4(1, 3, 9, 8), S4(1, 40, 41, 2)}, GRID},
    {"GridSample", "mode = cubic", .n_in = 2,
     .in = {S5(2, 9, 3, 4, 5), S5(2, 2, 3, 4, 3)}, .refused = true},
    {"GridSample", "", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(2, 4, 6, 2)},
     .refused = true},
    {"GridSample", "", .n_in = 2, .in = {S4(3, 9, 5, 7), S4(3, 4, 6, 3)},
     .refused = true},
    {"GridSample", "", .n_in = 2, .in = {S3(3, 9, 5), S3(3, 4, 1)}, .refused = true},
    {"GridSample", "", .n_in = 2, .in = {S4(3, 9, 0, 7), S4(3, 4, 6, 2)},
     .refused = true},
};

LAYER_CASES(GridSample, ORDINARY(cases))
