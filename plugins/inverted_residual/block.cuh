/* SPDX-License-Identifier: Apache-2.0
 *
 * A tile of an inverted residual's output: its halo is expanded (mma.sync), convolved
 * channel by channel and projected, some channels at a time, all in shared memory. Where
 * tiles are few, the blocks of a cluster share the channels between, and each adds up
 * some of the pixels. What products need of weights lies in memory as it does in shared
 * memory, a piece for each step, and is copied as such while the step before computes.
 */
#ifndef PLUGINS_INVERTED_RESIDUAL_BLOCK_CUH
#define PLUGINS_INVERTED_RESIDUAL_BLOCK_CUH

#include "kernels/overlap.cuh"
#include "plugins/inverted_residual/pieces.cuh"

#define INVERTED_THREADS 256
#define INVERTED_WARPS (INVERTED_THREADS / 32)
#define INVERTED_PIXELS 64 /* of a tile, at most */
#define INVERTED_STEP 64   /* channels between of a step, at most */
#define INVERTED_APART 8   /* halves behind a row in shared memory: no bank conflicts */
#define INVERTED_ROWS 2    /* of the output that a thread sums together */
#define INVERTED_CLUSTER 16

/* Places are bytes into shared memory; channels are those that are stored. */
struct inverted_job {
    const __half *x, *addend; /* addend: NULL, or of y's shape */
    __half *y;
    const char *steps;         /* weights, a piece for each step */
    const float *project_bias; /* as many as are padded */
    stage_tail expanded, convolved, projected;
    int32_t expands;                    /* 0: the input is what is convolved */
    int32_t in_c, depth, middle, out_c; /* depth: in_c to whole products */
    int32_t in_h, in_w, out_h, out_w, kernel, stride, pad_h, pad_w;
    int32_t tile_h, tile_w, halo_h, halo_w, halo, rows; /* rows: halo to whole products */
    divisor halo_wide, in_packs, packs, wide, results;
    divisor across, tiles;     /* of an image */
    int32_t step, count, each; /* channels of a step; steps, a block's of them */
    int32_t shift;             /* blocks of a cluster, as a shift */
    int32_t parts;             /* of the results, each by other blocks */
    int32_t part, padded;      /* results of a part, and as they are computed */
    int32_t project_at, depth_at, piece; /* of a step's weights: bytes */
    int32_t table, input, middle_at, convolved_at, weights, sums;
};

#if __CUDA_ARCH__ >= 900
/* ---- the first product ----------------------------------------------------------- */

/* Factors of 16 pixels and of a step's columns, 16 deep. */
template <int Step>
struct inverted_factors {
    uint32_t a[4], b[Step / 16][4];

    __device__ inline void load(uint32_t pixels, uint32_t columns, int pitch)
    {
        inverted_load(a, pixels);
#pragma unroll
        for (int n = 0; n < Step / 16; n++)
            inverted_load(b[n], columns + n * 16 * pitch);
    }

    __device__ inline void multiply(float (&sum)[Step / 8][4]) const
    {
#pragma unroll
        for (int n = 0; n < Step / 16; n++) {
            inverted_multiply(sum[2 * n], a, b[n][0], b[n][1]);
            inverted_multiply(sum[2 * n + 1], a, b[n][2], b[n][3]);
        }
    }
};

/* 16 pixels' sums to what is convolved. Pads are zeros of that, so pixels outside of the
 * image become it. */
template <int Step>
static __device__ inline void inverted_keep(const inverted_job &j,
                                            float (&sum)[Step / 8][4], char *shared,
                                            const float *bias, int row)
{
    const int lane = (int)threadIdx.x % 32, out = (Step + INVERTED_APART) * 2;
    const int *table = (const int *)(shared + j.table);
    const bool upper = table[row] >= 0, lower = table[row + 8] >= 0;
    char *to = shared + j.middle_at + row * out + lane % 4 * 4;
    float v[Step / 2];
#pragma unroll
    for (int n = 0; n < Step / 8; n++) {
        const float2 shift = *(const float2 *)(bias + n * 8 + lane % 4 * 2);
        v[4 * n] = sum[n][0] + shift.x, v[4 * n + 1] = sum[n][1] + shift.y;
        v[4 * n + 2] = sum[n][2] + shift.x, v[4 * n + 3] = sum[n][3] + shift.y;
    }
    inverted_activate(v, j.expanded);
#pragma unroll
    for (int n = 0; n < Step / 8; n++) {
        *(uint32_t *)(to + n * 16) = upper ? inverted_halves(v[4 * n], v[4 * n + 1]) : 0;
        *(uint32_t *)(to + 8 * out + n * 16) =
            lower ? inverted_halves(v[4 * n + 2], v[4 * n + 3]) : 0;
    }
}

