/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread of the slab kernel makes at a time, an item: from a tile of the source,
 * as it lies in shared memory, 16 bytes of the destination or several of them that share
 * what is read. find() works out once where it all lies; move() makes the item of one
 * tile. Stores stay in the L2 cache, where neighbours complete their sectors.
 */
#ifndef KERNELS_REFORMAT_SLAB_CUH
#define KERNELS_REFORMAT_SLAB_CUH

#include "kernels/reformat/common.cuh"

#define ZEROS 32 /* bytes at the end of a stage that pads are read from */

/* ---- places in a tile ------------------------------------------------------------ */

/* Where a piece of 16 bytes lies among the eight that fill all banks. */
static __device__ inline uint32_t spread(const reformat_slab &j, uint32_t piece)
{
    return piece ^ ((piece >> 3) & j.spread[0]) ^ ((piece >> 6) & j.spread[1]);
}

/* Where an element of the destination's tile lies among the source's, in bytes. */
struct slab_element {
    uint32_t lane, pixel, block, image;
};

static __device__ inline slab_element element_at(const reformat_slab &j, uint32_t index)
{
    slab_element e;
    uint32_t rest = divide(index, j.to.lanes);
    e.lane = index - rest * j.to.lanes.d;
    index = divide(rest, j.pixels);
    e.pixel = rest - index * j.pixels.d;
    e.image = divide(index, j.to.blocks);
    e.block = index - e.image * j.to.blocks.d;
    return e;
}

/* Without branches: neighbours part ways here. */
static __device__ inline void next_element(const reformat_slab &j, slab_element *e)
{
    e->lane++;
    const bool pixel = e->lane == j.to.lanes.d;
    e->lane = pixel ? 0 : e->lane;
    e->pixel += pixel;
    const bool block = e->pixel == j.pixels.d;
    e->pixel = block ? 0 : e->pixel;
    e->block += block;
    const bool image = e->block == j.to.blocks.d;
    e->block = image ? 0 : e->block;
    e->image += image;
}

static __device__ inline uint32_t source_of(const reformat_slab &j, const slab_element &e,
                                            uint32_t size)
{
    const uint32_t c = e.block * j.to.lanes.d + e.lane;
    uint32_t block = 0, lane = c;
    if (j.from.blocks.d > 1) {
        block = divide(c, j.from.lanes);
        lane = c - block * j.from.lanes.d;
    }
    const uint32_t vector = (e.image * j.from.blocks.d + block) * j.pixels.d + e.pixel;
    const uint32_t byte = (vector * j.from.lanes.d + lane) * size;
    const uint32_t at = j.end ? byte : spread(j, byte / 16) * 16 + byte % 16;
    return c < j.channels ? at : j.stage - ZEROS;
}

/* Where the n-th piece of the destination lies, in bytes. */
static __device__ inline uint32_t piece_at(const reformat_slab &j, uint32_t n)
{
    const uint32_t row = divide(n, j.to.row);
    return row * (uint32_t)j.to.row_step + (n - row * j.to.row.d) * 16;
}

/* ---- SLAB_GATHER ----------------------------------------------------------------- */

template <typename To, typename From>
struct slab_gather {
    static const int E = 16 / sizeof(To);
    uint32_t from[E], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        slab_element e = element_at(j, n * E);
        to = piece_at(j, n);
#pragma unroll
        for (int i = 0; i < E; i++) {
            from[i] = source_of(j, e, sizeof(From));
            next_element(j, &e);
        }
    }

    __device__ inline void move(const reformat_slab &, const char *here, char *dst) const
    {
        pack<To, E> x;
#pragma unroll
        for (int i = 0; i < E; i++)
            x.v[i] = convert<To>(*(const From *)(here + from[i]));
        *(pack<To, E> *)(dst + to) = x;
    }
};

/* ---- halves, four pixels at a time ----------------------------------------------- */

#define LOWER 0x5410 /* halves of two words, as __byte_perm selects them */
#define UPPER 0x7632

