/* SPDX-License-Identifier: Apache-2.0
 *
 * Products on Hopper's tensor cores, FP16 and BF16 with FP32 sums:
 *   D = activation(alpha * A * B + bias + beta * C)
 * A lies as rows of K, B as rows of K for each of its N columns. A warp of its own asks
 * the copy engine for pieces of 64 of K into a ring in shared memory; warpgroups multiply
 * them.
 *
 *   parts   64 rows each that a warpgroup holds sums of, by Columns
 *   turns   two warpgroups have a tile each and take turns at the tensor cores, so that
 *           one stores its sums while the other multiplies; without, they share a tile
 *   pair    two blocks of a cluster have tiles below each other and load half of their B
 *           each, for both
 *   split   the blocks of a cluster share the depth of a tile. Each sends its sums of
 *           some rows to the block that stores these, which adds them in the order of
 * rank
 */
#ifndef PLUGINS_COMMON_PRODUCT_HOPPER_CUH
#define PLUGINS_COMMON_PRODUCT_HOPPER_CUH

#include "kernels/overlap.cuh"
#include "plugins/common/product/finish.cuh"
#include "plugins/common/product/hopper_tile.cuh"

/* ---- the producer ---------------------------------------------------------------------
 */

template <class C>
struct product_producer {
    const product_job &job;
    const product_memory<C> &memory;
    const uint32_t rank;
    product_stage<C> stage;

    __device__ inline product_producer(const product_job &job,
                                       const product_memory<C> &memory, uint32_t rank)
        : job(job), memory(memory), rank(rank)
    {
    }

    __device__ inline void load_a(const product_place &p, int32_t step, int32_t at) const
    {
        copy_matrix(memory.a(at), &job.a, memory.full(at), step * PRODUCT_DEPTH, p.row,
                    p.batch);
    }

    __device__ inline void load_b(const product_place &p, int32_t step, int32_t at) const
    {
        const int32_t batch = job.b_batches ? p.batch : 0;
        if (C::Pair)
            copy_matrix_to(memory.b(at) + rank * (C::BBytes / 2), &job.b, memory.full(at),
                           step * PRODUCT_DEPTH, p.column + rank * (C::Columns / 2),
                           batch, 3);
        else
            copy_matrix(memory.b(at), &job.b, memory.full(at), step * PRODUCT_DEPTH,
                        p.column, batch);
    }

    __device__ inline void load(const product_place &p, product_share k)
    {
        for (int32_t step = k.begin; step < k.end; step++) {
            barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
            barrier_expect(memory.full(stage.at), C::StageBytes);
            load_a(p, step, stage.at);
            load_b(p, step, stage.at);
            stage.advance();
        }
    }

    /* The first tile: what nobody writes is asked for while the kernel before still runs.
     */
    __device__ inline void load_first(const product_place &p, product_share k)
    {
        const int32_t n = min(k.end - k.begin, (int32_t)C::Stages);
        for (int32_t i = 0; i < n; i++) {
            barrier_expect(memory.full(i), C::StageBytes);
            if (job.b_early)
                load_b(p, k.begin + i, i);
        }
        wait_for_previous();
        for (int32_t i = 0; i < n; i++) {
            load_a(p, k.begin + i, i);
            if (!job.b_early)
                load_b(p, k.begin + i, i);
            stage.advance();
        }
        k.begin += n;
        load(p, k);
    }

    __device__ inline void run(int32_t first, int32_t by, product_share k)
    {
        if (first < job.units)
            load_first(product_place_of<C>(job, first, rank), k);
        for (int32_t unit = first + by; unit < job.units; unit += by)
            load(product_place_of<C>(job, unit, rank), k);
    }
};

/* ---- consumers ------------------------------------------------------------------------
 */

/* A warpgroup. */
template <class C>
struct product_consumer {
    typedef typename C::Element T;
    const product_job &job;
    const product_memory<C> &memory;
    const int group;
    const uint32_t rank;
    product_stage<C> stage;

    __device__ inline product_consumer(const product_job &job,
                                       const product_memory<C> &memory, int group,
                                       uint32_t rank)
        : job(job), memory(memory), group(group), rank(rank)
    {
    }

    __device__ inline void release(int32_t at) const
    {
        if (threadIdx.x % 32 != 0)
            return;
        barrier_arrive(memory.empty(at));
        if (C::Pair)
            barrier_arrive_at(memory.empty(at), rank ^ 1);
    }

