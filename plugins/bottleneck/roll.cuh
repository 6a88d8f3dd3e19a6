/* SPDX-License-Identifier: Apache-2.0
 *
 * The three stages of a bottleneck's strips whose weights come through rings.
 */
#ifndef PLUGINS_BOTTLENECK_ROLL_CUH
#define PLUGINS_BOTTLENECK_ROLL_CUH

#include "plugins/bottleneck/roll_block.cuh"

#if __CUDA_ARCH__ >= 900
#ifdef ROLL_STAMPS
#define ROLL_STAMP(job, s, i)                                                            \
    do {                                                                                 \
        if (threadIdx.x % 128 == 0 && (s).step + (s).first / (int)gridDim.x * 16 < 48)    \
            (job).stamps[(blockIdx.x * 48 + (s).step + (s).first / (int)gridDim.x * 16) * \
                             32 + (threadIdx.x / 128) * 8 + (i)] = clock64();            \
    } while (0)
#else
#define ROLL_STAMP(job, s, i)
#endif

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
                                        const roll_step &s)
{
    const roll_where at(job, s);
    const uint32_t pixel = threadIdx.x, row = divide_by(pixel, job.pitch);
    const int32_t h = at.row + (int32_t)row;
    const int32_t w = at.left - 1 + (int32_t)(pixel - row * job.pitch.d);
    if (pixel < 128)
        memory.masks(s.buffer())[pixel] = (int32_t)row < job.high &&
                                                (uint32_t)h < (uint32_t)job.height &&
                                                (uint32_t)w < (uint32_t)job.width
                                            ? 0xffff
                                            : 0;
}

/* The last two rows of the step before to where this step's first two are: a warp's own
 * channels. */
static __device__ inline void roll_keep_rows(const roll_job &job, uint32_t from,
                                             uint32_t to)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const uint32_t two = 2 * job.pitch.d, first = job.high * job.pitch.d;
    uint4 v[4];
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t pixel = min(lane / 2 + k * 16, two - 1);
        v[k] = load_four(from + bottleneck_place(first + pixel, warp * 2 + lane % 2));
    }
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t pixel = min(lane / 2 + k * 16, two - 1);
        store_four(to + bottleneck_place(pixel, warp * 2 + lane % 2), v[k]);
    }
    warp_sync();
}

/* A step's first N new pixels. */
template <int N>
static __device__ inline void roll_reduce_all(const roll_job &job,
                                              const roll_memory &memory,
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
    ROLL_STAMP(job, s, 1);
    ring.release(1);
    if (tells)
        barrier_arrive(memory.barrier(ROLL_INPUT_EMPTY + last));
    /* All of them have taken what was convolved in this buffer. */
    named_sync(NAME_ROLL_REDUCED, 256);
    const uint32_t panel = memory.between(s.buffer(), results);
    roll_keep_rows(job, memory.between(s.buffer() ^ 1, results), panel);
    const uint32_t *masks =
        (const uint32_t *)(memory.masks(s.buffer()) + strip_late(threadIdx.x % 4 * 2));
    const uint32_t first = 2 * job.pitch.d;
    strip_keep(
        sum, job.reduced, [&](int n) { return masks[n * 4]; },
        [&](int n) { return roll_place(panel, first + roll_pixel(n)); });
    publish_shared();
    roll_tell(memory.barrier(ROLL_REDUCED + s.buffer()));
}

static __device__ inline void roll_reduce(const roll_job &job, const roll_memory &memory,
                                          const roll_step &s, strip_slot &input,
                                          roll_ring &ring)
{
    const roll_where at(job, s);
    ROLL_STAMP(job, s, 0);
    roll_mask(job, memory, s);
    if (at.reduces_few(job))
        roll_reduce_all<ROLL_FEW>(job, memory, s, input, ring);
    else
        roll_reduce_all<ROLL_PIXELS>(job, memory, s, input, ring);
    ROLL_STAMP(job, s, 2);
}

/* ---- windows ---------------------------------------------------------------------- */

