/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of one row by a constant B of some size, for MatrixMultiply and Projection:
 * gemv.cuh's way through B, two blocks a multiprocessor, whose steps come through a ring
 * in shared memory. A warp beside those that multiply fills it by bulk copies, whatever
 * they wait for. The next kernel is let in at once; its blocks begin where this one's
 * end, or beside them where their rings have room, and fill their rings while other
 * blocks are still at their last products, and while the row is on its way.
 *
 * A's elements are a thread's own for all tiles, so that they are read once. The warp
 * that fills asks for so many pieces at a time as memory needs to be busy: what others
 * ask for then, such as A, does not come behind the whole ring.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_GEMV_RING_CUH
#define PLUGINS_MATRIX_MULTIPLY_GEMV_RING_CUH

#include "plugins/common/product/wgmma.cuh"
#include "plugins/matrix_multiply/gemv.cuh"

enum {
    RING_LINE = THREADS * 16, /* bytes of a row of B in a step */
    RING_PIECES = 12,         /* of a multiprocessor, at most */
    RING_FLYING = 4,          /* of them on their way at most: 8 MB of the chip */
    RING_EARLY = 2,           /* of a block's, as long as A is on its way, too */
    RING_THREADS = THREADS + 32,
    RING_DEPTH = 7,          /* steps of the longest rows */
    RING_SHARED = 200 << 10, /* bytes of a multiprocessor that it takes */
};

/* A step of a tile: a piece of the ring. Where columns turn a block has its
 * multiprocessor alone, as it has more to do before its first product. */
template <class S>
struct ring_of {
    static constexpr int32_t Piece = (int)S::Columns * (int)RING_LINE;
    static constexpr int32_t Step = THREADS * (int)S::N;
    static constexpr int32_t Blocks = S::Turned ? 1 : 2; /* of a multiprocessor */
    static constexpr int32_t Pieces = RING_PIECES / Blocks;
    static constexpr int32_t Flying = RING_FLYING / Blocks;
    static constexpr int32_t Early = RING_EARLY < Flying ? RING_EARLY : Flying;
};

enum { RING_BEGUN = 1, RING_USED }; /* barriers by number */

/* What the warp that fills has to know, first of the kernel's parameters: each of their
 * lines comes from memory, one after the other. */
struct ring_feed {
    const uint8_t *b;
    int64_t line;         /* bytes between rows of B */
    int32_t depth;        /* bytes of a row */
    int32_t rows;         /* of either half of a tile that has halves, or all */
    int32_t apart, heads; /* as in gemv_walk */
    int32_t whole, rest;  /* tiles of a block; so many blocks have one more */
    int32_t each;         /* steps of a tile */
    int32_t pieces;       /* of the ring */
};

struct ring_job {
    ring_feed feed;
    gemv_job g;
};

/* What a block has besides its ring: barriers of each piece, and of A, at which the first
 * thread arrives once: where rows are normalised, when its warp has squared A. */
struct ring_barriers {
    uint64_t full[RING_PIECES], empty[RING_PIECES], a;
};

#if __CUDA_ARCH__ >= 900

static __device__ inline uint32_t ring_address(const void *shared)
{
    return (uint32_t)__cvta_generic_to_shared(shared);
}

/* Nobody reads B again: it is to leave the L2 cache before what others read. */
static __device__ inline uint64_t ring_policy(void)
{
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
    return policy;
}

static __device__ inline void ring_copy(uint32_t to, const void *from, uint32_t bytes,
                                        uint32_t barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                 ".L2::cache_hint [%0], [%1], %2, [%3], %4;\n" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
                 : "memory");
}

/* A place in the ring, and the parity of its barriers' phase. */
struct ring_place {
    int32_t room;
    uint32_t parity;

    __device__ inline void next(int32_t pieces)
    {
        if (++room == pieces) {
            room = 0;
            parity ^= 1;
        }
    }
};

/* One warp: for itself, and for the others, who wait for it before they use them. */
static __device__ inline void ring_begin(ring_barriers *b, int32_t pieces)
{
    const int lane = (int)threadIdx.x % 32;
    if (lane == 0)
        barrier_init(ring_address(&b->a), 1);
    if (lane < pieces) {
        barrier_init(ring_address(&b->full[lane]), 1);
        barrier_init(ring_address(&b->empty[lane]), WARPS);
    }
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
    __syncwarp();
}

