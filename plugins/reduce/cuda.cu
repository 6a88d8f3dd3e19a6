/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduce on CUDA. Where reduced elements lie side by side, a team of threads has an output
 * element and reads along; where kept ones do, threads have columns side by side and rows
 * are shared by a block. What is behind few outputs is cut into pieces, which a second
 * launch joins. Cuts and joins depend on sizes alone, so results are the same each time.
 */
#include "kernels/layer.cuh"
#include "plugins/reduce/reduce.h"

#define PIECE_BLOCKS 1056 /* to be had, where there is work for them */
#define ROW_PIECES 1024   /* of one output at most */
#define COLUMN_PIECES 64
#define UNROLL 4 /* packs of a thread on their way at once */

/* ---- numbers ----------------------------------------------------------------------- */

/* What is gathered of each element. */
enum { TAKE_SUM, TAKE_ABS, TAKE_SQUARE, TAKE_PRODUCT, TAKE_MAX, TAKE_MIN };

template <typename A> struct tally_of {
    A value;
};
struct exponents {
    float value, most; /* sum of exp(x - most) */
};

struct reduce_job {
    const void *x;
    void *y, *part;
    reduce_plan plan;
    int64_t outputs, rows; /* kept*width; run*gone */
    int64_t terms;
    int32_t op, take, pieces;
    int32_t across, down, spans; /* of columns */
    int32_t dtype;
    int64_t least, most; /* of an integer dtype */
};

static __device__ inline void start_of(const reduce_job &job, tally_of<float> &t)
{
    t.value = job.take == TAKE_PRODUCT ? 1.0f
              : job.take == TAKE_MAX   ? -INFINITY
              : job.take == TAKE_MIN   ? INFINITY
                                       : 0.0f;
}
static __device__ inline void start_of(const reduce_job &job, tally_of<int64_t> &t)
{
    t.value = job.take == TAKE_PRODUCT ? 1
              : job.take == TAKE_MAX   ? job.least
              : job.take == TAKE_MIN   ? job.most
                                       : 0;
}
static __device__ inline void start_of(const reduce_job &, exponents &t)
{
    t.value = 0;
    t.most = -INFINITY;
}

template <typename A>
static __device__ inline A joined(int32_t take, A a, A x)
{
    switch (take) {
    case TAKE_PRODUCT: return a * x;
    case TAKE_MAX: return x > a || x != x ? x : a;
    case TAKE_MIN: return x < a || x != x ? x : a;
    default: return a + x;
    }
}

template <typename A>
static __device__ inline void join(const reduce_job &job, tally_of<A> &a,
                                   const tally_of<A> &b)
{
    a.value = joined<A>(job.take, a.value, b.value);
}
/* An infinity or a NaN is no shift. */
static __device__ inline float shift_of(float most)
{
    return fabsf(most) < INFINITY ? most : 0;
}
static __device__ inline void join(const reduce_job &, exponents &a, const exponents &b)
{
    const float most = joined<float>(TAKE_MAX, a.most, b.most), shift = shift_of(most);
    const float left = a.value == 0 ? 0 : a.value * __expf(shift_of(a.most) - shift);
    a.value = left + (b.value == 0 ? 0 : b.value * __expf(shift_of(b.most) - shift));
    a.most = most;
}

static __device__ inline float number(float x) { return x; }
static __device__ inline float number(__half x) { return __half2float(x); }
static __device__ inline float number(__nv_bfloat16 x) { return __bfloat162float(x); }
static __device__ inline int64_t number(int8_t x) { return x; }
static __device__ inline int64_t number(uint8_t x) { return x; }
static __device__ inline int64_t number(int32_t x) { return x; }
static __device__ inline int64_t number(int64_t x) { return x; }

/* Unsigned, as integers wrap. */
static __device__ inline int64_t product(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static __device__ inline float product(float a, float b) { return a * b; }
static __device__ inline int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }
static __device__ inline float magnitude(float x) { return fabsf(x); }

