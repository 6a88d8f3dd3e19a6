/* SPDX-License-Identifier: Apache-2.0
 *
 * What a thread makes of bytes at a time: items as in slab.cuh. Between vectors of
 * channels words or 16 bytes move; between planes and vectors four words at a time are
 * transposed in registers where planes hold whole words, else byte by byte.
 */
#ifndef KERNELS_REFORMAT_BYTES_CUH
#define KERNELS_REFORMAT_BYTES_CUH

#include "kernels/reformat/slab.cuh"

/* Four words as four rows of four bytes: columns become words. */
static __device__ inline void transpose(uint32_t x[4])
{
    const uint32_t a = __byte_perm(x[0], x[1], 0x5140);
    const uint32_t b = __byte_perm(x[0], x[1], 0x7362);
    const uint32_t c = __byte_perm(x[2], x[3], 0x5140);
    const uint32_t d = __byte_perm(x[2], x[3], 0x7362);
    x[0] = __byte_perm(a, c, 0x5410);
    x[1] = __byte_perm(a, c, 0x7632);
    x[2] = __byte_perm(b, d, 0x5410);
    x[3] = __byte_perm(b, d, 0x7632);
}

/* ---- BYTES_WORDS, BYTES_PIECES: elements of one word, or of four ------------------- */

template <int Words>
struct bytes_vectors {
    static const int E = 4 / Words;
    uint32_t from[E], keep[4], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        slab_element e = element_at(j, n * E);
        to = piece_at(j, n);
#pragma unroll
        for (int i = 0; i < E; i++) {
            const bool last = e.block * j.to.lanes.d + e.lane == j.channels - 1;
            from[i] = source_of(j, e, 4 * Words);
#pragma unroll
            for (int w = 0; w < Words; w++)
                keep[i * Words + w] = last ? j.tail[w] : ~0u;
            next_element(j, &e);
        }
    }

    __device__ inline void move(const reformat_slab &, const char *here, char *dst) const
    {
        pack<uint32_t, 4> x;
#pragma unroll
        for (int i = 0; i < E; i++) {
            const pack<uint32_t, Words> y =
                *(const pack<uint32_t, Words> *)(here + from[i]);
#pragma unroll
            for (int w = 0; w < Words; w++)
                x.v[i * Words + w] = y.v[w] & keep[i * Words + w];
        }
        *(pack<uint32_t, 4> *)(dst + to) = x;
    }
};

/* ---- bytes of planes, four channels of a pixel at a time --------------------------- */

/* Where the first of a vector's four channels lies among a tile's planes, for the four
 * of a piece, and how many of them are no pads. */
struct bytes_quads {
    uint32_t at[4], valid[4];

    __device__ inline void find(const reformat_slab &j, const reformat_slab_side &vectors,
                                uint32_t planes, uint32_t piece)
    {
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t byte = piece * 16 + i * 4,
                           vector = divide(byte, vectors.lanes);
            const uint32_t row = divide(vector, j.pixels);
            const uint32_t image = divide(row, vectors.blocks);
            const uint32_t c = (row - image * vectors.blocks.d) * vectors.lanes.d + byte -
                               vector * vectors.lanes.d;
            valid[i] = min(4u, j.channels - min(c, j.channels));
            at[i] = valid[i] == 0 ? 0 : (image * planes + c - row) * j.pixels.d + vector;
        }
    }
};

/* The source lies as it is in memory; what is read for pads is dropped. */
struct bytes_gather {
    uint32_t from[4], keep[4], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        bytes_quads q;
        q.find(j, j.to, j.from.blocks.d, n);
        to = piece_at(j, n);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            from[i] = q.at[i];
            keep[i] = q.valid[i] == 4 ? ~0u : (1u << q.valid[i] * 8) - 1;
        }
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *dst) const
    {
        const uint8_t *source = (const uint8_t *)here;
        pack<uint32_t, 4> x;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const uint8_t *p = source + from[i];
            const uint32_t low = __byte_perm(p[0], p[j.pixels.d], 0x0040);
            const uint32_t high =
                __byte_perm(p[2 * j.pixels.d], p[3 * j.pixels.d], 0x0040);
            x.v[i] = __byte_perm(low, high, 0x5410) & keep[i];
        }
        *(pack<uint32_t, 4> *)(dst + to) = x;
    }
};

