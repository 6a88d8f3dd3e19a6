/* SPDX-License-Identifier: Apache-2.0
 *
 * The three stages of a bottleneck's strips whose weights come through rings.
 */
#ifndef PLUGINS_BOTTLENECK_ROLL_CUH
#define PLUGINS_BOTTLENECK_ROLL_CUH

#include "plugins/bottleneck/roll_block.cuh"

#if __CUDA_ARCH__ >= 900
/* A warpgroup's place in its ring of weights. */
struct roll_ring {
    const roll_memory &memory;
    int ring;
    strip_slot slot;

    __device__ inline uint32_t await(void) const
    {
        barrier_wait(memory.barrier(ROLL_FULL + ring + slot.at), slot.parity);
        return memory.weights(ring + slot.at);
    }
    __device__ inline void advance(void)
    {
        slot.advance(ring_slots(ring));
    }
    /* `back`: how many slots before the one that is next. */
    __device__ inline void release(int back) const
    {
        const int at = slot.at - back;
        const uint32_t empty =
            memory.barrier(ROLL_EMPTY + ring + (at < 0 ? at + ring_slots(ring) : at));
        if (threadIdx.x % 32 < ROLL_CLUSTER)
            barrier_arrive_at(empty, threadIdx.x % 32);
    }
};

static __device__ inline void roll_tell(uint32_t barrier)
{
    warp_sync();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(barrier);
}

/* Where this lane's row of 8 channels goes that it stores, of two eights from n on. */
static __device__ inline uint32_t roll_place(uint32_t panel, uint32_t pixel)
{
    return panel + bottleneck_place(pixel, strip_lane_channels());
}

static __device__ inline uint32_t roll_pixel(int n)
{
    return (n + strip_lane_eight()) * 8 + threadIdx.x % 8;
}

/* ---- reduce ----------------------------------------------------------------------- */

/* Which of a step's new pixels are inside: of one thread, one. */
static __device__ inline void roll_mask(const roll_job &job, const roll_memory &memory,
                                        const roll_where &at)
{
    const uint32_t pixel = threadIdx.x, row = divide_by(pixel, job.pitch);
    const int32_t h = at.row + (int32_t)row;
    const int32_t w = at.left - 1 + (int32_t)(pixel - row * job.pitch.d);
    if (pixel < 128)
        memory.masks()[pixel] = (int32_t)row < job.high &&
                                        (uint32_t)h < (uint32_t)job.height &&
                                        (uint32_t)w < (uint32_t)job.width
                                    ? 0xffff
                                    : 0;
}

/* The last two rows of the step before to where this step's first two are: a warp's own
 * channels. */
static __device__ inline void roll_keep_rows(const roll_job &job, uint32_t panel)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const uint32_t two = 2 * job.pitch.d, first = job.high * job.pitch.d;
    uint4 v[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t pixel = min(lane / 2 + k * 16, two - 1);
        v[k] = load_four(panel + bottleneck_place(first + pixel, warp * 2 + lane % 2));
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t pixel = min(lane / 2 + k * 16, two - 1);
        store_four(panel + bottleneck_place(pixel, warp * 2 + lane % 2), v[k]);
    }
    warp_sync();
}

