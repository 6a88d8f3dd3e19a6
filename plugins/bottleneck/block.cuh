/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of a bottleneck's output, of 32 pixels, by G*G blocks of a cluster. Weights are
 * matrices of 64 results by 64 of depth, 17 a block, which stay in shared memory: they
 * are the factor whose rows become the sums' rows, pixels the other. Block (i, j) has
 *
 *   reduce   results j of the input's channels i (256 of them): 4 matrices
 *   windows  results i of the reduced channels j (64): 9, an element of the windows each
 *   project  256/G results of all convolved channels: 4
 *
 * so that no block needs more than a part of what another has made. Blocks of a column j
 * add up the first sums, those of a row i the second, each of a slice of the pixels, and
 * send what comes of it to who multiplies it. What comes into shared memory from
 * elsewhere is counted by barriers there, in bytes.
 *
 * The first warpgroup makes the sums of two stages and 64 results of the last; others
 * have more of these. Two warps of the second ask for all that comes out of memory.
 *
 * The first results are of the tile and what its windows reach, 64 pixels: rows of
 * `pitch` pixels. Elements of the windows are the same matrix from another pixel on.
 */
#ifndef PLUGINS_BOTTLENECK_BLOCK_CUH
#define PLUGINS_BOTTLENECK_BLOCK_CUH

#include "plugins/bottleneck/pieces.cuh"

enum {
    BOTTLENECK_ROW = 128,    /* bytes: 64 channels of a pixel, or of a result */
    BOTTLENECK_PIECE = 8192, /* bytes of a matrix of weights */
    BOTTLENECK_REDUCE = 4,   /* matrices of each stage */
    BOTTLENECK_WINDOWS = 9,
    BOTTLENECK_PROJECT = 4,
    BOTTLENECK_PIECES = 17,
    BOTTLENECK_PIXELS = 32,   /* of a tile */
    BOTTLENECK_REACH = 64,    /* pixels, of a tile and around it */
    BOTTLENECK_PANEL = 4096,  /* bytes: 64 channels of a tile's pixels */
    BOTTLENECK_REDUCED = 9216 /* bytes: 64 channels, and what windows read behind them */
};

struct bottleneck_job {
    CUtensorMap x, addend; /* boxes of 64 channels, of a tile with its reach; of a tile */
    const uint8_t *weights; /* 17 matrices for each of the G*G blocks */
    const float *bias;      /* of 64*G, 64*G and 256*G results */
    __half *y;
    stage_tail reduced, convolved, projected;
    divisor across, tiles; /* tiles of an image's row; of an image */
    int32_t units, by;     /* tiles of all images; that are under way at once */
    int32_t height, width, channels, results; /* whole eights of channels */
    int32_t tile_h, tile_w;                   /* pixels */
    int32_t shift;      /* pixels of a tile's row in shared memory: 8 or 16 */
    int32_t pitch;      /* pixels of a row with what windows reach: 10 or 16 */
    int32_t group;      /* bytes from eight pixels of a tile to the next */
    int32_t box, added; /* bytes of boxes */
    int32_t ahead;      /* matrices asked for before the kernel before has ended */
    bool adds;
};

/* Bytes of shared memory behind the first multiple of 1024. */
template <int G>
struct bottleneck_layout {
    static const int Blocks = G * G;
    static const int Parts =
        4 / G; /* of 64 results, in the last stage: a warpgroup each */
    static const int Threads = Parts > 2 ? Parts * 128 : 256;
    static const int Biases = 1024, Weights = 3072;
    static const int Input = Weights + BOTTLENECK_PIECES * BOTTLENECK_PIECE;
    static const int Reduced = Input + 4 * BOTTLENECK_REACH * BOTTLENECK_ROW;
    static const int Convolved = Reduced + BOTTLENECK_REDUCED;
    static const int Output = Convolved + G * BOTTLENECK_PANEL;
    static const int First = Output + Parts * BOTTLENECK_PANEL;
    static const int Second = First + (G - 1) * 16384 / G;
    static const int End = Second + (G - 1) * 8192 / G;
    static const int Shared = End + 1024;
};

