/* SPDX-License-Identifier: Apache-2.0
 *
 * Phases on Hopper's tensor cores. Tiles of all phases at one place follow each other, so
 * that they find the input in the L2 cache. A phase is shallow: so a block stays for many
 * tiles, and asks for the first stages of the next one before it stores this one.
 */
#include "plugins/convolution/cuda/wgmma_tile.cuh"
#include "plugins/deconvolution/cuda/phases.cuh"

/* Tile `index` of all jobs; jobs are not equally large. */
struct phase_tile {
    uint32_t job, row, column;
    bool real;
};

template <class T>
static __device__ inline phase_tile phase_tile_at(const phase_jobs &jobs, uint32_t index)
{
    const uint32_t at = divide_by(index, jobs.n);
    const uint32_t turn = index - at * jobs.n.d;
    const phase_job &job = jobs.at[turn];
    const uint32_t tile = divide_by(at, job.tiles);
    return {turn, tile * T::Rows, (at - tile * job.tiles.d) * T::Columns,
            index < jobs.blocks && at < job.blocks};
}

/* The next tile from `index` on that is there; not real: none. */
template <class T>
static __device__ inline phase_tile next_tile(const phase_jobs &jobs, uint32_t *index)
{
    phase_tile tile = phase_tile_at<T>(jobs, *index);
    while (!tile.real && *index < jobs.blocks) {
        *index += gridDim.x;
        tile = phase_tile_at<T>(jobs, *index);
    }
    *index += gridDim.x;
    return tile;
}

/* 8 channels of Rows pixels, whose sums are of columns part*32 and following. */
template <class T>
static __device__ inline void
store_part(const phase_job &job, const float (&sum)[T::M][T::Columns / 8][4], int part,
           const uint32_t (&at)[2 * T::M], const bool (&inside)[2 * T::M],
           uint32_t column)
{
    const uint32_t aside = phase_aside(job, column);
    const uint32_t channel = remainder_by(column, job.channels_of);
    convolution_affine<8> affine;
    pack<__half, 8> residual[2 * T::M] = {};
    affine.load(job.bias, job.epilogue, channel, job.filters);
    if (job.residual)
#pragma unroll
        for (int m = 0; m < 2 * T::M; m++)
            residual[m] = load_pack<__half, 8>(
                job.residual + (size_t)(at[m] + aside) * job.stored + channel);
#pragma unroll
    for (int m = 0; m < 2 * T::M; m++) {
        float v[8], add[8];
        pack<__half, 8> y;
#pragma unroll
        for (int k = 0; k < 8; k++) {
            v[k] = sum[m / 2][part * 4 + k / 2][m % 2 * 2 + k % 2];
            add[k] = to_float(residual[m].v[k]);
        }
        finish_all(v, affine, add, job.filters - channel, job.epilogue.activation);
#pragma unroll
        for (int k = 0; k < 8; k++)
            y.v[k] = __float2half_rn(v[k]);
        if (inside[m])
            store_pack(job.y + (size_t)(at[m] + aside) * job.stored + channel, y);
    }
}

/* A warp's sums straight into y; the rows of weight are woven as gemm_woven_tail has
 * them. Pixels past the end are the last one. */
template <class T>
static __device__ inline void store_tile(const phase_job &job, const phase_tile &tile,
                                         const float (&sum)[T::M][T::Columns / 8][4])
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const uint32_t row = tile.row + warp / 4 * T::M * 64 + warp % 4 * 16 + lane / 4;
    const uint32_t column = tile.column + lane % 4 * 8;
    uint32_t at[2 * T::M];
    bool inside[2 * T::M];
#pragma unroll
    for (int m = 0; m < 2 * T::M; m++) {
        const uint32_t pixel = row + m / 2 * 64 + m % 2 * 8;
        inside[m] = pixel < job.pixels;
        at[m] = phase_pixel(job, min(pixel, job.pixels - 1));
    }
#pragma unroll
    for (int part = 0; part < T::Columns / 32; part++)
        if (column + part * 32 < job.columns)
            store_part<T>(job, sum, part, at, inside, column + part * 32);
}

template <class T>
static __global__ void __launch_bounds__(T::Threads, T::Blocks)
    phases_kernel(const __grid_constant__ phase_jobs jobs)
{
    extern __shared__ uint8_t memory[];
    const uint32_t shared =
        shared_address(memory) + (1024 - shared_address(memory) % 1024) % 1024;
    uint32_t index = blockIdx.x;
    wgmma_loader<T> loader;
    phase_tile tile = next_tile<T>(jobs, &index);
    if (tile.real) {
        loader.start(jobs.at[tile.job], tile.row, tile.column, 0);
        load_weights<T>(loader, jobs.at[tile.job], shared);
    }
    wait_for_previous();
    if (tile.real)
        load_pixels<T>(loader, jobs.at[tile.job], shared);
    launch_next();
    while (tile.real) {
        const phase_tile now = tile;
        float sum[T::M][T::Columns / 8][4] = {};
        multiply_tile<T>(sum, loader, jobs.at[now.job], shared);
        tile = next_tile<T>(jobs, &index);
        if (tile.real) {
            loader.start(jobs.at[tile.job], tile.row, tile.column, 0);
            load_weights<T>(loader, jobs.at[tile.job], shared);
            load_pixels<T>(loader, jobs.at[tile.job], shared);
        }
        store_tile<T>(jobs.at[now.job], now, sum);
    }
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

#define WGMMA_TACTIC(name, ...)                                                          \
    PHASES_TACTIC(name, phases_launch<wgmma_tile<__VA_ARGS__>>)

WGMMA_TACTIC(phases_256x128, 256, 128, 2, 4, 1)
WGMMA_TACTIC(phases_128x256, 128, 256, 2, 4, 1)
WGMMA_TACTIC(phases_128x128, 128, 128, 2, 3, 2)
WGMMA_TACTIC(phases_128x64, 128, 64, 2, 4, 2)
WGMMA_TACTIC(phases_64x64, 64, 64, 1, 4, 3)