/* One switch for a pack, which goes into one tally. */
template <typename T, int N, typename A>
static __device__ inline void take_pack(const reduce_job &job, tally_of<A> &t,
                                        const pack<T, N> &p)
{
    A a = t.value;
    switch (job.take) {
    case TAKE_ABS:
#pragma unroll
        for (int k = 0; k < N; k++)
            a += magnitude(number(p.v[k]));
        break;
    case TAKE_SQUARE:
#pragma unroll
        for (int k = 0; k < N; k++)
            a += product(number(p.v[k]), number(p.v[k]));
        break;
    case TAKE_PRODUCT:
#pragma unroll
        for (int k = 0; k < N; k++)
            a = product(a, number(p.v[k]));
        break;
    case TAKE_MAX:
    case TAKE_MIN:
#pragma unroll
        for (int k = 0; k < N; k++)
            a = joined<A>(job.take, a, number(p.v[k]));
        break;
    default:
#pragma unroll
        for (int k = 0; k < N; k++)
            a += number(p.v[k]);
    }
    t.value = a;
}
template <typename T, int N>
static __device__ inline void take_pack(const reduce_job &, exponents &t,
                                        const pack<T, N> &p)
{
    float most = t.most;
#pragma unroll
    for (int k = 0; k < N; k++)
        most = joined<float>(TAKE_MAX, most, number(p.v[k]));
    const float shift = shift_of(most);
    float sum = t.value == 0 ? 0 : t.value * __expf(shift_of(t.most) - shift);
#pragma unroll
    for (int k = 0; k < N; k++)
        sum += __expf(number(p.v[k]) - shift);
    t.value = sum;
    t.most = most;
}

static __device__ inline float finished(const reduce_job &job, const tally_of<float> &t)
{
    switch (job.op) {
    case STRATA_REDUCE_MEAN: return t.value / (float)job.terms;
    case STRATA_REDUCE_L2: return sqrtf(t.value);
    case STRATA_REDUCE_LOG_SUM: return logf(t.value);
    default: return t.value;
    }
}
static __device__ inline float finished(const reduce_job &, const exponents &t)
{
    return shift_of(t.most) + logf(t.value);
}
static __device__ inline int64_t finished(const reduce_job &job,
                                          const tally_of<int64_t> &t)
{
    return job.op != STRATA_REDUCE_MEAN ? t.value : job.terms ? t.value / job.terms : 0;
}

static __device__ inline void put(float *y, float x) { *y = x; }
static __device__ inline void put(__half *y, float x) { *y = __float2half_rn(x); }
static __device__ inline void put(__nv_bfloat16 *y, float x)
{
    *y = __float2bfloat16_rn(x);
}
static __device__ inline void put(int8_t *y, int64_t x) { *y = (int8_t)x; }
static __device__ inline void put(uint8_t *y, int64_t x) { *y = (uint8_t)x; }
static __device__ inline void put(int32_t *y, int64_t x) { *y = (int32_t)x; }
static __device__ inline void put(int64_t *y, int64_t x) { *y = x; }

template <typename A>
static __device__ inline A shuffled(A x, int d)
{
    return __shfl_down_sync(0xffffffffu, x, d);
}
template <typename A>
static __device__ inline tally_of<A> from_below(const tally_of<A> &t, int d)
{
    return {shuffled(t.value, d)};
}
static __device__ inline exponents from_below(const exponents &t, int d)
{
    return {shuffled(t.value, d), shuffled(t.most, d)};
}

/* ---- places ------------------------------------------------------------------------ */

static __device__ inline int64_t place_of(const reduce_axis *axis, int32_t n, int64_t i,
                                          bool out)
{
    int64_t at = 0;
    for (int32_t d = 0; d < n; d++) {
        int64_t next = 0, c = i;
        if (d + 1 < n) {
            next = i >> 32 || axis[d].n >> 32 ? i / axis[d].n
                                              : (int64_t)((uint32_t)i / (uint32_t)axis[d].n);
            c = i - next * axis[d].n;
        }
        at += c * (out ? axis[d].out : axis[d].in);
        i = next;
    }
    return at;
}

