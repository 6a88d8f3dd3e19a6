/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer: an image of 1 to 4 channels in planes, read where it is, to FP16 in
 * channels-last order, on tensor cores (sm_80 and later). A block keeps the weights of 64
 * filters in shared memory and goes from tile to tile of 8 x 16 pixels; the tile's patch
 * of the image lies there as pixels of 4 halves, so that the 4 taps of a step of depth 16
 * are 4 reads of 8 bytes, whatever the window.
 *
 * Products are of 16 filters and 8 pixels. Depth k of a step is channel k/8*2 + k%2 of
 * tap k%8/2, and row m of product i is filter m%8*8 + i*2 + m/8: a thread's pieces are 16
 * bytes of the weights, 8 bytes, a pixel, of the patch, and 8 filters of the result.
 */
#include "plugins/convolution_cuda.cuh"

enum {
    TILE_H = 8,
    TILE_W = 16,
    THREADS = 128,
    FILTERS = 64,
    TAPS = 4, /* of a step */
    MOST_KERNEL = 7,
    MOST_STRIDE = 4,
    MOST_STEPS = (MOST_KERNEL * MOST_KERNEL + TAPS - 1) / TAPS,
    STEP_HALVES = FILTERS * TAPS * 4,
    AHEAD = 7,  /* pixels of a thread that wait in registers */
    BLOCKS = 4, /* of a multiprocessor */
    BLOCKS_AHEAD = 3
};

struct stem_job {
    const void *x;        /* planes */
    const __half *weight; /* [block of 64 filters][step][product][lane][8] */
    __half *y;
    const float *bias; /* or NULL */
    epilogue_args epilogue;
    convolution_bounds bounds;
    int32_t channels, height, width, out_h, out_w, steps, taps;
    int32_t kernel_w, stride_h, stride_w, begin_h, begin_w;
    int32_t patch_h; /* patch: of the image, under a tile */
    divisor patch_w, across, down;
    uint32_t filters, stored, tiles;
};

static __device__ inline void stem_multiply(float (&d)[4], const uint4 &a, const uint2 &b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b.x), "r"(b.y));
}

/* What a block keeps: weights, then these, then the patch. */
struct stem_shared {
    alignas(16) float scale[FILTERS], shift[FILTERS];
    int32_t tap[MOST_STEPS * TAPS]; /* offset in the patch, in pixels */
    uint2 blank;                    /* the pixel of taps that are none */
};

static __device__ inline void stem_prepare(const stem_job &job, uint4 *weight,
                                           stem_shared *s, uint32_t filter)
{
    const int32_t pieces = job.steps * STEP_HALVES / 8;
    const uint4 *from = (const uint4 *)job.weight + (size_t)blockIdx.y * pieces;
    for (int32_t i = threadIdx.x; i < pieces; i += THREADS)
        weight[i] = __ldg(from + i);
    for (int32_t i = threadIdx.x; i < job.steps * TAPS; i += THREADS)
        s->tap[i] = i < job.taps
                        ? i / job.kernel_w * (int32_t)job.patch_w.d + i % job.kernel_w
                        : -1;
    if (threadIdx.x < FILTERS) {
        convolution_affine<1> affine;
        affine.load(job.bias, job.epilogue, filter + threadIdx.x, job.filters);
        s->scale[threadIdx.x] = affine.scale[0];
        s->shift[threadIdx.x] = affine.shift[0];
    }
    if (threadIdx.x == 0)
        s->blank = make_uint2(0, 0);
}

/* One pixel of the image as 4 halves; zeros outside. */
template <typename T>
static __device__ inline pack<__half, 4> stem_pixel(const stem_job &job, const T *x,
                                                    int32_t h, int32_t w)
{
    pack<__half, 4> v;
    const int32_t row = min(max(h, 0), job.height - 1);
    const int32_t column = min(max(w, 0), job.width - 1);
    const bool inside = row == h && column == w;
    const T *at = x + ((int64_t)row * job.width + column);
#pragma unroll
    for (int c = 0; c < 4; c++) { /* loads go out in any case: then they go together */
        const int32_t channel = min(c, job.channels - 1);
        const __half read =
            convert<__half>(at[(int64_t)channel * job.height * job.width]);
        v.v[c] = inside && c < job.channels ? read : __half(0.0f);
    }
    return v;
}

