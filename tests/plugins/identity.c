/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Identity: ranks and sizes.
 */
#include "tests/layers/cases.h"

static const struct layer_case cases[] = {
    {"Identity", "", .sweep = 4},
    {"Identity", "", .in = {S1(700)}},
    {"Identity", "", .in = {S2(3, 17)}},
    {"Identity", "", .in = {S5(3, 9, 2, 5, 7)}},
    {"Identity", "", .in = {S4(1, 33, 96, 97)}},
    /* In integer formats. */
    {"Identity", "", .sweep = 4, INTEGERS},
    {"Identity", "", .in = {S1(700)}, INTEGERS},
    {"Identity", "", .sweep = 4, NARROW},
    {"Identity", "", .in = {S4(0, 9, 5, 7)}},
    {"Identity", "", .in = {S4(3, 9, 0, 7)}, INTEGERS},
};

LAYER_CASES(Identity, ORDINARY(cases))
