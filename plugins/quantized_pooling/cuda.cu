/* SPDX-License-Identifier: Apache-2.0
 *
 * QuantizedPooling on CUDA: four channels a thread where they lie side by side, with
 * large windows shared by four threads, or by a warp where those would be few.
 */
#include "plugins/common/quantized/direct.cuh"
#include "plugins/quantized_pooling/maxima.cuh"

/* Threads that share a window, and of how many windows' a warp may be all: each load is a
 * sector of its own, which the block's other warps find in the first cache. */
enum { PARTS = 4, WARP = 32, WARP_MOST = 8192 };
/* Elements of a window whose places are found by a float's product. */
enum { QUICK_INSIDE = 1 << 20 };

/* Of a number below 2^31 as a multiplication, where all of a job's are. */
struct pooling_divisor {
    int64_t d;
    divisor by;
};

struct pooling_job {
    window_tensor x, y;
    struct average a;
    const float *scale_in, *scale_out;
    strata_quantized q;
    int64_t total; /* outputs of all channels of a thread */
    /* Threads that have all channels of a pixel; pixels of an image, a plane, a row. */
    pooling_divisor columns, pixels, plane, width;
    uint32_t channels;
    int32_t out, is_signed, narrow; /* narrow: total is below 2^31 */
    /* Of a window that is the whole image, whose elements lie evenly: bytes from one to
     * the next; or 0. */
    int32_t even;
};

struct pooling_window {
    struct average_span s[WINDOW_DIMS];
    int64_t image, o[WINDOW_DIMS];
    int32_t inside, counted;
    float width, height; /* of 1, where fewer than QUICK_INSIDE are inside */
};

static __device__ inline int64_t divide(const pooling_job &j, int64_t x,
                                        const pooling_divisor &by)
{
    return j.narrow ? divide_by((uint32_t)x, by.by) : x / by.d;
}

static __device__ inline pooling_window window_at(const pooling_job &j, int64_t pixel)
{
    pooling_window p;
    p.image = divide(j, pixel, j.pixels);
    const int64_t i = pixel - p.image * j.pixels.d;
    p.o[0] = divide(j, i, j.plane);
    p.o[1] = divide(j, i - p.o[0] * j.plane.d, j.width);
    p.o[2] = i - p.o[0] * j.plane.d - p.o[1] * j.width.d;
    p.inside = p.counted = 1;
#pragma unroll
    for (int d = 0; d < WINDOW_DIMS; d++) {
        p.s[d] = average_span(&j.a, d, p.o[d]);
        p.inside *= (int32_t)p.s[d].n;
        p.counted *= (int32_t)p.s[d].counted;
    }
    p.height = __frcp_rn((float)p.s[1].n);
    p.width = __frcp_rn((float)p.s[2].n);
    return p;
}

/* x / by, x below QUICK_INSIDE: roundings are less than an eighth of what x + 1/2 is past
 * a multiple. */
static __device__ inline uint32_t quick_quotient(uint32_t x, float inverse)
{
    return (uint32_t)__fmul_rn((float)x + 0.5f, inverse);
}

/* Where element t of those inside lies, from the image's first channel. */
static __device__ inline int64_t offset_of(const pooling_job &j, const pooling_window &p,
                                           uint32_t t)
{
    const uint32_t width = (uint32_t)p.s[2].n, height = (uint32_t)p.s[1].n;
    const bool quick = p.inside < QUICK_INSIDE;
    const uint32_t row = quick ? quick_quotient(t, p.width) : t / width;
    const uint32_t d = quick ? quick_quotient(row, p.height) : row / height;
    const uint32_t k = t - row * width, h = row - d * height;
    const int64_t *step = j.a.w.dilation;
    return (p.s[0].first + d * step[0]) * j.x.step[0] +
           (p.s[1].first + h * step[1]) * j.x.step[1] +
           (p.s[2].first + k * step[2]) * j.x.step[2];
}

/* N: channels of a thread, 4 or 1. */
template <int N>
static __device__ inline void sum_element(int32_t (&sum)[N], const pooling_job &j,
                                          const uint8_t *from)
{
    if constexpr (N == 4) {
        const int32_t word = *(const int32_t *)from;
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[e] = multiply_bytes(word, 1 << 8 * e, sum[e], j.is_signed);
    } else {
        sum[0] += j.is_signed ? (int8_t)*from : *from;
    }
}

