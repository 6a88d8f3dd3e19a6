/* SPDX-License-Identifier: Apache-2.0
 *
 * CumSum on CUDA. A line that lies in one piece is scanned by a warp or a block, a tile
 * of it after the other with the sum so far carried on; long lines are cut into pieces
 * whose totals are scanned first. Of columns side by side each thread has its own. How
 * sums are associated depends on sizes alone.
 */
#include "kernels/layer.cuh"
#include "plugins/common/lines.h"

#define EACH 8          /* elements of a thread at once */
#define PIECE 8192      /* elements of a long line, at least */
#define PIECES 1024     /* of one line at most */
#define LINE_BLOCKS 264 /* from so many lines on none is cut */

struct cum_job {
    const void *x;
    void *y, *totals; /* totals: of pieces, [line][piece]; before them once scanned */
    int64_t lines, length, inner;
    int64_t piece; /* elements of one, a multiple of what a block scans at once */
    int32_t pieces;
    bool product, exclusive, reverse;
};

/* ---- numbers: floats gather in FP32, integers wrap ----------------------------------
 */

static __device__ inline float number(float x)
{
    return x;
}
static __device__ inline float number(__half x)
{
    return __half2float(x);
}
static __device__ inline float number(__nv_bfloat16 x)
{
    return __bfloat162float(x);
}
static __device__ inline uint32_t number(int32_t x)
{
    return (uint32_t)x;
}
static __device__ inline uint64_t number(int64_t x)
{
    return (uint64_t)x;
}
static __device__ inline void put(float *y, float x)
{
    *y = x;
}
static __device__ inline void put(__half *y, float x)
{
    *y = __float2half_rn(x);
}
static __device__ inline void put(__nv_bfloat16 *y, float x)
{
    *y = __float2bfloat16_rn(x);
}
static __device__ inline void put(int32_t *y, uint32_t x)
{
    *y = (int32_t)x;
}
static __device__ inline void put(int64_t *y, uint64_t x)
{
    *y = (int64_t)x;
}

template <typename A>
static __device__ inline A chained(const cum_job &job, A a, A b)
{
    return job.product ? a * b : a + b;
}

/* Where the i-th element in the order of running lies. */
static __device__ inline int64_t place(const cum_job &job, int64_t i)
{
    return job.reverse ? job.length - 1 - i : i;
}

/* ---- lines in one piece -------------------------------------------------------------
 */

/* What the threads before this one of the warp have; sum: with its own. */
template <typename A>
static __device__ inline A scan_warp(const cum_job &job, A mine, A &sum)
{
    const int lane = (int)threadIdx.x % 32;
    sum = mine;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const A other = __shfl_up_sync(0xffffffffu, sum, d);
        if (lane >= d)
            sum = chained(job, other, sum);
    }
    const A before = __shfl_up_sync(0xffffffffu, sum, 1);
    return lane == 0 ? (A)(job.product ? 1 : 0) : before;
}

/* What the threads before this one of the team have; total: of all. */
template <int Team, typename A>
static __device__ inline A scan_team(const cum_job &job, A mine, A *total, A *warps)
{
    const A none = (A)(job.product ? 1 : 0);
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    A sum;
    const A before = scan_warp(job, mine, sum);
    if (Team == 32) {
        *total = __shfl_sync(0xffffffffu, sum, 31);
        return before;
    }
    __syncthreads(); /* the tile before has been read */
    if (lane == 31)
        warps[warp] = sum;
    __syncthreads();
    A ahead = none, all = none;
    for (int i = 0; i < Team / 32; i++) {
        ahead = i == warp ? all : ahead;
        all = chained(job, all, warps[i]);
    }
    *total = all;
    return chained(job, ahead, before);
}

/* N elements of a thread, in the order of running, of which all are there or none. */
template <typename T, int N, typename A>
static __device__ inline void read_each(const cum_job &job, A v[EACH], int64_t line,
                                        int64_t i, int64_t to)
{
    const T *x = (const T *)job.x + line * job.length;
    const A none = (A)(job.product ? 1 : 0);
#pragma unroll
    for (int k = 0; k < EACH; k += N) {
        pack<T, N> p = {};
        const int64_t first = i + k;
        if (first < to)
            p = *(const pack<T, N> *)(x +
                                      (job.reverse ? place(job, first) - N + 1 : first));
#pragma unroll
        for (int e = 0; e < N; e++) {
            const A x = job.reverse ? number(p.v[N - 1 - e]) : number(p.v[e]);
            v[k + e] = !job.product || first < to ? x : none; /* zeros add nothing */
        }
    }
}