enum bottleneck_barrier {
    BOTTLENECK_LOADED = 0,                /* a matrix of weights each */
    BOTTLENECK_INPUT = BOTTLENECK_PIECES, /* four */
    BOTTLENECK_INPUT_FREE = BOTTLENECK_INPUT + 4,
    BOTTLENECK_ADDEND,
    BOTTLENECK_OUTPUT_FREE,
    BOTTLENECK_FIRST, /* sums, and what becomes of them */
    BOTTLENECK_FIRST_WHOLE,
    BOTTLENECK_SECOND,
    BOTTLENECK_SECOND_WHOLE,
    BOTTLENECK_CONVOLVED, /* by the first warpgroup, as far as it does */
    BOTTLENECK_PROJECTED, /* by others: what was convolved is no longer needed */
    BOTTLENECK_BARRIERS
};

enum { NAME_FIRST = 1, NAME_STORE };

/* Threads that ask for the input and the addend; for weights. */
enum { BOTTLENECK_LOADER = 128, BOTTLENECK_WEIGHER = 160 };

#if __CUDA_ARCH__ >= 900
/* Where a block is, and where its tile. */
template <int G>
struct bottleneck_block {
    typedef bottleneck_layout<G> Layout;
    const bottleneck_job &job;
    uint32_t shared;
    float *biases;
    uint32_t rank, i, j; /* of a tile's blocks */
    int32_t panels;      /* 64 channels each of the input */
    int32_t image, top, left;

    __device__ inline bottleneck_block(const bottleneck_job &job, uint8_t *memory)
        : job(job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        shared = shared_address(memory) + lost;
        biases = (float *)(memory + lost + Layout::Biases);
        rank = blockIdx.x % Layout::Blocks;
        i = rank / G;
        j = rank % G;
        panels = max(1, min(4, (job.channels + 63) / 64 - (int32_t)i * 4));
    }

    __device__ inline uint32_t barrier(int which) const
    {
        return shared + which * 8;
    }

    /* Whether a matrix has weights: fewer channels have fewer. */
    __device__ inline bool has(int p) const
    {
        return p < panels || p >= BOTTLENECK_REDUCE;
    }

    /* Where its c-th bias lies: 64 of the first results, of the second, its last ones. */
    __device__ inline int bias(int c) const
    {
        return c < 64    ? j * 64 + c
               : c < 128 ? G * 64 + i * 64 + c - 64
                         : G * 128 + rank * Layout::Parts * 64 + c - 128;
    }

    __device__ inline void go_to(int32_t unit)
    {
        const uint32_t of = divide_by((uint32_t)unit, job.tiles);
        const uint32_t within = (uint32_t)unit - of * job.tiles.d;
        const uint32_t down = divide_by(within, job.across);
        image = (int32_t)of;
        top = (int32_t)down * job.tile_h;
        left = (int32_t)(within - down * job.across.d) * job.tile_w;
    }

    /* Which of the pixels that windows reach are inside the image, a bit each. */
    __device__ inline uint64_t inside(void) const
    {
        uint32_t row = 0;
        uint64_t all = 0;
        for (int w = 0; w < job.pitch; w++)
            row |= (uint32_t)((uint32_t)(left - 1 + w) < (uint32_t)job.width) << w;
        for (int h = 0; h < job.tile_h + 2; h++)
            if ((uint32_t)(top - 1 + h) < (uint32_t)job.height)
                all |= (uint64_t)row << (h * job.pitch);
        return all;
    }
};

/* ---- loads, by one thread --------------------------------------------------------- */

