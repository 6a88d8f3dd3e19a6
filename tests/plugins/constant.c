/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Constant: shapes by attribute and by weights, and what it must refuse.
 */
#include "tests/layers/cases.h"

/* What is not one of the three floats keeps its type. */
#define TYPED(dtype)                                                                     \
    {                                                                                    \
        "Constant", "", .n_in = -1, .weight = {S4(3, 35, 5, 7)},                         \
                        .weight_dtype = {dtype}, .weight_low = 0, .weight_high = 100     \
    }

static const struct layer_case cases[] = {
    {"Constant", "shape = 3, 9, 5, 7", .n_in = -1},
    {"Constant", "", .n_in = -1, .weight = {S4(1, 17, 5, 7)}},
    {"Constant", "", .n_in = -1, .weight = {S2(3, 9)}},
    {"Constant", "", .n_in = -1, .weight = {S1(700)}},
    {"Constant", "", .n_in = -1, .weight = {S5(3, 7, 2, 5, 7)}},
    {"Constant", "shape = 1, 33, 32, 33", .n_in = -1},
    TYPED(STRATA_INT64),
    TYPED(STRATA_INT32),
    TYPED(STRATA_INT8),
    TYPED(STRATA_UINT8),
    TYPED(STRATA_BOOL8),
    TYPED(STRATA_E4M3),
    TYPED(STRATA_E5M2),
    TYPED(STRATA_FP64),
    {"Constant", "shape = 3, 0, 5", .n_in = -1},
    {"Constant", "", .n_in = -1, .refused = true},
    {"Constant", "shape = 1, 1, 1, 1, 1, 1, 1, 1, 1", .n_in = -1, .refused = true},
};

LAYER_CASES(Constant, ORDINARY(cases))
