/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes that are bound by what they read and write: a block keeps the weights
 * of its columns in shared memory, and with them goes down the rows. Several small blocks
 * share a multiprocessor, so that some finish sums while others wait for memory.
 *
 * A thread's sums of a row are 16 neighbours, for the columns of the weights change
 * places: addends come and results go by 16 bytes a thread, 64 of a row side by side,
 * without shared memory.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_RESIDENT_CUH
#define PLUGINS_COMMON_QUANTIZED_RESIDENT_CUH

#include "plugins/common/product/launch.cuh"
#include "plugins/common/quantized/hopper.cuh"

#define RESIDENT_LANES 64 /* columns that change places among themselves */
#define RESIDENT_STAGES 8 /* at most */

/* The column of the weight whose sums are those of a column of B. */
static __host__ __device__ inline int32_t resident_column(int32_t column)
{
    return column / 64 * 64 + column % 8 / 2 * 16 + column % 64 / 8 * 2 + column % 2;
}

struct resident_job : quantized_product_job {
    int32_t stages, by; /* by: row tiles from one of a block's to its next */
};

/* Kernels by rows x columns of a tile, pieces of 64 channels or of 128. `bytes` of a
 * product_launch is what a block may have at most. */
enum { RESIDENT_64x64, RESIDENT_64x128, RESIDENT_128x64, RESIDENT_TILES };
const product_launch *resident_launch(int tile, bool thin);

/* Why its weights do not stay in shared memory, or NULL. */
const char *resident_refusal(const product_launch &l, int64_t steps);

/* Of a job that has all but its tiles. */
cudaError_t resident_run(resident_job *job, const product_launch &l,
                         int32_t multiprocessors, cudaStream_t stream);

#endif /* PLUGINS_COMMON_QUANTIZED_RESIDENT_CUH */
