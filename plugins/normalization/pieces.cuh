/* SPDX-License-Identifier: Apache-2.0
 *
 * What no block holds at once: rows too long or too few, and formats whose channels lie
 * side by side. Memory is blocks of rows of lanes, as on the host; a piece is some rows
 * of a block. One launch measures pieces, one joins them in a fixed order, and one, which
 * begins where the first ended and so finds much of the tensor in the cache, writes.
 */
#ifndef PLUGINS_NORMALIZATION_PIECES_CUH
#define PLUGINS_NORMALIZATION_PIECES_CUH

#include "plugins/normalization/job.cuh"

#define PIECE_BLOCKS 1024 /* to be had, where there is work for them */
#define PIECE_MOST 64     /* of one block */

/* A lane's place is block*lanes + lane, which is image*padded + channel. */
struct norm_pieces {
    int64_t blocks, rows, lanes;
    int64_t sets, groups, each; /* that share moments; of an image; channels each */
    int64_t padded, channels;   /* of an image */
    int32_t pieces, across, down,
        spans;      /* spans of lanes; threads of a span: packs, rows */
    float2 *part;   /* mean and squares, [block][piece][lane] */
    float2 *result; /* mean and factor, [set] */
};

static __host__ __device__ inline int64_t piece_start(const norm_pieces &m, int64_t piece)
{
    return m.rows * piece / m.pieces;
}

static inline norm_pieces norm_cut(int64_t blocks, int64_t rows, int64_t lanes, int n)
{
    norm_pieces m = {};
    const int64_t packs = lanes / n;
    m.blocks = blocks;
    m.rows = rows;
    m.lanes = lanes;
    m.across = (int32_t)(packs < CUDA_BLOCK ? packs : CUDA_BLOCK);
    m.down = CUDA_BLOCK / m.across;
    m.spans = (int32_t)((packs + m.across - 1) / m.across);
    int64_t pieces = PIECE_BLOCKS / (blocks * m.spans);
    const int64_t most = rows / (4 * m.down);
    pieces = pieces > PIECE_MOST ? PIECE_MOST : pieces;
    pieces = pieces > most ? most : pieces;
    m.pieces = (int32_t)(pieces < 1 ? 1 : pieces);
    return m;
}

/* Bytes of part and result. */
static inline size_t norm_pieces_memory(const norm_pieces &m)
{
    return (size_t)(m.blocks * m.pieces * m.lanes + m.sets) * sizeof(float2);
}

/* Which block, piece and lanes a CUDA block has, and which of them a thread. */
struct piece_place {
    int64_t block, piece, lane, from, to;
    int32_t row;
    bool live;
};

template <int N>
static __device__ inline piece_place piece_find(const norm_pieces &m, uint32_t index)
{
    piece_place p;
    const uint32_t span = index % (uint32_t)m.spans;
    const uint32_t rest = index / (uint32_t)m.spans;
    const int32_t pack = (int32_t)threadIdx.x % m.across;
    p.piece = rest % (uint32_t)m.pieces;
    p.block = rest / (uint32_t)m.pieces;
    p.row = (int32_t)threadIdx.x / m.across;
    p.lane = ((int64_t)span * m.across + pack) * N;
    p.live = p.row < m.down && p.lane < m.lanes;
    p.from = piece_start(m, p.piece);
    p.to = piece_start(m, p.piece + 1);
    return p;
}

/* Join what the rows of threads have seen of a lane. */
static __device__ inline moments piece_join(moments t, moments *shared, int32_t row,
                                            const norm_pieces &m)
{
    int32_t half = 1;
    while (half * 2 < m.down)
        half *= 2;
    __syncthreads();
    shared[threadIdx.x] = t;
    for (; half > 0; half /= 2) {
        __syncthreads();
        if (row < half && row + half < m.down)
            shared[threadIdx.x] =
                moments_join(shared[threadIdx.x], shared[threadIdx.x + half * m.across]);
    }
    __syncthreads();
    return shared[threadIdx.x];
}

template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    measure_kernel(norm_job job, norm_pieces m)
{
    __shared__ moments shared[CUDA_BLOCK];
    const int U = 4; /* rows on their way at once */
    const piece_place p = piece_find<N>(m, blockIdx.x);
    float mean[N] = {}, square[N] = {}, n = 0;
    for (int64_t row = p.from + p.row; p.live && row < p.to; row += U * m.down) {
        float v[U][N];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (row + u * m.down < p.to)
                norm_load<T, N>(v[u], job,
                                (p.block * m.rows + row + u * m.down) * m.lanes + p.lane);
#pragma unroll
        for (int u = 0; u < U; u++)
            if (row + u * m.down < p.to) {
                n += 1;
                const float inverse = __frcp_rn(n);
#pragma unroll
                for (int k = 0; k < N; k++)
                    moments_add(job, mean[k], square[k], v[u][k], inverse);
            }
    }
    float2 *part = m.part + (p.block * m.pieces + p.piece) * m.lanes + p.lane;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const moments t = piece_join({n, mean[k], square[k]}, shared, p.row, m);
        if (p.live && p.row == 0)
            part[k] = make_float2(t.mean, t.square);
    }
}