template <int G>
static __device__ inline void bottleneck_load_weights(const bottleneck_block<G> &b,
                                                      int first, int last)
{
    const uint8_t *from =
        b.job.weights + (int64_t)b.rank * BOTTLENECK_PIECES * BOTTLENECK_PIECE;
    for (int p = first; p < last; p++) {
        if (!b.has(p))
            continue;
        barrier_expect(b.barrier(p), BOTTLENECK_PIECE);
        copy_piece(b.shared + bottleneck_layout<G>::Weights + p * BOTTLENECK_PIECE,
                   from + p * BOTTLENECK_PIECE, BOTTLENECK_PIECE, b.barrier(p));
    }
}

template <int G>
static __device__ inline void bottleneck_load_input(const bottleneck_block<G> &b)
{
    for (int p = 0; p < b.panels; p++) {
        barrier_expect(b.barrier(BOTTLENECK_INPUT + p), b.job.box);
        copy_box(b.shared + bottleneck_layout<G>::Input +
                     p * BOTTLENECK_REACH * BOTTLENECK_ROW,
                 &b.job.x, b.barrier(BOTTLENECK_INPUT + p), (int32_t)b.i * 256 + p * 64,
                 b.left - 1, b.top - 1, b.image);
    }
}

template <int G>
static __device__ inline void bottleneck_load_addend(const bottleneck_block<G> &b)
{
    typedef bottleneck_layout<G> Layout;
    if (!b.job.adds)
        return;
    barrier_expect(b.barrier(BOTTLENECK_ADDEND), Layout::Parts * b.job.added);
    for (int p = 0; p < Layout::Parts; p++)
        copy_box(b.shared + Layout::Output + p * BOTTLENECK_PANEL, &b.job.addend,
                 b.barrier(BOTTLENECK_ADDEND), ((int32_t)b.rank * Layout::Parts + p) * 64,
                 b.left, b.top, b.image);
}

/* ---- sums ------------------------------------------------------------------------- */

/* Rows of 128 bytes, swizzled by as many; eights of them `group` bytes apart. */
static __device__ inline uint64_t bottleneck_rows(uint32_t address, uint32_t group)
{
    return (uint64_t)(address >> 4 & 0x3fff) | UINT64_C(1) << 16 |
           (uint64_t)(group >> 4 & 0x3fff) << 32 | UINT64_C(1) << 62;
}

/* A matrix of weights times N pixels of 64 channels. */
template <int N>
static __device__ inline void bottleneck_multiply(float (&sum)[N / 8][4],
                                                  uint32_t weights, uint32_t pixels,
                                                  uint32_t group, int32_t add)
{
    const uint64_t a = bottleneck_rows(weights, 1024), b = bottleneck_rows(pixels, group);
    multiply_begin();
#pragma unroll
    for (int d = 0; d < 4; d++)
        product<__half, N>::scores(sum, a + d * 2, b + d * 2, add | d);
    multiply_commit();
}

/* Place of 8 channels of a pixel in a panel. */
static __device__ inline uint32_t bottleneck_place(uint32_t pixel, uint32_t channels)
{
    return pixel * BOTTLENECK_ROW + ((channels ^ (pixel & 7)) << 4);
}

/* A lane's of the matrices of 8 x 8 of its warp's 16 channels, from eight `eight` on. */
static __device__ inline uint32_t bottleneck_turned(int eight)
{
    const uint32_t warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    return bottleneck_place(eight * 8 + lane / 16 * 8 + lane % 8,
                            warp * 2 + lane / 8 % 2);
}

/* Blocks that share a tile's sums or pixels: `first`, that many from it in `step`s. */
struct bottleneck_team {
    uint32_t first, step, mine;
};

