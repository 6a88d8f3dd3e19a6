/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution as it is written: everything that the layer allows, in any format, FP32
 * multiply-adds. A thread keeps 8 filters of 4 pixels; lanes lie along the pixels.
 */
#include "plugins/convolution/cuda/convolution.cuh"

enum { THREADS = 128, PIXELS = 4, FILTERS = 8 };

struct direct_job {
    window_tensor x, y, residual; /* residual.data: NULL without one */
    const void *weight; /* [block of filters][kernel element][c][8], of x's dtype */
    const float *bias;  /* or NULL */
    epilogue_args epilogue;
    int64_t pixels;               /* of all images */
    int64_t plane;                /* pixels of an image */
    uint32_t in_c, out_c, blocks; /* of filters, a group */
    uint32_t groups, stored;      /* channels of y in memory */
    int64_t kernel[WINDOW_DIMS], stride[WINDOW_DIMS], dilation[WINDOW_DIMS];
    int64_t begin[WINDOW_DIMS], in[WINDOW_DIMS], out[WINDOW_DIMS];
};

/* An output pixel: where it is, and where its window begins. */
struct direct_pixel {
    int64_t at[WINDOW_DIMS]; /* in the input; may lie in the pads */
    int64_t x, y, residual;  /* offsets of its image and, in y, of itself */
    bool inside;
};

static __device__ int64_t quotient(int64_t a, int64_t b)
{
    return (a | b) >> 32 ? a / b : (int64_t)((uint32_t)a / (uint32_t)b);
}

static __device__ direct_pixel direct_pixel_of(const direct_job &job, int64_t p)
{
    direct_pixel v = {};
    v.inside = p < job.pixels;
    if (!v.inside)
        return v;
    const int64_t image = quotient(p, job.plane);
    int64_t rest = p - image * job.plane;
    v.x = image * job.x.image;
    v.y = image * job.y.image;
    v.residual = image * job.residual.image;
    for (int d = WINDOW_DIMS - 1; d >= 0; d--) {
        const int64_t outer = quotient(rest, job.out[d]), o = rest - outer * job.out[d];
        rest = outer;
        v.at[d] = o * job.stride[d] - job.begin[d];
        v.y += o * job.y.step[d];
        v.residual += o * job.residual.step[d];
    }
    return v;
}

/* Offset of kernel element k in a pixel's window; -1 in the pads. */
static __device__ int64_t direct_source(const direct_job &job, const direct_pixel &pixel,
                                        const int64_t k[WINDOW_DIMS])
{
    int64_t offset = pixel.x;
    bool inside = pixel.inside;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        const int64_t i = pixel.at[d] + k[d] * job.dilation[d];
        inside = inside && i >= 0 && i < job.in[d];
        offset += i * job.x.step[d];
    }
    return inside ? offset : -1;
}