struct bytes_scatter {
    uint32_t from, to[4], valid[4];

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        bytes_quads q;
        q.find(j, j.from, j.to.blocks.d, n);
        from = (j.end ? n : spread(j, n)) * 16;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            to[i] = q.at[i];
            valid[i] = n * 16 + i * 4 < j.bytes ? q.valid[i] : 0;
        }
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *out) const
    {
        pack<uint32_t, 4> x;
        if (j.end) { /* at any word */
#pragma unroll
            for (int i = 0; i < 4; i++)
                x.v[i] = *(const uint32_t *)(here + from + i * 4);
        } else {
            x = *(const pack<uint32_t, 4> *)(here + from);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            char *p = out + to[i];
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (k < (int)valid[i])
                    p[k * j.pixels.d] = (char)(x.v[i] >> 8 * k);
        }
    }
};

/* ---- four pixels of sixteen channels ----------------------------------------------- */

/* Sixteen words of four bytes: byte p of each in y[p], in their order. */
static __device__ inline void transpose_words(pack<uint32_t, 4> (&y)[4], const char *here,
                                              const uint32_t (&from)[16])
{
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t x[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            x[k] = *(const uint32_t *)(here + from[i * 4 + k]);
        transpose(x);
#pragma unroll
        for (int p = 0; p < 4; p++)
            y[p].v[i] = x[p];
    }
}

/* Out: to a copy of the tile. */
template <bool Out>
struct bytes_weave {
    uint32_t from[16], to;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        const uint32_t rest = divide(n, j.eights), lane = (n - rest * j.eights.d) * 16;
        const uint32_t block = divide(rest, j.quads);
        const uint32_t pixel = (rest - block * j.quads.d) * 4;
        const uint32_t byte = (block * j.pixels.d + pixel) * j.to.lanes.d + lane;
        to = Out ? byte : piece_at(j, byte / 16);
#pragma unroll
        for (uint32_t i = 0; i < 16; i++)
            from[i] = source_of(j, {lane + i, pixel, block, 0}, 1);
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *dst) const
    {
        pack<uint32_t, 4> y[4]; /* of each pixel */
        transpose_words(y, here, from);
#pragma unroll
        for (int p = 0; p < 4; p++)
            *(pack<uint32_t, 4> *)(dst + to + p * j.stride) = y[p];
    }
};

/* Sixteen pixels of four lanes, as planes. */
struct bytes_comb {
    uint32_t from[16], to, planes;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        const uint32_t c = divide(n, j.eights) * 4, piece = n - c / 4 * j.eights.d;
        to = piece_at(j, c * j.eights.d + piece);
        planes = min(4u, j.channels - c);
#pragma unroll
        for (uint32_t i = 0; i < 16; i++)
            from[i] = source_of(j, {0, piece * 16 + i, c, 0}, 1);
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *dst) const
    {
        pack<uint32_t, 4> y[4]; /* of each plane */
        transpose_words(y, here, from);
#pragma unroll
        for (int p = 0; p < 4; p++)
            if (p < (int)planes)
                *(pack<uint32_t, 4> *)(dst + to + p * (uint32_t)j.to.row_step) = y[p];
    }
};

/* Lanes of a pixel, or (Vectors) four pixels of four channels, sixteen bytes at a time.
 */
template <bool Vectors>
struct bytes_unweave {
    uint32_t from[4], to, planes;

    __device__ inline void find(const reformat_slab &j, uint32_t n)
    {
        const uint32_t group = divide(n, j.quads), pixel = (n - group * j.quads.d) * 4;
        const uint32_t c = group * 16;
        to = c * j.stride + pixel;
        planes = min(16u, j.channels - c);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            from[i] = source_of(
                j, {0, pixel + (Vectors ? 0 : i), c + (Vectors ? 4 * i : 0), 0}, 1);
    }

    __device__ inline void move(const reformat_slab &j, const char *here, char *out) const
    {
        pack<uint32_t, 4> x[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[i] = *(const pack<uint32_t, 4> *)(here + from[i]);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t y[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                y[k] = Vectors ? x[i].v[k] : x[k].v[i];
            transpose(y);
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (i * 4 + k < (int)planes)
                    *(uint32_t *)(out + to + (i * 4 + k) * j.stride) = y[k];
        }
    }
};

#endif /* KERNELS_REFORMAT_BYTES_CUH */