    __device__ inline void multiply(float (&sum)[C::Parts][C::Columns / 8][4],
                                    int32_t steps)
    {
        const int32_t row = C::Turns ? 0 : group * C::Parts * 64;
        int32_t before = -1;
        for (int32_t step = 0; step < steps; step++) {
            barrier_wait(memory.full(stage.at), stage.parity);
            const uint64_t a =
                panel_descriptor(memory.a(stage.at) + row * PRODUCT_ROW, 16);
            const uint64_t b = panel_descriptor(memory.b(stage.at), 16);
#pragma unroll
            for (int p = 0; p < C::Parts; p++)
                hold(sum[p]);
            multiply_begin();
#pragma unroll
            for (int d = 0; d < PRODUCT_DEPTH / 16; d++)
#pragma unroll
                for (int p = 0; p < C::Parts; p++)
                    product<T, C::Columns>::scores(
                        sum[p], a + (p * 64 * PRODUCT_ROW + d * 32) / 16, b + d * 2,
                        step > 0 || d > 0);
            multiply_commit();
            multiply_wait<1>();
            if (before >= 0)
                release(before);
            before = stage.at;
            stage.advance();
        }
        if (C::Turns) /* the other one's first products follow these at once */
            named_arrive(PRODUCT_TURN + (group ^ 1), 256);
        multiply_wait<0>();
#pragma unroll
        for (int p = 0; p < C::Parts; p++)
            hold(sum[p]);
        if (before >= 0)
            release(before);
    }

    /* A warp's 16 rows of a part, chunk by chunk. */
    __device__ inline void store_part(const float (&sum)[C::Columns / 8][4],
                                      product_place at, int part) const
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        float2 bias[C::Columns / 8];
        at.row += (C::Turns ? part : group * C::Parts + part) * 64 + warp % 4 * 16;
#pragma unroll
        for (int j = 0; j < C::Columns / 8; j++) {
            const int32_t column = at.column + j * 8 + lane % 4 * 2;
            bias[j] = job.bias && column < job.n
                          ? __ldg((const float2 *)(job.bias + column))
                          : make_float2(0, 0);
        }
#pragma unroll
        for (int j = 0; j < C::Columns / 8; j += PRODUCT_CHUNK / 8) {
            if (C::Columns / 8 - j >= PRODUCT_CHUNK / 8)
                store_chunk<PRODUCT_CHUNK / 8>(sum + j, bias + j, at);
            else
                store_chunk<PRODUCT_CHUNK / 16>(sum + j, bias + j, at);
            at.column += PRODUCT_CHUNK;
        }
    }

    /* Pieces of 8 columns, through the warp's shared memory: there rows are side by side,
     * in registers a thread has two neighbours of each piece. */
    template <int Pieces>
    __device__ inline void store_chunk(const float (*sum)[4], const float2 *bias,
                                       const product_place &at) const
    {
        enum { EACH = Pieces / 2, ROWS = 32 / Pieces }; /* of a lane; of a warp at once */
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int32_t row = at.row + lane / Pieces,
                      column = at.column + lane % Pieces * 8;
        uint8_t *own = memory.store + warp * C::WarpBytes;
        uint8_t *side = own + lane / Pieces * PRODUCT_PITCH + lane % Pieces * 16;
        uint8_t *two = own + lane / 4 * PRODUCT_PITCH + lane % 4 * 4;
        float v[Pieces * 4];
        __syncwarp();
        if (job.addend) {
            load_addend<EACH, ROWS>(side, at.batch, row, column);
            __syncwarp();
        }
#pragma unroll
        for (int j = 0; j < Pieces; j++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                float *y = v + j * 4 + r * 2;
                y[0] = fmaf(job.alpha, sum[j][r * 2], bias[j].x);
                y[1] = fmaf(job.alpha, sum[j][r * 2 + 1], bias[j].y);
                if (job.addend) {
                    const float2 x = unpack_two(
                        T(), *(const uint32_t *)(two + r * 8 * PRODUCT_PITCH + j * 16));
                    y[0] = fmaf(job.beta, x.x, y[0]);
                    y[1] = fmaf(job.beta, x.y, y[1]);
                }
            }
        product_activate(v, job.activation);
#pragma unroll
        for (int j = 0; j < Pieces; j++)
#pragma unroll
            for (int r = 0; r < 2; r++)
                *(uint32_t *)(two + r * 8 * PRODUCT_PITCH + j * 16) =
                    pack_two(T(), v[j * 4 + r * 2], v[j * 4 + r * 2 + 1]);
        __syncwarp();
        T *to = (T *)job.d + at.batch * job.d_batch + row * job.d_row + column;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (row + i * ROWS < job.m && column < job.n)
                *(uint4 *)(to + i * ROWS * job.d_row) =
                    *(const uint4 *)(side + i * ROWS * PRODUCT_PITCH);
    }

    /* A lane's pieces of the addend to where its results will be. */
    template <int Each, int Rows>
    __device__ inline void load_addend(uint8_t *side, int32_t batch, int32_t row,
                                       int32_t column) const
    {
        const T *from = (const T *)job.addend + batch * job.addend_batch +
                        row * job.addend_row + column;
        uint4 x[Each] = {};
#pragma unroll
        for (int i = 0; i < Each; i++)
            if (row + i * Rows < job.m && column < job.n)
                x[i] = *(const uint4 *)(from + i * Rows * job.addend_row);
#pragma unroll
        for (int i = 0; i < Each; i++)
            *(uint4 *)(side + i * Rows * PRODUCT_PITCH) = x[i];
    }

    /* Each row's sums to the block that stores it. */
    __device__ inline void send(const float (&sum)[C::Parts][C::Columns / 8][4]) const
    {
        const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int32_t share = C::Rows / job.split;
#pragma unroll
        for (int p = 0; p < C::Parts; p++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int32_t row =
                    (group * C::Parts + p) * 64 + warp % 4 * 16 + lane / 4 + r * 8;
                const uint32_t to =
                    memory.sums +
                    ((rank * share + row % share) * C::SumPitch + lane % 4 * 2) * 4;
                const uint32_t there = address_of_rank(to, row / share);
                const uint32_t barrier = address_of_rank(memory.joined(), row / share);
#pragma unroll
                for (int j = 0; j < C::Columns / 8; j++)
                    send_two(there + j * 32, barrier, sum[p][j][r * 2],
                             sum[p][j][r * 2 + 1]);
            }
    }

    /* The block's rows of the cluster's sums. */
    __device__ inline void join(const product_place &at) const
    {
        enum { PIECES = C::Columns / 8, THREADS = C::Groups * 128 };
        const int32_t share = C::Rows / job.split, size = C::SumPitch;
        const float *sums = (const float *)__cvta_shared_to_generic(memory.sums);
        barrier_wait(memory.joined(), 0);
        for (int32_t i = (int32_t)threadIdx.x; i < share * PIECES; i += THREADS) {
            const int32_t row = at.row + (int32_t)rank * share + i / PIECES;
            const int32_t column = at.column + i % PIECES * 8;
            if (row < job.m && column < job.n)
                store_eight(sums + i / PIECES * size + i % PIECES * 8, share * size,
                            at.batch, row, column);
        }
    }

    /* Eight neighbours, whose sums by the ranks are `step` floats apart. */
    __device__ inline void store_eight(const float *sums, int32_t step, int32_t batch,
                                       int32_t row, int32_t column) const
    {
        float v[8] = {};
        pack<T, 8> x = {};
        if (job.addend)
            x = *(const pack<T, 8> *)((const T *)job.addend + batch * job.addend_batch +
                                      row * job.addend_row + column);
#pragma unroll 4
        for (int32_t r = 0; r < job.split; r++)
            add_eight(v, sums + r * step);
#pragma unroll
        for (int e = 0; e < 8; e++)
            v[e] *= job.alpha;
        if (job.bias)
            add_eight(v, job.bias + column);
        if (job.addend)
#pragma unroll
            for (int e = 0; e < 8; e++)
                v[e] = fmaf(job.beta, to_float(x.v[e]), v[e]);
        product_activate(v, job.activation);
#pragma unroll
        for (int e = 0; e < 8; e++)
            x.v[e] = convert<T>(v[e]);
        *(pack<T, 8> *)((T *)job.d + batch * job.d_batch + row * job.d_row + column) = x;
    }

    __device__ inline void run(int32_t first, int32_t by, product_share k)
    {
        int32_t mine = 0;
        for (int32_t unit = first; unit < job.units; unit += by, mine++) {
            float sum[C::Parts][C::Columns / 8][4];
            if (C::Turns && mine % 2 != group) {
                stage.skip((uint32_t)(k.end - k.begin));
                continue;
            }
            if (C::Turns)
                named_sync(PRODUCT_TURN + group, 256);
            multiply(sum, k.end - k.begin);
            if (C::Splits && job.split > 1) {
                cluster_wait();
                send(sum);
                join(product_place_of<C>(job, unit, 0));
                return;
            }
#pragma unroll
            for (int p = 0; p < C::Parts; p++)
                store_part(sum[p], product_place_of<C>(job, unit, rank), p);
        }
    }
};