template <typename T>
static __device__ inline void stem_load(const stem_job &job, pack<__half, 4> *patch,
                                        int64_t image, int32_t h, int32_t w)
{
    const T *x = (const T *)job.x + image * job.channels * job.height * job.width;
    const uint32_t pixels = job.patch_h * job.patch_w.d;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < pixels; i += THREADS) {
        const uint32_t row = divide_by(i, job.patch_w);
        patch[i] =
            stem_pixel(job, x, h + (int32_t)row, w + (int32_t)(i - row * job.patch_w.d));
    }
}

/* A thread's pixels of a patch, on their way; zeros outside of the image. */
template <typename T, int Channels>
struct stem_ahead {
    T value[AHEAD][Channels];

    __device__ inline void load(const stem_job &job, int64_t image, int32_t h, int32_t w)
    {
        const int32_t plane = job.height * job.width;
        const T *x = (const T *)job.x + image * job.channels * plane;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const uint32_t pixel = threadIdx.x + i * THREADS;
            const uint32_t row = divide_by(pixel, job.patch_w);
            const int32_t p = h + (int32_t)row;
            const int32_t q = w + (int32_t)(pixel - row * job.patch_w.d);
            const bool inside = row < (uint32_t)job.patch_h &&
                                (uint32_t)p < (uint32_t)job.height &&
                                (uint32_t)q < (uint32_t)job.width;
#pragma unroll
            for (int c = 0; c < Channels; c++)
                value[i][c] = load_pack_if<T, 1>(x + (c * plane + p * job.width + q),
                                                 inside && c < job.channels)
                                  .v[0];
        }
    }

    __device__ inline void store(const stem_job &job, pack<__half, 4> *patch) const
    {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const uint32_t pixel = threadIdx.x + i * THREADS;
            pack<__half, 4> v = {};
#pragma unroll
            for (int c = 0; c < Channels; c++)
                v.v[c] = convert<__half>(value[i][c]);
            if (pixel < job.patch_h * job.patch_w.d)
                store_pack(&patch[pixel].v[0], v);
        }
    }
};

/* Sums of a warp's two rows of 16 pixels: by product, by half a row. */
typedef float stem_sums[4][4][4];

