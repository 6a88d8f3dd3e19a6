/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a block that goes down strips is, and what it asks for.
 */
#ifndef PLUGINS_BOTTLENECK_ROLL_BLOCK_CUH
#define PLUGINS_BOTTLENECK_ROLL_BLOCK_CUH

#include "plugins/bottleneck/roll_job.cuh"
#include "plugins/bottleneck/strip_block.cuh"

#if __CUDA_ARCH__ >= 900
#define N_60 N_48 ",%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59"
#define O_60(f, d) O_48(f, d), O_2(f, d, 12), O_1(f, d, 14)
PRODUCT(__half, "f16", 120, 60, 60, 61, 62, 63, 64)

enum roll_barrier {
    ROLL_INPUT_FULL = 0,
    ROLL_ADDED_FULL = ROLL_INPUT_FULL + ROLL_INPUT_SLOTS,
    ROLL_FULL = ROLL_ADDED_FULL + ROLL_ADDED_SLOTS, /* of both rings of weights */
    ROLL_EMPTY = ROLL_FULL + ROLL_SLOTS,            /* told by all blocks of a cluster */
    ROLL_INPUT_EMPTY = ROLL_EMPTY + ROLL_SLOTS,
    ROLL_ADDED_EMPTY = ROLL_INPUT_EMPTY + ROLL_INPUT_SLOTS,
    /* What was convolved is there, is taken; told by each thread. */
    ROLL_WHOLE = ROLL_ADDED_EMPTY + ROLL_ADDED_SLOTS,
    ROLL_TAKEN,
    ROLL_BARRIERS
};

enum { NAME_ROLL_MASKED = 1, NAME_ROLL_REDUCED, NAME_ROLL_SLID };

/* Where a ring's slots begin: weights of the first two stages; of the last one. */
enum { RING_INNER = 0, RING_OUTER = ROLL_INNER_SLOTS };

static __device__ inline int ring_slots(int ring)
{
    return ring == RING_INNER ? ROLL_INNER_SLOTS : ROLL_OUTER_SLOTS;
}

struct roll_memory {
    uint8_t *memory;
    uint32_t shared, rank; /* rank: of a cluster's blocks */

    __device__ inline roll_memory(uint8_t *from)
    {
        const uint32_t lost = (1024 - shared_address(from) % 1024) % 1024;
        shared = shared_address(from) + lost;
        memory = from + lost;
        rank = blockIdx.x % ROLL_CLUSTER;
    }
    __device__ inline uint32_t barrier(int which) const
    {
        return shared + which * 8;
    }
    __device__ inline uint16_t *masks(void) const
    {
        return (uint16_t *)(memory + ROLL_MASKS);
    }
    __device__ inline float *biases(void) const
    {
        return (float *)(memory + ROLL_BIASES);
    }
    __device__ inline uint32_t between(int panel) const
    {
        return shared + ROLL_BETWEEN + panel * ROLL_PANEL;
    }
    __device__ inline uint32_t input(int slot) const
    {
        return shared + ROLL_INPUT + slot * ROLL_INPUT_SLOT;
    }
    __device__ inline uint32_t added(int slot) const
    {
        return shared + ROLL_ADDED + slot * ROLL_INPUT_SLOT;
    }
    __device__ inline uint32_t weights(int slot) const
    {
        return shared + ROLL_RING + slot * ROLL_PIECE;
    }
    __device__ inline void open(void) const
    {
        for (int i = 0; i < ROLL_BARRIERS; i++)
            barrier_init(barrier(i), i < ROLL_EMPTY         ? 1
                                     : i < ROLL_INPUT_EMPTY ? 8 * ROLL_CLUSTER
                                     : i < ROLL_WHOLE       ? 8
                                                            : 256);
        barrier_publish();
    }
};

/* A step of a block. All blocks of a cluster go on as long as one has a unit. */
struct roll_step {
    int32_t first, step; /* of the cluster's units; of its unit's steps */
    uint32_t parity;     /* of the barriers that each step has */

    __device__ inline roll_step(void)
        : first((int32_t)(blockIdx.x - blockIdx.x % ROLL_CLUSTER)), step(0), parity(0)
    {
    }
    __device__ inline bool more(const roll_job &job) const
    {
        return first < job.units;
    }
    __device__ inline void advance(const roll_job &job)
    {
        parity ^= 1;
        if (++step < job.steps)
            return;
        step = 0;
        first += (int32_t)gridDim.x;
    }
};

/* Where it is. Outside of all images the input is 0. */
struct roll_where {
    int32_t image, left, row; /* row: the first new one */
    int32_t top, bottom;      /* of the unit; `bottom` 0: there is none */

