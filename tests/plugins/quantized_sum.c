/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of QuantizedSum: every format and pair of dtypes, zeros, activations, and what it
 * must refuse.
 */
#include "tests/layers/cases.h"

#define SCALES .weight_low = 0.125, .weight_high = 2, .numbers = NUMBERS_WHOLE_RANGE
static const struct layer_case cases[] = {
    {"QuantizedSum", "to = int8", .sweep = 4, .n_in = 2,
     .in_dtype = {STRATA_INT8, STRATA_INT8}, SCALES},
    {"QuantizedSum",
     "to = u8; zero_in = -3; zero_b = 200; zero_out = 17; activation = relu",
     .in = {S4(2, 33, 3, 5), S4(2, 33, 3, 5)}, .n_in = 2,
     .in_dtype = {STRATA_INT8, STRATA_UINT8}, SCALES},
    {"QuantizedSum", "activation = clip; alpha = -3; beta = 40",
     .in = {S4(2, 33, 3, 5), S4(2, 33, 3, 5)}, .n_in = 2,
     .in_dtype = {STRATA_UINT8, STRATA_INT8}, SCALES},
    {"QuantizedSum", "to = int8", .in = {S2(2, 33), S2(2, 1)}, .n_in = 2,
     .in_dtype = {STRATA_INT8, STRATA_INT8}, .refused = true},
    {"QuantizedSum", "zero_b = 200", .in = {S2(2, 33), S2(2, 33)}, .n_in = 2,
     .in_dtype = {STRATA_INT8, STRATA_INT8}, .refused = true},
};

LAYER_CASES(QuantizedSum, ORDINARY(cases))
