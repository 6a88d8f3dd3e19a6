/* SPDX-License-Identifier: Apache-2.0
 *
 * Products on Hopper's tensor cores: what a kernel's tile is, its part of the work, and
 * how a block's shared memory is laid out. hopper.cuh is the kernel.
 */
#ifndef PLUGINS_COMMON_PRODUCT_HOPPER_TILE_CUH
#define PLUGINS_COMMON_PRODUCT_HOPPER_TILE_CUH

#include "kernels/layer.cuh"
#include "plugins/common/product/wgmma.cuh"

#define PRODUCT_DEPTH 64 /* of K in halves: rows of 128 bytes in shared memory */
#define PRODUCT_ROW 128  /* bytes */
#define PRODUCT_STEP 32  /* bytes of a row that an instruction multiplies */
#define PRODUCT_CHUNK 32 /* columns that a warp finishes at a time */
#define PRODUCT_GROUP 8  /* row tiles one below the other before the next column */
#define PRODUCT_SPLIT 8  /* blocks of a cluster at most */
#define PRODUCT_TURN 1   /* named barriers: one of a warpgroup each, from there on */
#define PRODUCT_STORE 8  /* the same */

/* Kind: Element (of A and B), Sum, Result, Job, a product_job; Row, bytes of a piece of
 * K; Bias: a warpgroup keeps that of its columns in shared memory; Buffers: of its
 * results and addends, at most; store<tile>, what becomes of sums, and multiply(consumer,
 * sum, steps). */
template <class Kind_, int Parts_, int Columns_, int Groups_, int Stages_, bool Turns_,
          bool Pair_, bool Splits_, int Blocks_, bool Over_ = false>
struct product_tile {
    typedef Kind_ Kind;
    typedef typename Kind::Element Element;
    typedef typename Kind::Sum Sum;
    typedef typename Kind::Result Result;
    typedef typename Kind::Job Job;
    typedef typename Kind::template store<product_tile> Store;
    static const int Row = Kind::Row, Depth = Row / (int)sizeof(Element);
    static const int Parts = Parts_, Columns = Columns_, Groups = Groups_;
    static const int Stages = Stages_, Blocks = Blocks_;
    static const bool Turns = Turns_, Pair = Pair_, Splits = Splits_, Over = Over_;
    /* Registers are shared out: of a multiplying thread, of one that loads. */
    static const bool Wide = Parts * Columns >= 192 || Groups == 4;
    static const int Given = Groups == 2 ? 232 : Groups == 3 ? 160 : 112;
    static const int Kept = Groups == 2 ? 40 : 24;
    static const int Rows = (Turns ? 1 : Groups) * Parts * 64;
    static const int Threads = Groups * 128 + (Wide ? 128 : 32);
    static const int ABytes = Rows * Row, BBytes = Columns * Row;
    static const int StageBytes = ABytes + BBytes;
    static const int Size = (int)sizeof(Result);
    /* Columns stored at once: rows of 128 bytes, or of 64 or 32. */
    static const int Panel = Columns * Size % 128 == 0  ? 128 / Size
                             : Columns * Size % 64 == 0 ? 64 / Size
                                                        : 32 / Size;
    static const int PanelRow = Panel * Size, PanelBytes = 64 * PanelRow;
    static const int StoreBytes = Parts * 64 * Columns * Size; /* of a warpgroup */
    static const int BiasBytes =
        Kind::Bias ? (Groups * Columns * 4 + 1023) / 1024 * 1024 : 0;
    static const int SumPitch = Columns + 8; /* floats */
    static const int SumBytes = Splits ? Rows * SumPitch * 4 : 0;
    static const int Most = 232448; /* a block's shared memory */
    /* A warpgroup's, as far as there is room: the addend of its next tile comes while it
     * stores the last. */
    static const int Buffers =
        Splits || Over ||
                2048 + BiasBytes + 2 * Groups * StoreBytes + Stages * StageBytes > Most
            ? 1
            : Kind::Buffers;
    static const int PanelsBytes = Buffers * Groups * StoreBytes;
    /* Who splits a tile does not store panels. */
    static const int ResultBytes =
        ((SumBytes > PanelsBytes ? SumBytes : PanelsBytes) + 1023) / 1024 * 1024;
    static const int OutBytes = Over ? 0 : ResultBytes;
    /* barriers, and room to begin at a multiple of 1024 */
    static const int Extra = 2048 + BiasBytes + OutBytes;
    static const int Bytes = Extra + Stages * StageBytes;
    static_assert(Columns % 32 == 0, "whole chunks");
    static_assert(Groups <= PRODUCT_STORE - PRODUCT_TURN, "named barriers");
    static_assert(!Wide || (Groups * Given + Kept) * 128 <= 65536, "registers");
    static_assert(!Pair || Columns % 16 == 0, "halves of whole groups of 8 rows");
    static_assert(!Splits || !(Pair || Turns || Wide), "clusters share a tile's depth");
    static_assert(!Splits || Rows % PRODUCT_SPLIT == 0, "each joins as many rows");
    static_assert(Kind::Buffers <= 2, "room is counted for");
    static_assert(SumBytes <= Stages * StageBytes, "sums lie in the ring");
    static_assert(!Over || ResultBytes <= Stages * StageBytes, "results lie in the ring");
    static_assert(!Over || !(Turns || Splits), "a block has one tile, and all its depth");
    static_assert(Bytes <= Most, "a block's shared memory");
};

