/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of slabs share, slab.cu and stream.cu: whole groups of channels that
 * lie side by side, of an image, whose pixels are shared by the blocks of a cluster.
 */
#ifndef PLUGINS_NORMALIZATION_SLAB_CUH
#define PLUGINS_NORMALIZATION_SLAB_CUH

#include "plugins/normalization/job.cuh"

#define SLAB_BLOCKS 8  /* of a cluster at most */
#define SLAB_GROUPS 64 /* of a slab at most */
#define SLAB_RUN 32    /* bytes of a pixel at least, which memory moves at once */

static __device__ inline float slab_sum(float x)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* Sums over the lanes that are alike modulo `apart`, a power of two of which 32 has N
 * times as many: lane l gets that of v[l / apart % N]. */
template <int N>
static __device__ inline float slab_fold(float (&v)[N], int apart)
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int h = N / 2; h > 0; h /= 2)
#pragma unroll
        for (int k = 0; k < h; k++) {
            const float mine = lane & h * apart ? v[k + h] : v[k];
            const float other = lane & h * apart ? v[k] : v[k + h];
            v[k] = mine + __shfl_xor_sync(0xffffffffu, other, h * apart);
        }
    for (int d = N * apart; d < 32; d *= 2)
        v[0] += __shfl_xor_sync(0xffffffffu, v[0], d);
    return v[0];
}

/* Slabs of tensors that are many times as large as what a device holds,
 * plugins/normalization/stream.cu, of what norm_slab_run() takes; false where they are
 * for slab.cu. */
bool norm_stream_run(const norm_job &job, int32_t dtype, int64_t images, int64_t channels,
                     cudaStream_t stream);

/* The same, plugins/normalization/pipeline.cu; false where they are for stream.cu. */
bool norm_pipeline_run(const norm_job &job, int32_t dtype, int64_t images,
                       int64_t channels, cudaStream_t stream);

#endif /* PLUGINS_NORMALIZATION_SLAB_CUH */