template <typename T, int N, typename A>
static __device__ inline void write_each(const cum_job &job, const A v[EACH],
                                         int64_t line, int64_t i, int64_t to)
{
    T *y = (T *)job.y + line * job.length;
#pragma unroll
    for (int k = 0; k < EACH; k += N) {
        const int64_t first = i + k;
        pack<T, N> p;
#pragma unroll
        for (int e = 0; e < N; e++)
            put(&p.v[job.reverse ? N - 1 - e : e], v[k + e]);
        if (first < to)
            *(pack<T, N> *)(y + (job.reverse ? place(job, first) - N + 1 : first)) = p;
    }
}

/* v becomes what it has to be with `sum` before it. */
template <typename A>
static __device__ inline void run_on(const cum_job &job, A (&v)[EACH], A sum)
{
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const A next = chained(job, sum, v[k]);
        v[k] = job.exclusive ? sum : next;
        sum = next;
    }
}

/* Elements of one team's piece of a line; N divides the length. */
template <typename T, int N, int Team, typename A>
static __global__ void __launch_bounds__(CUDA_BLOCK) line_kernel(cum_job job)
{
    __shared__ A warps[CUDA_BLOCK / 32];
    const int64_t item = (int64_t)blockIdx.x * (CUDA_BLOCK / Team) + threadIdx.x / Team;
    if (item >= job.lines * job.pieces)
        return; /* a team leaves as a whole */
    const int64_t line = item / job.pieces, piece = item % job.pieces;
    const int64_t from = piece * job.piece, end = min(job.length, from + job.piece);
    A carried = job.pieces > 1 ? ((const A *)job.totals)[item] : (A)(job.product ? 1 : 0);
    for (int64_t tile = from; tile < end; tile += Team * EACH) {
        const int64_t i = tile + (int64_t)(threadIdx.x % Team) * EACH;
        A v[EACH], mine = (A)(job.product ? 1 : 0), total;
        read_each<T, N, A>(job, v, line, i, end);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            mine = chained(job, mine, v[k]);
        const A before = scan_team<Team, A>(job, mine, &total, warps);
        run_on(job, v, chained(job, carried, before));
        write_each<T, N, A>(job, v, line, i, end);
        carried = chained(job, carried, total);
    }
}

/* Exclusive, of what the lanes have: `count` numbers that all warps find alike. */
template <typename A>
static __device__ inline A scan_few(const cum_job &job, const A *from, int count)
{
    const int lane = (int)threadIdx.x % 32;
    A sum;
    return scan_warp(job, lane < count ? from[lane] : (A)(job.product ? 1 : 0), sum);
}

/* Of lines of at most P tiles, a block each: every load is made before the first sum, and
 * the block waits once. With a wait for loads and three for the block in each tile, lines
 * of 4096 halves had 2.9 TB/s on an H200. Usual: sums, each with its own element, from
 * the front; where that was looked at for each element, and every thread went through the
 * sums of all warps, 3.5. */
template <typename T, int N, int P, bool Usual, typename A>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    held_kernel(const __grid_constant__ cum_job given)
{
    const int warp = (int)threadIdx.x / 32, warps = CUDA_BLOCK / 32;
    __shared__ A sums[P * warps];
    cum_job job = given;
    if (Usual)
        job.product = job.exclusive = job.reverse = false;
    A v[P][EACH], before[P];
#pragma unroll
    for (int p = 0; p < P; p++)
        read_each<T, N, A>(job, v[p], blockIdx.x,
                           (p * CUDA_BLOCK + (int64_t)threadIdx.x) * EACH, job.length);
#pragma unroll
    for (int p = 0; p < P; p++) {
        A mine = v[p][0], sum;
#pragma unroll
        for (int k = 1; k < EACH; k++)
            mine = chained(job, mine, v[p][k]);
        before[p] = scan_warp(job, mine, sum);
        if (threadIdx.x % 32 == 31)
            sums[p * warps + warp] = sum;
    }
    __syncthreads();
    const A ahead = scan_few(job, sums, P * warps);
#pragma unroll
    for (int p = 0; p < P; p++) {
        const A carried = __shfl_sync(0xffffffffu, ahead, p * warps + warp);
        run_on(job, v[p], chained(job, carried, before[p]));
        write_each<T, N, A>(job, v[p], blockIdx.x,
                            (p * CUDA_BLOCK + (int64_t)threadIdx.x) * EACH, job.length);
    }
}

