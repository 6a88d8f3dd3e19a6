/* SPDX-License-Identifier: Apache-2.0
 *
 * Turned products: what a kernel's tile is, and how a block's shared memory is laid out.
 * turned.cuh is the kernel.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TURNED_TILE_CUH
#define PLUGINS_COMMON_PRODUCT_TURNED_TILE_CUH

#include "plugins/common/product/hopper_tile.cuh"
#include "plugins/common/product/turned_parts.cuh"

#define TURNED_EIGHT 1024 /* bytes of eight pixels of 64 channels */
#define TURNED_SUMS 2048  /* the same of their sums */

/* Of a tile's eights of pixels, those that one of `split` blocks finishes, at most. */
static __host__ __device__ constexpr int turned_part(int eights, int split)
{
    return (eights + split - 1) / split;
}

/* Groups times 64 channels by Columns pixels. */
template <typename T, int Groups_, int Columns_, int Stages_, bool Splits_, bool Pair_>
struct turned_tile {
    typedef T Element;
    static const int Groups = Groups_, Columns = Columns_, Stages = Stages_;
    static const bool Splits = Splits_, Pair = Pair_;
    static const int Threads = Groups * 128 + 32;
    static const int Rows = Groups * 64, Eights = Columns / 8;
    static const int ABytes = Rows * PRODUCT_ROW, BBytes = Columns * PRODUCT_ROW;
    static const int StageBytes = ABytes + BBytes;
    /* Of a warpgroup's results, or of the sums that it is sent. */
    static const int GroupBytes =
        Splits ? turned_part(Eights, 2) * TURNED_SUMS : Eights * TURNED_EIGHT;
    /* barriers, and room to begin at a multiple of 1024 */
    static const int Bytes = 2048 + Groups * GroupBytes + Stages * StageBytes;
    static_assert(sizeof(T) == 2 && Columns % 8 == 0, "matrices of 8 x 8");
    static_assert(!Pair || !Splits, "a cluster is for one of both");
    static_assert(Bytes <= 232448, "a block's shared memory");
};

struct turned_job : product_job { /* a: windows, b: weights */
    CUtensorMap narrow_a, narrow_b;
    int32_t last;   /* of the last piece of channels: steps of 16 that are multiplied */
    int32_t narrow; /* bytes of its rows in shared memory */
    int32_t box;    /* eights of pixels that are stored at a time */
};

template <class C>
struct turned_memory {
    uint32_t barriers, out, ring;

    __device__ inline turned_memory(uint8_t *memory)
    {
        barriers = (shared_address(memory) + 1023) / 1024 * 1024;
        out = barriers + 1024;
        ring = out + C::Groups * C::GroupBytes;
    }
    __device__ inline uint32_t full(int stage) const
    {
        return barriers + stage * 8;
    }
    __device__ inline uint32_t empty(int stage) const
    {
        return full(C::Stages + stage);
    }
    /* A warpgroup has been sent all sums; its panel holds the addend. */
    __device__ inline uint32_t joined(int group) const
    {
        return full(2 * C::Stages + group);
    }
    __device__ inline uint32_t addend(int group) const
    {
        return joined(C::Groups + group);
    }
    __device__ inline uint32_t a(int stage) const
    {
        return ring + stage * C::StageBytes;
    }
    __device__ inline uint32_t b(int stage) const
    {
        return a(stage) + C::ABytes;
    }
    /* Rows of pixels, 64 channels each; before that the sums that others send. */
    __device__ inline uint32_t panel(int group) const
    {
        return out + group * C::GroupBytes;
    }
    __device__ inline void init(int32_t split) const
    {
        for (int s = 0; s < C::Stages; s++) {
            barrier_init(full(s), 1);
            barrier_init(empty(s), C::Groups * 4 * (C::Pair ? 2 : 1));
        }
        for (int g = 0; g < C::Groups; g++) {
            barrier_init(joined(g), 1);
            barrier_init(addend(g), 1);
        }
        barrier_publish();
        if (C::Splits && split > 1)
            for (int g = 0; g < C::Groups; g++)
                barrier_expect(joined(g),
                               (split - 1) * turned_part(C::Eights, split) * TURNED_SUMS);
    }
};

struct turned_place {
    int32_t channel, pixel; /* the tile's first */
};

/* Channels fastest: tiles of the same pixels are computed at the same time. */
template <class C>
static __device__ inline turned_place turned_place_of(const turned_job &job, int32_t unit,
                                                      uint32_t rank)
{
    const uint32_t tile = divide_by((uint32_t)unit, job.across);
    turned_place p;
    p.channel = (int32_t)((uint32_t)unit - tile * job.across.d) * C::Rows;
    p.pixel = (int32_t)(C::Pair ? tile * 2 + rank : tile) * C::Columns;
    return p;
}

#endif /* PLUGINS_COMMON_PRODUCT_TURNED_TILE_CUH */
