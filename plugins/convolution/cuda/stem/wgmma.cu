/* SPDX-License-Identifier: Apache-2.0
 *
 * The first layer on Hopper's tensor cores: an image of 1 to 4 channels in planes,
 * windows at every second pixel, to FP16 in channels-last order.
 *
 * A warpgroup makes 64 filters of one row of windows at a time, or 32 of two, and walks
 * down the image. It keeps the image's rows in a ring, two at a time: the next two are on
 * their way while the tensor cores work. Blocks share all rows of all images evenly.
 */
#include "plugins/convolution/cuda/stem/wgmma_host.cuh"

enum { BLOCKS = 3 }; /* of a multiprocessor */

/* Rows of windows from at.p to `last` of one strip. Rows' sums are moved out while the
 * tensor cores make the next ones'. */
template <typename T, class S>
static __device__ inline void
stem_walk(const stem_wgmma_job &job, const stem_strip<T> &at, int32_t last,
          const stem_tail &tail, const uint4 (&weight)[S::Steps], uint8_t *ring,
          uint32_t filter)
{
    const int Down = S::Down;
    const int32_t windows = min(S::Columns, job.out_w - at.q);
    uint8_t *stage = ring + RING * S::Pair, *other = stage + S::Stage;
    __half *y = job.y + filter +
                (((size_t)at.image * job.out_h + at.p) * job.out_w + at.q) * job.stored;
    stem_piece<T> next[Down];
    float sum[S::Columns / 8][4];
    stem_fill<T, S>(job, at, ring, at.p);
    for (int i = 0; i < Down; i++)
        next[i].load(job, at, at.p + S::Pairs + i);
    publish_shared();
    __syncthreads();
    stem_multiply<S>(sum, weight, shared_address(ring), at.p);
    for (int32_t p = at.p; p < last; p += Down) {
        for (int i = 0; i < Down; i++)
            next[i].template store<S>(ring, p + S::Pairs + i);
        publish_shared();
        for (int i = 0; i < Down; i++)
            next[i].load(job, at, p + S::Pairs + Down + i);
        stem_wait<0>(sum);
        tail.finish(job, sum);
        stem_stage(shared_address(stage), tail, sum);
        __syncthreads();
        if (p + Down < last)
            stem_multiply<S>(sum, weight, shared_address(ring), p + Down);
        stem_write<S>(job, stage, y, windows, last - p, job.stored - filter);
        y += (size_t)Down * job.out_w * job.stored;
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
    const uint32_t filter = blockIdx.y * S::Filters;
    const stem_tail tail(job, filter + stem_filter<S>());
    uint4 weight[S::Steps];
    stem_take<S>(weight, job.weight);
    launch_next();
    wait_for_previous();
    uint32_t row = (uint32_t)((uint64_t)job.rows * blockIdx.x / gridDim.x);
    const uint32_t end = (uint32_t)((uint64_t)job.rows * (blockIdx.x + 1) / gridDim.x);
    while (row < end) {
        const uint32_t tile = row / job.high, image = tile / job.across;
        const uint32_t some = min(end - row, job.high - (row - tile * job.high));
        const stem_strip<T> at(job, image, (int32_t)(row - tile * job.high) * S::Down,
                               (int32_t)(tile - image * job.across) * S::Columns);
        const int32_t last = min(job.out_h, at.p + (int32_t)some * S::Down);
        stem_walk<T, S>(job, at, last, tail, weight, memory, filter);
        row += some;
    }
}

/* ---- setting up -----------------------------------------------------------------------
 */

typedef stem_launch<stem_wgmma_job> launch;

template <class S>
static const launch launch_of = {
    {stem_wgmma_kernel<float, S>, stem_wgmma_kernel<__half, S>}, stem_sizes_of<S>()};

/* Windows of a row of tiles of so many columns. */
static int64_t stem_across(const struct window *w, int64_t columns)
{
    return (w->out[2] + columns - 1) / columns * columns;
}

/* The narrowest window that holds this one; columns of which fewer are in vain; two rows
 * at once where one would leave half of a product's filters unused. */
static const launch *stem_launch_for(const convolution_state *s)
{
    static const launch *const all[3][2] = {
        {&launch_of<stem_shape<112, 7, 2>>, &launch_of<stem_shape<64, 7, 2>>},
        {&launch_of<stem_shape<112, 3, 1>>, &launch_of<stem_shape<64, 3, 1>>},
        {&launch_of<stem_shape<112, 3, 1, 2>>, &launch_of<stem_shape<80, 3, 1, 2>>},
    };
    const bool small = stem_is_small(&s->w);
    const launch *const *l = all[small ? s->out_c <= FILTERS / 2 ? 2 : 1 : 0];
    return l[stem_across(&s->w, l[1]->sizes.columns) <
             stem_across(&s->w, l[0]->sizes.columns)];
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
    const launch *l = stem_launch_for(s);
    return stem_wgmma_prepare(n, s, l->sizes, (const void *)l->of(&n->in[0]));
}

/* ---- running --------------------------------------------------------------------------
 */

int stem_wgmma_run(const strata_run *r)
{
    const convolution_state *s = (const convolution_state *)r->state;
    const launch *l = stem_launch_for(s);
    stem_wgmma_job job = stem_wgmma_job_of(r, epilogue_of(r));
    const uint32_t most = (uint32_t)s->multiprocessors * BLOCKS;
    job.across = (uint32_t)((s->w.out[2] + l->sizes.columns - 1) / l->sizes.columns);
    job.high = (uint32_t)((s->w.out[1] + l->sizes.down - 1) / l->sizes.down);
    job.rows = (uint32_t)r->in[0].dims[0] * job.across * job.high;
    const dim3 grid(job.rows < most ? job.rows : most,
                    stem_blocks(job.filters, l->sizes));
    launch_overlapped(l->of(&r->in[0]), grid, dim3(THREADS), (size_t)l->sizes.shared,
                      layer_stream(r), job);
    return layer_launched(r, "convolution stem_wgmma");
}
