/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights of the kernels that the copy engine feeds: rows of filters, elements of the
 * kernel, and of each its channels, rounded up to whole pieces of 128 bytes.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_HOPPER_PACK_CUH
#define PLUGINS_CONVOLUTION_CUDA_HOPPER_PACK_CUH

#include "plugins/common/product/windows.cuh"
#include "plugins/convolution/cuda/convolution.cuh"

/* Channels of a piece. */
static inline int64_t hopper_depth(int32_t dtype)
{
    return PRODUCT_ROW / tensor_map_size(dtype);
}

/* Pieces of channels of an element of the kernel. */
static inline int64_t hopper_pieces(const strata_tensor *x)
{
    return windows_pieces(stored_channels(x), hopper_depth(x->dtype));
}

/* To the nearest TF32, if asked for; to none that is not finite. */
static __device__ inline float hopper_weight(float x, float, bool cut)
{
    if (!cut)
        return x;
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(bits) : "f"(x));
    const float near = __uint_as_float(bits);
    return isinf(near) ? x : near;
}

template <typename T>
static __device__ inline T hopper_weight(float x, T, bool)
{
    return convert<T>(x);
}

template <typename T>
struct hopper_pack_job {
    T *packed;           /* [filter][element][channel, to whole pieces] */
    const float *weight; /* [filter][channel][element] */
    int64_t size, stored, in_c, elements;
    bool cut; /* floats to TF32 */
};

template <typename T>
static __global__ void hopper_pack_kernel(hopper_pack_job<T> job)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.size;
         i += step) {
        const int64_t c = i % job.stored, rest = i / job.stored;
        const int64_t element = rest % job.elements, k = rest / job.elements;
        job.packed[i] = hopper_weight(
            c < job.in_c ? job.weight[(k * job.in_c + c) * job.elements + element] : 0.0f,
            T(), job.cut);
    }
}

template <typename T>
static int hopper_pack_as(const strata_node *n, convolution_state *s, bool cut)
{
    hopper_pack_job<T> job = {};
    job.stored = hopper_pieces(&n->in[0]) * hopper_depth(n->in[0].dtype);
    job.in_c = s->in_c;
    job.cut = cut;
    job.elements = window_kernel_count(&s->w);
    if (__builtin_mul_overflow(job.stored * job.elements, s->out_c, &job.size))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    return convolution_pack(n, s, job, sizeof(T), hopper_pack_kernel<T>);
}

/* cut: floats are for products of TF32. */
static inline int hopper_pack(const strata_node *n, convolution_state *s, bool cut = true)
{
    int status = STRATA_OK;
    layer_float(n->in[0].dtype,
                [&](auto t) { status = hopper_pack_as<decltype(t)>(n, s, cut); });
    return status;
}

/* As columns of the product, `box` of them at a time. */
static inline bool hopper_map_weights(product_job *job, const convolution_state *s,
                                      int32_t dtype, int32_t box)
{
    const int64_t piece = hopper_depth(dtype), depth = job->steps * piece;
    const product_matrix filters = {s->packed, depth, s->out_c, depth, 1, 0};
    return map_matrix(&job->b, filters, dtype, box, (int32_t)piece);
}

/* The layer's own bias and the epilogue's would have to be joined. */
static inline bool hopper_has_two_tails(const strata_node *n)
{
    const strata_epilogue *e = n->epilogue;
    return e && (e->flags & (STRATA_EPILOGUE_SCALE | STRATA_EPILOGUE_BIAS)) &&
           n->weight[CONVOLUTION_BIAS].rank > 0;
}

/* Why neither form takes the layer, or NULL. */
static inline const char *hopper_refusal(const strata_node *n, const convolution_state &s)
{
    if (s.out_c % 2 != 0)
        return "odd numbers of filters are for others";
    if (hopper_has_two_tails(n))
        return "it takes its own bias or the epilogue's factor and bias";
    return NULL;
}

/* What is done with the sums, and where they go; depths in pieces. */
static inline void hopper_fill(product_job *job, const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const epilogue_args e = epilogue_of(r);
    const strata_tensor *y = &r->out[0], *residual = r->epilogue->residual;
    job->m = (int32_t)(y->dims[0] * window_out_count(&s->w));
    job->n = (int32_t)stored_channels(y);
    job->real = (int32_t)s->out_c;
    job->steps = (int32_t)(hopper_pieces(&r->in[0]) * window_kernel_count(&s->w));
    job->b_early = 1;
    job->scale = e.scale;
    job->bias = e.bias ? e.bias : convolution_bias(r);
    job->addend = e.residual;
    job->addend_row = e.residual ? pixel_pitch(residual) : 0;
    job->to = y->data;
    job->to_row = pixel_pitch(y);
    job->alpha = job->beta = 1;
    /* What the layer before wrote last is in L2 still, where all has no room. */
    job->backwards = !job->addend && stored_channels(&r->in[0]) > job->n;
    job->activation = e.activation;
}

/* Why a kernel that is fed windows leaves the layer to others, or NULL. */
static inline const char *hopper_window_refusal(const strata_node *n,
                                                const convolution_state &s)
{
    const strata_tensor *x = &n->in[0];
    const char *why = windows_refusal(&s.w);
    if (!why)
        why = hopper_refusal(n, s);
    if (!why && !windows_are_rows(&s.w) &&
        hopper_pieces(x) * hopper_depth(x->dtype) >= 2 * stored_channels(x))
        why = "it takes channels in pieces of 128 bytes, of which half would be empty";
    return why;
}

static inline bool hopper_fill_all(product_job *job, const strata_run *r,
                                   const product_launch &l)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const int32_t dtype = r->out[0].dtype;
    const strata_tensor *x = &r->in[0];
    const windows_input input = {x->data, x->dtype, stored_channels(x), pixel_pitch(x),
                                 x->dims[0]};
    hopper_fill(job, r);
    return windows_map(job, input, &s->w, l) &&
           hopper_map_weights(job, s, dtype, l.box) && map_results(job, l, dtype, 1);
}

static inline int hopper_launch(const strata_run *r, const product_launch &l)
{
    const convolution_state *s = (const convolution_state *)r->state;
    product_job job = {};
    if (!hopper_fill_all(&job, r, l))
        return STRATA_FAIL(r, STRATA_EDEVICE,
                           "the driver makes no tensor map of this input");
    const cudaError_t e = product_run(&job, l, 1, s->multiprocessors, layer_stream(r));
    return e == cudaSuccess
               ? STRATA_OK
               : STRATA_FAIL(r, STRATA_EDEVICE, "kernel convolution hopper: %s (%s)",
                             cudaGetErrorString(e), cudaGetErrorName(e));
}

#endif /* PLUGINS_CONVOLUTION_CUDA_HOPPER_PACK_CUH */
