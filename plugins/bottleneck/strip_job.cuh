/* SPDX-License-Identifier: Apache-2.0
 *
 * A bottleneck of many pixels: a block keeps all weights in shared memory, matrices of 64
 * by 64, and goes along strips of 14 rows of an image, eight columns of pixels a step. So
 * the first results of a column are made once, and of a row nearly so: 16 rows of them
 * for 14.
 *
 *   reduce   a warpgroup: 64 results of 16 rows of 8 pixels; the last two columns are
 *            kept for the next step's windows
 *   windows  a warpgroup: 64 results of 14 rows of 8 pixels, nine elements of the
 *            windows, which are the same memory from another pixel on
 *   project  two warpgroups, eight rows each, with pixels as the factor whose rows
 *            become the sums' rows; results go from registers to memory. A shortcut is
 *            more depth of these products: x's own 64 channels, asked for a step ahead,
 *            as they lie in memory, which is from registers, too
 *
 * Stages work on neighbouring steps at the same time. Where the input is what is added,
 * too, and L2 has no room for all of it, one warpgroup has the first two: so a step less
 * comes between its two reads, and L2 has more of it still. One more thread asks for the
 * input, 64 channels of a step at a time, through a ring.
 */
#ifndef PLUGINS_BOTTLENECK_STRIP_JOB_CUH
#define PLUGINS_BOTTLENECK_STRIP_JOB_CUH

#include "plugins/bottleneck/block.cuh"

enum {
    STRIP_HIGH = 14, /* output pixels of a step */
    STRIP_WIDE = 8,
    STRIP_REACH = 16, /* rows that its windows reach */
    STRIP_PITCH = 10, /* columns that they reach */
    STRIP_EDGE = 2,   /* columns of them that are the step's before, or a unit's first */
    STRIP_GROUPS = 4, /* warpgroups: reduce, windows, and two that project */
    STRIP_THREADS = STRIP_GROUPS * 128 + 128,
    STRIP_GIVEN = 136, /* registers of a thread that projects; others have fewer */
    STRIP_CONVOLVES = 88,
    STRIP_KEPT = 24,
    STRIP_PARTS = 4, /* of 64 channels, of the input and of the results, at most */
    STRIP_SLOTS = 8, /* of the ring, at most */
    STRIP_SLOT = STRIP_WIDE * STRIP_REACH * BOTTLENECK_ROW, /* bytes */
    STRIP_EDGE_PANEL = STRIP_EDGE * STRIP_REACH * BOTTLENECK_ROW,
    STRIP_REDUCED = STRIP_PITCH * STRIP_REACH * BOTTLENECK_ROW,
    STRIP_CONVOLVED = STRIP_WIDE * STRIP_HIGH * BOTTLENECK_ROW,
    STRIP_BIASES = 256, /* where they lie; barriers are before them */
    STRIP_WEIGHTS = 2048,
};

struct strip_job {
    CUtensorMap step, edge; /* boxes of 64 channels of x: of a step, of a unit's first */
    const uint8_t *weights; /* matrices: `panels`, nine, `parts`, `parts` if it crosses */
    const float *bias;      /* 64, 64, 64 a part */
    const __half *addend;   /* or NULL */
    const __half *x;
    __half *y;
    stage_tail reduced, convolved, projected;
    divisor of_image, strips; /* units of an image; strips of an image */
    int32_t units, steps;     /* of all; of a strip */
    int32_t each;             /* steps of a unit; its strip's last has what is left */
    int32_t height, width;
    int32_t channels, results; /* whole eights */
    int32_t panels, parts;     /* 64 channels each of the input, of the results */
    int32_t slots;
    bool crosses; /* a shortcut's product is added */
    bool large;   /* L2 has no room for these tensors */
    bool joined;  /* a warpgroup has the first two stages */
};

/* Of the last stage. */
static inline __host__ __device__ int32_t strip_last(const strip_job &job)
{
    return job.crosses ? 2 * job.parts : job.parts;
}

static inline __host__ __device__ int32_t strip_matrices(const strip_job &job)
{
    return job.panels + BOTTLENECK_WINDOWS + strip_last(job);
}

#endif /* PLUGINS_BOTTLENECK_STRIP_JOB_CUH */
