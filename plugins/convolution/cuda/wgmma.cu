/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution on Hopper's tensor cores: a block a tile, the sizes of tiles are tactics.
 */
#include "plugins/convolution/cuda/wgmma_tile.cuh"

template <class T>
static __global__ void __launch_bounds__(T::Threads, T::Blocks)
    wgmma_kernel(const __grid_constant__ gemm_job job)
{
    wgmma_block<T>(job, blockIdx.x);
}

/* ---- impls ----------------------------------------------------------------------------
 */

template <class T>
static const gemm_launch wgmma_launch = {
    .kernel = (const void *)wgmma_kernel<T>,
    .rows = T::Rows,
    .columns = T::Columns,
    .threads = T::Threads,
    .stages = T::Stages,
    .stage_bytes = T::StageBytes,
    .extra = 1024,
    .split = 1,
    .woven = T::Woven,
};

#define WGMMA_TACTIC(name, ...) GEMM_TACTIC(name, wgmma_launch<wgmma_tile<__VA_ARGS__>>)

WGMMA_TACTIC(wgmma_128x256, 128, 256, 2, 4, 1, false)
WGMMA_TACTIC(wgmma_256x128, 256, 128, 2, 4, 1, false)
WGMMA_TACTIC(wgmma_128x128, 128, 128, 2, 3, 2, false)
WGMMA_TACTIC(wgmma_128x64, 128, 64, 2, 4, 2, false)
WGMMA_TACTIC(wgmma_64x64, 64, 64, 1, 4, 3, false)
WGMMA_TACTIC(wgmma_128x256w, 128, 256, 2, 4, 1)
WGMMA_TACTIC(wgmma_256x128w, 256, 128, 2, 4, 1)
WGMMA_TACTIC(wgmma_128x128w, 128, 128, 2, 3, 2)
WGMMA_TACTIC(wgmma_128x64w, 128, 64, 2, 4, 2)
WGMMA_TACTIC(wgmma_64x64w, 64, 64, 1, 4, 3)
WGMMA_TACTIC(wgmma_64x128w, 64, 128, 1, 4, 2)
WGMMA_TACTIC(wgmma_256x64w, 256, 64, 2, 4, 1)
/* Of three spatial dims. */
WGMMA_TACTIC(wgmma_128x256d, 128, 256, 2, 4, 1, true, true)
WGMMA_TACTIC(wgmma_256x128d, 256, 128, 2, 4, 1, true, true)
WGMMA_TACTIC(wgmma_128x128d, 128, 128, 2, 3, 2, true, true)
WGMMA_TACTIC(wgmma_128x64d, 128, 64, 2, 4, 2, true, true)
