/* SPDX-License-Identifier: Apache-2.0
 *
 * SelfAttention on Hopper's tensor cores, what a block's shared memory holds and how it
 * is filled. A block has all tokens of a sequence, 128 at most, and the columns of one
 * head: 64 of its queries, as many of its keys and of its values. So nothing passes from
 * one block to another, and queries, keys and values are not written.
 *
 * A warp of its own asks the copy engine for pieces of the depth into a ring; two
 * warpgroups multiply them, half of the tokens each. With a pair two blocks of a cluster
 * have sequences beside each other and the same head, and load half of its columns each,
 * for both.
 */
#ifndef PLUGINS_SELF_ATTENTION_HOPPER_CUH
#define PLUGINS_SELF_ATTENTION_HOPPER_CUH

#include "kernels/layer.cuh"
#include "kernels/overlap.cuh"
#include "plugins/common/product/wgmma.cuh"

enum {
    SELF_DIM = 64,     /* elements of a head */
    SELF_TOKENS = 128, /* of a sequence at most */
    SELF_PARTS = 3,    /* queries, keys, values */
    SELF_DEPTH = 64,   /* elements of a piece of the depth */
    SELF_ROW = 128,    /* bytes of a row of such a piece, and of a head */
    SELF_BOX = 32,     /* columns of a part that are loaded at a time */
    SELF_BOXES = SELF_DIM / SELF_BOX,
    SELF_STEP = 32, /* bytes of a row that an instruction multiplies */
    SELF_GROUPS = 2,
};

/* Columns of the product: box by box, in each the parts one behind the other. */
template <typename T, bool Pair_>
struct self_tile {
    typedef T Element;
    static const bool Pair = Pair_;
    static const int Dim = SELF_DIM, Keys = SELF_TOKENS;
    static const int Columns = SELF_PARTS * SELF_DIM;
    static const int Stages = 4, Threads = SELF_GROUPS * 128 + 128;
    /* Registers are shared out: of a multiplying thread, of the warpgroup that loads. */
    static const int Given = 232, Kept = 40;
    static const int ABytes = SELF_TOKENS * SELF_ROW, BBytes = Columns * SELF_ROW;
    static const int BoxBytes = BBytes / SELF_BOXES;
    static const int StageBytes = ABytes + BBytes;
    static const int HeadBytes = SELF_TOKENS * SELF_ROW; /* keys, values, or outputs */
    static const int Bytes = 2048 + Stages * StageBytes + 3 * HeadBytes;
    static_assert(SELF_GROUPS * 64 == SELF_TOKENS, "a warpgroup has 64 tokens");
    static_assert(sizeof(T) * SELF_DEPTH == SELF_ROW, "rows of halves");
    static_assert(Bytes <= 232448, "a block's shared memory");
    static_assert((SELF_GROUPS * Given + Kept) * 128 <= 65536, "registers");
};

struct self_job {
    CUtensorMap a;     /* depth, tokens, sequences */
    CUtensorMap b;     /* depth, columns of a head, heads, parts */
    const float *bias; /* of all columns, or NULL */
    void *y;
    int64_t y_row, y_batch; /* elements */
    int32_t steps;          /* pieces of the depth */
    int32_t tokens, sequences, heads;
    int32_t units;       /* heads of all sequences, or of pairs of them */
    divisor across;      /* sequences, or pairs of them */
    int32_t left, right; /* keys that a query sees beside its place */
    int32_t open;        /* all queries see all SELF_TOKENS keys */
    float scale;         /* times log2(e) */
};

/* What a block has of a unit: a pair's last sequence may be past the last one. */
struct self_place {
    int32_t sequence, head;
};

template <class C>
static __device__ inline self_place self_place_of(const self_job &job, int32_t unit,
                                                  uint32_t rank)
{
    const uint32_t head = divide_by((uint32_t)unit, job.across);
    const uint32_t at = (uint32_t)unit - head * job.across.d;
    return {(int32_t)(C::Pair ? at * 2 + rank : at), (int32_t)head};
}

/* ---- shared memory --------------------------------------------------------------------
 */

/* Addresses. Barriers of each stage are in front, behind them the head's biases. */
template <class C>
struct self_memory {
    uint32_t barriers, keys, values, outputs, ring;
    float *biases;

