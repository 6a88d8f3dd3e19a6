/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK on CUDA. An element is ranked by its key and then by its lower index, so that no
 * two are equal. Up to 128 of them are kept in order in the registers of a warp: most
 * elements are below the last of these and cost a comparison. Warps have parts of a line,
 * and their lists are joined by a block, and those of blocks by a second launch. Beyond,
 * a block finds the rank of the last one digit by digit, gathers what is not below it,
 * and sorts.
 */
#include "kernels/layer.cuh"
#include "plugins/top_k/top_k.h"

#define LIST 128        /* elements that a warp keeps at most */
#define WARPS 8         /* of a block with lists */
#define LIST_BLOCKS 528 /* to be had, where lines are long */
#define LIST_PIECE 4096 /* elements of a block, at least */
#define RADIX_THREADS 1024
#define RADIX_SHARED 2048 /* elements that are sorted in shared memory */

/* Key above ~index, where both fit into hi; else lo has ~index. 0: none. */
struct rank {
    uint64_t hi;
    uint32_t lo;
};

struct top_k_job {
    const void *x;
    void *y;
    int64_t *index;
    rank *ranks; /* workspace: of pieces, or of lines to be sorted */
    int64_t lines, length, inner;
    int64_t piece;             /* elements of a block */
    int32_t k, pieces, sorted; /* sorted: k rounded up to a power of 2 */
    bool smallest;
};

/* ---- ranks ------------------------------------------------------------------------- */

static __device__ inline uint64_t key_of(float x)
{
    return top_k_key32(__float_as_uint(x));
}
static __device__ inline uint64_t key_of(__half x)
{
    return key_of(__half2float(x));
}
static __device__ inline uint64_t key_of(__nv_bfloat16 x)
{
    return key_of(__bfloat162float(x));
}
static __device__ inline uint64_t key_of(int32_t x)
{
    return (uint32_t)x ^ 0x80000000u;
}
static __device__ inline uint64_t key_of(int8_t x)
{
    return key_of((int32_t)x);
}
static __device__ inline uint64_t key_of(uint8_t x)
{
    return key_of((int32_t)x);
}
static __device__ inline uint64_t key_of(int64_t x)
{
    return top_k_key_integer(x);
}

template <typename T>
static __device__ inline rank rank_of(const top_k_job &job, T x, int64_t index)
{
    const uint64_t key = key_of(x), turned = job.smallest ? ~key : key;
    const uint32_t back = ~(uint32_t)index;
    if (sizeof(T) == 8)
        return {turned, back};
    return {turned << 32 | back, 0};
}

static __device__ inline int64_t index_of(const rank &r, bool wide)
{
    return (uint32_t) ~(wide ? r.lo : (uint32_t)r.hi);
}

template <bool Wide>
static __device__ inline bool above(const rank &a, const rank &b)
{
    return a.hi > b.hi || (Wide && a.hi == b.hi && a.lo > b.lo);
}

template <bool Wide>
static __device__ inline rank from_lane(const rank &r, int lane)
{
    return {__shfl_sync(0xffffffffu, r.hi, lane),
            Wide ? __shfl_sync(0xffffffffu, r.lo, lane) : 0};
}
template <bool Wide>
static __device__ inline rank from_before(const rank &r)
{
    return {__shfl_up_sync(0xffffffffu, r.hi, 1),
            Wide ? __shfl_up_sync(0xffffffffu, r.lo, 1) : 0};
}

static __device__ inline int64_t element_at(const top_k_job &job, int64_t line, int64_t j)
{
    return lines_start(line, job.length, job.inner) + j * job.inner;
}

template <typename T>
static __device__ inline void give(const top_k_job &job, int64_t line, int32_t place,
                                   const rank &r)
{
    const int64_t at = lines_start(line, job.k, job.inner) + place * job.inner;
    const int64_t index = index_of(r, sizeof(T) == 8);
    job.index[at] = index;
    ((T *)job.y)[at] = ((const T *)job.x)[element_at(job, line, index)];
}

