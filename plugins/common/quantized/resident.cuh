/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes that are bound by what they read and write: a block keeps the weights
 * of its columns in shared memory, and with them goes down the rows. Two blocks share
 * a multiprocessor, so that one finishes sums while the other waits for memory.
 *
 * A thread's sums of a row are 16 neighbours, for the columns of the weights change
 * places: addends come and results go by 16 bytes a thread, 64 of a row side by side,
 * without shared memory.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_RESIDENT_CUH
#define PLUGINS_COMMON_QUANTIZED_RESIDENT_CUH

#include "plugins/common/product/windows.cuh"
#include "plugins/common/quantized/hopper.cuh"
#include "plugins/common/quantized/hopper.h"

#define RESIDENT_LANES 64  /* columns that change places among themselves */
#define RESIDENT_STAGES 8  /* at most */
#define RESIDENT_SIDE 8    /* output pixels of a patch */
#define RESIDENT_ADDENDS 2 /* units whose addends are on their way */

/* The column of the weight whose sums are those of a column of B. */
static __host__ __device__ inline int32_t resident_column(int32_t column)
{
    return column / 64 * 64 + column % 8 / 2 * 16 + column % 64 / 8 * 2 + column % 2;
}

/* Patches of an input: what the windows of eight by eight pixels of an output reach. */
struct resident_patch {
    divisor across, patches; /* in a row of an image, in an image */
    int32_t height, width;   /* of an output image */
    int32_t begin_h, begin_w, kernel_w;
    int32_t step_w, down; /* units of 16 bytes, to the next element; to the next row's */
    int32_t group, room;  /* bytes, of a patch's row; of a patch in shared memory */
};

/* units: tiles of rows, or of patches. Addends lie as results do. What a unit would
 * compute anew from others of these is here once. */
struct resident_job : quantized_product_job {
    int32_t by;              /* units from one of a block's to its next */
    int32_t stages;          /* of a block's ring */
    int32_t late;            /* it holds two units' pieces */
    int32_t rest;            /* stages that are not asked for at once: a unit's, or 0 */
    int32_t stage, expected; /* bytes, of a stage and of what comes */
    int32_t origin, sign;    /* unit u is the rows' tile origin + sign*u */
    int32_t step;            /* rows from one of a block's units to its next */
    uint32_t flip, most;     /* of addends' bytes; of fractions in doubt (quick.cuh) */
    int64_t to_step, apart;  /* bytes of results: of `step`; to a thread's second row */
    int64_t beside, ahead;   /* bytes from a result to its addend; to that of the unit
                                RESIDENT_ADDENDS on, where units are rows */
    resident_patch patch;
};

/* Kernels by rows x columns of a tile. `bytes` of a product_launch is what a block may
 * have at most. */
enum { RESIDENT_64x128, RESIDENT_128x64, RESIDENT_PATCH, RESIDENT_TILES };
const product_launch *resident_launch(int tile, const quantized_shape &s);

/* Why it leaves a layer to others, or NULL. */
const char *resident_refusal(int tile, const quantized_shape &s, const product_launch &l);

/* A and the units of a job that has its m. */
bool resident_map(resident_job *job, int tile, const windows_input &x,
                  const struct window *w, const product_launch &l);

/* Of a job that has all but its tiles. */
cudaError_t resident_run(resident_job *job, int tile, const struct window *w,
                         const product_launch &l, int32_t multiprocessors,
                         cudaStream_t stream);

#endif /* PLUGINS_COMMON_QUANTIZED_RESIDENT_CUH */
