/* SPDX-License-Identifier: Apache-2.0
 *
 * Deconvolution as it is written: everything that the layer allows, in any format, FP32
 * multiply-adds. A thread keeps 8 filters of 4 pixels of one phase, so that the threads of
 * a warp see the same kernel elements; lanes lie along the pixels.
 */
#include "plugins/deconvolution/cuda/deconvolution.cuh"

enum { THREADS = 128, PIXELS = 4, FILTERS = 8 };

struct transposed_job {
    window_tensor x, y, residual; /* residual.data: NULL without one */
    const void *weight; /* [block of filters][kernel element][c][8], of x's dtype */
    const float *bias;  /* or NULL */
    epilogue_args epilogue;
    int64_t images, phases;
    uint32_t in_c, out_c, blocks; /* of filters, a group */
    uint32_t groups, stored;      /* channels of y in memory */
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], dilation[WINDOW_DIMS];
    int64_t begin[WINDOW_DIMS], in[WINDOW_DIMS], out[WINDOW_DIMS];
    int64_t along[WINDOW_DIMS]; /* phases */
    int64_t every[WINDOW_DIMS]; /* stride / gcd(stride, dilation): from tap to tap */
    int64_t back[WINDOW_DIMS];  /* dilation / that gcd: inputs back at the next tap */
};

/* A phase along a dim: output first + q*stride sees at its j-th tap the input
 * q + offset - j*back. */
struct transposed_axis {
    int64_t first, out, tap, taps, offset;
};

struct transposed_pixel {
    int64_t q[WINDOW_DIMS];
    int64_t x, y, residual; /* offsets of its image and, in y, of itself */
    bool inside;
};

static __device__ transposed_axis transposed_axis_of(const transposed_job &job, int d,
                                                     int64_t first)
{
    transposed_axis a = {};
    const int64_t at = first + job.begin[d], last = min(job.every[d], job.kernel[d]);
    a.first = first;
    a.out = (job.out[d] - first + job.stride[d] - 1) / job.stride[d];
    while (a.tap < last && (at - a.tap * job.dilation[d]) % job.stride[d])
        a.tap++;
    if (a.tap == last)
        return a;
    a.taps = (job.kernel[d] - 1 - a.tap) / job.every[d] + 1;
    a.offset = (at - a.tap * job.dilation[d]) / job.stride[d];
    return a;
}

static __device__ transposed_pixel
transposed_pixel_of(const transposed_job &job, const transposed_axis (&axis)[WINDOW_DIMS],
                    int64_t p)
{
    transposed_pixel v = {};
    v.inside = p < job.images * axis[0].out * axis[1].out * axis[2].out;
    if (!v.inside)
        return v;
    for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
        v.q[d] = p % axis[d].out;
        p /= axis[d].out;
        const int64_t o = axis[d].first + v.q[d] * job.stride[d];
        v.y += o * job.y.step[d];
        v.residual += o * job.residual.step[d];
    }
    v.x = p * job.x.image;
    v.y += p * job.y.image;
    v.residual += p * job.residual.image;
    return v;
}

/* Offset of what tap j shows a pixel; -1 outside of the input. */
static __device__ int64_t transposed_source(const transposed_job &job,
                                            const transposed_axis (&axis)[WINDOW_DIMS],
                                            const transposed_pixel &pixel,
                                            const int64_t (&j)[WINDOW_DIMS])
{
    int64_t offset = pixel.x;
    bool inside = pixel.inside;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t i = pixel.q[d] + axis[d].offset - j[d] * job.back[d];
        inside = inside && i >= 0 && i < job.in[d];
        offset += i * job.x.step[d];
    }
    return inside ? offset : -1;
}

