/* SPDX-License-Identifier: Apache-2.0
 *
 * Products on Hopper's tensor cores, FP16 and BF16 with FP32 sums:
 *   D = activation(alpha * A * B + bias + beta * C)
 * and whatever other kinds (hopper_tile.cuh) make of their sums. A lies as rows of K, or
 * is the windows of a convolution; B lies as rows of K for each of its N columns. A warp
 * of its own asks the copy engine for pieces of K into a ring in shared memory;
 * warpgroups multiply them.
 *
 *   parts   64 rows each that a warpgroup holds sums of, by Columns
 *   turns   warpgroups have a tile each and take turns at the tensor cores, so that some
 *           store their sums while another multiplies; without, they share a tile
 *   pair    two blocks of a cluster have tiles below each other and load half of their B
 *           each, for both; tiles of a last row that is left over lie beside each other
 *   split   the blocks of a cluster share the depth of a tile. Each sends its sums of
 *           some rows to the block that stores these, which adds them by rank
 *   over    results lie where the ring was, so that two blocks fit a multiprocessor: a
 *           block has one tile
 */
#ifndef PLUGINS_COMMON_PRODUCT_HOPPER_CUH
#define PLUGINS_COMMON_PRODUCT_HOPPER_CUH

#include "kernels/overlap.cuh"
#include "plugins/common/product/store.cuh"

/* ---- the producer ------------------------------------------------------------- */

template <class C>
struct product_producer {
    const typename C::Job &job;
    const product_memory<C> &memory;
    const uint32_t rank;
    product_stage<C> stage;

    __device__ inline product_producer(const typename C::Job &job,
                                       const product_memory<C> &memory, uint32_t rank)
        : job(job), memory(memory), rank(rank)
    {
    }

    __device__ inline void load_a(const product_place &p, int32_t step, int32_t at) const
    {
        product_with_source(
            job, p, step,
            [&](const CUtensorMap &a, const product_window &w, int32_t own) {
                if (w.on)
                    load_window(a, w, p, (uint32_t)own, at);
                else
                    copy_matrix(memory.a(at), &a, memory.full(at), own * C::Depth, p.row,
                                p.batch);
            });
    }

    /* The rows' windows from that of the first on: the copy engine finds the others. */
    __device__ inline void load_window(const CUtensorMap &a, const product_window &w,
                                       const product_place &p, uint32_t step,
                                       int32_t at) const
    {
        const uint32_t image = divide_by((uint32_t)p.row, w.pixels);
        const uint32_t pixel = (uint32_t)p.row - image * w.pixels.d;
        const uint32_t y = divide_by(pixel, w.width), x = pixel - y * w.width.d;
        const uint32_t element = divide_by(step, w.pieces);
        const uint32_t r = divide_by(element, w.kernel_w);
        const uint32_t s = element - r * w.kernel_w.d;
        copy_window(memory.a(at), &a, memory.full(at),
                    (int32_t)(step - element * w.pieces.d) * C::Depth,
                    (int32_t)x * w.stride_w - w.begin_w,
                    (int32_t)y * w.stride_h - w.begin_h, (int32_t)image,
                    (int32_t)s * w.dilation_w, (int32_t)r * w.dilation_h);
    }

    __device__ inline void load_b(const product_place &p, int32_t step, int32_t at) const
    {
        enum { BOXES = C::Pair ? 2 : 1, BOX = C::Columns / BOXES };
        const int32_t batch = job.b_batches ? p.batch : 0;
        if (C::Pair && !p.apart)
            copy_matrix_to(memory.b(at) + rank * (C::BBytes / 2), &job.b, memory.full(at),
                           step * C::Depth, p.column + rank * BOX, batch, 3);
        else
            for (int box = 0; box < BOXES; box++)
                copy_matrix(memory.b(at) + box * (C::BBytes / BOXES), &job.b,
                            memory.full(at), step * C::Depth, p.column + box * BOX,
                            batch);
    }

