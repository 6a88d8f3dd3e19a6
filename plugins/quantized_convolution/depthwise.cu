/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedConvolution with a channel a group, channels last, on CUDA: a thread has four
 * channels of four neighbours in a row. Four pixels of four channels are turned into four
 * channels of four pixels, so that one instruction multiplies four elements of a window's
 * row. Outside the image lies what stands for 0.
 */
#include "plugins/quantized_convolution/depthwise.cuh"

#include "kernels/overlap.cuh"
#include "plugins/common/quantized/quantized.h"
#include "plugins/common/quantized/round.cuh"

#define FOUR 4 /* channels of a thread, elements of a word, outputs of a thread */

struct depthwise_job {
    const uint8_t *x;
    uint8_t *y;
    const int32_t *weight;
    const float *factor, *bias, *scale_out;
    const int32_t *offset;
    quantized_activation activation;
    int64_t x_image, y_image, x_row, y_row; /* bytes */
    uint32_t threads;
    divisor words, across, down; /* of four channels; threads in a row; rows */
    int32_t channels;
    int32_t kernel_h, stride_h, dilation_h, begin_h, begin_w;
    int32_t in_h, in_w, out_w, zero_out, to_unsigned;
    uint32_t outside; /* four bytes of zero_in */
};

/* ---- sums ------------------------------------------------------------------------ */

static __device__ inline int32_t multiply_four(int32_t x, int32_t w, int32_t sum,
                                               bool is_signed)
{
    if (is_signed)
        asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(w));
    else
        asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(w));
    return sum;
}

/* Bytes of up to four pixels, by channel; lanes past `width` meet weights of 0. */
static __device__ inline void turn(const uint32_t *x, int width,
                                   uint32_t (&by_channel)[FOUR])
{
    const uint32_t second = x[width > 1 ? 1 : 0], third = x[width > 2 ? 2 : 0];
    const uint32_t last = x[width > 3 ? 3 : 0];
    const uint32_t low[2] = {__byte_perm(x[0], second, 0x5140),
                             __byte_perm(x[0], second, 0x7362)};
    const uint32_t high[2] = {__byte_perm(third, last, 0x5140),
                              __byte_perm(third, last, 0x7362)};
#pragma unroll
    for (int c = 0; c < FOUR; c++)
        by_channel[c] =
            width == 1 ? x[0] >> 8 * c
                       : __byte_perm(low[c / 2], high[c / 2], c % 2 ? 0x7632 : 0x5410);
}

template <int Width, bool Signed>
static __device__ inline void multiply_row(int32_t (&sum)[FOUR], const uint32_t *x,
                                           const int32_t *weight, int32_t words)
{
#pragma unroll
    for (int g = 0; g < Width; g += FOUR) {
        uint32_t by_channel[FOUR];
        const int4 w = __ldg((const int4 *)weight + (int64_t)(g / FOUR) * words);
        turn(x + g, Width - g, by_channel);
        sum[0] = multiply_four(by_channel[0], w.x, sum[0], Signed);
        sum[1] = multiply_four(by_channel[1], w.y, sum[1], Signed);
        sum[2] = multiply_four(by_channel[2], w.z, sum[2], Signed);
        sum[3] = multiply_four(by_channel[3], w.w, sum[3], Signed);
    }
}

/* ---- what becomes of them ---------------------------------------------------------- */

static __device__ inline uint32_t finish(const depthwise_job &j,
                                         const quantized_rounding &rounding,
                                         const int32_t (&sum)[FOUR], int32_t channel)
{
    const float4 f = __ldg((const float4 *)(j.factor + channel));
    const float4 b = __ldg((const float4 *)(j.bias + channel));
    const float factor[FOUR] = {f.x, f.y, f.z, f.w}, bias[FOUR] = {b.x, b.y, b.z, b.w};
    float v[FOUR];
    int32_t whole[FOUR];
#pragma unroll
    for (int c = 0; c < FOUR; c++)
        v[c] = __fadd_rn(__fmul_rn((float)sum[c], factor[c]), bias[c]);
    quantized_activate_all(v, j.activation);
    rounding.round(v, whole);
    return (saturate_four(whole[0], whole[1], whole[2], whole[3]) ^
            (j.to_unsigned ? QUANTIZED_FLIP : 0)) &
           first_bytes(j.channels - channel);
}

