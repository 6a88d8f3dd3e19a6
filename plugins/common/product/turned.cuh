/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution on Hopper's tensor cores as a product that is turned: weights are the
 * factor of 64 rows a warpgroup, windows the other one, of as many columns, a multiple of
 * eight, as let the tiles of a layer just fill the multiprocessors once or twice. Stages
 * and shares of the depth are those of hopper.cuh.
 *
 *   pair     two blocks of a cluster have neighbouring pixels and load half of the
 *            weights each, for both
 *   splits   two blocks of a cluster share a tile's depth, where there is room for them
 *
 * Channels that are no multiple of 64 end with a piece that is narrower in shared memory,
 * too, or of which less is multiplied.
 */
#ifndef PLUGINS_COMMON_PRODUCT_TURNED_CUH
#define PLUGINS_COMMON_PRODUCT_TURNED_CUH

#include "kernels/overlap.cuh"
#include "plugins/common/product/turned_store.cuh"

/* ---- the producer ------------------------------------------------------------- */

/* A piece of K: of the channels of an element of the kernel. */
struct turned_step {
    uint32_t piece, column, row;

    __device__ inline turned_step(const product_window &w, int32_t step)
    {
        const uint32_t element = divide_by((uint32_t)step, w.pieces);
        piece = (uint32_t)step - element * w.pieces.d;
        row = divide_by(element, w.kernel_w);
        column = element - row * w.kernel_w.d;
    }
    __device__ inline bool last(const product_window &w) const
    {
        return piece + 1 == w.pieces.d;
    }
    __device__ inline void advance(const product_window &w)
    {
        if (++piece < w.pieces.d)
            return;
        piece = 0;
        if (++column < w.kernel_w.d)
            return;
        column = 0;
        row++;
    }
};

template <class C>
struct turned_producer {
    const turned_job &job;
    const turned_memory<C> &memory;
    const uint32_t rank;
    product_stage<C> stage;
    turned_place place;
    int32_t image, y, x; /* of the place: its first window's */

    __device__ inline turned_producer(const turned_job &job,
                                      const turned_memory<C> &memory, uint32_t rank)
        : job(job), memory(memory), rank(rank)
    {
    }

    __device__ inline bool narrow(const turned_step &k) const
    {
        return job.narrow < PRODUCT_ROW && k.last(job.window);
    }

    __device__ inline void expect(const turned_step &k, int32_t at) const
    {
        barrier_expect(memory.full(at),
                       narrow(k) ? (C::Rows + C::Columns) * job.narrow : C::StageBytes);
    }

    __device__ inline void load_weights(const turned_step &k, int32_t step,
                                        int32_t at) const
    {
        enum { HALF = C::Rows / 2 };
        const CUtensorMap *map = narrow(k) ? &job.narrow_b : &job.b;
        const int32_t row = narrow(k) ? job.narrow : PRODUCT_ROW;
        if (C::Pair)
            copy_matrix_to(memory.a(at) + rank * HALF * row, map, memory.full(at),
                           step * PRODUCT_DEPTH, place.channel + (int32_t)rank * HALF, 0,
                           3);
        else
            copy_matrix(memory.a(at), map, memory.full(at), step * PRODUCT_DEPTH,
                        place.channel, 0);
    }

    __device__ inline void load_windows(const turned_step &k, int32_t at) const
    {
        const product_window &w = job.window;
        copy_window(memory.b(at), narrow(k) ? &job.narrow_a : &job.a, memory.full(at),
                    (int32_t)k.piece * PRODUCT_DEPTH, x, y, image,
                    (int32_t)k.column * w.dilation_w, (int32_t)k.row * w.dilation_h);
    }

    __device__ inline void go_to(int32_t unit)
    {
        const product_window &w = job.window;
        place = turned_place_of<C>(job, unit, rank);
        const uint32_t of = divide_by((uint32_t)place.pixel, w.pixels);
        const uint32_t pixel = (uint32_t)place.pixel - of * w.pixels.d;
        const uint32_t down = divide_by(pixel, w.width);
        image = (int32_t)of;
        y = (int32_t)down * w.stride_h - w.begin_h;
        x = (int32_t)(pixel - down * w.width.d) * w.stride_w - w.begin_w;
    }

    /* The first stages: weights, which nobody writes, while the kernel before still runs.
     */
    __device__ inline int32_t load_first(product_share k)
    {
        const int32_t end = min(k.end, k.begin + (int32_t)C::Stages);
        turned_step at(job.window, k.begin);
        for (int32_t step = k.begin; step < end; step++, at.advance(job.window)) {
            expect(at, step - k.begin);
            load_weights(at, step, step - k.begin);
        }
        wait_for_previous();
        at = turned_step(job.window, k.begin);
        for (int32_t step = k.begin; step < end; step++, at.advance(job.window)) {
            load_windows(at, step - k.begin);
            stage.advance();
        }
        return end;
    }

    __device__ inline void run(int32_t first, int32_t by, product_share k)
    {
        for (int32_t unit = first; unit < job.units; unit += by) {
            go_to(unit);
            int32_t step = unit == first ? load_first(k) : k.begin;
            turned_step at(job.window, step);
            for (; step < k.end; step++, at.advance(job.window)) {
                barrier_wait(memory.empty(stage.at), stage.parity ^ 1);
                expect(at, stage.at);
                load_weights(at, step, stage.at);
                load_windows(at, stage.at);
                stage.advance();
            }
        }
        if (C::Pair)
            product_drain(memory, stage);
    }
};

