/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention on Hopper's tensor cores, what a block does with 64 queries a warpgroup of
 * one head. Tiles of keys are walked from the last to the first, for the last ones are
 * those that causal masks cut. The scores of a tile are made while the outputs of the
 * tile before are summed; P, rounded, goes from the registers of one product into the
 * other. Sums of a row are kept as the tiles go by, in units of exp2, and so are maxima,
 * except that a ring's tiles that all see are held against the maximum before them, and
 * only scores far above it make a new one.
 *
 * With a ring, warpgroup 0 asks the copy engine for tiles and the others take turns at
 * the tensor cores, so that the exponentials of one run beside the products of another.
 * Without, all tiles lie in shared memory at once, and several blocks share the units.
 */
#ifndef PLUGINS_ATTENTION_HOPPER_CUH
#define PLUGINS_ATTENTION_HOPPER_CUH

#include "plugins/attention/job.cuh"
#include "plugins/common/product/wgmma.cuh"

#define PANEL 64          /* elements: rows of 128 bytes in shared memory */
#define PANEL_ROW 128     /* bytes */
#define HOPPER_TILES 8    /* of keys, of a block without a ring */
#define MOST_BYTES 232448 /* of shared memory, of a block */

/* Stages: of the ring, or 0. Odd: scores go through a soft cap or a mask. One: there is
 * one tile of keys at most, so that no outputs are kept beside its scores. Shared: a
 * block's warpgroups have the same queries, and a share of the tiles each, one with One.
 */
template <typename Element_, int Dim_, int Keys_, int Groups_, int Stages_, int Blocks_,
          bool Odd_ = false, bool One_ = false, bool Shared_ = false>
struct hopper_tile {
    typedef Element_ Element;
    static const bool Ring = Stages_ > 0;
    static const int Dim = Dim_, Keys = Keys_, Groups = Groups_, Blocks = Blocks_;
    static const int Stages = Ring ? Stages_ : HOPPER_TILES;
    static const bool Odd = Odd_, One = One_, Shared = Shared_;
    static const int Rows = (Shared ? 1 : Groups) * 64, Threads = (Groups + Ring) * 128;
    static const int Panels = (Dim + PANEL - 1) / PANEL;
    static const int QBytes = Panels * Rows * PANEL_ROW, QStages = Ring ? 2 : 1;
    static const int MaskBytes =
        Odd ? Groups * 4 * Keys * 4 : 0; /* 4: warps, of a float */
    static const int KBytes = Panels * Keys * PANEL_ROW, StageBytes = 2 * KBytes;
    static const bool Across = false; /* a tile of V has keys along its rows */
    static const int Fixed = 2048 + MaskBytes + QStages * QBytes; /* bytes without K, V */
    static const int Producer = Groups == 3 ? 32 : 24; /* registers, also below */
    static const int Consumer = Groups == 3 ? 160 : 240;
    static_assert(KBytes % 1024 == 0, "swizzled tiles begin at multiples of 1024");
    static_assert(Dim % 32 == 0, "whole products");
    static_assert(!Ring || Producer + Groups * Consumer <=
                               65536 / Threads / 8 * 8 * (Groups + 1),
                  "warps ask for no more registers than the block was given");
    static_assert(!Odd || Keys == 128, "a lane loads 4 elements of a mask");
    static_assert(!Ring || !One, "a ring is for many tiles");
    static_assert(!Shared || !(Ring || Odd), "tiles lie in shared memory at once");
    static_assert(!Shared || Dim * 256 + 2048 <= StageBytes,
                  "outputs lie where tiles were");
    static_assert(!Ring || Fixed + Stages * StageBytes <= MOST_BYTES, "tiles fit");
    static_assert(Stages * 6 * 8 <= 512, "barriers fit");

    /* Of a tile of K (value 0) or V (value 1). */
    static __device__ inline uint32_t tile_bytes(int)
    {
        return KBytes;
    }
};

struct hopper_job {
    CUtensorMap q, k, v;
    struct attention_plan plan;
    const void *lengths, *mask;
    void *y;
    uint32_t tiles, heads; /* of queries; of all rows of the batch */
    uint32_t section;      /* heads whose K and V stay in L2 */
    /* by a section's parts, by its heads, by heads of one row of the batch */
    divisor by_section, by_heads, by_batch;
    uint32_t *counters;  /* parts taken beyond the first ones, blocks that ended */
    int32_t left, right; /* keys a query sees beside its place */
    float scale;         /* times log2(e); of odd scores without */
};