template <int Width, int Stride, bool Signed>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    depthwise_kernel(const __grid_constant__ depthwise_job j)
{
    enum { READ = (FOUR - 1) * Stride + Width };
    uint32_t rest = blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (rest >= j.threads)
        return;
    uint32_t q = divide_by(rest, j.words);
    const int32_t channel = (int32_t)(rest - q * j.words.d) * FOUR;
    rest = q;
    q = divide_by(rest, j.across);
    const int32_t first = (int32_t)(rest - q * j.across.d) * FOUR;
    const uint32_t image = divide_by(q, j.down);
    const int32_t row = (int32_t)(q - image * j.down.d);
    const int32_t pixel = (int32_t)j.words.d * FOUR; /* bytes to the next */
    const int32_t left = first * Stride - j.begin_w, top = row * j.stride_h - j.begin_h;
    const uint8_t *x = j.x + image * j.x_image + channel;
    const int4 offset = __ldg((const int4 *)(j.offset + channel));
    int32_t sum[FOUR][FOUR];
#pragma unroll
    for (int p = 0; p < FOUR; p++) {
        sum[p][0] = offset.x;
        sum[p][1] = offset.y;
        sum[p][2] = offset.z;
        sum[p][3] = offset.w;
    }
    launch_next();
    wait_for_previous();
    for (int32_t r = 0; r < j.kernel_h; r++) {
        const int32_t h = top + r * j.dilation_h;
        const bool inside = (uint32_t)h < (uint32_t)j.in_h;
        const int32_t *w = j.weight + ((int64_t)r * ((Width + FOUR - 1) / FOUR) *
                                           (int32_t)j.words.d * FOUR +
                                       channel);
        uint32_t read[READ];
#pragma unroll
        for (int i = 0; i < READ; i++)
            read[i] =
                inside && (uint32_t)(left + i) < (uint32_t)j.in_w
                    ? *(const uint32_t *)(x + h * j.x_row + (int64_t)(left + i) * pixel)
                    : j.outside;
#pragma unroll
        for (int p = 0; p < FOUR; p++)
            multiply_row<Width, Signed>(sum[p], read + p * Stride, w, (int32_t)j.words.d);
    }
    const quantized_rounding rounding(j.scale_out, j.zero_out, j.to_unsigned ? 128 : 0);
    uint8_t *y =
        j.y + image * j.y_image + row * j.y_row + (int64_t)first * pixel + channel;
#pragma unroll
    for (int p = 0; p < FOUR; p++)
        if (first + p < j.out_w)
            *(uint32_t *)(y + p * pixel) = finish(j, rounding, sum[p], channel);
}

/* ---- setup ------------------------------------------------------------------------- */

struct depthwise_pack_job {
    int32_t *packed;
    float *factor, *bias;
    int32_t *offset;
    const int8_t *weight; /* [channel][row][element] */
    const float *scale, *in, *bias_in;
    int32_t channels, stored, kernel_h, kernel_w, zero_in, many;
};

/* A thread a channel. */
static __global__ void depthwise_pack_kernel(depthwise_pack_job j)
{
    const int32_t c = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    const int32_t groups = (j.kernel_w + FOUR - 1) / FOUR;
    const bool real = c < j.channels;
    int32_t sum = 0;
    if (c >= j.stored)
        return;
    for (int32_t r = 0; r < j.kernel_h; r++)
        for (int32_t g = 0; g < groups; g++) {
            uint32_t four = 0;
            for (int32_t e = 0; e < FOUR; e++) {
                const int32_t t = g * FOUR + e;
                const int32_t w = real && t < j.kernel_w
                                      ? j.weight[(c * j.kernel_h + r) * j.kernel_w + t]
                                      : 0;
                four |= (uint32_t)(uint8_t)w << 8 * e;
                sum += w;
            }
            j.packed[((int64_t)r * groups + g) * j.stored + c] = (int32_t)four;
        }
    j.factor[c] = real ? __fmul_rn(*j.in, j.scale[j.many ? c : 0]) : 0;
    j.bias[c] = real && j.bias_in ? j.bias_in[c] : 0;
    j.offset[c] = -j.zero_in * sum;
}