/* A warp a set: its lanes take the parts in turn. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    join_kernel(norm_job job, norm_pieces m)
{
    const int64_t set = (int64_t)blockIdx.x * (CUDA_BLOCK / 32) + threadIdx.x / 32;
    moments t = {};
    if (set >= m.sets)
        return;
    for (int64_t i = threadIdx.x % 32; i < m.each * m.pieces; i += 32) {
        const int64_t piece = i / m.each, channel = set % m.groups * m.each + i % m.each;
        const int64_t place = set / m.groups * m.padded + channel;
        const float2 part =
            m.part[(place / m.lanes * m.pieces + piece) * m.lanes + place % m.lanes];
        const int64_t rows = piece_start(m, piece + 1) - piece_start(m, piece);
        t = moments_join(t, {(float)rows, part.x, part.y});
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        const moments other = {__shfl_down_sync(0xffffffffu, t.n, d),
                               __shfl_down_sync(0xffffffffu, t.mean, d),
                               __shfl_down_sync(0xffffffffu, t.square, d)};
        t = moments_join(t, other);
    }
    if (threadIdx.x % 32 != 0)
        return;
    const float factor = norm_factor(job, t.square, t.n);
    m.result[set] = make_float2(t.mean, factor);
    if (job.mean) {
        job.mean[set] = t.mean;
        job.inverse[set] = factor;
    }
}

/* y = (x - shift)*factor + addend of one lane; all 0 for pads. */
struct lane_of {
    float shift, factor, addend;
};

static __device__ inline lane_of piece_lane(const norm_job &job, const norm_pieces &m,
                                            int64_t place)
{
    const int64_t image = place / m.padded, c = place % m.padded;
    if (c >= m.channels)
        return {};
    lane_of l;
    if (job.batch) {
        l.shift = job.means ? job.means[c] : 0;
        l.factor = 1 / sqrtf((job.variances ? job.variances[c] : 1) + job.epsilon);
    } else {
        const float2 t = m.result[image * m.groups + c / m.each];
        l.shift = t.x;
        l.factor = t.y;
    }
    l.factor *= job.by_channel && job.scale ? job.scale[c] : 1;
    l.addend = job.by_channel && job.bias ? job.bias[c] : 0;
    return l;
}

/* Weights of lanes; those of elements (linear rows) are read on the way. The activation
 * of a pad is not 0, so pads are told apart. */
template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    adjust_kernel(norm_job job, norm_pieces m)
{
    const int U = 2;
    const piece_place p = piece_find<N>(m, gridDim.x - 1 - blockIdx.x);
    if (!p.live)
        return;
    lane_of lane[N];
    bool pad[N];
    const int64_t place = p.block * m.lanes + p.lane;
#pragma unroll
    for (int k = 0; k < N; k++) {
        lane[k] = piece_lane(job, m, place + k);
        pad[k] = (place + k) % m.padded >= m.channels;
    }
    for (int64_t row = p.from + p.row; row < p.to; row += U * m.down) {
        float v[U][N];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (row + u * m.down < p.to)
                norm_load<T, N>(v[u], job,
                                (p.block * m.rows + row + u * m.down) * m.lanes + p.lane);
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t at = (p.block * m.rows + row + u * m.down) * m.lanes + p.lane;
            if (row + u * m.down >= p.to)
                continue;
#pragma unroll
            for (int k = 0; k < N; k++)
                v[u][k] = pad[k] ? 0 : v[u][k];
            if (job.sum)
                norm_store<T, N>(job.sum, at, v[u]);
#pragma unroll
            for (int k = 0; k < N; k++)
                v[u][k] = (v[u][k] - lane[k].shift) * lane[k].factor + lane[k].addend;
            norm_activate<N>(v[u], job.activation);
#pragma unroll
            for (int k = 0; k < N; k++)
                v[u][k] = pad[k] ? 0 : v[u][k];
            norm_store<T, N>(job.y, at, v[u]);
        }
    }
}

/* ---- linear rows ------------------------------------------------------------------- */

/* The same for a row in one piece of memory: N columns of it are a thread's at a time, so
 * that `lanes` are N and `rows` cols/N; parts of the N are joined like channels. */
template <typename T, int N>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    adjust_row_kernel(norm_job job, norm_pieces m)
{
    const piece_place p = piece_find<N>(m, gridDim.x - 1 - blockIdx.x);
    float2 t = job.batch ? make_float2(0, 1) : m.result[p.block];
    if (job.batch) {
        const int64_t c = p.block % job.groups;
        t.x = job.means ? job.means[c] : 0;
        t.y = 1 / sqrtf((job.variances ? job.variances[c] : 1) + job.epsilon);
    }
#pragma unroll 2
    for (int64_t row = p.from + p.row; p.live && row < p.to; row += m.down) {
        const int64_t at = (p.block * m.rows + row) * N;
        float v[N], scale[N], bias[N];
        norm_load<T, N>(v, job, at);
        if (job.sum)
            norm_store<T, N>(job.sum, at, v);
        norm_weights<N>(scale, bias, job, p.block, row * N);
#pragma unroll
        for (int k = 0; k < N; k++)
            v[k] = (v[k] - t.x) * t.y * scale[k] + bias[k];
        norm_activate<N>(v, job.activation);
        norm_store<T, N>(job.y, at, v);
    }
}

static inline void join_launch(const norm_job &job, const norm_pieces &m,
                               cudaStream_t stream)
{
    const unsigned blocks = layer_blocks(m.sets, CUDA_BLOCK / 32);
    join_kernel<<<blocks, CUDA_BLOCK, 0, stream>>>(job, m);
}

template <typename T, int N>
static void pieces_launch(const norm_job &job, const norm_pieces &m, bool rows,
                          cudaStream_t stream)
{
    const unsigned blocks = (unsigned)(m.blocks * m.pieces * m.spans);
    if (!job.batch) {
        measure_kernel<T, N><<<blocks, CUDA_BLOCK, 0, stream>>>(job, m);
        join_launch(job, m, stream);
    }
    if (rows)
        adjust_row_kernel<T, N><<<blocks, CUDA_BLOCK, 0, stream>>>(job, m);
    else
        adjust_kernel<T, N><<<blocks, CUDA_BLOCK, 0, stream>>>(job, m);
}

#endif /* PLUGINS_NORMALIZATION_PIECES_CUH */
