/* SPDX-License-Identifier: Apache-2.0
 *
 * Phases on Hopper's tensor cores. Tiles of all phases at one place follow each other, so
 * that they find the input in the L2 cache.
 */
#include "plugins/convolution/cuda/wgmma_tile.cuh"
#include "plugins/deconvolution/cuda/phases.cuh"

template <class T>
static __global__ void __launch_bounds__(T::Threads, T::Blocks)
    phases_kernel(const __grid_constant__ phase_jobs jobs)
{
    const uint32_t index = divide_by(blockIdx.x, jobs.n);
    const phase_job &job = jobs.at[blockIdx.x - index * jobs.n.d];
    if (index < job.blocks)
        wgmma_block<T>(job, index);
}

template <class T>
static const gemm_launch phases_launch = {
    .kernel = (const void *)phases_kernel<T>,
    .rows = T::Rows,
    .columns = T::Columns,
    .threads = T::Threads,
    .stages = T::Stages,
    .stage_bytes = T::StageBytes,
    .extra = 1024,
    .split = 1,
    .woven = T::Woven,
};

#define WGMMA_TACTIC(name, ...) PHASES_TACTIC(name, phases_launch<wgmma_tile<__VA_ARGS__>>)

WGMMA_TACTIC(phases_256x128, 256, 128, 2, 4, 1)
WGMMA_TACTIC(phases_128x256, 128, 256, 2, 4, 1)
WGMMA_TACTIC(phases_128x128, 128, 128, 2, 3, 2)
WGMMA_TACTIC(phases_128x64, 128, 64, 2, 4, 2)
WGMMA_TACTIC(phases_64x64, 64, 64, 1, 4, 3)