static __device__ inline void stem_compute(stem_sums &sum, const stem_job &job,
                                           const uint4 *weight, const stem_shared *s,
                                           const uint2 *patch)
{
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int32_t down = job.stride_h * (int32_t)job.patch_w.d;
    const uint2 *mine = patch + (int32_t)warp * 2 * down + lane / 4 * job.stride_w;
    const int32_t right = 8 * job.stride_w;
    weight += lane;
    for (int32_t step = 0; step < job.steps; step++, weight += STEP_HALVES / 8) {
        const int32_t tap = s->tap[step * TAPS + lane % 4];
        const uint2 *at = mine + tap;
        uint4 a[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            a[i] = weight[i * 32];
#pragma unroll
        for (int n = 0; n < 4; n++) {
            const uint2 b = *(tap >= 0 ? at + n / 2 * down + n % 2 * right : &s->blank);
#pragma unroll
            for (int i = 0; i < 4; i++)
                stem_multiply(sum[i][n], a[i], b);
        }
    }
}

/* Inline: an array handed to a call lives in memory, whether the call is made or not. */
static __device__ inline void stem_finish(float (&v)[8], uint32_t real,
                                          const activation_args &activation)
{
    activate_all(v, activation);
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = i < real ? v[i] : 0;
}

/* 8 filters of a pixel. */
static __device__ inline void stem_store(const stem_job &job,
                                         const convolution_affine<8> &affine,
                                         float (&v)[8], size_t pixel, uint32_t filter)
{
    pack<__half, 8> y;
#pragma unroll
    for (int i = 0; i < 8; i++)
        v[i] = bounded(fmaf(v[i], affine.scale[i], affine.shift[i]), job.bounds);
    if (!job.bounds.plain)
        stem_finish(v, job.filters - filter, job.epilogue.activation);
#pragma unroll
    for (int i = 0; i < 8; i++)
        y.v[i] = __float2half_rn(v[i]);
    store_pack(job.y + pixel * job.stored + filter, y);
}

/* p, q: of the tile. */
static __device__ inline void stem_store_all(const stem_job &job, const stem_shared *s,
                                             const stem_sums &sum, int64_t image,
                                             int32_t p, int32_t q, uint32_t filter)
{
    const uint32_t lane = threadIdx.x % 32, c = lane / 4 * 8;
    convolution_affine<8> affine;
    if (filter + c >= job.stored)
        return;
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
        *(float4 *)(affine.scale + i) = *(const float4 *)(s->scale + c + i);
        *(float4 *)(affine.shift + i) = *(const float4 *)(s->shift + c + i);
    }
#pragma unroll
    for (int pixel = 0; pixel < 8; pixel++) { /* two of each half row */
        const int n = pixel / 2, j = pixel % 2;
        const int32_t h = p + (int32_t)(threadIdx.x / 32 * 2) + n / 2;
        const int32_t w = q + n % 2 * 8 + (int32_t)(lane % 4 * 2) + j;
        float v[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[i] = sum[i / 2][n][i % 2 * 2 + j];
        if (h < job.out_h && w < job.out_w)
            stem_store(job, affine, v, ((size_t)image * job.out_h + h) * job.out_w + w,
                       filter + c);
    }
}

/* Of a tile: image, and its first pixel. */
struct stem_place {
    uint32_t image;
    int32_t p, q;

    __device__ inline stem_place(const stem_job &job, uint32_t tile)
    {
        const uint32_t row = divide_by(tile, job.across);
        image = divide_by(row, job.down);
        q = (int32_t)(tile - row * job.across.d) * TILE_W;
        p = (int32_t)(row - image * job.down.d) * TILE_H;
    }
};

template <typename T>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    stem_kernel(const __grid_constant__ stem_job job)
{
    extern __shared__ __align__(16) uint8_t memory[];
    uint4 *weight = (uint4 *)memory;
    stem_shared *s = (stem_shared *)(weight + job.steps * STEP_HALVES / 8);
    uint2 *patch = (uint2 *)(s + 1);
    const uint32_t filter = blockIdx.y * FILTERS;
    stem_prepare(job, weight, s, filter);
    for (uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
        const stem_place at(job, tile);
        stem_sums sum = {};
        stem_load<T>(job, (pack<__half, 4> *)patch, at.image,
                     at.p * job.stride_h - job.begin_h,
                     at.q * job.stride_w - job.begin_w);
        __syncthreads();
        stem_compute(sum, job, weight, s, patch);
        stem_store_all(job, s, sum, at.image, at.p, at.q, filter);
        __syncthreads();
    }
}

/* The next patch is on its way while a block computes, into one of two in turn. */
template <typename T, int Channels>
static __global__ void __launch_bounds__(THREADS, BLOCKS_AHEAD)
    stem_ahead_kernel(const __grid_constant__ stem_job job)
{
    extern __shared__ __align__(16) uint8_t memory[];
    uint4 *weight = (uint4 *)memory;
    stem_shared *s = (stem_shared *)(weight + job.steps * STEP_HALVES / 8);
    uint2 *patch = (uint2 *)(s + 1), *other = patch + job.patch_h * job.patch_w.d;
    const uint32_t filter = blockIdx.y * FILTERS;
    stem_ahead<T, Channels> ahead;
    stem_place next(job, blockIdx.x);
    ahead.load(job, next.image, next.p * job.stride_h - job.begin_h,
               next.q * job.stride_w - job.begin_w);
    stem_prepare(job, weight, s, filter);
    for (uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
        const stem_place at = next;
        stem_sums sum = {};
        ahead.store(job, (pack<__half, 4> *)patch);
        __syncthreads();
        if (tile + gridDim.x < job.tiles) {
            next = stem_place(job, tile + gridDim.x);
            ahead.load(job, next.image, next.p * job.stride_h - job.begin_h,
                       next.q * job.stride_w - job.begin_w);
        }
        stem_compute(sum, job, weight, s, patch);
        stem_store_all(job, s, sum, at.image, at.p, at.q, filter);
        uint2 *const used = patch;
        patch = other;
        other = used;
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

int stem_accept(const strata_node *n)
{
    convolution_state s;
    const struct window *w = &s.w;
    if (n->math != STRATA_MATH_TENSOR_OP)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "uses tensor cores; allow them with math = tensor_op");
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.groups != 1 || s.in_c > 4 || n->in[0].rank > 4)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "takes 1 to 4 channels, one group and at most 2 spatial dims");
    for (int d = 1; d < WINDOW_DIMS; d++)
        if (w->kernel[d] > MOST_KERNEL || w->stride[d] > MOST_STRIDE ||
            w->dilation[d] != 1 || w->in[d] > INT16_MAX || w->begin[d] > INT16_MAX)
            return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                               "takes windows up to %d, strides up to %d, no dilation",
                               MOST_KERNEL, MOST_STRIDE);
    if (stored_channels(&n->out[0]) % 8)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld filters; needed is a multiple of 8 in fp16:nhwc",
                           (long long)s.out_c);
    if (n->out[0].size / stored_channels(&n->out[0]) > INT32_MAX / 2 ||
        s.out_c > 65535 * FILTERS)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "over 2^30 pixels");
    return STRATA_OK;
}