/* ---- lists in a warp's registers ------------------------------------------------------
 */

/* Place 32*i + lane has kept[i]; the best is at place 0. */
template <bool Wide, int P>
struct list {
    rank kept[P], last; /* last: the k-th, which a new one must be above */

    __device__ void clear()
    {
#pragma unroll
        for (int i = 0; i < P; i++)
            kept[i] = {0, 0};
        last = {0, 0};
    }

    /* r is the same in all lanes. */
    __device__ void insert(const rank &r, int k)
    {
        const int lane = (int)threadIdx.x % 32;
        int place = 0;
#pragma unroll
        for (int i = 0; i < P; i++)
            place += __popc(__ballot_sync(0xffffffffu, above<Wide>(kept[i], r)));
#pragma unroll
        for (int i = P - 1; i >= 0; i--) {
            const rank before = from_before<Wide>(kept[i]);
            const rank carried =
                i > 0 ? from_lane<Wide>(kept[i > 0 ? i - 1 : 0], 31) : before;
            const int at = 32 * i + lane;
            if (at > place)
                kept[i] = lane == 0 ? carried : before;
            else if (at == place)
                kept[i] = r;
        }
#pragma unroll
        for (int i = 0; i < P; i++)
            if ((k - 1) / 32 == i)
                last = from_lane<Wide>(kept[i], (k - 1) % 32);
    }

    /* r differs from lane to lane. */
    __device__ void offer(const rank &r, int k)
    {
        uint32_t wanted = __ballot_sync(0xffffffffu, above<Wide>(r, last));
        for (; wanted; wanted &= wanted - 1) {
            const rank one = from_lane<Wide>(r, __ffs(wanted) - 1);
            if (above<Wide>(one, last))
                insert(one, k);
        }
    }

    /* The k best of another, in order. */
    __device__ void join(const rank *other, int k)
    {
        for (int first = 0; first < k; first += 32) {
            const int i = first + (int)threadIdx.x % 32;
            const rank r = i < k ? other[i] : rank{0, 0};
            if (!__any_sync(0xffffffffu, above<Wide>(r, last)))
                return;
            offer(r, k);
        }
    }

    __device__ void write(rank *to, int k) const
    {
#pragma unroll
        for (int i = 0; i < P; i++) {
            const int at = 32 * i + (int)threadIdx.x % 32;
            if (at < k)
                to[at] = kept[i];
        }
    }
};

/* The lists of a block's warps become that of warp 0. */
template <bool Wide, int P>
static __device__ inline void join_warps(list<Wide, P> &mine, rank *shared, int k)
{
    const int warp = (int)threadIdx.x / 32;
    mine.write(shared + warp * k, k);
    __syncthreads();
    for (int i = 1; i < WARPS && warp == 0; i++)
        mine.join(shared + i * k, k);
}

/* N > 1: lines in one piece that begin at multiples of N elements. */
template <typename T, int N, int P>
static __global__ void __launch_bounds__(WARPS * 32) list_kernel(top_k_job job)
{
    const bool Wide = sizeof(T) == 8;
    const int U = 2;
    __shared__ rank shared[WARPS * 32 * P];
    const int64_t line = blockIdx.x / (uint32_t)job.pieces;
    const int64_t piece = blockIdx.x % (uint32_t)job.pieces;
    const int64_t from = piece * job.piece, to = min(job.length, from + job.piece);
    const T *x = (const T *)job.x + element_at(job, line, 0);
    list<Wide, P> mine;
    mine.clear();
    /* Every lane of a warp goes round as often: shuffles need all. */
    for (int64_t tile = from + threadIdx.x / 32 * (32 * N); tile < to;
         tile += (int64_t)U * WARPS * 32 * N) {
        pack<T, N> p[U];
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t j = tile + (u * WARPS * 32 + (int)threadIdx.x % 32) * N;
            if (j < to) {
                if (N == 1)
                    p[u].v[0] = x[j * job.inner];
                else
                    p[u] = *(const pack<T, N> *)(x + j);
            }
        }
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int64_t j = tile + (u * WARPS * 32 + (int)threadIdx.x % 32) * N;
            rank r[N], best = {0, 0};
#pragma unroll
            for (int k = 0; k < N; k++) {
                r[k] = j < to ? rank_of(job, p[u].v[k], j + k) : rank{0, 0};
                best = above<Wide>(r[k], best) ? r[k] : best;
            }
            if (!__any_sync(0xffffffffu, above<Wide>(best, mine.last)))
                continue;
#pragma unroll
            for (int k = 0; k < N; k++)
                mine.offer(r[k], job.k);
        }
    }
    join_warps(mine, shared, job.k);
    if (threadIdx.x >= 32)
        return;
    if (job.pieces > 1) {
        mine.write(job.ranks + (int64_t)blockIdx.x * job.k, job.k);
        return;
    }
