/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer of FP32 in multiply-adds. A block makes tiles of 8 x 16 windows and 64
 * filters: weights stay in shared memory, the patch of the image under a tile comes there
 * plane by plane. A thread has 8 windows side by side and 8 filters; a row of the patch
 * that its windows cover is read once for all taps of a row of the kernel.
 */
#include "plugins/convolution/cuda/stem/float.cuh"

enum {
    THREADS = 128,
    BLOCKS = 3, /* of a multiprocessor */
    TILE_H = 8,
    TILE_W = 16,
    SIDE = 8, /* windows and filters of a thread */
    MOST_SHARED = 232448 / 2 - 2048 /* of two; 7 x 7 x 4 has room for no more */
};

struct stem_plain_job : stem_float_job {
    int32_t patch_h, pitch; /* rows of a plane's patch; floats of a row */
    divisor patch_w, across, down;
    uint32_t tiles;
    int32_t weights; /* floats of a block of filters */
};

/* Of a tile: image, and its first window. */
struct stem_plain_place {
    uint32_t image;
    int32_t p, q;

    __device__ inline stem_plain_place(const stem_plain_job &job, uint32_t tile)
    {
        const uint32_t row = divide_by(tile, job.across);
        image = divide_by(row, job.down);
        q = (int32_t)(tile - row * job.across.d) * TILE_W;
        p = (int32_t)(row - image * job.down.d) * TILE_H;
    }
};

/* A thread's windows in a tile. */
struct stem_plain_lane {
    int32_t row, column, filter; /* filters: 4 from there on, 4 of the other half */

    __device__ inline stem_plain_lane(void)
    {
        const int32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        row = warp * 2 + lane / 16;
        column = lane / 8 % 2 * SIDE;
        filter = lane % 8 * 4;
    }
};

/* The patch under a tile; zeros outside of the image. */
static __device__ inline void stem_plain_load(const stem_plain_job &job,
                                              const stem_plain_place &at, int32_t stride,
                                              uint32_t patch)
{
    const int32_t size = job.height * job.width, plane = job.patch_h * job.pitch * 4;
    const int32_t h = at.p * job.stride_h - job.begin_h, w = at.q * stride - job.begin_w;
    const float *x = job.x + (int64_t)at.image * job.channels * size;
    const uint32_t pixels = job.patch_h * job.patch_w.d;
    for (uint32_t i = threadIdx.x; i < pixels; i += THREADS) {
        const int32_t row = (int32_t)divide_by(i, job.patch_w);
        const int32_t column = (int32_t)(i - row * job.patch_w.d);
        const bool valid = (uint32_t)(h + row) < (uint32_t)job.height &&
                           (uint32_t)(w + column) < (uint32_t)job.width;
        const float *from = x + (valid ? (h + row) * job.width + w + column : 0);
        uint32_t to = patch + (row * job.pitch + column) * 4;
        for (int c = 0; c < job.channels; c++, from += size, to += plane)
            copy_float(to, from, valid);
    }
}

/* All taps of one row of the kernel and one channel. */
template <int Taps, int Stride>
static __device__ inline void stem_plain_row(float (&sum)[SIDE][SIDE], const float *patch,
                                             const float4 *weight)
{
    constexpr int Pixels = ((SIDE - 1) * Stride + Taps + 3) / 4 * 4;
    float x[Pixels];
#pragma unroll
    for (int i = 0; i < Pixels; i += 4)
        *(float4 *)(x + i) = *(const float4 *)(patch + i);
#pragma unroll
    for (int t = 0; t < Taps; t++) {
        const float4 low = weight[t * STEM_FILTERS / 4],
                     high = weight[t * STEM_FILTERS / 4 + SIDE];
        const float f[SIDE] = {low.x,  low.y,  low.z,  low.w,
                               high.x, high.y, high.z, high.w};
#pragma unroll
        for (int m = 0; m < SIDE; m++)
#pragma unroll
            for (int n = 0; n < SIDE; n++)
                sum[m][n] = fmaf(x[m * Stride + t], f[n], sum[m][n]);
    }
}

template <int Taps, int Stride>
static __device__ inline void
stem_plain_multiply(float (&sum)[SIDE][SIDE], const stem_plain_job &job,
                    const stem_plain_lane &lane, const float *patch, const float *weight)
{
    const float4 *f = (const float4 *)weight + lane.filter / 4;
    patch += lane.row * job.stride_h * job.pitch + lane.column * Stride;
    for (int32_t c = 0; c < job.channels; c++, patch += job.patch_h * job.pitch)
        for (int32_t r = 0; r < job.kernel_h; r++, f += Taps * STEM_FILTERS / 4)
            stem_plain_row<Taps, Stride>(sum, patch + r * job.pitch, f);
}

