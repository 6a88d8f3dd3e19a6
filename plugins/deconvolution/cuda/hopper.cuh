/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution by the products of plugins/common/product: a tactic for each size of
 * tile.
 */
#ifndef PLUGINS_DECONVOLUTION_CUDA_HOPPER_CUH
#define PLUGINS_DECONVOLUTION_CUDA_HOPPER_CUH

/* Pixels of a phase x filters of a tile. */
#define HOPPER_EACH(_)                                                                   \
    _(128x128_pair)                                                                      \
    _(256x128_pair)                                                                      \
    _(192x128_pair)                                                                      \
    _(128x256_pair)                                                                      \
    _(64x128)                                                                            \
    _(64x64)                                                                             \
    _(256x64)                                                                            \
    _(256x32)

#include "plugins/common/product/tactics.h"

#endif /* PLUGINS_DECONVOLUTION_CUDA_HOPPER_CUH */