#pragma unroll
    for (int i = 0; i < P; i++)
        if (32 * i + (int)threadIdx.x < job.k)
            give<T>(job, line, 32 * i + (int)threadIdx.x, mine.kept[i]);
}

/* The lists of a line's pieces become its result. */
template <typename T, int P>
static __global__ void __launch_bounds__(WARPS * 32) join_kernel(top_k_job job)
{
    const bool Wide = sizeof(T) == 8;
    __shared__ rank shared[WARPS * 32 * P];
    const int64_t line = blockIdx.x;
    list<Wide, P> mine;
    mine.clear();
    for (int i = (int)threadIdx.x / 32; i < job.pieces; i += WARPS)
        mine.join(job.ranks + (line * job.pieces + i) * job.k, job.k);
    join_warps(mine, shared, job.k);
#pragma unroll
    for (int i = 0; i < P; i++)
        if (threadIdx.x < 32 && 32 * i + (int)threadIdx.x < job.k)
            give<T>(job, line, 32 * i + (int)threadIdx.x, mine.kept[i]);
}

/* ---- digit by digit -------------------------------------------------------------------
 */

/* Byte i of a rank, from the most significant on. */
static __device__ inline uint32_t digit_of(const rank &r, int i)
{
    return i < 8 ? (uint32_t)(r.hi >> (56 - 8 * i)) & 255 : r.lo >> (88 - 8 * i) & 255;
}

/* Its first n bytes, the others 0. */
static __device__ inline rank head_of(const rank &r, int n)
{
    const uint64_t hi = n >= 8 ? r.hi : n == 0 ? 0 : r.hi >> (64 - 8 * n) << (64 - 8 * n);
    const uint32_t lo = n >= 12  ? r.lo
                        : n <= 8 ? 0
                                 : r.lo >> (96 - 8 * n) << (96 - 8 * n);
    return {hi, lo};
}

/* Falling order, by a whole block; n is a power of 2. */
static __device__ void sort_ranks(rank *r, int32_t n)
{
    for (int32_t size = 2; size <= n; size *= 2)
        for (int32_t step = size / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int32_t i = (int32_t)threadIdx.x; i < n / 2; i += (int32_t)blockDim.x) {
                const int32_t a = i / step * step * 2 + i % step, b = a + step;
                const bool falling = (a & size) == 0;
                const rank left = r[a], right = r[b];
                if (above<true>(right, left) == falling) {
                    r[a] = right;
                    r[b] = left;
                }
            }
        }
    __syncthreads();
}

/* Which digit the k-th has among those counted, from the greatest on. */
struct digit_choice {
    uint32_t digit, above, here; /* how many are above it, and have it */
};

/* By one warp: each lane has eight digits, lane 0 the greatest. */
static __device__ inline void choose_digit(const uint32_t *count, uint32_t needed,
                                           digit_choice *choice)
{
    const int lane = (int)threadIdx.x, first = 255 - 8 * lane;
    uint32_t mine = 0;
    for (int i = 0; i < 8; i++)
        mine += count[first - i];
    uint32_t seen = mine;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, seen, d);
        seen += lane >= d ? other : 0;
    }
    const uint32_t reached = __ballot_sync(0xffffffffu, seen >= needed);
    if (lane != __ffs(reached) - 1)
        return;
    seen -= mine;
    for (int d = first; d > first - 8; d--) {
        if (seen + count[d] >= needed) {
            *choice = {(uint32_t)d, seen, count[d]};
            return;
        }
        seen += count[d];
    }
}