    __device__ inline self_memory(uint8_t *memory)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        static_assert(2 * C::Stages * 8 <= 128 && 128 + C::Columns * 4 <= 1024, "room");
        barriers = shared_address(memory) + lost;
        biases = (float *)(memory + lost + 128);
        keys = barriers + 1024;
        values = keys + C::HeadBytes;
        outputs = values + C::HeadBytes;
        ring = outputs + C::HeadBytes;
    }
    __device__ inline uint32_t full(int stage) const
    {
        return barriers + stage * 8;
    }
    __device__ inline uint32_t empty(int stage) const
    {
        return full(C::Stages + stage);
    }
    __device__ inline uint32_t a(int stage) const
    {
        return ring + stage * C::StageBytes;
    }
    __device__ inline uint32_t b(int stage) const
    {
        return a(stage) + C::ABytes;
    }
    /* Pieces are there once their bytes are; free once each multiplying warp, of a pair
     * of both blocks, has told. */
    __device__ inline void init(void) const
    {
        for (int s = 0; s < C::Stages; s++) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), SELF_GROUPS * 4 * (C::Pair ? 2 : 1));
        }
        barrier_publish();
    }
};

/* A place in the ring, and the parity of its round. */
template <class C>
struct self_stage {
    int32_t at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(void)
    {
        if (++at == C::Stages) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* A box of four dims to the same places of both blocks of a pair. */
static __device__ inline void copy_box_to_both(uint32_t to, const CUtensorMap *map,
                                               uint32_t barrier, int32_t x, int32_t row,
                                               int32_t head)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::"
        "bytes.multicast::cluster [%0], [%1, {%2, %3, %4, %5}], [%6], %7;\n" ::"r"(to),
        "l"(map), "r"(x), "r"(row), "r"(head), "r"(0), "r"(barrier), "h"((uint16_t)3)
        : "memory");
}

/* ---- the producer ------------------------------------------------------------------ */

/* One thread. */
template <class C>
struct self_producer {
    const self_job &job;
    const self_memory<C> &memory;
    const uint32_t rank;
    self_stage<C> stage;

    __device__ inline self_producer(const self_job &job, const self_memory<C> &memory,
                                    uint32_t rank)
        : job(job), memory(memory), rank(rank)
    {
    }

    __device__ inline void load_a(const self_place &p, int32_t step, int32_t at) const
    {
        copy_matrix(memory.a(at), &job.a, memory.full(at), step * SELF_DEPTH, 0,
                    p.sequence);
    }

    __device__ inline void load_b(const self_place &p, int32_t step, int32_t at) const
    {
        if (C::Pair)
            copy_box_to_both(memory.b(at) + rank * C::BoxBytes, &job.b, memory.full(at),
                             step * SELF_DEPTH, (int32_t)rank * SELF_BOX, p.head);
        else
            for (int box = 0; box < SELF_BOXES; box++)
                copy_box(memory.b(at) + box * C::BoxBytes, &job.b, memory.full(at),
                         step * SELF_DEPTH, box * SELF_BOX, p.head, 0);
    }

    /* Pieces of the first unit that there is room for. */
    __device__ inline int32_t at_first(void) const
    {
        return min(job.steps, (int32_t)C::Stages);
    }

    /* What nobody writes of these is asked for while the kernel before still runs. */
    __device__ inline void begin(int32_t first) const
    {
        const self_place p = self_place_of<C>(job, first, rank);
        for (int32_t i = 0; i < at_first(); i++) {
            barrier_expect(memory.full(i), C::StageBytes);
            load_b(p, i, i);
        }
    }

    __device__ inline void load(const self_place &p, int32_t step)
    {
        for (; step < job.steps; step++) {
            barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
            barrier_expect(memory.full(stage.at), C::StageBytes);
            load_a(p, step, stage.at);
            load_b(p, step, stage.at);
            stage.advance();
        }
    }

    __device__ inline void run(int32_t first, int32_t by)
    {
        const self_place p = self_place_of<C>(job, first, rank);
        const int32_t n = at_first();
        wait_for_previous();
        for (int32_t i = 0; i < n; i++) {
            load_a(p, i, i);
            stage.advance();
        }
        load(p, n);
        for (int32_t unit = first + by; unit < job.units; unit += by)
            load(self_place_of<C>(job, unit, rank), 0);
        if (C::Pair) /* the other block tells in this one's memory what it has read */
            for (int i = 0; i < C::Stages; i++) {
                barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
                stage.advance();
            }
    }
};

#endif /* PLUGINS_SELF_ATTENTION_HOPPER_CUH */