/* Four pixels of two planes, as pairs. */
struct slab_zip {
    uint32_t from[2], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        slab_element e = element_at(j, n * 8);
        to = piece_at(j, n);
        for (e.lane = 0; e.lane < 2; e.lane++)
            from[e.lane] = source_of(j, e, 2);
    }

    __device__ inline void move(const reformat_slab &, const char *here, char *dst) const
    {
        const uint2 a = *(const uint2 *)(here + from[0]);
        const uint2 b = *(const uint2 *)(here + from[1]);
        *(uint4 *)(dst + to) =
            make_uint4(__byte_perm(a.x, b.x, LOWER), __byte_perm(a.x, b.x, UPPER),
                       __byte_perm(a.y, b.y, LOWER), __byte_perm(a.y, b.y, UPPER));
    }
};

/* Eight pixels of planes, the last four of which may be the next plane's, out of pairs.
 */
struct slab_unzip {
    uint32_t from[2], half[2], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        to = piece_at(j, n);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const uint32_t at = source_of(j, element_at(j, n * 8 + i * 4), 2);
            from[i] = at / 4 * 4;
            half[i] = at % 4 == 0 ? LOWER : UPPER;
        }
    }

    __device__ inline void move(const reformat_slab &, const char *here, char *dst) const
    {
        const uint4 a = *(const uint4 *)(here + from[0]);
        const uint4 b = *(const uint4 *)(here + from[1]);
        *(uint4 *)(dst + to) =
            make_uint4(__byte_perm(a.x, a.y, half[0]), __byte_perm(a.z, a.w, half[0]),
                       __byte_perm(b.x, b.y, half[1]), __byte_perm(b.z, b.w, half[1]));
    }
};

/* Four pixels of eight planes, as lanes. */
struct slab_weave {
    uint32_t from[8], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        const uint32_t quad = divide(n, j.eights), eight = n - quad * j.eights.d;
        to = quad * 4 * j.stride + eight * 16;
#pragma unroll
        for (uint32_t i = 0; i < 8; i++)
            from[i] = source_of(j, {eight * 8 + i, quad * 4, 0, 0}, 2);
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *dst) const
    {
        uint2 x[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            x[i] = *(const uint2 *)(here + from[i]);
#pragma unroll
        for (int p = 0; p < 4; p++) {
            pack<uint32_t, 4> y;
#pragma unroll
            for (int i = 0; i < 4; i++)
                y.v[i] = __byte_perm(p < 2 ? x[2 * i].x : x[2 * i].y,
                                     p < 2 ? x[2 * i + 1].x : x[2 * i + 1].y,
                                     p % 2 == 0 ? LOWER : UPPER);
            *(pack<uint32_t, 4> *)(dst + to + p * j.stride) = y;
        }
    }
};

/* Eight lanes, or four pairs, of four pixels, as planes: of one of a tile's parts. */
template <typename To, bool Pairs>
struct slab_unweave {
    uint32_t from[4], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n, uint32_t part)
    {
        const uint32_t eight = divide(n, j.quads), quad = n - eight * j.quads.d;
        const uint32_t c = (part * j.items / j.quads.d + eight) * 8;
        to = eight * 8 * j.stride + quad * 4 * sizeof(To);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            from[i] = source_of(
                j, {0, quad * 4 + (Pairs ? 0 : i), c + (Pairs ? 2 * i : 0), 0}, 2);
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *out) const
    {
        pack<__half, 8> x[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[i] = *(const pack<__half, 8> *)(here + from[i]);
#pragma unroll
        for (int l = 0; l < 8; l++) {
            pack<To, 4> y;
#pragma unroll
            for (int i = 0; i < 4; i++)
                y.v[i] = convert<To>(Pairs ? x[l / 2].v[i * 2 + l % 2] : x[i].v[l]);
            *(pack<To, 4> *)(out + to + l * j.stride) = y;
        }
    }
};

#endif /* KERNELS_REFORMAT_SLAB_CUH */
