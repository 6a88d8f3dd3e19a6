/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer on Hopper's tensor cores: an image of 1 to 4 channels in planes,
 * windows at every second pixel, to FP16 in channels-last order.
 *
 * A warpgroup makes 64 filters of one row of windows at a time and walks down the image.
 * It keeps the image's rows in a ring, two at a time: the next two are on their way while
 * the tensor cores work. Blocks share all rows of all images evenly.
 */
#include "plugins/convolution/cuda/stem_wgmma.cuh"

enum { BLOCKS = 3 }; /* of a multiprocessor */

/* Rows of windows from at.p to `last` of one strip. A row's sums are moved out while the
 * tensor cores make the next row's. */
template <typename T, class S>
static __device__ inline void
stem_walk(const stem_wgmma_job &job, const stem_strip<T> &at, int32_t last,
          const stem_tail &tail, const uint4 (&weight)[S::Steps], uint8_t *ring,
          uint32_t filter)
{
    const int32_t windows = min(S::Columns, job.out_w - at.q);
    uint8_t *stage = ring + RING * S::Pair, *other = stage + S::Stage;
    __half *y = job.y + filter +
                (((size_t)at.image * job.out_h + at.p) * job.out_w + at.q) * job.stored;
    stem_piece<T> next;
    float sum[S::Columns / 8][4];
    stem_fill<T, S>(job, at, ring, at.p);
    next.load(job, at, at.p + S::Pairs);
    publish_shared();
    __syncthreads();
    stem_multiply<S>(sum, weight, shared_address(ring), at.p);
    for (int32_t p = at.p; p < last; p++) {
        next.template store<S>(ring, p + S::Pairs);
        publish_shared();
        next.load(job, at, p + S::Pairs + 1);
        stem_wait(sum);
        tail.finish(job, sum);
        stem_stage(shared_address(stage), tail, sum);
        __syncthreads();
        if (p + 1 < last)
            stem_multiply<S>(sum, weight, shared_address(ring), p + 1);
        stem_write<S>(job, stage, y, windows, job.stored - filter);
        y += (size_t)job.out_w * job.stored;
        uint8_t *const used = stage;
        stage = other;
        other = used;
    }
}

template <typename T, class S>
static __global__ void __launch_bounds__(THREADS, BLOCKS)
    stem_wgmma_kernel(const __grid_constant__ stem_wgmma_job job)
{
    extern __shared__ __align__(128) uint8_t memory[];
    const uint32_t filter = blockIdx.y * FILTERS;
    const stem_tail tail(job, filter + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4);
    uint4 weight[S::Steps];
#pragma unroll
    for (int s = 0; s < S::Steps; s++)
        weight[s] =
            __ldg(job.weight + (blockIdx.y * S::Steps + s) * THREADS + threadIdx.x);
    uint32_t row = (uint32_t)((uint64_t)job.rows * blockIdx.x / gridDim.x);
    const uint32_t end = (uint32_t)((uint64_t)job.rows * (blockIdx.x + 1) / gridDim.x);
    while (row < end) {
        const stem_strip<T> at(job, row, S::Columns);
        const int32_t last = min(job.out_h, at.p + (int32_t)(end - row));
        stem_walk<T, S>(job, at, last, tail, weight, memory, filter);
        row += (uint32_t)(last - at.p);
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

/* A kernel of a shape, by dtype of the image: FP32, FP16. */
struct stem_launch {
    void (*kernel[2])(const stem_wgmma_job);
    int32_t columns, height, per_row, shared;
};

template <class S>
static const stem_launch launch_of = {
    .kernel = {stem_wgmma_kernel<float, S>, stem_wgmma_kernel<__half, S>},
    .columns = S::Columns,
    .height = S::Height,
    .per_row = S::PerRow,
    .shared = S::Shared,
};

/* Taps of a row from an even pixel on. */
static int64_t stem_taps(const struct window *w)
{
    return w->kernel[2] + w->begin[2] % 2;
}

/* The narrowest window that holds this one; columns of which fewer are in vain. */
static const stem_launch *stem_launch_for(const struct window *w)
{
    static const stem_launch *const all[2][2] = {
        {&launch_of<stem_shape<112, 7, 2>>, &launch_of<stem_shape<64, 7, 2>>},
        {&launch_of<stem_shape<112, 3, 1>>, &launch_of<stem_shape<64, 3, 1>>},
    };
    const int64_t wide = (w->out[2] + 111) / 112 * 112,
                  narrow = (w->out[2] + 63) / 64 * 64;
    return all[w->kernel[1] <= 3 && stem_taps(w) <= STEP][narrow < wide];
}

int stem_wgmma_accept(const strata_node *n)
{
    convolution_state s;
    int status = stem_accept(n);
    if (status == STRATA_OK)
        status = convolution_resolve(n, &s);
    if (status != STRATA_OK)
        return status;
    if (s.w.stride[1] != 2 || s.w.stride[2] != 2)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "takes strides of 2, not %lldx%lld",
                           (long long)s.w.stride[1], (long long)s.w.stride[2]);
    if (s.w.in[1] * s.w.in[2] > INT32_MAX / 4)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED, "an image of over 2^29 pixels");
    return STRATA_OK;
}