#define HOPPER_FAR (1 << 29) /* no place is that far from the others' */

/* A block's part: queries from `row` on, tiles of keys [first, last), of which those in
 * [whole, whole_end) are seen by all its queries. There are `keys`; query i is at place
 * i + offset. */
struct hopper_part {
    int32_t batch, head, row, first, last, whole, whole_end, keys, offset;
};

/* The keys [*begin, *end) that query i sees, as attention_bounds has it. */
static __device__ inline void hopper_bounds(const hopper_job &job,
                                            const hopper_part &part, int32_t i,
                                            int32_t *begin, int32_t *end)
{
    const int32_t place = i + part.offset;
    *begin = min(max(place - job.left, 0), part.keys);
    *end = max(min(place + job.right + 1, part.keys), *begin);
}

/* Sections of heads one after the other; in each, the last queries of all heads first:
 * with a causal mask these take longest. */
template <class C>
static __device__ inline hopper_part hopper_part_of(const hopper_job &job, uint32_t index)
{
    const struct attention_plan &p = job.plan;
    const uint32_t section = divide_by(index, job.by_section);
    const uint32_t begin = section * job.section;
    const uint32_t heads = min(job.section, job.heads - begin);
    const uint32_t rest = index - begin * job.tiles;
    /* the last section may have fewer */
    const uint32_t above =
        heads == job.section ? divide_by(rest, job.by_heads) : rest / heads;
    const uint32_t tile = job.tiles - 1 - above, head = begin + rest - above * heads;
    hopper_part part;
    part.batch = (int32_t)divide_by(head, job.by_batch);
    part.head = (int32_t)(head - (uint32_t)part.batch * job.by_batch.d);
    part.row = (int32_t)(tile * C::Rows);
    const attention_reach reach = attention_reach_at(&p, job.lengths, part.batch);
    part.keys = (int32_t)reach.keys;
    part.offset =
        (int32_t)max(-(int64_t)HOPPER_FAR, min((int64_t)HOPPER_FAR, reach.offset));
    int32_t low[2], high[2];
    hopper_bounds(job, part, part.row, &low[0], &high[0]);
    hopper_bounds(job, part, min(part.row + C::Rows, (int32_t)p.length) - 1, &low[1],
                  &high[1]);
    part.first = low[0] / C::Keys;
    part.last = max((max(high[0], high[1]) + C::Keys - 1) / C::Keys, part.first);
    part.whole = min(max((low[1] + C::Keys - 1) / C::Keys, part.first), part.last);
    part.whole_end = min(max(min(high[0], high[1]) / C::Keys, part.whole), part.last);
    return part;
}

/* A block's next part: who is done first takes it, for parts take unlike times. */
static __device__ inline uint32_t hopper_take(const hopper_job &job)
{
    return gridDim.x + atomicAdd(job.counters, 1);
}

/* The last block that has taken its parts leaves zeros for the next launch. */
static __device__ inline void hopper_end(const hopper_job &job)
{
    if (atomicAdd(job.counters + 1, 1) == gridDim.x - 1)
        job.counters[0] = job.counters[1] = 0;
}

/* ---- shared memory --------------------------------------------------------------------
 */

/* Addresses. In front of the tiles are the barriers, full and empty ones of each stage of
 * Q, K and V, the parts that Q's stages belong to, and the masks of a warp's tile. */
template <class C>
struct hopper_memory {
    uint32_t barriers, masks, q, stages;
    hopper_part *parts;