/* Rows of 16 pixels of the halo, a warp each, times a step's columns. Factors are loaded
 * while those before are multiplied. */
template <int Step>
static __device__ inline void inverted_expand(const inverted_job &j, char *shared,
                                              const char *piece)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int pitch = (j.depth + INVERTED_APART) * 2;
    const uint32_t columns =
        inverted_address(piece) + (lane % 8 + lane / 16 * 8) * pitch + lane / 8 % 2 * 16;
#pragma unroll 1
    for (int m = warp; m < j.rows / 16; m += INVERTED_WARPS) {
        const uint32_t pixels = inverted_address(shared + j.input) +
                                (m * 16 + lane % 16) * pitch + lane / 16 * 16;
        float sum[Step / 8][4] = {};
        inverted_factors<Step> now, next;
        now.load(pixels, columns, pitch);
#pragma unroll 2
        for (int k = 32; k < j.depth * 2; k += 32) {
            next.load(pixels + k, columns + k, pitch);
            now.multiply(sum);
            now = next;
        }
        now.multiply(sum);
        inverted_keep<Step>(j, sum, shared, (const float *)(piece + j.depth_at),
                            m * 16 + lane / 4);
    }
}

/* ---- channel by channel ---------------------------------------------------------- */

/* Eight channels of rows one below the other. w: of the window's elements, a step's
 * channels each; the column of a window is the outer loop, so that few are held. */
template <int K, int S, int Step>
static __device__ inline void inverted_slide(float (&sum)[INVERTED_ROWS][8],
                                             const char *from, int row, int rows,
                                             int across, const float *w)
{
#pragma unroll 1
    for (int s = 0; s < K; s++) {
        float weight[K][8];
#pragma unroll
        for (int r = 0; r < K; r++) {
            *(float4 *)&weight[r][0] = *(const float4 *)(w + (r * K + s) * Step);
            *(float4 *)&weight[r][4] = *(const float4 *)(w + (r * K + s) * Step + 4);
        }
#pragma unroll
        for (int r = 0; r < (INVERTED_ROWS - 1) * S + K; r++) {
            const int at = min(row + r, rows - 1) * across + s;
            const pack<__half, 8> x =
                *(const pack<__half, 8> *)(from + at * (Step + INVERTED_APART) * 2);
#pragma unroll
            for (int c = 0; c < 8; c++) {
                const float v = __half2float(x.v[c]);
#pragma unroll
                for (int o = 0; o < INVERTED_ROWS; o++)
                    if (r >= o * S && r < o * S + K)
                        sum[o][c] = fmaf(v, weight[r - o * S][c], sum[o][c]);
            }
        }
    }
}

/* Eight channels for the second product, or to the output. */
static __device__ inline void inverted_hold(const float (&v)[8], char *to)
{
    *(uint4 *)to = make_uint4(inverted_halves(v[0], v[1]), inverted_halves(v[2], v[3]),
                              inverted_halves(v[4], v[5]), inverted_halves(v[6], v[7]));
}

static __device__ inline void inverted_store(const float (&v)[8], __half *to)
{
    pack<__half, 8> y;
#pragma unroll
    for (int c = 0; c < 8; c++)
        y.v[c] = __float2half_rn(v[c]);
    *(pack<__half, 8> *)to = y;
}

/* Where a tile is. */
struct inverted_place {
    int image, top, left; /* of the output */
};

