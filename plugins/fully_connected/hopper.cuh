/* SPDX-License-Identifier: Apache-2.0
 *
 * FullyConnected on Hopper's tensor cores, hopper.cu: a tactic for each size of tile.
 */
#ifndef PLUGINS_FULLY_CONNECTED_HOPPER_CUH
#define PLUGINS_FULLY_CONNECTED_HOPPER_CUH

#include <stdint.h>

/* Images x units of a tile. */
#define HOPPER_EACH(_)                                                                   \
    _(64x32_half)                                                                        \
    _(64x64_split)                                                                       \
    _(128x64_split)                                                                      \
    _(128x128_pair)

#include "plugins/common/product/tactics.h"

struct hopper_state {
    const void *weight; /* packed */
    int32_t multiprocessors;
};

#endif /* PLUGINS_FULLY_CONNECTED_HOPPER_CUH */
