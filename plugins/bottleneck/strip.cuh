/* SPDX-License-Identifier: Apache-2.0
 *
 * The three stages of a bottleneck's strips.
 */
#ifndef PLUGINS_BOTTLENECK_STRIP_CUH
#define PLUGINS_BOTTLENECK_STRIP_CUH

#include "plugins/bottleneck/strip_block.cuh"

#if __CUDA_ARCH__ >= 900
/* ---- reduce ----------------------------------------------------------------------- */

/* Which of the rows that a step's windows reach are inside the image, a bit each. */
static __device__ inline uint32_t strip_rows(const strip_job &job, const strip_step &s)
{
    const uint32_t below = (uint32_t)min(STRIP_REACH, job.height + 1 - s.top);
    return ((1u << below) - 1) & (s.top == 0 ? ~1u : ~0u);
}

/* Ones for a column's pixel that is inside and the next one's. */
static __device__ inline uint32_t strip_two(const strip_job &job, int32_t column)
{
    return ((uint32_t)column < (uint32_t)job.width ? 0xffffu : 0) |
           ((uint32_t)column + 1 < (uint32_t)job.width ? 0xffff0000u : 0);
}

/* The last two columns to the first two: a warp's own channels. */
static __device__ inline void strip_keep_columns(const strip_memory &memory)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    uint4 v[2];
#pragma unroll
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t piece = lane + k * 32;
        v[k] = load_four(memory.reduced + bottleneck_place(piece / 4 * STRIP_PITCH +
                                                               STRIP_WIDE + piece / 2 % 2,
                                                           warp * 2 + piece % 2));
    }
#pragma unroll
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t piece = lane + k * 32;
        store_four(memory.reduced +
                       bottleneck_place(piece / 4 * STRIP_PITCH + piece / 2 % 2,
                                        warp * 2 + piece % 2),
                   v[k]);
    }
    warp_sync();
}

static __device__ inline void strip_reduce_edge(const strip_job &job,
                                                const strip_memory &memory,
                                                const strip_step &s, strip_slot &slot,
                                                uint32_t parity)
{
    const uint32_t from = memory.ring + slot.at * STRIP_SLOT, lane = threadIdx.x % 32;
    const uint32_t rows = strip_rows(job, s), two = strip_two(job, s.left - 1);
    float sum[4][4];
    strip_begin(sum, memory.biases);
    barrier_wait(memory.barrier(STRIP_FULL + slot.at), slot.parity);
    for (int32_t p = 0; p < job.panels; p++)
        bottleneck_multiply<32>(sum, memory.weights(p), from + p * STRIP_EDGE_PANEL, 1024,
                                1);
    multiply_wait<0>();
    hold(sum);
    if (lane == 0)
        barrier_arrive(memory.barrier(STRIP_EMPTY + slot.at));
    slot.advance(job.slots);
    barrier_wait(memory.barrier(STRIP_REDUCED_FREE), parity ^ 1);
    strip_keep(
        sum, job.reduced, [&](int n) { return rows >> (n * 4 + lane % 4) & 1 ? two : 0; },
        [&](int n) {
            const uint32_t row = (n + strip_lane_eight()) * 4 + lane % 8 / 2;
            return memory.reduced +
                   bottleneck_place(row * STRIP_PITCH + lane % 2, strip_lane_channels());
        });
}

/* The products of a step; a slot is free once what follows it was begun and it has
 * ended. */
static __device__ inline void strip_multiply(float (&sum)[STRIP_REACH][4],
                                             const strip_job &job,
                                             const strip_memory &memory, strip_slot &slot)
{
    const bool tells = threadIdx.x % 32 == 0;
    int32_t last = -1;
    strip_begin(sum, memory.biases);
    for (int32_t p = 0; p < job.panels; p++, slot.advance(job.slots)) {
        barrier_wait(memory.barrier(STRIP_FULL + slot.at), slot.parity);
        bottleneck_multiply<128>(sum, memory.weights(p),
                                 memory.ring + slot.at * STRIP_SLOT, 1024, 1);
        multiply_wait<1>();
        if (tells && last >= 0)
            barrier_arrive(memory.barrier(STRIP_EMPTY + last));
        last = slot.at;
    }
    multiply_wait<0>();
    hold(sum);
    if (tells)
        barrier_arrive(memory.barrier(STRIP_EMPTY + last));
}

