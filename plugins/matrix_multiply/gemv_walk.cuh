/* SPDX-License-Identifier: Apache-2.0
 *
 * What gemv.cuh's kernels compute, and how a block goes through B.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_GEMV_WALK_CUH
#define PLUGINS_MATRIX_MULTIPLY_GEMV_WALK_CUH

#include "plugins/matrix_multiply/few_rows.cuh"

/* Heads of Y's columns of which pairs turn, as in RotaryEmbedding. */
struct gemv_turn {
    const void *positions; /* NULL: 0, 1, ... in each row of the batch */
    int32_t wide, each;    /* they are of 64 bits; there is one for each token */
    int32_t length;        /* tokens of a row */
    int32_t dim, turned;   /* columns of a head, and of all heads that turn */
    int32_t interleaved;
    const double *frequencies; /* angles of a head's pairs at position 1 */
};

/* What Projection does besides the product: rows of A divided by their root mean square
 * and scaled; products of the columns of one half by a function of those of the other, or
 * pairs of columns turned. */
struct gemv_more {
    const float *scale; /* of A's columns, or NULL */
    float epsilon;
    activation_args gate;
    gemv_turn turn;
};

struct gemv_job {
    matrix_job j;
    gemv_more more;
    int32_t split;  /* blocks that share the depth: a cluster in z */
    int32_t groups; /* of A's rows */
    int32_t plain;  /* results are sums, or those with a residual added */
};

enum gemv_end { GEMV_PLAIN, GEMV_GATED, GEMV_TURNED };

/* A kernel's shape: tiles of Columns rows of B by Rows rows of A. A tile's second half is
 * what its first is gated or turned with. */
template <typename T_, int Columns_, int Rows_, bool Normal_ = false,
          gemv_end End_ = GEMV_PLAIN>
struct gemv_shape {
    typedef T_ T;
    enum {
        Columns = Columns_,
        Rows = Rows_,
        Normal = Normal_,
        Gated = End_ == GEMV_GATED,
        Turned = End_ == GEMV_TURNED,
        Half = Columns / 2,
        N = 16 / sizeof(T),             /* elements of an access */
        Width = Gated ? Half : Columns, /* columns of Y */
        V = Columns * Rows,
        Results = (Turned ? Half : Width) * Rows, /* of a tile: columns of Y, or pairs */
        Blocks = Rows > 1 ? 2 : 3                 /* of a multiprocessor at least */
    };
};

/* Rows of B between halves of a tile. */
template <class S>
static __host__ __device__ inline int32_t gemv_apart(const gemv_job &g)
{
    const bool halves = S::Turned && !g.more.turn.interleaved;
    return S::Gated ? (int32_t)g.j.p.n : halves ? g.more.turn.dim / 2 : (int32_t)S::Half;
}

/* Tiles of a head whose pairs are half of it apart, else 0. */
template <class S>
static __host__ __device__ inline int32_t gemv_heads(const gemv_job &g)
{
    return S::Turned && !g.more.turn.interleaved ? g.more.turn.dim / (int32_t)S::Columns
                                                 : 0;
}

/* The column of the product that a tile's c-th is. */
template <class S>
static __device__ inline int32_t gemv_column(int32_t tile, int c, int32_t apart,
                                             int32_t heads)
{
    const int32_t first =
        S::Turned && heads ? tile / heads * (2 * apart) + tile % heads * (int32_t)S::Half
                           : tile * (int32_t)S::Width;
    return first + c % S::Half + c / S::Half * apart;
}

/* Steps through the tiles of which a block has every by-th; and what it is of A's rows.
 * All threads of a block are at the same step. */
template <class S>
struct gemv_walk {
    typedef typename S::T T;
    const matrix_job &j;
    const T *b;
    int32_t tile, by, tiles, k, begin, step, row;
    int32_t apart, heads; /* rows of B between halves of a tile; tiles of a head */

    __device__ inline gemv_walk(const gemv_job &g, int64_t b_begin) : j(g.j)
    {
        b = (const T *)j.b + b_begin;
        tile = (int32_t)(blockIdx.x / g.groups);
        by = (int32_t)(gridDim.x / g.groups);
        tiles = (int32_t)((j.p.n + S::Width - 1) / S::Width);
        k = begin = (int32_t)blockIdx.z * THREADS * S::N;
        step = g.split * THREADS * S::N;
        row = (int32_t)(blockIdx.x % g.groups) * S::Rows;
        apart = gemv_apart<S>(g);
        heads = gemv_heads<S>(g);
    }

    __device__ inline int32_t column(int32_t tile, int c) const
    {
        return gemv_column<S>(tile, c, apart, heads);
    }

    /* Element of the depth at which the thread's bytes begin. */
    __device__ inline int32_t at() const
    {
        return k + (int32_t)threadIdx.x * S::N;
    }

    /* Whether that was the tile's last step. */
    __device__ inline bool next()
    {
        k += step;
        if (k < (int32_t)j.p.k)
            return false;
        k = begin;
        tile += by;
        return true;
    }

    /* The step's bytes, zeros past the depth and the width. */
    __device__ inline void read(uint4 (&w)[S::Columns]) const
    {
        const bool inside = tile < tiles && at() < (int32_t)j.p.k;
        const int64_t line = j.p.at[PRODUCT_B].column;
        const T *from = b + column(tile, 0) * line + at();
        const int32_t left = (int32_t)j.p.n - tile * S::Width;
#pragma unroll
        for (int c = 0; c < S::Columns; c++) {
            w[c] = make_uint4(0, 0, 0, 0);
            if (inside && c % S::Width < left)
                w[c] = read_once(from + (c % S::Half + c / S::Half * apart) * line);
        }
    }
};

#endif /* PLUGINS_MATRIX_MULTIPLY_GEMV_WALK_CUH */