/* Where output o lies. */
static __device__ inline int64_t output_at(const reduce_job &job, int64_t o)
{
    const reduce_plan &p = job.plan;
    const int64_t column = p.width == 1 ? 0 : o % p.width, kept = o / p.width;
    return place_of(p.keep, p.n_kept, kept, true) + column * p.step;
}

static __device__ inline int64_t piece_start(const reduce_job &job, int64_t piece,
                                             int64_t whole)
{
    return job.rows / whole * piece / job.pieces * whole;
}

/* A piece's, or the result. */
template <typename T, typename Tally>
static __device__ inline void close_tally(const reduce_job &job, const Tally &t, int64_t o,
                                          int64_t piece)
{
    if (job.pieces > 1)
        ((Tally *)job.part)[piece * job.outputs + o] = t;
    else
        put((T *)job.y + output_at(job, o), finished(job, t));
}

/* ---- reduced elements side by side -------------------------------------------------- */

/* N divides the run, so a pack lies in one. */
template <typename T, int N, int Team, typename Tally>
static __global__ void __launch_bounds__(CUDA_BLOCK) row_kernel(reduce_job job)
{
    const int64_t item =
        (int64_t)blockIdx.x * (CUDA_BLOCK / Team) + threadIdx.x / Team;
    const bool live = item < job.outputs * job.pieces; /* the others take part in shuffles */
    const int64_t o = live ? item / job.pieces : 0, piece = live ? item % job.pieces : 0;
    const reduce_plan &p = job.plan;
    const T *x = (const T *)job.x + place_of(p.keep, p.n_kept, o, false);
    const int64_t to = live ? piece_start(job, piece + 1, N) : 0;
    Tally t;
    start_of(job, t);
    for (int64_t row = piece_start(job, piece, N) + threadIdx.x % Team * N; row < to;
         row += (int64_t)UNROLL * Team * N) {
        pack<T, N> v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int64_t at = row + (int64_t)u * Team * N;
            if (at >= to)
                continue;
            const int64_t gone = p.n_gone ? at / p.run : 0;
            v[u] = *(const pack<T, N> *)(x + (p.n_gone ? place_of(p.go, p.n_gone, gone, false)
                                                       : 0) +
                                         (at - gone * p.run));
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (row + (int64_t)u * Team * N < to)
                take_pack<T, N>(job, t, v[u]);
    }
    const int width = Team < 32 ? Team : 32;
#pragma unroll
    for (int d = width / 2; d > 0; d /= 2)
        join(job, t, from_below(t, d));
    if constexpr (Team > 32) {
        __shared__ Tally warps[Team / 32];
        if (threadIdx.x % 32 == 0)
            warps[threadIdx.x / 32] = t;
        __syncthreads();
        for (int i = 1; i < Team / 32 && threadIdx.x == 0; i++)
            join(job, t, warps[i]);
    }
    if (live && threadIdx.x % Team == 0)
        close_tally<T>(job, t, o, piece);
}

/* ---- kept elements side by side ------------------------------------------------------ */

template <typename Tally>
static __device__ inline void join_rows(const reduce_job &job, Tally &t, Tally *shared,
                                        int32_t row)
{
    int32_t half = 1;
    while (half * 2 < job.down)
        half *= 2;
    __syncthreads();
    shared[threadIdx.x] = t;
    for (; half > 0; half /= 2) {
        __syncthreads();
        if (row < half && row + half < job.down)
            join(job, shared[threadIdx.x], shared[threadIdx.x + half * job.across]);
    }
    t = shared[threadIdx.x];
}

