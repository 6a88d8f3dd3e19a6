/* SPDX-License-Identifier: Apache-2.0
 *
 * MatrixMultiply on Hopper's tensor cores, hopper.cu: a tactic for each size of tile.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_HOPPER_CUH
#define PLUGINS_MATRIX_MULTIPLY_HOPPER_CUH

/* Rows x columns of a tile; deep: more pieces of K at a time; half: of a multiprocessor's
 * memory, where another one's fits beside it; whole: the same, but that blocks do not
 * share a tile's depth. */
#define HOPPER_EACH(_)                                                                   \
    _(128x128_pair)                                                                      \
    _(128x256_pair)                                                                      \
    _(128x192_pair)                                                                      \
    _(128x96_split)                                                                      \
    _(128x64_split)                                                                      \
    _(64x64_split)                                                                       \
    _(64x32_split)                                                                       \
    _(64x32_half)                                                                        \
    _(64x32_whole)                                                                       \
    _(128x128_deep)                                                                      \
    _(128x160_pair)                                                                      \
    _(128x96_whole)                                                                      \
    _(64x96_whole)                                                                       \
    _(64x64_whole)

#include "plugins/common/product/tactics.h"

#endif /* PLUGINS_MATRIX_MULTIPLY_HOPPER_CUH */
