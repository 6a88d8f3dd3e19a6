/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer on tensor cores (sm_80 and later), what a block does with one tile of
 * 8 x 16 pixels: the patch of the image under it lies in shared memory as pixels of 4
 * halves, so that the 4 taps of a step of depth 16 are 4 reads of 8 bytes, whatever the
 * window.
 *
 * Products are of 16 filters and 8 pixels. Depth k of a step is channel k/8*2 + k%2 of
 * tap k%8/2, and row m of product i is filter m%8*8 + i*2 + m/8: a thread's pieces are 16
 * bytes of the weights, 8 bytes, a pixel, of the patch, and 8 filters of the result.
 */
#ifndef PLUGINS_CONVOLUTION_CUDA_STEM_CUH
#define PLUGINS_CONVOLUTION_CUDA_STEM_CUH

#include "plugins/convolution/cuda/stem/check.cuh"

enum {
    TILE_H = 8,
    TILE_W = 16,
    THREADS = 128,
    TAPS = 4, /* of a step */
    MOST_STEPS = (MOST_KERNEL * MOST_KERNEL + TAPS - 1) / TAPS,
    STEP_HALVES = FILTERS * TAPS * 4,
    AHEAD = 7 /* pixels of a thread that wait in registers */
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
    else if (job.filters - filter < 8) /* zeros of pads make NaN of infinite pixels */
        for (int i = 0; i < 8; i++)
            v[i] = filter + i < job.filters ? v[i] : 0;
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

#endif /* PLUGINS_CONVOLUTION_CUDA_STEM_CUH */