/* A block has `across` packs of columns and `down` rows of threads. */
template <typename T, int N, typename Tally>
static __global__ void __launch_bounds__(CUDA_BLOCK) column_kernel(reduce_job job)
{
    __shared__ Tally shared[CUDA_BLOCK];
    const reduce_plan &p = job.plan;
    const int64_t span = blockIdx.x % (uint32_t)job.spans;
    const int64_t rest = blockIdx.x / (uint32_t)job.spans;
    const int64_t piece = rest % job.pieces, kept = rest / job.pieces;
    const int32_t lane = (int32_t)threadIdx.x % job.across;
    const int32_t row = (int32_t)threadIdx.x / job.across;
    const int64_t column = (span * job.across + lane) * N;
    const bool live = row < job.down && column < p.width;
    const int64_t to = live ? piece_start(job, piece + 1, 1) : 0;
    const T *x = (const T *)job.x + place_of(p.keep, p.n_kept, kept, false) + column;
    Tally t[N];
#pragma unroll
    for (int k = 0; k < N; k++)
        start_of(job, t[k]);
    for (int64_t i = piece_start(job, piece, 1) + row; i < to; i += UNROLL * job.down) {
        pack<T, N> v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int64_t at = i + u * job.down;
            if (at >= to)
                continue;
            const int64_t gone = p.n_gone ? at / p.run : 0;
            v[u] = *(const pack<T, N> *)(x + (p.n_gone ? place_of(p.go, p.n_gone, gone, false)
                                                       : 0) +
                                         (at - gone * p.run) * p.width);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (i + u * job.down < to) {
#pragma unroll
                for (int k = 0; k < N; k++) {
                    const pack<T, 1> one = {{v[u].v[k]}};
                    take_pack<T, 1>(job, t[k], one);
                }
            }
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (job.down > 1)
            join_rows(job, t[k], shared, row);
        if (live && row == 0)
            close_tally<T>(job, t[k], kept * p.width + column + k, piece);
    }
}

/* ---- the second launch: a warp an output --------------------------------------------- */

template <typename T, typename Tally>
static __global__ void __launch_bounds__(CUDA_BLOCK) finish_kernel(reduce_job job)
{
    const int64_t o = (int64_t)blockIdx.x * (CUDA_BLOCK / 32) + threadIdx.x / 32;
    Tally t;
    if (o >= job.outputs)
        return;
    start_of(job, t);
    for (int64_t i = threadIdx.x % 32; i < job.pieces; i += 32)
        join(job, t, ((const Tally *)job.part)[i * job.outputs + o]);
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        join(job, t, from_below(t, d));
    if (threadIdx.x % 32 == 0)
        put((T *)job.y + output_at(job, o), finished(job, t));
}

/* Pad lanes of the output: channels from `channels` on of each vector's last block. */
template <typename T>
static __global__ void __launch_bounds__(CUDA_BLOCK)
    clear_pads_kernel(T *y, int64_t size, channel_map map)
{
    const int64_t i = (int64_t)blockIdx.x * CUDA_BLOCK + threadIdx.x;
    if (i < size && channel_of(i, map) >= map.channels)
        put(y + i, 0.0f);
}

/* ---- the choice ---------------------------------------------------------------------- */

static int32_t reduce_take(int32_t op)
{
    switch (op) {
    case STRATA_REDUCE_MAX: return TAKE_MAX;
    case STRATA_REDUCE_MIN: return TAKE_MIN;
    case STRATA_REDUCE_PROD: return TAKE_PRODUCT;
    case STRATA_REDUCE_L1: return TAKE_ABS;
    case STRATA_REDUCE_L2:
    case STRATA_REDUCE_SUM_SQUARE: return TAKE_SQUARE;
    default: return TAKE_SUM;
    }
}

static size_t dtype_bytes(int32_t dtype)
{
    switch (dtype) {
    case STRATA_FP16:
    case STRATA_BF16: return 2;
    case STRATA_INT64: return 8;
    case STRATA_FP32:
    case STRATA_INT32: return 4;
    default: return 1;
    }
}