/* A step's channels of all pixels: for the product, or with none, to the output. */
template <int Step>
static __device__ inline void inverted_convolve(const inverted_job &j,
                                                const inverted_place &place, char *shared,
                                                const char *piece, int channel)
{
    const int pitch = (Step + INVERTED_APART) * 2, packs = Step / 8;
    const int segments = (j.tile_h + INVERTED_ROWS - 1) / INVERTED_ROWS;
    const float *bias = (const float *)(piece + j.depth_at) + Step;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < packs * j.tile_w * segments;
         i += INVERTED_THREADS) {
        const int q = i / packs, pack_at = i - q * packs;
        const int segment = (int)divide_by(q, j.wide), column = q - segment * j.tile_w;
        const int row = segment * INVERTED_ROWS;
        const float *w = bias + Step + pack_at * 8;
        const char *from =
            shared + j.middle_at + pack_at * 16 + column * j.stride * pitch;
        float sum[INVERTED_ROWS][8];
#pragma unroll
        for (int o = 0; o < INVERTED_ROWS; o++)
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[o][c] = bias[pack_at * 8 + c];
        if (j.kernel == 3 && j.stride == 1)
            inverted_slide<3, 1, Step>(sum, from, row, j.halo_h, j.halo_w, w);
        else if (j.kernel == 3)
            inverted_slide<3, 2, Step>(sum, from, row * 2, j.halo_h, j.halo_w, w);
        else if (j.stride == 1)
            inverted_slide<5, 1, Step>(sum, from, row, j.halo_h, j.halo_w, w);
        else
            inverted_slide<5, 2, Step>(sum, from, row * 2, j.halo_h, j.halo_w, w);
#pragma unroll
        for (int o = 0; o < INVERTED_ROWS; o++) {
            inverted_activate(sum[o], j.convolved);
            const int at = row + o, h = place.top + at, wide = place.left + column;
            if (at >= j.tile_h)
                continue;
            if (j.parts > 0)
                inverted_hold(sum[o], shared + j.convolved_at +
                                          (at * j.tile_w + column) * pitch +
                                          pack_at * 16);
            else if (h < j.out_h && wide < j.out_w && channel + pack_at * 8 < j.middle)
                inverted_store(
                    sum[o], j.y +
                                (((int64_t)place.image * j.out_h + h) * j.out_w + wide) *
                                    j.middle +
                                channel + pack_at * 8);
        }
    }
}

/* ---- results --------------------------------------------------------------------- */

/* A step of the second product: 16 pixels of a warp, half of the results. */
template <int N, int Step>
static __device__ inline void inverted_project(const inverted_job &j, float (&sum)[N][4],
                                               char *shared, const char *piece)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int pitch = (Step + INVERTED_APART) * 2;
    const uint32_t pixels = inverted_address(shared + j.convolved_at) +
                            (warp % 4 * 16 + lane % 16) * pitch + lane / 16 * 16;
    const uint32_t columns = inverted_address(piece + j.project_at) +
                             (warp / 4 * N * 8 + lane % 8 + lane / 16 * 8) * pitch +
                             lane / 8 % 2 * 16;
#pragma unroll 2
    for (int k = 0; k < Step; k += 16) {
        uint32_t a[4], b[N / 2][4];
        inverted_load(a, pixels + k * 2);
#pragma unroll
        for (int n = 0; n < N / 2; n++)
            inverted_load(b[n], columns + n * 16 * pitch + k * 2);
#pragma unroll
        for (int n = 0; n < N / 2; n++) {
            inverted_multiply(sum[2 * n], a, b[n][0], b[n][1]);
            inverted_multiply(sum[2 * n + 1], a, b[n][2], b[n][3]);
        }
    }
}

/* Sums to who adds them up: pixel p to block p % blocks, into rows of each block. Of two
 * threads side by side one has the upper pixel's four results, one the lower's. */
template <int N>
static __device__ inline void inverted_share(const inverted_job &j,
                                             const float (&sum)[N][4], char *shared,
                                             int rank, uint64_t *barrier)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int blocks = 1 << j.shift;
    const bool odd = lane & 1;
    const int row = warp % 4 * 16 + lane / 4 + (odd ? 8 : 0);
    const int place = rank * (INVERTED_PIXELS >> j.shift) + (row >> j.shift);
    const bool there = row < j.tile_h * j.tile_w;
    const inverted_peer peer(
        shared + j.sums +
            (place * (j.padded + INVERTED_APART) + warp / 4 * N * 8 + lane % 4 / 2 * 4) *
                4,
        barrier, row & (blocks - 1));
#pragma unroll
    for (int n = 0; n < N; n++) {
        const float x = odd ? sum[n][0] : sum[n][2], y = odd ? sum[n][1] : sum[n][3];
        const float p = __shfl_xor_sync(0xffffffffu, x, 1);
        const float q = __shfl_xor_sync(0xffffffffu, y, 1);
        const float4 four = odd ? make_float4(p, q, sum[n][2], sum[n][3])
                                : make_float4(sum[n][0], sum[n][1], p, q);
        if (there && blocks > 1)
            peer.tell(n * 32, four);
        else if (there)
            peer.keep(n * 32, four);
    }
}

