/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers that compute in 8 bits, on CUDA, as their definition says: a thread an output,
 * four products an instruction where channels lie side by side. Every operation rounds as
 * on the host, so the integers are the same.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_DIRECT_CUH
#define PLUGINS_COMMON_QUANTIZED_DIRECT_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/quantized/quantized.h"
#include "plugins/common/window.cuh"

/* Dtypes an output has. */
#define QUANTIZED_BYTES_LAST (STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_I8_NHWC16)

/* State: what setup packs, in memory of strata.pack. */
struct quantized_state {
    struct window w;
    int64_t groups, in_c, out_c; /* channels of a group */
    int64_t words;               /* of four channels of the input, in a group */
    void *weight;                /* [element][word][filter] */
    void *factor;                /* of each filter: scale_in*weight_scale */
};

/* Of a layer's second input, where there is one: data is not NULL. */
struct quantized_joined {
    window_tensor b;
    const float *scale, *scale_between;
    int32_t zero, zero_between, between, is_signed;
};

struct quantized_job {
    window_tensor x, y;
    quantized_joined joined;
    struct window w;
    const int32_t *weight;
    const float *factor, *bias, *scale_out; /* bias may be NULL */
    strata_quantized q;
    int64_t total;           /* outputs, pad lanes too */
    int64_t stored, filters; /* channels of the output with pad lanes and without */
    int64_t pixels;          /* of an output image */
    int64_t in_c, out_c, words;
    int32_t out, is_signed, by_words;
    int32_t transposed; /* the layer is a deconvolution */
};

/* ---- what becomes of a sum ------------------------------------------------------ */

static __device__ inline float quantized_activate_rounded(const strata_quantized &q,
                                                          float y)
{
    const float a = (float)q.alpha, b = (float)q.beta;
    switch (q.activation - 1) {
    case STRATA_RELU:
        return y > 0 ? y : isnan(y) ? y : 0;
    case STRATA_LEAKY_RELU:
        return y > 0 ? y : __fmul_rn(a, y);
    case STRATA_RELU6:
        return y < 0 ? 0 : y > 6 ? 6 : y;
    case STRATA_CLIP:
        y = y < a ? a : y;
        return y > b ? b : y;
    default:
        return y;
    }
}

static __device__ inline int32_t quantized_integer(const strata_quantized &q, float y,
                                                   float scale_out)
{
    const int32_t low = q.to == 2 ? 0 : -128, high = low + 255;
    const float whole = __fadd_rn(rintf(__fdiv_rn(y, scale_out)), (float)q.zero_out);
    return isnan(whole)          ? 0
           : whole < (float)low  ? low
           : whole > (float)high ? high
                                 : (int32_t)whole;
}

/* y and element `at` of the second input. */
static __device__ inline float quantized_join(const quantized_joined &j, float y,
                                              int64_t at)
{
    const uint8_t byte = ((const uint8_t *)j.b.data)[at];
    const int32_t b = (j.is_signed ? (int8_t)byte : byte) - j.zero;
    if (j.between) {
        strata_quantized to = {};
        to.to = j.between;
        to.zero_out = j.zero_between;
        const int32_t whole = quantized_integer(to, y, *j.scale_between);
        y = __fmul_rn((float)(whole - j.zero_between), *j.scale_between);
    }
    return __fadd_rn(y, __fmul_rn((float)b, *j.scale));
}

/* Element `at` of an output of dtype `out`. */
static __device__ inline void quantized_put(void *data, int32_t out, int64_t at,
                                            const strata_quantized &q, float y,
                                            const float *scale_out)
{
    if (out == STRATA_FP32)
        ((float *)data)[at] = y;
    else if (out == STRATA_FP16)
        ((__half *)data)[at] = __float2half_rn(y);
    else
        ((uint8_t *)data)[at] = (uint8_t)quantized_integer(q, y, *scale_out);
}

/* ---- sums ----------------------------------------------------------------------- */

/* c + four products of bytes, those of b signed. */
static __device__ inline int32_t multiply_bytes(int32_t a, int32_t b, int32_t c,
                                                bool is_signed)
{
    int32_t d;
    if (is_signed)
        asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    else
        asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}

/* Channels c to c + 3 of the pixel at `at`; those past the group's are 0. */
static __device__ inline int32_t four_channels(const quantized_job &j, int64_t at,
                                               int64_t group, int64_t c)
{
    const uint8_t *x = (const uint8_t *)j.x.data + at;
    int32_t four = 0;
    if (j.by_words)
        return *(const int32_t *)(x +
                                  channel_offset(j.x, (uint32_t)(group * j.in_c + c)));
    for (int i = 0; i < 4 && c + i < j.in_c; i++)
        four |= x[channel_offset(j.x, (uint32_t)(group * j.in_c + c + i))] << 8 * i;
    return four;
}