/* Adds one kernel element over all channels. c: the group's first channel. */
template <typename T>
static __device__ void transposed_add(float (&sum)[PIXELS][FILTERS],
                                      const transposed_job &job,
                                      const int64_t (&source)[PIXELS], uint32_t c,
                                      const T *weight)
{
    const T *x = (const T *)job.x.data;
#pragma unroll 2
    for (uint32_t i = 0; i < job.in_c; i++) {
        const int64_t channel = channel_offset(job.x, c + i);
        float w[FILTERS];
#pragma unroll
        for (int f = 0; f < FILTERS; f += 4) {
            const pack<T, 4> four = load_pack<T, 4>(weight + i * FILTERS + f);
#pragma unroll
            for (int v = 0; v < 4; v++)
                w[f + v] = to_float(four.v[v]);
        }
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
            const float read = to_float(x[max(source[p], (int64_t)0) + channel]);
            const float v = source[p] < 0 ? 0.0f : read;
#pragma unroll
            for (int f = 0; f < FILTERS; f++)
                sum[p][f] = fmaf(v, w[f], sum[p][f]);
        }
    }
}

/* k: the first filter, of `count`; behind the very last one lie pad lanes. */
template <typename T>
static __device__ void transposed_store(const transposed_job &job,
                                        const transposed_pixel &pixel,
                                        const float (&sum)[FILTERS],
                                        const convolution_affine<FILTERS> &affine,
                                        uint32_t k, uint32_t count)
{
    T *y = (T *)job.y.data + pixel.y;
    const T *from = (const T *)job.residual.data + pixel.residual;
    float v[FILTERS], residual[FILTERS];
#pragma unroll
    for (uint32_t f = 0; f < FILTERS; f++) {
        const bool add = job.residual.data && f < count;
        residual[f] = add ? to_float(from[channel_offset(job.residual, k + f)]) : 0.0f;
        v[f] = sum[f];
    }
    finish_all(v, affine, residual, count, job.epilogue.activation);
#pragma unroll
    for (uint32_t f = 0; f < FILTERS; f++)
        if (f < count)
            from_float(y + channel_offset(job.y, k + f), v[f]);
    if (k + count == job.groups * job.out_c)
        for (uint32_t pad = k + count; pad < job.stored; pad++)
            from_float(y + channel_offset(job.y, pad), 0.0f);
}

template <typename T>
static __device__ void transposed_block(const transposed_job &job,
                                        const transposed_axis (&axis)[WINDOW_DIMS],
                                        const transposed_pixel (&pixel)[PIXELS],
                                        uint32_t block)
{
    float sum[PIXELS][FILTERS] = {};
    const uint32_t group = block / job.blocks, first = block % job.blocks * FILTERS;
    const int64_t all = job.kernel[0] * job.kernel[1] * job.kernel[2];
    const T *weight = (const T *)job.weight + block * all * job.in_c * FILTERS;
    int64_t j[WINDOW_DIMS];
    for (j[0] = 0; j[0] < axis[0].taps; j[0]++)
        for (j[1] = 0; j[1] < axis[1].taps; j[1]++)
            for (j[2] = 0; j[2] < axis[2].taps; j[2]++) {
                int64_t source[PIXELS], tap = 0;
                for (int d = 0; d < WINDOW_DIMS; d++)
                    tap = tap * job.kernel[d] + axis[d].tap + j[d] * job.every[d];
#pragma unroll
                for (int p = 0; p < PIXELS; p++)
                    source[p] = transposed_source(job, axis, pixel[p], j);
                transposed_add<T>(sum, job, source, group * job.in_c,
                                  weight + tap * job.in_c * FILTERS);
            }
    const uint32_t filter = group * job.out_c + first;
    convolution_affine<FILTERS> affine;
    affine.load(job.bias, job.epilogue, filter, job.groups * job.out_c);
#pragma unroll
    for (int p = 0; p < PIXELS; p++)
        if (pixel[p].inside)
            transposed_store<T>(job, pixel[p], sum[p], affine, filter,
                                min(job.out_c - first, (uint32_t)FILTERS));
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    transposed_kernel(const __grid_constant__ transposed_job job)
{
    for (int64_t phase = blockIdx.z; phase < job.phases; phase += gridDim.z) {
        transposed_axis axis[WINDOW_DIMS];
        transposed_pixel pixel[PIXELS];
        int64_t rest = phase;
        for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
            axis[d] = transposed_axis_of(job, d, rest % job.along[d]);
            rest /= job.along[d];
        }
#pragma unroll
        for (int p = 0; p < PIXELS; p++)
            pixel[p] = transposed_pixel_of(
                job, axis, ((int64_t)blockIdx.x * PIXELS + p) * THREADS + threadIdx.x);
        for (uint32_t block = blockIdx.y; block < job.blocks * job.groups;
             block += gridDim.y)
            transposed_block<T>(job, axis, pixel, block);
    }
}