/* Sums to who adds them up, N/G eights of pixels to each; `own` are this block's. */
template <int G, int N>
static __device__ inline void bottleneck_join(float (&own)[N / G][4],
                                              const float (&sum)[N][4],
                                              const bottleneck_team &team, uint32_t sums,
                                              uint32_t barrier, uint32_t parity)
{
    const uint32_t bytes = N / G * 2048, thread = threadIdx.x % 128;
#pragma unroll
    for (int q = 0; q < G; q++) {
        if (q == (int)team.mine) {
#pragma unroll
            for (int n = 0; n < N / G; n++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    own[n][k] = sum[q * (N / G) + n][k];
            continue;
        }
        const uint32_t block = team.first + q * team.step;
        const uint32_t slot = team.mine - (team.mine > (uint32_t)q);
        const uint32_t to = address_of_rank(sums + slot * bytes + thread * 16, block);
        const uint32_t tell = address_of_rank(barrier, block);
#pragma unroll
        for (int n = 0; n < N / G; n++) {
            const float(&v)[4] = sum[q * (N / G) + n];
            send_four(to + n * 2048, tell,
                      make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]),
                                 __float_as_uint(v[2]), __float_as_uint(v[3])));
        }
    }
    if (thread == 0)
        barrier_expect(barrier, (G - 1) * bytes);
    barrier_wait(barrier, parity);
#pragma unroll
    for (int s = 0; s < G - 1; s++)
#pragma unroll
        for (int n = 0; n < N / G; n++) {
            const uint4 v = load_four(sums + s * bytes + n * 2048 + thread * 16);
            own[n][0] += __uint_as_float(v.x), own[n][1] += __uint_as_float(v.y);
            own[n][2] += __uint_as_float(v.z), own[n][3] += __uint_as_float(v.w);
        }
}

/* Ones for each of a thread's pixels that are inside: of N eights, from `eight` on. */
template <int N>
static __device__ inline void bottleneck_mask(uint32_t (&mask)[N], uint64_t inside,
                                              int eight)
{
    inside >>= eight * 8 + threadIdx.x % 4 * 2;
#pragma unroll
    for (int n = 0; n < N; n++) {
        const uint32_t two = (uint32_t)(inside >> (n * 8));
        mask[n] = (two & 1 ? 0xffffu : 0) | (two & 2 ? 0xffff0000u : 0);
    }
}

/* Biases and the activation; N eights of pixels, from `eight` on, to a panel. */
template <int N>
static __device__ inline void bottleneck_keep(uint32_t panel, const float (&sum)[N][4],
                                              const float *bias, const stage_tail &f,
                                              const uint32_t (&mask)[N], int eight)
{
    const uint32_t warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const float low = bias[warp * 16 + lane / 4], high = bias[warp * 16 + lane / 4 + 8];
    const uint32_t to = panel + bottleneck_turned(eight);
    float v[4 * N];
    uint32_t words[2 * N];
#pragma unroll
    for (int n = 0; n < N; n++) {
        v[4 * n] = sum[n][0] + low, v[4 * n + 1] = sum[n][1] + low;
        v[4 * n + 2] = sum[n][2] + high, v[4 * n + 3] = sum[n][3] + high;
    }
    bottleneck_activate(words, v, f);
#pragma unroll
    for (int n = 0; n < 2 * N; n++)
        words[n] &= mask[n / 2];
    if constexpr (N == 1)
        store_turned(to, words);
    else
#pragma unroll
        for (int n = 0; n < N; n += 2) {
            const uint32_t four[4] = {words[2 * n], words[2 * n + 1], words[2 * n + 2],
                                      words[2 * n + 3]};
            store_turned(to + n * 8 * BOTTLENECK_ROW, four);
        }
}

/* What the warpgroup has kept of a panel, `bytes` from `from` on, to the other blocks of
 * a team of `Count`: a thread each. */
template <int Count>
static __device__ inline void bottleneck_tell(const bottleneck_team &team, uint32_t from,
                                              uint32_t bytes, uint32_t barrier)
{
    if (threadIdx.x < Count - 1) {
        const uint32_t block =
            team.first + ((team.mine + 1 + threadIdx.x) & (Count - 1)) * team.step;
        copy_there(address_of_rank(from, block), from, bytes,
                   address_of_rank(barrier, block));
    }
    if (threadIdx.x == 0)
        barrier_expect(barrier, (Count - 1) * bytes);
}
#endif

#endif /* PLUGINS_BOTTLENECK_BLOCK_CUH */