static int resolve(const strata_node *n, struct window *w)
{
    const strata_quantized_convolution *p =
        (const strata_quantized_convolution *)n->params;
    return window_of_convolution(w, &p->convolution, &n->in[0],
                                 &n->weight[STRATA_QUANTIZED_WEIGHT], n->host, n->err);
}

static const char *refusal(const strata_node *n, const struct window *w)
{
    const strata_tensor *x = &n->in[0], *y = &n->out[0];
    const int64_t groups =
        ((const strata_quantized_convolution *)n->params)->convolution.groups;
    const bool flat = w->kernel[0] == 1 && w->stride[0] == 1 && w->begin[0] == 0 &&
                      w->in[0] == w->out[0];
    if (n->n_in > 1)
        return "it adds no second input";
    if (groups != x->dims[1] || groups != y->dims[1])
        return "it takes a channel a group";
    if (stored_channels(x) != stored_channels(y) || stored_channels(x) % FOUR != 0)
        return "channels are words of four, alike on both sides";
    if (!flat || (w->kernel[2] != 3 && w->kernel[2] != 5) || w->dilation[2] != 1 ||
        (w->stride[2] != 1 && w->stride[2] != 2))
        return "its rows have three or five elements side by side, and stride 1 or 2";
    if (x->size > INT32_MAX / 2 || y->size > INT32_MAX / 2 || window_extent(w, 1) > 32767)
        return "so large a tensor is for others";
    return NULL;
}

int depthwise_accept(const strata_node *n)
{
    const strata_quantized_convolution *p =
        (const strata_quantized_convolution *)n->params;
    struct window w;
    int status = quantized_accept(n, &p->quantized);
    if (status == STRATA_OK)
        status = resolve(n, &w);
    const char *why = status == STRATA_OK ? refusal(n, &w) : NULL;
    if (why)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why);
    return status;
}