static __device__ inline void strip_reduce(const strip_job &job,
                                           const strip_memory &memory,
                                           const strip_step &s, strip_slot &slot,
                                           uint32_t parity)
{
    const uint32_t lane = threadIdx.x % 32, rows = strip_rows(job, s);
    const uint32_t two = strip_two(job, s.left + 1 + (int32_t)lane % 4 * 2);
    float sum[STRIP_REACH][4];
    if (s.step == 0)
        strip_reduce_edge(job, memory, s, slot, parity);
    strip_multiply(sum, job, memory, slot);
    barrier_wait(memory.barrier(STRIP_REDUCED_FREE), parity ^ 1);
    if (s.step > 0)
        strip_keep_columns(memory);
    strip_keep(
        sum, job.reduced, [&](int n) { return rows >> n & 1 ? two : 0; },
        [&](int n) {
            const uint32_t row = n + strip_lane_eight();
            return memory.reduced +
                   bottleneck_place(row * STRIP_PITCH + STRIP_EDGE + lane % 8,
                                    strip_lane_channels());
        });
    publish_shared();
    warp_sync();
    if (lane == 0)
        barrier_arrive(memory.barrier(STRIP_REDUCED_FULL));
}

/* ---- windows ---------------------------------------------------------------------- */

/* Nine matrices of weights times pixels, each from where its element begins. */
static __device__ inline void strip_slide(float (&sum)[STRIP_HIGH][4], uint32_t weights,
                                          uint32_t pixels)
{
    const uint64_t a = bottleneck_rows(strip_late(weights), 1024);
    const uint64_t b = bottleneck_rows(strip_late(pixels), STRIP_PITCH * BOTTLENECK_ROW);
    multiply_begin();
#pragma unroll
    for (int e = 0; e < BOTTLENECK_WINDOWS; e++)
#pragma unroll
        for (int d = 0; d < 4; d++)
            product<__half, STRIP_HIGH * STRIP_WIDE>::scores(
                sum, a + e * BOTTLENECK_PIECE / 16 + d * 2,
                b + (e / 3 * STRIP_PITCH + e % 3) * BOTTLENECK_ROW / 16 + d * 2, 1);
    multiply_commit();
}

static __device__ inline void strip_convolve(const strip_job &job,
                                             const strip_memory &memory, uint32_t parity)
{
    const uint32_t lane = threadIdx.x % 32;
    float sum[STRIP_HIGH][4];
    strip_begin(sum, memory.biases + 64);
    barrier_wait(memory.barrier(STRIP_REDUCED_FULL), parity);
    strip_slide(sum, memory.weights(job.panels), memory.reduced);
    multiply_wait<0>();
    hold(sum);
    if (lane == 0)
        barrier_arrive(memory.barrier(STRIP_REDUCED_FREE));
    barrier_wait(memory.barrier(STRIP_CONVOLVED_FREE), parity ^ 1);
    strip_keep(
        sum, job.convolved, [](int) { return ~0u; },
        [&](int n) {
            const uint32_t pixel = (n + strip_lane_eight()) * 8 + lane % 8;
            return memory.convolved + bottleneck_place(pixel, strip_lane_channels());
        });
    warp_sync();
    if (lane == 0)
        barrier_arrive(memory.barrier(STRIP_CONVOLVED_FULL));
}

/* The first two stages, by a warpgroup each; or, where x is added and so read again, both
 * by one, so that less comes between, and L2 has it still. */
template <bool Reduces, bool Convolves>
static __device__ inline void strip_between(const strip_job &job,
                                            const strip_memory &memory)
{
    strip_slot slot;
    uint32_t parity = 0;
    if (Reduces)
        barrier_wait(memory.barrier(STRIP_LOADED), 0);
    if (Convolves)
        barrier_wait(memory.barrier(STRIP_LOADED + 1), 0);
    for (strip_step s(job); s.more(job); s.advance(job), parity ^= 1) {
        if (Reduces)
            strip_reduce(job, memory, s, slot, parity);
        if (Convolves)
            strip_convolve(job, memory, parity);
    }
}

