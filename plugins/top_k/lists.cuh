/* SPDX-License-Identifier: Apache-2.0
 *
 * TopK's elements ranked, and the kernels that keep the best of them in the registers of
 * warps.
 */
#ifndef PLUGINS_TOP_K_LISTS_CUH
#define PLUGINS_TOP_K_LISTS_CUH

#include "kernels/layer.cuh"
#include "plugins/top_k/top_k.h"

#define LIST 128        /* elements that a warp keeps at most */
#define WARPS 8         /* of a block with lists */

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

#endif /* PLUGINS_TOP_K_LISTS_CUH */