struct stem_wgmma_pack_job {
    __half *packed;
    const float *weight;                 /* [filter][c][kernel_h][kernel_w] */
    int32_t size, steps, per_row, shift; /* shift: of zeros before a row's first tap */
    int32_t channels, filters, kernel_h, kernel_w;
};

/* A thread of a product holds of rows g and g + 8 of its warp's 16, g = lane/4, depths
 * lane%4*2 and 8 on, two each. */
static __global__ void stem_wgmma_pack_kernel(stem_wgmma_pack_job job)
{
    const int32_t i = (int32_t)(blockIdx.x * CUDA_BLOCK + threadIdx.x);
    if (i >= job.size)
        return;
    const int32_t word = i % 8 / 2, thread = i / 8 % THREADS, lane = thread % 32;
    const int32_t step = i / (8 * THREADS) % job.steps;
    const int32_t block = i / (8 * THREADS * job.steps);
    const int32_t filter = block * FILTERS + thread / 32 * 16 + lane / 4 + word % 2 * 8;
    const int32_t depth = lane % 4 * 2 + i % 2 + word / 2 * 8;
    const int32_t c = depth % 4, row = step / job.per_row;
    const int32_t tap = step % job.per_row * STEP + depth / 4 - job.shift;
    const bool real = filter < job.filters && c < job.channels && row < job.kernel_h &&
                      tap >= 0 && tap < job.kernel_w;
    const int32_t from = (filter * job.channels + c) * job.kernel_h + row;
    job.packed[i] = __float2half_rn(real ? job.weight[from * job.kernel_w + tap] : 0.0f);
}

int stem_wgmma_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    const stem_launch *l = stem_launch_for(&s->w);
    status = convolution_prepare(
        n, s, (const void *)l->kernel[n->in[0].dtype == STRATA_FP16], l->shared);
    if (status != STRATA_OK)
        return status;
    stem_wgmma_pack_job job = {};
    job.per_row = l->per_row;
    job.steps = l->height * l->per_row;
    job.shift = (int32_t)(s->w.begin[2] % 2);
    job.channels = (int32_t)s->in_c;
    job.filters = (int32_t)s->out_c;
    job.kernel_h = (int32_t)s->w.kernel[1];
    job.kernel_w = (int32_t)s->w.kernel[2];
    job.size = (job.filters + FILTERS - 1) / FILTERS * job.steps * THREADS * 8;
    return convolution_pack(n, s, job, sizeof(__half), stem_wgmma_pack_kernel);
}

/* ---- running --------------------------------------------------------------------------
 */

static stem_wgmma_job stem_wgmma_job_of(const strata_run *r, const stem_launch *l)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const struct window *w = &s->w;
    stem_wgmma_job job = {};
    job.x = r->in[0].data;
    job.y = (__half *)r->out[0].data;
    job.weight = (const uint4 *)s->packed;
    job.bias = convolution_bias(r);
    job.epilogue = epilogue_of(r);
    job.bounds = convolution_bounds_of(job.epilogue);
    job.channels = (int32_t)s->in_c;
    job.height = (int32_t)w->in[1];
    job.width = (int32_t)w->in[2];
    job.out_h = (int32_t)w->out[1];
    job.out_w = (int32_t)w->out[2];
    job.begin_h = (int32_t)w->begin[1];
    job.begin_w = (int32_t)(w->begin[2] + w->begin[2] % 2);
    job.even = w->in[2] % 2 == 0 &&
               (uintptr_t)job.x % (2 * (r->in[0].dtype == STRATA_FP16 ? 2u : 4u)) == 0;
    job.filters = (uint32_t)s->out_c;
    job.stored = (uint32_t)stored_channels(&r->out[0]);
    job.across = (uint32_t)((w->out[2] + l->columns - 1) / l->columns);
    job.rows = (uint32_t)r->in[0].dims[0] * job.across * (uint32_t)job.out_h;
    return job;
}

int stem_wgmma_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const stem_launch *l = stem_launch_for(&s->w);
    const stem_wgmma_job job = stem_wgmma_job_of(r, l);
    const uint32_t most = (uint32_t)s->multiprocessors * BLOCKS;
    const dim3 grid(job.rows < most ? job.rows : most,
                    (job.filters + FILTERS - 1) / FILTERS);
    l->kernel[r->in[0].dtype ==
              STRATA_FP16]<<<grid, THREADS, l->shared, layer_stream(r)>>>(job);
    return layer_launched(r, "convolution stem_wgmma");
}
