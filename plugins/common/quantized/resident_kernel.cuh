/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of bytes with weights that stay in shared memory: the kernel.
 */
#ifndef PLUGINS_COMMON_QUANTIZED_RESIDENT_KERNEL_CUH
#define PLUGINS_COMMON_QUANTIZED_RESIDENT_KERNEL_CUH

#include "plugins/common/quantized/resident_memory.cuh"

/* Eight groups of eight rows, `group` bytes from one to the next. */
template <int Row>
static __device__ inline uint64_t resident_descriptor(uint32_t address, uint32_t group)
{
    const uint64_t between = UINT64_C(0x3fff) << 32;
    return (rows_descriptor<Row>(address) & ~between) | (uint64_t)(group >> 4) << 32;
}

/* 16 bytes to shared memory, for this thread. */
static __device__ inline void resident_copy(uint4 *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(to)),
                 "l"(from)
                 : "memory");
}

/* Ends a group of such. */
static __device__ inline void resident_commit(void)
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Until at most N groups have not come. */
template <int N>
static __device__ inline void resident_copied(void)
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(N) : "memory");
}

/* A warp's sums in doubt once more, as the definition says, a lane each. */
static __device__ __noinline__ void
resident_settle(const resident_job *job, const resident_doubt *doubts, int many)
{
    __syncwarp(); /* what was put aside, and stored before */
    if ((int)threadIdx.x % 32 < many) {
        const resident_doubt &d = doubts[threadIdx.x % 32];
        const int64_t at = d.pixel * job->to_row + d.column;
        const uint32_t addend =
            job->addend ? *(const uint32_t *)((const uint8_t *)job->addend + at) : 0;
        *(uint32_t *)((uint8_t *)job->to + at) =
            quantized_four(job, d.sums, d.column, addend) &
            first_bytes(job->real - d.column);
    }
    __syncwarp();
}

/* ---- a warpgroup ----------------------------------------------------------------- */

template <class C>
struct resident_warpgroup {
    typedef int32_t sums[8][4];
    const resident_job &job;
    const resident_memory<C> &memory;
    const int across, down; /* its place among the block's */
    const int32_t column;   /* of the thread's first result */
    const int row;          /* of the first of its two rows of a tile's 64 */
    uint32_t halves;        /* QUICK_HALVES */
    int aside = 0;          /* words in doubt, of the warp */
    resident_stage stage;
    resident_producer<C> producer;

    __device__ inline resident_warpgroup(const resident_job &job,
                                         const resident_memory<C> &memory, int group,
                                         int32_t unit, int32_t column)
        : job(job), memory(memory), across(group % C::Across), down(group / C::Across),
          column(column + across * 64 + (int32_t)threadIdx.x % 4 * 16),
          row(threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4),
          producer(job, memory, unit)
    {
        /* Loaded, as it were: a constant is no operand beside another. */
        halves = __shfl_sync(0xffffffff, QUICK_HALVES, 0);
    }

    __device__ inline void ask(void)
    {
        if (threadIdx.x == 0)
            producer.ask();
        __syncwarp();
    }

    /* Others are asked for it once the unit is finished, when most of them have released
     * it, too, unless the ring holds too little for that. */
    __device__ inline void release(int at)
    {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(memory.empty(at));
        producer.free++;
        if (!job.late)
            ask();
    }

    /* A thread's steps of word 0, then every fourth. */
    __device__ inline const float4 *steps(void) const
    {
        return (const float4 *)memory.steps + across * 16 + threadIdx.x % 4;
    }

    /* T: of A's elements. */
    template <typename T>
    __device__ inline void multiply(sums &sum)
    {
        if constexpr (C::Patch)
            multiply_patch<T>(sum);
        else
            multiply_rows<T>(sum);
    }

    template <typename T>
    __device__ inline void multiply_rows(sums &sum)
    {
        int32_t before = -1;
        for (int32_t step = 0; step < job.steps; step++) {
            barrier_wait(memory.full(stage.at), stage.parity);
            const uint64_t a =
                rows_descriptor<C::Row>(memory.a(job, stage.at) + down * 64 * C::Row);
            const uint64_t b = rows_descriptor<C::Row>(
                memory.b + (step * C::Across + across) * 64 * C::Row);
            hold(sum);
            multiply_begin();
#pragma unroll
            for (int d = 0; d < C::Row / PRODUCT_STEP; d++)
                product<T, 64>::scores(sum, a + d * PRODUCT_STEP / 16,
                                       b + d * PRODUCT_STEP / 16, step + d);
            multiply_commit();
            multiply_wait<1>();
            if (before >= 0)
                release(before);
            before = stage.at;
            stage.advance(job.stages);
        }
        multiply_wait<0>();
        hold(sum);
        release(before);
    }

