/* SPDX-License-Identifier: Apache-2.0
 *
 * How the blocks of few_bits.cu share B: each goes from panel to panel, its warps through
 * a part of the depth of each; sums of several panels are kept apart until they are
 * added.
 */
#ifndef PLUGINS_MATRIX_MULTIPLY_FEW_WALK_CUH
#define PLUGINS_MATRIX_MULTIPLY_FEW_WALK_CUH

#include "plugins/common/product/wgmma.cuh"
#include "plugins/matrix_multiply/few_bits.cuh"
#include "plugins/matrix_multiply/few_rows.cuh"

#define FEW_ROOMS 4 /* of a warp */
#define FEW_CHUNK 2 /* blocks of a room, at most */

/* ---- a warp's blocks ------------------------------------------------------------- */

/* Which of all a warp takes: some of the blocks of every by-th panel. */
struct few_share {
    int32_t panel, by, panels;
    int32_t first, count; /* blocks of each panel */
};

/* Share `rank` of `ranks`, no two of which differ by more than a block. */
static __device__ inline void few_share_blocks(few_share &s, uint32_t blocks,
                                               uint32_t rank, uint32_t ranks)
{
    const uint32_t each = blocks / ranks, more = blocks % ranks;
    s.first = (int32_t)(rank * each + min(rank, more));
    s.count = (int32_t)(each + (rank < more));
}

/* They come one after the other into the warp's part of shared memory, whose rooms the
 * copy engine fills while the warp works on the oldest: no warp waits for another, and no
 * end of a panel stops what is on its way. */
struct few_ring {
    const char *from;    /* the block that comes next */
    char *rooms;         /* in shared memory */
    uint32_t barriers;   /* of the rooms; an address in shared memory */
    int32_t bytes;       /* of a block */
    int32_t left, count; /* blocks of this panel that are still to come; of each */
    int32_t panels;      /* that are still to come, this one among them */
    int64_t jump;        /* bytes from a panel's last own block to the next one's first */
    uint32_t room, parity;

    __device__ inline few_ring(const few_share &s, const void *values, int64_t blocks,
                               int32_t block_bytes, char *shared, uint64_t *barrier)
    {
        bytes = block_bytes;
        from = (const char *)values + (s.panel * blocks + s.first) * bytes;
        rooms = shared;
        barriers = (uint32_t)__cvta_generic_to_shared(barrier);
        left = count = s.count;
        panels = s.count > 0 ? (s.panels - 1 - s.panel) / s.by + 1 : 0;
        jump = (s.by * blocks - s.count) * bytes;
        room = parity = 0;
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x % 32 < FEW_ROOMS)
            barrier_init(barriers + threadIdx.x % 32 * 8, 1);
        asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
        __syncwarp();
#endif
#pragma unroll 1
        for (int i = 0; i < FEW_ROOMS; i++)
            bring(i);
    }

    /* The next blocks into a room that nobody reads any more. */
    __device__ inline void bring(uint32_t into)
    {
        if (panels > 0) {
            const int32_t n = min(left, FEW_CHUNK);
            copy((uint32_t)__cvta_generic_to_shared(rooms) + into * FEW_CHUNK * bytes,
                 barriers + into * 8, n * bytes);
            from += n * bytes;
            left -= n;
            if (left == 0) {
                left = count;
                panels--;
                from += jump;
            }
        }
#if __CUDA_ARCH__ < 900
        asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
    }

    __device__ inline void copy(uint32_t to, uint32_t barrier, int32_t all) const
    {
#if __CUDA_ARCH__ >= 900
        if (threadIdx.x % 32 == 0) {
            barrier_expect(barrier, (uint32_t)all);
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                "[%0], [%1], %2, [%3];\n" ::"r"(to),
                "l"(from), "r"(all), "r"(barrier)
                : "memory");
        }
#else
        for (int32_t i = threadIdx.x % 32 * 16; i < all; i += 32 * 16)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to + i),
                         "l"(from + i)
                         : "memory");
#endif
    }

    /* The oldest blocks, once they are there. */
    __device__ inline const char *await(void) const
    {
#if __CUDA_ARCH__ >= 900
        barrier_wait(barriers + room * 8, parity);
#else
        asm volatile("cp.async.wait_group %0;\n" ::"n"(FEW_ROOMS - 1) : "memory");
        __syncwarp();
#endif
        return rooms + room * FEW_CHUNK * bytes;
    }

    /* The warp has read them. */
    __device__ inline void release(void)
    {
        __syncwarp();
        bring(room);
        if (++room == FEW_ROOMS) {
            room = 0;
            parity ^= 1;
        }
    }
};

/* ---- a block's panels -------------------------------------------------------------- */

struct few_job {
    matrix_job j;
    few_matrix b;
    int32_t split;       /* blocks that share the depth: a cluster in z */
    int32_t groups;      /* of A's rows */
    int32_t rows, slots; /* of a group; panels */
};

/* Where a block keeps things in shared memory. */
struct few_room {
    char *ring;         /* of this warp */
    uint64_t *barriers; /* likewise */
    float *part;        /* [slots][WARPS][16][rows] */
    float *total;       /* [slots][16][rows] */
};

static __host__ __device__ inline int32_t few_ring_bytes(const few_matrix &b)
{
    return WARPS * FEW_ROOMS * FEW_CHUNK * b.block_bytes;
}

static __host__ __device__ inline int32_t few_slot_sums(const few_job &g)
{
    return g.slots * FEW_COLUMNS * g.rows;
}