    __device__ inline hopper_memory(uint8_t *memory)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        barriers = shared_address(memory) + lost;
        parts = (hopper_part *)(memory + lost + 512);
        masks = barriers + 1024;
        q = masks + C::MaskBytes;
        stages = q + C::QStages * C::QBytes;
    }
    __device__ inline uint32_t full(int value, int stage) const
    {
        return barriers + ((value + 1) * 2 * C::Stages + stage) * 8;
    }
    __device__ inline uint32_t empty(int value, int stage) const
    {
        return full(value, stage) + C::Stages * 8;
    }
    __device__ inline uint32_t q_full(int stage) const
    {
        return full(-1, stage);
    }
    __device__ inline uint32_t q_empty(int stage) const
    {
        return empty(-1, stage);
    }
    __device__ inline uint32_t tile(int value, int stage) const
    {
        return stages + stage * C::StageBytes + value * C::KBytes;
    }
    /* A warp's lane says for all its threads that a tile was read: what read it, wgmma,
     * is the warp's. A stage of Q is read, and written, by threads, with its part. */
    __device__ inline void init(void) const
    {
        for (int value = -1; value < 2; value++)
            for (int s = 0; s < C::Stages; s++) {
                barrier_init(full(value, s), 1);
                barrier_init(empty(value, s), C::Groups * (value < 0 ? 128 : 4));
            }
        barrier_publish();
    }
};

/* A place in a ring of N stages; parity of the round. */
template <int N>
struct hopper_stage {
    int at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(void)
    {
        if (++at == N) {
            at = 0;
            parity ^= 1;
        }
    }
};

/* ---- the producer ---------------------------------------------------------------------
 */

/* Asks for what the consumers will need, part after part. */
template <class C>
struct hopper_producer {
    const hopper_job &job;
    const hopper_memory<C> &memory;
    hopper_stage<C::QStages> q;
    hopper_stage<C::Stages> k, v;

    __device__ inline hopper_producer(const hopper_job &job,
                                      const hopper_memory<C> &memory)
        : job(job), memory(memory)
    {
    }

    __device__ inline void load_queries(const hopper_part &part)
    {
        const uint32_t barrier = memory.q_full(q.at);
        if (C::Ring)
            barrier_wait(memory.q_empty(q.at), q.parity ^ 1);
        if (C::Ring)
            memory.parts[q.at] = part;
        barrier_expect(barrier, C::QBytes);
        for (int p = 0; p < C::Panels; p++)
            copy_box(memory.q + q.at * C::QBytes + p * C::Rows * PANEL_ROW, &job.q,
                     barrier, p * PANEL, part.row, part.head, part.batch);
        q.advance();
    }

    /* Tells that there are no more parts. */
    __device__ inline void end(void)
    {
        barrier_wait(memory.q_empty(q.at), q.parity ^ 1);
        memory.parts[q.at].batch = -1;
        barrier_arrive(memory.q_full(q.at));
    }

    /* Tile of K (value 0) or V (value 1). */
    __device__ inline void load_tile(const hopper_part &part, int value,
                                     hopper_stage<C::Stages> &stage, int32_t tile)
    {
        const uint32_t barrier = memory.full(value, stage.at),
                       to = memory.tile(value, stage.at);
        const int32_t head = part.head / (int32_t)job.plan.group;
        if (C::Ring)
            barrier_wait(memory.empty(value, stage.at), stage.parity ^ 1);
        barrier_expect(barrier, C::tile_bytes(value));
        if (C::Across && value)
            copy_box(to, &job.v, barrier, tile * C::Keys, 0, head, part.batch);
        for (int p = 0; p < C::Panels && !(C::Across && value); p++)
            copy_box(to + p * C::Keys * PANEL_ROW, value ? &job.v : &job.k, barrier,
                     p * PANEL, tile * C::Keys, head, part.batch);
        stage.advance();
    }

    /* Asks for a part. The number of the next is asked for before the last tiles, so that
     * it is there in time. */
    __device__ inline uint32_t load(const hopper_part &part)
    {
        const int n = part.last - part.first;
        uint32_t next = 0;
        load_queries(part);
        for (int i = 0; i <= n; i++) {
            if (C::Ring && i == max(n - 3, 0))
                next = hopper_take(job);
            if (i < n)
                load_tile(part, 0, k, part.last - 1 - i);
            if (i > 0)
                load_tile(part, 1, v, part.last - i);
        }
        return next;
    }

    /* All the block's parts. */
    __device__ inline void run(void)
    {
        uint32_t next = blockIdx.x;
        while (next < job.tiles * job.heads)
            next = load(hopper_part_of<C>(job, next));
        end();
        hopper_end(job);
    }
};

#endif /* PLUGINS_ATTENTION_HOPPER_CUH */