/* Elements of one access: 16 bytes of them, if all rows and columns begin at multiples. */
static int reduce_width(const reduce_plan &p, int32_t dtype)
{
    const int64_t most = 16 / (int64_t)dtype_bytes(dtype);
    bool fits = (p.width == 1 ? p.run : p.width) % most == 0;
    for (int d = 0; d < p.n_kept; d++)
        fits = fits && p.keep[d].in % most == 0;
    for (int d = 0; d < p.n_gone; d++)
        fits = fits && p.go[d].in % most == 0;
    return fits ? (int)most : 1;
}

static void cut(reduce_job *job, int n)
{
    const reduce_plan &p = job->plan;
    int64_t blocks, most;
    if (p.width == 1) {
        blocks = job->outputs;
        most = job->rows / (CUDA_BLOCK * UNROLL * n);
        most = most > ROW_PIECES ? ROW_PIECES : most;
    } else {
        const int64_t packs = p.width / n;
        job->across = (int32_t)(packs < CUDA_BLOCK ? packs : CUDA_BLOCK);
        job->down = CUDA_BLOCK / job->across;
        if (job->down > job->rows)
            job->down = job->rows < 1 ? 1 : (int32_t)job->rows;
        job->spans = (int32_t)((packs + job->across - 1) / job->across);
        blocks = p.kept * job->spans;
        most = job->rows / (job->down * UNROLL);
        most = most > COLUMN_PIECES ? COLUMN_PIECES : most;
    }
    const int64_t pieces = blocks ? PIECE_BLOCKS / blocks : 1;
    job->pieces = (int32_t)(pieces < 2 || most < 2 ? 1 : pieces < most ? pieces : most);
}

static reduce_job reduce_job_of(const strata_reduce *p, const strata_tensor *x,
                                const strata_tensor *y)
{
    reduce_job job = {};
    const int32_t bits[STRATA_DTYPE_COUNT] = {0, 0, 7, 8, 31, 63, 1};
    const bool has_sign = x->dtype == STRATA_INT8 || x->dtype == STRATA_INT32 ||
                          x->dtype == STRATA_INT64;
    job.plan = reduce_plan_of(p, x, y, INT64_MAX);
    job.outputs = job.plan.kept * job.plan.width;
    job.rows = job.plan.run * job.plan.gone;
    job.terms = reduce_terms(p, x);
    job.op = p->op;
    job.take = reduce_take(p->op);
    job.dtype = x->dtype;
    job.most = (int64_t)((UINT64_C(1) << bits[x->dtype]) - 1);
    job.least = has_sign ? -job.most - 1 : 0;
    cut(&job, reduce_width(job.plan, x->dtype));
    return job;
}

static size_t reduce_workspace(const strata_node *n)
{
    const reduce_job job =
        reduce_job_of((const strata_reduce *)n->params, &n->in[0], &n->out[0]);
    return job.pieces == 1 ? 0 : (size_t)(job.pieces * job.outputs) * sizeof(int64_t);
}

template <typename T, int N, typename Tally>
static void reduce_launch(const reduce_job &job, cudaStream_t stream)
{
    const int64_t items = job.outputs * job.pieces;
    if (job.plan.width > 1) {
        const unsigned blocks = (unsigned)(job.plan.kept * job.pieces * job.spans);
        column_kernel<T, N, Tally><<<blocks, CUDA_BLOCK, 0, stream>>>(job);
    } else if (job.rows <= 16 * N) {
        row_kernel<T, N, 8, Tally>
            <<<layer_blocks(items, CUDA_BLOCK / 8), CUDA_BLOCK, 0, stream>>>(job);
    } else if (job.rows / job.pieces <= 1024 * N && job.outputs >= PIECE_BLOCKS) {
        row_kernel<T, N, 32, Tally>
            <<<layer_blocks(items, CUDA_BLOCK / 32), CUDA_BLOCK, 0, stream>>>(job);
    } else {
        row_kernel<T, N, CUDA_BLOCK, Tally>
            <<<layer_blocks(items, 1), CUDA_BLOCK, 0, stream>>>(job);
    }
    if (job.pieces > 1)
        finish_kernel<T, Tally><<<layer_blocks(job.outputs, CUDA_BLOCK / 32), CUDA_BLOCK,
                                  0, stream>>>(job);
}

