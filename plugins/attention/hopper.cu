/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores: FP16 and BF16, heads of up to 128 elements, keys in
 * one piece, any of causal, window and lengths. For long sequences with a ring of tiles,
 * for short ones with all of them at once.
 */
#include "plugins/attention/consumer.cuh"
#include "plugins/attention/launch.cuh"

template <class C>
static __global__ void __launch_bounds__(C::Threads, C::Blocks)
    hopper_kernel(const __grid_constant__ hopper_job job)
{
    extern __shared__ uint8_t shared[];
    const hopper_memory<C> memory(shared);
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        prefetch_map(&job.q);
        prefetch_map(&job.k);
        prefetch_map(&job.v);
        memory.init();
    }
    __syncthreads();
    hopper_consumer<C> one(job, memory, group);
    if (!C::Ring && !job.lengths) /* lengths may be what the kernel before writes */
        one.start(hopper_part_of<C>(job, blockIdx.x));
    wait_for_previous();
    launch_next();
    if constexpr (!C::Ring) {
        if (job.lengths)
            one.start(hopper_part_of<C>(job, blockIdx.x));
        if (threadIdx.x == 0)
            hopper_producer<C>(job, memory).load(one.part);
        one.run();
    } else if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(C::Producer));
        if (threadIdx.x == 0)
            hopper_producer<C>(job, memory).run();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(C::Consumer));
        hopper_consumer<C> consumer(job, memory, group - 1);
        if (group == C::Groups && C::Groups > 1)
            consumer.pass_turn();
        while (consumer.run())
            ;
    }
}

/* ---- launching ------------------------------------------------------------------------
 */

template <class C>
static const hopper_launch launch_of = {
    .kernel = (const void *)hopper_kernel<C>,
    .dim = C::Dim,
    .rows = C::Rows,
    .keys = C::Keys,
    .threads = C::Threads,
    .fixed = C::Fixed,
    .stage = C::StageBytes,
    .stages = C::Ring ? C::Stages : 0,
    .odd = C::Odd,
    .most = C::Ring     ? 0
            : !C::One   ? HOPPER_TILES
            : C::Shared ? C::Groups
                        : 1,
    .share = C::Shared ? C::Groups : 0,
};

static cudaError_t attention_hopper_as(const hopper_launch *l, const attention_job *a,
                                       uint32_t *counters, cudaStream_t stream)
{
    const struct attention_plan &p = a->plan;
    const bool present = a->present_k != NULL;
    const void *k = present ? a->present_k : a->k, *v = present ? a->present_v : a->v;
    hopper_job job;
    fill_job(&job, a, l, counters);
    if (!map_heads(&job.q, a->q, &p.q, p.q.dtype, p.dim, p.length, p.heads, p.batch,
                   l->rows, PANEL) ||
        !map_heads(&job.k, k, present ? &p.present_k : &p.k, p.q.dtype, p.dim, p.keys,
                   p.kv_heads, p.batch, l->keys, PANEL) ||
        !map_heads(&job.v, v, present ? &p.present_v : &p.v, p.q.dtype, p.v_dim, p.keys,
                   p.kv_heads, p.batch, l->keys, PANEL))
        return cudaErrorNotSupported;
    return launch_job(l, &job, stream);
}

/* ---- the choice -----------------------------------------------------------------------
 */

/* speed: TFLOP/s of long sequences. Of FP16 and BF16. */
struct hopper_choice {
    float speed;
    const hopper_launch *launch[2];
};

#define TILES(...)                                                                       \
    {                                                                                    \
        &launch_of<hopper_tile<__half, __VA_ARGS__>>,                                    \
            &launch_of<hopper_tile<__nv_bfloat16, __VA_ARGS__>>                          \
    }
/* Larger heads follow smaller ones; those without a ring come first. */
static const hopper_choice choices[] = {
    {.launch = TILES(64, 128, 2, 0, 1, false, true, true)},
    {.launch = TILES(64, 128, 3, 0, 1, false, true, true)},
    {.launch = TILES(64, 128, 1, 0, 3, false, true)},
    {.launch = TILES(64, 128, 1, 0, 3)},
    {.speed = 530, .launch = TILES(64, 96, 3, 4, 1)},
    {.speed = 460, .launch = TILES(64, 128, 2, 4, 1)},
    {.launch = TILES(96, 128, 1, 0, 2)},
    {.speed = 600, .launch = TILES(96, 64, 3, 4, 1)},
    {.launch = TILES(128, 128, 1, 0, 2)},
    {.speed = 690, .launch = TILES(128, 64, 3, 4, 1)},
    {.speed = 650, .launch = TILES(128, 128, 2, 2, 1)},
    {.launch = TILES(64, 128, 1, 0, 2, true)},
    {.speed = 400, .launch = TILES(64, 128, 2, 4, 1, true)},
    {.speed = 400, .launch = TILES(128, 128, 2, 2, 1, true)},
};

#define UNITS 132              /* multiprocessors */
#define SMALL_BYTES (75 << 10) /* three blocks of that on one */

static int64_t parts_of(const struct attention_plan *p, const hopper_launch *l)
{
    return p->batch * p->heads * ((p->length + l->rows - 1) / l->rows);
}

/* All keys at once, where several blocks fit side by side, or there are few. Warpgroups
 * share queries where each block has a multiprocessor. */
static bool fits_at_once(const struct attention_plan *p, const hopper_launch *l)
{
    const int64_t tiles = (p->keys + l->keys - 1) / l->keys;
    const int64_t most = parts_of(p, l) <= 2 * UNITS ? MOST_BYTES : SMALL_BYTES;
    if (l->share && (tiles < l->share || parts_of(p, l) > UNITS))
        return false;
    return tiles <= l->most && l->fixed + tiles * l->stage <= most;
}

/* The least time by rows that blocks compute one after the other, also those behind the
 * last query. */
static const hopper_launch *launch_for(const struct attention_plan *p)
{
    const int64_t dim = p->dim > p->v_dim ? p->dim : p->v_dim;
    const bool odd = p->mask.port >= 0 || p->softcap > 0;
    const hopper_launch *best = NULL;
    double least = INFINITY;
    for (const hopper_choice &c : choices) {
        const hopper_launch *l = c.launch[p->q.dtype == STRATA_BF16];
        if (l->odd != odd || l->dim < dim || (best && l->dim > best->dim))
            continue;
        if (!l->stages && fits_at_once(p, l))
            return l;
        const int64_t rounds = (parts_of(p, l) + UNITS - 1) / UNITS;
        const double time = l->stages ? rounds * l->rows / c.speed : INFINITY;
        if (time < least) {
            least = time;
            best = l;
        }
    }
    return best;
}

const char *attention_hopper_refuses(const struct attention_plan *p)
{
    if (p->past_k.port >= 0 && p->present_k.port < 0)
        return "wants the keys in one piece: takes a past only with a present";
    return p->scale > 0 ? NULL : "takes scales above 0";
}

cudaError_t attention_hopper(const attention_job *job, void *counters,
                             cudaStream_t stream)
{
    return attention_hopper_as(launch_for(&job->plan), job, (uint32_t *)counters, stream);
}
