/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedProduct of E4M3 on CUDA: plain, and on Hopper's tensor cores.
 */
#ifndef PLUGINS_QUANTIZED_PRODUCT_FLOAT8_H
#define PLUGINS_QUANTIZED_PRODUCT_FLOAT8_H

#include <strata/layers.h>

/* Rows x columns of a tile; but for the pairs, sums are FP32 by parts of the depth. */
#define FLOAT8_EACH(_)                                                                   \
    _(128x256_pair)                                                                      \
    _(128x128_pair)                                                                      \
    _(128x192_parts)                                                                     \
    _(128x64_split)                                                                      \
    _(64x64_split)                                                                       \
    _(64x32_split)

enum {
#define FLOAT8_NUMBER(name) FLOAT8_##name,
    FLOAT8_EACH(FLOAT8_NUMBER)
#undef FLOAT8_NUMBER
        FLOAT8_TACTICS
};

/* State of an impl on tensor cores; memory is strata.pack's. */
struct float8_state {
    void *weight;         /* [column][depth] */
    float *factor, *bias; /* of columns, to whole tiles; 0 past the units */
    int64_t depth, units;
    int32_t multiprocessors;
};

int float8_accept(const strata_node *n, int tactic);
int float8_setup(const strata_node *n, struct float8_state *state, int tactic);
int float8_run(const strata_run *r, int tactic);

/* Without tensor cores, by the weight as it is. */
int float8_plain_accept(const strata_node *n);
int float8_plain_run(const strata_run *r);

#endif /* PLUGINS_QUANTIZED_PRODUCT_FLOAT8_H */