/* One by one, where neighbours do not lie together or there are fewer. */
static __device__ inline void stem_plain_scatter(const stem_plain_job &job, float *y,
                                                 const float (&sum)[SIDE][SIDE],
                                                 int32_t windows, int32_t filters)
{
#pragma unroll
    for (int m = 0; m < SIDE; m++)
#pragma unroll
        for (int n = 0; n < SIDE; n++) {
            const int32_t filter = n < 4 ? n : STEM_FILTERS / 2 + n - 4;
            if (m < windows && filter < filters)
                y[m * job.y_window + filter * job.y_filter] = sum[m][n];
        }
}

static __device__ inline void stem_plain_store(const stem_plain_job &job, float *y,
                                               const float (&sum)[SIDE][SIDE],
                                               int32_t windows, int32_t filters)
{
    if (!job.filters_join && !job.windows_join)
        return stem_plain_scatter(job, y, sum, windows, filters);
#pragma unroll
    for (int half = 0; half < 2; half++, y += STEM_FILTERS / 2 * job.y_filter) {
        const int32_t left = filters - half * (STEM_FILTERS / 2), n = half * 4;
        if (job.filters_join && left > 0) {
#pragma unroll
            for (int m = 0; m < SIDE; m++)
                if (m < windows)
                    *(float4 *)(y + m * job.y_window) = make_float4(
                        sum[m][n], sum[m][n + 1], sum[m][n + 2], sum[m][n + 3]);
        } else if (!job.filters_join) {
#pragma unroll
            for (int i = 0; i < SIDE; i++) {
                const int m = i / 4 * 4, k = n + i % 4;
                if (m < windows && i % 4 < left)
                    *(float4 *)(y + m + i % 4 * job.y_filter) = make_float4(
                        sum[m][k], sum[m + 1][k], sum[m + 2][k], sum[m + 3][k]);
            }
        }
    }
}