/* Adds one kernel element over all channels. c: the group's first channel. */
template <typename In>
static __device__ void direct_add(float (&sum)[PIXELS][FILTERS], const direct_job &job,
                                  const int64_t (&source)[PIXELS], uint32_t c,
                                  const In *weight)
{
    const In *x = (const In *)job.x.data;
#pragma unroll 2
    for (uint32_t i = 0; i < job.in_c; i++) {
        const int64_t channel = channel_offset(job.x, c + i);
        float w[FILTERS];
#pragma unroll
        for (int f = 0; f < FILTERS; f += 4) {
            const pack<In, 4> four = load_pack<In, 4>(weight + i * FILTERS + f);
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
template <typename Out>
static __device__ void direct_store(const direct_job &job, const direct_pixel &pixel,
                                    const float (&sum)[FILTERS],
                                    const convolution_affine<FILTERS> &affine, uint32_t k,
                                    uint32_t count)
{
    Out *y = (Out *)job.y.data + pixel.y;
    const Out *from = (const Out *)job.residual.data + pixel.residual;
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
            y[channel_offset(job.y, k + f)] = convert<Out>(v[f]);
    if (k + count == job.groups * job.out_c)
        for (uint32_t pad = k + count; pad < job.stored; pad++)
            y[channel_offset(job.y, pad)] = zero_element<Out>();
}

template <typename In, typename Out>
static __device__ void direct_block(const direct_job &job,
                                    const direct_pixel (&pixel)[PIXELS], uint32_t block)
{
    float sum[PIXELS][FILTERS] = {};
    const uint32_t group = block / job.blocks, first = block % job.blocks * FILTERS;
    const int64_t depth = job.kernel[0] * job.kernel[1] * job.kernel[2] * job.in_c;
    const In *weight = (const In *)job.weight + block * depth * FILTERS;
    int64_t k[WINDOW_DIMS];
    for (k[0] = 0; k[0] < job.kernel[0]; k[0]++)
        for (k[1] = 0; k[1] < job.kernel[1]; k[1]++)
            for (k[2] = 0; k[2] < job.kernel[2]; k[2]++) {
                int64_t source[PIXELS];
#pragma unroll
                for (int p = 0; p < PIXELS; p++)
                    source[p] = direct_source(job, pixel[p], k);
                direct_add<In>(sum, job, source, group * job.in_c, weight);
                weight += (int64_t)job.in_c * FILTERS;
            }
    const uint32_t filter = group * job.out_c + first;
    convolution_affine<FILTERS> affine;
    affine.load(job.bias, job.epilogue, filter, job.groups * job.out_c);
#pragma unroll
    for (int p = 0; p < PIXELS; p++)
        if (pixel[p].inside)
            direct_store<Out>(job, pixel[p], sum[p], affine, filter,
                              min(job.out_c - first, (uint32_t)FILTERS));
}

template <typename In, typename Out>
static __global__ void __launch_bounds__(THREADS)
    direct_kernel(const __grid_constant__ direct_job job)
{
    direct_pixel pixel[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; p++)
        pixel[p] = direct_pixel_of(job, ((int64_t)blockIdx.x * PIXELS + p) * THREADS +
                                            threadIdx.x);
    for (uint32_t block = blockIdx.y; block < job.blocks * job.groups; block += gridDim.y)
        direct_block<In, Out>(job, pixel, block);
}

/* ---- weights --------------------------------------------------------------------------
 */

struct direct_pack_job {
    void *packed;
    const float *weight; /* [filter][c][kernel element] */
    int64_t size, elements, in_c, out_c, blocks;
};

template <typename T>
static __global__ void direct_pack_kernel(direct_pack_job job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t c = i / FILTERS % job.in_c;
        const int64_t element = i / FILTERS / job.in_c % job.elements;
        const int64_t block = i / FILTERS / job.in_c / job.elements;
        const int64_t filter = block % job.blocks * FILTERS + i % FILTERS;
        const int64_t k = block / job.blocks * job.out_c + filter;
        from_float((T *)job.packed + i,
                   filter < job.out_c
                       ? job.weight[(k * job.in_c + c) * job.elements + element]
                       : 0.0f);
    }
}

int direct_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    direct_pack_job job = {};
    int status = convolution_resolve(n, s);
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
        status = convolution_pack(n, s, job, sizeof t, direct_pack_kernel<decltype(t)>);
    });
    return status;
}

/* ---- running --------------------------------------------------------------------------
 */

static direct_job direct_job_of(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    direct_job job = {};
    job.x = window_tensor_of(&r->in[0]);
    job.y = window_tensor_of(&r->out[0]);
    if (r->epilogue->flags & STRATA_EPILOGUE_RESIDUAL)
        job.residual = window_tensor_of(r->epilogue->residual);
    job.weight = s->packed;
    job.bias = convolution_bias(r);
    job.epilogue = epilogue_of(r);
    job.plane = window_out_count(w);
    job.pixels = r->out[0].dims[0] * job.plane;
    job.in_c = (uint32_t)s->in_c;
    job.out_c = (uint32_t)s->out_c;
    job.blocks = (uint32_t)((s->out_c + FILTERS - 1) / FILTERS);
    job.groups = (uint32_t)s->groups;
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    for (int d = 0; d < WINDOW_DIMS; d++) {
        job.kernel[d] = w->kernel[d];
        job.stride[d] = w->stride[d];
        job.dilation[d] = w->dilation[d];
        job.begin[d] = w->begin[d];
        job.in[d] = w->in[d];
        job.out[d] = w->out[d];
    }
    return job;
}

int direct_run(const strata_run *r)
{
    const direct_job job = direct_job_of(r);
    const uint32_t filters = job.blocks * job.groups;
    const dim3 grid(layer_blocks(job.pixels, PIXELS * THREADS),
                    filters < 65535 ? filters : 65535);
    if (r->in[0].dtype != r->out[0].dtype)
        direct_kernel<float, __half><<<grid, THREADS, 0, layer_stream(r)>>>(job);
    else
        layer_float(r->in[0].dtype, [&](auto t) {
            direct_kernel<decltype(t), decltype(t)>
                <<<grid, THREADS, 0, layer_stream(r)>>>(job);
        });
    return layer_launched(r, "convolution direct");
}