    __device__ inline roll_where(const roll_job &job, const roll_step &s)
    {
        const uint32_t unit = (uint32_t)s.first + blockIdx.x % ROLL_CLUSTER;
        const uint32_t of = divide_by(unit, job.tiles);
        const uint32_t within = unit - of * job.tiles.d;
        const uint32_t down = divide_by(within, job.across);
        image = (int32_t)of;
        left = (int32_t)(within - down * job.across.d) * job.tile_w;
        top = (int32_t)down * job.rows;
        bottom = unit < (uint32_t)job.units ? min(top + job.rows, job.height) : 0;
        row = top - 1 + s.step * job.high;
    }
    /* New rows that are wanted, and as a sum's pixels: few ones, or all. */
    __device__ inline bool reduces_few(const roll_job &job) const
    {
        return (bottom + 1 - row) * (int32_t)job.pitch.d <= ROLL_FEW;
    }
    /* Rows of windows, which begin one above, that are before the unit. */
    __device__ inline int32_t before(void) const
    {
        return max(0, top + 1 - row);
    }
    __device__ inline bool convolves_few(const roll_job &job) const
    {
        return (min(job.high, bottom + 1 - row) - before()) * (int32_t)job.pitch.d <=
               ROLL_FEW;
    }
    /* What is projected, its first row. */
    __device__ inline int32_t result(const roll_job &job) const
    {
        return row - 1 + (convolves_few(job) ? before() : 0);
    }
    /* What is behind the last row: sums of few pixels have some of the next step's. */
    __device__ inline int32_t below(const roll_job &job) const
    {
        return min(bottom, row + job.high - 1);
    }
};

/* ---- loads, by a thread each ------------------------------------------------------- */

/* This block's share of each of `count` pieces from `first` on. */
static __device__ inline void roll_load_pieces(const roll_job &job,
                                               const roll_memory &memory, int ring,
                                               strip_slot &slot, int32_t first,
                                               int32_t count)
{
    const uint32_t share = ROLL_PIECE / ROLL_CLUSTER, mine = memory.rank * share;
    for (int32_t p = first; p < first + count; p++, slot.advance(ring_slots(ring))) {
        const uint32_t full = memory.barrier(ROLL_FULL + ring + slot.at);
        barrier_wait(memory.barrier(ROLL_EMPTY + ring + slot.at), slot.parity ^ 1);
        barrier_expect(full, ROLL_PIECE);
        copy_piece_to_all<ROLL_CLUSTER>(memory.weights(ring + slot.at) + mine,
                                        job.weights + p * ROLL_PIECE + mine, share, full);
    }
}

static __device__ inline void roll_load_weights(const roll_job &job,
                                                const roll_memory &memory, int ring)
{
    const int32_t inner = job.panels + 2 * BOTTLENECK_WINDOWS;
    strip_slot slot;
    for (roll_step s; s.more(job); s.advance(job))
        if (ring == RING_INNER)
            roll_load_pieces(job, memory, RING_INNER, slot, 0, inner);
        else
            roll_load_pieces(job, memory, RING_OUTER, slot, inner, job.parts);
}

/* What there are no slots for comes to L2 while the step before is convolved; where the
 * input is what is added, it stays there until then. */
static __device__ inline void roll_load_input(const roll_job &job,
                                              const roll_memory &memory)
{
    const uint64_t again = strip_again(job.large && job.again);
    const uint32_t bytes = job.high * job.pitch.d * BOTTLENECK_ROW;
    strip_slot slot;
    wait_for_previous();
    for (roll_step s; s.more(job); s.advance(job)) {
        const roll_where at(job, s);
        for (int32_t p = 0; p < job.panels; p++, slot.advance(ROLL_INPUT_SLOTS)) {
            const uint32_t full = memory.barrier(ROLL_INPUT_FULL + slot.at);
            barrier_wait(memory.barrier(ROLL_INPUT_EMPTY + slot.at), slot.parity ^ 1);
            barrier_expect(full, bytes);
            copy_box_by(again, memory.input(slot.at), &job.x, full, p * 64, at.left - 1,
                        at.row, at.image);
            for (int32_t q = ROLL_INPUT_SLOTS;
                 q < job.panels && p == ROLL_INPUT_SLOTS - 1; q++)
                fetch_box(&job.x, q * 64, at.left - 1, at.row, at.image);
        }
    }
}

/* Rows of the results, as they lie in what was convolved. */
static __device__ inline void roll_load_added(const roll_job &job,
                                              const roll_memory &memory)
{
    const strip_cache cache(job.large);
    const uint32_t bytes = job.high * job.pitch.d * BOTTLENECK_ROW;
    strip_slot slot;
    wait_for_previous();
    for (roll_step s; s.more(job); s.advance(job)) {
        const roll_where at(job, s);
        for (int32_t p = 0; p < job.parts; p++, slot.advance(ROLL_ADDED_SLOTS)) {
            const uint32_t full = memory.barrier(ROLL_ADDED_FULL + slot.at);
            barrier_wait(memory.barrier(ROLL_ADDED_EMPTY + slot.at), slot.parity ^ 1);
            barrier_expect(full, bytes);
            copy_box_by(cache.once, memory.added(slot.at), &job.added, full, p * 64,
                        at.left, at.result(job), at.image);
        }
    }
}
#endif

#endif /* PLUGINS_BOTTLENECK_ROLL_BLOCK_CUH */
