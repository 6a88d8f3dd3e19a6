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
 * The first results are of the tile and what its windows reach, 64 pixels: rows of
 * `pitch` pixels. Elements of the windows are the same matrix from another pixel on.
 */
#ifndef PLUGINS_BOTTLENECK_BLOCK_CUH
#define PLUGINS_BOTTLENECK_BLOCK_CUH

#include "plugins/bottleneck/pieces.cuh"

#ifndef BOTTLENECK_STAMP
#define BOTTLENECK_STAMP(n)
#endif

enum {
    BOTTLENECK_THREADS = 256,
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
    bottleneck_tail reduced, convolved, projected;
    divisor across, tiles; /* tiles of an image's row; of an image */
    int32_t units, by;     /* tiles of all images; that are under way at once */
    int32_t height, width, channels, results; /* whole eights of channels */
    int32_t tile_h, tile_w;                   /* pixels */
    int32_t shift;      /* pixels of a tile's row in shared memory: 8 or 16 */
    int32_t pitch;      /* pixels of a row with what windows reach: 10 or 16 */
    int32_t group;      /* bytes from eight pixels of a tile to the next */
    int32_t box, added; /* bytes of boxes */
    int32_t sharing;    /* tiles that blocks of a cluster have at once, as a shift */
    int32_t ahead;      /* matrices asked for before the kernel before has ended */
    bool adds;
};

/* Bytes of shared memory behind the first multiple of 1024. */
template <int G>
struct bottleneck_layout {
    static const int Blocks = G * G;
    static const int Parts = 4 / G;            /* of 64 results, in the last stage */
    static const int Storing = G == 4 ? 4 : 8; /* warps with results of the last stage */
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
    BOTTLENECK_PROJECTED, /* by the second: what was convolved is no longer needed */
    BOTTLENECK_BARRIERS
};

enum { NAME_FIRST = 1, NAME_STORE };

#if __CUDA_ARCH__ >= 900
/* Where a block is, and where its tile. */
template <int G>
struct bottleneck_block {
    typedef bottleneck_layout<G> Layout;
    const bottleneck_job &job;
    uint32_t shared;
    float *biases;
    uint32_t base, rank, i, j; /* base: the first block of the tile; rank: from there */
    int32_t panels;            /* 64 channels each of the input */
    int32_t image, top, left;

