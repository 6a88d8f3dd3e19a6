/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of rows of whole packs share, packed.cu, ring.cu and short.cu: the
 * measure of elements that a warp holds.
 */
#ifndef PLUGINS_NORMALIZATION_HELD_CUH
#define PLUGINS_NORMALIZATION_HELD_CUH

#include "plugins/common/copy_ahead.cuh"
#include "plugins/normalization/job.cuh"

/* Of some elements; squares are about their mean. */
struct alignas(16) row_part {
    float sum, mean, square, n;
};

static __device__ inline float lanes_sum(float x, int lanes)
{
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        if (d < lanes)
            x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

/* sum / n without the branches of a division, exact where all elements are alike. */
static __device__ inline float held_mean(float sum, float n)
{
    const float inverse = __fdividef(1, n), near = sum * inverse;
    return n > 0 ? fmaf(fmaf(-near, n, sum), inverse, near) : 0;
}

/* 1/deviation or 1/root mean square, within 4 ulps. */
static __device__ inline float held_factor(const norm_job &job, float square)
{
    return rsqrtf(__fdividef(square, job.elements) + job.epsilon);
}

/* The first `held` packs of v are the thread's, the others zeros; n: elements of the
 * warp. */
template <int N, int E>
static __device__ inline row_part held_measure(const float (&v)[E], bool centred,
                                               int held, float n)
{
    row_part t = {0, 0, 0, n};
    float sum[4] = {}, square[4] = {};
    if (centred) {
#pragma unroll
        for (int e = 0; e < E; e++)
            sum[e % 4] += v[e];
        t.sum = lanes_sum(sum[0] + sum[1] + (sum[2] + sum[3]), 32);
        t.mean = held_mean(t.sum, n);
    }
#pragma unroll
    for (int i = 0; i < E / N; i++)
        if (i < held)
#pragma unroll
            for (int k = 0; k < N; k++) {
                const float d = v[i * N + k] - t.mean;
                square[k % 4] += d * d;
            }
    t.square = lanes_sum(square[0] + square[1] + (square[2] + square[3]), 32);
    return t;
}

/* Rows of at most 32 packs, by short.cu. */
template <typename T>
bool norm_short(const norm_job &job, cudaStream_t stream);

/* Few longer ones, by few.cu; false where they do not fit it. */
template <typename T>
bool norm_few(const norm_job &job, cudaStream_t stream);

/* Longer ones, by packed.cu; false where they do not fit it. */
template <typename T>
bool norm_packed(const norm_job &job, cudaStream_t stream);

/* Long ones of halves, by long.cu, where a context counts; false where they do not fit.
 */
template <typename T>
bool norm_long(const norm_job &job, cudaStream_t stream);

/* Long ones by some blocks beside each other on a multiprocessor, by long.cu. */
template <typename T>
bool norm_beside(const norm_job &job, cudaStream_t stream);

#endif /* PLUGINS_NORMALIZATION_HELD_CUH */