/* A step's first N new pixels. */
template <int N>
static __device__ inline void roll_reduce(const roll_job &job, const roll_memory &memory,
                                          const roll_step &s, strip_slot &input,
                                          roll_ring &ring)
{
    const uint32_t results = threadIdx.x / 128;
    const bool tells = threadIdx.x % 32 == 0;
    float sum[N / 8][4];
    int32_t last = -1;
    strip_begin(sum, memory.biases() + results * 64);
#pragma unroll 1
    for (int32_t p = 0; p < job.panels; p++) {
        const uint32_t weights = ring.await();
        barrier_wait(memory.barrier(ROLL_INPUT_FULL + input.at), input.parity);
        bottleneck_multiply<N>(sum, weights + results * BOTTLENECK_PIECE,
                               memory.input(input.at), 1024, 1);
        ring.advance();
        multiply_wait<1>();
        if (p > 0) {
            ring.release(2);
            if (tells)
                barrier_arrive(memory.barrier(ROLL_INPUT_EMPTY + last));
        }
        last = input.at;
        input.advance(ROLL_INPUT_SLOTS);
    }
    multiply_wait<0>();
    hold(sum);
    ring.release(1);
    if (tells)
        barrier_arrive(memory.barrier(ROLL_INPUT_EMPTY + last));
    barrier_wait(memory.barrier(ROLL_TAKEN), s.parity ^ 1);
    named_sync(NAME_ROLL_MASKED, 256);
    const uint32_t panel = memory.between(results);
    roll_keep_rows(job, panel);
    const uint32_t *masks =
        (const uint32_t *)(memory.masks() + strip_late(threadIdx.x % 4 * 2));
    const uint32_t first = 2 * job.pitch.d;
    strip_keep(
        sum, job.reduced, [&](int n) { return masks[n * 4]; },
        [&](int n) { return roll_place(panel, first + roll_pixel(n)); });
    publish_shared();
    named_sync(NAME_ROLL_REDUCED, 256);
}

/* ---- windows ---------------------------------------------------------------------- */

/* N pixels of a step's windows from `from` on. */
template <int N>
static __device__ inline void roll_slide(const roll_job &job, const roll_memory &memory,
                                         const roll_step &s, roll_ring &ring,
                                         uint32_t from)
{
    const uint32_t results = threadIdx.x / 128, pixels = job.high * job.pitch.d;
    float sum[N / 8][4];
    strip_begin(sum, memory.biases() + 128 + results * 64);
#pragma unroll 1
    for (int32_t e = 0; e < 2 * BOTTLENECK_WINDOWS; e++) {
        const uint32_t element = e / 2, row = element / 3;
        const uint32_t pixel = from + row * job.pitch.d + element - row * 3;
        const uint32_t weights = ring.await();
        bottleneck_multiply<N>(sum, weights + results * BOTTLENECK_PIECE,
                               memory.between(e % 2) + pixel * BOTTLENECK_ROW, 1024, 1);
        ring.advance();
        multiply_wait<1>();
        if (e > 0)
            ring.release(2);
    }
    multiply_wait<0>();
    hold(sum);
    ring.release(1);
    named_sync(NAME_ROLL_SLID, 256);
    const uint32_t panel = memory.between(results);
    const uint32_t nowhere = memory.shared + ROLL_NOWHERE;
    strip_keep(
        sum, job.convolved, [](int) { return ~0u; },
        [&](int n) {
            const uint32_t pixel = roll_pixel(n);
            return pixel < pixels ? roll_place(panel, pixel)
                                  : roll_place(nowhere, pixel % 8);
        });
    barrier_arrive(memory.barrier(ROLL_WHOLE));
}

static __device__ inline void roll_convolve(const roll_job &job,
                                            const roll_memory &memory)
{
    roll_ring ring = {memory, RING_INNER};
    strip_slot input;
    for (roll_step s; s.more(job); s.advance(job)) {
        const roll_where at(job, s);
        roll_mask(job, memory, at);
        if (at.reduces_few(job))
            roll_reduce<ROLL_FEW>(job, memory, s, input, ring);
        else
            roll_reduce<ROLL_PIXELS>(job, memory, s, input, ring);
        if (at.convolves_few(job))
            roll_slide<ROLL_FEW>(job, memory, s, ring, at.before() * job.pitch.d);
        else
            roll_slide<ROLL_PIXELS>(job, memory, s, ring, 0);
    }
}

/* ---- project ---------------------------------------------------------------------- */

/* Warps of those that project. */
static __device__ inline uint32_t roll_warp(void)
{
    return threadIdx.x / 32 - 8;
}