/* A block's pixels, eight results of a thread: the element of y, or -1; and which of the
 * block's pixels, and of the part's results. */
static __device__ inline int64_t inverted_result(const inverted_job &j,
                                                 const inverted_place &place, int rank,
                                                 int first, int i, int *pixel,
                                                 int *channel)
{
    *pixel = (int)divide_by(i, j.results);
    *channel = (i - *pixel * (int)j.results.d) * 8;
    const int at = (*pixel << j.shift) + rank;
    const int row = (int)divide_by(at, j.wide), column = at - row * j.tile_w;
    const int h = place.top + row, w = place.left + column;
    return row < j.tile_h && h < j.out_h && w < j.out_w && first + *channel < j.out_c
               ? (((int64_t)place.image * j.out_h + h) * j.out_w + w) * j.out_c + first +
                     *channel
               : -1;
}

static __device__ inline pack<__half, 8> inverted_addend(const inverted_job &j,
                                                         int64_t at)
{
    pack<__half, 8> zeros;
    memset(&zeros, 0, sizeof zeros);
    return j.addend && at >= 0 ? *(const pack<__half, 8> *)(j.addend + at) : zeros;
}

static __device__ inline void inverted_finish(const inverted_job &j,
                                              const inverted_place &place, char *shared,
                                              int rank, int first, uint64_t *barrier)
{
    const int own = INVERTED_PIXELS >> j.shift, pitch = j.padded + INVERTED_APART;
    int pixel, channel;
    int64_t at =
        inverted_result(j, place, rank, first, (int)threadIdx.x, &pixel, &channel);
    pack<__half, 8> add = inverted_addend(j, at);
    if (j.shift > 0)
        inverted_await(barrier, 0);
    else
        __syncthreads();
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < own * (int)j.results.d;) {
        if (at >= 0) {
            const float *sums =
                (const float *)(shared + j.sums) + pixel * pitch + channel;
            const float *bias = j.project_bias + first + channel;
            float v[8];
            *(float4 *)&v[0] = *(const float4 *)bias;
            *(float4 *)&v[4] = *(const float4 *)(bias + 4);
            for (int b = 0; b < 1 << j.shift; b++, sums += own * pitch) {
                const float4 low = *(const float4 *)sums,
                             high = *(const float4 *)(sums + 4);
                v[0] += low.x, v[1] += low.y, v[2] += low.z, v[3] += low.w;
                v[4] += high.x, v[5] += high.y, v[6] += high.z, v[7] += high.w;
            }
#pragma unroll
            for (int c = 0; c < 8; c++)
                v[c] += __half2float(add.v[c]);
            inverted_activate(v, j.projected);
            inverted_store(v, j.y + at);
        }
        i += INVERTED_THREADS;
        at = inverted_result(j, place, rank, first, i, &pixel, &channel);
        add = inverted_addend(j, at);
    }
}

/* ---- all of it ------------------------------------------------------------------- */

/* Of each pixel of the halo, its place in the image, or -1. */
static __device__ inline void inverted_tabulate(const inverted_job &j,
                                                const inverted_place &place, char *shared)
{
    int *table = (int *)(shared + j.table);
    for (int i = (int)threadIdx.x; i < j.rows; i += INVERTED_THREADS) {
        const int row = (int)divide_by(i, j.halo_wide);
        const int h = place.top * j.stride - j.pad_h + row;
        const int w = place.left * j.stride - j.pad_w + i - row * j.halo_w;
        table[i] =
            i < j.halo && (unsigned)h < (unsigned)j.in_h && (unsigned)w < (unsigned)j.in_w
                ? h * j.in_w + w
                : -1;
    }
}

/* Channels of the halo, zeros where there are none; from `channel` on, `count` of them.
 */
