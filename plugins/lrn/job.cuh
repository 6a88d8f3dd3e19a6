/* SPDX-License-Identifier: Apache-2.0
 *
 * What LRN's CUDA kernels share.
 */
#ifndef PLUGINS_LRN_JOB_CUH
#define PLUGINS_LRN_JOB_CUH

#include "kernels/layer.cuh"
#include "plugins/lrn/lrn.h"

struct lrn_job {
    const void *x;
    void *y;
    lrn l;
    int64_t threads;
    int64_t plane;            /* pixels of a plane */
    int64_t packs;            /* of a plane's pixels, or of a pixel's channels */
    int64_t image;            /* elements in memory */
    int32_t channels, blocks; /* blocks: of channels in memory */
    int32_t segments;         /* of an image's blocks */
};

/* Of a normal number, within 2 ulps. */
static __device__ inline float root_near(float x)
{
    float y;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* beta = 0.75. Where there is no bias, sums below 2^-126 are 0. */
static __device__ inline float lrn_usual(float x, float sum, const lrn &l)
{
    float root;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(fmaf(l.factor, sum, l.bias)));
    return x * (root * root_near(root));
}

#endif /* PLUGINS_LRN_JOB_CUH */