/* The lines of a step of a tile, a lane each. */
template <class S>
static __device__ inline void ring_bring(const ring_feed &f, int32_t tile, int32_t at,
                                         uint32_t to, uint32_t full, uint64_t policy)
{
    const int lane = (int)threadIdx.x % 32;
    const int32_t rows = f.rows - tile * S::Width;
    const int32_t lines = min(rows, (int32_t)S::Width) * (S::Columns / S::Width);
    const uint32_t bytes = (uint32_t)min((int32_t)RING_LINE, f.depth - at);
    const int32_t row = gemv_column<S>(tile, lane, f.apart, f.heads);
    if (lane == 0)
        barrier_expect(full, (uint32_t)lines * bytes);
    __syncwarp();
    if (lane < S::Columns && lane % S::Width < rows)
        ring_copy(to + (uint32_t)lane * RING_LINE, f.b + row * f.line + at, bytes, full,
                  policy);
}

/* Whether a barrier's first phase, which is its only one, is over; the warp does not wait
 * for it, as barrier_passed may. */
static __device__ inline bool ring_is_over(uint32_t barrier)
{
    uint32_t over;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}\n"
                 : "=r"(over)
                 : "r"(barrier)
                 : "memory");
    return __any_sync(0xffffffffu, over);
}

/* Pieces that may be on their way: few until A is there, which comes behind them. */
template <class S>
static __device__ inline int32_t ring_flying(const ring_feed &f, const ring_barriers *b,
                                             bool *a_is_there)
{
    *a_is_there = *a_is_there || ring_is_over(ring_address(&b->a));
    return min(f.pieces, *a_is_there ? ring_of<S>::Flying : ring_of<S>::Early);
}

/* One warp: all of the block's steps, one behind the other. */
template <class S>
static __device__ inline void ring_fill(const ring_feed &f, ring_barriers *b,
                                        const uint8_t *ring)
{
    const int32_t mine = (f.whole + ((int32_t)blockIdx.x < f.rest)) * f.each;
    const uint32_t to = ring_address(ring), full = ring_address(b->full),
                   empty = ring_address(b->empty);
    const uint64_t policy = ring_policy();
    ring_place into = {0, 1}, there = {0, 0};
    int32_t tile = (int32_t)blockIdx.x, at = 0, come = 0; /* pieces */
    bool a_is_there = ring_of<S>::Early == ring_of<S>::Flying;
    ring_begin(b, f.pieces);
#pragma unroll 1
    for (int32_t s = 0; s < mine; s++) {
        if (s >= f.pieces)
            barrier_wait(empty + into.room * 8, into.parity);
        for (; s - come >= ring_flying<S>(f, b, &a_is_there); come++) {
            barrier_wait(full + there.room * 8, there.parity);
            there.next(f.pieces);
        }
        ring_bring<S>(f, tile, at, to + (uint32_t)into.room * ring_of<S>::Piece,
                      full + into.room * 8, policy);
        if (s == 0)
            named_arrive(RING_BEGUN, RING_THREADS);
        into.next(f.pieces);
        at += RING_LINE;
        if (at >= f.depth) {
            at = 0;
            tile += (int32_t)gridDim.x;
        }
    }
}

/* The other warps' threads alone, so that the one that fills goes on. */
static __device__ inline void ring_sync(void)
{
    named_sync(RING_USED, THREADS);
}

/* The block's `tiles` tiles from `first` on, to Y: a result a thread at most. */
template <class S>
static __device__ inline void ring_store(const gemv_job &g, const gemv_walk<S> &walk,
                                         int32_t first, int tiles, gemv_sums<S> &s,
                                         float residual)
{
    const int sums = tiles * S::V, all = sums + (S::Normal ? S::Rows : 0);
    const int own = (int)threadIdx.x;
    ring_sync();
    if (own < all) {
        float sum = 0;
#pragma unroll
        for (int warp = 0; warp < WARPS; warp++)
            sum += S::Normal && own >= sums ? s.squares[warp][own - sums]
                                            : s.part[own / S::V][warp][own % S::V];
        s.total[own] = sum;
    }
    ring_sync();
    if (own < tiles * S::Results)
        store_result<S>(g, walk, s.begin, first, own, s, s.total + sums, residual);
    ring_sync();
}