/* Of an element of the kernel, number t, whose pixel is at `at`. */
static __device__ inline int32_t sum_element(const quantized_job &j, int64_t at,
                                             int64_t group, int64_t t, int64_t filter)
{
    const int32_t *w = j.weight + t * j.words * j.filters + filter;
    int32_t sum = 0, weights = 0;
    for (int64_t i = 0; i < j.words; i++, w += j.filters) {
        sum = multiply_bytes(four_channels(j, at, group, i * 4), *w, sum, j.is_signed);
        weights = multiply_bytes(0x01010101, *w, weights, true);
    }
    return sum - (int32_t)j.q.zero_in * weights;
}

/* Where element t of the kernel meets the input for output o, along d; or -1. */
static __device__ inline int64_t input_of(const quantized_job &j, int d, int64_t o,
                                          int64_t t)
{
    const struct window &w = j.w;
    int64_t at = o * w.stride[d] - w.begin[d] + t * w.dilation[d];
    if (j.transposed) {
        at = o + w.begin[d] - t * w.dilation[d];
        at = at % w.stride[d] == 0 ? at / w.stride[d] : -1;
    }
    return at >= 0 && at < w.in[d] ? at : -1;
}

static __device__ inline int32_t sum_window(const quantized_job &j, int64_t image,
                                            const int32_t (&o)[WINDOW_DIMS],
                                            int64_t filter)
{
    const struct window &w = j.w;
    int32_t sum = 0, t = 0;
    for (int32_t d = 0; d < w.kernel[0]; d++)
        for (int32_t h = 0; h < w.kernel[1]; h++)
            for (int32_t k = 0; k < w.kernel[2]; k++, t++) {
                const int64_t z = input_of(j, 0, o[0], d), y = input_of(j, 1, o[1], h);
                const int64_t x = input_of(j, 2, o[2], k);
                if (z < 0 || y < 0 || x < 0)
                    continue;
                sum += sum_element(j,
                                   image * j.x.image + z * j.x.step[0] + y * j.x.step[1] +
                                       x * j.x.step[2],
                                   filter / j.out_c, t, filter);
            }
    return sum;
}

/* Filters are neighbours, so that a warp reads weights side by side. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    quantized_kernel(const __grid_constant__ quantized_job j)
{
    const int64_t step = (int64_t)gridDim.x * CUDA_BLOCK;
    launch_next();
    wait_for_previous();
    for (int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x; i < j.total;
         i += step) {
        const int64_t k = i % j.stored, rest = i / j.stored;
        const int64_t image = rest / j.pixels, pixel = rest % j.pixels;
        const int32_t o[WINDOW_DIMS] = {(int32_t)(pixel / j.w.out[2] / j.w.out[1]),
                                        (int32_t)(pixel / j.w.out[2] % j.w.out[1]),
                                        (int32_t)(pixel % j.w.out[2])};
        const int64_t at = image * j.y.image + o[0] * j.y.step[0] + o[1] * j.y.step[1] +
                           o[2] * j.y.step[2] + channel_offset(j.y, (uint32_t)k);
        if (k >= j.filters) { /* a pad lane */
            if (j.out == STRATA_FP16)
                ((uint16_t *)j.y.data)[at] = 0;
            else
                ((uint8_t *)j.y.data)[at] = 0;
            continue;
        }
        const float product = __fmul_rn((float)sum_window(j, image, o, k), j.factor[k]);
        float y = __fadd_rn(product, j.bias ? j.bias[k] : 0);
        if (j.joined.b.data)
            y = quantized_join(j.joined, y,
                               image * j.joined.b.image + o[0] * j.joined.b.step[0] +
                                   o[1] * j.joined.b.step[1] + o[2] * j.joined.b.step[2] +
                                   channel_offset(j.joined.b, (uint32_t)k));
        quantized_put(j.y.data, j.out, at, j.q, quantized_activate_rounded(j.q, y),
                      j.scale_out);
    }
}

/* ---- setup ---------------------------------------------------------------------- */

struct quantized_pack_job {
    int32_t *packed;
    /* [k*filter + k/out_c*group + c*channel + t]: filter, channel, element */
    const int8_t *weight;
    int64_t group, out_c; /* out_c: filters of a group */
    float *factor;
    const float *scale, *in;
    int64_t total; /* words of all, which are none where a filter has no channels */
    int64_t filters, in_c, words, filter, channel;
    int32_t many; /* scales */
};