/* Pixels of the image under a tile. */
static int64_t stem_patch(const struct window *w)
{
    return ((TILE_H - 1) * w->stride[1] + w->kernel[1]) *
           ((TILE_W - 1) * w->stride[2] + w->kernel[2]);
}

int stem_ahead_accept(const strata_node *n)
{
    convolution_state s;
    int status = stem_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (stem_patch(&s.w) > AHEAD * THREADS || s.w.in[1] * s.w.in[2] > INT32_MAX / 4)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld pixels under a tile; the most is %d, in an image below "
                           "2^29",
                           (long long)stem_patch(&s.w), AHEAD * THREADS);
    return STRATA_OK;
}

struct stem_pack_job {
    __half *packed;
    const float *weight; /* [filter][c][tap] */
    int32_t size, steps, taps, channels, filters;
};

static __global__ void stem_pack_kernel(stem_pack_job job)
{
    const int32_t i = (int32_t)(blockIdx.x * CUDA_BLOCK + threadIdx.x);
    if (i >= job.size)
        return;
    const int32_t lane = i / 8 % 32, product = i / 256 % 4, word = i % 8 / 2;
    const int32_t step = i / STEP_HALVES % job.steps,
                  block = i / (STEP_HALVES * job.steps);
    const int32_t tap = step * TAPS + lane % 4, c = word / 2 * 2 + i % 2;
    const int32_t filter = block * FILTERS + lane / 4 * 8 + product * 2 + word % 2;
    const bool real = filter < job.filters && c < job.channels && tap < job.taps;
    job.packed[i] = __float2half_rn(
        real ? job.weight[(filter * job.channels + c) * job.taps + tap] : 0.0f);
}

static int32_t stem_steps(const struct window *w)
{
    return (int32_t)((w->kernel[1] * w->kernel[2] + TAPS - 1) / TAPS);
}

/* Bytes of shared memory. */
static int stem_size(const struct window *w, int patches)
{
    return (int)(stem_steps(w) * STEP_HALVES * sizeof(__half) + sizeof(stem_shared) +
                 patches * stem_patch(w) * sizeof(uint2));
}

typedef void stem_entry(const stem_job job);