/* A step's products, once its piece is there; then the piece may be filled anew. */
template <class S>
static __device__ inline void
ring_step(float (&sum)[S::V], const float (&x)[S::Rows][S::N], const uint8_t *ring,
          ring_barriers *b, const ring_place &at, bool inside)
{
    uint4 w[S::Columns];
    barrier_wait(ring_address(b->full + at.room), at.parity);
    ring += at.room * ring_of<S>::Piece + threadIdx.x * 16;
#pragma unroll
    for (int c = 0; c < S::Columns; c++) {
        w[c] = make_uint4(0, 0, 0, 0);
        if (inside)
            w[c] = *(const uint4 *)(ring + c * RING_LINE);
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(ring_address(b->empty + at.room));
    add_products<S>(sum, w, x);
}

/* A tile's products, a step behind the other. */
template <class S, int Steps>
static __device__ inline void
ring_tile(float (&sum)[S::V], const float (&x)[Steps][S::Rows][S::N], const ring_job &r,
          const uint8_t *ring, ring_barriers *b, ring_place &at, int32_t k)
{
    const int32_t depth = (int32_t)r.g.j.p.k;
#pragma unroll
    for (int i = 0; i < Steps; i++) {
        if (i * ring_of<S>::Step >= depth)
            break;
        ring_step<S>(sum, x[i], ring, b, at, k + i * ring_of<S>::Step < depth);
        at.next(r.feed.pieces);
    }
}

#endif

/* Steps: of the depth, at most. */
template <class S, int Steps>
static __global__ void __launch_bounds__(RING_THREADS, 2)
    ring_kernel(const __grid_constant__ ring_job r)
{
#if __CUDA_ARCH__ >= 900
    typedef typename S::T T;
    extern __shared__ __align__(128) uint8_t ring[];
    __shared__ ring_barriers barriers;
    __shared__ gemv_sums<S> sums;
    const gemv_job &g = r.g;
    launch_next();
    if (threadIdx.x >= THREADS) {
        ring_fill<S>(r.feed, &barriers, ring);
        return;
    }
    gemv_walk<S> walk(g, 0);
    const T *a[S::Rows];
    float sum[S::V] = {}, square[S::Rows] = {}, x[Steps][S::Rows][S::N];
    float scale[Steps][S::N];
    int32_t first = walk.tile;
    ring_place at = {0, 0};
    int slot = 0;
    double frequency = 0, position = 0;
    if (threadIdx.x == 0)
        sums.begin = matrix_offsets{};
    find_rows<S>(a, walk, 0);
#pragma unroll
    for (int i = 0; i < Steps; i++)
        read_scale<S>(scale[i], walk.at() + i * ring_of<S>::Step, g);
    if (S::Turned) { /* by the position as it is, and again if it was another */
        frequency = frequency_of<S>(walk, g.more.turn, first);
        position = position_of<S>(walk, g.more.turn);
        find_turn<S>(sums, walk, g.more.turn, first, frequency, position);
    }
    named_sync(RING_BEGUN, RING_THREADS);
    wait_for_previous();
    const double known = position;
    if (S::Turned)
        position = position_of<S>(walk, g.more.turn);
    float residual = added_to<S>(g, walk, sums, first);
#pragma unroll
    for (int i = 0; i < Steps; i++)
        read_a<S>(x[i], a, walk.at() + i * ring_of<S>::Step, g, scale[i], square);
    end_squares<S>(sums, square);
    if (ring_of<S>::Early < ring_of<S>::Flying && threadIdx.x == 0)
        barrier_arrive(ring_address(&barriers.a));
    if (S::Turned && position != known)
        find_turn<S>(sums, walk, g.more.turn, first, frequency, position);
#pragma unroll 1
    while (walk.tile < walk.tiles) {
        ring_tile<S, Steps>(sum, x, r, ring, &barriers, at, walk.at());
        walk.tile += walk.by;
        end_tile<S>(sums, slot, sum);
        if (++slot < GEMV_SLOTS && walk.tile < walk.tiles)
            continue;
        ring_store<S>(g, walk, first, slot, sums, residual);
        first = walk.tile;
        slot = 0;
        residual = added_to<S>(g, walk, sums, first);
        if (S::Turned)
            find_turn<S>(sums, walk, g.more.turn, first,
                         frequency_of<S>(walk, g.more.turn, first), position);
    }
#endif
}

/* ---- host ------------------------------------------------------------------------ */

/* Two steps a multiprocessor at least, which are half full or more. */
template <class S>
static inline bool ring_takes(const gemv_state &s, const matrix_product &p, int steps)
{
    const int64_t tiles = (p.n + S::Width - 1) / S::Width;
    const int64_t each = (p.k + ring_of<S>::Step - 1) / ring_of<S>::Step;
    return s.overlaps && s.weight && s.shared >= RING_SHARED && p.m == 1 &&
           p.batches == 1 && each <= steps && p.k >= each * (ring_of<S>::Step / 2) &&
           tiles >= s.multiprocessors && tiles * each >= 2 * (int64_t)s.multiprocessors;
}

template <class S>
static inline ring_feed ring_feed_of(const gemv_job &g, int64_t tiles, int64_t blocks)
{
    const matrix_product &p = g.j.p;
    const int64_t size = sizeof(typename S::T);
    ring_feed f = {};
    f.b = (const uint8_t *)g.j.b;
    f.line = p.at[PRODUCT_B].column * size;
    f.depth = (int32_t)(p.k * size);
    f.rows = (int32_t)p.n;
    f.apart = gemv_apart<S>(g);
    f.heads = gemv_heads<S>(g);
    f.whole = (int32_t)(tiles / blocks);
    f.rest = (int32_t)(tiles % blocks);
    f.each = (int32_t)((f.depth + RING_LINE - 1) / RING_LINE);
    return f;
}

template <class S, int Steps>
static int ring_launch_of(const strata_run *r, const gemv_job &g, const gemv_state &s,
                          const char *name)
{
    const void *kernel = (const void *)ring_kernel<S, Steps>;
    const int64_t tiles = (g.j.p.n + S::Width - 1) / S::Width;
    const int64_t each = (g.j.p.k + ring_of<S>::Step - 1) / ring_of<S>::Step;
    const int64_t room = (int64_t)s.multiprocessors * ring_of<S>::Blocks;
    const int64_t blocks = tiles < room ? tiles : room;
    const int64_t most = (tiles + blocks - 1) / blocks * each;
    ring_job job = {};
    job.g = g;
    job.feed = ring_feed_of<S>(g, tiles, blocks);
    job.feed.pieces = most < ring_of<S>::Pieces ? (int32_t)most : ring_of<S>::Pieces;
    job.g.groups = job.g.split = 1;
    job.g.plain = gemv_is_plain(g.j);
    return few_rows_launch(r,
                           {kernel, &job, dim3((unsigned)blocks), RING_THREADS,
                            job.feed.pieces * ring_of<S>::Piece, s.overlaps, true, name});
}

/* One row: as ring_takes() says, else by gemv.cuh's kernel. */
template <class S>
static int ring_launch(const strata_run *r, const gemv_job &g, const gemv_state &s,
                       const char *name)
{
    if constexpr (sizeof(typename S::T) == 2) {
        if (ring_takes<S>(s, g.j.p, 1))
            return ring_launch_of<S, 1>(r, g, s, name);
        if (ring_takes<S>(s, g.j.p, 4))
            return ring_launch_of<S, 4>(r, g, s, name);
        if constexpr (!S::Normal && !S::Gated && !S::Turned)
            if (ring_takes<S>(s, g.j.p, RING_DEPTH))
                return ring_launch_of<S, RING_DEPTH>(r, g, s, name);
    }
    return gemv_launch<S>(r, g, s.multiprocessors, s.overlaps, name);
}

#endif /* PLUGINS_MATRIX_MULTIPLY_GEMV_RING_CUH */
