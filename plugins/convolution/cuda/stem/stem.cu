/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer: an image of 1 to 4 channels in planes, read where it is, to FP16 in
 * channels-last order, on tensor cores (sm_80 and later). A block keeps the weights of 64
 * filters in shared memory and goes from tile to tile.
 */
#include "plugins/convolution/cuda/stem/stem.cuh"

enum { BLOCKS = 4, BLOCKS_AHEAD = 3 }; /* of a multiprocessor */

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
    return stem_check(n);
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
    status = convolution_prepare(n, s, (const void *)stem_entry_of(&n->in[0], ahead),
                                 72 * 1024);
    return status == STRATA_OK
               ? convolution_pack(n, s, job, sizeof(__half), stem_pack_kernel)
               : status;
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
