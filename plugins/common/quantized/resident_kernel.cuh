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

/* 16 bytes to shared memory, for this thread, and until all such have come. */
static __device__ inline void resident_copy(uint4 *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(shared_address(to)),
                 "l"(from)
                 : "memory");
}

static __device__ inline void resident_copied(void)
{
    asm volatile("cp.async.wait_all;\n" ::: "memory");
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
        const float4 sums = {__int2float_rn(d.sums.x), __int2float_rn(d.sums.y),
                             __int2float_rn(d.sums.z), __int2float_rn(d.sums.w)};
        *(uint32_t *)((uint8_t *)job->to + at) =
            quantized_four(job, sums, d.column, addend) &
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

    __device__ inline void release(int at)
    {
        if (threadIdx.x % 32 == 0)
            barrier_arrive(memory.empty(at));
        producer.free++;
        ask();
    }

    /* A thread's steps of word 0, then every fourth. */
    __device__ inline const float4 *steps(void) const
    {
        return (const float4 *)memory.steps + across * 16 + threadIdx.x % 4;
    }

    /* Sums begin with the offsets: added later, they would make products wait. */
    __device__ inline void begin(sums &sum) const
    {
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const float4 four = steps()[C::Columns / 2 + w * 4];
            sum[w * 2][0] = sum[w * 2][2] = __float_as_int(four.x);
            sum[w * 2][1] = sum[w * 2][3] = __float_as_int(four.y);
            sum[w * 2 + 1][0] = sum[w * 2 + 1][2] = __float_as_int(four.z);
            sum[w * 2 + 1][1] = sum[w * 2 + 1][3] = __float_as_int(four.w);
        }
    }

    /* T: of A's elements. */
    template <typename T>
    __device__ inline void multiply(sums &sum)
    {
        begin(sum);
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
                                       b + d * PRODUCT_STEP / 16, 1);
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
                                       b + d * PRODUCT_STEP / 16, 1);
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

    /* A thread's own, so that nobody else need know when it has come. */
    template <class Way>
    __device__ inline void load_addend(int r, int32_t pixel) const
    {
        if (Way::Joined && pixel < job.m && column < job.n)
            resident_copy(memory.addends + r * C::Threads + threadIdx.x,
                          (const uint8_t *)job.addend + pixel * job.addend_row + column);
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

    /* A thread's sixteen sums of a row. */
    template <class Way>
    __device__ inline void finish(const sums &sum, int r, int32_t pixel)
    {
        uint4 addend = {};
        if (Way::Joined)
            addend = memory.addends[r * C::Threads + threadIdx.x];
        const uint32_t flip = job.addend_unsigned ? 0 : QUANTIZED_FLIP;
        const bool inside = pixel < job.m && column < job.n;
        uint32_t words[4], least[4], all = 0xffffffff;
#pragma unroll
        for (int w = 0; w < 4; w++) {
            const int4 four = four_of(sum, r, w);
            const float v[4] = {__int2float_rn(four.x), __int2float_rn(four.y),
                                __int2float_rn(four.z), __int2float_rn(four.w)};
            words[w] = quick_four<Way::Joined, Way::Between>(
                job.quick, v, steps()[w * 4], steps()[C::Columns / 4 + w * 4],
                word_of(addend, w) ^ flip, halves, least[w]);
            all = __vminu2(all, least[w]);
        }
        if (job.real < job.n)
#pragma unroll
            for (int w = 0; w < 4; w++)
                words[w] &= first_bytes(job.real - column - w * 4);
        if (inside)
            *(uint4 *)((uint8_t *)job.to + pixel * job.to_row + column) =
                make_uint4(words[0], words[1], words[2], words[3]);
        if (__any_sync(0xffffffff, inside && quick_doubt(job.quick, all)))
#pragma unroll
            for (int w = 0; w < 4; w++)
                put_aside(inside && quick_doubt(job.quick, least[w]), four_of(sum, r, w),
                          pixel, column + w * 4);
    }

    template <class Way>
    __device__ inline void run(int32_t unit)
    {
        for (int r = 0; r < 2; r++)
            load_addend<Way>(r, pixel_of(unit, r));
        for (; unit < job.units; unit += job.by) {
            sums sum;
            if (job.is_unsigned)
                multiply<uint8_t>(sum);
            else
                multiply<int8_t>(sum);
            if (Way::Joined)
                resident_copied();
#pragma unroll
            for (int r = 0; r < 2; r++) {
                finish<Way>(sum, r, pixel_of(unit, r));
                load_addend<Way>(r, pixel_of(unit + job.by, r));
            }
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
