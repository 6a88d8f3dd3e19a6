/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread makes a pack of at most 16 bytes of elements that share their taps, in the
 * order of the output's memory: channels that lie side by side, or one element. Rows are
 * read again from the cache for each of their readers.
 */
#include "kernels/layer.cuh"
#include "plugins/resize/taps_cuda.h"

struct taps_work {
    resize_taps_job job;
    divisor axis[RESIZE_PLAN_AXES], packs; /* packs: of a run of lanes */
    int64_t first;                         /* position of the outermost axis */
    uint32_t count;
};

/* Taps of the axes that have them, at this thread's output index. */
struct taps_here {
    const int64_t *at[RESIZE_AXES];
    const float *weight[RESIZE_AXES];
    int n[RESIZE_AXES];
    int axes;
    int64_t to, from;
    bool outside;
};

static __device__ inline taps_here locate(const taps_work &w, uint32_t index)
{
    taps_here h = {};
    const struct resize_plan &plan = w.job.plan;
    for (int k = plan.n - 1; k >= 0; k--) {
        const resize_plan_axis &a = plan.axis[k];
        const uint32_t rest = k > 0 ? divide_by(index, w.axis[k]) : 0;
        const int64_t i = index - rest * w.axis[k].d + (k == 0 ? w.first : 0);
        index = rest;
        h.to += i * a.to;
        if (a.taps < 0) {
            h.from += i * a.from;
            continue;
        }
        const resize_table &t = w.job.table[a.taps];
#pragma unroll
        for (int s = 0; s < RESIZE_AXES; s++)
            if (s == h.axes) {
                h.at[s] = t.at + i * t.n;
                h.weight[s] = t.weight + i * t.n;
                h.n[s] = t.n;
                h.outside |= h.at[s][0] < 0;
            }
        h.axes++;
    }
    return h;
}

/* sum += weight * pack; a neighbour that has no share may be infinite. */
template <typename T, int N>
static __device__ inline void add(const T *x, float weight, float *sum)
{
    if (weight == 0)
        return;
    const pack<T, N> v = *(const pack<T, N> *)x;
#pragma unroll
    for (int i = 0; i < N; i++)
        sum[i] += weight * to_float(v.v[i]);
}

template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    taps_kernel(const __grid_constant__ taps_work w)
{
    const uint32_t index = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (index >= w.count)
        return;
    const uint32_t position = divide_by(index, w.packs);
    const int64_t lane = (int64_t)(index - position * w.packs.d) * N;
    const taps_here h = locate(w, position);
    const T *x = (const T *)w.job.x + h.from + lane;
    float sum[N] = {};
    const int n0 = h.axes > 0 ? h.n[0] : 1, n1 = h.axes > 1 ? h.n[1] : 1;
    const int n2 = h.axes > 2 ? h.n[2] : 1;
    for (int c = 0; c < n2 && !h.outside; c++) {
        const float w2 = h.axes > 2 ? h.weight[2][c] : 1;
        const int64_t at2 = h.axes > 2 ? h.at[2][c] : 0;
        for (int b = 0; b < n1 && w2 != 0; b++) {
            const float w1 = w2 * (h.axes > 1 ? h.weight[1][b] : 1);
            const int64_t at1 = at2 + (h.axes > 1 ? h.at[1][b] : 0);
            for (int a = 0; a < n0 && w1 != 0; a++)
                add<T, N>(x + at1 + (h.axes > 0 ? h.at[0][a] : 0),
                          w1 * (h.axes > 0 ? h.weight[0][a] : 1), sum);
        }
    }
    pack<T, N> out;
#pragma unroll
    for (int i = 0; i < N; i++)
        from_float(&out.v[i], h.outside ? w.job.value : sum[i]);
    *(pack<T, N> *)((T *)w.job.y + h.to + lane) = out;
}

/* Whether every run of lanes is whole packs of n that lie aligned. */
static bool packs_by(const struct resize_plan &plan, int n)
{
    if (plan.lanes % n)
        return false;
    for (int k = 0; k < plan.n; k++)
        if (plan.axis[k].to % n || plan.axis[k].from % n)
            return false;
    return true;
}

template <typename T, int N>
static int launch(const resize_taps_job *job, cudaStream_t stream)
{
    taps_work w = {};
    const int64_t outermost = job->plan.n ? job->plan.axis[0].n : 1;
    int64_t each = job->plan.lanes / N;
    w.job = *job;
    w.packs = divisor_of(each);
    for (int k = 0; k < job->plan.n; k++) {
        w.axis[k] = divisor_of(job->plan.axis[k].n);
        each *= k > 0 ? job->plan.axis[k].n : 1;
    }
    if (each > 0x7fffffff)
        return cudaErrorInvalidValue;
    const int64_t most = 0x7fffffff / each;
    for (w.first = 0; w.first < outermost; w.first += most) {
        const int64_t n = outermost - w.first < most ? outermost - w.first : most;
        w.axis[0] = divisor_of(n);
        w.count = (uint32_t)(n * each);
        taps_kernel<T, N>
            <<<layer_blocks(w.count, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(w);
        const cudaError_t e = cudaGetLastError();
        if (e != cudaSuccess)
            return e;
    }
    return cudaSuccess;
}

template <typename T>
static int start(const resize_taps_job *job, cudaStream_t stream)
{
    const int WIDE = 16 / (int)sizeof(T);
    return packs_by(job->plan, WIDE) ? launch<T, WIDE>(job, stream)
           : packs_by(job->plan, 2)  ? launch<T, 2>(job, stream)
                                     : launch<T, 1>(job, stream);
}

extern "C" int resize_taps_start(const resize_taps_job *job, void *stream)
{
    switch (job->dtype) {
    case STRATA_FP16:
        return start<__half>(job, (cudaStream_t)stream);
    case STRATA_BF16:
        return start<__nv_bfloat16>(job, (cudaStream_t)stream);
    default:
        return start<float>(job, (cudaStream_t)stream);
    }
}