/* ---- consumers ---------------------------------------------------------------- */

/* What a descriptor has but its address: rows of 128, 64 or 32 bytes, swizzled by as
 * many. */
static __device__ inline uint64_t turned_form(int32_t row)
{
    const uint64_t swizzle = row == 128 ? 1 : row == 64 ? 2 : 3;
    return UINT64_C(1) << 16 | (uint64_t)(8 * row >> 4) << 32 | swizzle << 62;
}

static __device__ inline uint64_t turned_descriptor(uint64_t form, uint32_t address)
{
    return form | (uint64_t)(address >> 4 & 0x3fff);
}

/* A warpgroup. */
template <class C>
struct turned_consumer {
    typedef typename turned_store<C>::sums sums;
    const turned_job &job;
    const turned_memory<C> &memory;
    const int group;
    const uint32_t rank;
    turned_store<C> store;
    product_stage<C> stage;

    __device__ inline turned_consumer(const turned_job &job,
                                      const turned_memory<C> &memory, int group,
                                      uint32_t rank)
        : job(job), memory(memory), group(group), rank(rank),
          store(job, memory, group, rank)
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

    /* A stage: `Depths` times 16 of K. */
    template <int Depths>
    __device__ inline void multiply_depths(sums &sum, uint64_t a, uint64_t b,
                                           int32_t add) const
    {
        multiply_begin();
#pragma unroll
        for (int d = 0; d < Depths; d++)
            product<typename C::Element, C::Columns>::scores(sum, a + d * 2, b + d * 2,
                                                             add | d);
        multiply_commit();
    }

    /* Without a loop, behind which a group would end that has no products, and be waited
     * for in place of theirs. */
    __device__ inline void multiply_stage(sums &sum, uint64_t a, uint64_t b,
                                          int32_t depths, int32_t add) const
    {
        if (depths == 4)
            multiply_depths<4>(sum, a, b, add);
        else if (depths == 1)
            multiply_depths<1>(sum, a, b, add);
        else if (depths == 2)
            multiply_depths<2>(sum, a, b, add);
        else
            multiply_depths<3>(sum, a, b, add);
    }

    __device__ inline void multiply(sums &sum, product_share k)
    {
        const uint32_t pieces = job.window.pieces.d;
        const uint64_t whole = turned_form(PRODUCT_ROW), narrow = turned_form(job.narrow);
        const int32_t row = group * 64;
        uint32_t piece = (uint32_t)k.begin % pieces;
        int32_t before = -1;
        for (int32_t step = k.begin; step < k.end; step++) {
            const bool last = piece + 1 == pieces;
            const int32_t pitch = last ? job.narrow : PRODUCT_ROW;
            const uint64_t form = last ? narrow : whole;
            barrier_wait(memory.full(stage.at), stage.parity);
            hold(sum);
            multiply_stage(sum, turned_descriptor(form, memory.a(stage.at) + row * pitch),
                           turned_descriptor(form, memory.b(stage.at)),
                           last ? job.last : PRODUCT_ROW / PRODUCT_STEP, step > k.begin);
            multiply_wait<1>();
            if (before >= 0)
                release(before);
            before = stage.at;
            stage.advance();
            piece = last ? 0 : piece + 1;
        }
        multiply_wait<0>();
        hold(sum);
        if (before >= 0)
            release(before);
    }

    __device__ inline void run(int32_t first, int32_t by, product_share k)
    {
        uint32_t n = 0;
        for (int32_t unit = first; unit < job.units; unit += by, n++) {
            sums sum;
            const turned_place p = turned_place_of<C>(job, unit, rank);
            store.begin(p);
            multiply(sum, k);
            store.finish_of(sum, p, n);
        }
        store.end();
    }
};

/* Grid: units times the cluster, or without splits fewer, which then go from tile to
 * tile. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, 1)
    turned_kernel(const __grid_constant__ turned_job job)
{
    extern __shared__ uint8_t shared[];
    const turned_memory<C> memory(shared);
    const uint32_t size = C::Pair ? 2 : C::Splits ? (uint32_t)job.split : 1;
    const uint32_t rank = blockIdx.x % size;
    const int32_t first = (int32_t)(blockIdx.x / size), by = (int32_t)(gridDim.x / size);
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), group = warp / 4;
    const product_share k = product_share_of(job, C::Splits ? rank : 0);
    if (threadIdx.x == 0) {
        prefetch_map(&job.a);
        prefetch_map(&job.b);
        prefetch_map(&job.d);
        memory.init(job.split);
    }
    __syncthreads();
    if (size > 1) /* others' barriers are there once all have arrived */
        cluster_arrive();
    if (C::Pair)
        cluster_wait();
    launch_next();
    if (group == C::Groups) {
        if (threadIdx.x % 32 == 0)
            turned_producer<C>(job, memory, rank).run(first, by, k);
        if (C::Splits && size > 1)
            cluster_wait();
    } else {
        turned_consumer<C> consumer(job, memory, group, rank);
        wait_for_previous();
        consumer.run(first, by, k);
    }
}

#endif /* PLUGINS_COMMON_PRODUCT_TURNED_CUH */