/* Where a thread's results of a step begin, of each pixel, or far less than 0. */
static __device__ inline void roll_find(const roll_job &job, const roll_step &s,
                                        int32_t (&at)[STRIP_EACH])
{
    const uint32_t first = roll_warp() * 16 + threadIdx.x % 32 / 4;
    const roll_where in(job, s);
#pragma unroll
    for (uint32_t k = 0; k < STRIP_EACH; k++) {
        const uint32_t pixel = first + k * 8, row = divide_by(pixel, job.pitch);
        const int32_t column = (int32_t)(pixel - row * job.pitch.d);
        const int32_t h = in.result(job) + (int32_t)row, w = in.left + column;
        at[k] = (int32_t)row < job.high && column < job.tile_w && h >= in.top &&
                        h < in.below(job) && w < job.width
                    ? ((in.image * job.height + h) * job.width + w) * job.results +
                          (int32_t)threadIdx.x % 4 * 8
                    : INT32_MIN / 2;
    }
}

/* What was convolved of a warp's sixteen pixels, 128 channels. */
static __device__ inline void roll_take(uint32_t (&x)[8][4], const roll_memory &memory)
{
    const uint32_t lane = threadIdx.x % 32, pixel = roll_warp() * 16 + lane % 16;
#pragma unroll
    for (int d = 0; d < 8; d++)
        load_matrices(x[d], memory.between(d / 4) +
                                bottleneck_place(pixel, d % 4 * 2 + lane / 16));
    barrier_arrive(memory.barrier(ROLL_TAKEN));
}

typedef uint32_t roll_words[2][STRIP_EACH][4]; /* results of a part's halves */

/* All are made before any is stored: so few registers are needed. */
static __device__ inline void hold_words(roll_words &words)
{
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < STRIP_EACH; k++) {
            uint32_t(&v)[4] = words[half][k];
            asm volatile("" : "+r"(v[0]), "+r"(v[1]), "+r"(v[2]), "+r"(v[3])::"memory");
        }
}

/* A part of 64 results after another. */
struct roll_part {
    const roll_job &job;
    const roll_memory &memory;
    const strip_cache cache;
    roll_ring ring;
    strip_slot slot; /* of what is added */
    int32_t at[STRIP_EACH];
    uint32_t x[8][4];

    __device__ inline void begin(float (&sum)[8][4], int32_t part)
    {
        const uint64_t from = bottleneck_rows(ring.await(), 1024);
        strip_begin_part(sum, memory.biases() + 256 + part * 64);
        multiply_begin();
#pragma unroll
        for (int d = 0; d < 8; d++)
            strip_product(sum, x[d], from + d / 4 * (BOTTLENECK_PIECE / 16) + d % 4 * 2);
        multiply_commit();
        ring.advance();
    }
    __device__ inline void fetch(uint4 (&added)[2][STRIP_EACH])
    {
        if (!job.addend)
            return;
        const uint32_t pixel = roll_warp() * 16 + threadIdx.x % 32 / 4;
        barrier_wait(memory.barrier(ROLL_ADDED_FULL + slot.at), slot.parity);
#pragma unroll
        for (uint32_t half = 0; half < 2; half++)
#pragma unroll
            for (uint32_t k = 0; k < STRIP_EACH; k++)
                added[half][k] = load_four(
                    memory.added(slot.at) +
                    bottleneck_place(pixel + k * 8, half * 4 + threadIdx.x % 4));
        publish_shared(); /* the copy engine writes behind these reads */
        roll_tell(memory.barrier(ROLL_ADDED_EMPTY + slot.at));
        slot.advance(ROLL_ADDED_SLOTS);
    }
    template <int Results>
    __device__ inline void add(roll_words &words, const float (&sum)[8][4],
                               const uint4 (&added)[2][STRIP_EACH]) const
    {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int k = 0; k < STRIP_EACH; k++)
                strip_eight<Results>(words[half][k], sum, added[half][k], half, k,
                                     job.projected);
    }
    __device__ inline void store(const roll_words &words, int32_t part) const
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const bool has = strip_has(job, part * 64 + half * 32);
#pragma unroll
            for (int k = 0; k < STRIP_EACH; k++)
                if (has && at[k] >= 0)
                    strip_write(job.y + at[k] + (part * 64 + half * 32), words[half][k],
                                cache.once);
        }
    }
    __device__ inline void finish(const float (&sum)[8][4], int32_t part)
    {
        uint4 added[2][STRIP_EACH] = {};
        roll_words words;
        fetch(added);
        if (job.projected.kind != STAGE_BOUNDS)
            add<STRIP_CURVED>(words, sum, added);
        else if (strip_is_positive(job.projected))
            add<STRIP_POSITIVE>(words, sum, added);
        else
            add<STRIP_BOUNDED>(words, sum, added);
        hold_words(words);
        store(words, part);
    }
    /* So many parts: the products of one while what becomes of the one before is
     * stored. */
    template <int Parts>
    __device__ inline void some(int32_t first)
    {
        float sum[2][8][4];
        begin(sum[0], first);
#pragma unroll
        for (int k = 0; k < Parts; k++) {
            if (k + 1 < Parts) {
                begin(sum[(k + 1) % 2], first + k + 1);
                multiply_wait<1>();
            } else {
                multiply_wait<0>();
            }
            hold(sum[k % 2]);
            ring.release(k + 1 < Parts ? 2 : 1);
            finish(sum[k % 2], first + k);
        }
    }
    /* Parts of pixels that are not there. */
    __device__ inline void skip(void)
    {
#pragma unroll 1
        for (int32_t part = 0; part < job.parts; part++) {
            ring.await();
            ring.advance();
            ring.release(1);
            if (!job.addend)
                continue;
            barrier_wait(memory.barrier(ROLL_ADDED_FULL + slot.at), slot.parity);
            roll_tell(memory.barrier(ROLL_ADDED_EMPTY + slot.at));
            slot.advance(ROLL_ADDED_SLOTS);
        }
    }
    __device__ inline void all(void)
    {
        int32_t part = 0;
#pragma unroll 1
        for (; part + 4 <= job.parts; part += 4)
            some<4>(part);
        if (part < job.parts)
            some<2>(part);
    }
};