static __device__ inline void inverted_gather(const inverted_job &j, int image,
                                              char *shared, int to, int channel,
                                              const divisor &packs)
{
    const int *table = (const int *)(shared + j.table);
    const int pitch = ((int)packs.d * 8 + INVERTED_APART) * 2;
    const __half *x = j.x + (int64_t)image * j.in_h * j.in_w * j.in_c;
    for (int i = (int)threadIdx.x; i < j.rows * (int)packs.d; i += INVERTED_THREADS) {
        const int row = (int)divide_by(i, packs), p = i - row * (int)packs.d;
        const int c = channel + p * 8, pixel = table[row];
        const bool there = pixel >= 0 && c < j.in_c;
        inverted_copy(inverted_address(shared + to) + row * pitch + p * 16,
                      there ? x + (int64_t)pixel * j.in_c + c : x, there);
    }
    end_copies();
    await_copies<0>();
}

/* A step's channels: waits for its weights, has a later one's fetched. */
template <int N, int Step>
static __device__ inline void
inverted_take(const inverted_job &j, const inverted_place &place, char *shared,
              const char *steps, uint64_t *full, int first, int last, int at,
              float (&sum)[N < 1 ? 1 : N][4])
{
    const int turn = (at - first) & 1;
    const char *piece = shared + j.weights + turn * j.piece;
    if (!j.expands)
        inverted_gather(j, place.image, shared, j.middle_at, at * Step, j.packs);
    inverted_await(full + turn, (at - first) / 2 & 1);
    __syncthreads();
    if (threadIdx.x == 0 && at > first && at + 1 < last)
        inverted_fetch(shared + j.weights + (turn ^ 1) * j.piece,
                       steps + (int64_t)(at + 1) * j.piece, j.piece, full + (turn ^ 1));
    if (j.expands) {
        inverted_expand<Step>(j, shared, piece);
        __syncthreads();
    }
    inverted_convolve<Step>(j, place, shared, piece, at * Step);
    __syncthreads();
    if constexpr (N > 0)
        inverted_project<N, Step>(j, sum, shared, piece);
}

/* N: a warp's results of a part in eights; 0: there is no second product. A block of a
 * cluster has `each` steps, of so many channels. */
template <int N, int Step>
static __global__ void __launch_bounds__(INVERTED_THREADS, N > 6 ? 1 : 2)
    inverted_kernel(const __grid_constant__ inverted_job j)
{
    extern __shared__ float4 inverted_memory[];
    __shared__ uint64_t barriers[3]; /* of two pieces, and of sums */
    char *shared = (char *)inverted_memory;
    const int blocks = 1 << j.shift, rank = (int)blockIdx.x & (blocks - 1);
    const uint32_t tile = blockIdx.x >> j.shift;
    const uint32_t image = divide_by(tile, j.tiles), within = tile - image * j.tiles.d;
    const uint32_t down = divide_by(within, j.across);
    const inverted_place place = {(int)image, (int)down * j.tile_h,
                                  (int)(within - down * j.across.d) * j.tile_w};
    const int first = min(rank * j.each, j.count), last = min(first + j.each, j.count);
    const char *steps = j.steps + (int64_t)blockIdx.y * j.count * j.piece;
    if (threadIdx.x == 0) {
        const int own = (j.tile_h * j.tile_w - rank + blocks - 1) >> j.shift;
        inverted_open(barriers);
        inverted_open(barriers + 1);
        inverted_open(barriers + 2);
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        inverted_expect(barriers + 2, (own * j.padded * (int)sizeof(float)) << j.shift);
        for (int i = first; i < last && i < first + 2; i++)
            inverted_fetch(shared + j.weights + (i - first) * j.piece,
                           steps + (int64_t)i * j.piece, j.piece, barriers + i - first);
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;\n" ::: "memory");
    inverted_tabulate(j, place, shared);
    __syncthreads();
    wait_for_previous();
    launch_next();
    if (j.expands)
        inverted_gather(j, place.image, shared, j.input, 0, j.in_packs);
    float sum[N < 1 ? 1 : N][4] = {};
#pragma unroll 1
    for (int at = first; at < last; at++)
        inverted_take<N, Step>(j, place, shared, steps, barriers, first, last, at, sum);
    asm volatile("barrier.cluster.wait.aligned;\n" ::: "memory");
    if constexpr (N > 0) {
        inverted_share<N>(j, sum, shared, rank, barriers + 2);
        inverted_finish(j, place, shared, rank, (int)blockIdx.y * j.part, barriers + 2);
    }
}
#else
template <int N, int Step>
static __global__ void inverted_kernel(const __grid_constant__ inverted_job)
{
}
#endif

#endif /* PLUGINS_INVERTED_RESIDUAL_BLOCK_CUH */