/* Every Parts-th element from `part` on. */
template <int N, int Parts>
static __device__ inline void sum_part(int32_t (&sum)[N], const pooling_job &j,
                                       const pooling_window &p, const uint8_t *x,
                                       int part)
{
    if (j.even) {
#pragma unroll 8
        for (int32_t t = part; t < p.inside; t += Parts)
            sum_element<N>(sum, j, x + (int64_t)t * j.even);
        return;
    }
#pragma unroll 4
    for (int32_t t = part; t < p.inside; t += Parts)
        sum_element<N>(sum, j, x + offset_of(j, p, (uint32_t)t));
}

/* What a sum becomes, or 0 in a pad lane. */
static __device__ inline void put_mean(const pooling_job &j, const pooling_window &p,
                                       int64_t at, uint32_t channel, int32_t sum)
{
    const float scaled =
        __fmul_rn((float)(sum - p.inside * (int32_t)j.q.zero_in), *j.scale_in);
    const float mean = p.counted ? __fdiv_rn(scaled, (float)p.counted) : 0;
    if (channel < j.channels)
        quantized_put(j.y.data, j.out, at, j.q, quantized_activate_rounded(j.q, mean),
                      j.scale_out);
    else
        ((uint8_t *)j.y.data)[at] = 0; /* bytes alone have pad lanes */
}

template <int N, int Parts>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    average_kernel(const __grid_constant__ pooling_job j)
{
    const int64_t thread = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    const int each = WARP / Parts; /* windows of a warp */
    const int64_t i = thread / WARP * each + thread % each;
    const int part = (int)(thread % WARP) / each;
    const bool mine = i < j.total;
    const int64_t pixel = mine ? divide(j, i, j.columns) : 0;
    const uint32_t channel = mine ? (uint32_t)(i - pixel * j.columns.d) * N : 0;
    const pooling_window p = window_at(j, pixel);
    int32_t sum[N] = {};
    launch_next();
    wait_for_previous();
    if (mine)
        sum_part<N, Parts>(sum, j, p,
                           (const uint8_t *)j.x.data + p.image * j.x.image +
                               channel_offset(j.x, channel),
                           part);
#pragma unroll
    for (int e = 0; e < N; e++)
#pragma unroll
        for (int d = each; d < WARP; d *= 2)
            sum[e] += __shfl_xor_sync(0xffffffffu, sum[e], d);
    const int ends = Parts < N ? 1 : N; /* threads that finish, one channel each if N */
    if (!mine || part >= ends)
        return;
    const int64_t at = p.image * j.y.image + p.o[0] * j.y.step[0] + p.o[1] * j.y.step[1] +
                       p.o[2] * j.y.step[2];
#pragma unroll
    for (int e = 1; e < ends; e++)
        sum[0] = part == e ? sum[e] : sum[0];
#pragma unroll
    for (int e = 0; e < N / ends; e++)
        put_mean(j, p, at + channel_offset(j.y, channel + part + e), channel + part + e,
                 sum[e]);
}

/* ---- on the host ------------------------------------------------------------------- */

/* Whether four channels are an aligned word everywhere. */
static bool has_words(const window_tensor &x, int64_t stored)
{
    bool whole = (x.mask % 4 == 3 || x.channel == 1) && stored % 4 == 0 &&
                 x.image % 4 == 0 && (x.channel == 1 || x.channel % 4 == 0) &&
                 (uintptr_t)x.data % 4 == 0;
    for (int d = 0; d < WINDOW_DIMS; d++)
        whole = whole && x.step[d] % 4 == 0;
    return whole;
}

/* `even` of a job. */
static int32_t even_of(const pooling_job &j)
{
    const struct window &w = j.a.w;
    bool whole = j.x.step[2] < INT32_MAX;
    for (int d = 0; d < WINDOW_DIMS; d++) {
        whole = whole && w.out[d] == 1 && w.begin[d] == 0 && w.kernel[d] == w.in[d] &&
                w.dilation[d] == 1;
        if (d > 0 && w.in[d - 1] > 1)
            whole = whole && j.x.step[d - 1] == w.in[d] * j.x.step[d];
    }
    return whole ? (int32_t)j.x.step[2] : 0;
}

static pooling_divisor pooling_divisor_of(int64_t d)
{
    return {d, divisor_of(d < INT32_MAX ? d : 1)};
}

