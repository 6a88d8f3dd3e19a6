/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer on Hopper's tensor cores, on the host: what it takes, its weights as
 * kernels read them, what a launch is told.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_STEM_WGMMA_HOST_CUH
#define PLUGINS_CONVOLUTION_CUDA_STEM_WGMMA_HOST_CUH

#include "plugins/convolution/cuda/stem/wgmma.cuh"

/* Of a shape: its windows, steps of a product, and bytes of shared memory. */
struct stem_sizes {
    int32_t columns, steps, per_row, down, shared;
};

template <class S>
static constexpr stem_sizes stem_sizes_of(void)
{
    return {S::Columns, S::Steps, S::PerRow, S::Down, S::Shared};
}

/* Blocks that share a row's filters. */
static inline uint32_t stem_blocks(int64_t filters, const stem_sizes &sizes)
{
    const int64_t each = FILTERS / sizes.down;
    return (uint32_t)((filters + each - 1) / each);
}

/* A kernel of a shape, by dtype of the image: FP32, FP16. */
template <class Job>
struct stem_launch {
    void (*kernel[2])(const Job);
    stem_sizes sizes;

    auto of(const strata_tensor *x) const
    {
        return kernel[x->dtype == STRATA_FP16];
    }
};

/* Whether windows, whose first tap is on an even pixel, fit into 3 rows of a step. */
static inline bool stem_is_small(const struct window *w)
{
    return w->kernel[1] <= 3 && w->kernel[2] + w->begin[2] % 2 <= STEP;
}

static inline int stem_wgmma_check(const strata_node *n)
{
    convolution_state s;
    int status = stem_check(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.w.stride[1] != 2 || s.w.stride[2] != 2)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes strides of 2, not %lldx%lld",
                           (long long)s.w.stride[1], (long long)s.w.stride[2]);
    if (s.w.in[1] * s.w.in[2] > INT32_MAX / 4)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "an image of over 2^29 pixels");
    return STRATA_OK;
}

struct stem_wgmma_pack_job {
    __half *packed;
    const float *weight;                 /* [filter][c][kernel_h][kernel_w] */
    int32_t size, steps, per_row, shift; /* shift: of zeros before a row's first tap */
    int32_t channels, filters, kernel_h, kernel_w, down;
};

/* A thread of a product holds of rows g and g + 8 of its warp's 16, g = lane/4, depths
 * lane%4*2 and 8 on, two each. */
static __global__ void stem_wgmma_pack_kernel(stem_wgmma_pack_job job)
{
    const int32_t i = (int32_t)(blockIdx.x * CUDA_BLOCK + threadIdx.x);
    if (i >= job.size)
        return;
    const int32_t word = i % 8 / 2, thread = i / 8 % THREADS, lane = thread % 32;
    const int32_t step = i / (8 * THREADS) % job.steps;
    const int32_t block = i / (8 * THREADS * job.steps);
    const int32_t m = thread / 32 * 16 + lane / 4 + word % 2 * 8;
    const int32_t filters = FILTERS / job.down, filter = block * filters + m % filters;
    const int32_t depth = lane % 4 * 2 + i % 2 + word / 2 * 8;
    const int32_t c = depth % 4, row = step / job.per_row - m / filters * 2;
    const int32_t tap = step % job.per_row * STEP + depth / 4 - job.shift;
    const bool real = filter < job.filters && c < job.channels && row >= 0 &&
                      row < job.kernel_h && tap >= 0 && tap < job.kernel_w;
    const int32_t from = (filter * job.channels + c) * job.kernel_h + row;
    job.packed[i] = __float2half_rn(real ? job.weight[from * job.kernel_w + tap] : 0.0f);
}

/* Allows the kernel its shared memory and packs the weights as it reads them. */
static inline int
stem_wgmma_prepare(const strata_node *n, convolution_state *s, const stem_sizes &sizes,
                   const void *kernel,
                   void (*pack)(stem_wgmma_pack_job) = stem_wgmma_pack_kernel)
{
    const int status = convolution_prepare(n, s, kernel, sizes.shared);
    if (status != STRATA_OK)
        return status;
    stem_wgmma_pack_job job = {};
    job.per_row = sizes.per_row;
    job.steps = sizes.steps;
    job.shift = (int32_t)(s->w.begin[2] % 2);
    job.channels = (int32_t)s->in_c;
    job.filters = (int32_t)s->out_c;
    job.kernel_h = (int32_t)s->w.kernel[1];
    job.kernel_w = (int32_t)s->w.kernel[2];
    job.down = sizes.down;
    job.size = (int32_t)stem_blocks(job.filters, sizes) * job.steps * THREADS * 8;
    return convolution_pack(n, s, job, sizeof(__half), pack);
}

/* All but how the work is divided. */
static inline stem_wgmma_job stem_wgmma_job_of(const strata_run *r,
                                               const epilogue_args &epilogue)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    stem_wgmma_job job = {};
    job.x = r->in[0].data;
    job.y = (__half *)r->out[0].data;
    job.weight = (const uint4 *)s->packed;
    job.bias = convolution_bias(r);
    job.epilogue = epilogue;
    job.bounds = convolution_bounds_of(job.epilogue);
    job.channels = (int32_t)s->in_c;
    job.height = (int32_t)w->in[1];
    job.width = (int32_t)w->in[2];
    job.out_h = (int32_t)w->out[1];
    job.out_w = (int32_t)w->out[2];
    job.begin_h = (int32_t)w->begin[1];
    job.begin_w = (int32_t)(w->begin[2] + w->begin[2] % 2);
    job.even = w->in[2] % 2 == 0 &&
               (uintptr_t)job.x % (2 * (r->in[0].dtype == STRATA_FP16 ? 2u : 4u)) == 0;
    job.filters = (uint32_t)s->out_c;
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    return job;
}

#endif /* PLUGINS_CONVOLUTION_CUDA_STEM_WGMMA_HOST_CUH */
