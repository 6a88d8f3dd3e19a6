/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer of FP32: an image of 1 to 4 channels in planes, read where it is, to
 * results in channels-last order or in planes. What the kernel on tensor cores and the
 * one of multiply-adds share: the job, copies of the image, and where results go.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_STEM_FLOAT_CUH
#define PLUGINS_CONVOLUTION_CUDA_STEM_FLOAT_CUH

#include "plugins/convolution/cuda/gemm.cuh"

#define STEM_FILTERS 64 /* of a block */

struct stem_float_job {
    const float *x; /* planes */
    float *y;
    const float *weight;
    const float *bias; /* or NULL */
    epilogue_args epilogue;
    convolution_bounds bounds;
    int32_t channels, height, width, out_h, out_w;
    int32_t kernel_h, stride_h, begin_h, begin_w;
    int64_t y_image, y_filter, y_row, y_window; /* from one to the next */
    bool filters_join, windows_join;            /* neighbours go out in one access */
    uint32_t filters;
};

/* One float to shared memory; zero unless `valid`. */
static __device__ inline void copy_float(uint32_t to, const float *from, bool valid)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(to), "l"(from),
                 "r"(valid ? 4 : 0)
                 : "memory");
}

/* sum*scale + shift, activated: of one filter each. */
template <int N>
static __device__ inline void stem_finish(const stem_float_job &job, float (&v)[N],
                                          const float (&scale)[N],
                                          const float (&shift)[N])
{
#pragma unroll
    for (int i = 0; i < N; i++)
        v[i] = fmaf(v[i], scale[i], shift[i]);
    if (job.bounds.plain) {
#pragma unroll
        for (int i = 0; i < N; i++)
            v[i] = bounded(v[i], job.bounds);
    } else {
        activate_all(v, job.epilogue.activation);
    }
}

/* Why both leave the layer to others, or NULL. */
static inline const char *stem_float_refusal(const strata_node *n,
                                             const convolution_state &s)
{
    const struct window *w = &s.w;
    if (s.groups != 1 || s.in_c > 4 || n->in[0].rank > 4)
        return "takes 1 to 4 channels, one group and at most 2 spatial dims";
    if (w->dilation[1] != 1 || w->dilation[2] != 1)
        return "takes no dilation";
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w->in[d] > INT16_MAX || w->out[d] > INT16_MAX || w->begin[d] > INT16_MAX ||
            w->kernel[d] > 64 || w->stride[d] > 64)
            return "an image or pads of over 32767, or a kernel or strides of over 64";
    if (n->in[0].dims[0] * w->out[1] * w->out[2] > INT32_MAX / 2 || s.out_c > INT16_MAX)
        return "over 2^30 pixels or 32767 filters";
    return NULL;
}

/* `join`: of neighbours that a thread may store in one access. */
static inline void stem_float_fill(stem_float_job *job, const strata_run *r, int32_t join)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    const window_tensor y = window_tensor_of(&r->out[0]);
    job->x = (const float *)r->in[0].data;
    job->y = (float *)y.data;
    job->weight = (const float *)s->packed;
    job->bias = convolution_bias(r);
    job->epilogue = epilogue_of(r);
    job->bounds = convolution_bounds_of(job->epilogue);
    job->channels = (int32_t)s->in_c;
    job->height = (int32_t)w->in[1];
    job->width = (int32_t)w->in[2];
    job->out_h = (int32_t)w->out[1];
    job->out_w = (int32_t)w->out[2];
    job->kernel_h = (int32_t)w->kernel[1];
    job->stride_h = (int32_t)w->stride[1];
    job->begin_h = (int32_t)w->begin[1];
    job->begin_w = (int32_t)w->begin[2];
    job->filters = (uint32_t)s->out_c;
    job->y_image = y.image;
    job->y_filter = y.channel;
    job->y_row = y.step[1];
    job->y_window = y.step[2];
    const bool aligned = (uintptr_t)y.data % (4 * (uintptr_t)join) == 0 &&
                         y.image % join == 0 && y.step[1] % join == 0;
    job->filters_join =
        aligned && y.channel == 1 && y.step[2] % join == 0 && s->out_c % join == 0;
    job->windows_join = aligned && !job->filters_join && y.step[2] == 1 &&
                        y.channel % join == 0 && w->out[2] % join == 0;
}

int stem_tf32_accept(const strata_node *n);
CONVOLUTION_TACTIC(stem_tf32)
int stem_plain_accept(const strata_node *n);
CONVOLUTION_TACTIC(stem_plain)

#endif /* PLUGINS_CONVOLUTION_CUDA_STEM_FLOAT_CUH */