    /* The addend of a warpgroup's tile, its n-th, to where the results will lie. */
    __device__ inline void load_addend(const product_place &p, int group,
                                       uint32_t n) const
    {
        enum { PANELS = C::Columns / C::Panel };
        const int32_t above = C::Turns ? 0 : group * C::Parts, buffer = n % C::Buffers;
        const uint32_t barrier = memory.addend(group, buffer);
        barrier_wait(memory.stored(group, buffer), n / C::Buffers % 2 ^ 1);
        barrier_expect(barrier, C::StoreBytes);
        for (int part = 0; part < C::Parts; part++)
            for (int x = 0; x < PANELS; x++)
                copy_matrix(memory.panel(group, part * PANELS + x, buffer), &job.c,
                            barrier, p.column + x * C::Panel, p.row + (above + part) * 64,
                            p.batch);
    }

    __device__ inline void load_addends(const product_place &p, uint32_t mine) const
    {
        if (!job.addend || C::Over || (C::Splits && job.split > 1))
            return;
        if (C::Turns)
            load_addend(p, mine % C::Groups, mine / C::Groups);
        else
            for (int group = 0; group < C::Groups; group++)
                load_addend(p, group, mine);
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

    /* Pieces of the first tile that there is room for. */
    __device__ inline int32_t at_first(product_share k) const
    {
        return min(k.end - k.begin, (int32_t)C::Stages);
    }

    /* What nobody writes of the first tile is asked for while the kernel before still
     * runs. */
    __device__ inline void begin(int32_t first, product_share k) const
    {
        if (first >= job.units)
            return;
        const product_place p = product_place_of<C>(job, first, rank);
        for (int32_t i = 0; i < at_first(k); i++) {
            barrier_expect(memory.full(i), C::StageBytes);
            if (job.b_early)
                load_b(p, k.begin + i, i);
        }
    }

    __device__ inline void load_first(const product_place &p, product_share k)
    {
        const int32_t n = at_first(k);
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
        uint32_t mine = 0;
        for (int32_t unit = first; unit < job.units; unit += by, mine++) {
            const product_place p = product_place_of<C>(job, unit, rank);
            if (mine == 0)
                load_first(p, k);
            else
                load(p, k);
            load_addends(p, mine);
        }
        if (C::Pair)
            product_drain(memory, stage);
    }
};

/* ---- consumers ---------------------------------------------------------------- */

/* A warpgroup. */
template <class C>
struct product_consumer {
    typedef typename C::Sum sums[C::Parts][C::Columns / 8][4];
    const typename C::Job &job;
    const product_memory<C> &memory;
    const int group;
    const uint32_t rank;
    typename C::Store store;
    product_stage<C> stage;

    __device__ inline product_consumer(const typename C::Job &job,
                                       const product_memory<C> &memory, int group,
                                       uint32_t rank)
        : job(job), memory(memory), group(group), rank(rank), store(job, memory, group)
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

    /* T: of A's elements. */
    template <typename T>
    __device__ inline void multiply(sums &sum, int32_t steps)
    {
        const int32_t row = C::Turns ? 0 : group * C::Parts * 64;
        int32_t before = -1;
        for (int32_t step = 0; step < steps; step++) {
            barrier_wait(memory.full(stage.at), stage.parity);
            const uint64_t a = rows_descriptor<C::Row>(memory.a(stage.at) + row * C::Row);
            const uint64_t b = rows_descriptor<C::Row>(memory.b(stage.at));
#pragma unroll
            for (int p = 0; p < C::Parts; p++)
                hold(sum[p]);
            multiply_begin();
#pragma unroll
            for (int d = 0; d < C::Row / PRODUCT_STEP; d++)
#pragma unroll
                for (int p = 0; p < C::Parts; p++)
                    product<T, C::Columns>::scores(
                        sum[p], a + (p * 64 * C::Row + d * PRODUCT_STEP) / 16,
                        b + d * PRODUCT_STEP / 16, step > 0 || d > 0);
            multiply_commit();
            multiply_wait<1>();
            if (before >= 0)
                release(before);
            before = stage.at;
            stage.advance();
        }
        if (C::Turns) /* the next one's first products follow these at once */
            named_arrive(PRODUCT_TURN + (group + 1) % C::Groups, 256);
        multiply_wait<0>();
#pragma unroll
        for (int p = 0; p < C::Parts; p++)
            hold(sum[p]);
        if (before >= 0)
            release(before);
    }