/* ---- project ---------------------------------------------------------------------- */

/* Where a thread's 16 bytes of a step begin, of each pixel, in a tensor of `pitch`
 * elements a pixel, or far less than 0. */
static __device__ inline void strip_find(const strip_job &job, const strip_step &s,
                                         int32_t pitch, int32_t (&at)[STRIP_EACH])
{
    const int32_t warp = (int32_t)threadIdx.x / 32 % 8; /* of both warpgroups */
    const int32_t lane = (int32_t)threadIdx.x % 32, w = s.left + lane / 4;
#pragma unroll
    for (int k = 0; k < STRIP_EACH; k++) {
        const int32_t row = warp * STRIP_EACH + k, h = s.top + row;
        at[k] = s.more(job) && row < STRIP_HIGH && h < job.height && w < job.width
                    ? ((s.image * job.height + h) * job.width + w) * pitch + lane % 4 * 8
                    : INT32_MIN / 2;
    }
}

/* What was convolved of a warp's sixteen pixels. */
static __device__ inline void strip_take(uint32_t (&x)[4][4], const strip_memory &memory)
{
    const uint32_t lane = threadIdx.x % 32, pixel = threadIdx.x / 32 % 8 * 16 + lane % 16;
#pragma unroll
    for (int d = 0; d < 4; d++) {
        x[d][0] = x[d][1] = x[d][2] = x[d][3] = 0;
        if (threadIdx.x / 32 % 8 < STRIP_HIGH / STRIP_EACH)
            load_matrices(x[d],
                          memory.convolved + bottleneck_place(pixel, d * 2 + lane / 16));
    }
}

/* x itself of the same pixels, as it lies in memory: strip_channel says in which order
 * its channels are a factor's depth. */
static __device__ inline void strip_cross(uint4 (&x)[2][STRIP_EACH], const strip_job &job,
                                          const strip_step &s, const strip_cache &cache)
{
    int32_t at[STRIP_EACH];
    strip_find(job, s, job.channels, at);
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int k = 0; k < STRIP_EACH; k++) {
            x[half][k] = make_uint4(0, 0, 0, 0);
            if (at[k] >= 0 && half * 32 + (int32_t)threadIdx.x % 4 * 8 < job.channels)
                x[half][k] = strip_read(job.x + at[k] + half * 32, cache.once);
        }
}

/* A part of 64 results, and `added`, of it, is asked for of the part after the next. */
struct strip_part {
    const strip_job &job;
    const strip_memory &memory;
    const strip_cache &cache;
    int32_t at[STRIP_EACH], next[STRIP_EACH]; /* of this step, of the next one */
    uint32_t x[4][4];

    __device__ inline void fetch(uint4 (&added)[2][STRIP_EACH], int32_t part,
                                 int32_t parts) const
    {
        if (part < parts)
            strip_fetch(added, job, at, part, part * 64, cache);
        else
            strip_fetch(added, job, next, part - parts, (part - parts) * 64, cache);
    }
    /* Of a part that is not there, the last one's. own: x, where it crosses. */
    template <bool Crosses>
    __device__ inline void begin(float (&sum)[8][4], const uint4 (&own)[2][STRIP_EACH],
                                 int32_t part) const
    {
        const int32_t real = min(part, job.parts - 1);
        const uint64_t weights =
            bottleneck_rows(memory.weights(job.panels + BOTTLENECK_WINDOWS + real), 1024);
        strip_begin_part(sum, memory.biases + 128 + real * 64);
        multiply_begin();
#pragma unroll
        for (int d = 0; d < 4; d++)
            strip_product(sum, x[d], weights + d * 2);
        if (Crosses) {
            const uint64_t more = weights + job.parts * (BOTTLENECK_PIECE / 16);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint4 &a = own[half][0], &b = own[half][1];
                const uint32_t first[4] = {a.x, b.x, a.y, b.y};
                const uint32_t second[4] = {a.z, b.z, a.w, b.w};
                strip_product(sum, first, more + half * 4);
                strip_product(sum, second, more + half * 4 + 2);
            }
        }
        multiply_commit();
    }
    __device__ inline void finish(const float (&sum)[8][4],
                                  const uint4 (&added)[2][STRIP_EACH], int32_t part) const
    {
        const int32_t to[STRIP_EACH] = {at[0] + part * 64, at[1] + part * 64};
        strip_finish(job, sum, added, to, part, cache);
    }
};