template <typename T, typename Tally>
static void reduce_choose(const reduce_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T);
    if (reduce_width(job.plan, job.dtype) == N)
        reduce_launch<T, N, Tally>(job, stream);
    else
        reduce_launch<T, 1, Tally>(job, stream);
}

template <typename T>
static void reduce_floats(const strata_run *r, const reduce_job &job)
{
    const strata_tensor *y = &r->out[0];
    const cudaStream_t stream = layer_stream(r);
    if (job.op == STRATA_REDUCE_LOG_SUM_EXP)
        reduce_choose<T, exponents>(job, stream);
    else
        reduce_choose<T, tally_of<float>>(job, stream);
    if (y->vector > 1 && y->dims[1] % y->vector)
        clear_pads_kernel<<<layer_blocks(y->size, CUDA_BLOCK), CUDA_BLOCK, 0, stream>>>(
            (T *)y->data, y->size, channel_map_of(y));
}

static int reduce_run(const strata_run *r)
{
    reduce_job job =
        reduce_job_of((const strata_reduce *)r->params, &r->in[0], &r->out[0]);
    const cudaStream_t stream = layer_stream(r);
    job.x = r->in[0].data;
    job.y = r->out[0].data;
    job.part = r->workspace;
    switch (job.dtype) {
    case STRATA_INT8: reduce_choose<int8_t, tally_of<int64_t>>(job, stream); break;
    case STRATA_UINT8:
    case STRATA_BOOL8: reduce_choose<uint8_t, tally_of<int64_t>>(job, stream); break;
    case STRATA_INT32: reduce_choose<int32_t, tally_of<int64_t>>(job, stream); break;
    case STRATA_INT64: reduce_choose<int64_t, tally_of<int64_t>>(job, stream); break;
    default:
        layer_float(job.dtype, [&](auto t) { reduce_floats<decltype(t)>(r, job); });
    }
    return layer_launched(r, "reduce");
}

/* ---- tables -------------------------------------------------------------------------- */

static int reduce_accept(const strata_node *n)
{
    const strata_reduce *p = (const strata_reduce *)n->params;
    const strata_tensor *x = &n->in[0];
    const int32_t dims = reduce_dims(p, x->rank);
    if (x->vector_dim >= 0 && (dims >> 1 & 1 || (dims & 1 && !p->keep_dims)))
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "reduces channels, or the batch without keep_dims; formats with "
                           "vectors take spatial dims");
    const reduce_job job = reduce_job_of(p, x, &n->out[0]);
    const int64_t blocks = job.plan.width > 1 ? job.plan.kept * job.pieces * job.spans
                                              : job.outputs * job.pieces;
    if (blocks > 0x7fffffff || n->out[0].size > (int64_t)0x7fffffff * CUDA_BLOCK)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld outputs; a launch has at most 2^31 - 1 blocks",
                           (long long)job.outputs);
    return STRATA_OK;
}

#define LINEAR                                                                           \
    (STRATA_I32_NCHW | STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW |               \
     STRATA_BOOL_NCHW)

static const strata_row rows[] = {{{CUDA_FLOATS | LINEAR}, {STRATA_SAME}, {0}, {0}}};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = STRATA_PAD_IGNORED,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = reduce_accept,
     .workspace = reduce_workspace,
     .run = reduce_run,
     .bandwidth = 0.9},
};

static const strata_extends reduce = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::Reduce",
    .params_size = sizeof(strata_reduce),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&reduce};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::Reduce", extends)