/* N pixels of a step's windows from `from` on, which then lie where the first were. */
template <int N>
static __device__ inline void roll_slide(const roll_job &job, const roll_memory &memory,
                                         const roll_step &s, roll_ring &ring,
                                         uint32_t from)
{
    const uint32_t results = threadIdx.x / 128 - 2, pixels = job.high * job.pitch.d;
    float sum[N / 8][4];
    strip_begin(sum, memory.biases() + 128 + results * 64);
    barrier_wait(memory.barrier(ROLL_REDUCED + s.buffer()), s.parity());
    ROLL_STAMP(job, s, 1);
#pragma unroll 1
    for (int32_t e = 0; e < 2 * BOTTLENECK_WINDOWS; e++) {
        const uint32_t element = e / 2, row = element / 3;
        const uint32_t pixel = from + row * job.pitch.d + element - row * 3;
        const uint32_t weights = ring.await();
        bottleneck_multiply<N>(
            sum, weights + results * BOTTLENECK_PIECE,
            memory.between(s.buffer(), e % 2) + pixel * BOTTLENECK_ROW, 1024, 1);
        ring.advance();
        multiply_wait<1>();
        if (e > 0)
            ring.release(2);
    }
    multiply_wait<0>();
    hold(sum);
    ROLL_STAMP(job, s, 2);
    ring.release(1);
    named_sync(NAME_ROLL_SLID, 256);
    const uint32_t panel = memory.between(s.buffer(), results);
    const uint32_t nowhere = memory.shared + ROLL_NOWHERE;
    strip_keep(
        sum, job.convolved, [](int) { return ~0u; },
        [&](int n) {
            const uint32_t pixel = roll_pixel(n);
            return pixel < pixels ? roll_place(panel, pixel)
                                  : roll_place(nowhere, pixel % 8);
        });
    roll_tell(memory.barrier(ROLL_CONVOLVED + s.buffer()));
}

static __device__ inline void roll_convolve(const roll_job &job,
                                            const roll_memory &memory)
{
    roll_ring ring = {memory, RING_WINDOWS};
    for (roll_step s; s.more(job); s.advance(job)) {
        const roll_where at(job, s);
        ROLL_STAMP(job, s, 0);
        if (at.convolves_few(job))
            roll_slide<ROLL_FEW>(job, memory, s, ring, at.before() * job.pitch.d);
        else
            roll_slide<ROLL_PIXELS>(job, memory, s, ring, 0);
        ROLL_STAMP(job, s, 3);
    }
}

/* ---- project ---------------------------------------------------------------------- */

/* Where a thread's results of a step begin, of each pixel, or far less than 0. */
static __device__ inline void roll_find(const roll_job &job, const roll_step &s,
                                        int32_t (&at)[STRIP_EACH])
{
    const uint32_t first = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    const roll_where in(job, s);
    const int32_t top = in.row - 1 + (in.convolves_few(job) ? in.before() : 0);
#pragma unroll
    for (uint32_t k = 0; k < STRIP_EACH; k++) {
        const uint32_t pixel = first + k * 8, row = divide_by(pixel, job.pitch);
        const int32_t column = (int32_t)(pixel - row * job.pitch.d);
        const int32_t h = top + (int32_t)row, w = in.left + column;
#ifdef ROLL_NOTHING
        at[k] = INT32_MIN / 2;
        continue;
#endif
        at[k] = (int32_t)row < job.high && column < job.tile_w && h >= in.top &&
                        h < in.bottom && w < job.width
                    ? ((in.image * job.height + h) * job.width + w) * job.results +
                          (int32_t)threadIdx.x % 4 * 8
                    : INT32_MIN / 2;
    }
}

/* What was convolved of a warp's sixteen pixels, 128 channels. */
static __device__ inline void roll_take(uint32_t (&x)[8][4], const roll_memory &memory,
                                        uint32_t buffer)
{
    const uint32_t lane = threadIdx.x % 32, pixel = threadIdx.x / 32 * 16 + lane % 16;
#pragma unroll
    for (int d = 0; d < 8; d++)
        load_matrices(x[d], memory.between(buffer, d / 4) +
                                bottleneck_place(pixel, d % 4 * 2 + lane / 16));
}