/* Grid: units * split blocks, or with split 1 fewer, which then go from tile to tile;
 * clusters of `split`, of 2 where blocks are pairs. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, C::Blocks)
    product_kernel(const __grid_constant__ product_job job)
{
    extern __shared__ uint8_t shared[];
    const product_memory<C> memory(shared);
    const uint32_t size = C::Pair ? 2 : (uint32_t)job.split;
    const uint32_t rank = blockIdx.x % size;
    const int32_t first = (int32_t)(blockIdx.x / size), by = (int32_t)(gridDim.x / size);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4;
    const product_share k = product_share_of(job, C::Pair ? 0 : rank);
    if (threadIdx.x == 0) {
        prefetch_map(&job.a);
        prefetch_map(&job.b);
        memory.init(job.split);
    }
    __syncthreads();
    if (size > 1) /* others' barriers are there once all have arrived */
        cluster_arrive();
    if (C::Pair)
        cluster_wait();
    launch_next();
    if (group == C::Groups) {
        if constexpr (C::Wide)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 40;\n");
        if (threadIdx.x % 128 == 0)
            product_producer<C>(job, memory, rank).run(first, by, k);
    } else {
        if constexpr (C::Wide)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 232;\n");
        product_consumer<C> consumer(job, memory, group, rank);
        wait_for_previous();
        if (C::Turns && group == 1)
            named_arrive(PRODUCT_TURN, 256);
        consumer.run(first, by, k);
    }
    if (C::Pair) { /* blocks of a pair arrive at each other's barriers */
        cluster_arrive();
        cluster_wait();
    }
}

#endif /* PLUGINS_COMMON_PRODUCT_HOPPER_CUH */
