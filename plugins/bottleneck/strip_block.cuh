/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a block that goes along strips is, and what it asks for.
 */
#ifndef PLUGINS_BOTTLENECK_STRIP_BLOCK_CUH
#define PLUGINS_BOTTLENECK_STRIP_BLOCK_CUH

#include "plugins/bottleneck/strip_job.cuh"
#include "plugins/bottleneck/strip_tail.cuh"

#if __CUDA_ARCH__ >= 900
#define N_56 N_48 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define O_56(f, d) O_48(f, d), O_2(f, d, 12)
PRODUCT(__half, "f16", 112, 56, 56, 57, 58, 59, 60)

/* ---- where a block is ------------------------------------------------------------- */

enum strip_barrier {
    STRIP_LOADED = 0, /* weights of a stage each */
    STRIP_FULL = 3,   /* a slot of the ring each */
    STRIP_EMPTY = STRIP_FULL + STRIP_SLOTS,
    STRIP_REDUCED_FULL = STRIP_EMPTY + STRIP_SLOTS,
    STRIP_REDUCED_FREE,
    STRIP_CONVOLVED_FULL,
    STRIP_CONVOLVED_FREE,
    STRIP_BARRIERS
};

struct strip_memory {
    uint32_t shared, reduced, convolved, ring;
    float *biases;

    __device__ inline strip_memory(uint8_t *memory, const strip_job &job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        shared = shared_address(memory) + lost;
        biases = (float *)(memory + lost + STRIP_BIASES);
        reduced = weights(strip_matrices(job));
        convolved = reduced + STRIP_REDUCED;
        ring = convolved + STRIP_CONVOLVED;
    }
    __device__ inline uint32_t barrier(int which) const
    {
        return shared + which * 8;
    }
    __device__ inline uint32_t weights(int matrix) const
    {
        return shared + STRIP_WEIGHTS + matrix * BOTTLENECK_PIECE;
    }
    __device__ inline void open(void) const
    {
        for (int i = 0; i < STRIP_BARRIERS; i++)
            barrier_init(barrier(i), i == STRIP_CONVOLVED_FREE ? 8
                                     : i < STRIP_EMPTY         ? 1
                                                               : 4);
        barrier_publish();
    }
};

/* A step of a block, and where it is. */
struct strip_step {
    int32_t unit, step, steps;
    int32_t image, top, left;

    __device__ inline void enter(const strip_job &job)
    {
        const uint32_t of = divide_by((uint32_t)unit, job.of_image);
        const uint32_t within = (uint32_t)unit - of * job.of_image.d;
        const uint32_t segment = divide_by(within, job.strips);
        const int32_t first = (int32_t)segment * job.each;
        image = (int32_t)of;
        top = (int32_t)(within - segment * job.strips.d) * STRIP_HIGH;
        left = first * STRIP_WIDE;
        step = 0;
        steps = min(job.each, job.steps - first);
    }
    __device__ inline strip_step(const strip_job &job) : unit((int32_t)blockIdx.x)
    {
        enter(job);
    }
    __device__ inline bool more(const strip_job &job) const
    {
        return unit < job.units;
    }
    __device__ inline void advance(const strip_job &job)
    {
        left += STRIP_WIDE;
        if (++step < steps)
            return;
        unit += (int32_t)gridDim.x;
        enter(job);
    }
};

/* ---- the input -------------------------------------------------------------------- */

static __device__ inline void strip_load_weights(const strip_job &job,
                                                 const strip_memory &memory)
{
    const int32_t count[] = {job.panels, BOTTLENECK_WINDOWS, strip_last(job)};
    int32_t first = 0;
#pragma unroll
    for (int stage = 0; stage < 3; stage++) {
        const uint32_t bytes = count[stage] * BOTTLENECK_PIECE;
        barrier_expect(memory.barrier(STRIP_LOADED + stage), bytes);
        copy_piece(memory.weights(first), job.weights + first * BOTTLENECK_PIECE, bytes,
                   memory.barrier(STRIP_LOADED + stage));
        first += count[stage];
    }
}

/* A box that is to stay in L2, or not, as its policy says. */
static __device__ inline void copy_box_by(uint64_t policy, uint32_t to,
                                          const CUtensorMap *map, uint32_t barrier,
                                          int32_t x, int32_t column, int32_t row,
                                          int32_t image)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::"
        "bytes.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;\n" ::"r"(to),
        "l"(map), "r"(x), "r"(column), "r"(row), "r"(image), "r"(barrier), "l"(policy)
        : "memory");
}

/* The columns that a unit's first windows reach before those of its first step. */
static __device__ inline void strip_load_edge(const strip_job &job,
                                              const strip_memory &memory,
                                              const strip_step &s, strip_slot &slot)
{
    const uint32_t full = memory.barrier(STRIP_FULL + slot.at);
    barrier_wait(memory.barrier(STRIP_EMPTY + slot.at), slot.parity ^ 1);
    barrier_expect(full, job.panels * STRIP_EDGE_PANEL);
    for (int32_t p = 0; p < job.panels; p++)
        copy_box(memory.ring + slot.at * STRIP_SLOT + p * STRIP_EDGE_PANEL, &job.edge,
                 full, p * 64, s.left - 1, s.top - 1, s.image);
    slot.advance(job.slots);
}

/* Where a product of the input is added to the results, it stays in L2 until then. */
static __device__ inline void strip_load(const strip_job &job, const strip_memory &memory)
{
    const uint64_t again = strip_again(job.large && job.crosses);
    strip_slot slot;
    strip_load_weights(job, memory);
    wait_for_previous();
    for (strip_step s(job); s.more(job); s.advance(job)) {
        if (s.step == 0)
            strip_load_edge(job, memory, s, slot);
        for (int32_t p = 0; p < job.panels; p++, slot.advance(job.slots)) {
            const uint32_t full = memory.barrier(STRIP_FULL + slot.at);
            barrier_wait(memory.barrier(STRIP_EMPTY + slot.at), slot.parity ^ 1);
            barrier_expect(full, STRIP_SLOT);
            copy_box_by(again, memory.ring + slot.at * STRIP_SLOT, &job.step, full,
                        p * 64, s.left + 1, s.top - 1, s.image);
        }
    }
}
#endif

#endif /* PLUGINS_BOTTLENECK_STRIP_BLOCK_CUH */