    /* All elements of the kernel by one patch, from another pixel on for each: eight
     * groups of eight rows, a row of the patch from one to the next. */
    template <typename T>
    __device__ inline void multiply_patch(sums &sum)
    {
        const resident_patch &patch = job.patch;
        uint64_t a = resident_descriptor<C::Row>(
            memory.a(job, stage.at) + down * patch.room, patch.group);
        uint64_t b = rows_descriptor<C::Row>(memory.b + across * 64 * C::Row);
        barrier_wait(memory.full(stage.at), stage.parity);
        hold(sum);
        multiply_begin();
        for (int32_t i = 0, s = 0; i < job.steps; i++, b += C::BBytes / 16) {
#pragma unroll
            for (int d = 0; d < C::Row / PRODUCT_STEP; d++)
                product<T, 64>::scores(sum, a + d * PRODUCT_STEP / 16,
                                       b + d * PRODUCT_STEP / 16, i + d);
            a += patch.step_w;
            if (++s == patch.kernel_w) {
                s = 0;
                a += patch.down;
            }
        }
        multiply_commit();
        multiply_wait<0>();
        hold(sum);
        const int32_t at = stage.at;
        stage.advance(job.stages);
        release(at);
    }

    /* The pixel of the r-th row; job.m or more: none. */
    __device__ inline int32_t pixel_of(int32_t unit, int r) const
    {
        if constexpr (!C::Patch)
            return unit * C::Rows + down * 64 + row + r * 8;
        const resident_place p = resident_place_of(job.patch, unit * C::Down + down);
        const int32_t y = p.row + row / 8 + r, x = p.column + row % 8;
        return y < job.patch.height && x < job.patch.width
                   ? (p.image * job.patch.height + y) * job.patch.width + x
                   : job.m;
    }

    __device__ inline bool inside(int32_t pixel) const
    {
        return pixel < job.m && column < job.n;
    }