static __device__ inline void roll_project(const roll_job &job, const roll_memory &memory,
                                           int half)
{
    roll_part p = {job, memory, strip_cache(job.large), {memory, RING_OUTER}};
    wait_for_previous();
    for (roll_step s; s.more(job); s.advance(job)) {
        const bool few = roll_where(job, s).convolves_few(job);
        roll_find(job, s, p.at);
        barrier_wait(memory.barrier(ROLL_WHOLE), s.parity);
        roll_take(p.x, memory);
        if (few && half > 0)
            p.skip();
        else
            p.all();
    }
}

/* ---- all of it -------------------------------------------------------------------- */

/* A thread each. */
static __device__ inline void roll_load(const roll_job &job, const roll_memory &memory)
{
    const uint32_t thread = threadIdx.x - ROLL_GROUPS * 128;
    if (thread == 0)
        roll_load_input(job, memory);
    else if (thread == 32)
        roll_load_weights(job, memory, RING_INNER);
    else if (thread == 64)
        roll_load_weights(job, memory, RING_OUTER);
    else if (thread == 96 && job.addend)
        roll_load_added(job, memory);
}

/* There are no more clusters than units for them. A block may not end while others tell
 * it of slots. */
static __global__ void __launch_bounds__(ROLL_THREADS, 1)
    roll_kernel(const __grid_constant__ roll_job job)
{
    extern __shared__ uint8_t roll_shared[];
    const roll_memory memory(roll_shared);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    launch_next();
    if (threadIdx.x == 0) {
        prefetch_map(&job.x);
        prefetch_map(&job.added);
        memory.open();
    }
    for (int c = (int)threadIdx.x; c < 256 + job.parts * 64; c += ROLL_THREADS)
        memory.biases()[c] = job.bias[c];
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    if (group == ROLL_GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)ROLL_KEPT));
        roll_load(job, memory);
    } else if (group < 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)ROLL_CONVOLVES));
        roll_convolve(job, memory);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"((int)ROLL_PROJECTS));
        roll_project(job, memory, group - 2);
    }
    __syncwarp();
    cluster_leave();
}
#else
static __global__ void roll_kernel(const __grid_constant__ roll_job)
{
}
#endif

#endif /* PLUGINS_BOTTLENECK_ROLL_CUH */
