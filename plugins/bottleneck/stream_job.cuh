/* SPDX-License-Identifier: Apache-2.0
 *
 * A bottleneck of many pixels and up to 128 channels between, whose weights have no room
 * in a block's shared memory: a block has a tile of output pixels, as many as there is
 * room for what lies between, and weights come through a ring, 128 by 64 of them at a
 * time. Two blocks of a cluster go through their tiles together: each asks for half of
 * the weights, which come to both.
 *
 * Four warpgroups do all stages together, one behind the other:
 *
 *   reduce   64 of the 128 results for half of the pixels that the tile's windows reach,
 *            rows of `pitch` of them, as they lie in shared memory
 *   windows  64 results of half of the tile's pixels: rows of `pitch` too, whose last two
 *            are none. So an element of the windows is the same memory from another pixel
 *            on, whatever the tile's width.
 *   project  64 pixels each: as of strips, pixels are the factor whose rows become the
 *            sums' rows, and results come from registers to memory.
 *
 * What was convolved lies where what was reduced was. The next tile's input comes
 * meanwhile, as far as there is room.
 */
#ifndef PLUGINS_BOTTLENECK_STREAM_JOB_CUH
#define PLUGINS_BOTTLENECK_STREAM_JOB_CUH

#include "plugins/bottleneck/block.cuh"

enum {
    STREAM_CLUSTER = 2, /* blocks that share weights */
    STREAM_GROUPS = 4,  /* warpgroups that multiply */
    STREAM_THREADS = STREAM_GROUPS * 128 + 128,
    STREAM_GIVEN = 112, /* registers of a thread that multiplies; of one that loads */
    STREAM_KEPT = 24,
    STREAM_REACHED = 136,   /* pixels of a warpgroup, of those that windows reach */
    STREAM_PIXELS = 104,    /* and of the tile */
    STREAM_MOST_PITCH = 31, /* by which the last pixel's windows end within the panel */
    STREAM_PANEL = 2 * STREAM_REACHED * BOTTLENECK_ROW, /* bytes: 64 channels of pixels */
    STREAM_WEIGHTS = 2 * BOTTLENECK_PIECE,
    STREAM_SLOTS = 3,   /* of the input's ring and of the weights' */
    STREAM_MASKS = 256, /* which pixels that windows reach are inside: halves of ones */
    STREAM_BIASES = 1024,
    STREAM_PARTS = 16,     /* of the results, at most */
    STREAM_BETWEEN = 6144, /* where what lies between does */
    STREAM_INPUT = STREAM_BETWEEN + 2 * STREAM_PANEL,
    STREAM_RING = STREAM_INPUT + STREAM_SLOTS * STREAM_PANEL,
    STREAM_SHARED = STREAM_RING + STREAM_SLOTS * STREAM_WEIGHTS + 1024,
};

struct stream_job {
    CUtensorMap x;          /* boxes of 64 channels of what a tile's windows reach */
    const uint8_t *weights; /* pieces of two matrices: `panels`, 18, `parts` */
    const float *bias;      /* 128, 128, 64 a part */
    const __half *addend;   /* or NULL */
    __half *y;
    stage_tail reduced, convolved, projected;
    divisor across, tiles,
        pitch;     /* tiles of an image's row; of an image; pixels of a row */
    int32_t units; /* tiles of all images */
    int32_t height, width;
    int32_t results;       /* whole eights */
    int32_t panels, parts; /* 64 channels each of the input, of the results */
    int32_t tile_h, tile_w;
    int32_t box; /* bytes */
    bool large;  /* L2 has no room for these tensors */
};

static inline __host__ __device__ int32_t stream_pieces(const stream_job &job)
{
    return job.panels + 2 * BOTTLENECK_WINDOWS + job.parts;
}

#endif /* PLUGINS_BOTTLENECK_STREAM_JOB_CUH */
