/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Narrow: each type in each dtype that holds it, values inside, at the ends and
 * beyond, and what it must refuse.
 */
#include "tests/layers/cases.h"

#define FLOATS(limit) .in = {S2(33, 65)}, .low = -(limit), .high = (limit)
#define STRANGE .in = {S2(3, 65)}, .numbers = NUMBERS_NAN
#define ENDLESS .in = {S2(3, 65)}, .numbers = NUMBERS_INFINITE
#define WHOLE(dtype) .in = {S3(3, 9, 65)}, .in_dtype = {dtype}, .in_range = {{-100, 100}}
#define WIDE(dtype)                                                                      \
    .in = {S3(3, 9, 65)}, .in_dtype = {dtype}, .in_range = {{-100000, 100000}}

static const struct layer_case cases[] = {
    {"Narrow", "values = e4m3fnuz", FLOATS(300)},
    {"Narrow", "values = e4m3fnuz", FLOATS(0.02)},
    {"Narrow", "values = e4m3fnuz; saturate = no", FLOATS(300)},
    {"Narrow", "values = e4m3fnuz", STRANGE},
    {"Narrow", "values = e4m3fnuz; saturate = no", ENDLESS},
    {"Narrow", "values = e5m2fnuz", FLOATS(90000)},
    {"Narrow", "values = e5m2fnuz", FLOATS(0.0002)},
    {"Narrow", "values = e5m2fnuz; saturate = no", FLOATS(90000)},
    {"Narrow", "values = e5m2fnuz", ENDLESS},
    {"Narrow", "values = e2m1", FLOATS(8)},
    {"Narrow", "values = e2m1", STRANGE},
    {"Narrow", "values = e2m1; saturate = no", ENDLESS},
    {"Narrow", "values = e8m0", FLOATS(700)},
    {"Narrow", "values = e8m0; round = down", FLOATS(700)},
    {"Narrow", "values = e8m0; round = nearest", FLOATS(0.001)},
    {"Narrow", "values = e8m0; round = nearest; saturate = no", STRANGE},
    {"Narrow", "values = e8m0; saturate = no", ENDLESS},
    {"Narrow", "values = int16", WIDE(STRATA_INT32)},
    {"Narrow", "values = int16", WIDE(STRATA_INT64)},
    {"Narrow", "values = u16", WIDE(STRATA_INT32)},
    {"Narrow", "values = u32", WIDE(STRATA_INT64)},
    {"Narrow", "values = int4", WHOLE(STRATA_INT8)},
    {"Narrow", "values = u4", WHOLE(STRATA_INT8)},
    {"Narrow", "values = int2", WHOLE(STRATA_INT32)},
    {"Narrow", "values = u2", WHOLE(STRATA_INT64)},
    {"Narrow", "values = u4", .in = {S2(3, 0)}, .in_dtype = {STRATA_INT8}},
    {"Narrow", "values = u32", WHOLE(STRATA_INT32), .refused = true},
    {"Narrow", "values = u16", WHOLE(STRATA_INT8), .refused = true},
    {"Narrow", "values = e2m1", WHOLE(STRATA_INT32), .refused = true},
    {"Narrow", "values = u16", FLOATS(9), .refused = true},
    {"Narrow", "", FLOATS(9), .refused = true},
};

LAYER_CASES(Narrow, ORDINARY(cases))
