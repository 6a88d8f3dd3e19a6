/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of Embedding: rows of all lengths, tables of each type, indices of both, and what
 * it must refuse.
 */
#include "tests/layers/cases.h"

#define LOOKED_UP(n) .in_dtype = {STRATA_INT64}, .in_range = {{-(n)-1, (n)}}

static const struct layer_case cases[] = {
    {"Embedding", "", .in = {S1(5)}, .weight = {S2(9, 16)}, LOOKED_UP(9)},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 7)}, LOOKED_UP(9)},
    {"Embedding", "", .in = {S2(3, 40)}, .weight = {S2(30, 600)}, LOOKED_UP(30)},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 8)}, .in_dtype = {STRATA_INT32},
     .in_range = {{-10, 9}}},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 24)}, LOOKED_UP(9),
     .weight_dtype = {STRATA_FP16}},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 5)}, LOOKED_UP(9),
     .weight_dtype = {STRATA_BF16}},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 16), S2(4, 16)}, LOOKED_UP(9)},
    {"Embedding", "", .in = {S1(7)}, .weight = {S2(9, 7), S2(7, 7)}, LOOKED_UP(9)},
    {"Embedding", "", .in = {S3(2, 3, 5)}, .weight = {S2(30, 600), S2(5, 600)},
     LOOKED_UP(30)},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 24), S2(4, 24)}, LOOKED_UP(9),
     .weight_dtype = {STRATA_FP16}},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 5), S2(4, 5)}, LOOKED_UP(9),
     .weight_dtype = {STRATA_BF16}},
    {"Embedding", "", .in = {S2(3, 4)}, .weight = {S2(9, 16), S2(3, 16)}, LOOKED_UP(9),
     .refused = true},
    {"Embedding", "rows = 9; columns = 12", .in = {S1(6)}, LOOKED_UP(9)},
    {"Embedding", "", .in = {S1(0)}, .weight = {S2(9, 16)}, LOOKED_UP(9)},
    {"Embedding", "", .in = {S1(6)}, .weight = {S2(9, 16)}, .refused = true},
    {"Embedding", "", .in = {S1(6)}, LOOKED_UP(9), .refused = true},
    {"Embedding", "rows = 8", .in = {S1(6)}, .weight = {S2(9, 16)}, LOOKED_UP(9),
     .refused = true},
    {"Embedding", "", .in = {S1(6)}, .weight = {S1(9)}, LOOKED_UP(9), .refused = true},
    {"Embedding", "", .in = {S1(6)}, .weight = {S2(0, 4)}, LOOKED_UP(9), .refused = true},
};

static const struct layer_case large[] = {
    {"Embedding", "", .in = {S2(3, 300)}, .weight = {S2(1000, 4096)}, LOOKED_UP(1000)},
    {"Embedding", "", .in = {S2(2, 2100)}, .weight = {S2(300, 3993)}, LOOKED_UP(300)},
    {"Embedding", "", .in = {S2(8, 384)}, .weight = {S2(1000, 768), S2(384, 768)},
     LOOKED_UP(1000)},
    {"Embedding", "", .in = {S1(4100)}, .weight = {S2(90, 4088)}, LOOKED_UP(90),
     .weight_dtype = {STRATA_FP16}},
};

LAYER_CASES(Embedding, ORDINARY(cases), LARGE(large))