/* By dtype, and of those that read ahead, by channels: 3, or any. */
static stem_entry *stem_entry_of(const strata_tensor *x, bool ahead)
{
    const bool half = x->dtype == STRATA_FP16;
    if (!ahead)
        return half ? stem_kernel<__half> : stem_kernel<float>;
    if (x->dims[1] == 3)
        return half ? stem_ahead_kernel<__half, 3> : stem_ahead_kernel<float, 3>;
    return half ? stem_ahead_kernel<__half, 4> : stem_ahead_kernel<float, 4>;
}

static int stem_setup_as(const strata_node *n, void *state, bool ahead)
{
    convolution_state *s = (convolution_state *)state;
    stem_pack_job job = {};
    int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    job.steps = stem_steps(&s->w);
    job.taps = (int32_t)window_kernel_count(&s->w);
    job.channels = (int32_t)s->in_c;
    job.filters = (int32_t)s->out_c;
    job.size = (job.filters + FILTERS - 1) / FILTERS * job.steps * STEP_HALVES;
    /* The most of any window: the attribute is shared by all instances. */
    const int most = 72 * 1024;
    cudaError_t e =
        cudaFuncSetAttribute((const void *)stem_entry_of(&n->in[0], ahead),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, most);
    if (e == cudaSuccess)
        e = convolution_count_multiprocessors(s);
    if (e != cudaSuccess)
        return STRATA_FAIL(n, STRATA_EDEVICE, "%d bytes of shared memory: %s (%s)", most,
                           cudaGetErrorString(e), cudaGetErrorName(e));
    return convolution_pack(n, s, job, sizeof(__half), stem_pack_kernel);
}

int stem_setup(const strata_node *n, void *state)
{
    return stem_setup_as(n, state, false);
}

int stem_ahead_setup(const strata_node *n, void *state)
{
    return stem_setup_as(n, state, true);
}

/* ---- running --------------------------------------------------------------------------
 */

static stem_job stem_job_of(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    stem_job job = {};
    job.x = r->in[0].data;
    job.weight = (const __half *)s->packed;
    job.y = (__half *)r->out[0].data;
    job.bias = convolution_bias(r);
    job.epilogue = epilogue_of(r);
    job.bounds = convolution_bounds_of(job.epilogue);
    job.channels = (int32_t)s->in_c;
    job.height = (int32_t)w->in[1];
    job.width = (int32_t)w->in[2];
    job.out_h = (int32_t)w->out[1];
    job.out_w = (int32_t)w->out[2];
    job.steps = stem_steps(w);
    job.taps = (int32_t)window_kernel_count(w);
    job.kernel_w = (int32_t)w->kernel[2];
    job.stride_h = (int32_t)w->stride[1];
    job.stride_w = (int32_t)w->stride[2];
    job.begin_h = (int32_t)w->begin[1];
    job.begin_w = (int32_t)w->begin[2];
    job.patch_h = (int32_t)((TILE_H - 1) * w->stride[1] + w->kernel[1]);
    job.patch_w = divisor_of((TILE_W - 1) * w->stride[2] + w->kernel[2]);
    job.across = divisor_of((w->out[2] + TILE_W - 1) / TILE_W);
    job.down = divisor_of((w->out[1] + TILE_H - 1) / TILE_H);
    job.filters = (uint32_t)s->out_c;
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    job.tiles = (uint32_t)r->in[0].dims[0] * job.across.d * job.down.d;
    return job;
}

static int stem_run_as(const strata_run *r, bool ahead)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const stem_job job = stem_job_of(r);
    const uint32_t most = (uint32_t)s->multiprocessors * (ahead ? BLOCKS_AHEAD : BLOCKS);
    const dim3 grid(job.tiles < most ? job.tiles : most,
                    (job.filters + FILTERS - 1) / FILTERS);
    stem_entry_of(
        &r->in[0],
        ahead)<<<grid, THREADS, stem_size(&s->w, ahead ? 2 : 1), layer_stream(r)>>>(job);
    return layer_launched(r, "convolution stem");
}

int stem_run(const strata_run *r)
{
    return stem_run_as(r, false);
}

int stem_ahead_run(const strata_run *r)
{
    return stem_run_as(r, true);
}