template <typename T>
static __global__ void __launch_bounds__(RADIX_THREADS) radix_kernel(top_k_job job)
{
    __shared__ uint32_t count[256], taken;
    __shared__ digit_choice choice;
    __shared__ rank shared[RADIX_SHARED];
    const int digits = sizeof(T) == 8 ? 12 : 8;
    const int64_t line = blockIdx.x;
    const T *x = (const T *)job.x + element_at(job, line, 0);
    rank *to = job.sorted <= RADIX_SHARED ? shared : job.ranks + line * job.sorted;
    rank head = {0, 0};
    uint32_t needed = (uint32_t)job.k;
    int known = 0; /* bytes of the last one's rank */
    for (bool found = false; known < digits && !found; known++) {
        for (int i = (int)threadIdx.x; i < 256; i += RADIX_THREADS)
            count[i] = 0;
        __syncthreads();
        for (int64_t j = threadIdx.x; j < job.length; j += RADIX_THREADS) {
            const rank r = rank_of(job, x[j * job.inner], j), h = head_of(r, known);
            if (h.hi == head.hi && h.lo == head.lo)
                atomicAdd(&count[digit_of(r, known)], 1u);
        }
        __syncthreads();
        if (threadIdx.x < 32)
            choose_digit(count, needed, &choice);
        __syncthreads();
        needed -= choice.above;
        found = choice.here == needed; /* all that begin so are among the best */
        if (known < 8)
            head.hi |= (uint64_t)choice.digit << (56 - 8 * known);
        else
            head.lo |= choice.digit << (88 - 8 * known);
    }
    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    for (int64_t j = threadIdx.x; j < job.length; j += RADIX_THREADS) {
        const rank r = rank_of(job, x[j * job.inner], j);
        if (!above<true>(head, head_of(r, known)))
            to[atomicAdd(&taken, 1u)] = r;
    }
    for (int32_t i = job.k + (int32_t)threadIdx.x; i < job.sorted; i += RADIX_THREADS)
        to[i] = {0, 0};
    sort_ranks(to, job.sorted);
    for (int32_t i = (int32_t)threadIdx.x; i < job.k; i += RADIX_THREADS)
        give<T>(job, line, i, to[i]);
}

/* ---- the choice -----------------------------------------------------------------------
 */

static top_k_job top_k_job_of(const strata_top_k *p, const strata_tensor *x)
{
    const lines l = lines_of(x, lines_axis(p->axis, x->rank));
    top_k_job job = {};
    job.lines = l.outer * l.inner;
    job.length = job.piece = l.length;
    job.inner = l.inner;
    job.k = (int32_t)p->k;
    job.pieces = job.sorted = 1;
    job.smallest = !p->largest;
    while (job.sorted < job.k)
        job.sorted *= 2;
    if (job.k > LIST || job.lines >= LIST_BLOCKS)
        return job;
    /* A warp's list is worth it where it sees much more than k. */
    const int64_t least = job.k > 32 ? 2 * LIST_PIECE : LIST_PIECE;
    int64_t pieces = LIST_BLOCKS / job.lines;
    pieces = pieces > l.length / least ? l.length / least : pieces;
    pieces = pieces < 1 ? 1 : pieces;
    job.piece = ((l.length + pieces - 1) / pieces + 15) / 16 * 16;
    job.pieces = (int32_t)((l.length + job.piece - 1) / job.piece);
    return job;
}