    /* A part's panels to the result. */
    __device__ inline void send_part(const product_place &at, int part, int buffer) const
    {
        enum { PANELS = C::Columns / C::Panel };
        const int32_t row = at.row + ((C::Turns ? 0 : group * C::Parts) + part) * 64;
        for (int p = 0; p < PANELS; p++)
            if (row < job.m && at.column + p * C::Panel < job.n)
                product_put(job, memory.panel(group, part * PANELS + p, buffer),
                            at.column + p * C::Panel, row, at.batch);
    }

    /* Until all warpgroups have read the ring, where results are to lie now. */
    __device__ inline void leave_ring(const product_place &at) const
    {
        named_sync(PRODUCT_TURN, C::Groups * 128);
        if (job.addend && threadIdx.x % 128 == 0)
            product_producer<C>(job, memory, rank).load_addend(at, group, 0);
    }

    /* Rows of a tile whose sums this block joins. */
    __device__ inline int32_t rows_stored(void) const
    {
        return C::Rows >> product_log((uint32_t)job.split);
    }

    /* The rank that joins a row's sums. */
    __device__ inline int32_t joined_by(int32_t row) const
    {
        return row * job.split / C::Rows;
    }

    /* The block's sums: of rows that it stores to where it joins them, the others to
     * where the ring was. */
    __device__ inline void keep(const sums &sum) const
    {
        const int32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
        for (int p = 0; p < C::Parts; p++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int32_t row =
                    (group * C::Parts + p) * 64 + warp % 4 * 16 + lane / 4 + r * 8;
                const uint32_t to =
                    (joined_by(row) == (int32_t)rank ? memory.out : memory.ring) +
                    (row * C::SumPitch + lane % 4 * 2) * 4;
#pragma unroll
                for (int j = 0; j < C::Columns / 8; j++)
                    store_two(to + j * 32, sum[p][j][r * 2], sum[p][j][r * 2 + 1]);
            }
    }

    /* Each row's sums to the block that stores it, neighbours by neighbours. */
    __device__ inline void send(const sums &sum) const
    {
        enum { PIECES = C::Columns / 4, THREADS = C::Groups * 128 };
        const int32_t share = rows_stored();
        named_sync(PRODUCT_TURN, THREADS); /* all have read the ring */
        keep(sum);
        named_sync(PRODUCT_TURN, THREADS);
        for (int32_t i = (int32_t)threadIdx.x; i < C::Rows * PIECES; i += THREADS) {
            const int32_t row = i / PIECES, of = joined_by(row);
            const uint32_t piece = i % PIECES * 16;
            if (of == (int32_t)rank)
                continue;
            float v[4];
            load_four(v, memory.ring + row * C::SumPitch * 4 + piece);
            send_four(address_of_rank(
                          memory.out +
                              (rank * share + row - of * share) * C::SumPitch * 4 + piece,
                          (uint32_t)of),
                      address_of_rank(memory.joined(), (uint32_t)of), v);
        }
    }

    /* The i-th neighbours of the block's rows. */
    struct neighbours {
        int32_t row, column;
        bool live;
    };
    __device__ inline neighbours neighbours_of(const product_place &at, int32_t i) const
    {
        enum { EACH = C::Store::Joined, PIECES = C::Columns / EACH };
        const int32_t share = rows_stored();
        const int32_t row = at.row + (int32_t)rank * share + i / PIECES;
        const int32_t column = at.column + i % PIECES * EACH;
        return {row, column, i < share * PIECES && row < job.m && column < job.n};
    }