/* Of a convolution, whose A is made of windows of an input in channels-last order: rows
 * are output pixels, K is kernel elements by channels, each element's rounded up to whole
 * pieces. `a` then is a map of windows. */
struct product_window {
    int32_t on;               /* A is so */
    divisor pixels, width;    /* of an output image, of a row of it */
    divisor pieces, kernel_w; /* of K in an element; elements in a row of the kernel */
    int32_t stride_h, stride_w, begin_h, begin_w, dilation_h, dilation_w;
};

struct product_job {
    CUtensorMap a, b, d, c; /* d, c: panels of 64 rows of results, of the addend */
    product_window window;
    int32_t m, n, steps; /* pieces of K */
    int32_t real; /* columns that are more than pads, which are stored as 0; even */
    int32_t row_tiles, column_tiles;
    int32_t units;        /* tiles, or pairs of them, of all products of the batch */
    divisor each, across; /* units of one product; of PRODUCT_GROUP rows of them */
    divisor low;          /* rows of units of the last PRODUCT_GROUP */
    int32_t split;
    int32_t b_batches;         /* B has as many matrices as A: or 0, one for all */
    int32_t b_early;           /* nobody before this kernel writes B */
    int32_t plain;             /* results are sums, bias and addend alone */
    int32_t backwards;         /* the last tiles come first */
    const float *scale, *bias; /* of columns, or NULL; scale: in place of alpha */
    const void *addend;
    void *to;
    int64_t to_row, to_batch, addend_row, addend_batch; /* elements */
    float alpha, beta;
    activation_args activation;
};

/* ---- tiles ----------------------------------------------------------------------------
 */

struct product_place {
    int32_t row, column, batch; /* the tile's first */
    bool apart;                 /* a pair's tiles are beside each other */
};

/* Take a piece of K of a tile's A from where it lies: `step` is the same there. A job
 * whose A lies in several tensors, or depends on the columns, has a function of its own.
 */
template <class Take>
static __device__ inline void product_with_source(const product_job &job,
                                                  const product_place &, int32_t step,
                                                  const Take &take)
{
    take(job.a, job.window, step);
}

/* A panel of results, from that row and column on, to where it lies. A job whose rows lie
 * otherwise has a function of its own. */
static __device__ inline void product_put(const product_job &job, uint32_t panel,
                                          int32_t column, int32_t row, int32_t batch)
{
    store_matrix(&job.d, panel, column, row, batch);
}

/* The last of an odd number of row tiles makes pairs with itself. Of an odd number of
 * those one block has rows below all others, of which nothing is stored. */
template <class C>
static __device__ inline product_place product_place_last(const product_job &job,
                                                          int32_t column, int32_t batch)
{
    const bool none = column >= job.column_tiles;
    product_place p;
    p.row = (none ? job.row_tiles : job.row_tiles - 1) * C::Rows;
    p.column = none ? 0 : column * C::Columns;
    p.batch = batch;
    p.apart = true;
    return p;
}

template <class C>
static __device__ inline product_place product_place_of(const product_job &job,
                                                        int32_t unit, int32_t rank)
{
    if (job.backwards)
        unit = job.units - 1 - unit;
    const uint32_t units = C::Pair ? job.row_tiles / 2 : job.row_tiles;
    const uint32_t whole = units * job.column_tiles;
    const uint32_t batch = divide_by((uint32_t)unit, job.each);
    const uint32_t at = (uint32_t)unit - batch * job.each.d;
    if (C::Pair && at >= whole)
        return product_place_last<C>(job, (int32_t)(at - whole) * 2 + rank,
                                     (int32_t)batch);
    const uint32_t group = divide_by(at, job.across);
    const uint32_t rest = at - group * job.across.d;
    const uint32_t high = units - group * PRODUCT_GROUP; /* the last may be lower */
    const uint32_t column =
        high < PRODUCT_GROUP ? divide_by(rest, job.low) : rest / PRODUCT_GROUP;
    const uint32_t row = group * PRODUCT_GROUP + rest -
                         column * (high < PRODUCT_GROUP ? high : PRODUCT_GROUP);
    product_place p;
    p.row = (int32_t)(C::Pair ? row * 2 + rank : row) * C::Rows;
    p.column = (int32_t)column * C::Columns;
    p.batch = (int32_t)batch;
    p.apart = false;
    return p;
}