/* The products of a part while what becomes of the one before is stored. Where it
 * crosses, `added` is 0 and x is asked for a step ahead. */
template <int Parts, bool Crosses>
static __device__ inline void strip_project(const strip_job &job,
                                            const strip_memory &memory)
{
    const strip_cache cache(job.large);
    strip_step s(job);
    strip_part p = {job, memory, cache};
    uint32_t parity = 0;
    uint4 added[2][2][STRIP_EACH] = {}, own[2][STRIP_EACH] = {};
    wait_for_previous();
    strip_find(job, s, job.results, p.at);
    if (Crosses) {
        strip_cross(own, job, s, cache);
    } else {
        p.fetch(added[0], 0, Parts);
        p.fetch(added[1], 1, Parts);
    }
    barrier_wait(memory.barrier(STRIP_LOADED + 2), 0);
    for (; s.more(job); parity ^= 1) {
        float sum[2][8][4];
        uint4 coming[2][STRIP_EACH];
        s.advance(job);
        strip_find(job, s, job.results, p.next);
        if (Crosses)
            strip_cross(coming, job, s, cache);
        barrier_wait(memory.barrier(STRIP_CONVOLVED_FULL), parity);
        strip_take(p.x, memory);
        warp_sync();
        if (threadIdx.x % 32 == 0)
            barrier_arrive(memory.barrier(STRIP_CONVOLVED_FREE));
        p.begin<Crosses>(sum[0], own, 0);
#pragma unroll
        for (int part = 0; part < Parts; part++) {
            if (part + 1 < Parts) {
                p.begin<Crosses>(sum[(part + 1) % 2], own, part + 1);
                multiply_wait<1>();
            } else {
                multiply_wait<0>();
            }
            hold(sum[part % 2]);
            p.finish(sum[part % 2], added[part % 2], part);
            if (!Crosses)
                p.fetch(added[part % 2], part + 2, Parts);
        }
        p.at[0] = p.next[0], p.at[1] = p.next[1];
        if (Crosses)
            memcpy(own, coming, sizeof own);
    }
}

/* That of a job. */
template <bool Crosses>
static __device__ inline void strip_project_of(const strip_job &job,
                                               const strip_memory &memory)
{
    job.parts > 2 ? strip_project<4, Crosses>(job, memory)
                  : strip_project<2, Crosses>(job, memory);
}

/* ---- all of it -------------------------------------------------------------------- */

/* There are no more blocks than units. */
static __global__ void __launch_bounds__(STRIP_THREADS, 1)
    strip_kernel(const __grid_constant__ strip_job job)
{
    extern __shared__ uint8_t strip_shared[];
    const strip_memory memory(strip_shared, job);
    const int group = __shfl_sync(0xffffffffu, (int)threadIdx.x / 128, 0);
    launch_next();
    if (threadIdx.x == STRIP_GROUPS * 128) {
        prefetch_map(&job.step);
        prefetch_map(&job.edge);
        memory.open();
    } else if (threadIdx.x < 128) {
        for (int c = (int)threadIdx.x; c < 128 + job.parts * 64; c += 128)
            memory.biases[c] = job.bias[c];
    }
    __syncthreads();
    if (group == STRIP_GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)STRIP_KEPT));
        if (threadIdx.x == STRIP_GROUPS * 128)
            strip_load(job, memory);
        return;
    }
    if (group > 1) {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"((int)STRIP_GIVEN));
        job.crosses ? strip_project_of<true>(job, memory)
                    : strip_project_of<false>(job, memory);
    } else if (group == 0) {
        job.joined ? strip_between<true, true>(job, memory)
                   : strip_between<true, false>(job, memory);
    } else {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"((int)STRIP_CONVOLVES));
        if (!job.joined)
            strip_between<false, true>(job, memory);
    }
}
#else
static __global__ void strip_kernel(const __grid_constant__ strip_job)
{
}
#endif

#endif /* PLUGINS_BOTTLENECK_STRIP_CUH */