    /* The block's rows of the cluster's sums. early: of the thread's first neighbours. */
    __device__ inline void join(const product_place &at,
                                typename C::Store::early &early) const
    {
        enum {
            EACH = C::Store::Joined,
            PIECES = C::Columns / EACH,
            THREADS = C::Groups * 128
        };
        const int32_t share = rows_stored(), size = C::SumPitch;
        const typename C::Sum *from =
            (const typename C::Sum *)__cvta_shared_to_generic(memory.out);
        bool waited = false;
        for (int32_t i = (int32_t)threadIdx.x; i < share * PIECES; i += THREADS) {
            const neighbours to = neighbours_of(at, i);
            const int32_t row = to.row, column = to.column;
            if (!to.live)
                continue;
            if (i >= THREADS)
                early.load(job, at.batch, row, column);
            if (!waited)
                barrier_wait(memory.joined(), 0);
            waited = true;
            C::Store::join(job, early, from + i / PIECES * size + i % PIECES * EACH,
                           share * size, at.batch, row, column);
        }
        if (!waited) /* shared memory ends with the block */
            barrier_wait(memory.joined(), 0);
    }

    __device__ inline void run(int32_t first, int32_t by, product_share k)
    {
        enum { STEP = C::Turns ? C::Groups : 1 };
        const uint32_t others = (uint32_t)(k.end - k.begin);
        uint32_t n = 0; /* tiles before */
        if (C::Turns) {
            first += group * by;
            stage.skip(group * others);
        }
        for (int32_t unit = first; unit < job.units; unit += STEP * by, n++) {
            sums sum;
            if (n > 0)
                stage.skip((STEP - 1) * others);
            const product_place at = product_place_of<C>(job, unit, rank);
            store.fetch(at.column);
            if (C::Turns)
                named_sync(PRODUCT_TURN + group, 256);
            typename C::Store::early early = {};
            if (C::Splits && job.split > 1) {
                const neighbours to = neighbours_of(at, (int32_t)threadIdx.x);
                if (to.live)
                    early.load(job, at.batch, to.row, to.column);
            }
            C::Kind::multiply(*this, sum, k.end - k.begin);
            if (C::Splits && job.split > 1) {
                cluster_wait();
                send(sum);
                join(product_place_of<C>(job, unit, 0), early);
                return;
            }
            if (C::Over)
                leave_ring(at);
            store.run(sum, at.column, n,
                      [&](int part) { send_part(at, part, n % C::Buffers); });
        }
        if (C::Buffers > 1 && threadIdx.x % 128 == 0)
            copy_group_wait_read(); /* shared memory ends with the block */
    }
};

/* Grid: units * split blocks, or with split 1 fewer, which then go from tile to tile;
 * clusters of `split`, of 2 where blocks are pairs. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, C::Blocks)
    product_kernel(const __grid_constant__ typename C::Job job)
{
    extern __shared__ uint8_t shared[];
    const product_memory<C> memory(shared);
    const uint32_t size = C::Pair ? 2 : C::Splits ? (uint32_t)job.split : 1;
    const uint32_t rank = blockIdx.x & (size - 1);
    const int32_t first = (int32_t)(blockIdx.x >> product_log(size)),
                  by = (int32_t)(gridDim.x >> product_log(size));
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4;
    const product_share k =
        C::Splits ? product_share_of(job, rank) : product_share{0, job.steps};
    product_producer<C> producer(job, memory, rank);
    if (threadIdx.x == C::Groups * 128) {
        prefetch_map(&job.b);
        prefetch_map(&job.a);
        memory.init(job.split);
        if (!C::Pair) /* else others' barriers have to be there */
            producer.begin(first, k);
    } else if (threadIdx.x == 0)
        prefetch_map(&job.d);
    __syncthreads();
    if (size > 1) /* others' barriers are there once all have arrived */
        cluster_arrive();
    if (C::Pair)
        cluster_wait();
    launch_next();
    if (group == C::Groups) {
        if constexpr (C::Wide)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(C::Kept));
        if (threadIdx.x % 128 == 0) {
            if (C::Pair)
                producer.begin(first, k);
            producer.run(first, by, k);
        }
    } else {
        if constexpr (C::Wide)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(C::Given));
        product_consumer<C> consumer(job, memory, group, rank);
        wait_for_previous();
        if (C::Turns && group == C::Groups - 1)
            named_arrive(PRODUCT_TURN, 256);
        consumer.run(first, by, k);
    }
}

#endif /* PLUGINS_COMMON_PRODUCT_HOPPER_CUH */