static int32_t few_shared_bytes(const few_job &g)
{
    return few_ring_bytes(g.b) + WARPS * FEW_ROOMS * (int32_t)sizeof(uint64_t) +
           (WARPS + 1) * few_slot_sums(g) * (int32_t)sizeof(float);
}

static __device__ inline few_room few_room_of(const few_job &g)
{
    extern __shared__ uint4 shared[];
    const int warp = threadIdx.x / 32;
    uint64_t *barriers = (uint64_t *)((char *)shared + few_ring_bytes(g.b));
    few_room r;
    r.ring = (char *)shared + warp * FEW_ROOMS * FEW_CHUNK * g.b.block_bytes;
    r.barriers = barriers + warp * FEW_ROOMS;
    r.part = (float *)(barriers + WARPS * FEW_ROOMS);
    r.total = r.part + WARPS * few_slot_sums(g);
    return r;
}

/* The block's panels: every by-th from the first on; of each, some blocks of k. */
static __device__ inline few_share few_share_of(const few_job &g)
{
    few_share s;
    s.panel = (int32_t)(blockIdx.x / g.groups);
    s.by = (int32_t)(gridDim.x / g.groups);
    s.panels = (int32_t)((g.j.p.n + FEW_COLUMNS - 1) / FEW_COLUMNS);
    few_share_blocks(s, (uint32_t)g.b.blocks, blockIdx.z * WARPS + threadIdx.x / 32,
                     (uint32_t)g.split * WARPS);
    return s;
}

/* The sums of `slots` panels from `panel` on, of warps and of the cluster, to Y. */
template <typename T>
static __device__ inline void finish_panels(const few_job &g, const matrix_offsets &o,
                                            const few_room &room, const few_share &s,
                                            int32_t panel, int slots, int64_t row)
{
    const int each = FEW_COLUMNS * g.rows, count = slots * each;
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += THREADS) {
        const float *part = room.part + i / each * WARPS * each + i % each;
        float sum = 0;
        for (int warp = 0; warp < WARPS; warp++)
            sum += part[warp * each];
        room.total[i] = sum;
    }
    if (add_ranks(room.total, g.split, count))
        for (int i = threadIdx.x; i < count; i += THREADS) {
            const int64_t m = row + i % g.rows;
            const int64_t n =
                (int64_t)(panel + i / each * s.by) * FEW_COLUMNS + i % each / g.rows;
            if (m < g.j.p.m && n < g.j.p.n)
                store_sum<T>(g.j, o, m, n,
                             g.b.factors ? g.b.factors[n] * room.total[i]
                                         : room.total[i]);
        }
    __syncthreads();
}

/* Where a lane's row of A begins; past the last it is the last again. */
template <typename T>
static __device__ inline const T *row_of(const few_job &g, const matrix_offsets &o,
                                         int64_t row)
{
    return (const T *)g.j.a + o.at[PRODUCT_A] + threadIdx.x % 4 * 8 +
           min(row, g.j.p.m - 1) * g.j.p.at[PRODUCT_A].row;
}

/* What a lane reads of a block of B. */
struct few_stage {
    uint4 piece[2];
    const float
        *factors; /* of its first column in the first unit, if each unit has some */
    bool each;

    __device__ inline few_stage(const few_matrix &b, const char *at)
    {
        const int lane = threadIdx.x % 32;
        piece[0] = *(const uint4 *)(at + lane * 16);
        piece[1] = *(const uint4 *)(at + lane * 16 + 512);
        factors = (const float *)(at + FEW_PIECES * 16) + lane / 4;
        each = !b.factors;
    }

    /* Of its column c, in a unit. */
    __device__ inline float factor(int unit, int c) const
    {
        return each ? factors[unit * FEW_COLUMNS + c * 8] : 1;
    }
};

/* 8 elements of A from k on, zeros past the depth. */
template <typename T>
static __device__ inline uint4 few_eight(const T *from, int32_t k, int32_t depth)
{
    return k < depth ? *(const uint4 *)(from + k) : make_uint4(0, 0, 0, 0);
}

/* work.read(k); work.multiply(stage) with what was read; work.put(part), which leaves
 * zeros: of each of the warp's blocks and panels. */
template <typename T, int Bits, typename Work>
static __device__ inline void walk_panels(const few_job &g, const matrix_offsets &o,
                                          int64_t row, Work &work)
{
    const few_room room = few_room_of(g);
    const few_share share = few_share_of(g);
    const int each = FEW_COLUMNS * g.rows;
    few_ring ring(share, g.b.values, g.b.blocks, g.b.block_bytes, room.ring,
                  room.barriers);
    int slot = 0;
    int32_t first = share.panel;
    launch_next();
    wait_for_previous();
    for (int32_t panel = first; panel < share.panels; panel += share.by) {
        for (int32_t i = 0; i < share.count; i += FEW_CHUNK) {
            const int32_t k = (share.first + i) * few_block<Bits>::depth;
            work.read(k);
            const char *at = ring.await();
            work.multiply(few_stage(g.b, at));
            if (i + 1 < share.count) {
                work.read(k + few_block<Bits>::depth);
                work.multiply(few_stage(g.b, at + g.b.block_bytes));
            }
            ring.release();
        }
        work.put(room.part + (slot * WARPS + threadIdx.x / 32) * each);
        if (++slot == g.slots || panel + share.by >= share.panels) {
            finish_panels<T>(g, o, room, share, first, slot, row);
            first = panel + share.by;
            slot = 0;
        }
    }
}

#endif /* PLUGINS_MATRIX_MULTIPLY_FEW_WALK_CUH */