static pooling_job job_of(const strata_run *r, bool *words)
{
    const strata_quantized_pooling *p = (const strata_quantized_pooling *)r->params;
    const strata_tensor *y = &r->out[0];
    pooling_job j = {};
    j.x = window_tensor_of(&r->in[0]);
    j.y = window_tensor_of(y);
    j.a = *(const struct average *)r->state;
    j.scale_in = (const float *)r->weight[SCALE_IN].data;
    j.scale_out = (const float *)r->weight[SCALE_OUT].data;
    j.q = p->quantized;
    j.pixels = pooling_divisor_of(window_out_count(&j.a.w));
    j.plane = pooling_divisor_of(j.a.w.out[1] * j.a.w.out[2]);
    j.width = pooling_divisor_of(j.a.w.out[2]);
    j.channels = (uint32_t)y->dims[1];
    const uint32_t stored = (j.channels + j.y.mask) & ~j.y.mask;
    *words = has_words(j.x, stored);
    j.columns = pooling_divisor_of(*words ? stored / 4 : stored);
    j.total = y->dims[0] * j.pixels.d * j.columns.d;
    j.narrow = j.total < INT32_MAX;
    j.out = y->dtype;
    j.is_signed = r->in[0].dtype == STRATA_INT8;
    j.even = even_of(j);
    return j;
}

/* Threads that share a window. */
static int parts_of(const pooling_job *j)
{
    const int64_t size = window_kernel_count(&j->a.w);
    return size >= WARP && j->total <= WARP_MOST ? WARP : size >= 4 * PARTS ? PARTS : 1;
}

template <int N>
static auto kernel_of(int parts)
{
    return parts == WARP    ? average_kernel<N, WARP>
           : parts == PARTS ? average_kernel<N, PARTS>
                            : average_kernel<N, 1>;
}

static int run(const strata_run *r)
{
    bool words;
    if (r->out[0].count == 0) /* nothing divides by 0 */
        return STRATA_OK;
    const pooling_job j = job_of(r, &words);
    const int parts = parts_of(&j);
    auto *kernel = words ? kernel_of<4>(parts) : kernel_of<1>(parts);
    const int each = WARP / parts;
    const int64_t threads = (j.total + each - 1) / each * WARP;
    launch_overlapped(kernel, dim3(layer_blocks(threads, CUDA_BLOCK)), dim3(CUDA_BLOCK),
                      0, layer_stream(r), j);
    return layer_launched(r, "quantized_pooling");
}

#define ROW(bytes, floats)                                                               \
    {                                                                                    \
        {bytes},                                                                         \
        {                                                                                \
            (bytes) | (floats)                                                           \
        }                                                                                \
    }
static const strata_row rows[] = {
    ROW(STRATA_I8_NCHW | STRATA_U8_NCHW, STRATA_F32_NCHW | STRATA_F16_NCHW),
    ROW(STRATA_I8_NHWC | STRATA_U8_NHWC, STRATA_F32_NHWC | STRATA_F16_NHWC),
    ROW(STRATA_I8_NC4HW4 | STRATA_U8_NC4HW4, 0),
    ROW(STRATA_I8_NC32HW32 | STRATA_U8_NC32HW32, 0),
    ROW(STRATA_I8_NHWC16, 0),
};

static const strata_row maxima_rows[] = {
    {{STRATA_F16_NHWC8 | STRATA_F16_NHWC | STRATA_F32_NHWC},
     {STRATA_I8_NHWC | STRATA_U8_NHWC | STRATA_I8_NHWC16}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .state_size = sizeof(struct average),
     .accept = average_accept,
     .setup = average_setup,
     .run = run,
     .bandwidth = 0.5},
    {.id = 2,
     .device = STRATA_CUDA,
     .name = "maxima",
     .rows = STRATA_ARRAY(maxima_rows),
     .state_size = sizeof(struct average),
     .accept = maxima_accept,
     .setup = average_setup,
     .run = maxima_run,
     .bandwidth = 0.7},
};

static const strata_extends quantized_pooling = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::QuantizedPooling",
    .params_size = sizeof(strata_quantized_pooling),
    .impls = STRATA_ARRAY(impls),
};
static const strata_extends *const extends[] = {&quantized_pooling};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::QuantizedPooling", extends)
