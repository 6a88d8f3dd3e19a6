/* SPDX-License-Identifier: Apache-2.0
 *
 * Tiles for launches of few blocks: kernels and running.
 */
#include "plugins/common/quantized/few.h"

#include <string.h>

#include "plugins/common/quantized/hopper.cuh"

#define TILE(row, ...)                                                                   \
    &launch_of<product_tile<quantized_bytes<int8_t, row, true>, __VA_ARGS__>>

/* As hopper.cu has them. */
static const struct {
    int tactic;
    const product_launch *launch;
} tiles[] = {
    {HOPPER_64x64, TILE(128, 1, 64, 4, 8, true, false, false, 1)},
    {HOPPER_128x64_split, TILE(128, 1, 64, 2, 6, false, false, true, 1)},
    {HOPPER_64x64_split, TILE(128, 1, 64, 1, 5, false, false, true, 2)},
    {HOPPER_64x32_split, TILE(128, 1, 32, 1, 12, false, false, true, 1)},
    {HOPPER_64x64_thin, TILE(64, 1, 64, 4, 12, true, false, false, 1)},
    {HOPPER_256x32_thin, TILE(64, 2, 32, 2, 8, false, false, false, 1)},
};

const product_launch *quantized_few_launch(int tactic)
{
    for (const auto &tile : tiles)
        if (tile.tactic == tactic)
            return tile.launch;
    return NULL;
}

/* Behind the quantized_quick of a state. */
static quantized_alone alone_of(const quantized_hopper_state &state)
{
    quantized_alone alone;
    memcpy(&alone, (const char *)state.quick + sizeof(quantized_quick), sizeof alone);
    return alone;
}

bool quantized_is_few(const quantized_product_job &job, const product_launch &l,
                      const quantized_hopper_state &state)
{
    const int64_t across = (job.n + l.columns - 1) / l.columns;
    const int64_t tiles = (job.m + l.rows - 1) / l.rows * across;
    return tiles <= state.multiprocessors && alone_of(state).regular;
}

cudaError_t quantized_few_run(const quantized_product_job &of, const product_launch &l,
                              const quantized_hopper_state &state, cudaStream_t stream)
{
    quantized_few_job job = {};
    static_cast<quantized_product_job &>(job) = of;
    job.alone = alone_of(state);
    return product_run(&job, l, 1, state.multiprocessors, stream);
}
