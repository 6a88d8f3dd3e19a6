/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution by the turned products of plugins/common/product/turned.cuh: a tactic for
 * each size of tile.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_TURNED_CUH
#define PLUGINS_CONVOLUTION_CUDA_TURNED_CUH

#include "plugins/common/product/tactics.h"

/* Filters x pixels of a tile. */
#define TURNED_EACH(_)                                                                   \
    _(192x144_split)                                                                     \
    _(192x176_pair)                                                                      \
    _(128x104_split)                                                                     \
    _(128x152_pair)

enum {
#define TURNED_NUMBER(name) TURNED_##name,
    TURNED_EACH(TURNED_NUMBER)
#undef TURNED_NUMBER
        TURNED_TACTICS
};

int turned_accept(const strata_node *n, int tactic);
int turned_setup(const strata_node *n, void *state, int tactic);
int turned_run(const strata_run *r, int tactic);

#define TURNED_CALLBACKS(name) PRODUCT_CALLBACKS(turned, TURNED_, name)

#endif /* PLUGINS_CONVOLUTION_CUDA_TURNED_CUH */
