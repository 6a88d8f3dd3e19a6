/* SPDX-License-Identifier: Apache-2.0
 *
 * ShortcutConvolution by the products of plugins/common/product: A lies in two tensors,
 * the windows of the first and then the pixels of the second, and B has their weights
 * behind each other.
 */
#ifndef PLUGINS_SHORTCUT_CONVOLUTION_CUDA_CUH
#define PLUGINS_SHORTCUT_CONVOLUTION_CUDA_CUH

#include "plugins/common/product/windows.cuh"
#include "plugins/common/product/written.cuh"

/* Pixels x filters of a tile. */
#define SHORTCUT_EACH(_)                                                                 \
    _(128x128_pair)                                                                      \
    _(192x128_pair)                                                                      \
    _(128x256_pair)                                                                      \
    _(64x128)                                                                            \
    _(64x64)                                                                             \
    _(128x128_split)                                                                     \
    _(192x128_split)                                                                     \
    _(128x64_split)                                                                      \
    _(64x64_split)

enum {
#define SHORTCUT_NUMBER(name) SHORTCUT_##name,
    SHORTCUT_EACH(SHORTCUT_NUMBER)
#undef SHORTCUT_NUMBER
        SHORTCUT_TACTICS
};

struct shortcut_job : product_job {
    CUtensorMap other; /* of the second input */
    product_window other_window;
    int32_t own; /* pieces of K that are the first input's */
};

template <class Take>
static __device__ inline void product_with_source(const shortcut_job &job,
                                                  const product_place &, int32_t step,
                                                  const Take &take)
{
    if (step < job.own)
        take(job.a, job.window, step);
    else
        take(job.other, job.other_window, step - job.own);
}

/* The kind of a tile whose results are written out, and of one that shares its depth. */
template <typename T>
struct shortcut_written : product_written_floats<T, STRATA_CLIP> {
    typedef shortcut_job Job;
};

template <typename T>
struct shortcut_floats : product_floats<T> {
    typedef shortcut_job Job;
};

/* ---- weights ---------------------------------------------------------------------- */

struct shortcut_source {
    const float *weight, *bias;         /* [filter][channel][element]; NULL: none */
    int64_t channels, stored, elements; /* stored: channels to whole pieces */
};

template <typename T>
struct shortcut_pack_job {
    T *packed;   /* [filter][source][element][channel, to whole pieces] */
    float *bias; /* the sum of both */
    shortcut_source from[2];
    int64_t depth, filters;
};

template <typename T>
static __global__ void shortcut_pack_kernel(shortcut_pack_job<T> job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t own = job.from[0].stored * job.from[0].elements;
    for (int64_t i = first; i < job.depth * job.filters; i += step) {
        const int64_t k = i / job.depth, d = i % job.depth;
        const shortcut_source &s = job.from[d >= own];
        const int64_t at = d >= own ? d - own : d;
        const int64_t element = at / s.stored, c = at % s.stored;
        job.packed[i] = convert<T>(
            c < s.channels ? s.weight[(k * s.channels + c) * s.elements + element]
                           : 0.0f);
    }
    for (int64_t k = first; k < job.filters; k += step)
        job.bias[k] = (job.from[0].bias ? job.from[0].bias[k] : 0.0f) +
                      (job.from[1].bias ? job.from[1].bias[k] : 0.0f);
}

#endif /* PLUGINS_SHORTCUT_CONVOLUTION_CUDA_CUH */