template <int Taps, int Stride>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    stem_plain_kernel(const __grid_constant__ stem_plain_job job)
{
    extern __shared__ __align__(16) float shared[];
    __shared__ __align__(16) float scale[STEM_FILTERS], shift[STEM_FILTERS];
    float *const patch = shared + job.weights;
    const stem_plain_lane lane;
    const uint32_t first = blockIdx.y * STEM_FILTERS;
    const float *from = job.weight + (size_t)blockIdx.y * job.weights;
    for (int32_t i = threadIdx.x * 4; i < job.weights; i += THREADS * 4)
        copy_piece(shared_address(shared + i), from + i, true);
    if (threadIdx.x < STEM_FILTERS) {
        convolution_affine<1> affine;
        affine.load(job.bias, job.epilogue, first + threadIdx.x, job.filters);
        scale[threadIdx.x] = affine.scale[0];
        shift[threadIdx.x] = affine.shift[0];
    }
    for (uint32_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
        const stem_plain_place at(job, tile);
        float sum[SIDE][SIDE] = {}, by[SIDE], add[SIDE];
        stem_plain_load(job, at, Stride, shared_address(patch));
        copy_commit();
        copy_wait<0>();
        __syncthreads();
        stem_plain_multiply<Taps, Stride>(sum, job, lane, patch, shared);
        __syncthreads(); /* the patch has been read */
#pragma unroll
        for (int n = 0; n < SIDE; n++) {
            by[n] = scale[lane.filter + n % 4 + n / 4 * (STEM_FILTERS / 2)];
            add[n] = shift[lane.filter + n % 4 + n / 4 * (STEM_FILTERS / 2)];
        }
#pragma unroll
        for (int m = 0; m < SIDE; m++)
            stem_finish(job, sum[m], by, add);
        const int32_t p = at.p + lane.row, q = at.q + lane.column;
        const int64_t filter = first + lane.filter;
        if (p < job.out_h)
            stem_plain_store(job,
                             job.y + at.image * job.y_image + p * job.y_row +
                                 q * job.y_window + filter * job.y_filter,
                             sum, job.out_w - q, (int32_t)(job.filters - filter));
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

typedef void stem_plain_entry(const stem_plain_job job);

/* By width of the kernel and stride along rows, or NULL. */
static stem_plain_entry *stem_plain_entry_of(const struct window *w)
{
    static stem_plain_entry *const entries[][2] = {
        {stem_plain_kernel<3, 1>, stem_plain_kernel<3, 2>},
        {stem_plain_kernel<5, 1>, stem_plain_kernel<5, 2>},
        {stem_plain_kernel<7, 1>, stem_plain_kernel<7, 2>},
    };
    const int64_t taps = w->kernel[2], stride = w->stride[2];
    const bool known = taps >= 3 && taps <= 7 && taps % 2 && stride <= 2;
    return known ? entries[taps / 2 - 1][stride - 1] : NULL;
}

static int32_t stem_plain_patch_h(const struct window *w)
{
    return (int32_t)((TILE_H - 1) * w->stride[1] + w->kernel[1]);
}

/* Floats of a row of the patch: what its threads read, an odd number of 16 bytes so that
 * four places in it lie in different banks. */
static int32_t stem_plain_pitch(const struct window *w)
{
    const int32_t read = (int32_t)((SIDE - 1) * w->stride[2] + w->kernel[2] + 3) / 4 * 4;
    const int32_t all = (int32_t)w->stride[2] * SIDE + read;
    return all % 8 ? all : all + 4;
}

static int32_t stem_plain_weights(const convolution_state *s)
{
    return (int32_t)(s->in_c * s->w.kernel[1] * s->w.kernel[2]) * STEM_FILTERS;
}

static int32_t stem_plain_bytes(const convolution_state *s)
{
    return 4 * (stem_plain_weights(s) +
                (int32_t)s->in_c * stem_plain_patch_h(&s->w) * stem_plain_pitch(&s->w));
}

int stem_plain_accept(const strata_node *n)
{
    convolution_state s;
    const int status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    const char *why = stem_float_refusal(n, s);
    if (!why && !stem_plain_entry_of(&s.w))
        why = "takes kernels 3, 5 and 7 wide, at strides of 1 and 2 along rows";
    if (!why && stem_plain_bytes(&s) > MOST_SHARED)
        why = "its weights and a patch of the image do not fit in shared memory";
    return why ? STRATA_FAIL(n, STRATA_EUNSUPPORTED, "%s", why) : STRATA_OK;
}

struct stem_plain_pack_job {
    float *packed;       /* [block of 64 filters][c][tap][filter] */
    const float *weight; /* [filter][c][tap] */
    int32_t size, depth, filters;
};

static __global__ void stem_plain_pack_kernel(stem_plain_pack_job job)
{
    const int32_t i = (int32_t)(blockIdx.x * CUDA_BLOCK + threadIdx.x);
    if (i >= job.size)
        return;
    const int32_t at = i / STEM_FILTERS, depth = at % job.depth;
    const int32_t filter = at / job.depth * STEM_FILTERS + i % STEM_FILTERS;
    job.packed[i] = filter < job.filters ? job.weight[filter * job.depth + depth] : 0.0f;
}

int stem_plain_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    status =
        convolution_prepare(n, s, (const void *)stem_plain_entry_of(&s->w), MOST_SHARED);
    if (status != STRATA_OK)
        return status;
    stem_plain_pack_job job = {};
    job.depth = (int32_t)(s->in_c * s->w.kernel[1] * s->w.kernel[2]);
    job.filters = (int32_t)s->out_c;
    job.size = (job.filters + STEM_FILTERS - 1) / STEM_FILTERS * stem_plain_weights(s);
    return convolution_pack(n, s, job, sizeof(float), stem_plain_pack_kernel);
}

/* ---- running --------------------------------------------------------------------------
 */

int stem_plain_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    stem_plain_job job = {};
    stem_float_fill(&job, r, 4);
    job.patch_h = stem_plain_patch_h(w);
    job.pitch = stem_plain_pitch(w);
    job.patch_w = divisor_of((TILE_W - 1) * w->stride[2] + w->kernel[2]);
    job.across = divisor_of((w->out[2] + TILE_W - 1) / TILE_W);
    job.down = divisor_of((w->out[1] + TILE_H - 1) / TILE_H);
    job.tiles = (uint32_t)r->in[0].dims[0] * job.across.d * job.down.d;
    job.weights = stem_plain_weights(s);
    const uint32_t most = (uint32_t)s->multiprocessors * BLOCKS;
    const dim3 grid(job.tiles < most ? job.tiles : most,
                    (job.filters + STEM_FILTERS - 1) / STEM_FILTERS);
    stem_plain_entry_of(w)<<<grid, THREADS, stem_plain_bytes(s), layer_stream(r)>>>(job);
    return layer_launched(r, "convolution stem_plain");
}
