/* SPDX-License-Identifier: Apache-2.0
 *
 * How an inverted residual is shared by blocks: tiles of the output, channels of a step,
 * blocks of a cluster; where all of it lies in shared memory; and its weights, as pieces
 * for a step each.
 */
#ifndef PLUGINS_INVERTED_RESIDUAL_SHARE_CUH
#define PLUGINS_INVERTED_RESIDUAL_SHARE_CUH

#include "plugins/inverted_residual/block.cuh"

#define INVERTED_SHARED (225 << 10) /* bytes of a block, at most */
#define INVERTED_RESULTS 160        /* of a part, at most */
#define INVERTED_TILE 16            /* rows or columns of a tile, at most */

/* Channels are whole packs of 8; out_c 0: nothing is projected. */
struct inverted_sizes {
    int64_t images;
    int32_t in_c, middle, out_c, expands;
    int32_t in_h, in_w, out_h, out_w, kernel, stride, pad_h, pad_w;
    int32_t step, part; /* channels of a step, results of a part, at most */
    int32_t multiprocessors;
};

static inline int32_t inverted_rounded(int32_t n, int32_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- tiles ------------------------------------------------------------------------- */

static inline void inverted_set_tile(inverted_job *j, const inverted_sizes *s, int h,
                                     int w)
{
    j->tile_h = h;
    j->tile_w = w;
    j->halo_h = (h - 1) * s->stride + s->kernel;
    j->halo_w = (w - 1) * s->stride + s->kernel;
    j->halo = j->halo_h * j->halo_w;
    j->rows = inverted_rounded(j->halo, 16);
}

/* What a tile costs, in products of a channel between: those of the halo and of the
 * pixels, and the window's, which are made one by one. */
static inline int64_t inverted_tile_cost(const inverted_job *j, const inverted_sizes *s)
{
    const int64_t tiles = (int64_t)((s->out_h + j->tile_h - 1) / j->tile_h) *
                          ((s->out_w + j->tile_w - 1) / j->tile_w);
    return tiles * ((int64_t)j->rows * ((s->expands ? j->depth : 0) + 32) +
                    INVERTED_PIXELS * (s->kernel * s->kernel * 16 + j->padded));
}

static inline void inverted_choose_tile(inverted_job *j, const inverted_sizes *s)
{
    int64_t least = INT64_MAX;
    int best_h = 1, best_w = 1;
    for (int h = 1; h <= INVERTED_TILE && h <= s->out_h; h++)
        for (int w = 1; w <= INVERTED_TILE && w <= s->out_w && w * h <= INVERTED_PIXELS;
             w++) {
            inverted_set_tile(j, s, h, w);
            const int64_t cost = inverted_tile_cost(j, s);
            if (cost < least) {
                least = cost;
                best_h = h;
                best_w = w;
            }
        }
    inverted_set_tile(j, s, best_h, best_w);
}

/* ---- steps ------------------------------------------------------------------------- */

/* Places in shared memory; bytes. */
static inline int64_t inverted_lay_out(inverted_job *j)
{
    const int64_t row = (j->step + INVERTED_APART) * 2;
    const int64_t wide = (j->depth + INVERTED_APART) * 2;
    const int64_t sums =
        j->parts ? (int64_t)INVERTED_PIXELS * (j->padded + INVERTED_APART) * 4 : 0;
    int64_t at = inverted_rounded(j->rows * 4, 16);
    j->project_at = (int32_t)(j->expands ? j->step * wide : 0);
    j->depth_at = (int32_t)(j->project_at + j->padded * row);
    j->piece = j->depth_at + j->step * (2 + j->kernel * j->kernel) * 4;
    j->table = 0;
    j->weights = (int32_t)at;
    at += 2 * j->piece;
    j->convolved_at = (int32_t)at;
    at += INVERTED_PIXELS * row;
    j->input = j->sums = (int32_t)at;
    at += j->expands ? j->rows * wide : 0;
    j->middle_at = (int32_t)at;
    at += j->rows * row;
    if (j->shift > 0) { /* others write there at any time */
        j->sums = (int32_t)at;
        return at + sums;
    }
    return at > j->sums + sums ? at : j->sums + sums;
}

static inline void inverted_set_step(inverted_job *j, int step, int shift)
{
    j->step = step;
    j->shift = shift;
    j->count = (j->middle + step - 1) / step;
    j->each = (j->count + (1 << shift) - 1) >> shift;
}

/* In channels of a step: each step waits some times, and so does a cluster. */
static inline int64_t inverted_step_cost(const inverted_job *j, const inverted_sizes *s)
{
    const int64_t tiles = s->images * j->tiles.d * (j->parts ? j->parts : 1);
    const int64_t waves =
        ((tiles << j->shift) + s->multiprocessors - 1) / s->multiprocessors;
    return waves * (j->each * (j->step + 24) + 24) +
           (j->shift ? 24 + (2 << j->shift) : 0);
}

/* 0: no step fits. */
static inline int inverted_choose_steps(inverted_job *j, const inverted_sizes *s)
{
    int64_t least = INT64_MAX;
    int best_step = 0, best_shift = 0;
    for (int step = 32; step <= s->step; step += 16)
        for (int shift = 0; 1 << shift <= INVERTED_CLUSTER; shift++) {
            inverted_set_step(j, step, shift);
            const int64_t cost = inverted_step_cost(j, s);
            if ((shift > 0 && j->count <= 1 << (shift - 1)) || cost > least ||
                inverted_lay_out(j) > INVERTED_SHARED)
                continue;
            least = cost;
            best_step = step;
            best_shift = shift;
        }
    if (best_step)
        inverted_set_step(j, best_step, best_shift);
    return best_step;
}

static inline void inverted_divide(inverted_job *j, const inverted_sizes *s)
{
    const int across = (s->out_w + j->tile_w - 1) / j->tile_w;
    j->across = divisor_of(across);
    j->tiles = divisor_of((int64_t)across * ((s->out_h + j->tile_h - 1) / j->tile_h));
    j->halo_wide = divisor_of(j->halo_w);
    j->wide = divisor_of(j->tile_w);
    j->in_packs = divisor_of(j->depth / 8);
    j->results = divisor_of(j->part ? j->part / 8 : 1);
}

/* Bytes of shared memory; 0: it does not fit. */
static inline int32_t inverted_plan(inverted_job *j, const inverted_sizes *s)
{
    static const int widths[] = {32, 64, 96, INVERTED_RESULTS};
    memset(j, 0, sizeof *j);
    j->expands = s->expands;
    j->in_c = s->in_c;
    j->depth = inverted_rounded(s->in_c, 16);
    j->middle = s->middle;
    j->out_c = s->out_c;
    j->in_h = s->in_h, j->in_w = s->in_w;
    j->out_h = s->out_h, j->out_w = s->out_w;
    j->kernel = s->kernel, j->stride = s->stride;
    j->pad_h = s->pad_h, j->pad_w = s->pad_w;
    j->parts = (s->out_c + s->part - 1) / s->part;
    if (j->parts) {
        j->part = inverted_rounded((s->out_c + j->parts - 1) / j->parts, 8);
        for (int i = 0; j->padded < j->part; i++)
            j->padded = widths[i];
    }
    inverted_choose_tile(j, s);
    inverted_divide(j, s);
    if (!inverted_choose_steps(j, s))
        return 0;
    j->packs = divisor_of(j->step / 8);
    return (int32_t)inverted_lay_out(j);
}

/* ---- weights ----------------------------------------------------------------------- */

struct inverted_weights {
    const float *expand, *expand_bias, *depthwise, *depthwise_bias, *project,
        *project_bias;
    int32_t in_c, middle, out_c; /* without pads */
};

/* Element i of a step's first weights: a row of the input's channels for each result.
 * Rows past the results are some of them again: of zeros an infinite input would make
 * NaN, which the zeros of what follows do not undo. */
static __device__ inline float
inverted_expanding(const inverted_job &j, const inverted_weights &w, int from, int i)
{
    const int wide = j.depth + INVERTED_APART, c = i % wide;
    const int m = (from + i / wide) % w.middle;
    return c < w.in_c ? w.expand[(int64_t)m * w.in_c + c] : 0;
}

static __device__ inline float inverted_projecting(const inverted_job &j,
                                                   const inverted_weights &w, int from,
                                                   int part, int i)
{
    const int wide = j.step + INVERTED_APART, k = i / wide, m = i % wide;
    const int result = part * j.part + k;
    return k < j.part && result < w.out_c && m < j.step && from + m < w.middle
               ? w.project[(int64_t)result * w.middle + from + m]
               : 0;
}

/* Biases of the first product and of the windows, then these, an element for all. */
static __device__ inline float
inverted_sliding(const inverted_job &j, const inverted_weights &w, int from, int i)
{
    const int row = i / j.step, m = from + i % j.step, elements = j.kernel * j.kernel;
    const float *bias = row == 0 ? w.expand_bias : w.depthwise_bias;
    return m >= w.middle ? 0
           : row < 2     ? (bias ? bias[m] : 0)
                         : w.depthwise[(int64_t)m * elements + row - 2];
}

/* Of all parts, and what the last one pads. */
static __host__ __device__ inline int32_t inverted_biases(const inverted_job &j)
{
    return j.parts * j.part + j.padded;
}

static __host__ __device__ inline int64_t inverted_pieces(const inverted_job &j)
{
    return (int64_t)(j.parts ? j.parts : 1) * j.count * j.piece;
}

/* A block a piece; biases of the second product lie behind the last. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    inverted_pack_kernel(const __grid_constant__ inverted_job j,
                         const __grid_constant__ inverted_weights w, char *steps)
{
    const int at = (int)blockIdx.x % j.count, part = (int)blockIdx.x / j.count;
    char *piece = steps + (int64_t)blockIdx.x * j.piece;
    for (int i = (int)threadIdx.x; i < j.project_at / 2; i += CUDA_BLOCK)
        from_float((__half *)piece + i, inverted_expanding(j, w, at * j.step, i));
    for (int i = (int)threadIdx.x; i < (j.depth_at - j.project_at) / 2; i += CUDA_BLOCK)
        from_float((__half *)(piece + j.project_at) + i,
                   inverted_projecting(j, w, at * j.step, part, i));
    for (int i = (int)threadIdx.x; i < (j.piece - j.depth_at) / 4; i += CUDA_BLOCK)
        ((float *)(piece + j.depth_at))[i] = inverted_sliding(j, w, at * j.step, i);
    for (int i = (int)threadIdx.x; i < inverted_biases(j) && blockIdx.x == 0;
         i += CUDA_BLOCK)
        ((float *)(steps + inverted_pieces(j)))[i] =
            w.project_bias && i < w.out_c ? w.project_bias[i] : 0;
}

/* Bytes. */
static inline int64_t inverted_packed(const inverted_job &j)
{
    return inverted_pieces(j) + inverted_biases(j) * (int64_t)sizeof(float);
}

/* ---- launches ---------------------------------------------------------------------- */

typedef void (*inverted_function)(inverted_job);

template <int N>
static inline inverted_function inverted_kernel_of_step(int step)
{
    return step == 32   ? inverted_kernel<N, 32>
           : step == 48 ? inverted_kernel<N, 48>
                        : inverted_kernel<N, 64>;
}

static inline inverted_function inverted_kernel_of(const inverted_job &j)
{
    return j.padded == 0    ? inverted_kernel_of_step<0>(j.step)
           : j.padded == 32 ? inverted_kernel_of_step<2>(j.step)
           : j.padded == 64 ? inverted_kernel_of_step<4>(j.step)
           : j.padded == 96 ? inverted_kernel_of_step<6>(j.step)
                            : inverted_kernel_of_step<INVERTED_RESULTS / 16>(j.step);
}

static inline cudaLaunchConfig_t inverted_launch(cudaLaunchAttribute (&attributes)[2],
                                                 const inverted_job &j, int64_t images,
                                                 int32_t shared)
{
    cudaLaunchConfig_t config = {};
    attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[0].val.programmaticStreamSerializationAllowed = 1;
    attributes[1].id = cudaLaunchAttributeClusterDimension;
    attributes[1].val.clusterDim = {1u << j.shift, 1, 1};
    config.gridDim = dim3((unsigned)((images * j.tiles.d) << j.shift),
                          (unsigned)(j.parts ? j.parts : 1));
    config.blockDim = dim3(INVERTED_THREADS);
    config.dynamicSmemBytes = (size_t)shared;
    config.attrs = attributes;
    config.numAttrs = 2;
    return config;
}

#endif /* PLUGINS_INVERTED_RESIDUAL_SHARE_CUH */