/* Word i. */
static __device__ inline int32_t pack_four(const quantized_pack_job &j, int64_t i)
{
    const int64_t k = i % j.filters, word = i / j.filters % j.words;
    const int64_t t = i / j.filters / j.words;
    uint32_t four = 0;
    for (int b = 0; b < 4; b++)
        if (word * 4 + b < j.in_c)
            four |= (uint32_t)(uint8_t)j.weight[k * j.filter + k / j.out_c * j.group +
                                                (word * 4 + b) * j.channel + t]
                    << 8 * b;
    return (int32_t)four;
}

static __global__ void quantized_pack_kernel(quantized_pack_job j)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const int64_t begin = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    for (int64_t i = begin; i < j.total; i += step)
        j.packed[i] = pack_four(j, i);
    for (int64_t i = begin; i < j.filters; i += step)
        j.factor[i] = __fmul_rn(*j.in, j.scale[j.many ? i : 0]);
}

/* The weight's distances as in the job; its elements are neighbours. */
static inline int quantized_setup(const strata_node *n, quantized_state *s,
                                  int64_t filter, int64_t channel, int64_t group)
{
    const strata_tensor *scale = &n->weight[STRATA_QUANTIZED_FACTORS];
    const int64_t filters = s->groups * s->out_c;
    quantized_pack_job j = {};
    size_t words, bytes;
    s->words = (s->in_c + 3) / 4;
    j.total = window_kernel_count(&s->w) * s->words; /* bounded by the depth's check */
    if (__builtin_mul_overflow((size_t)j.total, (size_t)filters, &words) ||
        __builtin_mul_overflow(words, sizeof(int32_t), &bytes))
        return STRATA_FAIL(n, STRATA_EOVERFLOW, "packed weights do not fit in memory");
    j.total = (int64_t)words;
    int status = quantized_pack(n, bytes, &s->weight);
    if (status == STRATA_OK)
        status = quantized_pack(n, (size_t)filters * sizeof(float), &s->factor);
    if (status != STRATA_OK)
        return status;
    j.packed = (int32_t *)s->weight;
    j.weight = (const int8_t *)n->weight[STRATA_QUANTIZED_WEIGHT].data;
    j.factor = (float *)s->factor;
    j.scale = (const float *)scale->data;
    j.in = (const float *)n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    j.filters = filters;
    j.in_c = s->in_c;
    j.words = s->words;
    j.filter = filter;
    j.channel = channel;
    j.group = group;
    j.out_c = s->out_c;
    j.many = scale->count > 1;
    if (filters == 0)
        return STRATA_OK;
    quantized_pack_kernel<<<layer_blocks(j.total > filters ? j.total : filters,
                                         CUDA_BLOCK),
                            CUDA_BLOCK, 0, (cudaStream_t)n->stream>>>(j);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- running -------------------------------------------------------------------- */

/* Whether four channels of a group are an aligned word everywhere. */
static inline bool quantized_has_words(const quantized_job &j, int64_t groups)
{
    const bool neighbours = j.x.mask % 4 == 3 || j.x.channel == 1;
    bool whole = neighbours && j.in_c % 4 == 0 && j.x.image % 4 == 0 &&
                 (j.x.channel == 1 || j.x.channel % 4 == 0) &&
                 (uintptr_t)j.x.data % 4 == 0;
    for (int d = 0; d < WINDOW_DIMS; d++)
        whole &= j.x.step[d] % 4 == 0;
    return whole && (groups == 1 || j.in_c % 4 == 0);
}

static inline int quantized_launch(const strata_run *r, quantized_job *j)
{
    const quantized_state *s = (const quantized_state *)r->state;
    const strata_tensor *bias = &r->weight[STRATA_QUANTIZED_BIAS];
    j->w = s->w;
    j->weight = (const int32_t *)s->weight;
    j->factor = (const float *)s->factor;
    j->bias = bias->rank > 0 ? (const float *)bias->data : NULL;
    j->scale_out = (const float *)r->weight[STRATA_QUANTIZED_SCALE_OUT].data;
    j->filters = s->groups * s->out_c;
    j->in_c = s->in_c;
    j->out_c = s->out_c;
    j->words = s->words;
    j->out = r->out[0].dtype;
    j->is_signed = r->in[0].dtype == STRATA_INT8;
    j->by_words = quantized_has_words(*j, s->groups);
    if (j->total == 0)
        return STRATA_OK;
    launch_overlapped(quantized_kernel, dim3(layer_blocks(j->total, CUDA_BLOCK)),
                      dim3(CUDA_BLOCK), 0, layer_stream(r), *j);
    return layer_launched(r, "quantized");
}

#endif /* PLUGINS_COMMON_QUANTIZED_DIRECT_CUH */