static size_t top_k_workspace(const strata_node *n)
{
    const top_k_job job = top_k_job_of((const strata_top_k *)n->params, &n->in[0]);
    size_t ranks =
        job.pieces > 1 ? (size_t)job.lines * (size_t)job.pieces * (size_t)job.k : 0;
    if (job.k > LIST)
        ranks = job.sorted <= RADIX_SHARED ? 0 : (size_t)job.lines * (size_t)job.sorted;
    return ranks * sizeof(rank);
}

template <typename T, int P>
static void list_launch(const top_k_job &job, cudaStream_t stream)
{
    const int N = 16 / (int)sizeof(T) > 8 ? 8 : 16 / (int)sizeof(T);
    const unsigned blocks = (unsigned)(job.lines * job.pieces);
    if (job.inner == 1 && job.length % N == 0)
        list_kernel<T, N, P><<<blocks, WARPS * 32, 0, stream>>>(job);
    else
        list_kernel<T, 1, P><<<blocks, WARPS * 32, 0, stream>>>(job);
    if (job.pieces > 1)
        join_kernel<T, P><<<(unsigned)job.lines, WARPS * 32, 0, stream>>>(job);
}

template <typename T>
static void top_k_launch(const strata_run *r)
{
    top_k_job job = top_k_job_of((const strata_top_k *)r->params, &r->in[0]);
    job.x = r->in[0].data;
    job.y = r->out[0].data;
    job.index = (int64_t *)r->out[1].data;
    job.ranks = (rank *)r->workspace;
    const cudaStream_t stream = layer_stream(r);
    if (job.k <= 32)
        list_launch<T, 1>(job, stream);
    else if (job.k <= LIST)
        list_launch<T, LIST / 32>(job, stream);
    else
        radix_kernel<T><<<(unsigned)job.lines, RADIX_THREADS, 0, stream>>>(job);
}

static int top_k_run(const strata_run *r)
{
    switch (r->in[0].dtype) {
    case STRATA_INT8:
        top_k_launch<int8_t>(r);
        break;
    case STRATA_UINT8:
        top_k_launch<uint8_t>(r);
        break;
    case STRATA_INT32:
        top_k_launch<int32_t>(r);
        break;
    case STRATA_INT64:
        top_k_launch<int64_t>(r);
        break;
    default:
        layer_float(r->in[0].dtype, [&](auto t) { top_k_launch<decltype(t)>(r); });
    }
    return layer_launched(r, "top_k");
}

/* ---- tables ---------------------------------------------------------------------------
 */

static int top_k_accept(const strata_node *n)
{
    const top_k_job job = top_k_job_of((const strata_top_k *)n->params, &n->in[0]);
    if (job.lines * job.pieces > 0x7fffffff || job.length > INT32_MAX || job.k > 1 << 30)
        return STRATA_FAIL(n, STRATA_EUNSUPPORTED,
                           "%lld lines of %lld elements; a launch has at most 2^31 - 1 "
                           "blocks, and an index 31 bits",
                           (long long)job.lines, (long long)job.length);
    return STRATA_OK;
}

static const strata_row rows[] = {
    {{STRATA_F32_NCHW | STRATA_F16_NCHW | STRATA_BF16_NCHW | STRATA_I32_NCHW |
      STRATA_I64_NCHW | STRATA_U8_NCHW | STRATA_I8_NCHW},
     {STRATA_SAME, STRATA_I64_NCHW},
     {0},
     {0}},
};

static const strata_impl impls[] = {
    {.id = 1,
     .device = STRATA_CUDA,
     .flags = 0,
     .name = "cuda",
     .rows = STRATA_ARRAY(rows),
     .accept = top_k_accept,
     .workspace = top_k_workspace,
     .run = top_k_run,
     .bandwidth = 0.3},
};

static const strata_extends top_k = {
    .struct_size = sizeof(strata_extends),
    .version = 1,
    .layer = "core::TopK",
    .params_size = sizeof(strata_top_k),
    .impls = STRATA_ARRAY(impls),
};

static const strata_extends *const extends[] = {&top_k};
STRATA_MODULE_EXTENDS("core.cuda", "1.0.0", "+core::TopK", extends)
