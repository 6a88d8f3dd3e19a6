/* SPDX-License-Identifier: Apache-2.0
 *
 * A bottleneck of many pixels and up to 128 channels between, as a strip that a block
 * goes down, some rows of pixels a step. Weights come through two rings, 128 by 64 of
 * them at a time, to all blocks of a cluster, which go through their strips together:
 * each asks for its share.
 *
 *   reduce   two warpgroups, 64 of the 128 results each, of a step's new rows: pixels lie
 *            in rows of `pitch`
 *   windows  the same two, 64 results each: an element of the windows is the same memory
 *            from another pixel on. Their rows begin one above the new ones, for which
 *            the last two rows of the step before are kept
 *   project  two others, of the step before: pixels are the factor whose rows become the
 *            sums' rows. What is added comes through a ring of its own, 64 channels of a
 *            step at a time, and results go from registers to memory
 *
 * What was convolved lies where the first rows were that its windows have read. A unit's
 * first step has two rows of windows less, and its last one may have few: their
 * products are of fewer pixels then.
 */
#ifndef PLUGINS_BOTTLENECK_ROLL_JOB_CUH
#define PLUGINS_BOTTLENECK_ROLL_JOB_CUH

#include "plugins/bottleneck/block.cuh"

enum {
    ROLL_CLUSTER = 2,
    ROLL_GROUPS = 4, /* warpgroups: two reduce and convolve, two project */
    ROLL_THREADS = ROLL_GROUPS * 128 + 128,
    ROLL_CONVOLVES = 96, /* registers of a thread that convolves; projects; loads */
    ROLL_PROJECTS = 128,
    ROLL_KEPT = 24,
    ROLL_PIXELS = 120,    /* of a step */
    ROLL_FEW = 64,        /* of a unit's first or last one */
    ROLL_REACH = 184,     /* and of the rows that its windows reach */
    ROLL_MOST_PITCH = 31, /* by which the last pixel's windows end within them */
    ROLL_INPUT_SLOTS = 3,
    ROLL_ADDED_SLOTS = 1,
    ROLL_INNER_SLOTS = 5, /* of weights of the first two stages; of the last */
    ROLL_OUTER_SLOTS = 2,
    ROLL_SLOTS = ROLL_INNER_SLOTS + ROLL_OUTER_SLOTS,
    ROLL_PANEL = ROLL_REACH * BOTTLENECK_ROW, /* bytes: 64 channels */
    ROLL_INPUT_SLOT = ROLL_PIXELS * BOTTLENECK_ROW,
    ROLL_PIECE = 2 * BOTTLENECK_PIECE,
    ROLL_MASKS = 256, /* which new pixels are inside: halves of ones */
    ROLL_BIASES = 1024,
    ROLL_PARTS = 16,     /* of the results, at most */
    ROLL_NOWHERE = 6144, /* where what is of no pixel goes */
    ROLL_BETWEEN = ROLL_NOWHERE + 1024,
    ROLL_INPUT = ROLL_BETWEEN + 2 * ROLL_PANEL,
    ROLL_ADDED = ROLL_INPUT + ROLL_INPUT_SLOTS * ROLL_INPUT_SLOT,
    /* Warps that project have 128 pixels, and read 8 behind the last slot. */
    ROLL_RING = ROLL_ADDED + ROLL_ADDED_SLOTS * ROLL_INPUT_SLOT + 1024,
    ROLL_SHARED = ROLL_RING + ROLL_SLOTS * ROLL_PIECE + 1024,
};

struct roll_job {
    CUtensorMap x, added;   /* boxes of 64 channels of a step's rows */
    const uint8_t *weights; /* pieces of two matrices: `panels`, 18, `parts` */
    const float *bias;      /* 128, 128, 64 a part */
    const __half *addend;   /* or NULL */
    __half *y;
    stage_tail reduced, convolved, projected;
    divisor across, tiles; /* strips of an image; units of an image */
    divisor pitch;         /* pixels of a row in shared memory */
    int32_t units;         /* segments of strips, of all images */
    int32_t steps, rows;   /* of a unit */
    int32_t high;          /* rows of a step */
    int32_t height, width;
    int32_t results;       /* whole eights */
    int32_t panels, parts; /* 64 channels each of the input, of the results: even */
    int32_t tile_w;
    bool large; /* L2 has no room for these tensors */
    bool again; /* x is what is added, too */
};

static inline __host__ __device__ int32_t roll_pieces(const roll_job &job)
{
    return job.panels + 2 * BOTTLENECK_WINDOWS + job.parts;
}

#endif /* PLUGINS_BOTTLENECK_ROLL_JOB_CUH */