    __device__ inline bottleneck_block(const bottleneck_job &job, uint8_t *memory)
        : job(job)
    {
        const uint32_t lost = (1024 - shared_address(memory) % 1024) % 1024;
        const uint32_t in_cluster = blockIdx.x & ((Layout::Blocks << job.sharing) - 1);
        shared = shared_address(memory) + lost;
        biases = (float *)(memory + lost + Layout::Biases);
        rank = in_cluster % Layout::Blocks;
        base = in_cluster - rank;
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

/* Matrices from `first` on. Blocks of other tiles have the same: each loads a share. */
template <int G>
static __device__ inline void bottleneck_load_weights(const bottleneck_block<G> &b,
                                                      int first, int last)
{
    typedef bottleneck_layout<G> Layout;
    const bottleneck_job &job = b.job;
    const uint32_t bytes = BOTTLENECK_PIECE >> job.sharing;
    const uint32_t part = b.base / Layout::Blocks * bytes;
    uint32_t blocks = 0;
    for (int s = 0; s < 1 << job.sharing; s++)
        blocks |= 1u << (s * Layout::Blocks + b.rank);
    for (int p = first; p < last; p++) {
        if (!b.has(p))
            continue;
        const uint32_t to = b.shared + Layout::Weights + p * BOTTLENECK_PIECE + part;
        const uint8_t *from =
            job.weights + ((int64_t)b.rank * BOTTLENECK_PIECES + p) * BOTTLENECK_PIECE +
            part;
        barrier_expect(b.barrier(p), BOTTLENECK_PIECE);
        if (job.sharing > 0)
            copy_piece_to(to, from, bytes, b.barrier(p), (uint16_t)blocks);
        else
            copy_piece(to, from, bytes, b.barrier(p));
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

/* Biases and the activation; N eights of pixels, from `eight` on, to a panel, zeros where
 * they are not inside. */
template <int N>
static __device__ inline void bottleneck_keep(uint32_t panel, const float (&sum)[N][4],
                                              const float *bias, const bottleneck_tail &f,
                                              uint64_t inside, int eight)
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
    bottleneck_activate(v, f);
    inside >>= eight * 8 + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < N; n++) {
        const bool one = inside >> (n * 8) & 1, two = inside >> (n * 8) & 2;
        words[2 * n] = bottleneck_halves(one ? v[4 * n] : 0, two ? v[4 * n + 1] : 0);
        words[2 * n + 1] =
            bottleneck_halves(one ? v[4 * n + 2] : 0, two ? v[4 * n + 3] : 0);
    }
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

/* What the warp has just kept, to the other blocks of a team of `Count`. */
template <int N, int Count>
static __device__ inline void bottleneck_tell(uint32_t panel, const bottleneck_team &team,
                                              int eight, uint32_t barrier)
{
    const uint32_t warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    warp_sync();
#pragma unroll
    for (uint32_t c = lane % (N * 16); c < N * 16; c += 32) {
        const uint32_t at = panel + bottleneck_place(eight * 8 + c / 2, warp * 2 + c % 2);
        const uint4 v = load_four(at);
#pragma unroll 4
        for (uint32_t d = N == 1 ? lane / 16 : 0; d < Count - 1; d += N == 1 ? 2 : 1) {
            const uint32_t block =
                team.first + ((team.mine + 1 + d) & (Count - 1)) * team.step;
            send_four(address_of_rank(at, block), address_of_rank(barrier, block), v);
        }
    }
}

/* ---- stages ----------------------------------------------------------------------- */

template <int G>
static __device__ inline void bottleneck_reduce(const bottleneck_block<G> &b,
                                                uint64_t inside, uint32_t parity)
{
    typedef bottleneck_layout<G> Layout;
    const uint32_t panel = b.shared + Layout::Reduced;
    float sum[8][4];
    hold(sum);
#pragma unroll
    for (int p = 0; p < BOTTLENECK_REDUCE; p++) {
        if (!b.has(p))
            continue;
        barrier_wait(b.barrier(BOTTLENECK_LOADED + p), 0);
        barrier_wait(b.barrier(BOTTLENECK_INPUT + p), parity);
        bottleneck_multiply<64>(
            sum, b.shared + Layout::Weights + p * BOTTLENECK_PIECE,
            b.shared + Layout::Input + p * BOTTLENECK_REACH * BOTTLENECK_ROW, 1024, p);
    }
    multiply_wait<0>();
    hold(sum);
    BOTTLENECK_STAMP(3);
    if (threadIdx.x % 32 == 0)
        barrier_arrive(b.barrier(BOTTLENECK_INPUT_FREE));
    if constexpr (G == 1) {
        bottleneck_keep(panel, sum, b.biases, b.job.reduced, inside, 0);
    } else {
        const bottleneck_team team = {b.base + b.j, G, b.i};
        const uint32_t whole = b.barrier(BOTTLENECK_FIRST_WHOLE);
        float own[8 / G][4];
        bottleneck_join<G>(own, sum, team, b.shared + Layout::First,
                           b.barrier(BOTTLENECK_FIRST), parity);
        BOTTLENECK_STAMP(4);
        bottleneck_keep(panel, own, b.biases, b.job.reduced, inside, (int)b.i * (8 / G));
        bottleneck_tell<8 / G, G>(panel, team, (int)b.i * (8 / G), whole);
        if (threadIdx.x == 0)
            barrier_expect(whole, 8192 / G * (G - 1));
        barrier_wait(whole, parity);
    }
    publish_shared();
    named_sync(NAME_FIRST, 128);
    BOTTLENECK_STAMP(5);
}

template <int G>
static __device__ inline void bottleneck_convolve(const bottleneck_block<G> &b,
                                                  uint32_t parity)
{
    typedef bottleneck_layout<G> Layout;
    const uint32_t panel = b.shared + Layout::Convolved + b.i * BOTTLENECK_PANEL;
    float sum[4][4];
    hold(sum);
#pragma unroll
    for (int e = 0; e < BOTTLENECK_WINDOWS; e++) {
        const int p = BOTTLENECK_REDUCE + e;
        barrier_wait(b.barrier(BOTTLENECK_LOADED + p), 0);
        bottleneck_multiply<32>(sum, b.shared + Layout::Weights + p * BOTTLENECK_PIECE,
                                b.shared + Layout::Reduced +
                                    (e / 3 * b.job.pitch + e % 3) * BOTTLENECK_ROW,
                                b.job.group, e);
    }
    multiply_wait<0>();
    hold(sum);
    BOTTLENECK_STAMP(6);
    if constexpr (G == 1) {
        bottleneck_keep(panel, sum, b.biases + 64, b.job.convolved, ~UINT64_C(0), 0);
    } else {
        const bottleneck_team team = {b.base + b.i * G, 1, b.j},
                              all = {b.base, 1, b.rank};
        float own[4 / G][4];
        bottleneck_join<G>(own, sum, team, b.shared + Layout::Second,
                           b.barrier(BOTTLENECK_SECOND), parity);
        BOTTLENECK_STAMP(7);
        bottleneck_keep(panel, own, b.biases + 64, b.job.convolved, ~UINT64_C(0),
                        (int)b.j * (4 / G));
        bottleneck_tell<4 / G, G * G>(panel, all, (int)b.j * (4 / G),
                                      b.barrier(BOTTLENECK_SECOND_WHOLE));
        if (threadIdx.x == 0)
            barrier_expect(b.barrier(BOTTLENECK_SECOND_WHOLE),
                           BOTTLENECK_PANEL / G * (G * G - 1));
    }
}

/* Until all of what was convolved is here, for all that multiply it. */
template <int G>
static __device__ inline void bottleneck_meet(const bottleneck_block<G> &b, int group,
                                              uint32_t parity)
{
    const uint32_t mine = b.barrier(BOTTLENECK_CONVOLVED);
    if (G > 1)
        barrier_wait(b.barrier(BOTTLENECK_SECOND_WHOLE), parity);
    publish_shared();
    warp_sync();
    if (group == 0 && threadIdx.x % 32 == 0)
        barrier_arrive(mine);
    barrier_wait(mine, parity);
}

/* Biases, addend and activation of 64 results; halves to where the addend was. */
template <int G>
static __device__ inline void bottleneck_finish(const bottleneck_block<G> &b,
                                                const float (&sum)[4][4], int part)
{
    typedef bottleneck_layout<G> Layout;
    const uint32_t warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const float *bias = b.biases + 128 + part * 64 + warp * 16 + lane / 4;
    const float low = bias[0], high = bias[8];
    const uint32_t at =
        b.shared + Layout::Output + part * BOTTLENECK_PANEL + bottleneck_turned(0);
#pragma unroll
    for (int n = 0; n < 4; n += 2) {
        uint32_t words[4] = {};
        float v[8];
        if (b.job.adds)
            load_turned(words, at + n * 8 * BOTTLENECK_ROW);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float2 add = bottleneck_floats(words[k]);
            const float *two = &sum[n + k / 2][k % 2 * 2], shift = k % 2 ? high : low;
            v[2 * k] = two[0] + shift + add.x;
            v[2 * k + 1] = two[1] + shift + add.y;
        }
        bottleneck_activate(v, b.job.projected);
#pragma unroll
        for (int k = 0; k < 4; k++)
            words[k] = bottleneck_halves(v[2 * k], v[2 * k + 1]);
        store_turned(at + n * 8 * BOTTLENECK_ROW, words);
    }
}

/* 64 results of the tile to y, by a warpgroup. */
template <int G>
static __device__ inline void bottleneck_store(const bottleneck_block<G> &b, int part)
{
    typedef bottleneck_layout<G> Layout;
    const bottleneck_job &job = b.job;
    const uint32_t thread = threadIdx.x % 128, chunk = thread % 8;
    const int32_t channel = ((int32_t)b.rank * Layout::Parts + part) * 64 + chunk * 8;
#pragma unroll
    for (uint32_t pixel = thread / 8; pixel < BOTTLENECK_PIXELS; pixel += 16) {
        const int32_t row = (int32_t)(pixel >> job.shift);
        const int32_t column = (int32_t)pixel - (row << job.shift);
        const int32_t h = b.top + row, w = b.left + column;
        const uint4 v = load_four(b.shared + Layout::Output + part * BOTTLENECK_PANEL +
                                  bottleneck_place(pixel, chunk));
        if (column < job.tile_w && h < job.height && w < job.width &&
            channel < job.results)
            *(uint4 *)(job.y +
                       (((int64_t)b.image * job.height + h) * job.width + w) *
                           job.results +
                       channel) = v;
    }
}

/* Before the first warpgroup has others write what was convolved of the next tile. */
template <int G>
static __device__ inline void bottleneck_release(const bottleneck_block<G> &b, int group,
                                                 uint32_t parity)
{
    if (group == 0)
        barrier_wait(b.barrier(BOTTLENECK_PROJECTED), parity);
    else if (threadIdx.x % 32 == 0)
        barrier_arrive(b.barrier(BOTTLENECK_PROJECTED));
}

/* The last stage: 64 results of a warpgroup at a time, all convolved channels. */
template <int G>
static __device__ inline void bottleneck_project(const bottleneck_block<G> &b, int group,
                                                 uint32_t parity, bool more)
{
    typedef bottleneck_layout<G> Layout;
    enum { EACH = G == 1 ? 2 : 1 };
    float sum[EACH][4][4];
#pragma unroll
    for (int m = 0; m < EACH; m++)
        hold(sum[m]);
#pragma unroll
    for (int m = 0; m < EACH; m++)
#pragma unroll
        for (int k = 0; k < G; k++) {
            const int p =
                BOTTLENECK_REDUCE + BOTTLENECK_WINDOWS + (group * EACH + m) * G + k;
            barrier_wait(b.barrier(BOTTLENECK_LOADED + p), 0);
            bottleneck_multiply<32>(
                sum[m], b.shared + Layout::Weights + p * BOTTLENECK_PIECE,
                b.shared + Layout::Convolved + k * BOTTLENECK_PANEL, 1024, k);
        }
    if (b.job.adds)
        barrier_wait(b.barrier(BOTTLENECK_ADDEND), parity);
    multiply_wait<0>();
#pragma unroll
    for (int m = 0; m < EACH; m++)
        hold(sum[m]);
    if (group == 0)
        BOTTLENECK_STAMP(9);
    if (more && G < 4)
        bottleneck_release(b, group, parity);
#pragma unroll
    for (int m = 0; m < EACH; m++)
        bottleneck_finish(b, sum[m], group * EACH + m);
    named_sync(NAME_STORE + group, 128);
#pragma unroll
    for (int m = 0; m < EACH; m++)
        bottleneck_store(b, group * EACH + m);
    if (group == 0)
        BOTTLENECK_STAMP(10);
    if (!more)
        return; /* a fence would wait for what was stored */
    publish_shared();
    warp_sync();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(b.barrier(BOTTLENECK_OUTPUT_FREE));
}

/* ---- all of it -------------------------------------------------------------------- */

/* The thread that asks for all that comes out of memory. Where a block has its weights
 * alone, it need not wait for others. */
template <int G>
static __device__ inline void bottleneck_begin(const bottleneck_block<G> &b)
{
    typedef bottleneck_layout<G> Layout;
    for (int i = 0; i < BOTTLENECK_BARRIERS; i++)
        barrier_init(b.barrier(i), i == BOTTLENECK_INPUT_FREE || i >= BOTTLENECK_CONVOLVED
                                       ? 4
                                   : i == BOTTLENECK_OUTPUT_FREE ? Layout::Storing
                                                                 : 1);
    barrier_publish();
    if (b.job.sharing == 0)
        bottleneck_load_weights(b, 0, b.job.ahead);
    prefetch_map(&b.job.x);
    prefetch_map(&b.job.addend);
}

/* What it asks for first. */
template <int G>
static __device__ inline void bottleneck_load(const bottleneck_block<G> &b, bool works)
{
    if (b.job.sharing > 0)
        bottleneck_load_weights(b, 0, b.job.ahead);
    wait_for_previous();
    BOTTLENECK_STAMP(2);
    if (works) {
        bottleneck_load_input(b);
        bottleneck_load_addend(b);
    }
    bottleneck_load_weights(b, b.job.ahead, BOTTLENECK_PIECES);
    for (int p = 0; p < BOTTLENECK_PIECES && !works; p++)
        if (b.has(p))
            barrier_wait(b.barrier(p), 0); /* it may not end while others write there */
}

/* The second warpgroup: what is asked for, and a part of the last stage. */
template <int G>
static __device__ inline void bottleneck_help(bottleneck_block<G> &b, int32_t first)
{
    const bool loads = threadIdx.x == 128;
    const int32_t units = b.job.units, by = b.job.by;
    uint32_t parity = 0;
    b.go_to(first < units ? first : 0);
    if (loads)
        bottleneck_load(b, first < units);
    warp_sync();
    for (int32_t unit = first; unit < units; unit += by, parity ^= 1) {
        const bool more = unit + by < units;
        bottleneck_block<G> next = b;
        if (more)
            next.go_to(unit + by);
        if (loads && more) {
            barrier_wait(b.barrier(BOTTLENECK_INPUT_FREE), parity);
            bottleneck_load_input(next);
        }
        warp_sync();
        if constexpr (G < 4) {
            bottleneck_meet(b, 1, parity);
            bottleneck_project(b, 1, parity, more);
        }
        if (loads && more) {
            barrier_wait(b.barrier(BOTTLENECK_OUTPUT_FREE), parity);
            bottleneck_load_addend(next);
        }
        warp_sync();
        if (more)
            b.go_to(unit + by);
    }
}

template <int G>
static __device__ inline void bottleneck_work(bottleneck_block<G> &b, int32_t first)
{
    uint32_t parity = 0;
    for (int c = (int)threadIdx.x; c < 128 + bottleneck_layout<G>::Parts * 64; c += 128)
        b.biases[c] = b.job.bias[b.bias(c)];
    named_sync(NAME_FIRST, 128);
    for (int32_t unit = first; unit < b.job.units; unit += b.job.by, parity ^= 1) {
        b.go_to(unit);
        bottleneck_reduce(b, b.inside(), parity);
        bottleneck_convolve(b, parity);
        bottleneck_meet(b, 0, parity);
        BOTTLENECK_STAMP(8);
        bottleneck_project(b, 0, parity, unit + b.job.by < b.job.units);
    }
}

template <int G>
static __global__ void __launch_bounds__(BOTTLENECK_THREADS, 1)
    bottleneck_kernel(const __grid_constant__ bottleneck_job job)
{
    extern __shared__ uint8_t bottleneck_shared[];
    bottleneck_block<G> b(job, bottleneck_shared);
    const int32_t first = (int32_t)blockIdx.x / (G * G);
    BOTTLENECK_STAMP(0);
    if (threadIdx.x == 128)
        bottleneck_begin(b);
    warp_sync();
    if ((G * G) << job.sharing > 1)
        cluster_arrive();
    __syncthreads();
    launch_next();
    if ((G * G) << job.sharing > 1)
        cluster_wait();
    BOTTLENECK_STAMP(1);
    if (__shfl_sync(0xffffffffu, threadIdx.x / 128, 0) == 0)
        bottleneck_work(b, first);
    else
        bottleneck_help(b, first);
}
#else
template <int G>
static __global__ void bottleneck_kernel(const __grid_constant__ bottleneck_job)
{
}
#endif

#endif /* PLUGINS_BOTTLENECK_BLOCK_CUH */