/* Total of each piece. */
template <typename T, int N, typename A>
static __global__ void __launch_bounds__(CUDA_BLOCK) total_kernel(cum_job job)
{
    __shared__ A warps[CUDA_BLOCK / 32];
    const int64_t line = blockIdx.x / (uint32_t)job.pieces;
    const int64_t from = blockIdx.x % (uint32_t)job.pieces * job.piece;
    const int64_t end = min(job.length, from + job.piece);
    A carried = (A)(job.product ? 1 : 0);
    for (int64_t tile = from; tile < end; tile += CUDA_BLOCK * EACH) {
        A v[EACH], mine = (A)(job.product ? 1 : 0), total;
        read_each<T, N, A>(job, v, line, tile + (int64_t)threadIdx.x * EACH, end);
#pragma unroll
        for (int k = 0; k < EACH; k++)
            mine = chained(job, mine, v[k]);
        scan_team<CUDA_BLOCK, A>(job, mine, &total, warps);
        carried = chained(job, carried, total);
    }
    if (threadIdx.x == 0)
        ((A *)job.totals)[blockIdx.x] = carried;
}

/* Totals of a line become what lies before each piece. */
template <typename A>
static __global__ void __launch_bounds__(CUDA_BLOCK) before_kernel(cum_job job)
{
    __shared__ A warps[CUDA_BLOCK / 32];
    A *totals = (A *)job.totals + (int64_t)blockIdx.x * job.pieces;
    const A none = (A)(job.product ? 1 : 0);
    A carried = none;
    for (int32_t tile = 0; tile < job.pieces; tile += CUDA_BLOCK) {
        const int32_t i = tile + (int32_t)threadIdx.x;
        A total;
        const A mine = i < job.pieces ? totals[i] : none;
        const A before = scan_team<CUDA_BLOCK, A>(job, mine, &total, warps);
        if (i < job.pieces)
            totals[i] = chained(job, carried, before);
        carried = chained(job, carried, total);
    }
}

/* ---- columns side by side ------------------------------------------------------------
 */

/* A thread has N columns, and four steps of them on their way at once. */
template <typename T, int N, typename A>
static __global__ void __launch_bounds__(CUDA_BLOCK) column_kernel(cum_job job)
{
    const int U = 4;
    const int64_t line = ((int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x) * N;
    A sum[N];
    if (line >= job.lines)
        return;
    const int64_t at = lines_start(line, job.length, job.inner);
    const T *x = (const T *)job.x + at;
    T *y = (T *)job.y + at;
#pragma unroll
    for (int k = 0; k < N; k++)
        sum[k] = (A)(job.product ? 1 : 0);
    for (int64_t i = 0; i < job.length; i += U) {
        pack<T, N> p[U];
#pragma unroll
        for (int u = 0; u < U; u++)
            if (i + u < job.length)
                p[u] = *(const pack<T, N> *)(x + place(job, i + u) * job.inner);
#pragma unroll
        for (int u = 0; u < U; u++) {
            if (i + u >= job.length)
                break;
#pragma unroll
            for (int k = 0; k < N; k++) {
                const A before = sum[k];
                sum[k] = chained(job, before, number(p[u].v[k]));
                put(&p[u].v[k], job.exclusive ? before : sum[k]);
            }
            *(pack<T, N> *)(y + place(job, i + u) * job.inner) = p[u];
        }
    }
}

/* ---- the choice ----------------------------------------------------------------------
 */

static cum_job cum_job_of(const strata_cum_sum *p, const strata_tensor *x)
{
    const lines l = lines_of(x, lines_axis(p->axis, x->rank));
    const int64_t tile = CUDA_BLOCK * EACH;
    cum_job job = {};
    job.lines = l.outer * l.inner;
    job.length = job.piece = l.length;
    job.inner = l.inner;
    job.pieces = 1;
    job.product = p->op == STRATA_CUM_PRODUCT;
    job.exclusive = p->exclusive;
    job.reverse = p->reverse;
    if (l.inner > 1 || job.lines >= LINE_BLOCKS || l.length < 2 * PIECE)
        return job;
    int64_t piece = l.length / PIECES > PIECE ? l.length / PIECES : PIECE;
    job.piece = (piece + tile - 1) / tile * tile;
    job.pieces = (int32_t)((l.length + job.piece - 1) / job.piece);
    return job;
}

static size_t cum_workspace(const strata_node *n)
{
    const cum_job job = cum_job_of((const strata_cum_sum *)n->params, &n->in[0]);
    return job.pieces == 1 ? 0 : (size_t)(job.lines * job.pieces) * sizeof(int64_t);
}

template <typename T, int N, int P, typename A>
static void held_launch(const cum_job &job, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)job.lines;
    if (job.product || job.exclusive || job.reverse)
        held_kernel<T, N, P, false, A><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
    else
        held_kernel<T, N, P, true, A><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
}