    /* A thread's own of two rows, so that nobody else need know when they have come. */
    template <class Way>
    __device__ inline void load_addends(int32_t unit, int buffer) const
    {
        if constexpr (Way::Joined) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int32_t pixel = pixel_of(unit, r);
                if (unit < job.units && inside(pixel))
                    resident_copy(memory.addend(buffer, r), (const uint8_t *)job.addend +
                                                                pixel * job.addend_row +
                                                                column);
            }
            resident_commit();
        }
    }

    /* Puts four sums aside where `doubt`. A value in doubt takes as long as a tile: the
     * other warps would wait for it, and the next tile's loads for them. */
    __device__ inline void put_aside(bool doubt, int4 sums, int32_t pixel, int32_t first)
    {
        resident_doubt *to = memory.doubts + threadIdx.x / 32 * RESIDENT_DOUBTS;
        uint32_t left = __ballot_sync(0xffffffff, doubt);
        while (left) {
            const int at = aside + __popc(left & ((1u << threadIdx.x % 32) - 1));
            const bool put = doubt && at < RESIDENT_DOUBTS;
            if (put)
                to[at] = {sums, pixel, first, {0, 0}};
            aside = min(aside + __popc(left), RESIDENT_DOUBTS);
            doubt &= !put;
            left = __ballot_sync(0xffffffff, doubt);
            if (aside == RESIDENT_DOUBTS) {
                resident_settle(&job, to, aside);
                aside = 0;
            }
        }
    }

    static __device__ inline int4 four_of(const sums &sum, int r, int w)
    {
        return {sum[w * 2][r * 2], sum[w * 2][r * 2 + 1], sum[w * 2 + 1][r * 2],
                sum[w * 2 + 1][r * 2 + 1]};
    }

    static __device__ inline uint32_t word_of(const uint4 &four, int w)
    {
        return w == 0 ? four.x : w == 1 ? four.y : w == 2 ? four.z : four.w;
    }

    /* Words of a thread's two rows, the first row's before. */
    template <class Way>
    __device__ inline void finish(const sums &sum, const uint4 (&addend)[2],
                                  uint32_t (&words)[2][4], uint32_t (&least)[2][4])
    {
        const uint32_t flip = job.addend_unsigned ? 0 : QUANTIZED_FLIP;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const float4 scale = steps()[w * 4];
            const float4 bias = steps()[C::Columns / 4 + w * 4];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int4 four = four_of(sum, r, w);
                const float v[4] = {__int2float_rn(four.x), __int2float_rn(four.y),
                                    __int2float_rn(four.z), __int2float_rn(four.w)};
                words[r][w] = quick_four<Way::Joined, Way::Between>(
                    job.quick, v, scale, bias, word_of(addend[r], w) ^ flip, halves,
                    least[r][w]);
            }
        }
    }

    __device__ inline void store(uint32_t (&words)[4], int32_t pixel) const
    {
        if (job.real < job.n)
#pragma unroll
            for (int w = 0; w < 4; w++)
                words[w] &= first_bytes(job.real - column - w * 4);
        if (inside(pixel))
            *(uint4 *)((uint8_t *)job.to + pixel * job.to_row + column) =
                make_uint4(words[0], words[1], words[2], words[3]);
    }

    /* Of words that are stored: those in doubt aside. */
    __device__ inline void sort_out(const sums &sum, const uint32_t (&least)[2][4],
                                    const int32_t (&pixel)[2])
    {
        uint32_t all = 0xffffffff, mine = 0;
#pragma unroll
        for (int w = 0; w < 4; w++)
            all = __vimin3_u16x2(all, least[0][w], least[1][w]);
        if (!__any_sync(0xffffffff, quick_doubt(job.quick, all)))
            return;
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (inside(pixel[i / 4]) && quick_doubt(job.quick, least[i / 4][i % 4]))
                mine |= 1u << i;
        const uint32_t any = __reduce_or_sync(0xffffffff, mine);
#pragma unroll
        for (int i = 0; i < 8; i++)
            if (any >> i & 1)
                put_aside(mine >> i & 1, four_of(sum, i / 4, i % 4), pixel[i / 4],
                          column + i % 4 * 4);
    }

    template <class Way>
    __device__ inline void finish_unit(const sums &sum, int32_t unit, int buffer)
    {
        const int32_t pixel[2] = {pixel_of(unit, 0), pixel_of(unit, 1)};
        uint32_t words[2][4], least[2][4];
        uint4 addend[2] = {};
        if constexpr (Way::Joined) {
            resident_copied<RESIDENT_ADDENDS - 1>();
            addend[0] = *memory.addend(buffer, 0);
            addend[1] = *memory.addend(buffer, 1);
        }
        finish<Way>(sum, addend, words, least);
        load_addends<Way>(unit + RESIDENT_ADDENDS * job.by, buffer);
#pragma unroll
        for (int r = 0; r < 2; r++)
            store(words[r], pixel[r]);
        sort_out(sum, least, pixel);
    }

    template <class Way>
    __device__ inline void run(int32_t unit)
    {
        int buffer = 0;
#pragma unroll
        for (int i = 0; i < RESIDENT_ADDENDS; i++)
            load_addends<Way>(unit + i * job.by, i);
        for (; unit < job.units; unit += job.by) {
            sums sum;
            if (job.is_unsigned)
                multiply<uint8_t>(sum);
            else
                multiply<int8_t>(sum);
            finish_unit<Way>(sum, unit, buffer);
            ask();
            buffer ^= 1;
        }
        resident_settle(&job, memory.doubts + threadIdx.x / 32 * RESIDENT_DOUBTS, aside);
    }
};

/* Grid: column tiles times `by`, which is at most the units. */
template <class C>
static __global__ void __launch_bounds__(C::Threads, RESIDENT_BLOCKS)
    resident_kernel(const __grid_constant__ resident_job job)
{
    extern __shared__ uint8_t shared[];
    const resident_memory<C> memory(shared, job);
    const int32_t column = (int32_t)blockIdx.x % job.column_tiles * C::Columns;
    const int32_t unit = (int32_t)blockIdx.x / job.column_tiles;
    const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        prefetch_map(&job.a);
        prefetch_map(&job.b);
        memory.init(job);
    }
    __syncthreads();
    launch_next();
    memory.fetch(job, column);
    __syncthreads();
    resident_warpgroup<C> warpgroup(job, memory, group, unit, column);
    wait_for_previous();
    warpgroup.ask();
    barrier_wait(memory.weights(), 0);
    quantized_join_way<false, true>(
        job, [&](auto way) { warpgroup.template run<decltype(way)>(unit); });
}

#endif /* PLUGINS_COMMON_QUANTIZED_RESIDENT_KERNEL_CUH */
