/* SPDX-License-Identifier: Apache-2.0
 *
 * What the CUDA kernels of Attention share: the plan with its tensors' addresses.
 */
#ifndef PLUGINS_ATTENTION_JOB_CUH
#define PLUGINS_ATTENTION_JOB_CUH

#include "plugins/attention/attention.h"

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "kernels/shared.cuh"

/* By value into kernels. Addresses are those of head 0, row 0 of batch 0; NULL: absent.
 */
struct attention_job {
    struct attention_plan plan;
    const void *q, *k, *v, *past_k, *past_v, *mask, *lengths;
    void *y, *present_k, *present_v, *scores;
};

/* Whether a kernel takes the job; the first reason why not. */
const char *attention_hopper_refuses(const struct attention_plan *p);
const char *attention_decode_refuses(const struct attention_plan *p);

/* Enqueue; the launch's error is for cudaGetLastError. */
void attention_simt(const attention_job *job, cudaStream_t stream);
void attention_present(const attention_job *job, cudaStream_t stream);
/* counters: zeros at first, and again after each launch. */
enum { HOPPER_COUNTERS = 2 };
cudaError_t attention_hopper(const attention_job *job, void *counters,
                             cudaStream_t stream);
cudaError_t attention_decode(const attention_job *job, void *workspace, size_t size,
                             void *counters, cudaStream_t stream);
size_t attention_decode_workspace(const struct attention_plan *p);
size_t attention_decode_counters(const struct attention_plan *p);

/* What batch row b has of keys, by its element of lengths. */
static __device__ inline attention_reach
attention_reach_at(const struct attention_plan *p, const void *lengths, int64_t b)
{
    int64_t length = 0;
    if (p->lengths_port >= 0)
        length = p->lengths_dtype == STRATA_INT32 ? ((const int32_t *)lengths)[b]
                                                  : ((const int64_t *)lengths)[b];
    return attention_reach_of(p, length);
}

/* What is added to the score of query i, head h, batch row b with key j, which lies
 * within the query's bounds; Element: of the mask, uint8_t for those that say whether. */
template <typename Element>
static __device__ inline float mask_element(const struct attention_mask &m,
                                            const void *mask, int64_t b, int64_t h,
                                            int64_t i, int64_t j)
{
    if (j >= m.keys)
        return -INFINITY;
    return to_float(
        ((const Element *)mask)[b * m.batch + h * m.head + i * m.row + j * m.key]);
}

template <>
__device__ inline float mask_element<uint8_t>(const struct attention_mask &m,
                                              const void *mask, int64_t b, int64_t h,
                                              int64_t i, int64_t j)
{
    if (j >= m.keys)
        return -INFINITY;
    return ((const uint8_t *)mask)[b * m.batch + h * m.head + i * m.row + j * m.key]
               ? 0
               : -INFINITY;
}

/* What the mask, if any, makes of such a score. */
static __device__ inline float attention_masked(const attention_job &job, float s,
                                                int64_t b, int64_t h, int64_t i,
                                                int64_t j)
{
    const struct attention_mask &m = job.plan.mask;
    float add = 0;
    if (!job.mask)
        return s;
    if (m.dtype == STRATA_BOOL8)
        add = mask_element<uint8_t>(m, job.mask, b, h, i, j);
    else if (m.dtype == STRATA_FP32)
        add = mask_element<float>(m, job.mask, b, h, i, j);
    else if (m.dtype == STRATA_FP16)
        add = mask_element<__half>(m, job.mask, b, h, i, j);
    else
        add = mask_element<__nv_bfloat16>(m, job.mask, b, h, i, j);
    return add == -INFINITY ? add : s + add;
}

#endif /* PLUGINS_ATTENTION_JOB_CUH */