int depthwise_setup(const strata_node *n, void *state)
{
    depthwise_state *s = (depthwise_state *)state;
    const strata_tensor *scale = &n->weight[STRATA_QUANTIZED_FACTORS];
    const strata_tensor *bias = &n->weight[STRATA_QUANTIZED_BIAS];
    int status = resolve(n, &s->w);
    if (status != STRATA_OK)
        return status;
    depthwise_pack_job j = {};
    const int64_t stored = stored_channels(&n->in[0]);
    const size_t column = (size_t)stored * FOUR;
    const size_t groups = (size_t)(s->w.kernel[2] + FOUR - 1) / FOUR;
    if ((status =
             quantized_pack(n, (size_t)s->w.kernel[1] * groups * column, &s->weight)) ||
        (status = quantized_pack(n, column, (void **)&s->factor)) ||
        (status = quantized_pack(n, column, (void **)&s->bias)) ||
        (status = quantized_pack(n, column, (void **)&s->offset)))
        return status;
    j.packed = (int32_t *)s->weight;
    j.factor = s->factor;
    j.bias = s->bias;
    j.offset = s->offset;
    j.weight = (const int8_t *)n->weight[STRATA_QUANTIZED_WEIGHT].data;
    j.scale = (const float *)scale->data;
    j.in = (const float *)n->weight[STRATA_QUANTIZED_SCALE_IN].data;
    j.bias_in = bias->rank > 0 ? (const float *)bias->data : NULL;
    j.channels = (int32_t)n->in[0].dims[1];
    j.stored = (int32_t)stored;
    j.kernel_h = (int32_t)s->w.kernel[1];
    j.kernel_w = (int32_t)s->w.kernel[2];
    j.zero_in =
        (int32_t)((const strata_quantized_convolution *)n->params)->quantized.zero_in;
    j.many = scale->count > 1;
    if (stored == 0)
        return STRATA_OK;
    depthwise_pack_kernel<<<layer_blocks(stored, CUDA_BLOCK), CUDA_BLOCK, 0,
                            (cudaStream_t)n->stream>>>(j);
    const cudaError_t e = cudaGetLastError();
    return e == cudaSuccess ? STRATA_OK
                            : STRATA_FAIL(n, STRATA_EDEVICE, "packing weights: %s (%s)",
                                          cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- running ----------------------------------------------------------------------- */

static depthwise_job job_of(const strata_run *r)
{
    const depthwise_state *s = (const depthwise_state *)r->state;
    const strata_quantized *q =
        &((const strata_quantized_convolution *)r->params)->quantized;
    const strata_tensor *x = &r->in[0], *y = &r->out[0];
    const struct window *w = &s->w;
    const int64_t stored = stored_channels(x), across = (w->out[2] + FOUR - 1) / FOUR;
    depthwise_job j = {};
    j.x = (const uint8_t *)x->data;
    j.y = (uint8_t *)y->data;
    j.weight = (const int32_t *)s->weight;
    j.factor = s->factor;
    j.bias = s->bias;
    j.offset = s->offset;
    j.scale_out = (const float *)r->weight[STRATA_QUANTIZED_SCALE_OUT].data;
    j.activation = quantized_activation_of(q);
    j.x_row = w->in[2] * stored;
    j.x_image = w->in[1] * j.x_row;
    j.y_row = w->out[2] * stored;
    j.y_image = w->out[1] * j.y_row;
    /* images and a depth of 1 each are one dim */
    j.threads = (uint32_t)(y->dims[0] * w->out[0] * w->out[1] * across * (stored / FOUR));
    j.words = divisor_of(stored / FOUR);
    j.across = divisor_of(across);
    j.down = divisor_of(w->out[1]);
    j.channels = (int32_t)x->dims[1];
    j.kernel_h = (int32_t)w->kernel[1];
    j.stride_h = (int32_t)w->stride[1];
    j.dilation_h = (int32_t)w->dilation[1];
    j.begin_h = (int32_t)w->begin[1];
    j.begin_w = (int32_t)w->begin[2];
    j.in_h = (int32_t)w->in[1];
    j.in_w = (int32_t)w->in[2];
    j.out_w = (int32_t)w->out[2];
    j.zero_out = (int32_t)q->zero_out;
    j.to_unsigned = y->dtype == STRATA_UINT8;
    j.outside = (uint32_t)(uint8_t)q->zero_in * 0x01010101u;
    return j;
}

template <int Width, int Stride>
static void launch(const depthwise_job &j, bool is_signed, cudaStream_t stream)
{
    launch_overlapped(is_signed ? depthwise_kernel<Width, Stride, true>
                                : depthwise_kernel<Width, Stride, false>,
                      dim3(layer_blocks(j.threads, CUDA_BLOCK)), dim3(CUDA_BLOCK), 0,
                      stream, j);
}

int depthwise_run(const strata_run *r)
{
    const struct window &w = ((const depthwise_state *)r->state)->w;
    const bool is_signed = r->in[0].dtype == STRATA_INT8;
    if (r->out[0].size == 0)
        return STRATA_OK;
    const depthwise_job j = job_of(r);
    if (w.kernel[2] == 3)
        w.stride[2] == 1 ? launch<3, 1>(j, is_signed, layer_stream(r))
                         : launch<3, 2>(j, is_signed, layer_stream(r));
    else
        w.stride[2] == 1 ? launch<5, 1>(j, is_signed, layer_stream(r))
                         : launch<5, 2>(j, is_signed, layer_stream(r));
    return layer_launched(r, "quantized depthwise");
}