/* ---- weights --------------------------------------------------------------------------
 */

struct transposed_pack_job {
    void *packed;
    const float *weight; /* [c][filter of the group][kernel element] */
    int64_t size, elements, in_c, out_c, blocks;
};

template <typename T>
static __global__ void transposed_pack_kernel(transposed_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t c = i / FILTERS % job.in_c;
        const int64_t element = i / FILTERS / job.in_c % job.elements;
        const int64_t block = i / FILTERS / job.in_c / job.elements;
        const int64_t filter = block % job.blocks * FILTERS + i % FILTERS;
        const int64_t channel = block / job.blocks * job.in_c + c;
        from_float((T *)job.packed + i,
                   filter < job.out_c
                       ? job.weight[(channel * job.out_c + filter) * job.elements +
                                    element]
                       : 0.0f);
    }
}

int transposed_direct_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    transposed_pack_job job = {};
    int status = deconvolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    job.elements = window_kernel_count(&s->w);
    job.in_c = s->in_c;
    job.out_c = s->out_c;
    job.blocks = (s->out_c + FILTERS - 1) / FILTERS;
    if (__builtin_mul_overflow(job.elements * FILTERS, s->in_c, &job.size) ||
        __builtin_mul_overflow(job.size, job.blocks * s->groups, &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    layer_float(n->in[0].dtype, [&](auto t) {
        status = convolution_pack(n, s, job, sizeof t, transposed_pack_kernel<decltype(t)>);
    });
    return status;
}

/* ---- running --------------------------------------------------------------------------
 */

static transposed_job transposed_job_of(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    transposed_job job = {};
    job.x = window_tensor_of(&r->in[0]);
    job.y = window_tensor_of(&r->out[0]);
    if (r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL)
        job.residual = window_tensor_of(r->epilogue->residual);
    job.weight = s->packed;
    job.bias = convolution_bias(r);
    job.epilogue = epilogue_of(r);
    job.images = r->out[0].dims[0];
    job.phases = deconvolution_phases(w);
    /* Kernels read the first pixel in place of one outside, so there must be one. */
    job.in_c = r->in[0].count > 0 ? (uint32_t)s->in_c : 0;
    job.out_c = (uint32_t)s->out_c;
    job.blocks = (uint32_t)((s->out_c + FILTERS - 1) / FILTERS);
    job.groups = (uint32_t)s->groups;
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t common = deconvolution_divisor(w->stride[d], w->dilation[d]);
        job.kernel[d] = w->kernel[d];
        job.stride[d] = w->stride[d];
        job.dilation[d] = w->dilation[d];
        job.begin[d] = w->begin[d];
        job.in[d] = w->in[d];
        job.out[d] = w->out[d];
        job.along[d] = deconvolution_phases_along(w, d);
        job.every[d] = w->stride[d] / common;
        job.back[d] = w->dilation[d] / common;
    }
    return job;
}

int transposed_direct_run(const strata_run *r)
{
    const transposed_job job = transposed_job_of(r);
    const uint32_t filters = job.blocks * job.groups;
    int64_t pixels = job.images; /* of the largest phase, the first */
    for (int d = 0; d < WINDOW_DIMS; d++)
        pixels *= (job.out[d] + job.stride[d] - 1) / job.stride[d];
    const dim3 grid(layer_blocks(pixels, PIXELS * THREADS),
                    filters < 65535 ? filters : 65535,
                    (unsigned)(job.phases < 65535 ? job.phases : 65535));
    layer_float(r->out[0].dtype, [&](auto t) {
        transposed_kernel<decltype(t)><<<grid, THREADS, 0, layer_stream(r)>>>(job);
    });
    return layer_launched(r, "deconvolution direct");
}
