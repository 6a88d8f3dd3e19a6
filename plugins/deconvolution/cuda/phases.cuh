/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution as matrix products of Convolution's kernels, one a phase, whose rows are
 * the phase's pixels. Where the kernel is the stride, all phases read the same pixels
 * once: they lie side by side as columns of one product, and its tail shuffles the pixels.
 */
#ifndef PLUGINS_DECONVOLUTION_CUDA_PHASES_CUH
#define PLUGINS_DECONVOLUTION_CUDA_PHASES_CUH

#include "plugins/convolution/cuda/gemm.cuh"
#include "plugins/deconvolution/cuda/deconvolution.cuh"

#define PHASES 9 /* of one launch at most */

struct phase_job : gemm_job {
    uint32_t columns;  /* stored channels of y, times the phases side by side */
    uint32_t blocks;   /* tiles */
    divisor channels_of; /* stored channels of y */
    divisor across;    /* phases side by side along the width */
    int32_t y_height, y_width, step_h, step_w, first_h, first_w;
};

struct phase_jobs {
    phase_job at[PHASES];
    divisor n;       /* jobs */
    uint32_t blocks; /* tiles of the largest job, times n */
};

/* Pixels of y are counted over all images: the one where the product's pixel lies, and
 * how far from it the column does. */
static __device__ inline uint32_t phase_pixel(const phase_job &job, uint32_t pixel)
{
    const uint32_t image = divide_by(pixel, job.plane);
    const uint32_t rest = pixel - image * job.plane.d;
    const uint32_t p = divide_by(rest, job.out_w), q = rest - p * job.out_w.d;
    const uint32_t h = p * job.step_h + job.first_h, w = q * job.step_w + job.first_w;
    return (image * job.y_height + h) * job.y_width + w;
}

static __device__ inline uint32_t phase_aside(const phase_job &job, uint32_t column)
{
    const uint32_t side = divide_by(column, job.channels_of);
    const uint32_t below = divide_by(side, job.across);
    return below * job.y_width + side - below * job.across.d;
}

int phases_setup(const strata_node *n, void *state, const gemm_launch *launch);
int phases_run(const strata_run *r, const gemm_launch *launch);

#define PHASES_TACTIC(name, ...)                                                         \
    int name##_setup(const strata_node *n, void *state)                                  \
    {                                                                                    \
        return phases_setup(n, state, &__VA_ARGS__);                                     \
    }                                                                                    \
    int name##_run(const strata_run *r)                                                  \
    {                                                                                    \
        return phases_run(r, &__VA_ARGS__);                                              \
    }

#endif /* PLUGINS_DECONVOLUTION_CUDA_PHASES_CUH */
