/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer on Hopper's tensor cores: an image of 1 to 4 channels in planes,
 * windows at every second pixel, to FP16 in channels-last order.
 *
 * A warpgroup makes 64 filters of one row of windows at a time and walks down the image.
 * It keeps the image's rows in a ring, two at a time: the next two are on their way while
 * the tensor cores work. Blocks share all rows of all images evenly.
 */
#include "plugins/convolution/cuda/stem/wgmma_host.cuh"

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
        stem_wait<0>(sum);
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
    stem_take<S>(weight, job.weight);
    launch_next();
    wait_for_previous();
    uint32_t row = (uint32_t)((uint64_t)job.rows * blockIdx.x / gridDim.x);
    const uint32_t end = (uint32_t)((uint64_t)job.rows * (blockIdx.x + 1) / gridDim.x);
    while (row < end) {
        const uint32_t tile = row / job.out_h, image = tile / job.across;
        const stem_strip<T> at(job, image, (int32_t)(row - tile * job.out_h),
                               (int32_t)(tile - image * job.across) * S::Columns);
        const int32_t last = min(job.out_h, at.p + (int32_t)(end - row));
        stem_walk<T, S>(job, at, last, tail, weight, memory, filter);
        row += (uint32_t)(last - at.p);
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

typedef stem_launch<stem_wgmma_job> launch;

template <class S>
static const launch launch_of = {{stem_wgmma_kernel<float, S>, stem_wgmma_kernel<__half, S>},
                                 stem_sizes_of<S>()};

/* The narrowest window that holds this one; columns of which fewer are in vain. */
static const launch *stem_launch_for(const struct window *w)
{
    static const launch *const all[2][2] = {
        {&launch_of<stem_shape<112, 7, 2>>, &launch_of<stem_shape<64, 7, 2>>},
        {&launch_of<stem_shape<112, 3, 1>>, &launch_of<stem_shape<64, 3, 1>>},
    };
    const int64_t wide = (w->out[2] + 111) / 112 * 112,
                  narrow = (w->out[2] + 63) / 64 * 64;
    return all[stem_is_small(w)][narrow < wide];
}

int stem_wgmma_accept(const strata_node *n)
{
    return stem_wgmma_check(n);
}

int stem_wgmma_setup(const strata_node *n, void *state)
{
    convolution_state *s = (convolution_state *)state;
    const int status = convolution_resolve(n, s);
    if (status != STRATA_OK)
        return status;
    const launch *l = stem_launch_for(&s->w);
    return stem_wgmma_prepare(n, s, l->sizes, (const void *)l->of(&n->in[0]));
}

/* ---- running --------------------------------------------------------------------------
 */

int stem_wgmma_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const launch *l = stem_launch_for(&s->w);
    stem_wgmma_job job = stem_wgmma_job_of(r, epilogue_of(r));
    const uint32_t most = (uint32_t)s->multiprocessors * BLOCKS;
    job.across = (uint32_t)((s->w.out[2] + l->sizes.columns - 1) / l->sizes.columns);
    job.rows = (uint32_t)r->in[0].dims[0] * job.across * (uint32_t)job.out_h;
    const dim3 grid(job.rows < most ? job.rows : most,
                    (job.filters + FILTERS - 1) / FILTERS);
    launch_overlapped(l->of(&r->in[0]), grid, dim3(THREADS), (size_t)l->sizes.shared,
                      layer_stream(r), job);
    return layer_launched(r, "convolution stem_wgmma");
}