template <typename T, int N, typename A>
static void line_launch(const cum_job &job, cudaStream_t stream)
{
    const int64_t items = job.lines * job.pieces, tile = CUDA_BLOCK * EACH;
    if (job.pieces > 1) {
        total_kernel<T, N, A><<<(unsigned)items, CUDA_BLOCK, 0, stream>>>(job);
        before_kernel<A><<<(unsigned)job.lines, CUDA_BLOCK, 0, stream>>>(job);
    }
    if (job.length <= 32 * EACH * 4)
        line_kernel<T, N, 32, A>
            <<<layer_blocks(items, CUDA_BLOCK / 32), CUDA_BLOCK, 0, stream>>>(job);
    else if (N > 1 && job.pieces == 1 && job.length <= 2 * tile)
        held_launch<T, N, 2, A>(job, stream);
    else if (N > 1 && job.pieces == 1 && job.length <= 4 * tile)
        held_launch<T, N, 4, A>(job, stream);
    else
        line_kernel<T, N, CUDA_BLOCK, A><<<(unsigned)items, CUDA_BLOCK, 0, stream>>>(job);
}

template <typename T, typename A>
static void cum_launch(const strata_run *r)
{
    const int N = 16 / (int)sizeof(T) > EACH ? EACH : 16 / (int)sizeof(T);
    const cudaStream_t stream = layer_stream(r);
    cum_job job = cum_job_of((const strata_cum_sum *)r->params, &r->in[0]);
    job.x = r->in[0].data;
    job.y = r->out[0].data;
    job.totals = r->workspace;
    if (job.inner == 1) {
        job.length % N == 0 ? line_launch<T, N, A>(job, stream)
                            : line_launch<T, 1, A>(job, stream);
        return;
    }
    /* Few columns: more threads with less each. */
    const int Two = 4 / (int)sizeof(T) > 1 ? 2 : 1;
    if (Two == 2 && job.inner % 2 == 0)
        column_kernel<T, Two, A>
            <<<layer_blocks(job.lines / Two, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(job);
    else
        column_kernel<T, 1, A>
            <<<layer_blocks(job.lines, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(job);
}

static int cum_run(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_INT32:
        cum_launch<int32_t, uint32_t>(r);
        break;
    case STRATA_INT64:
        cum_launch<int64_t, uint64_t>(r);
        break;
    default:
        layer_float(r->in[0].dtype, [&](auto t) { cum_launch<decltype(t), float>(r); });
    }
    return layer_launched(r, "cum_sum");
}

/* ---- tables --------------------------------------------------------------------------
 */

static int cum_accept(const strata_node *n)
{
    const cum_job job = cum_job_of((const strata_cum_sum *)n->params, &n->in[0]);
    if (job.lines * job.pieces > 0x7fffffff)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld lines; a launch has at most 2^31 - 1 blocks",
                           (long long)job.lines);
    return STRATA_OK;
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_I32_NCHW |
      STRATA_I64_NCHW},
     {STRATA_SAME},
     {0},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_INPLACE_OK,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = cum_accept,
     .workspace = cum_workspace,
     .run = cum_run,
     .bandwidth = 0.7},
};

static const strata_extends cum_sum = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::CumSum",
    .params_size = sizeof(strata_cum_sum),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&cum_sum};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::CumSum", extends)
