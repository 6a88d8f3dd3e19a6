/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution of FP32 without tensor cores, plain.cu: a tactic for each size of tile.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_PLAIN_CUH
#define PLUGINS_CONVOLUTION_CUDA_PLAIN_CUH

#include "plugins/common/product/tactics.h"

/* Pixels x filters of a tile. */
#define PLAIN_EACH(_)                                                                    \
    _(256x64)                                                                            \
    _(128x64)                                                                            \
    _(128x64_split)                                                                      \
    _(128x32_split)                                                                      \
    _(64x64_split)                                                                       \
    _(64x32_split)

enum {
#define PLAIN_NUMBER(name) PLAIN_##name,
    PLAIN_EACH(PLAIN_NUMBER)
#undef PLAIN_NUMBER
        PLAIN_TACTICS
};

int plain_accept(const strata_node *n, int tactic);
int plain_setup(const strata_node *n, void *state, int tactic);
int plain_run(const strata_run *r, int tactic);

#define PLAIN_CALLBACKS(name) PRODUCT_CALLBACKS(plain, PLAIN_, name)

#endif /* PLUGINS_CONVOLUTION_CUDA_PLAIN_CUH */