/* A part of 64 results. */
struct roll_part {
    const roll_job &job;
    const roll_memory &memory;
    const strip_cache &cache;
    roll_ring &ring;
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
    __device__ inline void fetch(uint4 (&added)[2][STRIP_EACH], int32_t part) const
    {
        strip_fetch(added, job, at, part, part * 64, cache);
    }
    __device__ inline void finish(const float (&sum)[8][4],
                                  const uint4 (&added)[2][STRIP_EACH], int32_t part) const
    {
        const int32_t to[STRIP_EACH] = {at[0] + part * 64, at[1] + part * 64};
        strip_finish(job, sum, added, to, part, cache);
    }
#ifdef SINGLE
    __device__ inline void all(uint4 (&added)[2][STRIP_EACH])
    {
#pragma unroll 1
        for (int32_t part = 0; part < job.parts; part++) {
            float sum[8][4];
            begin(sum, part);
            multiply_wait<0>();
            hold(sum);
            ring.release(1);
            finish(sum, added, part);
            if (part + 1 < job.parts)
                fetch(added, part + 1);
        }
    }
#endif
    /* So many parts: the products of one while what becomes of the one before is
     * stored. */
    template <int Parts>
    __device__ inline void some(uint4 (&added)[2][STRIP_EACH], int32_t first)
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
            finish(sum[k % 2], added, first + k);
            if (k + 1 < Parts)
                fetch(added, first + k + 1);
            else if (first + Parts < job.parts)
                fetch(added, first + Parts);
        }
    }
};

/* Of a part of the pixels that are not there. */
static __device__ inline void roll_skip(const roll_job &job, roll_ring &ring)
{
#pragma unroll 1
    for (int32_t part = 0; part < job.parts; part++) {
        ring.await();
        ring.advance();
        ring.release(1);
    }
}

static __device__ inline void roll_project(const roll_job &job, const roll_memory &memory,
                                           const strip_cache &cache, const roll_step &s,
                                           roll_ring &ring)
{
    if (threadIdx.x / 128 * ROLL_FEW > 0 && roll_where(job, s).convolves_few(job)) {
        barrier_wait(memory.barrier(ROLL_CONVOLVED + s.buffer()), s.parity());
        roll_skip(job, ring);
        return;
    }
    roll_part p = {job, memory, cache, ring};
    uint4 added[2][STRIP_EACH];
    ROLL_STAMP(job, s, 3);
    roll_find(job, s, p.at);
    p.fetch(added, 0);
    barrier_wait(memory.barrier(ROLL_CONVOLVED + s.buffer()), s.parity());
    ROLL_STAMP(job, s, 4);
    roll_take(p.x, memory, s.buffer());
#ifdef SINGLE
    p.all(added);
    return;
#endif
    int32_t part = 0;
#pragma unroll 1
    for (; part + 4 <= job.parts; part += 4)
        p.some<4>(added, part);
    if (part < job.parts)
        p.some<2>(added, part);
    ROLL_STAMP(job, s, 5);
}

/* ---- all of it -------------------------------------------------------------------- */

static __device__ inline void roll_work(const roll_job &job, const roll_memory &memory)
{
    const strip_cache cache(job.large);
    roll_ring ring = {memory, RING_OUTER};
    strip_slot input;
    roll_step s, before;
    wait_for_previous();
    for (;;) {
        const bool more = s.more(job);
        if (more)
            roll_reduce(job, memory, s, input, ring);
        if (s.count > 0)
            roll_project(job, memory, cache, before, ring);
        if (!more)
            return;
        before = s;
        s.advance(job);
    }
}

/* There are no more clusters than units for them. A block may not end while others tell it
 * of slots. */
static __global__ void __launch_bounds__(ROLL_THREADS, 1)
    roll_kernel(const __grid_constant__ roll_job job)
{
    extern __shared__ uint8_t roll_shared[];
    const roll_memory memory(roll_shared);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    launch_next();
    if (threadIdx.x == 0) {
        prefetch_map(&job.x);
        memory.open();
    }
    for (int c = (int)threadIdx.x; c < 256 + job.parts * 64; c += ROLL_THREADS)
        memory.biases()[c] = job.bias[c];
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    if (group == ROLL_GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)ROLL_KEPT));
        if (threadIdx.x == ROLL_GROUPS * 128)
            roll_load_input(job, memory);
        else if (threadIdx.x == ROLL_GROUPS * 128 + 32)
            roll_load_outer(job, memory);
        else if (threadIdx.x == ROLL_GROUPS * 128 + 64)
            roll_load_windows(job, memory);
    } else if (group > 1) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)ROLL_CONVOLVES));
        roll_convolve(job, memory);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"((int)ROLL_GIVEN));
        roll_work(job, memory);
    }
    __syncwarp();
    cluster_arrive();
    cluster_wait();
}
#else
static __global__ void roll_kernel(const __grid_constant__ roll_job)
{
}
#endif

#endif /* PLUGINS_BOTTLENECK_ROLL_CUH */