/* Of a store that needs nothing for its results but their sums. */
struct product_nothing {
    __device__ inline void load(const product_job &, int32_t, int32_t, int32_t)
    {
    }
};

/* The pieces of K that a block of a cluster has. */
struct product_share {
    int32_t begin, end;
};

/* Of a power of two, as blocks that share a tile's depth are. */
static __device__ inline int product_log(uint32_t x)
{
    return 31 - __clz((int)x);
}

static __device__ inline product_share product_share_of(const product_job &job,
                                                        uint32_t rank)
{
    const int log = product_log((uint32_t)job.split);
    const uint32_t steps = (uint32_t)job.steps;
    return {(int32_t)(steps * rank >> log), (int32_t)(steps * (rank + 1) >> log)};
}

/* ---- shared memory --------------------------------------------------------------------
 */

template <class C>
struct product_memory {
    uint32_t barriers, ring;
    uint32_t out; /* panels; or sums of all ranks, rows that this block stores */
    float *biases;

    __device__ inline product_memory(uint8_t *memory)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        barriers = shared_address(memory) + lost;
        biases = (float *)(memory + lost + 1024);
        out = barriers + 1024 + C::BiasBytes;
        ring = out + C::OutBytes;
    }
    __device__ inline uint32_t full(int stage) const
    {
        return barriers + stage * 8;
    }
    __device__ inline uint32_t empty(int stage) const
    {
        return full(C::Stages + stage);
    }
    __device__ inline uint32_t joined(void) const
    {
        return full(2 * C::Stages);
    }
    /* A warpgroup's panels hold its addend; have been stored. */
    __device__ inline uint32_t addend(int group, int buffer = 0) const
    {
        return full(2 * C::Stages + 1 + group * C::Buffers + buffer);
    }
    __device__ inline uint32_t stored(int group, int buffer = 0) const
    {
        return addend(C::Groups + group, buffer);
    }
    __device__ inline uint32_t a(int stage) const
    {
        return ring + stage * C::StageBytes;
    }
    __device__ inline uint32_t b(int stage) const
    {
        return a(stage) + C::ABytes;
    }
    /* Of a part's, then of the next one's. */
    __device__ inline uint32_t panel(int group, int panel, int buffer = 0) const
    {
        return out + (group * C::Buffers + buffer) * C::StoreBytes +
               panel * C::PanelBytes;
    }
    __device__ inline float *bias(int group) const
    {
        return biases + group * C::Columns;
    }
    __device__ inline void init(int32_t split) const
    {
        for (int s = 0; s < C::Stages; s++) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), (C::Turns ? 1 : C::Groups) * 4 * (C::Pair ? 2 : 1));
        }
        for (int g = 0; g < 2 * C::Groups * C::Buffers; g++)
            barrier_init(addend(0, g), 1);
        barrier_init(joined(), 1);
        barrier_publish();
        if (C::Splits && split > 1)
            barrier_expect(joined(),
                           (C::Rows - (C::Rows >> product_log((uint32_t)split))) *
                               C::Columns * 4);
    }
};

/* A place in the ring, and the parity of its round. */
template <class C>
struct product_stage {
    int32_t at = 0;
    uint32_t parity = 0;

    __device__ inline void advance(void)
    {
        if (++at == C::Stages) {
            at = 0;
            parity ^= 1;
        }
    }
    __device__ inline void skip(uint32_t steps)
    {
        const uint32_t to = at + steps;
        parity ^= to / C::Stages & 1;
        at = to % C::Stages;
    }
};

/* A producer's end, where other blocks tell this one what they have read: until they
 * have, for they tell it in shared memory that ends with the block. */
template <class C, class Memory>
static __device__ inline void product_drain(const Memory &memory, product_stage<C> stage)
{
    for (int i = 0; i < C::Stages; i++) {
        barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
        stage.advance();
    }
}

#endif /* PLUGINS_COMMON_PRODUCT_HOPPER_TILE_CUH */
