/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution by the products of plugins/common/product: a tactic for each size of tile.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_HOPPER_CUH
#define PLUGINS_CONVOLUTION_CUDA_HOPPER_CUH

/* Pixels x filters of a tile; deep: more pieces of K at a time. */
#define HOPPER_EACH(_)                                                                   \
    _(128x128_pair)                                                                      \
    _(128x256_pair)                                                                      \
    _(128x192_pair)                                                                      \
    _(256x128_pair)                                                                      \
    _(192x128_pair)                                                                      \
    _(64x128)                                                                            \
    _(64x64)                                                                             \
    _(256x64)                                                                            \
    _(256x32)                                                                            \
    _(128x96_split)                                                                      \
    _(128x64_split)                                                                      \
    _(64x64_split)                                                                       \
    _(64x32_split)                                                                       \
    _(128x128_deep)                                                                      \
    _(128x128_split)                                                                     \
    _(192x128_split)

#include "plugins/common/product/tactics.h"

#endif /* PLUGINS_CONVOLUTION_CUDA_HOPPER_CUH */
